//! JSON input and output, converting values directly, without recursion and with metering.

mod exact;
mod parse;
mod unclosed;
mod write;

pub use exact::first_rounded;
pub use parse::{parse, parse_exactly};
pub use unclosed::Unclosed;
pub use write::{Layout, to_serde, write};
