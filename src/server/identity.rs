//! Which evaluation it is: what consent, audit and logs say of it.

use sha2::{Digest, Sha256};
use tracing::Span;

/// One evaluation, and whose it is.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// Its ordinal in this process.
    pub(super) evaluation: u64,
    /// Whose it is.
    pub(super) principal: String,
    /// The session that it runs in, by the beginning of the hash of its handle.
    pub(super) session: Option<String>,
    /// The SHA-256 of the program's text, in hexadecimal; empty for a question.
    pub(super) program: String,
    /// Its span, in which its calls are.
    pub(super) span: Span,
}

impl Default for Identity {
    /// Of nobody in particular.
    fn default() -> Self {
        Identity { evaluation: 0, principal: String::new(), session: None, program: String::new(), span: Span::none() }
    }
}

/// The SHA-256 of a text, in hexadecimal.
pub(super) fn sha256(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
