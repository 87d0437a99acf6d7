//! The interface for Rust programs: each promise of `docs/embedding.md`, and the examples.

#[path = "../common/mod.rs"]
mod common;

mod arguments;
mod edges;
mod elsewhere;
mod examples;
mod failures;
#[cfg(feature = "server")]
mod guards;
mod interface;
#[cfg(feature = "policy")]
mod policy;
#[cfg(feature = "policy")]
mod rehearsals;
mod resuming;
mod resuming_again;
mod retrying;
mod values;
mod variants;
