//! The data that host and programs exchange, and the tool.

use serde::{Deserialize, Serialize};
use wasmtime::component::{ComponentType, Lift, Lower};

/// A record of the list that the host gives to a program.
#[derive(ComponentType, Lower, Serialize)]
#[component(record)]
pub struct Order {
    /// Its number.
    pub id: u64,
    /// Who ordered.
    pub customer: String,
    /// The price in cents.
    pub amount: i64,
    /// Whether it is paid.
    pub paid: bool,
}

/// The list of 100 orders, of which two thirds are paid.
pub fn orders() -> Vec<Order> {
    let order = |id: u64| Order {
        id,
        customer: format!("customer {}", id % 17),
        amount: 100 + 7 * id as i64,
        paid: !id.is_multiple_of(3),
    };
    (0..100).map(order).collect()
}

/// The arguments of the tool.
#[derive(ComponentType, Deserialize, Lift)]
#[component(record)]
pub struct Quote {
    /// Who asks.
    pub customer: String,
    /// The price in cents.
    pub amount: i64,
    /// Whether it is urgent.
    pub express: bool,
}

/// The result of the tool.
#[derive(ComponentType, Lower, Serialize)]
#[component(record)]
pub struct Price {
    /// The reduced price.
    pub net: i64,
    /// The price of the transport.
    pub shipping: i64,
    /// A sentence for the customer.
    pub note: String,
}

/// The tool.
pub fn quote(quote: &Quote) -> Price {
    Price {
        net: quote.amount * 9 / 10,
        shipping: if quote.express { 1_500 } else { 500 },
        note: format!("for {}", quote.customer),
    }
}
