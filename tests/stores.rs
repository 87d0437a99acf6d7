//! What every store of sessions does.
#![cfg(feature = "store")]

use std::time::Duration;

use lispbox::store::{Key, Problem, Sqlite, Store};

fn key(principal: &str, handle: &str) -> Key {
    Key { principal: principal.to_owned(), handle: handle.to_owned() }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn handles_differ() {
    let (one, other) = (lispbox::store::handle().expect("random"), lispbox::store::handle().expect("random"));
    assert_eq!(one.len(), 26);
    assert_ne!(one, other);
}

/// Runs a check on a new store of each kind, of which it may open several.
fn on_each_store(check: impl Fn(&dyn Fn() -> Box<dyn Store>)) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sessions.db");
    check(&|| Box::new(Sqlite::open(&file).expect("it opens")));
}

#[test]
fn what_was_written_is_read_until_somebody_writes_again() {
    on_each_store(|open| {
        let (store, other) = (open(), open());
        let session = key("ann", "one");
        assert_eq!(store.read(&session, 0), Err(Problem::Unknown));
        assert_eq!(store.write(&session, 0, "first \u{1F600}", &[]), Ok(1));
        assert_eq!(store.write(&session, 0, "again", &[]), Err(Problem::Changed), "it is there already");
        let read = other.read(&session, 0).expect("it is there").expect("it is new");
        assert_eq!((read.version, read.text.as_str()), (1, "first \u{1F600}"));
        assert_eq!(other.read(&session, 1), Ok(None));
        assert_eq!(other.write(&session, 1, "second", &[]), Ok(2));
        assert_eq!(store.write(&session, 1, "lost?", &[]), Err(Problem::Changed), "no update is lost");
        assert_eq!(store.read(&session, 1).expect("there").expect("new").text, "second");
    });
}

#[test]
fn a_session_is_its_principals_alone() {
    on_each_store(|open| {
        let store = open();
        store.write(&key("ann", "one"), 0, "text", &names(&["x"])).expect("written");
        let foreign = key("bob", "one");
        assert_eq!(store.read(&foreign, 0), Err(Problem::Unknown));
        assert_eq!(store.lease(&foreign, "holder"), Err(Problem::Unknown));
        assert_eq!(store.write(&foreign, 1, "mine", &[]), Err(Problem::Unknown));
        assert_eq!(store.write(&foreign, 0, "mine", &[]), Err(Problem::Changed), "a handle is taken");
        assert_eq!(store.remove(&foreign), Err(Problem::Unknown));
        assert_eq!(store.definer("bob", "x", ""), Ok(None));
    });
}

#[test]
fn one_holds_the_lease() {
    on_each_store(|open| {
        let (store, other) = (open(), open());
        let session = key("ann", "one");
        assert_eq!(store.lease(&session, "a"), Err(Problem::Unknown));
        store.write(&session, 0, "text", &[]).expect("written");
        assert_eq!(store.lease(&session, "a"), Ok(()));
        assert_eq!(other.lease(&session, "b"), Err(Problem::Leased));
        assert_eq!(store.lease(&session, "a"), Err(Problem::Leased), "a lease is taken once");
        assert_eq!(other.remove(&session), Err(Problem::Leased));
        assert!(other.list().expect("a list")[0].is_leased);
        assert_eq!(store.renew(&session, "a"), Ok(()));
        assert_eq!(other.renew(&session, "b"), Err(Problem::Leased));
        assert_eq!(other.release(&session, "b"), Ok(()), "what is not held is given back by nobody");
        assert_eq!(other.lease(&session, "b"), Err(Problem::Leased));
        assert_eq!(store.release(&session, "a"), Ok(()));
        assert_eq!(other.lease(&session, "b"), Ok(()));
    });
}

#[test]
fn sessions_are_listed_removed_and_expire() {
    on_each_store(|open| {
        let store = open();
        let (one, two) = (key("ann", "one"), key("bob", "two"));
        store.write(&one, 0, "(define x 1)", &names(&["x", "y"])).expect("written");
        store.write(&two, 0, "ü", &[]).expect("written");
        let list = store.list().expect("a list");
        assert_eq!(list.len(), 2);
        let listed = list.iter().find(|session| session.key == one).expect("it is listed");
        assert_eq!(
            (listed.version, listed.bytes, &listed.names[..], listed.is_leased),
            (1, 12, &names(&["x", "y"])[..], false)
        );
        assert_eq!(store.remove(&two), Ok(()));
        assert_eq!(store.read(&two, 0), Err(Problem::Unknown));
        assert_eq!(store.expire(Duration::from_secs(60)), Ok(0));
        store.lease(&one, "a").expect("it is free");
        let deadline = std::time::Instant::now() + Duration::from_secs(1);
        while std::time::Instant::now() < deadline && store.expire(Duration::ZERO) == Ok(0) {
            assert!(store.list().expect("a list")[0].is_leased, "one that is used does not expire");
            if std::time::Instant::now() + Duration::from_millis(900) > deadline {
                store.release(&one, "a").expect("given back");
            }
        }
        assert_eq!(store.read(&one, 0), Err(Problem::Expired));
        assert_eq!(store.lease(&one, "a"), Err(Problem::Expired));
        assert_eq!(store.list(), Ok(Vec::new()));
    });
}

#[test]
fn the_latest_session_that_defines_a_name_is_found() {
    on_each_store(|open| {
        let store = open();
        for (handle, defined) in [("one", &["x", "a/b"][..]), ("two", &["x"]), ("three", &["xx", "%"])] {
            store.write(&key("ann", handle), 0, "", &names(defined)).expect("written");
        }
        let found = |name: &str, except: &str| store.definer("ann", name, except).expect("an answer");
        assert_eq!(found("a/b", ""), Some("one".to_owned()));
        assert_eq!(found("x", "two"), Some("one".to_owned()));
        assert_eq!(found("y", ""), None);
        assert_eq!(found("_x", ""), None, "a name is no pattern");
    });
}
