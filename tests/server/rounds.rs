//! Approval in the replies to calls, as protocol revision 2026-07-28 has it: the reply asks, and the client repeats its
//! call with the answers.

use std::path::Path;
use std::process::Command;

use crate::http_client::{Server, evaluation, tokens_file};
use crate::mcp_client::{Answer, Client};
use serde_json::{Value, json};

/// Tools that append a line to a file: `notes/add`, which is allowed, and `notes/share`, about which a person is asked.
pub fn configuration(folder: &Path) -> Value {
    let line = json!({"properties": {"line": {"type": "string"}}, "required": ["line"]});
    let append = |name: &str| {
        let file = folder.join(name);
        json!({
            "command": "sh",
            "args": ["-c", "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"", file, "{line}"],
            "parameters": line,
        })
    };
    json!({
        "local": {"notes/add": append("added"), "notes/share": append("shared")},
        "policy": {"allow": ["notes/add"], "ask": ["notes/share"]},
    })
}

pub fn lines(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The metadata of a request from a client that shows forms.
fn meta() -> Value {
    let mut meta = crate::meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    meta
}

/// A call of `lisp_eval` in its first round.
fn call(arguments: Value) -> Value {
    json!({"name": "lisp_eval", "arguments": arguments, "_meta": meta()})
}

/// The same call with answers to the questions of a result.
fn next_round(call: &Value, asked: &Value, answer: impl Fn(&str) -> Option<Value>) -> Value {
    let requests = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("no questions: {asked}"));
    let answers = requests.iter().filter_map(|(key, request)| {
        let shown = request["params"]["message"].as_str().expect("a text");
        Some((key.clone(), answer(shown)?))
    });
    let mut next = call.clone();
    next["inputResponses"] = Value::Object(answers.collect());
    next["requestState"] = asked["requestState"].clone();
    next
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"allow": true}})
}

fn result(client: &mut Client, call: &Value) -> Value {
    let answer = client.request("tools/call", call.clone());
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

fn text(result: &Value) -> String {
    Answer::of(&json!({ "result": result })).text
}

fn code(result: &Value) -> String {
    let answer = Answer::of(&json!({ "result": result }));
    answer.record["error"].as_str().unwrap_or_default().to_owned()
}

/// The code of a protocol error, which says that nothing was evaluated.
fn refused(answer: &Value) -> &str {
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"));
    assert!(answer["error"]["code"] == -32602 && message.contains("nothing was evaluated"), "{answer}");
    answer["error"]["data"]["error"].as_str().expect("a code")
}

const FIVE: &str = "(def sent (pmap (fn [n] (if (= n 3) (notes/share {:line \"3\"}) (notes/add {:line (str n)})))
                                    (range 1 6)))
                    (println (count sent)) sent";

#[test]
fn a_program_waits_for_the_next_round_and_each_call_is_made_once() {
    for isolate in [&[][..], &["--isolate"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start_stateless(&configuration(folder.path()), isolate);
        let first = call(json!({"program": FIVE}));
        let asked = result(&mut client, &first);
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let requests = asked["inputRequests"].as_object().expect("questions");
        assert_eq!(requests.len(), 1);
        let form = &requests["call-001"];
        assert_eq!(form["method"], "elicitation/create");
        assert_eq!(form["params"]["requestedSchema"]["required"], json!(["allow"]));
        let shown = form["params"]["message"].as_str().expect("a text");
        assert!(shown.starts_with("```\nA program wants to call notes/share with\n{\n  \"line\": \"3\"\n}"), "{shown}");
        let mut added = lines(folder.path(), "added");
        added.sort();
        assert_eq!(
            (added, lines(folder.path(), "shared").len()),
            (["1", "2", "4", "5"].map(str::to_owned).to_vec(), 0)
        );

        let done = result(&mut client, &next_round(&first, &asked, |_| Some(yes())));
        assert_eq!(done["resultType"], "complete", "{done}");
        let reply = text(&done);
        assert!(
            reply.starts_with("(\"added 1\" \"added 2\" \"added 3\" \"added 4\" \"added 5\")\nprinted:\n5\n"),
            "{reply}"
        );
        assert!(reply.contains("5 tool calls]"), "{reply}");
        assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "shared")), (4, vec!["3".to_owned()]));
    }
}

#[test]
fn all_calls_that_can_be_asked_about_are_in_one_round() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let program =
        "(pmap (fn [n] (try (notes/share {:line (str \"line \" n)}) (catch ToolDenied e :denied))) (range 4))";
    let first = call(json!({"program": program}));
    let asked = result(&mut client, &first);
    assert_eq!(asked["inputRequests"].as_object().map(|requests| requests.len()), Some(4), "{asked}");
    // One is refused, one is not answered, and one is answered with a form that does not allow it.
    let second = next_round(&first, &asked, |shown| match shown {
        _ if shown.contains("line 0") => Some(yes()),
        _ if shown.contains("line 1") => Some(json!({"action": "decline"})),
        _ if shown.contains("line 2") => Some(json!({"action": "accept", "content": {"allow": "true"}})),
        _ => None,
    });
    let asked = result(&mut client, &second);
    let shown = asked["inputRequests"]["call-004"]["params"]["message"].as_str().expect("a text");
    assert!(shown.contains("line 3") && asked["inputRequests"].as_object().map(|all| all.len()) == Some(1), "{asked}");
    assert!(lines(folder.path(), "shared").is_empty(), "nothing is sent while a call of the form is open");
    let done = result(&mut client, &next_round(&first, &asked, |_| Some(yes())));
    assert!(text(&done).starts_with("(\"added line 0\" :denied :denied \"added line 3\")"), "{done}");
    assert_eq!(lines(folder.path(), "shared").len(), 2);
}

#[test]
fn a_value_that_is_no_answer_to_a_form_is_not_taken_for_a_refusal() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let first = call(json!({"program": "(notes/share {:line \"a\"})"}));
    let mut asked = result(&mut client, &first);
    for value in [json!(12345), json!(null), json!({"action": "perhaps"}), json!({"content": {"allow": true}})] {
        asked = result(&mut client, &next_round(&first, &asked, |_| Some(value.clone())));
        assert_eq!(asked["inputRequests"]["call-001"]["method"], "elicitation/create", "{asked}");
    }
    // Answers to other questions are ignored.
    let mut answered = next_round(&first, &asked, |_| Some(yes()));
    answered["inputResponses"]["another"] = json!(12345);
    assert!(text(&result(&mut client, &answered)).starts_with("\"added a\""));
    assert_eq!(lines(folder.path(), "shared"), ["a"]);
}

#[test]
fn a_state_is_good_once_and_for_its_call_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let first = call(json!({"program": "(notes/share {:line \"a\"})", "limits": {"fuel": 1e6}}));
    let asked = result(&mut client, &first);
    let answered = next_round(&first, &asked, |_| Some(yes()));

    // Another program, another argument, a changed state, and no state.
    let mut others = vec![answered.clone(); 5];
    others[0]["arguments"]["program"] = json!("(notes/share {:line \"b\"})");
    others[1]["arguments"]["limits"]["fuel"] = json!(2e6);
    let state = asked["requestState"].as_str().expect("a text");
    let (start, end) = state.split_at(state.len() / 2);
    let changed = if end.starts_with('A') { 'B' } else { 'A' };
    others[2]["requestState"] = json!(format!("{start}{changed}{}", &end[1..]));
    others[3]["requestState"] = json!("rs1.AAAA.BBBB");
    others[4].as_object_mut().expect("an object").remove("requestState");
    let expected = ["RunNotResumed", "RunNotResumed", "RunNotResumed", "RunNotResumed", "InvalidArguments"];
    for (other, expected) in others.iter().zip(expected) {
        assert_eq!(refused(&client.request("tools/call", other.clone())), expected);
    }
    assert!(lines(folder.path(), "shared").is_empty());

    // Another process does not take it.
    let mut other = Client::start_stateless(&configuration(folder.path()), &[]);
    assert_eq!(refused(&other.request("tools/call", answered.clone())), "RunNotResumed");

    assert!(text(&result(&mut client, &answered)).starts_with("\"added a\""));
    let again = result(&mut client, &answered);
    assert_eq!(code(&again), "RunNotResumed", "{again}");
    assert!(text(&again).contains("it was continued before"), "{again}");
    assert_eq!(lines(folder.path(), "shared"), ["a"]);
}

#[test]
fn a_session_goes_on_while_a_program_waits_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let handle = client.eval("(def greeting \"hello\")").handle().expect("named");
    let in_session = |program: &str, data: Value| {
        let mut arguments = json!({"program": program, "session": handle});
        arguments.as_object_mut().expect("an object").extend(data.as_object().cloned().unwrap_or_default());
        call(arguments)
    };
    let first = in_session("(def mine 1) (notes/share {:line (str greeting data)})", json!({"data": [1, 2]}));
    let asked = result(&mut client, &first);
    let other = result(&mut client, &in_session("[mine (count data)]", json!({"data": [1, 2, 3]})));
    assert!(text(&other).starts_with("[1 3]"), "{other}");
    let done = result(&mut client, &next_round(&first, &asked, |_| Some(yes())));
    assert!(text(&done).starts_with("\"added hello[1 2]\""), "{done}");

    // A definition that the call depends on has changed: nothing is sent.
    let first = in_session("(notes/share {:line greeting})", json!({}));
    let asked = result(&mut client, &first);
    result(&mut client, &in_session("(def greeting \"good bye\")", json!({})));
    let diverged = result(&mut client, &next_round(&first, &asked, |_| Some(yes())));
    assert_eq!(code(&diverged), "ReplayDiverged", "{diverged}");
    assert_eq!(lines(folder.path(), "shared"), ["hello[1 2]"]);
}

#[test]
fn a_client_that_shows_no_forms_gets_an_error_with_the_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let (error, message) = client.fails("(notes/share {:line \"a\"})");
    assert_eq!(error, "ToolNeedsApproval");
    assert!(message.contains("this client cannot ask for approval (it does not support elicitation)"), "{message}");
}

#[test]
fn programs_of_a_principal_wait_up_to_a_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let first = call(json!({"program": "(notes/share {:line \"a\"})"}));
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(result(&mut client, &first));
        assert_eq!(asked.last().expect("one")["resultType"], "input_required");
    }
    let refused = result(&mut client, &first);
    assert_eq!(code(&refused), "ToolNeedsApproval", "{refused}");
    assert!(text(&refused).contains("20 programs wait for approval already"), "{refused}");
    // One that is resumed makes room.
    result(&mut client, &next_round(&first, &asked[7], |_| Some(json!({"action": "decline"}))));
    assert_eq!(result(&mut client, &first)["resultType"], "input_required");
}

#[test]
fn over_http_the_answers_are_those_of_the_principal() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, configuration(folder.path()).to_string()).expect("written");
    let tokens = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let arguments = ["--tokens", &tokens.to_string_lossy(), "--config", &file.to_string_lossy()];
    let server = Server::start(&arguments, &[]);
    let post = |who: &str, call: &Value| -> Value {
        let headers = format!(
            "Authorization: Bearer {who}-{who}-{who}-{who}-{who}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: lisp_eval\r\n"
        );
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
        server.post(&headers, &message).message()
    };
    let first = call(json!({"program": FIVE}));
    let asked = post("ann", &first)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answered = next_round(&first, &asked, |_| Some(yes()));
    assert_eq!(refused(&post("bob", &answered)), "RunNotResumed");
    assert!(lines(folder.path(), "shared").is_empty());
    let done = post("ann", &answered)["result"].clone();
    assert!(text(&done).starts_with("(\"added 1\""), "{done}");
    assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "shared").len()), (4, 1));
}

#[test]
fn over_http_a_client_of_an_older_revision_is_asked_on_the_stream_of_its_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, configuration(folder.path()).to_string()).expect("written");
    let server = Server::start(&["--config", &file.to_string_lossy()], &[]);
    let session = server.initialize_with("", "2025-11-25", &json!({"elicitation": {}})).expect("it begins");
    for (answer, expected) in [(yes(), "added a"), (json!({"action": "decline"}), "a person was asked and said no")] {
        let mut stream = session.stream(&evaluation(7, "(notes/share {:line \"a\"})"));
        let question = stream.event();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let accepted = session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        assert_eq!(accepted.status, 202, "{accepted:?}");
        let reply = stream.event();
        assert!(reply["result"].to_string().contains(expected), "{reply}");
    }
    assert_eq!(lines(folder.path(), "shared"), ["a"]);
}

#[test]
fn the_audit_log_has_the_question_and_the_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("audit");
    let mut client = Client::start_stateless(&configuration(folder.path()), &["--audit", &log.to_string_lossy()]);
    let first = call(json!({"program": "(notes/share {:line \"a\"})"}));
    let asked = result(&mut client, &first);
    let mut answered = next_round(&first, &asked, |_| Some(yes()));
    result(&mut client, &answered);
    answered["requestState"] = json!("rs1.AAAA.BBBB");
    assert_eq!(refused(&client.request("tools/call", answered)), "RunNotResumed");
    client.close();
    client.wait();
    let parts = log.read_dir().expect("it is a folder").map(|part| part.expect("it is readable").path());
    let parts = parts.filter(|part| part.extension().is_some_and(|extension| extension == "jsonl"));
    let records: String = parts.map(|part| std::fs::read_to_string(part).expect("it is text")).collect();
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let outcomes: Vec<String> = records
        .filter(|record| ["call", "intent", "evaluation"].iter().any(|kind| record["kind"] == *kind))
        .map(|record| format!("{} {}", record["kind"], record["outcome"]).replace('"', ""))
        .collect();
    assert_eq!(
        outcomes,
        ["call asked", "evaluation Suspended", "intent null", "call ok", "evaluation ok", "evaluation RunNotResumed"]
    );
    let stats = Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .args(["audit", "stats", "--audit"])
        .arg(&log)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&stats.stdout);
    let row = text.lines().find(|line| line.contains("notes/share")).unwrap_or_else(|| panic!("{stats:?}"));
    // The columns behind these are times, too.
    let columns: Vec<&str> = row.split_whitespace().take(4).collect();
    assert_eq!(columns, ["notes/share", "1", "1", "0"], "one call, which is ok: {row}");
}

#[test]
fn later_calls_of_the_session_are_allowed_in_the_form_of_a_round() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let ten = call(json!({"program": "(mapv (fn [n] (notes/share {:line (str (quot n 5))})) (range 10))"}));
    let allow = |later: &str| json!({"action": "accept", "content": {"allow": true, "for": later}});
    let (same, tool) = ("this tool with these arguments, for this session", "this tool, for this session");
    for (later, rounds) in [("this call only", 10), ("whatever", 10), (same, 2), (tool, 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", &store]);
        let mut answer = result(&mut client, &ten);
        let mut asked = 0;
        while answer["resultType"] == "input_required" {
            asked += 1;
            let requests = answer["inputRequests"].as_object().expect("questions");
            let form = &requests.values().next().expect("a question")["params"]["requestedSchema"];
            assert_eq!(form["properties"]["for"]["enum"], json!(["this call only", same, tool]));
            answer = result(&mut client, &next_round(&ten, &answer, |_| Some(allow(later))));
        }
        assert_eq!((asked, lines(folder.path(), "shared").len()), (rounds, 10), "{later}: {answer}");
    }
    // A no allows nothing, and without a store there is nothing to keep.
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", &store]);
    let asked = result(&mut client, &ten);
    let no = json!({"action": "accept", "content": {"allow": false, "for": tool}});
    let denied = result(&mut client, &next_round(&ten, &asked, |_| Some(no.clone())));
    assert_eq!((code(&denied).as_str(), lines(folder.path(), "shared").len()), ("ToolDenied", 0));
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let asked = result(&mut client, &ten);
    let form = &asked["inputRequests"]["call-001"]["params"]["requestedSchema"];
    assert_eq!(form["properties"].as_object().map(|fields| fields.len()), Some(1), "{form}");
}
