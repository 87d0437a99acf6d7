//! Rehearsals: calls that may change something are shown instead of made, and made once when a person has approved them.
#![cfg(unix)]

use std::path::Path;

use crate::mcp_client::{Answer, Client};
use crate::waiting_runs::{
    approvals, configuration, continued, kill, killed_in_hold, lines, listed, printed, refusal, run_of,
};
use serde_json::{Value, json};

/// The tools of the tests of waiting programs, with `notes/read`, which reads, and `notes/never`, which is denied.
fn tools(folder: &Path) -> Value {
    let mut configuration = configuration(folder);
    configuration["local"]["notes/read"] = json!({"command": "printf", "args": ["[1, 2]"], "read_only": true});
    configuration["local"]["notes/never"] = json!({"command": "true"});
    configuration["policy"]["deny"] = json!(["notes/never"]);
    configuration
}

fn rehearse(client: &mut Client, program: &str) -> Answer {
    client.call("lisp_eval", json!({"program": program, "rehearse": true}))
}

const THREE: &str = "(def seen (notes/read {}))
                     (notes/add {:line (str \"a\" (first seen))})
                     (pmap (fn [n] (notes/share {:line (str \"s\" n)})) seen)
                     (count seen)";

#[test]
fn a_rehearsal_makes_no_call_that_changes_something_and_each_is_made_once_when_it_is_approved() {
    crate::databases::on_each_store(|store| {
        for isolate in [&[][..], &["--isolate"]] {
            let folder = tempfile::tempdir().expect("a folder");
            let arguments = [&["--store", store], isolate].concat();
            let configuration = tools(folder.path());
            let mut client = Client::start(&configuration, &arguments);
            let answer = rehearse(&mut client, THREE);
            assert!(!answer.is_error, "{}", answer.text);
            let calls = "\n2\nrehearsed: 3 calls were not made\n\n\
                call 1: notes/add with\n{\n  \"line\": \"a1\"\n}\n\n\
                call 2: notes/share with\n{\n  \"line\": \"s1\"\n}\n\n\
                call 3: notes/share with\n{\n  \"line\": \"s2\"\n}\n\n\
                They are made once the operator has decided on each (`lispbox approvals show ";
            assert!(answer.text.contains(calls), "{}", answer.text);
            let (code, _) = client.fails("seen");
            assert_eq!(code, "UnboundVariable", "the session has not changed");
            let run = run_of(&answer);
            let waiting = continued(&mut client, &run);
            assert!(waiting.text.contains("waits until a person has decided on 3 calls"), "{}", waiting.text);
            assert!(lines(folder.path(), "added").is_empty() && lines(folder.path(), "shared").is_empty());
            kill(&mut client, folder.path(), store);

            let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
            assert_eq!(waiting["state"], "waiting");
            let shown = printed(&approvals(store, &["show", &run]));
            assert!(shown.contains("(notes/add {:line (str \"a\" (first seen))})"), "{shown}");
            assert!(
                shown.contains("call 1.2\nA program wants to call notes/share with\n{\n  \"line\": \"s1\"\n}"),
                "{shown}"
            );
            printed(&approvals(store, &["deny", &run, "--call", "1.2", "--reason", "not that one"]));
            let said = printed(&approvals(store, &["approve", &run]));
            assert!(said.contains("call 1.3 of notes/share: approved\nnothing is open"), "{said}");

            let mut client = Client::start_stateless(&configuration, &arguments);
            let done = continued(&mut client, &run);
            let outcomes = "[{:result \"added a1\"} {:denied \"`notes/share` may not be called: not that one\"} \
                {:result \"added s2\"}]";
            assert!(done.text.starts_with(outcomes), "{}", done.text);
            assert_eq!(continued(&mut client, &run).text, done.text, "the first outcome");
            assert_eq!(
                (lines(folder.path(), "added"), lines(folder.path(), "shared")),
                (vec!["a1".to_owned()], vec!["s2".to_owned()])
            );
        }
    });
}

#[test]
fn a_call_that_was_being_made_when_the_process_died_is_not_made_again() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = tools(folder.path());
        let mut client = Client::start_stateless(&configuration, &["--store", store]);
        let program = "(notes/add {:line \"a\"}) (notes/hold {:line \"b\"}) (notes/add {:line \"c\"})";
        let run = run_of(&rehearse(&mut client, program));
        printed(&approvals(store, &["approve", &run]));
        let mut client = killed_in_hold(client, &configuration, folder.path(), store, &run);
        printed(&approvals(store, &["settle", &run, "--call", "1.2", "--happened", "\"found\""]));
        std::fs::write(folder.path().join("go"), "").expect("written");
        let done = continued(&mut client, &run);
        let outcomes = "[{:result \"added a\"} {:result \"found\"} {:result \"added c\"}]";
        assert!(done.text.starts_with(outcomes), "{}", done.text);
        assert_eq!(
            (lines(folder.path(), "added"), lines(folder.path(), "held")),
            (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()])
        );
    });
}

#[test]
fn what_fails_in_earnest_fails_in_a_rehearsal_and_a_rehearsal_that_fails_is_not_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&tools(folder.path()), &["--store", &store]);
    for (program, code) in [
        ("(notes/add {:line \"a\"}) (notes/never {})", "ToolDenied"),
        ("(notes/add {:line \"a\"}) (notes/add {})", "ToolArgumentError"),
        ("(notes/add {:line (notes/add {:line \"a\"})})", "RehearsedResult"),
        ("(if (notes/add {:line \"a\"}) 1 2)", "RehearsedResult"),
        ("(def a 1) (notes/add {:line \"a\"}) (session/fork)", "NoSession"),
    ] {
        let answer = rehearse(&mut client, program);
        assert!(answer.is_error && answer.text.contains(code), "{program}: {}", answer.text);
        assert!(answer.text.contains("call 1: notes/add with\n{\n  \"line\": \"a\"\n}"), "{}", answer.text);
        assert!(answer.text.contains("They cannot be made: the program did not come to its end."), "{}", answer.text);
    }
    assert!(listed(&store).is_empty());
    assert!(lines(folder.path(), "added").is_empty());
    let nothing = rehearse(&mut client, "(notes/read {})");
    assert!(
        nothing.text.contains("rehearsed: the program makes no call that may change something"),
        "{}",
        nothing.text
    );
}

#[test]
fn the_arguments_that_are_approved_are_those_that_are_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut configuration = tools(folder.path());
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    // Corrected to fit the schema; the text has all that has to be escaped.
    let run =
        run_of(&rehearse(&mut client, "(notes/add {:LINE \"a \\\"b\\\" \\\\ \\u0007 ü {x}\"}) (notes/add {:line 7})"));
    let shown = printed(&approvals(&store, &["show", &run]));
    assert!(shown.contains("\"line\": \"7\""), "{shown}");
    printed(&approvals(&store, &["approve", &run]));
    assert!(continued(&mut client, &run).text.starts_with("[{:result "));
    assert_eq!(lines(folder.path(), "added"), ["7", "a \"b\" \\ \u{7} ü {x}"]);

    let run = run_of(&rehearse(&mut client, "(notes/add {:line 8})"));
    printed(&approvals(&store, &["approve", &run]));
    kill(&mut client, folder.path(), &store);
    // With this schema the same call has other arguments.
    configuration["local"]["notes/add"]["parameters"]["properties"]["line"] = json!({"type": "integer"});
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    let asked = continued(&mut client, &run);
    assert!(
        asked.text.starts_with("Suspended: the program waits until a person has decided on 1 call"),
        "{}",
        asked.text
    );
    assert_eq!(lines(folder.path(), "added").len(), 2, "it was not made");
    let shown = printed(&approvals(&store, &["show", &run]));
    assert!(shown.contains("\"line\": 8"), "{shown}");
    let cancelled = printed(&approvals(&store, &["cancel", &run]));
    assert!(cancelled.contains("its open calls are not made"), "{cancelled}");
    assert!(refusal(&approvals(&store, &["approve", &run])).contains("nothing was changed"));
}

#[test]
fn without_a_store_the_calls_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&tools(folder.path()), &[]);
    client.eval("(def x 1)");
    let answer = rehearse(&mut client, "(notes/add {:line (str x)}) (def x 2)");
    assert!(answer.text.contains("call 1: notes/add with\n{\n  \"line\": \"1\"\n}"), "{}", answer.text);
    assert!(answer.text.contains("They cannot be made later: the server has no `--store`."), "{}", answer.text);
    assert!(client.eval("x").text.starts_with('1'), "the session has not changed");
    let wrong = client.call("lisp_eval", json!({"program": "1", "rehearse": "yes"}));
    assert!(
        wrong.text.contains("argument `rehearse` of `lisp_eval`: expected true or false, got the string"),
        "{}",
        wrong.text
    );
}
