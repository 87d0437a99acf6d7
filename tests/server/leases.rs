//! A process that resumes after it was stopped for longer than its lease: it calls no further tools and writes nothing,
//! and the current holder is not affected.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use crate::databases::{Database, Kind};
use crate::http_client::{Server, handle};
use crate::steps::Steps;
use lispbox::store::{Key, Problem, open};
use serde_json::Value;

/// Starts a server with a store, whose programs can call the `step` tools.
fn server(url: &str, steps: &Steps, more: &[&str]) -> Server {
    let file = steps.configuration();
    let mut arguments = vec!["--store", url, "--config", file.to_str().expect("a path")];
    arguments.extend(more);
    Server::start(&arguments, &[])
}

/// Checks that a program failed with this code, and returns the error message.
fn message(result: &Value, code: &str) -> String {
    assert_eq!(result["structuredContent"]["error"], code, "{result}");
    result["structuredContent"]["message"].as_str().expect("a message").to_owned()
}

fn value(server: &Server, session: &str, program: &str) -> String {
    let (text, is_error) = server.eval("", program, Some(session));
    assert!(!is_error, "{program}: {text}");
    // Other lines are the values before it, and those in which lispbox reports definitions, calls and the session.
    let is_report = |line: &&str| line.starts_with('[') && line.ends_with(']');
    text.lines().rfind(|line| !is_report(line)).unwrap_or_default().to_owned()
}

const LOST: &str = "the lease of the session was lost while the program ran: this process was stopped, or the store did \
                    not answer it, for longer than a lease lasts; it was stopped before its next tool call, and none \
                    of its definitions are kept: the session is as the store has it; earlier calls are not undone";

/// Stops a server while its program waits for a tool, and resumes it once another server has taken the session.
fn stall(url: &str, more: &[&str]) {
    let steps = Steps::new();
    let (stalled, other) = (server(url, &steps, more), server(url, &steps, &[]));
    let session = handle(&stalled.eval("", "(def n 1)", None).0);
    let result = std::thread::scope(|scope| {
        steps.hold();
        let program = "(def n 100) (step/taken {:text \"first\"}) (step/taken {:text \"second\"}) (session/fork)";
        let running = scope.spawn(|| stalled.try_to_eval(program, Some(&session)));
        steps.wait_for("first");
        stalled.pause();
        steps.let_go();
        let rightful = "(def n (+ n 10)) (step/taken {:text \"rightful\"}) n";
        assert_eq!(value(&other, &session, rightful), "11");
        stalled.go_on();
        running.join().expect("it ends").expect("it answers")
    });
    assert!(message(&result, "LeaseLost").starts_with(LOST), "{result}");
    assert_eq!(steps.calls(), ["first", "rightful"]);
    assert_eq!(value(&other, &session, "(def n (inc n)) n"), "12");
    assert_eq!(value(&stalled, &session, "(def n (inc n)) n"), "13");
    let all = open(url).expect("it opens").list().expect("a list");
    assert_eq!(all.iter().filter(|summary| summary.is_session()).count(), 1, "no copy was made");
}

#[test]
fn a_stalled_process_does_nothing_more_in_a_session_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    stall(&url("one.db"), &[]);
    stall(&url("isolated.db"), &["--isolate"]);
}

#[test]
fn a_stalled_process_does_nothing_more_in_a_session_of_redis() {
    if let Some(database) = Database::start(Kind::Redis) {
        stall(&database.url(), &[]);
    }
}

#[test]
fn a_stalled_process_does_nothing_more_in_a_session_of_postgres() {
    if let Some(database) = Database::start(Kind::Postgres) {
        stall(&database.url(), &[]);
    }
}

#[test]
fn a_program_ends_soon_after_its_session_was_taken_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let steps = Steps::new();
    let server = server(&url, &steps, &[]);
    let session = handle(&server.eval("", "(def n 1)", None).0);
    let begun = Instant::now();
    let result = std::thread::scope(|scope| {
        steps.hold();
        let running = scope.spawn(|| server.try_to_eval("(def n 2) (step/taken {:text \"long\"})", Some(&session)));
        steps.wait_for("long");
        // The update that another process makes when it takes the next lease.
        let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).expect("it opens");
        let taken = "UPDATE session SET holder = 'other', fence = fence + 1 WHERE handle = ?1";
        assert_eq!(connection.execute(taken, [&session]).expect("it is done"), 1);
        running.join().expect("it ends").expect("it answers")
    });
    let lost = message(&result, "LeaseLost");
    assert!(lost.contains("another process took the session, or removed it"), "{lost}");
    assert!(begun.elapsed() < Duration::from_secs(8), "after {:?}, while the tool is silent", begun.elapsed());
    steps.let_go();
}

#[test]
fn a_session_that_cannot_be_closed_is_said_to_go_on_and_does() {
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        let steps = Steps::new();
        let server = server(&database.url(), &steps, &[]);
        let session = handle(&server.eval("", "(def n 1)", None).0);
        let result = std::thread::scope(|scope| {
            steps.hold();
            let program = "(def n 2) (step/taken {:text \"closing\"}) (session/close)";
            let running = scope.spawn(|| server.try_to_eval(program, Some(&session)));
            steps.wait_for("closing");
            database.stop();
            steps.let_go();
            running.join().expect("it ends").expect("it answers")
        });
        let problem = message(&result, "SessionNotClosed");
        assert!(
            problem.starts_with(
                "it is unknown whether the session was closed: the store of the sessions cannot be used: "
            ),
            "{problem}"
        );
        database.go_on();
        let key = Key { principal: "local".to_owned(), handle: session.clone() };
        let begun = Instant::now();
        let (text, is_error) = loop {
            let (text, is_error) = server.eval("", "n", Some(&session));
            if !text.contains("StoreUnavailable") {
                break (text, is_error);
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{text}");
        };
        // Either the session was closed, or it exists with the definitions of the program.
        if is_error {
            assert!(text.contains("UnknownSession"), "{text}");
            assert_eq!(open(&database.url()).expect("it opens").read(&key, 0), Err(Problem::Unknown));
        } else {
            assert_eq!(text, "2");
            assert_eq!(value(&server, &session, "(session/close) 7"), "7");
            assert_eq!(open(&database.url()).expect("it opens").read(&key, 0), Err(Problem::Unknown));
        }
    }
}

#[test]
fn a_locked_row_ends_its_own_program_alone() {
    let Some(database) = Database::start(Kind::Postgres) else { return };
    let steps = Steps::new();
    let server = server(&database.url(), &steps, &[]);
    let sessions = [(); 3].map(|()| handle(&server.eval("", "(def n 1)", None).0));
    let [locked, others @ ..] = &sessions;
    let lock = format!("BEGIN; SELECT FROM lispbox_session WHERE handle = '{locked}' FOR UPDATE; SELECT pg_sleep(12)");
    std::thread::scope(|scope| {
        steps.hold();
        let server = &server;
        let run = move |session: &str, text: &str| {
            let program = format!("(do (step/taken {{:text \"{text}\"}}) (def n 2) n)");
            (server.try_to_eval(&program, Some(session))).expect("it answers")
        };
        let [locked_one, one, another] = [(locked, "locked"), (&others[0], "one"), (&others[1], "another")]
            .map(|(session, text)| scope.spawn(move || run(session, text)));
        ["locked", "one", "another"].iter().for_each(|text| steps.wait_for(text));
        let locking = scope.spawn(|| database.tell(&lock));
        let lost = message(&locked_one.join().expect("it ends"), "LeaseLost");
        assert!(lost.starts_with(LOST), "{lost}");
        steps.let_go();
        for other in [one, another] {
            let result = other.join().expect("it ends");
            assert!(result["content"][0]["text"].as_str().is_some_and(|text| text.starts_with('2')), "{result}");
        }
        locking.join().expect("it ends");
    });
    assert_eq!(value(&server, locked, "n"), "1");
}
