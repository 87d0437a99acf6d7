//! Trouble with the store that is used without any setting: it is a note, and programs go on in memory.
#![cfg(unix)]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::desktop::{Home, end};
use crate::mcp_client::{Answer, Client};

/// The file of the store that is used without any setting.
pub const STORE: &str = ".local/share/lispbox/sessions.db";

/// What a reply says if its session defines something that cannot be kept.
const NOTE: &str = "note: what the session defines ends with lispbox: the store of the sessions cannot be used: ";

#[test]
fn a_store_that_cannot_be_used_is_a_note_and_never_a_refusal() {
    type Trouble = (&'static str, fn(&Home));
    let troubles: [Trouble; 4] = [
        ("is not an SQLite database", |home| drop(home.write(STORE, &"no database ".repeat(1_000)))),
        ("use a newer lispbox", |home| {
            home.write(".local/share/lispbox/x", "");
            let connection = rusqlite::Connection::open(home.path(STORE)).expect("it opens");
            connection.execute_batch("CREATE TABLE t (a); PRAGMA user_version = 99").expect("written");
        }),
        ("sessions.db", |home| std::fs::create_dir_all(home.path(STORE)).expect("made")),
        ("sessions.db", |home| drop(home.write(".local/share", "a file where a folder should be"))),
    ];
    for (said, trouble) in troubles {
        let home = Home::new();
        trouble(&home);
        let mut client = home.client();
        assert!(!client.eval("(+ 1 2)").text.contains(NOTE), "it has nothing to lose");
        let first = client.eval("(def a 1) (inc a)");
        assert_eq!(first.text.lines().next(), Some("2"), "{said}");
        assert!(first.text.contains(NOTE) && first.text.contains(said), "{said}: {}", first.text);
        let log = std::fs::read_to_string(home.path("log")).expect("a log");
        assert!(log.contains("the usual store cannot be used") && log.contains(said), "{said}: {log}");
    }
}

#[test]
fn a_locked_store_is_a_note_and_never_a_refusal() {
    let home = Home::new();
    end(home.client());
    let connection = rusqlite::Connection::open(home.path(STORE)).expect("it opens");
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE").expect("locked");
    let mut client = home.client();
    assert_eq!(client.eval("(+ 1 2)").text.lines().next(), Some("3"));
    let log = std::fs::read_to_string(home.path("log")).expect("a log");
    assert!(log.contains("the usual store cannot be used"), "{log}");
    connection.execute_batch("ROLLBACK").expect("unlocked");
}

/// Configures a tool that appends a line to a file.
fn with_counter(home: Home) -> Home {
    let line = json!({"properties": {"line": {"type": "string"}}, "required": ["line"]});
    let script = "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"";
    let add = json!({"command": "sh", "args": ["-c", script, home.path("added"), "{line}"], "parameters": line});
    let root = json!({"local": {"notes/add": add}, "policy": {"allow": ["notes/add"]}});
    home.write(".config/lispbox/config.d/counter.json", &root.to_string());
    home
}

fn added(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("added")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn in_session(client: &mut Client, session: &str, program: &str) -> Answer {
    client.call("lisp_eval", json!({"program": program, "session": session}))
}

/// Checks that a conversation goes on in memory while its store cannot be used: what it says, and that each call is made
/// once.
fn goes_on_in_memory(home: &Home, client: &mut Client, session: &str, why: &str) {
    let before = added(home).len();
    for (program, value) in [
        ("(def b 2) (notes/add {:line \"b\"})", "\"added b\""),
        ("(def c (inc b)) c", "3"),
        ("(do (notes/add {:line \"c\"}) [a b c])", "[1 2 3]"),
    ] {
        let answer = in_session(client, session, program);
        assert!(!answer.is_error && answer.text.lines().next() == Some(value), "{why}: {}", answer.text);
        assert!(answer.text.contains(NOTE), "{why}: {}", answer.text);
    }
    assert_eq!(added(home)[before..], ["b", "c"], "{why}");
    // So does a conversation that begins now, in this process and in another one.
    let other = client.eval("(def d 4) (inc d)");
    assert!(!other.is_error && other.text.starts_with('5'), "{why}: {}", other.text);
    let mut second = home.client();
    let other = second.eval("(def e 5) (inc e)");
    assert!(!other.is_error && other.text.starts_with('6'), "{why}: {}", other.text);
    let log = std::fs::read_to_string(home.path("log")).expect("a log");
    assert!(log.contains("the usual store cannot be used") && log.contains(why), "{why}: {log}");
}

#[test]
fn a_store_that_breaks_in_the_middle_of_a_conversation_is_a_note_and_memory() {
    type Trouble = (&'static str, fn(&Home));
    let troubles: [Trouble; 3] = [
        ("its file is damaged", |home| {
            let mut file = OpenOptions::new().write(true).open(home.path(STORE)).expect("it opens");
            file.write_all(&[b'x'; 4096]).expect("written");
            let log = OpenOptions::new().write(true).open(home.path(&format!("{STORE}-wal"))).expect("it opens");
            log.set_len(0).expect("cut");
        }),
        ("was removed after it was opened", |home| {
            std::fs::remove_file(home.path(STORE)).expect("removed");
            std::fs::create_dir(home.path(STORE)).expect("made");
        }),
        ("was replaced after it was opened", |home| {
            std::fs::rename(home.path(STORE), home.path("old.db")).expect("moved");
            home.write(STORE, &"no database ".repeat(1_000));
        }),
    ];
    for (why, trouble) in troubles {
        let home = with_counter(Home::new());
        let mut client = home.client();
        let session = client.eval("(def a 1) (notes/add {:line \"a\"})").handle().expect("a handle");
        trouble(&home);
        let why = if why.contains("removed") { "after it was opened" } else { why };
        goes_on_in_memory(&home, &mut client, &session, why);
    }
}

#[test]
fn a_store_of_a_newer_lispbox_is_used_by_the_processes_that_have_it_and_by_no_new_one() {
    let home = with_counter(Home::new());
    let mut client = home.client();
    let session = client.eval("(def a 1)").handle().expect("a handle");
    let connection = rusqlite::Connection::open(home.path(STORE)).expect("it opens");
    connection.execute_batch("PRAGMA user_version = 99").expect("written");
    assert_eq!(
        in_session(&mut client, &session, "(def b 2) (notes/add {:line \"b\"})").text.lines().next(),
        Some("\"added b\"")
    );
    let mut other = home.client();
    assert_eq!(other.eval("(def c 3) c").text.lines().next(), Some("3"));
    connection.execute_batch("PRAGMA user_version = 3").expect("written");
    end(client);
    assert_eq!(in_session(&mut home.client(), &session, "[a b]").text, "[1 2]", "what was acknowledged is there");
}

#[test]
fn a_store_that_is_locked_in_the_middle_of_a_conversation_loses_nothing() {
    let home = with_counter(Home::new());
    let mut client = home.client();
    let session = client.eval("(def a 1)").handle().expect("a handle");
    let connection = rusqlite::Connection::open(home.path(STORE)).expect("it opens");
    connection.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    let refused = in_session(&mut client, &session, "(def b 2) (notes/add {:line \"b\"})");
    assert_eq!(
        refused.text.trim_end(),
        "StoreUnavailable: the store of the sessions cannot be used: another process has been writing to it for more than \
         5 s; nothing was evaluated; try again in a moment"
    );
    assert!(added(&home).is_empty());
    connection.execute_batch("ROLLBACK").expect("unlocked");
    let answer = in_session(&mut client, &session, "(def b 2) (notes/add {:line \"b\"})");
    assert!(!answer.is_error && !answer.text.contains("note: "), "{}", answer.text);
    end(client);
    assert_eq!(in_session(&mut home.client(), &session, "[a b]").text, "[1 2]");
    assert_eq!(added(&home), ["b"]);
}

/// A client in a mount namespace of its own, for which a command has changed its data folder; `None` if mounts are not
/// allowed here.
fn with_mount(home: &Home, mount: &str) -> Option<Client> {
    let may_mount = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: mounts in a namespace of one's own are not allowed here");
        return None;
    }
    let folder = home.path(".local/share/lispbox");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mount = format!("{} && exec \"$0\" \"$@\"", mount.replace("FOLDER", &format!("'{}'", folder.display())));
    Some(Client::start_at_home_within(&["unshare", "-rm", "sh", "-c", &mount], home.0.path()))
}

#[test]
fn a_store_on_a_file_system_without_writes_is_a_note_and_memory() {
    const MOUNT: &str = "mount --bind FOLDER FOLDER && mount -o remount,ro,bind FOLDER";
    // A file that is there, with a session, and none.
    for is_there in [true, false] {
        let home = with_counter(Home::new());
        let session = is_there.then(|| {
            let mut client = home.client();
            let session = client.eval("(def a 1)").handle().expect("a handle");
            end(client);
            session
        });
        let Some(mut client) = with_mount(&home, MOUNT) else { return };
        let answer = client.eval("(def b 2) (notes/add {:line \"b\"})");
        assert!(answer.text.starts_with("\"added b\""), "{}", answer.text);
        let log = std::fs::read_to_string(home.path("log")).expect("a log");
        assert!(log.contains("the usual store cannot be used"), "{log}");
        if let Some(session) = &session {
            let answer = in_session(&mut client, session, "(notes/add {:line \"c\"}) a");
            assert!(answer.is_error, "{}", answer.text);
            end(client);
            assert_eq!(in_session(&mut home.client(), session, "a").text, "1");
        }
        assert_eq!(added(&home), ["b"]);
    }
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_conversation_is_a_note_and_memory_until_there_is_room() {
    let home = with_counter(Home::new());
    let Some(mut client) = with_mount(&home, "mount -t tmpfs -o size=16m,mode=700 tmpfs FOLDER") else { return };
    let session = client.eval("(def a 1) (notes/add {:line \"a\"})").handle().expect("a handle");
    let seen =
        PathBuf::from(format!("/proc/{}/root{}", client.process.id(), home.path(".local/share/lispbox").display()));
    let filler = seen.join("filler");
    // Until not a byte is left.
    let mut file = std::fs::File::create(&filler).expect("created");
    while file.write(&[0; 512]).is_ok_and(|count| count > 0) {}
    // What a call does before its program is refused is on record; no call is made that is not.
    let first = in_session(&mut client, &session, "(def b 2) (notes/add {:line \"b\"})");
    let is_made = added(&home) == ["a", "b"];
    assert_eq!(first.text.starts_with("\"added b\""), is_made, "{}", first.text);
    if is_made {
        assert!(first.text.contains("ends with lispbox"), "{}", first.text);
    } else {
        assert!(first.text.contains("the disk is full"), "{}", first.text);
        let again = in_session(&mut client, &session, "(def b 2) (notes/add {:line \"b\"})");
        assert!(again.text.starts_with("\"added b\"") && again.text.contains("ends with lispbox"), "{}", again.text);
    }
    let more = in_session(&mut client, &session, "(def c 3) [a b c]");
    assert!(more.text.starts_with("[1 2 3]") && more.text.contains("the disk is full"), "{}", more.text);
    // A file that is open keeps its blocks, also in a process that another test is starting at this moment.
    file.set_len(0).expect("cut");
    drop(file);
    std::fs::remove_file(&filler).expect("removed");
    let kept = in_session(&mut client, &session, "(def d 4) [a b c d]");
    assert!(kept.text.starts_with("[1 2 3 4]") && !kept.text.contains("note: "), "{}", kept.text);
    // SQLite follows the links of its path, out of the name space of the server.
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["sessions.db", "sessions.db-wal"] {
        std::fs::copy(seen.join(name), copy.path().join(name)).expect("copied");
    }
    let stored = lispbox::store::open(&format!("sqlite:{}", copy.path().join("sessions.db").display()));
    let all = stored.expect("it opens").list().expect("a list");
    let names =
        all.iter().find(|summary| summary.key.handle == session).unwrap_or_else(|| panic!("{session}: {all:?}"));
    assert_eq!(names.names, ["a", "b", "c", "d"]);
    assert_eq!(added(&home), ["a", "b"]);
}
