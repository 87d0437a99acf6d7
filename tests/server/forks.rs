//! Copies of a session that a program makes in a form that waits: they are those of its end, as if it had not waited.
#![cfg(unix)]

use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{
    approvals, configuration, continued, continued_once_free, keyed, kill, lines, printed, run_of,
};
use serde_json::json;

/// Programs that fork their session, with what the copy evaluates `(str a b)` to.
const PROGRAMS: [(&str, &str); 4] = [
    ("(def b 2) (do (def a 1) (def copy (session/fork)) (notes/share {:line \"x\"}) copy)", "12"),
    ("(def b 2) (do (def copy (session/fork)) (notes/share {:line \"x\"}) (def a 1) copy)", "12"),
    ("(def copy (session/fork)) (def a 1) (do (notes/share {:line \"x\"}) (def b 2)) copy", "12"),
    (
        "(do (def copy (session/fork)) (def a 1)) (do (notes/share {:line \"x\"}) (def b 1))
         (do (notes/share {:line \"y\"}) (def b 2)) copy",
        "12",
    ),
];

/// Evaluates in the session whose handle is the value of an answer.
fn in_copy(client: &mut Client, answer: &Answer) -> String {
    assert!(!answer.is_error, "{}", answer.text);
    let handle = answer.text.lines().last().expect("a line");
    let handle = answer.text.lines().find(|line| line.starts_with('"')).unwrap_or(handle).trim_matches('"').to_owned();
    let answer = client.call("lisp_eval", json!({"program": "(str a b)", "session": handle}));
    answer.text.lines().next().unwrap_or_default().trim_matches('"').to_owned()
}

#[test]
fn a_copy_that_is_made_in_a_form_that_waits_is_that_of_the_end() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let waits = configuration(folder.path());
        let mut allows = waits.clone();
        allows["policy"] = json!({"allow": ["notes/*"]});
        for (program, expected) in PROGRAMS {
            // Without a wait.
            let mut client = Client::start_stateless(&allows, &["--store", store]);
            let answer = client.eval(program);
            assert_eq!(in_copy(&mut client, &answer), expected, "{program}");
            for isolate in [&[][..], &["--isolate"]] {
                let arguments = [&["--store", store], isolate].concat();
                let mut clients = [0, 1].map(|_| Client::start_stateless(&waits, &arguments));
                let mut answer = clients[0].eval(program);
                for round in 1.. {
                    if !answer.text.starts_with("Suspended: ") {
                        break;
                    }
                    let run = run_of(&answer);
                    printed(&approvals(store, &["approve", &run]));
                    answer = continued(&mut clients[round % 2], &run);
                }
                assert_eq!(in_copy(&mut clients[0], &answer), expected, "{isolate:?}: {program}");
            }
        }
    });
}

#[test]
fn a_copy_is_made_though_the_process_died_that_promised_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let configuration = configuration(folder.path());
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    let program = "(def b 2) (def copy (session/fork)) (def a 1) (notes/hold {:line \"x\"}) copy";
    let call = keyed("a copy", json!({"program": program}));
    client.begin("tools/call", call.clone());
    until(|| lines(folder.path(), "held") == ["x"]);
    let run = crate::waiting_runs::listed(&store)[0]["run"].as_str().expect("a run").to_owned();
    kill(&mut client, folder.path(), &store);
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    let answer = continued_once_free(&mut client, &run);
    assert!(answer.text.contains("until a person has found out whether 1 call happened"), "{}", answer.text);
    let open = crate::waiting_runs::listed(&store)[0]["open"][0]["call"].as_str().expect("a call").to_owned();
    printed(&approvals(&store, &["settle", &run, "--call", &open, "--happened", "1"]));
    let answer = Answer::of(&client.request("tools/call", call));
    assert_eq!(in_copy(&mut client, &answer), "12");
}

#[test]
fn without_a_store_a_copy_is_made_when_the_program_that_waits_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    for (program, expected) in PROGRAMS {
        let mut meta = crate::meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        let mut call = json!({"name": "lisp_eval", "arguments": {"program": program}, "_meta": meta});
        let answer = loop {
            let result = client.request("tools/call", call.clone());
            let Some(state) = result["result"].get("requestState").cloned() else { break Answer::of(&result) };
            let asked = result["result"]["inputRequests"].as_object().expect("questions").clone();
            let yes = json!({"action": "accept", "content": {"allow": true}});
            call["inputResponses"] = asked.keys().map(|key| (key.clone(), yes.clone())).collect();
            call["requestState"] = state;
        };
        assert_eq!(in_copy(&mut client, &answer), expected, "{program}");
    }
}
