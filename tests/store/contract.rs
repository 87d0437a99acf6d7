//! The contract of a session store, checked against every kind of store.

use std::sync::Arc;
use std::time::Duration;

use crate::databases::{Database, Kind};
use crate::relay::Relay;
use lispbox::store::{Key, LEASE, Lease, Problem, Store, open};

fn key(principal: &str, handle: &str) -> Key {
    Key { principal: principal.to_owned(), handle: handle.to_owned() }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

/// Creates the session if `known` is 0. Otherwise writes it as the successor of version `known`, under a lease that is
/// taken and released for this write.
fn put(store: &dyn Store, session: &Key, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
    if known == 0 {
        return store.create(session, text, names).map(|()| 1);
    }
    let lease = store.lease(session, &lispbox::store::handle().expect("random"))?;
    let written = store.write(session, &lease, known, text, names);
    store.release(session, &lease)?;
    written
}

#[test]
fn handles_differ() {
    let (one, other) = (lispbox::store::handle().expect("random"), lispbox::store::handle().expect("random"));
    assert_eq!(one.len(), 26);
    assert_ne!(one, other);
}

/// Runs a check against a new database of each kind. The check may open several stores on it.
fn on_each_store(check: impl Fn(&dyn Fn() -> Arc<dyn Store>)) {
    crate::databases::on_each_store(|url| check(&|| open(url).expect("it opens")));
}

#[test]
fn what_was_written_is_read_until_somebody_writes_again() {
    on_each_store(|open| {
        let (store, other) = (open(), open());
        let session = key("ann", "one");
        assert_eq!(store.read(&session, 0), Err(Problem::Unknown));
        assert_eq!(put(&*store, &session, 0, "first \u{1F600}", &[]), Ok(1));
        assert_eq!(put(&*store, &session, 0, "again", &[]), Err(Problem::Changed), "it is there already");
        let read = other.read(&session, 0).expect("it is there").expect("it is new");
        assert_eq!((read.version, read.text.as_str()), (1, "first \u{1F600}"));
        assert_eq!(other.read(&session, 1), Ok(None));
        assert_eq!(put(&*other, &session, 1, "second", &[]), Ok(2));
        assert_eq!(put(&*store, &session, 1, "lost?", &[]), Err(Problem::Changed), "no update is lost");
        assert_eq!(store.read(&session, 1).expect("there").expect("new").text, "second");
    });
}

#[test]
fn a_session_is_its_principals_alone() {
    on_each_store(|open| {
        let store = open();
        put(&*store, &key("ann", "one"), 0, "text", &names(&["x"])).expect("written");
        let foreign = key("bob", "one");
        assert_eq!(store.read(&foreign, 0), Err(Problem::Unknown));
        assert_eq!(store.lease(&foreign, "holder"), Err(Problem::Unknown));
        assert_eq!(put(&*store, &foreign, 1, "mine", &[]), Err(Problem::Unknown));
        assert_eq!(put(&*store, &foreign, 0, "mine", &[]), Err(Problem::Changed), "a handle is taken");
        assert_eq!(store.remove(&foreign, None), Err(Problem::Unknown));
        assert_eq!(store.definer("bob", "x", ""), Ok(None));
    });
}

#[test]
fn one_holds_the_lease() {
    on_each_store(|open| {
        let (store, other) = (open(), open());
        let session = key("ann", "one");
        assert_eq!(store.lease(&session, "a"), Err(Problem::Unknown));
        store.create(&session, "text", &[]).expect("made");
        let lease = store.lease(&session, "a").expect("it is free");
        assert_eq!(other.lease(&session, "b"), Err(Problem::Leased));
        assert_eq!(store.lease(&session, "a"), Err(Problem::Leased), "a lease is taken once");
        assert_eq!(other.remove(&session, None), Err(Problem::Leased));
        assert!(other.list().expect("a list")[0].is_leased);
        assert_eq!(store.renew(&session, &lease), Ok(()));
        let foreign = [
            Lease { holder: "b".to_owned(), ..lease.clone() },
            Lease { token: lease.token + 1, ..lease.clone() },
            Lease { token: lease.token - 1, ..lease.clone() },
        ];
        for foreign in &foreign {
            assert_eq!(other.renew(&session, foreign), Err(Problem::Lost), "{foreign:?}");
            assert_eq!(other.write(&session, foreign, 1, "mine", &[]), Err(Problem::Lost), "{foreign:?}");
            assert_eq!(other.remove(&session, Some(foreign)), Err(Problem::Lost), "{foreign:?}");
            assert_eq!(other.release(&session, foreign), Ok(()), "what is not held is given back by nobody");
        }
        assert_eq!(other.lease(&session, "b"), Err(Problem::Leased));
        assert_eq!(store.release(&session, &lease), Ok(()));
        assert_eq!(store.renew(&session, &lease), Err(Problem::Lost), "it was given back");
        let next = other.lease(&session, "b").expect("it is free");
        assert!(next.token > lease.token, "{next:?} after {lease:?}");
    });
}

#[test]
fn a_write_proves_its_lease() {
    on_each_store(|open| {
        let (stalled, other) = (open(), open());
        let session = key("ann", "one");
        stalled.create(&session, "first", &[]).expect("made");
        let old = stalled.lease(&session, "a").expect("it is free");
        // Both holders know the same version: only the fencing token tells their leases apart.
        stalled.release(&session, &old).expect("given back, as if it had run out");
        let new = other.lease(&session, "b").expect("it is free");
        for text in ["stalled", &rows(10_000)] {
            assert_eq!(stalled.write(&session, &old, 1, text, &[]), Err(Problem::Lost));
            assert_eq!(stalled.remove(&session, Some(&old)), Err(Problem::Lost));
        }
        assert_eq!(other.write(&session, &new, 1, "rightful", &[]), Ok(2));
        assert_eq!(stalled.write(&session, &old, 1, "stalled", &[]), Err(Problem::Lost));
        assert_eq!(stalled.write(&session, &old, 2, "stalled", &[]), Err(Problem::Lost));
        assert_eq!(other.write(&session, &new, 1, "again", &[]), Err(Problem::Changed));
        assert_eq!(other.read(&session, 0).expect("there").expect("new").text, "rightful");
        // A session that is removed and created again reuses earlier fencing tokens, but no holder name: the old lease
        // stays invalid.
        assert_eq!(other.remove(&session, Some(&new)), Ok(()));
        assert_eq!(other.write(&session, &new, 2, "late", &[]), Err(Problem::Unknown));
        other.create(&session, "anew", &[]).expect("made");
        other.lease(&session, "c").expect("it is free");
        assert_eq!(stalled.write(&session, &old, 1, "stalled", &[]), Err(Problem::Lost));
        assert_eq!(stalled.create(&session, "stalled", &[]), Err(Problem::Changed));
        assert_eq!(other.read(&session, 0).expect("there").expect("new").text, "anew");
    });
}

#[test]
fn sessions_are_listed_removed_and_expire() {
    on_each_store(|open| {
        let store = open();
        let (one, two) = (key("ann", "one"), key("bob", "two"));
        store.create(&one, "(define x 1)", &names(&["x", "y"])).expect("written");
        store.create(&two, "ü", &[]).expect("written");
        let list = store.list().expect("a list");
        assert_eq!(list.len(), 2);
        let listed = list.iter().find(|session| session.key == one).expect("it is listed");
        assert_eq!(
            (listed.version, listed.bytes, &listed.names[..], listed.is_leased),
            (1, 12, &names(&["x", "y"])[..], false)
        );
        assert_eq!(store.remove(&two, None), Ok(()));
        assert_eq!(store.read(&two, 0), Err(Problem::Unknown));
        assert_eq!(store.expire(Duration::from_secs(60)), Ok(0));
        let lease = store.lease(&one, "a").expect("it is free");
        let deadline = std::time::Instant::now() + Duration::from_secs(1);
        while std::time::Instant::now() < deadline && store.expire(Duration::ZERO) == Ok(0) {
            assert!(store.list().expect("a list")[0].is_leased, "one that is used does not expire");
            if std::time::Instant::now() + Duration::from_millis(900) > deadline {
                store.release(&one, &lease).expect("given back");
            }
        }
        assert_eq!(store.read(&one, 0), Err(Problem::Expired));
        assert_eq!(store.lease(&one, "a"), Err(Problem::Expired));
        assert_eq!(store.list(), Ok(Vec::new()));
    });
}

#[test]
fn sessions_that_were_made_long_ago_expire_though_they_are_used() {
    on_each_store(|open| {
        let (store, sessions) = (open(), [key("ann", "one"), key("ann", "two"), key("bob", "three")]);
        for session in &sessions {
            put(&*store, session, 0, "text", &[]).expect("written");
        }
        assert_eq!(store.expire_old(Duration::from_secs(60)), Ok(0));
        let lease = store.lease(&sessions[1], "a").expect("it is free");
        let begun = std::time::Instant::now();
        let mut expired = 0;
        while expired < 2 {
            assert!(begun.elapsed() < Duration::from_secs(5), "{expired} have expired");
            // A leased session does not expire. The others do, although they have just been written.
            for session in [&sessions[0], &sessions[2]] {
                let _ = put(&*store, session, 1, "text", &[]);
            }
            expired += store.expire_old(Duration::from_millis(300)).expect("they expire");
        }
        assert_eq!(store.read(&sessions[0], 0), Err(Problem::Expired));
        assert_eq!(store.lease(&sessions[2], "b"), Err(Problem::Expired));
        assert_eq!(store.list().expect("a list").len(), 1);
        store.release(&sessions[1], &lease).expect("given back");
        assert_eq!(store.expire_old(Duration::from_millis(300)), Ok(1));
    });
}

#[test]
fn permanent_records_never_expire() {
    on_each_store(|open| {
        let store = open();
        let (pins, session) = (key("", "pins"), key("ann", "one"));
        store.create(&pins, "{}", &names(&["lispbox/permanent/pins"])).expect("written");
        store.create(&session, "text", &names(&["permanent", "lispbox"])).expect("written");
        let begun = std::time::Instant::now();
        while store.read(&session, 0) != Err(Problem::Expired) {
            assert!(begun.elapsed() < Duration::from_secs(5), "it does not expire");
            store.expire(Duration::ZERO).expect("they expire");
            store.expire_old(Duration::ZERO).expect("they expire");
        }
        assert_eq!(store.read(&pins, 0).expect("it is kept").map(|read| read.text).as_deref(), Some("{}"));
    });
}

#[test]
fn the_sessions_of_a_principal_are_counted() {
    on_each_store(|open| {
        let store = open();
        assert_eq!((store.has_many("ann", 0), store.has_many("ann", 1)), (Ok(true), Ok(false)));
        let (one, two) = (key("ann", "one"), key("ann", "two"));
        for session in [&one, &two, &key("bob", "three")] {
            put(&*store, session, 0, "text", &[]).expect("written");
        }
        assert_eq!((store.has_many("ann", 2), store.has_many("ann", 3)), (Ok(true), Ok(false)));
        assert_eq!(store.has_many("ann", u64::MAX), Ok(false));
        store.remove(&one, None).expect("it is free");
        assert_eq!((store.has_many("ann", 1), store.has_many("ann", 2)), (Ok(true), Ok(false)));
        let begun = std::time::Instant::now();
        while store.has_many("ann", 1) == Ok(true) {
            assert!(begun.elapsed() < Duration::from_secs(5), "what has expired does not count");
            store.expire_old(Duration::ZERO).expect("they expire");
        }
    });
}

#[test]
fn the_latest_session_that_defines_a_name_is_found() {
    on_each_store(|open| {
        let store = open();
        for (handle, defined) in [("one", &["x", "a/b"][..]), ("two", &["x"]), ("three", &["xx", "%"])] {
            put(&*store, &key("ann", handle), 0, "", &names(defined)).expect("written");
        }
        let found = |name: &str, except: &str| store.definer("ann", name, except).expect("an answer");
        assert_eq!(found("a/b", ""), Some("one".to_owned()));
        assert_eq!(found("x", "two"), Some("one".to_owned()));
        assert_eq!(found("y", ""), None);
        assert_eq!(found("_x", ""), None, "a name is no pattern");
    });
}

#[test]
fn any_text_comes_back_as_it_was() {
    on_each_store(|open| {
        let store = open();
        let texts = ["", "\0\r\n\u{10FFFF}'\"\\", &"\u{20AC}-".repeat(2_000_000)];
        let session = key("ann \u{1F600}", "one");
        for (known, text) in (0..).zip(texts) {
            assert_eq!(put(&*store, &session, known, text, &[]), Ok(known + 1));
            assert_eq!(store.read(&session, known).expect("there").expect("new").text, text);
        }
        for odd in ["", "\0", "lispbox:sessions", "%", &"x".repeat(1_000_000)] {
            assert_eq!(store.read(&key("ann", odd), 0), Err(Problem::Unknown), "no session has such a handle");
            assert_eq!(store.lease(&key("ann", odd), "holder"), Err(Problem::Unknown));
        }
    });
}

/// A text of `count` rows of about 30 bytes each.
fn rows(count: u32) -> String {
    (0..count).map(|row| format!("(object {row} \"{}\u{E9}\")\n", row.wrapping_mul(2_654_435_761))).collect()
}

#[test]
fn large_and_small_texts_follow_each_other() {
    on_each_store(|open| {
        let (store, other) = (open(), open());
        let session = key("ann", "one");
        let large = rows(100_000);
        let doubled = format!("{large}{large}");
        let (middle, _) = large.char_indices().nth(1_000_000).expect("it is long");
        let changed = format!("{}(define x 1){}", &large[..middle], &large[middle..]);
        let texts = [large.as_str(), "short", &large, &changed, &doubled, &doubled[1..], "", &rows(3_000), &large];
        for (version, text) in (0..).zip(texts) {
            assert_eq!(put(&*store, &session, version, text, &[]), Ok(version + 1));
            let read = other.read(&session, version).expect("it is there").expect("it is new");
            assert!(read.text == text, "version {} is another text", version + 1);
            assert_eq!(store.list().expect("a list")[0].bytes, text.len() as u64);
            assert_eq!(put(&*other, &session, version, &doubled, &[]), Err(Problem::Changed));
        }
        assert_eq!(put(&*store, &key("ann", "two"), 0, &large, &[]), Ok(1), "the same text in another session");
        assert_eq!(store.remove(&session, None), Ok(()));
        assert_eq!(
            other.read(&key("ann", "two"), 0).expect("there").expect("new").text,
            large,
            "pieces are a session's"
        );
    });
}

#[test]
fn a_small_change_of_a_large_session_is_a_small_write() {
    let large = rows(1_000_000);
    let changed = format!("{large}(define small 1)\n");
    assert!(large.len() > 20 << 20);
    let session = key("ann", "one");
    let check = |kind: &str, store: &dyn Store, written: &dyn Fn() -> u64| {
        assert_eq!(put(store, &session, 0, &large, &[]), Ok(1));
        let before = written();
        assert_eq!(put(store, &session, 1, &changed, &[]), Ok(2));
        let bytes = written() - before;
        assert!(bytes < large.len() as u64 / 50, "{kind}: {bytes} bytes for a few");
        assert_eq!(store.read(&session, 1).expect("there").expect("new").text, changed);
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sessions.db");
    let store = open(&format!("sqlite:{}", path.display())).expect("it opens");
    // The length of the write-ahead log: the bytes written since the last checkpoint.
    let log = || std::fs::metadata(folder.path().join("sessions.db-wal")).expect("there is a log").len();
    let emptied = || {
        let connection = rusqlite::Connection::open(&path).expect("it opens");
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody is busy");
    };
    let is_first = std::cell::Cell::new(true);
    check("SQLite", &*store, &|| {
        if is_first.replace(false) {
            emptied();
        }
        log()
    });
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        let relay = Relay::to(vec![database.address()]);
        let store = open(&database.url_at(relay.address)).expect("it opens");
        check(&format!("{kind:?}"), &*store, &|| relay.said());
    }
}

#[test]
fn nothing_is_left_of_a_large_session_that_has_gone() {
    let large = rows(10_000);
    let come_and_go = |store: &dyn Store| {
        for handle in ["removed", "expired"] {
            put(store, &key("ann", handle), 0, &large, &[]).expect("written");
        }
        store.remove(&key("ann", "removed"), None).expect("it is there");
        while store.expire(Duration::ZERO) != Ok(1) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        assert_eq!(store.read(&key("ann", "expired"), 0), Err(Problem::Expired));
    };
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        come_and_go(&*open(&database.url()).expect("it opens"));
        // Either command fails if pieces of the session remain.
        database.tell(match kind {
            Kind::Redis => "EVAL assert(redis.call('HLEN','lispbox:session:expired')==2) 0",
            Kind::Postgres => "SELECT 1 / (count(*) = 0)::int FROM lispbox_piece",
        });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sessions.db");
    come_and_go(&*open(&format!("sqlite:{}", path.display())).expect("it opens"));
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    let left = connection.query_row("SELECT count(*) FROM piece", [], |row| row.get::<_, i64>(0));
    assert_eq!(left, Ok(0));
}

#[test]
fn what_an_older_version_made_is_read_and_goes_on() {
    let check = |url: &str| {
        let store = open(url).expect("it opens");
        let session = key("ann", "one");
        assert_eq!(store.read(&session, 0).expect("there").expect("new").text, "first");
        assert_eq!(put(&*store, &session, 1, &rows(10_000), &[]), Ok(2));
        assert_eq!(open(url).expect("it opens").read(&session, 0).expect("there").expect("new").text, rows(10_000));
    };
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        open(&database.url()).expect("it opens").create(&key("ann", "one"), "first", &[]).expect("written");
        database.tell(match kind {
            Kind::Redis => "SET lispbox:version 1",
            Kind::Postgres => {
                "DROP TABLE lispbox_piece; ALTER TABLE lispbox_session DROP COLUMN pieces; \
                 ALTER TABLE lispbox_session DROP COLUMN fence; \
                 ALTER TABLE lispbox_session RENAME COLUMN lease_until TO leased_until; \
                 UPDATE lispbox_version SET version = 1"
            }
        });
        check(&database.url());
        database.tell(match kind {
            Kind::Redis => "EVAL assert(redis.call('GET','lispbox:version')=='3') 0",
            Kind::Postgres => "SELECT 1 / (version = 3)::int FROM lispbox_version",
        });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    open(&url).expect("it opens").create(&key("ann", "one"), "first", &[]).expect("written");
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).expect("it opens");
    let older = "DROP INDEX session_unused; DROP INDEX session_made; ALTER TABLE session DROP COLUMN fence;
                 ALTER TABLE session DROP COLUMN lease_boot;
                 ALTER TABLE session RENAME COLUMN lease_until TO leased_until;
                 UPDATE session SET holder = 'older', leased_until = 9999999999999;
                 DROP TABLE piece; ALTER TABLE session DROP COLUMN pieces; PRAGMA user_version = 1";
    connection.execute_batch(older).expect("it is done");
    check(&url);
}

#[test]
fn one_of_many_who_write_at_once_succeeds() {
    on_each_store(|open| {
        let session = key("ann", "one");
        let at_once = |work: &(dyn Fn(&dyn Store) -> Result<u64, Problem> + Sync)| {
            let stores = [open(), open()];
            std::thread::scope(|scope| {
                let writing: Vec<_> = (0..8)
                    .map(|number| {
                        let store = Arc::clone(&stores[number % 2]);
                        scope.spawn(move || work(&*store))
                    })
                    .collect();
                writing.into_iter().map(|one| one.join().expect("it ends")).collect::<Vec<_>>()
            })
        };
        let made = at_once(&|store| store.create(&session, "text", &[]).map(|()| 1));
        assert_eq!(made.iter().filter(|one| **one == Ok(1)).count(), 1, "{made:?}");
        assert_eq!(made.iter().filter(|one| **one == Err(Problem::Changed)).count(), 7, "{made:?}");
        for known in 1..20 {
            // All writers use one lease, as threads of one process may.
            let lease = open().lease(&session, &format!("holder {known}")).expect("it is free");
            let written = at_once(&|store| store.write(&session, &lease, known, "text", &[]));
            assert_eq!(written.iter().filter(|one| **one == Ok(known + 1)).count(), 1, "{written:?}");
            assert_eq!(written.iter().filter(|one| **one == Err(Problem::Changed)).count(), 7, "{written:?}");
            open().release(&session, &lease).expect("given back");
        }
    });
}

#[test]
fn one_of_many_who_want_a_lease_at_once_gets_it() {
    on_each_store(|open| {
        let (store, session) = (open(), key("ann", "one"));
        store.create(&session, "text", &[]).expect("made");
        let mut last = 0;
        for _ in 0..20 {
            let stores = [open(), open()];
            let taken = std::thread::scope(|scope| {
                let taking: Vec<_> = (0..6)
                    .map(|number| {
                        let (store, session) = (Arc::clone(&stores[number % 2]), &session);
                        scope.spawn(move || store.lease(session, &lispbox::store::handle().expect("random")))
                    })
                    .collect();
                taking.into_iter().map(|one| one.join().expect("it ends")).collect::<Vec<_>>()
            });
            let held: Vec<&Lease> = taken.iter().flatten().collect();
            let [lease] = held[..] else { panic!("{taken:?}") };
            assert!(taken.iter().all(|one| one.is_ok() || *one == Err(Problem::Leased)), "{taken:?}");
            assert!(lease.token > last, "{lease:?} after {last}");
            last = lease.token;
            store.release(&session, lease).expect("given back");
        }
    });
}

#[test]
fn a_lease_that_nobody_renews_ends() {
    on_each_store(|open| {
        let (store, session) = (open(), key("ann", "one"));
        put(&*store, &session, 0, "text", &[]).expect("written");
        let gone = store.lease(&session, "gone").expect("it is free");
        let begun = std::time::Instant::now();
        let next = loop {
            match store.lease(&session, "next") {
                Err(Problem::Leased) => {}
                taken => break taken.expect("it is free"),
            }
            assert!(begun.elapsed() < LEASE + Duration::from_secs(5), "it has not ended");
            std::thread::park_timeout(Duration::from_millis(50));
        };
        assert!(begun.elapsed() + Duration::from_millis(100) >= LEASE, "it ended after {:?}", begun.elapsed());
        assert_eq!(store.renew(&session, &gone), Err(Problem::Lost));
        assert_eq!(store.write(&session, &gone, 1, "late", &[]), Err(Problem::Lost));
        assert_eq!(store.write(&session, &next, 1, "in time", &[]), Ok(2));
    });
}

#[test]
fn a_store_that_cannot_be_opened_says_why_and_no_password() {
    let refused = |url: &str| {
        let refused = open(url).err().expect("it cannot be opened");
        assert!(!refused.contains(crate::databases::PASSWORD), "{refused}");
        refused
    };
    let unknown = refused("mongodb://x");
    assert!(
        ["sqlite:", "redis://", "rediss://", "postgres://"].iter().all(|scheme| unknown.contains(scheme)),
        "{unknown}"
    );
    for scheme in ["redis", "postgres", "mysql"] {
        refused(&format!("{scheme}://me:{0}/{0}@nowhere.invalid:1/0?password={0}", crate::databases::PASSWORD));
        refused(&format!("{scheme}://me:{0}@127.0.0.1:1/0", crate::databases::PASSWORD));
    }
    assert!(
        refused("redis://127.0.0.1:1/0").contains("redis://127.0.0.1:1/0: the store of the sessions cannot be used: ")
    );
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        refused(&database.url().replace(crate::databases::PASSWORD, "wrong"));
        open(&database.url()).expect("it opens");
    }
}

#[test]
fn what_took_place_though_its_answer_was_lost_is_told_as_done() {
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        let relay = Relay::to(vec![database.address()]);
        let store = open(&database.url_at(relay.address)).expect("it opens");
        let session = key("ann", "one");
        let lose = || {
            relay.lose_an_answer();
            assert!(relay.is_to_lose());
        };
        lose();
        assert_eq!(put(&*store, &session, 0, "first", &[]), Ok(1));
        assert_eq!(put(&*store, &session, 1, "second", &[]), Ok(2));
        lose();
        assert_eq!(put(&*store, &session, 2, "third", &[]), Ok(3));
        assert_eq!(store.read(&session, 0).expect("there").expect("new").text, "third", "once, and as a whole");
        lose();
        assert_eq!(put(&*store, &session, 1, "lost?", &[]), Err(Problem::Changed));
        let first = store.lease(&session, "first").expect("it is free");
        lose();
        assert_eq!(store.write(&session, &first, 3, "fourth", &[]), Ok(4));
        assert_eq!(store.release(&session, &first), Ok(()));
        lose();
        store.lease(&session, "a").expect("it is ours though we had not heard of it");
        assert_eq!(store.lease(&session, "b"), Err(Problem::Leased));
        lose();
        assert_eq!(store.lease(&session, "b"), Err(Problem::Leased));
        assert!(!relay.is_to_lose(), "every answer that was to be lost was");
    }
}

#[test]
fn a_database_that_is_away_is_said_in_time_and_found_again() {
    for kind in Kind::ALL {
        let Some(mut database) = Database::start(kind) else { continue };
        let store = open(&database.url()).expect("it opens");
        let session = key("ann", "one");
        put(&*store, &session, 0, "first", &[]).expect("written");
        let unavailable = || {
            let begun = std::time::Instant::now();
            match store.check() {
                Err(Problem::Unavailable(reason)) => assert!(!reason.contains(crate::databases::PASSWORD), "{reason}"),
                other => panic!("{other:?}"),
            }
            assert!(begun.elapsed() < Duration::from_secs(6), "it took {:?}", begun.elapsed());
        };
        let back = || {
            let begun = std::time::Instant::now();
            while let Err(problem) = store.check() {
                assert!(begun.elapsed() < Duration::from_secs(20), "{problem}");
                std::thread::park_timeout(Duration::from_millis(20));
            }
        };
        database.stop();
        unavailable();
        database.go_on();
        back();
        database.kill();
        unavailable();
        database.restart();
        back();
        assert_eq!(store.read(&session, 0).expect("there").expect("new").text, "first");
        assert_eq!(put(&*store, &session, 1, "second", &[]), Ok(2));
    }
}

#[test]
fn several_may_make_a_store_at_once() {
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        database.tell(match kind {
            Kind::Redis => "FLUSHALL",
            Kind::Postgres => "DROP TABLE lispbox_piece, lispbox_session, lispbox_version",
        });
        let opened = std::thread::scope(|scope| {
            let opening = [(); 6].map(|()| scope.spawn(|| open(&database.url())));
            opening.map(|one| one.join().expect("it ends").expect("it opens"))
        });
        for (number, store) in opened.iter().enumerate() {
            assert_eq!(put(&**store, &key("ann", &number.to_string()), 0, "text", &[]), Ok(1));
        }
    }
}

#[test]
fn what_a_newer_version_made_is_left_alone() {
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        database.tell(match kind {
            Kind::Redis => "SET lispbox:version 4",
            Kind::Postgres => "UPDATE lispbox_version SET version = 4",
        });
        let refused = open(&database.url()).err().expect("it is refused");
        assert!(
            refused.ends_with("have version 4, but this lispbox supports version 3: use a newer lispbox"),
            "{refused}"
        );
    }
}

/// Processes that are started at the same time find a new file.
#[test]
fn a_new_file_is_opened_by_several_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..20 {
        let url = format!("sqlite:{}", folder.path().join(format!("{round}.db")).display());
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..6).map(|_| scope.spawn(|| open(&url).map(drop))).collect();
            opened.into_iter().for_each(|opened| assert_eq!(opened.join().expect("it returns"), Ok(())));
        });
    }
}
