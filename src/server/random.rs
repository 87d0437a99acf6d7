//! Randomness of the operating system.

use std::hash::{BuildHasher, RandomState};

/// Sixty-four random bits.
pub(super) fn bits() -> u64 {
    // A system that has no randomness to give still seeds its hash tables with something.
    getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(0))
}

/// A name that cannot be guessed: 130 random bits in 26 letters and digits, none of which look alike.
///
/// # Errors
/// When the system has no randomness: a name that could be guessed is worse than none.
pub(super) fn unguessable() -> Result<String, String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
    let mut bytes = [0u8; 26];
    getrandom::fill(&mut bytes).map_err(|problem| format!("the system has no randomness: {problem}"))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_differ() {
        let (one, other) = (super::unguessable().expect("random"), super::unguessable().expect("random"));
        assert_eq!(one.len(), 26);
        assert_ne!(one, other);
    }
}
