//! Calls of which it is not known whether they were carried out: what is said of them, and that none is made twice unasked.
#![cfg(unix)]

use std::path::Path;

use crate::failed_runs::{go_on, on_each};
use crate::http_client::Server;
use crate::mcp_client::{Client, until};
use crate::waiting_runs::{lines, run_of};
use serde_json::{Value, json};

/// The tools of `failed_runs`, and: `notes/late` appends a line and fails with words that leave it open, `notes/killed`
/// appends a line and is killed, `notes/busy` fails with words by which nothing was done until the file `ready` is there, and
/// `notes/slow` takes longer than the most impatient clients.
pub fn configuration(folder: &Path) -> Value {
    let mut configuration = crate::failed_runs::configuration(folder);
    let line = json!({"properties": {"line": {"type": "string"}}, "required": ["line"]});
    let append = "printf '%s\\n' \"$1\" >> \"$0\"; ";
    for (name, script) in [
        ("late", "echo '504 gateway timeout: the request was passed on'; exit 1"),
        ("killed", "kill -9 $$"),
        ("slow", "sleep 4; printf 'added %s' \"$1\""),
        ("busy", "printf 'added %s' \"$1\""),
    ] {
        let busy = "if [ ! -e \"$2\" ]; then echo '503 unavailable; nothing was done'; exit 1; fi; ";
        let script = format!("{}{append}{script}", if name == "busy" { busy } else { "" });
        let arguments = json!(["-c", script, folder.join(name), "{line}", folder.join("ready")]);
        configuration["local"][format!("notes/{name}")] =
            json!({"command": "sh", "args": arguments, "parameters": line, "destructive": true});
    }
    configuration["policy"]["allow"] = json!(["notes/*"]);
    configuration
}

#[test]
fn an_error_that_leaves_it_open_is_an_unknown_outcome() {
    for tool in ["late", "killed"] {
        on_each(&configuration, |client, folder, _| {
            let program = format!("(notes/add {{:line \"a\"}}) (notes/{tool} {{:line \"b\"}})");
            let failed = client.eval(&program);
            let named = format!(
                "\n[not known whether made: notes/{tool} {{\"line\":\"b\"}}; look whether it was: the run stops there, \
                 `\"repeat\": true` makes it again]"
            );
            assert!(failed.is_error && failed.text.contains(&named), "{}", failed.text);
            let run = run_of(&failed);
            let stopped = go_on(client, &run, &program);
            assert!(stopped.text.starts_with("EffectRepeated: an earlier attempt has sent "), "{}", stopped.text);
            let left_out = go_on(client, &run, "(notes/add {:line \"a\"})");
            assert!(left_out.text.contains("[made before and not asked for now: notes/"), "{}", left_out.text);
            assert_eq!((lines(folder, "added"), lines(folder, tool)), (vec!["a".to_owned()], vec!["b".to_owned()]));
        });
    }
}

#[test]
fn a_call_of_unknown_outcome_that_is_made_again_is_not_one_that_was_left_out() {
    on_each(&configuration, |client, folder, _| {
        let program = "(try (notes/late {:line \"b\"}) (catch Exception e 1))";
        let run = run_of(&client.eval(&format!("{program} (/ 1 0)")));
        let again = client.call("lisp_eval", json!({"run": run, "program": program, "repeat": true}));
        assert!(!again.is_error && !again.text.contains("not asked for now"), "{}", again.text);
        assert_eq!(lines(folder, "late"), ["b", "b"]);
    });
}

#[test]
fn an_error_by_which_nothing_was_done_is_no_doubt() {
    on_each(&configuration, |client, folder, _| {
        let program = "(notes/add {:line \"a\"}) (notes/busy {:line \"b\"})";
        let failed = client.eval(program);
        assert!(!failed.text.contains("not known"), "{}", failed.text);
        std::fs::write(folder.join("ready"), "").expect("written");
        let done = go_on(client, &run_of(&failed), program);
        assert!(!done.is_error, "{}", done.text);
        assert_eq!((lines(folder, "added"), lines(folder, "busy")), (vec!["a".to_owned()], vec!["b".to_owned()]));
    });
}

#[test]
fn settled_items_of_unknown_outcome_are_not_repeated() {
    on_each(&configuration, |client, folder, _| {
        let session = client.eval("(def out (all-settled #(notes/late {:line %}) [\"a\"])) out");
        assert!(session.text.contains("1 unknown: a ("), "{}", session.text);
        let again = json!({"program": "(all-settled #(notes/late {:line %}) out)", "session": session.handle()});
        let again = client.call("lisp_eval", again);
        let note = "note: all-settled was given its outcomes back (1), of which none has failed without a change, and called `f` for none";
        assert!(again.text.contains(note), "{}", again.text);
        assert_eq!(lines(folder, "late"), ["a"]);
    });
}

#[test]
fn a_program_that_goes_on_without_the_outcome_of_a_call_says_so_and_the_call_is_not_made_twice_unasked() {
    on_each(&configuration, |client, folder, _| {
        let done = client.eval("(try (notes/late {:line \"b\"}) (catch Exception e 1))");
        let named =
            "\n[not known whether made: notes/late {\"line\":\"b\"}; look whether it was before you make it again]";
        assert!(!done.is_error && done.text.contains(named), "{}", done.text);
        assert!(!done.text.contains("made before"), "{}", done.text);
        let stopped = client.eval("(notes/late {:line \"b\"}) 2");
        let why = "EffectRepeated: notes/late {\"line\":\"b\"} was sent ";
        assert!(stopped.text.starts_with(why), "{}", stopped.text);
        assert!(
            stopped.text.contains("did not learn whether it was carried out, so nothing was sent"),
            "{}",
            stopped.text
        );
        assert_eq!(lines(folder, "late"), ["b"]);
        client.eval("(notes/late {:line \"b\"}) 2");
        assert_eq!(lines(folder, "late"), ["b", "b"], "it is stopped once");
    });
}

#[test]
fn a_slow_program_that_is_sent_again_as_it_is_is_stopped_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &[]);
    let program = "(notes/slow {:line \"b\"})";
    assert!(!client.eval(program).is_error);
    let stopped = client.eval(program);
    assert!(stopped.text.starts_with("EffectRepeated: notes/slow {\"line\":\"b\"} was made "), "{}", stopped.text);
    assert!(stopped.text.contains("by this same program, which has ended well"), "{}", stopped.text);
    assert_eq!(lines(folder.path(), "slow").len(), 1);
    for count in 2..4 {
        let meant = client.eval(program);
        assert!(!meant.is_error, "it was stopped before: {}", meant.text);
        assert_eq!(lines(folder.path(), "slow").len(), count);
    }
}

#[test]
fn a_reply_that_is_lost_with_its_connection_is_told_of_in_the_next_one_of_its_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = folder.path().join("servers.json");
    std::fs::write(&servers, configuration(folder.path()).to_string()).expect("written");
    let server = Server::start(&["--config", &servers.to_string_lossy()], &[]);
    let session = server.client.initialize("", "2025-11-25").expect("a session");
    assert_eq!(session.eval("1").0.lines().next(), Some("1"), "the host is known from now on");
    let program = "(notes/add {:line \"a\"}) (notes/hold {:line \"b\"})";
    let mut connection = server.client.connect();
    connection.begin_post(&session.head(), &crate::http_client::evaluation(7, program));
    until(|| lines(folder.path(), "held") == ["b"]);
    drop(connection);
    std::fs::write(folder.path().join("go"), "").expect("written");
    let (next, _) = session.eval("(+ 1 2)");
    assert!(
        next.starts_with("[made before a program was cut off: notes/add once, notes/hold once; {\"run\": "),
        "{next}"
    );
    let (stopped, is_error) = session.eval(program);
    assert!(is_error && stopped.starts_with("EffectRepeated: notes/add "), "{stopped}");
    assert_eq!((lines(folder.path(), "added"), lines(folder.path(), "held")), (vec!["a".into()], vec!["b".into()]));
}
