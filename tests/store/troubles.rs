//! Faults of stores: rows that another client has locked, exhausted memory, and database files that are missing,
//! replaced, truncated or damaged.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::databases::{Database, Kind};
use lispbox::store::{Key, Lease, Problem, Store, make_room, open};

fn key(handle: &str) -> Key {
    Key { principal: "ann".to_owned(), handle: handle.to_owned() }
}

fn lease(store: &dyn Store, session: &Key) -> Result<Lease, Problem> {
    store.lease(session, &lispbox::store::handle().expect("random"))
}

/// Writes a session under a lease that is taken and released for this write.
fn put(store: &dyn Store, session: &Key, known: u64, text: &str) -> Result<u64, Problem> {
    let lease = lease(store, session)?;
    let written = store.write(session, &lease, known, text, &[]);
    store.release(session, &lease)?;
    written
}

/// A text of `count` rows of about 30 bytes each.
fn rows(count: u32) -> String {
    (0..count).map(|row| format!("(object {row} \"{}\u{E9}\")\n", row.wrapping_mul(2_654_435_761))).collect()
}

fn sessions(url: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.arg("sessions").args(arguments).args(["--store", url]).output().expect("it runs")
}

fn printed(url: &str, arguments: &[&str]) -> String {
    let output = sessions(url, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

const TEXT: &str = "(lispbox-session 1)\n(define x 5)\n(history nil nil nil nil)\n";

/// Polls until the condition holds. Panics after 30 s.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: it did not come to pass");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn rows_that_are_locked_concern_their_own_sessions_alone() {
    const BLOCKED: usize = 6;
    let Some(database) = Database::start(Kind::Postgres) else { return };
    let store = open(&database.url()).expect("it opens");
    let blocked: Vec<(Key, Lease)> = (0..BLOCKED)
        .map(|number| {
            let session = key(&format!("blocked {number}"));
            store.create(&session, TEXT, &[]).expect("made");
            let lease = lease(&*store, &session).expect("it is free");
            (session, lease)
        })
        .collect();
    let free = key("free");
    store.create(&free, TEXT, &[]).expect("made");
    let held = lease(&*store, &free).expect("it is free");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, database) = (&store, &database);
        scope.spawn(|| {
            let lock = "BEGIN; SELECT FROM lispbox_session WHERE handle LIKE 'blocked%' FOR UPDATE; SELECT pg_sleep(9)";
            database.tell(lock);
            over.store(true, Ordering::SeqCst);
        });
        until("the rows are locked", || store.renew(&blocked[0].0, &blocked[0].1).is_err());
        let writing = blocked.iter().map(|(session, lease)| {
            scope.spawn(move || (store.write(session, lease, 1, "late", &[]), store.lease(session, "another")))
        });
        let writing: Vec<_> = writing.collect();
        let mut version = 1;
        while !over.load(Ordering::SeqCst) {
            let begun = Instant::now();
            assert_eq!(store.write(&free, &held, version, TEXT, &[]), Ok(version + 1));
            assert_eq!(store.renew(&free, &held), Ok(()));
            assert!(begun.elapsed() < Duration::from_secs(2), "it took {:?}", begun.elapsed());
            version += 1;
        }
        assert!(version > 20, "{version} writes");
        for one in writing {
            let (written, leased) = one.join().expect("it ends");
            let Err(Problem::Unavailable(reason)) = written else { panic!("{written:?}") };
            assert_eq!(reason, "another client of the database has locked the session");
            assert_eq!(leased, Err(Problem::Leased), "nobody waits for the row");
        }
        // Once the rows are unlocked, the sessions are unchanged, and a lease that expired meanwhile is still valid if
        // no other holder has taken it.
        for (session, lease) in &blocked {
            assert_eq!(store.renew(session, lease), Ok(()));
            assert_eq!(store.write(session, lease, 1, "in time", &[]), Ok(2));
        }
    });
}

#[test]
fn where_memory_is_out_sessions_are_read_and_removed() {
    let Some(database) = Database::start(Kind::Redis) else { return };
    let (url, store) = (database.url(), open(&database.url()).expect("it opens"));
    for name in ["one", "two"] {
        store.create(&key(name), TEXT, &[]).expect("made");
    }
    let held = lease(&*store, &key("two")).expect("it is free");
    database.tell("CONFIG SET maxmemory-policy noeviction");
    database.tell("CONFIG SET maxmemory 1000");
    let full = "the store of the sessions cannot be used: Redis has no memory left (`maxmemory`): remove sessions with \
                `lispbox sessions purge`, or raise `maxmemory`";
    let says = |what: &str, result: Result<(), Problem>| match result {
        Err(problem @ Problem::Unusable(_)) => assert_eq!(problem.to_string(), full, "{what}"),
        other => panic!("{what}: {other:?}"),
    };
    let other = open(&url).expect("it opens, as it only reads");
    says("create", other.create(&key("three"), TEXT, &[]));
    says("lease", lease(&*other, &key("one")).map(drop));
    says("write", store.write(&key("two"), &held, 1, TEXT, &[]).map(drop));
    assert_eq!(store.renew(&key("two"), &held), Ok(()));
    assert!(printed(&url, &["list"]).contains("one"));
    assert!(printed(&url, &["show", "one"]).contains('x'));
    assert_eq!(printed(&url, &["export", "one"]), TEXT);
    let mut serve = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    let served = serve.args(["serve", "--store", &url]).stdin(std::process::Stdio::null()).output().expect("it runs");
    assert!(served.status.success(), "{}", String::from_utf8_lossy(&served.stderr));
    assert_eq!(store.release(&key("two"), &held), Ok(()));
    assert_eq!(printed(&url, &["purge", "one"]), "1 removed\n");
    while store.expire(Duration::ZERO).expect("they expire") == 0 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert_eq!(printed(&url, &["list"]), "");
    database.tell("CONFIG SET maxmemory 0");
    assert_eq!(store.create(&key("three"), TEXT, &[]), Ok(()));
}

#[test]
fn sessions_of_a_replica_can_be_looked_at() {
    let (Some(primary), Some(replica)) = (Database::start(Kind::Redis), Database::start(Kind::Redis)) else { return };
    open(&primary.url()).expect("it opens").create(&key("one"), TEXT, &[]).expect("made");
    replica.tell(&format!("CONFIG SET masterauth {}", crate::databases::PASSWORD));
    replica.tell(&format!("REPLICAOF 127.0.0.1 {}", primary.address().port()));
    let url = replica.url();
    until("it is a copy", || String::from_utf8_lossy(&sessions(&url, &["list"]).stdout).contains("one"));
    assert_eq!(printed(&url, &["export", "one"]), TEXT);
    let store = open(&url).expect("it opens");
    let refused = "the store of the sessions cannot be used: this Redis is a replica, which is read-only: use the \
                   server that it replicates";
    assert_eq!(lease(&*store, &key("one")).expect_err("it is read-only").to_string(), refused);
    assert_eq!(store.create(&key("two"), TEXT, &[]).expect_err("it is read-only").to_string(), refused);
}

#[test]
fn what_the_server_has_evicted_is_not_counted_for_long() {
    let Some(database) = Database::start(Kind::Redis) else { return };
    let store = open(&database.url()).expect("it opens");
    for number in 0..5 {
        store.create(&key(&number.to_string()), TEXT, &[]).expect("made");
    }
    database.tell("DEL lispbox:session:0 lispbox:session:1 lispbox:session:2");
    assert_eq!(store.has_many("ann", 5), Ok(true));
    store.expire(Duration::from_secs(60)).expect("nothing is as old");
    assert_eq!((store.has_many("ann", 2), store.has_many("ann", 3)), (Ok(true), Ok(false)));
    database.tell("EVAL assert(redis.call('ZCARD','lispbox:sessions')==2) 0");
    database.tell("DEL lispbox:session:3 lispbox:session:4");
    store.expire(Duration::from_secs(60)).expect("nothing is as old");
    database.tell("EVAL assert(#redis.call('KEYS','lispbox:*')==1) 0");
}

#[test]
fn who_is_not_let_in_is_told_why_and_not_to_try_again() {
    let refused = |url: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_lispbox")).args(["sessions", "list", "--store", url]).output();
        String::from_utf8(output.expect("it runs").stderr).expect("UTF-8")
    };
    for (kind, problem) in [
        (Kind::Redis, "Redis rejects the user name or the password of the URL"),
        (Kind::Postgres, "password authentication failed for user \"lispbox\""),
    ] {
        let Some(database) = Database::start(kind) else { continue };
        let wrong = refused(&database.url().replace(crate::databases::PASSWORD, "wrong"));
        assert!(wrong.contains(&format!("the store of the sessions cannot be used: {problem}")), "{wrong}");
        assert!(!wrong.contains("moment") && !wrong.contains(crate::databases::PASSWORD), "{wrong}");
        if kind == Kind::Redis {
            let none = refused(&database.url().replace(&format!(":{}@", crate::databases::PASSWORD), ""));
            assert!(none.contains("Redis requires a password, but the URL has none"), "{none}");
        }
    }
}

#[test]
fn what_redis_refuses_is_said_without_the_names_of_scripts() {
    let Some(database) = Database::start(Kind::Redis) else { return };
    let store = open(&database.url()).expect("it opens");
    database.tell("SET lispbox:session:odd text");
    let problem = store.read(&key("odd"), 0).expect_err("it is no session").to_string();
    let longest = problem.split(|c: char| !c.is_ascii_hexdigit()).map(str::len).max();
    assert!(longest < Some(16) && problem.contains("wrong kind of value"), "{problem}");
}

/// A store in a file in `folder`, with a small and a large session.
fn in_a_file(folder: &Path) -> Arc<dyn Store> {
    let store = open(&format!("sqlite:{}", folder.join("sessions.db").display())).expect("it opens");
    store.create(&key("small"), TEXT, &[]).expect("made");
    store.create(&key("large"), &rows(10_000), &[]).expect("made");
    store
}

/// Checks that all operations of the store fail with a report of a damaged file that contains `what`.
fn is_damaged(store: &dyn Store, what: &str) {
    let says = |result: Result<(), Problem>| match result {
        Err(Problem::Unusable(reason)) => {
            assert!(reason.starts_with("its file is damaged: ") && reason.contains(what), "{reason}");
        }
        other => panic!("{what}: {other:?}"),
    };
    says(store.check());
    says(lease(store, &key("small")).map(drop));
    says(store.create(&key("new"), TEXT, &[]));
    says(store.read(&key("small"), 0).map(drop));
}

#[test]
fn a_file_that_is_gone_or_another_takes_no_writes() {
    for suffix in ["", "-wal", "-shm"] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = in_a_file(folder.path());
        let held = lease(&*store, &key("small")).expect("it is free");
        let file = folder.path().join(format!("sessions.db{suffix}"));
        let aside = folder.path().join("aside");
        std::fs::rename(&file, &aside).expect("it is there");
        is_damaged(&*store, "was removed after it was opened");
        assert!(store.write(&key("small"), &held, 1, TEXT, &[]).is_err() && store.renew(&key("small"), &held).is_err());
        std::fs::write(&file, "").expect("written");
        is_damaged(&*store, "was replaced after it was opened");
        std::fs::rename(&aside, &file).expect("it is put back");
        assert_eq!(store.write(&key("small"), &held, 1, "goes on", &[]), Ok(2));
    }
}

#[test]
fn a_file_that_has_lost_its_end_takes_no_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = in_a_file(folder.path());
    let file = folder.path().join("sessions.db");
    rusqlite::Connection::open(&file)
        .and_then(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
        .expect("nobody is busy");
    assert_eq!(put(&*store, &key("small"), 1, TEXT), Ok(2));
    let length = std::fs::metadata(&file).expect("it is there").len();
    let cut = std::fs::OpenOptions::new().write(true).open(&file).expect("it is ours");
    for left in [length / 2, 0] {
        cut.set_len(left).expect("it is cut");
        is_damaged(&*store, "is truncated");
    }
}

#[test]
fn a_file_that_was_compacted_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = in_a_file(folder.path());
    store.remove(&key("large"), None).expect("it is free");
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).expect("it opens");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody is busy");
    assert_eq!(store.check(), Ok(()));
    connection.execute_batch("VACUUM").expect("nobody is busy");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody is busy");
    assert_eq!(put(&*store, &key("small"), 1, TEXT), Ok(2));
}

#[test]
fn what_was_not_used_for_the_longest_time_makes_room_for_the_rest() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let folder = tempfile::tempdir().expect("a folder");
    let store = in_a_file(folder.path());
    let size = store.bytes().expect("it can be read").expect("it is known");
    let left = || -> Vec<String> {
        let mut left: Vec<String> = store.list().expect("a list").into_iter().map(|it| it.key.handle).collect();
        left.sort();
        left
    };
    assert_eq!(make_room(&*store, 30 * DAY, 0), Ok(0), "all were used just now");
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).expect("it opens");
    let days = 10 * 24 * 60 * 60 * 1_000_i64;
    connection.execute("UPDATE session SET used = used - ?1 WHERE handle = 'large'", [days]).expect("written");
    assert_eq!(make_room(&*store, 30 * DAY, size), Ok(0), "there is room");
    assert_eq!(left(), ["large", "small"]);
    assert_eq!(make_room(&*store, 30 * DAY, size / 2), Ok(1));
    assert_eq!(left(), ["small"]);
    assert!(store.bytes().expect("it can be read").expect("it is known") < size / 2);
}

#[test]
fn a_session_that_lost_a_piece_is_damaged_and_kept_until_it_is_written_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = in_a_file(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).expect("it opens");
    for (harm, says) in [
        ("UPDATE piece SET piece = x'00' WHERE rowid = 2", "a part of its stored text is corrupted"),
        ("DELETE FROM piece WHERE rowid = 2", "a part of its stored text is missing"),
    ] {
        connection.execute(harm, []).expect("it is done");
        assert_eq!(store.read(&key("large"), 0), Err(Problem::Damaged(says.to_owned())), "{harm}");
    }
    assert_eq!(store.list().expect("a list").len(), 2, "it is still there");
    // A writer that has the whole text writes the missing piece again.
    assert_eq!(put(&*store, &key("large"), 1, &rows(10_000)), Ok(2));
    assert_eq!(store.read(&key("large"), 0).expect("there").expect("new").text, rows(10_000));
}

#[test]
fn a_lease_that_no_clock_can_have_given_is_void() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = in_a_file(folder.path());
    let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).expect("it opens");
    let held = lease(&*store, &key("small")).expect("it is free");
    // The expiry of a lease is measured in time since boot, a clock that cannot be set.
    let until: i64 = connection
        .query_row("SELECT lease_until FROM session WHERE handle = 'small'", [], |row| row.get(0))
        .expect("it is there");
    let started = std::fs::read_to_string("/proc/uptime").expect("Linux says so");
    let started: f64 = started.split(' ').next().and_then(|seconds| seconds.parse().ok()).expect("seconds");
    let left = until as f64 / 1000.0 - started;
    assert!((5.0..=10.1).contains(&left), "{left} s are left");
    store.release(&key("small"), &held).expect("given back");
    for harm in [
        "UPDATE session SET lease_until = lease_until + 3600000 WHERE handle = 'small'",
        "UPDATE session SET lease_boot = 'before' WHERE handle = 'small'",
    ] {
        let held = lease(&*store, &key("small")).expect("it is free");
        assert_eq!(lease(&*store, &key("small")), Err(Problem::Leased));
        connection.execute(harm, []).expect("it is done");
        assert!(store.list().expect("a list").iter().all(|session| !session.is_leased), "{harm}");
        let next = lease(&*store, &key("small")).expect("such a lease is void");
        assert_eq!(store.write(&key("small"), &held, 1, "late", &[]), Err(Problem::Lost));
        store.release(&key("small"), &next).expect("given back");
    }
}

#[test]
fn leases_are_renewed_beside_an_expiry_of_much() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = in_a_file(folder.path());
    let held = lease(&*store, &key("small")).expect("it is free");
    let other = open(&format!("sqlite:{}", folder.path().join("sessions.db").display())).expect("it opens");
    let large = rows(5_000);
    for number in 0..150 {
        store.create(&key(&format!("old {number}")), &large, &[]).expect("made");
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("all expire", || other.expire(Duration::ZERO).is_ok() && other.list().expect("a list").len() == 1);
            over.store(true, Ordering::SeqCst);
        });
        let mut renewals = 0;
        while !over.load(Ordering::SeqCst) {
            let begun = Instant::now();
            assert_eq!(store.renew(&key("small"), &held), Ok(()));
            assert!(begun.elapsed() < Duration::from_millis(1_500), "it took {:?}", begun.elapsed());
            renewals += 1;
        }
        assert!(renewals > 5, "{renewals} renewals");
    });
}
