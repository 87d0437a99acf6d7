//! The interface for Rust programs: each promise of `docs/embedding.md`, and the examples.

#[path = "../common/mod.rs"]
mod common;

mod arguments;
mod examples;
#[cfg(feature = "server")]
mod guards;
mod interface;
mod resuming;
mod retrying;
mod values;
mod variants;
