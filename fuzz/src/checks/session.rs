//! Snapshots: any text is rejected or decoded to a session that can be encoded again, and the session of any program
//! decodes to the same text.

use super::super::{evaluate, moved, session, small_limits};

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut session = session();
    if text.starts_with("(lispbox-session") {
        if session.decode(&text).is_err() {
            assert_eq!(session.bindings(), 0, "an error leaves the session as it was");
            return;
        }
        // The text may have a non-canonical form; encoding it again yields the canonical one.
        drop(moved(&mut session));
        for name in session.names() {
            evaluate(&mut session, &name, None, small_limits());
        }
    } else {
        evaluate(&mut session, &text, None, small_limits());
        drop(moved(&mut session));
    }
}
