//! Decimals and dates in Rust types: fields with `#[serde(with = "lispbox_lang::exact")]`, and [`Exact`].
//!
//! Serde knows neither decimals nor dates: their types serialize to text, so that a program would get `"19.90"` and
//! could not add to it. This module passes them as what they are: `19.90M`, `#time/date "2026-03-01"`.
//!
//! | feature | types |
//! |---|---|
//! | `rust_decimal` | `Decimal` |
//! | `bigdecimal` | `BigDecimal` |
//! | `jiff` | `Timestamp`, `Zoned`, `civil::{Date, Time, DateTime}`, `SignedDuration` |
//! | `chrono` | `DateTime<Utc>`, `DateTime<FixedOffset>`, `NaiveDate`, `NaiveTime`, `NaiveDateTime` |
//! | `time` | `OffsetDateTime`, `PrimitiveDateTime`, `Date`, `Time` |
//!
//! ```
//! # #[global_allocator]
//! # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
//! use lispbox::lang::value::Value;
//! use lispbox::lang::{Engine, Scalar, World, exact};
//! use serde::{Deserialize, Serialize};
//!
//! /// An amount of money, in cents.
//! #[derive(Serialize, Deserialize)]
//! struct Cents(i64);
//!
//! impl Scalar for Cents {
//!     fn to_scalar(&self) -> Result<Value, String> {
//!         Ok(Value::decimal(self.0, 2))
//!     }
//!
//!     fn from_scalar(value: &Value) -> Result<Cents, String> {
//!         let digits = value.to_string().replace('.', "");
//!         digits.parse().map(Cents).map_err(|_| format!("expected an amount, got {value}"))
//!     }
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Invoice {
//!     #[serde(with = "exact")]
//!     total: Cents,
//! }
//!
//! let mut session = Engine::builder().build().unwrap().session();
//! let run = session.run("(update data :total + 0.10M)").data(&Invoice { total: Cents(1_990) });
//! assert_eq!(run.eval::<Invoice>(&World::default()).unwrap().done().unwrap().total.0, 2_000);
//! ```

use super::pass;
use crate::value::Value;
use bigdecimal::BigDecimal;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A Rust type with a counterpart in the language that serde does not know, such as a decimal or a date. See [`exact`](self).
pub trait Scalar: Sized {
    /// Returns the value for programs.
    ///
    /// # Errors
    /// Returns a sentence, if there is no such value: a date may be out of range.
    fn to_scalar(&self) -> Result<Value, String>;

    /// Reads a value of a program.
    ///
    /// # Errors
    /// Returns a sentence that names what was expected and what came, if the type does not hold exactly that value.
    fn from_scalar(value: &Value) -> Result<Self, String>;
}

/// Nil, or the value.
impl<T: Scalar> Scalar for Option<T> {
    fn to_scalar(&self) -> Result<Value, String> {
        self.as_ref().map_or(Ok(Value::Nil), T::to_scalar)
    }

    fn from_scalar(value: &Value) -> Result<Option<T>, String> {
        if value.is_nil() { Ok(None) } else { T::from_scalar(value).map(Some) }
    }
}

/// Passes a decimal or a date to a program as what it is. Any other serializer gets what the type gives it by itself.
///
/// # Errors
/// Returns an error if the value has no counterpart.
pub fn serialize<T: Scalar + Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    pass::offer(value.to_scalar().map_err(S::Error::custom)?);
    let result = serializer.serialize_newtype_struct(pass::NAME, &Own(value));
    drop(pass::taken());
    result
}

/// Takes a decimal or a date from a program, exactly. From any other deserializer, the type reads itself.
///
/// # Errors
/// Returns an error if the type does not hold exactly that value.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Scalar + DeserializeOwned,
    D: Deserializer<'de>,
{
    deserializer.deserialize_newtype_struct(pass::NAME, Passed(PhantomData))
}

/// A value for a serializer other than this crate's.
struct Own<'t, T>(&'t T);

impl<T: Serialize> Serialize for Own<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        drop(pass::taken());
        self.0.serialize(serializer)
    }
}

struct Passed<T>(PhantomData<T>);

impl<'de, T: Scalar + DeserializeOwned> Visitor<'de> for Passed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal or a date")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        let value = pass::taken().ok_or_else(|| E::custom("expected a decimal or a date"))?;
        T::from_scalar(&value).map_err(E::custom)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

/// A decimal or a date that goes to and from programs as what it is, where `#[serde(with = "…")]` has no place: in a
/// list, or as a parameter.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::value::Value;
/// use lispbox::lang::{Engine, Exact, Scalar, World};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Cents(i64);
///
/// impl Scalar for Cents {
///     fn to_scalar(&self) -> Result<Value, String> {
///         Ok(Value::decimal(self.0, 2))
///     }
///
///     fn from_scalar(value: &Value) -> Result<Cents, String> {
///         value.to_string().replace('.', "").parse().map(Cents).map_err(|_| format!("expected an amount, got {value}"))
///     }
/// }
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let prices = [Exact(Cents(1_990)), Exact(Cents(5))];
/// let sum = session.run("(reduce + data)").data(&prices).eval::<Exact<Cents>>(&World::default());
/// assert_eq!(sum.unwrap().done(), Some(Exact(Cents(1_995))));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exact<T>(pub T);

impl<T: Scalar + Serialize> Serialize for Exact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de, T: Scalar + DeserializeOwned> Deserialize<'de> for Exact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Exact<T>, D::Error> {
        deserialize(deserializer).map(Exact)
    }
}

impl Value {
    /// Creates a decimal: `Value::decimal(1_990, 2)` is `19.90M`.
    ///
    /// ```
    /// use lispbox::lang::value::Value;
    ///
    /// assert_eq!(Value::decimal(1_990, 2).to_string(), "19.90");
    /// ```
    pub fn decimal(digits: i64, scale: u32) -> Value {
        Value::Decimal(Arc::new(BigDecimal::new(digits.into(), scale.into())))
    }
}
