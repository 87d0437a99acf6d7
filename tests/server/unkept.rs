//! A session that cannot be kept is reported in every reply until it can be. Lost changes are reported once.
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::mcp_client::{Answer, Client, is_alive, until};
use serde_json::json;

/// Limits under which a session with little memory is too large in serialized form.
const LIMITS: [&str; 5] = ["--isolate", "--limit", "memory=2MiB", "--limit", "session=128KiB"];

/// Defines a value that has 5,000,000 bytes as text, and a small fraction of that in memory.
const LARGE: &str = r#"(def large (vec (repeat 5000 (keyword (str/join (repeat 1000 "k"))))))"#;

/// The message of a `SessionNotKept` reply, with its time, and its size if it has one, replaced by `…`.
fn not_kept(answer: &Answer) -> String {
    assert!(answer.is_error && answer.record["error"] == "SessionNotKept", "{answer:?}");
    let message = answer.record["message"].as_str().expect("a message");
    let (before, rest) = message.split_once(" changes since ").unwrap_or_else(|| panic!("{message}"));
    let (time, after) = rest.split_once(" are in memory").unwrap_or_else(|| panic!("{message}"));
    assert!(time.len() == "2026-11-24 07:50:11 UTC".len() && time.ends_with(" UTC"), "{time}");
    let Some((said, size)) = before.split_once("it has ") else {
        return format!("{before} changes since … are in memory{after}");
    };
    let (bytes, before) = size.split_once(' ').unwrap_or_else(|| panic!("{message}"));
    assert!(bytes.parse().is_ok_and(|bytes: u64| bytes > 3 << 20), "{bytes}");
    format!("{said}it has … {before} changes since … are in memory{after}")
}

/// The expected message, normalized as by [`not_kept`], for a session in which these names were defined.
fn message(names: &str, came_to: &str) -> String {
    format!(
        "the session could not be kept: it has … bytes as text; at most 3145728 are allowed; {names}all changes since \
         … are \
         in memory, but not kept; make smaller or `session/forget` what is too large or cannot be written: each \
         program in this session retries{came_to}"
    )
}

/// The ids of the worker processes of this server.
fn workers(client: &Client) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", client.process.id())).expect("it runs");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|number| number.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

/// Kills the workers, and waits until the server can see that.
fn kill_workers(client: &Client) {
    let workers = workers(client);
    for worker in &workers {
        // SAFETY: a system call on integers; the processes are children of our child process.
        unsafe { libc::kill(*worker, libc::SIGKILL) };
    }
    // The first thread of a process may have ended before the others.
    let threads = |worker: i32| std::fs::read_dir(format!("/proc/{worker}/task")).map_or(0, Iterator::count);
    until(|| workers.iter().all(|worker| !is_alive(i64::from(*worker)) && threads(*worker) <= 1));
}

/// Lifts the file size limit of this server.
fn lift_the_limit(client: &Client) {
    let process = client.process.id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited"]).status();
    assert!(raised.expect("prlimit runs").success());
}

fn in_a_file(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("sessions.db").display())
}

#[test]
fn a_session_that_cannot_be_written_is_told_on_every_reply_until_it_can() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = in_a_file(&folder);
    for store in [&[][..], &["--store", &url]] {
        let mut client = Client::start(&json!({"mcpServers": {}}), &[&LIMITS, store].concat());
        assert!(!client.eval("(def a 1)").is_error);
        let first = not_kept(&client.eval(LARGE));
        assert_eq!(first, message("`large` and ", "; the program ran and returned #'large"));
        assert_eq!(
            not_kept(&client.eval("(def b 2)")),
            message("`large`, `b` and ", "; the program ran and returned #'b")
        );
        assert_eq!(not_kept(&client.eval("(+ a b)")), message("`large`, `b` and ", "; the program ran and returned 3"));
        let failed = client.eval("(nonsense)");
        assert!(failed.text.contains("UnboundVariable") && failed.text.contains("SessionNotKept"), "{failed:?}");
        let described = client.call("lisp_env", json!({}));
        assert!(described.text.starts_with("[warning: SessionNotKept: it has "), "{described:?}");
        let mended = client.eval("(session/forget 'large)");
        assert!(!mended.is_error, "{mended:?}");
        assert_eq!(client.eval("(+ a b)").text, "3");
        assert!(!client.call("lisp_env", json!({})).text.contains("SessionNotKept"));
        kill_workers(&client);
        assert_eq!(client.eval("(+ a b)").text, "3", "it was kept");
    }
}

#[test]
fn what_only_a_worker_had_is_told_once_when_it_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = in_a_file(&folder);
    for store in [&[][..], &["--store", &url]] {
        let mut client = Client::start(&json!({"mcpServers": {}}), &[&LIMITS, store].concat());
        assert!(!client.eval("(def a 1)").is_error);
        not_kept(&client.eval(LARGE));
        not_kept(&client.eval("(def b 2)"));
        kill_workers(&client);
        let (error, message) = client.fails("(def effect 1)");
        assert_eq!(error, "WorkerLost");
        let (before, after) = message.split_once(" since ").unwrap_or_else(|| panic!("{message}"));
        assert_eq!(before, "the worker process of this session is gone, and all changes to the session");
        assert!(
            after.contains(" UTC are lost, because they could not be kept: it has ")
                && after.ends_with("; nothing was evaluated; the session is as it was before that"),
            "{message}"
        );
        assert_eq!(client.eval("a").text, "1");
        for lost in ["large", "b", "effect"] {
            assert_eq!(client.fails(lost).0, "UnboundVariable", "{lost}");
        }
    }
}

/// If a worker is lost while a program runs, changes that were not kept before are lost.
#[test]
fn what_only_a_worker_had_is_told_when_it_is_lost_at_work() {
    let mut client = Client::start(&json!({"mcpServers": {}}), &LIMITS);
    assert!(!client.eval("(def a 1)").is_error);
    not_kept(&client.eval(LARGE));
    let program = json!({"program": "(loop [] (recur))", "limits": {"compute": "60s", "fuel": 1e12}});
    let id = client.begin("tools/call", json!({"name": "lisp_eval", "arguments": program}));
    let used = |process: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let fields: Vec<String> = stat.rsplit(") ").next().unwrap_or_default().split(' ').map(str::to_owned).collect();
        fields.get(11).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or_default()
    };
    let before: u64 = workers(&client).into_iter().map(used).sum();
    until(|| workers(&client).into_iter().map(used).sum::<u64>() > before + 10);
    kill_workers(&client);
    let answer = client.receive();
    assert_eq!(answer["id"], id);
    let answer = Answer::of(&answer);
    assert_eq!(answer.record["error"], "WorkerLost");
    assert!(
        answer.text.contains("; all changes to the session since ")
            && answer.text.contains("; the session is as it was before that"),
        "{answer:?}"
    );
    assert_eq!(client.eval("a").text, "1");
    assert_eq!(client.fails("large").0, "UnboundVariable");
}

/// A store that accepts no further writes, as on a full disk: files are limited to 128 KiB (256 blocks of 512 bytes).
#[test]
fn a_store_that_takes_nothing_is_told_on_every_reply_until_it_does() {
    for isolated in [&[][..], &["--isolate"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let limited = r#"trap "" XFSZ; ulimit -S -f 256; exec "$0" "$@""#;
        let url = in_a_file(&folder);
        let mut client = Client::start_within(
            &["sh", "-c", limited],
            &json!({"mcpServers": {}}),
            &[&["--store", &url], isolated].concat(),
        );
        assert!(!client.eval("(def a 1)").is_error);
        let large = "(def large (map (fn [n] (str n (rand))) (range 20000)))";
        let texts = [large, "(def b 2)", "(+ a b)"].map(|program| client.eval(program));
        for (answer, names) in texts.iter().zip(["`large` and ", "`large`, `b` and ", "`large`, `b` and "]) {
            let said = not_kept(answer);
            assert!(
                said.contains(&format!(
                    "; {names}all changes since … are in memory, but not kept; the next program in this session retries"
                )),
                "{said}"
            );
        }
        lift_the_limit(&client);
        assert_eq!(client.eval("(+ a b)").text, "3");
        assert!(!client.call("lisp_env", json!({})).text.contains("SessionNotKept"));
    }
}

/// If another process has changed the session, the loss of changes that could not be kept is reported.
#[test]
fn what_was_not_kept_and_is_overtaken_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = r#"trap "" XFSZ; ulimit -S -f 256; exec "$0" "$@""#;
    let url = in_a_file(&folder);
    let none = json!({"mcpServers": {}});
    let mut client = Client::start_within(&["sh", "-c", limited], &none, &["--store", &url]);
    let handle = client.eval("(def a 1)").handle().expect("named");
    not_kept(&client.eval("(def large (map (fn [n] (str n (rand))) (range 20000)))"));
    let mut other = Client::start_stateless(&none, &["--store", &url]);
    let answer = other.call("lisp_eval", json!({"program": "(def c 3)", "session": handle}));
    assert!(!answer.is_error, "{answer:?}");
    let (error, message) = client.fails("(def effect 1)");
    let (before, after) = message.split_once(" since ").unwrap_or_else(|| panic!("{message}"));
    assert_eq!((error.as_str(), before), ("SessionNotKept", "all changes"));
    assert!(
        after.ends_with(
            " UTC could not be kept and are lost: another process has changed the session; nothing was evaluated; \
             the session is as that process left it"
        ),
        "{message}"
    );
    lift_the_limit(&client);
    assert_eq!(client.eval("(+ a c)").text, "4");
    for lost in ["large", "effect"] {
        assert_eq!(client.fails(lost).0, "UnboundVariable", "{lost}");
    }
}
