//! Randomness from the operating system.

use std::hash::{BuildHasher, RandomState};

/// Returns sixty-four random bits.
pub(in crate::server) fn bits() -> u64 {
    // If the system has no randomness, fall back to the seeds of hash tables.
    getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(0))
}
