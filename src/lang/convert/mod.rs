//! Conversion between values and Rust types through serde, without a detour through text.
//!
//! Structs and maps with text keys become records, as JSON objects do; sequences become vectors; big integers, decimals,
//! dates and keywords keep their exact values. A type that holds a [`Value`] gets and gives it unchanged.
//!
//! Results of tools are written as text, since they are logged and stored: [`to_text`] writes the same data, which
//! [`json::parse_marked`](crate::json::parse_marked) reads back.

mod dropped;
mod entries;
mod error;
pub mod exact;
mod foreign;
mod from_value;
mod pass;
mod payer;
mod plain;
mod scalars;
mod to_text;
mod to_value;
mod unique;

pub(crate) use dropped::{dropped, is_tagged_inside};
pub use error::ConvertError;
pub(crate) use plain::plain;
pub(crate) use to_text::{Unwritten, to_text};

use crate::host::panic_text;
use crate::machine::Machine;
use crate::meter;
use crate::value::Value;
use payer::Payer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Converts a Rust value to a value of the running evaluation, which pays for it.
///
/// # Errors
/// Returns an error that says where, if the value has no counterpart or exceeds a limit.
pub(crate) fn to_value<T: Serialize + ?Sized>(machine: &mut Machine, value: &T) -> Result<Value, ConvertError> {
    value.serialize(to_value::ToValue::new(machine))
}

/// Converts a value for Rust code that runs within the evaluation, which pays for the result.
///
/// # Errors
/// Returns an error that says where, if the value does not fit the type; or what a lazy part of it raises.
pub(crate) fn from_value<T: DeserializeOwned>(machine: &mut Machine, value: &Value) -> Result<T, ConvertError> {
    T::deserialize(from_value::FromValue::new(Payer::of(machine), value))
}

/// Converts a value without lazy parts for Rust code outside of the evaluation, which may take `room` bytes. Structs take
/// no other fields than their own.
///
/// # Errors
/// Returns an error that says where, if the value does not fit the type. One that [is too large](ConvertError::is_raised)
/// has no place.
pub(crate) fn from_plain_strictly<T: DeserializeOwned>(value: &Value, room: u64) -> Result<T, ConvertError> {
    T::deserialize(from_value::FromValue::new(Payer::within(room), value))
}

/// Converts a value that an embedder gives; see [`to_value`].
///
/// # Errors
/// As [`to_value`], and if the code of the type panics.
pub(crate) fn take_in<T: Serialize + ?Sized>(machine: &mut Machine, value: &T) -> Result<Value, ConvertError> {
    let before = meter::balance();
    caught::<T, _>(|| to_value(machine, value)).inspect_err(|error| {
        // The panic handler's memory is not the program's, and the parts of the value are gone.
        if error.is_panic() {
            meter::set_balance(before);
        }
    })
}

/// Converts a value for code outside of the evaluation. The result is charged to no account.
///
/// # Errors
/// As [`from_value`], and if the code of the type panics.
pub(crate) fn take_out<T: DeserializeOwned>(machine: &mut Machine, value: &Value) -> Result<T, ConvertError> {
    // What leaves the evaluation cannot compute its lazy parts any more.
    let value = plain(machine, value).map_err(|signal| ConvertError::raised(signal, value))?;
    meter::outside(|| caught::<T, _>(|| from_value(machine, &value)))
}

/// Converts by the code of a type of the embedder.
///
/// # Errors
/// As `convert`, and if it panics.
fn caught<T: ?Sized, R>(convert: impl FnOnce() -> Result<R, ConvertError>) -> Result<R, ConvertError> {
    catch_unwind(AssertUnwindSafe(convert)).unwrap_or_else(|payload| {
        drop(pass::taken());
        Err(meter::outside(|| ConvertError::panicked(type_name::<T>(), panic_text(&*payload))))
    })
}
