//! Randomness of the operating system.

use std::hash::{BuildHasher, RandomState};

/// Sixty-four random bits.
pub(super) fn bits() -> u64 {
    // A system that has no randomness to give still seeds its hash tables with something.
    getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(0))
}
