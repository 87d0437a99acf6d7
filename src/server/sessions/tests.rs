//! Tests of which sessions are kept, and which callers find them.

use crate::lang::Engine;

use super::*;

fn entry(caller: &str) -> Arc<Entry> {
    let engine = Engine::builder().unlimited_memory().build().expect("an engine without a memory limit");
    Entry::new(caller, Box::new(engine.session())).expect("a handle")
}

fn bounded(bounds: SessionBounds) -> Sessions {
    Sessions::new(bounds, Arc::default())
}

/// Returns whether a session is found.
fn is_there(sessions: &Sessions, caller: &str, handle: &str) -> bool {
    matches!(sessions.find(caller, handle), Ok(Some(_)))
}

fn ended(sessions: &Sessions, entry: &Entry) -> Option<Ended> {
    sessions.find(&entry.caller, &entry.handle).err()
}

fn sessions(count: usize) -> Sessions {
    bounded(SessionBounds { count, ..SessionBounds::default() })
}

#[test]
fn only_its_caller_finds_a_session() {
    let (sessions, entry) = (sessions(10), entry("one"));
    assert!(!is_there(&sessions, "one", &entry.handle), "it is not kept yet");
    sessions.keep(&entry);
    assert!(is_there(&sessions, "one", &entry.handle));
    assert!(!is_there(&sessions, "two", &entry.handle));
    sessions.discard(&entry.handle);
    assert!(!is_there(&sessions, "one", &entry.handle));
}

#[test]
fn the_one_longest_unused_goes_first() {
    let sessions = sessions(2);
    let entries: Vec<_> = (0..3).map(|_| entry("one")).collect();
    entries.iter().for_each(|entry| sessions.keep(entry));
    let found: Vec<bool> = entries.iter().map(|entry| is_there(&sessions, "one", &entry.handle)).collect();
    assert_eq!(found, [false, true, true]);
    assert_eq!(ended(&sessions, &entries[0]), Some(Ended::Crowded));
}

#[test]
fn a_session_that_was_not_used_for_long_is_gone() {
    let sessions = bounded(SessionBounds { idle: Duration::ZERO, ..SessionBounds::default() });
    let entry = entry("one");
    sessions.keep(&entry);
    assert!(!is_there(&sessions, "one", &entry.handle));
    assert_eq!(ended(&sessions, &entry), Some(Ended::Unused), "it is remembered");
    assert!(matches!(sessions.find("two", &entry.handle), Ok(None)), "nobody hears of another's");
    assert_eq!(sessions.refused(Ended::Unused).message, "the session has expired: it was not used for 0s");
}

#[test]
fn a_session_that_was_made_long_ago_ends_though_it_is_used() {
    let sessions = bounded(SessionBounds { lifetime: Duration::ZERO, ..SessionBounds::default() });
    let (entry, engine) = (entry("one"), Engine::builder().unlimited_memory().build().expect("an engine"));
    sessions.keep(&entry);
    sessions.keep(&entry);
    assert!(sessions.is_old(&entry));
    assert_eq!(ended(&sessions, &entry), Some(Ended::Old));
    let taken_up = Entry::in_store("one", "handle", Box::new(engine.session()));
    assert!(!sessions.is_old(&taken_up), "the store knows when it was made");
}

#[test]
fn nobody_loses_a_session_to_one_who_has_more() {
    let sessions = sessions(4);
    let (mine, others): (_, Vec<_>) = (entry("one"), (0..6).map(|_| entry("two")).collect());
    sessions.keep(&mine);
    others.iter().for_each(|entry| sessions.keep(entry));
    assert!(is_there(&sessions, "one", &mine.handle), "though it is the one longest unused of all");
    let found: Vec<bool> = others.iter().map(|entry| is_there(&sessions, "two", &entry.handle)).collect();
    assert_eq!(found, [false, false, false, true, true, true]);
    let more: Vec<_> = (0..3).map(|_| entry("one")).collect();
    more.iter().for_each(|entry| sessions.keep(entry));
    let found = |entries: &[Arc<Entry>]| {
        entries.iter().filter(|entry| is_there(&sessions, &entry.caller, &entry.handle)).count()
    };
    assert_eq!((found(&more), found(&others)), (2, 2), "each has a half in the end");
}

#[test]
fn a_principal_has_as_many_sessions_as_it_is_allowed() {
    let mut allowances = Allowances::default();
    allowances.insert("one", crate::server::Allowance { sessions: Some(2), ..Default::default() });
    let sessions = Sessions::new(SessionBounds::default(), Arc::new(allowances));
    let (mine, others): (Vec<_>, Vec<_>) = (0..3).map(|_| (entry("one"), entry("two"))).unzip();
    mine.iter().chain(&others).for_each(|entry| sessions.keep(entry));
    assert_eq!(ended(&sessions, &mine[0]), Some(Ended::Crowded));
    assert!(mine[1..].iter().chain(&others).all(|entry| is_there(&sessions, &entry.caller, &entry.handle)));
}

#[test]
fn a_bounded_number_of_handles_is_remembered() {
    let sessions = sessions(1);
    let entries: Vec<_> = (0..REMEMBERED + 2).map(|_| entry("one")).collect();
    entries.iter().for_each(|entry| sessions.keep(entry));
    assert_eq!(ended(&sessions, &entries[0]), None);
    assert_eq!(ended(&sessions, &entries[1]), Some(Ended::Crowded));
}

#[test]
fn large_sessions_make_room() {
    let sessions = bounded(SessionBounds { bytes: 100, ..SessionBounds::default() });
    let (old, new) = (entry("one"), entry("one"));
    old.facts().bytes = 80;
    new.facts().bytes = 50;
    sessions.keep(&old);
    sessions.keep(&new);
    assert!(!is_there(&sessions, "one", &old.handle));
    assert!(is_there(&sessions, "one", &new.handle));
}

#[test]
fn the_definer_of_a_name_is_found() {
    let sessions = sessions(10);
    let (one, two) = (entry("one"), entry("one"));
    one.facts().names.insert("prices".into());
    sessions.keep(&one);
    sessions.keep(&two);
    assert_eq!(sessions.definer("one", "prices", |handle| handle != two.handle), Some(one.handle.clone()));
    assert_eq!(sessions.definer("one", "prices", |handle| handle != one.handle), None);
    assert_eq!(sessions.definer("two", "prices", |_| true), None);
}
