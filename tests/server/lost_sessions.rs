//! A connection whose session is gone gets one error that reports the cause, and then has a new session.
#![cfg(unix)]

use std::process::Command;
use std::time::Duration;

use crate::databases::{Database, Kind, on_each_store};
use crate::http_client::Server;
use crate::mcp_client::{Answer, Client, python, until};
use lispbox::store::open;
use serde_json::json;

/// The error message for a connection whose session is gone for this reason.
fn gone(code: &str, why: &str) -> String {
    format!(
        "{code}: the session of this connection is gone: {why}; nothing was evaluated, and the definitions of that \
         session are lost; the next call without `session` starts a new one"
    )
}

const UNKNOWN: &str = "there is no session with this handle: it was closed or never existed";

/// Starts a client of an older protocol and makes a definition. Returns the client and the handle of its session.
fn client(arguments: &[&str]) -> (Client, String) {
    let mut client = Client::start(&json!({"mcpServers": {}}), arguments);
    let handle = client.eval("(def n 1)").handle().expect("named");
    (client, handle)
}

/// Checks that the session of a connection is gone for this reason: one call reports it and evaluates nothing, and the
/// next call has a new session.
fn is_told_once(client: &mut Client, code: &str, why: &str) {
    let first = client.eval("(def effect 1)");
    assert!(first.is_error, "{first:?}");
    assert_eq!(first.text.trim_end(), gone(code, why));
    assert_eq!(client.fails("n").0, "UnboundVariable");
    assert_eq!(client.fails("effect").0, "UnboundVariable");
    let next = client.eval("(def m 2)");
    assert!(next.handle().is_some(), "{next:?}");
    assert_eq!(client.eval("m").text, "2");
}

fn purge(url: &str) {
    let purge =
        Command::new(env!("CARGO_BIN_EXE_lispbox")).args(["sessions", "--store", url, "purge", "--all"]).output();
    let purge = purge.expect("the binary runs");
    assert!(purge.status.success(), "{purge:?}");
}

#[test]
fn after_a_purge() {
    on_each_store(|url| {
        for isolated in [&[][..], &["--isolate"]] {
            let (mut client, _) = client(&[&["--store", url], isolated].concat());
            purge(url);
            is_told_once(&mut client, "UnknownSession", UNKNOWN);
        }
    });
}

#[test]
fn a_question_about_the_environment_is_told_as_a_program_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let (mut client, _) = client(&["--store", &url]);
    purge(&url);
    let answer = client.call("lisp_env", json!({}));
    assert_eq!(answer.text.trim_end(), gone("UnknownSession", UNKNOWN));
    assert!(!client.call("lisp_env", json!({})).is_error);
    assert_eq!(client.fails("n").0, "UnboundVariable");
}

/// A call that names the lost session reports the loss; the next call without a name has a new session.
#[test]
fn a_call_that_names_the_session_is_told_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let (mut client, handle) = client(&["--store", &url]);
    purge(&url);
    let answer = client.call("lisp_eval", json!({"program": "n", "session": handle}));
    assert_eq!(answer.text.trim_end(), format!("UnknownSession: {UNKNOWN}; leave `session` out for a new one"));
    assert_eq!(client.eval("(+ 1 2)").text, "3");
}

#[test]
fn after_it_was_closed_by_another_process() {
    on_each_store(|url| {
        let (mut client, handle) = client(&["--store", url]);
        let mut other = Client::start_stateless(&json!({"mcpServers": {}}), &["--store", url]);
        let closed = other.call("lisp_eval", json!({"program": "(session/close)", "session": handle}));
        assert!(!closed.is_error, "{closed:?}");
        is_told_once(&mut client, "UnknownSession", UNKNOWN);
    });
}

#[test]
fn after_it_was_closed_by_another_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    for arguments in [&[][..], &["--store", &url], &["--isolate"]] {
        let server = Server::start(arguments, &[]);
        let session = server.initialize("", "2025-06-18").expect("a session");
        let handle = crate::http_client::handle(&session.eval("(def n 1)").0);
        let closed = server.eval("", "(session/close)", Some(&handle));
        assert!(!closed.1, "{closed:?}");
        let (text, is_error) = session.eval("(def effect 1)");
        assert!(is_error);
        assert_eq!(text.trim_end(), gone("UnknownSession", "it was closed by another connection"));
        assert!(session.eval("n").0.starts_with("UnboundVariable"));
        assert_eq!(session.eval("(+ 1 2)"), ("3".to_owned(), false));
    }
}

#[test]
fn after_it_has_expired() {
    on_each_store(|url| {
        let (mut client, _) = client(&["--store", url]);
        let store = open(url).expect("it opens");
        until(|| {
            store.expire(Duration::ZERO).expect("they expire");
            store.list().expect("a list").is_empty()
        });
        let first = client.eval("n");
        assert!(first.text.starts_with("SessionExpired: the session of this connection is gone: "), "{first:?}");
        assert!(first.text.contains("; the next call without `session` starts a new one"), "{first:?}");
        assert_eq!(client.fails("n").0, "UnboundVariable");
    });
}

#[test]
fn after_the_database_was_emptied() {
    let Some(database) = Database::start(Kind::Redis) else { return };
    let (mut client, _) = client(&["--store", &database.url()]);
    database.tell("FLUSHDB");
    is_told_once(&mut client, "UnknownSession", UNKNOWN);
}

/// Another process overwrites the stored text of the session.
#[test]
fn after_it_was_damaged() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sessions.db").display().to_string();
    let (mut client, _) = client(&["--store", &format!("sqlite:{file}")]);
    let damage = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(\"update session set text = '(lispbox-session 1) (define x (nonsense', version = version + 1\"); c.commit()";
    assert!(Command::new("python3").args(["-c", damage, &file]).status().expect("it runs").success());
    let first = client.eval("n");
    assert!(first.text.starts_with("SessionDamaged: the session of this connection is gone: "), "{first:?}");
    assert!(first.text.contains("it is kept as it is"), "{first:?}");
    assert_eq!(client.fails("n").0, "UnboundVariable");
}

/// Of two concurrent calls, at least one reports the loss. The other reports it too, or runs in the new session and
/// names its handle.
#[test]
fn all_calls_on_the_way_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let (mut client, _) = client(&["--store", &url]);
    purge(&url);
    let lines: Vec<i64> = (0..2)
        .map(|_| client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(def effect 1)"}})))
        .collect();
    let answers: Vec<Answer> = lines.iter().map(|_| Answer::of(&client.receive())).collect();
    assert!(answers.iter().any(|answer| answer.is_error), "{answers:?}");
    for answer in answers {
        let told = answer.text.trim_end() == gone("UnknownSession", UNKNOWN);
        assert!(told || answer.handle().is_some(), "it is told or in a new session: {answer:?}");
    }
}
