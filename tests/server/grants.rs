//! Grants: decisions of a person that cover later calls of a tool.
#![cfg(unix)]

use std::path::Path;

use crate::http_client::{Server, tokens_file};
use crate::mcp_client::{Answer, Client};
use crate::waiting_runs::{approvals, configuration, continued, lines, listed, printed, refusal, run_of};
use serde_json::{Value, json};

/// The code of an answer with an error.
fn code(answer: &Answer) -> &str {
    answer.record["error"].as_str().unwrap_or_default()
}

/// Suspends a program of that client, and approves its first open call with these options.
fn approve(client: &mut Client, store: &str, program: &str, options: &[&str]) -> String {
    let run = run_of(&client.eval(program));
    let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
    let number = waiting["open"][0]["call"].as_str().expect("a number").to_owned();
    let said = printed(&approvals(store, &[&["approve", &run, "--call", &number], options].concat()));
    let answer = continued(client, &run);
    assert!(!answer.is_error, "{}", answer.text);
    said
}

fn grants(store: &str) -> Vec<Value> {
    let text = printed(&approvals(store, &["grants", "--json"]));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn shared(folder: &Path) -> Vec<String> {
    lines(folder, "shared")
}

#[test]
fn a_grant_covers_its_number_of_calls_in_all_processes_and_sessions() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let start = || Client::start_stateless(&configuration, &["--store", store]);
        let (mut one, mut two) = (start(), start());

        let said = approve(&mut one, store, "(notes/share {:line \"a\"})", &["--count", "3"]);
        let (_, grant) = said.split_once("\ngrant ").unwrap_or_else(|| panic!("no grant: {said}"));
        assert!(grant.contains(": notes/share: 3 calls, for 60 min (`lispbox approvals`, by ann)"), "{grant}");

        // Calls of parallel branches and of another process count alike.
        let program = "(pmap (fn [line] (notes/share {:line line})) [\"b\" \"c\"])";
        assert_eq!(one.eval(program).text.lines().next(), Some("(\"added b\" \"added c\")"));
        assert_eq!(grants(store)[0]["left"], json!(1));
        assert_eq!(two.eval("(notes/share {:line \"d\"})").text.lines().next(), Some("\"added d\""));
        assert!(grants(store).is_empty(), "its calls are used up");
        assert!(two.eval("(notes/share {:line \"e\"})").text.starts_with("Suspended: "));
        assert_eq!(shared(folder.path()), ["a", "b", "c", "d"]);
    });
}

#[test]
fn a_grant_for_a_session_covers_the_same_arguments_alone() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        // A connection with a session of its own.
        let mut client = Client::start(&configuration, &["--store", store]);
        let said = approve(&mut client, store, "(notes/share {:line \"a\"})", &["--session"]);
        assert!(said.contains("any number of calls in one session with {\"line\":\"a\"}, for 7 days"), "{said}");
        assert_eq!(client.eval("(notes/share {:line \"a\"})").text.lines().next(), Some("\"added a\""));
        assert!(client.eval("(notes/share {:line \"b\"})").text.starts_with("Suspended: "), "other arguments");
        let mut other = Client::start(&configuration, &["--store", store]);
        assert!(other.eval("(notes/share {:line \"a\"})").text.starts_with("Suspended: "), "another session");
        assert_eq!(shared(folder.path()), ["a", "a"]);
    });
}

#[test]
fn a_grant_ends_with_its_time_and_when_it_is_revoked() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", store]);
        approve(&mut client, store, "(notes/share {:line \"a\"})", &["--for", "1h"]);
        assert_eq!(client.eval("(notes/share {:line \"b\"})").text.lines().next(), Some("\"added b\""));
        let grant = grants(store)[0]["grant"].as_str().expect("a grant").to_owned();
        assert_eq!(printed(&approvals(store, &["revoke", &grant[..8]])), format!("{grant} is revoked\n"));
        assert!(client.eval("(notes/share {:line \"c\"})").text.starts_with("Suspended: "), "it is revoked");
        let again = refusal(&approvals(store, &["revoke", &grant]));
        assert!(again.contains(&format!("there is no grant `{grant}`")), "{again}");

        approve(&mut client, store, "(notes/share {:line \"d\"})", &["--for", "1s"]);
        crate::mcp_client::until(|| grants(store).is_empty());
        assert!(client.eval("(notes/share {:line \"e\"})").text.starts_with("Suspended: "), "it has ended");
        let refused = refusal(&approvals(store, &["approve", "x", "--call", "1.1", "--for", "31d"]));
        assert!(refused.contains("a grant lasts for at most 30 days"), "{refused}");
        assert_eq!(shared(folder.path()), ["a", "b", "d"]);
    });
}

#[test]
fn a_grant_is_for_one_principal_and_never_for_a_denied_tool() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let names = json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"});
        let tokens = tokens_file(folder.path(), &names).display().to_string();
        let file = folder.path().join("servers.json");
        let cache = folder.path().join("cache").display().to_string();
        let start = |configuration: &Value| {
            std::fs::write(&file, configuration.to_string()).expect("it can be written");
            let file = file.display().to_string();
            let arguments = ["--config", &file, "--tokens", &tokens, "--store", store];
            Server::start(&arguments, &[("LISPBOX_CACHE", &cache)])
        };
        let mut denying = configuration(folder.path());
        let server = start(&denying);
        let eval = |server: &Server, who: &str, program: &str| {
            let token = format!("Authorization: Bearer {who}-{who}-{who}-{who}-{who}\r\n");
            Answer::of(&server.call(&token, "lisp_eval", json!({"program": program})).message())
        };
        let run = run_of(&eval(&server, "ann", "(notes/share {:line \"a\"})"));
        let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
        let number = waiting["open"][0]["call"].as_str().expect("a number").to_owned();
        printed(&approvals(store, &["approve", &run, "--call", &number, "--for", "1h"]));
        assert_eq!(eval(&server, "ann", "(notes/share {:line \"b\"})").text.lines().next(), Some("\"added b\""));
        assert!(eval(&server, "bob", "(notes/share {:line \"c\"})").text.starts_with("Suspended: "));
        drop(server);
        denying["policy"] = json!({"deny": ["notes/share"]});
        let server = start(&denying);
        let denied = eval(&server, "ann", "(notes/share {:line \"d\"})");
        assert_eq!(code(&denied), "ToolDenied", "{}", denied.text);
        assert_eq!(shared(folder.path()), ["b"]);
    });
}

/// The configuration in which a person is asked about `notes/add` too.
fn asking_about_both(folder: &Path) -> Value {
    let mut configuration = configuration(folder);
    configuration["policy"] = json!({"ask": ["notes/share", "notes/add"]});
    configuration
}

/// A program whose call of `notes/share` waits because of that of `notes/add`.
fn both(line: &str) -> String {
    let of_tool = format!("(if (= tool :share) (notes/share {{:line \"{line}\"}}) (notes/add {{:line \"{line}\"}}))");
    format!("(pmap (fn [tool] (try {of_tool} (catch ToolDenied e :no))) [:share :add])")
}

#[test]
fn a_grant_is_checked_again_after_a_wait_and_counted_when_the_call_is_sent() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = asking_about_both(folder.path());
        let start = || Client::start_stateless(&configuration, &["--store", store]);
        let (mut client, mut other) = (start(), start());
        // Each way in which a grant ends while its program waits, and one in which it does not.
        let ends: [(&[&str], &str); 4] = [
            (&["--for", "1h"], "revoked"),
            (&["--for", "1s"], "expired"),
            (&["--count", "1"], "used up"),
            (&["--count", "1"], "there"),
        ];
        let mut expected: Vec<String> = Vec::new();
        for (options, end) in ends {
            let (first, line) = (format!("{end}: first"), format!("{end}: second"));
            approve(&mut client, store, &format!("(notes/share {{:line \"{first}\"}})"), options);
            expected.push(first);
            // The shortest has expired already on a slow machine.
            let given = grants(store).first().and_then(|grant| grant["grant"].as_str()).map(str::to_owned);
            let run = run_of(&client.eval(&both(&line)));
            assert_eq!((lines(folder.path(), "shared"), lines(folder.path(), "added").len()), sorted(&expected));
            let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
            if let Some(grant) = given.as_ref().filter(|_| end != "expired") {
                let open = (&waiting["open"][0]["tool"], &waiting["open"][1]);
                assert_eq!(open, (&json!("add"), &Value::Null), "{end}");
                let shown = printed(&approvals(store, &["show", &run]));
                let note =
                    format!("call 1.1: no decision is needed, grant {grant} covers it (`lispbox approvals`, by ann)");
                assert!(shown.contains(&note), "{shown}");
                assert_eq!(waiting["covered"][0]["tool"], "share", "{waiting}");
            }
            match end {
                "revoked" => assert_eq!(printed(&approvals(store, &["revoke", "--all"])), is_revoked(&given)),
                "expired" => crate::mcp_client::until(|| grants(store).is_empty()),
                "used up" => {
                    let by_another = other.eval("(notes/share {:line \"by another\"})");
                    assert_eq!(by_another.text.lines().next(), Some("\"added by another\""));
                    expected.push("by another".to_owned());
                }
                _ => {}
            }
            let open = waiting["open"].as_array().expect("calls").iter().find(|call| call["tool"] == "add");
            let number = open.and_then(|call| call["call"].as_str()).expect("it is asked about");
            printed(&approvals(store, &["approve", &run, "--call", number]));
            let answer = continued(&mut client, &run);
            if end != "there" {
                assert!(answer.text.starts_with("Suspended: "), "{end}: {}", answer.text);
                assert_eq!((lines(folder.path(), "shared"), 0), (sorted(&expected).0, 0), "{end}");
                // Whoever refuses everything refuses this too.
                printed(&approvals(store, &["deny", &run]));
                let answer = continued(&mut client, &run);
                assert!(answer.text.starts_with(&format!("(:no \"added {line}\")")), "{end}: {}", answer.text);
                std::fs::remove_file(folder.path().join("added")).expect("it was made");
            } else {
                assert!(answer.text.starts_with(&format!("(\"added {line}\" ")), "{}", answer.text);
                expected.push(line);
                assert!(grants(store).is_empty(), "it is used up");
            }
            assert_eq!(lines(folder.path(), "shared"), sorted(&expected).0, "{end}");
        }
    });
}

#[test]
fn a_call_that_was_made_under_a_grant_stays_made_when_the_grant_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&asking_about_both(folder.path()), &["--store", &store]);
    approve(&mut client, &store, "(notes/share {:line \"first\"})", &["--for", "1h"]);
    let program = "(str (notes/share {:line \"second\"}) \", \" (notes/add {:line \"third\"}))";
    let run = run_of(&client.eval(program));
    assert_eq!(shared(folder.path()), ["first", "second"], "the grant covers it");
    printed(&approvals(&store, &["revoke", "--all"]));
    printed(&approvals(&store, &["approve", &run]));
    let answer = continued(&mut client, &run);
    assert!(answer.text.starts_with("\"added second, added third\""), "{}", answer.text);
    assert_eq!((shared(folder.path()).len(), lines(folder.path(), "added").len()), (2, 1));
}

fn sorted(expected: &[String]) -> (Vec<String>, usize) {
    let mut expected = expected.to_vec();
    expected.sort();
    (expected, 0)
}

fn is_revoked(grant: &Option<String>) -> String {
    grant.as_ref().map_or(String::new(), |grant| format!("{grant} is revoked\n"))
}

#[test]
fn denying_all_calls_of_a_program_denies_those_that_a_grant_covers() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&asking_about_both(folder.path()), &["--store", &store]);
    approve(&mut client, &store, "(notes/share {:line \"a\"})", &["--for", "1h"]);
    let run = run_of(&client.eval(&both("b")));
    printed(&approvals(&store, &["deny", &run]));
    assert_eq!(continued(&mut client, &run).text.lines().next(), Some("(:no :no)"));
    assert_eq!(shared(folder.path()), ["a"]);
}

#[test]
fn the_audit_record_of_a_call_by_a_grant_names_the_grant() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let audit = folder.path().join("audit");
    let arguments = ["--store", &store, "--audit", audit.to_str().expect("a path")];
    let mut client = Client::start_stateless(&asking_about_both(folder.path()), &arguments);
    approve(&mut client, &store, "(notes/share {:line \"a\"})", &["--for", "1h"]);
    let grant = grants(&store)[0]["grant"].as_str().expect("a grant").to_owned();
    // Once at once, and once after a wait.
    assert_eq!(client.eval("(notes/share {:line \"b\"})").text.lines().next(), Some("\"added b\""));
    let run = run_of(&client.eval(&both("c")));
    printed(&approvals(&store, &["approve", &run]));
    assert!(continued(&mut client, &run).text.starts_with("(\"added c\" \"added c\")"));
    let files = std::fs::read_dir(&audit).expect("a folder").flatten().map(|file| file.path());
    let files = files.filter(|file| file.extension().is_some_and(|ext| ext == "jsonl"));
    let records: Vec<Value> = files
        .map(|file| std::fs::read_to_string(file).expect("text"))
        .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>())
        .collect();
    let rules = |kind: &str| -> Vec<String> {
        let of_tool = records.iter().filter(|record| record["kind"] == kind && record["tool"] == "share");
        let made = of_tool.filter(|record| kind == "intent" || record["outcome"] == "ok");
        made.map(|record| record["rule"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let rule = "`policy.ask` of servers.json has `notes/share`";
    let by_grant = format!("{rule}; grant {grant} covers it (`lispbox approvals`, by ann)");
    let expected = [format!("{rule}; a person said yes"), by_grant.clone(), by_grant];
    assert_eq!((rules("call"), rules("intent")), (expected.to_vec(), expected.to_vec()));
}
