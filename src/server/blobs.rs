//! What tools answer that is no text (images, audio, files): kept for a while under a reference.
//!
//! A program sees what it is and how large, and the reference, which can be part of its answer; the client reads the
//! bytes by it, as an MCP resource. The reference cannot be guessed: who has it may read.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::random;

/// What is kept in all, in bytes of base64; beyond it the oldest go.
const MOST: usize = 64 << 20;

/// The beginning of every reference.
const PREFIX: &str = "lispbox://blob/";

/// The blobs of one lispbox.
#[derive(Debug, Default)]
pub(super) struct Blobs {
    kept: Mutex<VecDeque<Blob>>,
}

/// Something that is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    /// What refers to it.
    pub(super) reference: String,
    /// What the server says that it is.
    pub(super) mime_type: Option<String>,
    /// Its bytes, in base64.
    pub(super) data: String,
}

impl Blobs {
    /// Keeps a blob; gives the reference to it.
    pub(super) fn keep(&self, mime_type: Option<String>, data: String) -> String {
        let reference = format!("{PREFIX}{:016x}{:016x}", random::bits(), random::bits());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Blob { reference: reference.clone(), mime_type, data });
        let mut bytes: usize = kept.iter().map(|blob| blob.data.len()).sum();
        while bytes > MOST
            && let Some(oldest) = kept.pop_front()
        {
            bytes -= oldest.data.len();
        }
        reference
    }

    /// The blob of a reference, while it is kept.
    pub(super) fn find(&self, reference: &str) -> Option<Blob> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|blob| blob.reference == reference).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let blobs = Blobs::default();
        let references: Vec<String> = (0..3).map(|_| blobs.keep(None, "A".repeat(MOST / 2))).collect();
        let kept: Vec<bool> = references.iter().map(|reference| blobs.find(reference).is_some()).collect();
        assert_eq!(kept, [false, true, true]);
        assert_eq!(blobs.find(&references[2]).map(|blob| blob.data.len()), Some(MOST / 2));
    }
}
