//! Randomness from the operating system.

use std::hash::{BuildHasher, RandomState};

/// Returns a key of 256 random bits.
///
/// # Errors
/// Returns a message if the system has no randomness: a guessable key would be worse than none.
pub(in crate::server) fn key() -> Result<[u8; 32], String> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|problem| format!("the system has no randomness: {problem}"))?;
    Ok(key)
}

/// Returns sixty-four random bits.
pub(in crate::server) fn bits() -> u64 {
    // If the system has no randomness, fall back to the seeds of hash tables.
    getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(0))
}
