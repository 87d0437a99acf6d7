//! JSON input and output, converting values directly, without recursion and with metering.

mod exact;
mod parse;
mod unclosed;
mod unmarked;
mod write;

pub use exact::{first_rounded, number_in, survives, with_exact_numbers};
pub use parse::{parse, parse_exactly, parse_marked};
pub use unclosed::Unclosed;
pub use unmarked::unmarked;
pub use write::{Layout, to_serde, write, write_string};
