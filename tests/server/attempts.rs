//! Further attempts of programs that ended at a limit, or at a tool that failed.
#![cfg(unix)]

use serde_json::json;

use crate::failed_runs::{configuration, go_on};
use crate::mcp_client::Client;
use crate::waiting_runs::{lines, run_of};

#[test]
fn calls_that_an_earlier_attempt_has_made_do_not_count_towards_the_limit() {
    for options in [&[][..], &["--isolate"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = [options, &["--limit", "calls=4"]].concat();
        let mut client = Client::start(&configuration(folder.path()), &options);
        let program = "(doseq [n (range 10)] (notes/add {:line (str n)}))";
        let mut answer = client.eval(program);
        for added in [4, 8] {
            assert!(answer.text.contains("limit `calls` exceeded: 5 tool calls, allowed 4"), "{}", answer.text);
            assert_eq!(lines(folder.path(), "added").len(), added);
            let run = run_of(&answer);
            answer = go_on(&mut client, &run, program);
        }
        assert!(answer.text.contains("[8 calls answered from earlier attempts]"), "{}", answer.text);
        let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(lines(folder.path(), "added"), expected);
    }
}

#[test]
fn a_call_that_fails_is_named_with_its_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &[]);
    let failed = client.eval("(doseq [n (range 3)] (notes/add {:line (str n)}) (notes/try {:line (str \"try \" n)}))");
    let expected = "2 tool calls, 1 failed: notes/try :line \"try 0\" (";
    assert!(failed.text.contains(expected), "{}", failed.text);
    let run = run_of(&failed);
    std::fs::write(folder.path().join("ready"), "").expect("written");
    let arguments = json!({"run": run, "program": "(notes/add {:line \"0\"}) (notes/try {:line \"try 0\"})"});
    let done = client.call("lisp_eval", arguments);
    assert!(!done.is_error, "{}", done.text);
    assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "tried").len()), (1, 1));
}

#[test]
fn an_atom_that_loses_what_a_failed_form_has_put_into_it_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &[]);
    let program = "(def log (atom [])) (def other (atom 0)) (swap! log conj 0) (do (swap! log conj 1) (/ 1 0))";
    let failed = client.eval(program);
    let note = "note: `log` is as it was before the form that failed";
    assert!(failed.text.contains(note), "{}", failed.text);
    assert_eq!(client.eval("[@log @other]").text, "[[0] 0]");
    let both = client.eval("(do (swap! log conj 1) (swap! other inc) (assert false))");
    let note = "note: `log`, `other` are as they were before the form that failed";
    assert!(both.text.contains(note), "{}", both.text);
    // A form that makes the atom leaves nothing behind that could be misread.
    assert!(!client.eval("(let [mine (atom 0)] (swap! mine inc) (/ 1 0))").text.contains("note: "));
}
