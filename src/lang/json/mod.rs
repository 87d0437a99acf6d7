//! JSON in and out, straight from and to values, without recursion and under the meter.

mod parse;
mod unclosed;
mod write;

pub use parse::parse;
pub use unclosed::Unclosed;
pub use write::{to_serde, write};
