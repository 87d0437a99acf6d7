//! Which sessions are kept, and who finds them.

use super::*;
use crate::lang::Engine;

fn entry(caller: &str) -> Arc<Entry> {
    let engine = Engine::builder().unlimited_memory().build().expect("an engine without a memory limit");
    Entry::new(caller, Box::new(engine.session())).expect("a handle")
}

fn sessions(count: usize) -> Sessions {
    Sessions::new(SessionBounds { count, ..SessionBounds::default() })
}

#[test]
fn only_its_caller_finds_a_session() {
    let (sessions, entry) = (sessions(10), entry("one"));
    assert!(sessions.find("one", &entry.handle).is_none(), "it is not kept yet");
    sessions.keep(&entry);
    assert!(sessions.find("one", &entry.handle).is_some());
    assert!(sessions.find("two", &entry.handle).is_none());
    sessions.discard(&entry.handle);
    assert!(sessions.find("one", &entry.handle).is_none());
}

#[test]
fn the_one_longest_unused_goes_first() {
    let sessions = sessions(2);
    let entries: Vec<_> = (0..3).map(|_| entry("one")).collect();
    entries.iter().for_each(|entry| sessions.keep(entry));
    let found: Vec<bool> = entries.iter().map(|entry| sessions.find("one", &entry.handle).is_some()).collect();
    assert_eq!(found, [false, true, true]);
}

#[test]
fn a_session_that_was_not_used_for_long_is_gone() {
    let sessions = Sessions::new(SessionBounds { idle: Duration::ZERO, ..SessionBounds::default() });
    let entry = entry("one");
    sessions.keep(&entry);
    assert!(sessions.find("one", &entry.handle).is_none());
}

#[test]
fn large_sessions_make_room() {
    let sessions = Sessions::new(SessionBounds { bytes: 100, ..SessionBounds::default() });
    let (old, new) = (entry("one"), entry("one"));
    old.facts().bytes = 80;
    new.facts().bytes = 50;
    sessions.keep(&old);
    sessions.keep(&new);
    assert!(sessions.find("one", &old.handle).is_none());
    assert!(sessions.find("one", &new.handle).is_some());
}

#[test]
fn the_definer_of_a_name_is_found() {
    let sessions = sessions(10);
    let (one, two) = (entry("one"), entry("one"));
    one.facts().names.insert("prices".into());
    sessions.keep(&one);
    sessions.keep(&two);
    assert_eq!(sessions.definer("one", "prices", &two.handle), Some(one.handle.clone()));
    assert_eq!(sessions.definer("one", "prices", &one.handle), None);
    assert_eq!(sessions.definer("two", "prices", ""), None);
}
