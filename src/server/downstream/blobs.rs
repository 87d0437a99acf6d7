//! Non-text results of tools (images, audio, files), kept for a while under a reference.
//!
//! A program sees the type, the size and the reference, which can be part of its answer; the client reads the bytes by
//! the reference, as an MCP resource. A reference cannot be guessed, and is valid only for the principal whose program
//! called the tool.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::server::system::random;

/// Maximum total size of all blobs, in bytes; beyond it the oldest of the principal that has the most are evicted.
const MOST: usize = 64 << 20;

/// The overhead charged for each blob, in bytes, so that empty ones are bounded too.
const EACH: usize = 256;

/// The prefix of every reference.
const PREFIX: &str = "lispbox://blob/";

/// The blobs of one lispbox.
#[derive(Debug, Default)]
pub(in crate::server) struct Blobs {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The blobs of each principal that has some.
    queues: HashMap<String, Queue>,
    bytes: usize,
}

/// The blobs of one principal, the oldest first.
#[derive(Debug, Default)]
struct Queue {
    blobs: VecDeque<Blob>,
    bytes: usize,
}

/// A view of the blobs of one principal.
#[derive(Clone)]
pub(in crate::server) struct Owned {
    blobs: Arc<Blobs>,
    principal: String,
}

/// A non-text result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Blob {
    /// The reference to it.
    pub(in crate::server) reference: String,
    /// The media type that the server reported.
    pub(in crate::server) mime_type: Option<String>,
    /// The bytes, in base64.
    pub(in crate::server) data: String,
}

impl Blob {
    fn bytes(&self) -> usize {
        EACH + self.data.len() + self.mime_type.as_ref().map_or(0, String::len)
    }
}

impl Blobs {
    /// Returns the view of one principal.
    pub(in crate::server) fn of(self: &Arc<Self>, principal: &str) -> Owned {
        Owned { blobs: Arc::clone(self), principal: principal.to_owned() }
    }
}

impl Kept {
    /// Evicts the oldest blob of the principal that has the most; false if there is none.
    fn evict(&mut self) -> bool {
        let most = self.queues.iter().max_by_key(|(_, queue)| queue.bytes).map(|(principal, _)| principal.clone());
        let Some(principal) = most else { return false };
        let Some(queue) = self.queues.get_mut(&principal) else { return false };
        let bytes = queue.blobs.pop_front().map_or(0, |blob| blob.bytes());
        queue.bytes -= bytes;
        self.bytes -= bytes;
        if queue.blobs.is_empty() {
            self.queues.remove(&principal);
        }
        true
    }
}

impl Owned {
    /// Stores a blob and returns its reference.
    pub(in crate::server) fn keep(&self, mime_type: Option<String>, data: String) -> String {
        let reference = format!("{PREFIX}{:016x}{:016x}", random::bits(), random::bits());
        let blob = Blob { reference: reference.clone(), mime_type, data };
        let bytes = blob.bytes();
        let mut kept = self.blobs.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = kept.queues.entry(self.principal.clone()).or_default();
        queue.bytes += bytes;
        queue.blobs.push_back(blob);
        kept.bytes += bytes;
        while kept.bytes > MOST && kept.evict() {}
        reference
    }

    /// Returns the blob of a reference, if it is still stored and belongs to the principal.
    pub(in crate::server) fn find(&self, reference: &str) -> Option<Blob> {
        let kept = self.blobs.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.queues.get(&self.principal)?.blobs.iter().find(|blob| blob.reference == reference).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let blobs = Arc::<Blobs>::default();
        let blobs = blobs.of("ann");
        let references: Vec<String> = (0..3).map(|_| blobs.keep(None, "A".repeat(MOST / 3))).collect();
        let kept: Vec<bool> = references.iter().map(|reference| blobs.find(reference).is_some()).collect();
        assert_eq!(kept, [false, true, true]);
        assert_eq!(blobs.find(&references[2]).map(|blob| blob.data.len()), Some(MOST / 3));
    }

    #[test]
    fn empty_blobs_are_bounded_too() {
        let blobs = Arc::<Blobs>::default();
        let owned = blobs.of("ann");
        let first = owned.keep(None, String::new());
        (0..MOST / EACH).for_each(|_| drop(owned.keep(None, String::new())));
        assert_eq!(owned.find(&first), None);
        assert!(blobs.kept.lock().expect("not poisoned").bytes <= MOST);
    }

    #[test]
    fn a_blob_is_its_principals_and_goes_for_no_one_who_has_more() {
        let blobs = Arc::<Blobs>::default();
        let (ann, bob) = (blobs.of("ann"), blobs.of("bob"));
        let kept = ann.keep(None, "A".repeat(MOST / 5));
        let others: Vec<String> = (0..8).map(|_| bob.keep(None, "A".repeat(MOST / 5))).collect();
        assert!(ann.find(&kept).is_some());
        assert_eq!(others.iter().filter(|reference| bob.find(reference).is_some()).count(), 3);
        assert_eq!((bob.find(&kept), ann.find(&others[7])), (None, None));
    }
}
