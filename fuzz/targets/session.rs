//! Snapshots: any text is an error or a session that can be written again; a program's session is read as it was
//! written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lispbox_fuzz::{evaluate, host, moved, session, small_limits};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut session = session();
    if text.starts_with("(lispbox-session") {
        if session.decode(&text, host()).is_err() {
            assert_eq!(session.bindings(), 0, "an error leaves the session as it was");
            return;
        }
        // What the text says in a way of its own is written in ours.
        drop(moved(&mut session));
        for name in session.names() {
            evaluate(&mut session, &name, None, small_limits());
        }
    } else {
        evaluate(&mut session, &text, None, small_limits());
        drop(moved(&mut session));
    }
});
