//! The identity of an evaluation, as consent, audit and logs report it.

use sha2::{Digest, Sha256};
use tracing::Span;

/// An evaluation and its principal.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// Its ordinal in this process.
    pub(super) evaluation: u64,
    /// Its principal.
    pub(super) principal: String,
    /// The session that it runs in, as a prefix of the hash of its handle.
    pub(super) session: Option<String>,
    /// The SHA-256 of the program's text, in hexadecimal; empty for a query.
    pub(super) program: String,
    /// Its span, the parent of the spans of its calls.
    pub(super) span: Span,
}

impl Default for Identity {
    /// An identity without a principal.
    fn default() -> Self {
        Identity { evaluation: 0, principal: String::new(), session: None, program: String::new(), span: Span::none() }
    }
}

/// Returns the SHA-256 of a text, in hexadecimal.
pub(super) fn sha256(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
