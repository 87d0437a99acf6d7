//! The session handles that a connection has used or received.
//!
//! A handle grants access to its session. Several clients may be one principal (without tokens all are), so a handle is
//! repeated only to a connection that already knows it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of handles remembered for a connection; the oldest are forgotten.
const MOST: usize = 256;

/// The handles that a connection knows.
#[derive(Default)]
pub(in crate::server) struct Handles(Mutex<VecDeque<String>>);

impl Handles {
    /// Records that the connection knows this handle.
    pub(in crate::server) fn add(&self, handle: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.iter().any(|other| other == handle) {
            known.truncate(MOST - 1);
            known.push_front(handle.to_owned());
        }
    }

    /// Returns whether the connection knows this handle.
    pub(in crate::server) fn has(&self, handle: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known| known == handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_handles_are_forgotten() {
        let handles = Handles::default();
        (0..=MOST).for_each(|number| handles.add(&number.to_string()));
        handles.add("5");
        assert!(!handles.has("0") && handles.has("1") && handles.has("5"));
    }
}
