//! Plans of a program: shown before it runs, approved by a person, and held to when it runs.
#![cfg(unix)]

use std::path::Path;

use crate::mcp_client::{Answer, Client};
use crate::waiting_runs::{
    approvals, configuration, continued, killed_in_hold, lines, listed, printed, refusal, run_of,
};
use serde_json::{Value, json};

fn plan(client: &mut Client, program: &str) -> Answer {
    client.call("lisp_eval", json!({"program": program, "plan": true}))
}

/// The tools of the tests of waiting programs, with a person asked about `notes/add` too, and with `notes/read`.
fn tools(folder: &Path) -> Value {
    let mut configuration = configuration(folder);
    configuration["local"]["notes/read"] = json!({"command": "printf", "args": ["[1, 2]"], "read_only": true});
    configuration["policy"] = json!({"allow": ["notes/hold"], "ask": ["notes/share", "notes/add"]});
    configuration
}

const TWO: &str = "(doseq [n (take 2 (notes/read {}))] (notes/add {:line (str n)})) (notes/share {:line \"s\"})";

#[test]
fn a_plan_is_shown_and_an_approved_one_runs_without_another_question() {
    crate::databases::on_each_store(|store| {
        for isolate in [&[][..], &["--isolate"]] {
            let folder = tempfile::tempdir().expect("a folder");
            let arguments = [&["--store", store], isolate].concat();
            let mut client = Client::start_stateless(&tools(folder.path()), &arguments);
            let answer = plan(&mut client, TWO);
            assert!(!answer.is_error, "{}", answer.text);
            let rule = "`policy.ask` of servers.json has `notes/";
            let shown = format!(
                "notes/add  unannotated  at most 2 calls  ask: {rule}add`\n\
                 notes/read  read_only  at most 1 call  allow: it only reads, by its own account, and \
                 `policy.defaults` is read_only: allow, which is the default\n\
                 notes/share  unannotated  at most 1 call  ask: {rule}share`\n\n\
                 It is approved by the operator (`lispbox approvals show "
            );
            assert!(answer.text.starts_with(&shown), "{}", answer.text);
            let run = run_of(&answer);
            let waits = continued(&mut client, &run);
            let said = "Suspended: the program waits until a person has decided on its plan\n\
                        - notes/add at most 2 calls\n- notes/share at most 1 call\n";
            assert!(waits.text.starts_with(said), "{}", waits.text);

            let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
            let open = |at: usize| (waiting["open"][at]["tool"].clone(), waiting["open"][at]["planned"].clone());
            assert_eq!(waiting["state"], "waiting");
            assert_eq!(open(0), (json!("add"), json!("at most 2 calls")));
            assert_eq!(open(1), (json!("share"), json!("at most 1 call")));
            let shown = printed(&approvals(store, &["show", &run]));
            assert!(shown.contains(TWO), "{shown}");
            let question = "plan 1.1\nA program wants to make at most 2 calls of notes/add, with any arguments.\n";
            assert!(shown.contains(question), "{shown}");
            let refused = refusal(&approvals(store, &["approve", &run, "--session"]));
            assert!(refused.contains("a plan has no arguments for which a grant could hold"), "{refused}");
            printed(&approvals(store, &["approve", &run]));
            assert!(lines(folder.path(), "added").is_empty(), "nothing happens before the client continues");

            let done = continued(&mut client, &run);
            assert!(done.text.starts_with("\"added s\""), "{}", done.text);
            assert_eq!(
                (lines(folder.path(), "added"), lines(folder.path(), "shared")),
                (vec!["1".to_owned(), "2".to_owned()], vec!["s".to_owned()])
            );
            // Once: who continues it again gets the first reply.
            assert_eq!(continued(&mut client, &run).text, done.text);
            assert_eq!(lines(folder.path(), "shared").len(), 1);
            // The consent was for that run alone.
            assert!(client.eval(TWO).text.starts_with("Suspended: "), "it is asked about as before");
            for waiting in listed(store).iter().filter(|run| run["state"] == "waiting") {
                printed(&approvals(store, &["cancel", waiting["run"].as_str().expect("a run")]));
            }
        }
    });
}

#[test]
fn a_part_of_a_plan_can_be_denied_and_a_denied_program_can_catch_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&tools(folder.path()), &["--store", &store]);
    let program = "(notes/add {:line \"a\"}) (try (notes/share {:line \"s\"}) (catch ToolDenied e (ex-message e)))";
    let run = run_of(&plan(&mut client, program));
    printed(&approvals(&store, &["deny", &run, "--call", "1.2", "--reason", "not to others"]));
    let waits = continued(&mut client, &run);
    assert!(waits.text.contains("decided on its plan\n- notes/add"), "{}", waits.text);
    printed(&approvals(&store, &["approve", &run]));
    let done = continued(&mut client, &run);
    assert!(done.text.starts_with("\"added a\"\n\"`notes/share` may not be called: not to others\""), "{}", done.text);
    assert_eq!(lines(folder.path(), "added"), ["a"]);
    assert!(lines(folder.path(), "shared").is_empty());
}

#[test]
fn a_run_whose_session_has_changed_since_it_was_planned_does_not_begin() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start_stateless(&tools(folder.path()), &["--store", store]);
        let defined = client.eval("(defn note [n] (notes/add {:line (str n)}))");
        let session = defined.handle().expect("a session");
        let program = json!({"program": "(note 1)", "session": session, "plan": true});
        let runs = [(); 2].map(|()| run_of(&client.call("lisp_eval", program.clone())));
        runs.iter().for_each(|run| _ = printed(&approvals(store, &["approve", run])));
        let done = continued(&mut client, &runs[0]);
        assert!(done.text.starts_with("\"added 1\""), "{}", done.text);
        client
            .call("lisp_eval", json!({"program": "(def note (fn [n] (notes/add {:line \"x\"})))", "session": session}));
        let refused = continued(&mut client, &runs[1]);
        assert!(refused.text.contains("its session has changed since it was planned"), "{}", refused.text);
        assert_eq!(lines(folder.path(), "added"), ["1"]);
        printed(&approvals(store, &["cancel", &runs[1]]));
    });
}

#[test]
fn the_data_of_a_planned_program_and_the_session_of_a_connection_are_there_when_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start(&tools(folder.path()), &["--store", &store]);
    for (definition, program, expected) in [
        ("", "(def before 1) (notes/add {:line (str (:n data))})", "\"added 7\""),
        ("(def two 2)", "(notes/add {:line (str (+ two before (:n data)))})", "\"added 10\""),
    ] {
        client.eval(definition);
        let arguments = json!({"program": program, "data": {"n": 7}, "plan": true});
        let run = run_of(&client.call("lisp_eval", arguments));
        printed(&approvals(&store, &["approve", &run]));
        let done = continued(&mut client, &run);
        assert!(done.text.starts_with(expected), "{}", done.text);
    }
    // It is the session of the connection, as for a program that was not planned.
    assert!(client.eval("[before two]").text.starts_with("[1 2]"));
}

#[test]
fn a_call_that_was_being_made_when_the_process_died_is_not_made_again() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = tools(folder.path());
        let mut client = Client::start_stateless(&configuration, &["--store", store]);
        let program = "(notes/add {:line \"a\"}) (notes/hold {:line \"b\"}) (notes/add {:line \"c\"})";
        let run = run_of(&plan(&mut client, program));
        printed(&approvals(store, &["approve", &run]));
        let mut client = killed_in_hold(client, &configuration, folder.path(), store, &run);
        let number = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
        let number = number["open"][0]["call"].as_str().expect("a number").to_owned();
        printed(&approvals(store, &["settle", &run, "--call", &number, "--happened", "\"found\""]));
        std::fs::write(folder.path().join("go"), "").expect("written");
        let done = continued(&mut client, &run);
        assert!(done.text.contains("\n\"added c\"\n"), "{}", done.text);
        assert_eq!(lines(folder.path(), "added"), ["a", "c"]);
        assert_eq!(lines(folder.path(), "held"), ["b"]);
    });
}

#[test]
fn the_plan_does_not_cover_what_a_guard_objects_to_and_the_calls_before_it_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut configuration = tools(folder.path());
    configuration["policy"]["guards"] =
        json!([{"tool": "notes/share", "argument": "line", "from": ["program", "user"]}]);
    let mut client = Client::start(&configuration, &["--store", &store]);
    let program = "(notes/add {:line \"a\"})
                   (notes/share {:line \"known-1234\"})
                   (notes/share {:line (str (reduce + (notes/read {})) \"-12345678\")})
                   (notes/add {:line \"b\"})";
    let run = run_of(&client.call("lisp_eval", json!({"program": program, "plan": true})));
    printed(&approvals(&store, &["approve", &run]));
    let answer = continued(&mut client, &run);
    assert!(
        answer.text.starts_with("Suspended: the program waits until a person has decided on 1 call"),
        "{}",
        answer.text
    );
    let shown = printed(&approvals(&store, &["show", &run]));
    assert!(shown.contains("3-12345678") && shown.contains("guards"), "{shown}");
    assert_eq!(lines(folder.path(), "added"), ["a"]);
    printed(&approvals(&store, &["approve", &run]));
    let done = continued(&mut client, &run);
    assert!(done.text.contains("\n\"added b\"\n"), "{}", done.text);
    assert_eq!(lines(folder.path(), "added"), ["a", "b"]);
}

#[test]
fn what_cannot_be_approved_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&tools(folder.path()), &["--store", &store]);
    let any = plan(&mut client, "((resolve (symbol \"notes\" \"add\")) {:line \"a\"})");
    assert!(any.text.ends_with("\n\nIt cannot be approved: the program may call any tool."), "{}", any.text);
    let free = plan(&mut client, "(notes/read {})");
    assert!(free.text.ends_with("\n\nNo tool in it needs approval: call again without `plan`."), "{}", free.text);
    let wrong = plan(&mut client, "(notes/add {:line nowhere})");
    assert!(wrong.is_error && wrong.text.starts_with("UnboundVariable: "), "{}", wrong.text);
    let both = client.call("lisp_eval", json!({"program": "1", "plan": true, "rehearse": true}));
    assert!(both.text.contains("`rehearse` and `plan` exclude each other"), "{}", both.text);
    let text = client.call("lisp_eval", json!({"program": "1", "plan": "yes"}));
    assert!(text.text.contains("argument `plan` of `lisp_eval`: expected true or false, got"), "{}", text.text);
    assert!(listed(&store).is_empty(), "nothing is kept of those");

    let mut client = Client::start(&tools(folder.path()), &[]);
    let shown = plan(&mut client, "(notes/add {:line \"a\"})");
    assert!(shown.text.ends_with("\n\nIt cannot be approved: the server has no `--store`."), "{}", shown.text);
    assert!(lines(folder.path(), "added").is_empty());
}

#[test]
fn the_record_has_the_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&tools(folder.path()), &["--reply", "structured"]);
    let answer = plan(&mut client, "(notes/add {:line \"a\"})");
    let call = &answer.record["plan"]["calls"][0];
    let expected = json!({"server": "notes", "tool": "add", "effect": "unannotated", "most": 1, "decision": "ask",
        "rule": "`policy.ask` of servers.json has `notes/add`", "guards": []});
    assert_eq!(*call, expected, "{}", answer.record);
}
