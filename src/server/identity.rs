//! The principal of a request and the identity of an evaluation, as consent, audit and logs report them.

use std::io;

use serde::Serialize;
use sha2::{Digest, Sha256};
use tracing::Span;

/// The principal of all requests where no token is needed: at a terminal, on standard input and output, and over HTTP
/// without tokens.
pub(in crate::server) const LOCAL: &str = "local";

/// The principal of an HTTP request, as a request extension for handlers.
#[derive(Clone)]
pub(in crate::server) struct Principal(pub(in crate::server) String);

/// An evaluation and its principal.
#[derive(Clone, Debug)]
pub(in crate::server) struct Identity {
    /// Its ordinal in this process.
    pub(in crate::server) evaluation: u64,
    /// Its principal.
    pub(in crate::server) principal: String,
    /// The session that it runs in, as a prefix of the hash of its handle.
    pub(in crate::server) session: Option<String>,
    /// The SHA-256 of the program's text, in hexadecimal; empty for a query.
    pub(in crate::server) program: String,
    /// Its span, the parent of the spans of its calls.
    pub(in crate::server) span: Span,
}

impl Default for Identity {
    /// An identity without a principal.
    fn default() -> Self {
        Identity { evaluation: 0, principal: String::new(), session: None, program: String::new(), span: Span::none() }
    }
}

/// Returns the SHA-256 of a text, in hexadecimal.
pub(in crate::server) fn sha256(text: &[u8]) -> String {
    hexadecimal(&Sha256::digest(text))
}

/// Returns the SHA-256 of a value as JSON text, in hexadecimal, without holding the text.
pub(in crate::server) fn sha256_of_json(value: &impl Serialize) -> serde_json::Result<String> {
    struct Hashing(Sha256);

    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = Hashing(Sha256::new());
    serde_json::to_writer(&mut hashing, value)?;
    Ok(hexadecimal(&hashing.0.finalize()))
}

/// Returns bytes in hexadecimal.
pub(in crate::server) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
