//! The checks of the fuzz targets, a module each: a finding is a panic.

pub mod collections;
#[cfg(feature = "server")]
pub mod config;
pub mod csv_dates;
pub mod evaluate;
pub mod json;
#[cfg(feature = "server")]
pub mod messages;
pub mod moves;
pub mod print_read;
pub mod reader;
pub mod session;
