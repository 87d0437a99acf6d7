//! Programs that wait in a store: decided on by `lispbox approvals`, continued by another process, and each call made once.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

use crate::http_client::{Server, tokens_file};
use crate::mcp_client::{Answer, Client, until};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// Tools that append a line to a file: `notes/add`, which is allowed, and `notes/share`, about which a person is asked.
/// `notes/hold` appends a line and then waits for the file `go`.
pub fn configuration(folder: &Path) -> Value {
    let line = json!({"properties": {"line": {"type": "string"}}, "required": ["line"]});
    let script = |script: &str, name: &str| {
        let file = folder.join(name);
        json!({"command": "sh", "args": ["-c", script, file, "{line}", folder.join("go")], "parameters": line})
    };
    let append = "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"";
    let hold = "printf '%s\\n' \"$1\" >> \"$0\"; while [ ! -e \"$2\" ]; do sleep 0.02; done; printf 'added %s' \"$1\"";
    json!({
        "local": {
            "notes/add": script(append, "added"),
            "notes/share": script(append, "shared"),
            "notes/hold": script(hold, "held"),
        },
        "policy": {"allow": ["notes/add", "notes/hold"], "ask": ["notes/share"]},
    })
}

pub fn lines(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The command `lispbox approvals` on a store.
pub fn approvals_command(store: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["approvals", "--store", store]).args(arguments).env("USER", "ann");
    command
}

/// Runs `lispbox approvals` on a store.
pub fn approvals(store: &str, arguments: &[&str]) -> Output {
    approvals_command(store, arguments).output().expect("the binary runs")
}

/// What a command that succeeds prints.
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The runs of a store, as `lispbox approvals list --json` prints them.
pub fn listed(store: &str) -> Vec<Value> {
    let text = printed(&approvals(store, &["list", "--json", "--all"]));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub fn run_of(answer: &Answer) -> String {
    let (_, rest) = answer.text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {}", answer.text));
    rest.split('"').next().expect("a run").to_owned()
}

pub fn continued(client: &mut Client, run: &str) -> Answer {
    client.call("lisp_eval", json!({"run": run}))
}

/// Continues a run once the lease of the process that died has expired.
pub fn continued_once_free(client: &mut Client, run: &str) -> Answer {
    continued_while(client, run, |answer| answer.text.contains("is being resumed"))
}

/// Continues a run until its answer is another one.
pub fn continued_while(client: &mut Client, run: &str, is_early: impl Fn(&Answer) -> bool) -> Answer {
    let mut answer = continued(client, run);
    until(|| {
        let again = is_early(&answer);
        if again {
            answer = continued(client, run);
        }
        !again
    });
    answer
}

/// Kills the server without warning, and waits until no process of its tools is left, nor one that is about to become
/// such a process.
pub fn kill(client: &mut Client, folder: &Path, store: &str) {
    client.process.kill().expect("it is a child");
    client.process.wait().expect("it is a child");
    let marks = [folder.display().to_string(), store.to_owned()];
    let of_tools = || {
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.filter(|line| marks.iter().any(|mark| line.contains(mark))).count()
    };
    until(|| of_tools() == 0);
}

/// Continues a run whose program calls `notes/hold` with the line `b`, kills the server during that call, and returns a
/// client of another one, which is told that the call may have happened.
pub fn killed_in_hold(mut client: Client, configuration: &Value, folder: &Path, store: &str, run: &str) -> Client {
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"run": run}}));
    until(|| lines(folder, "held") == ["b"]);
    kill(&mut client, folder, store);
    let mut client = Client::start_stateless(configuration, &["--store", store]);
    let answer = continued_once_free(&mut client, run);
    assert!(answer.text.contains("until a person has found out whether 1 call happened"), "{}", answer.text);
    client
}

const FIVE: &str = "(def sent (pmap (fn [n] (if (= n 3) (notes/share {:line \"3\"}) (notes/add {:line (str n)})))
                                    (range 1 6)))
                    (println (count sent)) sent";

#[test]
fn a_program_is_continued_by_another_process_and_each_call_is_made_once() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        for isolate in [&[][..], &["--isolate"]] {
            let arguments = [&["--store", store], isolate].concat();
            let configuration = configuration(folder.path());
            let _ = std::fs::remove_file(folder.path().join("added"));
            let _ = std::fs::remove_file(folder.path().join("shared"));

            // A client of an earlier revision that cannot show forms.
            let mut client = Client::start(&configuration, &arguments);
            let answer = client.eval(FIVE);
            assert!(!answer.is_error, "{}", answer.text);
            assert!(
                answer.text.starts_with(
                    "Suspended: the program waits until a person has decided on 1 call\n- notes/share {\"line\":\"3\"}\n\
                     The operator decides within 7 days, by `lispbox approvals show "
                ),
                "{}",
                answer.text
            );
            let run = run_of(&answer);
            assert_eq!(lines(folder.path(), "added"), ["1", "2", "4", "5"]);
            assert_eq!(continued(&mut client, &run).text.lines().next(), answer.text.lines().next(), "it still waits");
            kill(&mut client, folder.path(), store);

            let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
            assert_eq!((&waiting["state"], &waiting["principal"]), (&json!("waiting"), &json!("local")));
            assert_eq!(waiting["open"][0]["arguments"], json!({"line": "3"}));
            let number = waiting["open"][0]["call"].as_str().expect("a number").to_owned();
            let shown = printed(&approvals(store, &["show", &run]));
            assert!(
                shown.contains(&format!(
                    "call {number}\nA program wants to call notes/share with\n{{\n  \"line\": \"3\""
                ))
            );
            let done = printed(&approvals(store, &["approve", &run, "--call", &number]));
            assert!(done.starts_with(&format!("call {number} of notes/share: approved\nnothing is open")), "{done}");
            let again = refusal(&approvals(store, &["deny", &run, "--call", &number]));
            assert!(again.contains(&format!("call {number} has been decided on already")), "{again}");

            let mut client = Client::start_stateless(&configuration, &arguments);
            let done = continued(&mut client, &run);
            assert!(
                done.text.starts_with("(\"added 1\" \"added 2\" \"added 3\" \"added 4\" \"added 5\")\nprinted:\n5\n"),
                "{}",
                done.text
            );
            // The reply is kept for a client that has not received it.
            assert_eq!(continued(&mut client, &run).text, done.text);
            assert_eq!(
                (lines(folder.path(), "added").len(), lines(folder.path(), "shared")),
                (4, vec!["3".to_owned()])
            );
            let ended = refusal(&approvals(store, &["approve", &run, "--call", &number]));
            assert!(ended.contains("the run has ended"), "{ended}");
            // What it defined is in the session that its reply names.
            let session = done.handle().expect("a session");
            let sent = client.call("lisp_eval", json!({"program": "(count sent)", "session": session}));
            assert!(sent.text.starts_with('5'), "{}", sent.text);
        }
    });
}

#[test]
fn a_person_says_whether_a_call_happened_that_was_being_made_when_its_process_died() {
    crate::databases::on_each_store(|store| {
        // It takes as long as a lease each time.
        let is_first_store = store.starts_with("sqlite");
        for happened in if is_first_store { &[true, false][..] } else { &[true] } {
            let happened = *happened;
            let folder = tempfile::tempdir().expect("a folder");
            let configuration = configuration(folder.path());
            let program = "(notes/share {:line \"a\"}) (str (notes/hold {:line \"b\"}) \"!\")";
            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            let run = run_of(&client.eval(program));
            printed(&approvals(store, &["approve", &run, "--call", "1.1"]));
            client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"run": run}}));
            until(|| lines(folder.path(), "held") == ["b"]);
            if is_first_store {
                // No one decides on a run while it is resumed.
                let held = refusal(&approvals(store, &["cancel", &run]));
                assert!(held.contains("the run is being resumed"), "{held}");
            }
            kill(&mut client, folder.path(), store);

            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            let answer = continued_once_free(&mut client, &run);
            assert!(answer.text.contains("until a person has found out whether 1 call happened"), "{}", answer.text);
            assert_eq!(lines(folder.path(), "held"), ["b"], "it is not made again");
            let open =
                listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits")["open"].clone();
            assert_eq!((&open[0]["tool"], &open[0]["unknown"]), (&json!("hold"), &json!(true)));
            let number = open[0]["call"].as_str().expect("a number").to_owned();
            let refused = refusal(&approvals(store, &["approve", &run, "--call", &number]));
            assert!(refused.contains("may have happened already"), "{refused}");
            let refused = refusal(&approvals(store, &["settle", &run, "--call", &number, "--happened", "added"]));
            assert!(refused.contains("expected the result of the call as JSON"), "{refused}");
            let found: &[&str] = if happened { &["--happened", "\"found b\""] } else { &["--did-not-happen"] };
            printed(&approvals(store, &[&["settle", &run, "--call", &number], found].concat()));
            std::fs::write(folder.path().join("go"), "").expect("written");
            let done = continued(&mut client, &run);
            let (value, held) = if happened { ("\"found b!\"", 1) } else { ("\"added b!\"", 2) };
            assert!(done.text.starts_with(&format!("\"added a\"\n{value}")), "{}", done.text);
            assert_eq!((lines(folder.path(), "shared").len(), lines(folder.path(), "held").len()), (1, held));
        }
    });
}

#[test]
fn calls_of_branches_that_a_person_has_settled_are_not_asked_about_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let configuration = configuration(folder.path());
    let program = "(pmap (fn [n] (if (= n 3) (notes/share {:line \"3\"}) (notes/hold {:line (str n)}))) (range 1 4))";
    let call = keyed("branches", json!({ "program": program }));
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    client.begin("tools/call", call.clone());
    until(|| lines(folder.path(), "held") == ["1", "2"]);
    kill(&mut client, folder.path(), &store);
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    let mut waits = Answer::of(&client.request("tools/call", call.clone()));
    until(|| {
        let is_held = !waits.text.starts_with("Suspended: ");
        if is_held {
            waits = Answer::of(&client.request("tools/call", call.clone()));
        }
        !is_held
    });
    let run = run_of(&waits);
    let open = listed(&store)[0]["open"].clone();
    for call in open.as_array().expect("calls") {
        let number = call["call"].as_str().expect("a number");
        let decision = match call["unknown"] == true {
            true => vec!["settle", &run, "--call", number, "--happened", "\"found\""],
            false => vec!["approve", &run, "--call", number],
        };
        printed(&approvals(&store, &decision));
    }
    let mut done = continued(&mut client, &run);
    if done.text.starts_with("Suspended: ") {
        // The third call was not asked about before the process died.
        printed(&approvals(&store, &["approve", &run]));
        done = continued(&mut client, &run);
    }
    assert!(done.text.starts_with("(\"found\" \"found\" \"added 3\")"), "{}", done.text);
    assert_eq!((lines(folder.path(), "held").len(), lines(folder.path(), "shared").len()), (2, 1));
}

#[test]
fn without_numbers_all_calls_that_wait_are_decided_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", &store]);
    let program = "(pmap (fn [n] (try (notes/share {:line (str n)}) (catch ToolDenied e (ex-message e)))) (range 3))";
    let run = run_of(&client.eval(program));
    printed(&approvals(&store, &["deny", &run, "--call", "1.2", "--reason", "not that one"]));
    let said = printed(&approvals(&store, &["approve", &run]));
    assert!(
        said.starts_with("call 1.1 of notes/share: approved\ncall 1.3 of notes/share: approved\nnothing is open"),
        "{said}"
    );
    let again = refusal(&approvals(&store, &["deny", &run]));
    assert!(again.contains("nothing was changed: no call of the run waits for a decision"), "{again}");
    assert!(!continued(&mut client, &run).is_error);
    assert_eq!(lines(folder.path(), "shared"), ["0", "2"]);
}

#[test]
fn of_two_operators_one_decides_and_the_other_is_told() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", store]);
        let run = run_of(&client.eval("(notes/share {:line \"a\"})"));
        let outputs: Vec<Output> = std::thread::scope(|scope| {
            let decide = |action: &'static str| {
                let run = &run;
                scope.spawn(move || approvals(store, &[action, run, "--call", "1.1"]))
            };
            let operators: Vec<_> = ["approve", "deny", "approve", "deny"].map(decide).into_iter().collect();
            operators.into_iter().map(|operator| operator.join().expect("it ends")).collect()
        });
        assert_eq!(outputs.iter().filter(|output| output.status.success()).count(), 1);
        let told = outputs.iter().filter(|output| !output.status.success()).map(refusal);
        told.for_each(|told| assert!(told.contains("decided on already"), "{told}"));
        let shown = printed(&approvals(store, &["show", &run]));
        assert!(shown.contains("decisions:\nnotes/share: "), "{shown}");
        assert!(shown.contains("(`lispbox approvals`, by ann)"), "{shown}");
        let is_approved = shown.contains("notes/share: approved");
        let done = continued(&mut client, &run);
        assert_eq!((!done.is_error, lines(folder.path(), "shared").len()), (is_approved, usize::from(is_approved)));
    });
}

#[test]
fn a_run_is_its_principals_and_a_cancelled_one_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let file = folder.path().join("servers.json");
    std::fs::write(&file, configuration(folder.path()).to_string()).expect("written");
    let tokens = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let configured =
        ["--config", &file.display().to_string(), "--tokens", &tokens.display().to_string(), "--store", &store];
    let server = Server::start(&configured, &[("LISPBOX_CACHE", &folder.path().join("cache").display().to_string())]);
    let call = |token: &str, arguments: Value| {
        let reply = server.call(&format!("Authorization: Bearer {token}\r\n"), "lisp_eval", arguments);
        Answer::of(&reply.message())
    };
    let run = run_of(&call("ann-ann-ann-ann-ann", json!({"program": "(notes/share {:line \"a\"})"})));
    let foreign = call("bob-bob-bob-bob-bob", json!({"run": run}));
    assert!(foreign.is_error && foreign.text.contains("there is no such run"), "{}", foreign.text);
    // The record of a run is no session.
    let session = call("ann-ann-ann-ann-ann", json!({"program": "1", "session": run}));
    assert!(session.is_error, "{}", session.text);
    let sessions = Command::new(env!("CARGO_BIN_EXE_lispbox")).args(["sessions", "list", "--store", &store]).output();
    assert!(!String::from_utf8_lossy(&sessions.expect("it runs").stdout).contains(&run));
    printed(&approvals(&store, &["cancel", &run]));
    let gone = call("ann-ann-ann-ann-ann", json!({"run": run}));
    assert!(gone.is_error && gone.text.contains("the program was cancelled while it waited"), "{}", gone.text);
    let both = call("ann-ann-ann-ann-ann", json!({"run": run, "program": "1"}));
    assert!(both.text.contains("`program` does not apply to it"), "{}", both.text);
    assert!(lines(folder.path(), "shared").is_empty());
}

/// The forms of a client that shows them are answered at another process, too.
#[test]
fn a_sealed_state_outlives_the_process_that_sealed_it() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let mut meta = crate::meta();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
        let call = json!({"name": "lisp_eval", "arguments": {"program": FIVE}, "_meta": meta});
        let mut client = Client::start_stateless(&configuration, &["--store", store]);
        let asked = client.request("tools/call", call.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        kill(&mut client, folder.path(), store);
        let mut answered = call;
        answered["inputResponses"] = json!({"call-001": {"action": "accept", "content": {"allow": true}}});
        answered["requestState"] = asked["requestState"].clone();
        let mut client = Client::start_stateless(&configuration, &["--store", store]);
        let done = Answer::of(&client.request("tools/call", answered.clone()));
        assert!(done.text.starts_with("(\"added 1\" \"added 2\" \"added 3\""), "{}", done.text);
        // A client that repeats its call gets the same reply.
        assert_eq!(Answer::of(&client.request("tools/call", answered)).text, done.text);
        assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "shared").len()), (4, 1));
    });
}

/// An operator and the user of the client decide on the same run.
#[test]
fn an_answer_is_never_taken_for_one_to_another_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut meta = crate::meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    let program = "(pmap (fn [n] (try (notes/share {:line (str n)}) (catch ToolDenied e :denied))) (range 3))";
    let call = json!({"name": "lisp_eval", "arguments": {"program": program}, "_meta": meta});
    let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", &store]);
    let asked = client.request("tools/call", call.clone())["result"].clone();
    let run = listed(&store)[0]["run"].as_str().expect("a run").to_owned();
    printed(&approvals(&store, &["deny", &run, "--call", "1.1"]));
    let form = |answer: bool| json!({"action": "accept", "content": {"allow": answer}});
    let mut answered = call;
    // The answer about the first call comes too late.
    answered["inputResponses"] = json!({"call-001": form(true), "call-002": form(false), "call-003": form(true)});
    answered["requestState"] = asked["requestState"].clone();
    let done = Answer::of(&client.request("tools/call", answered));
    assert!(done.text.starts_with("(:denied :denied \"added 2\")"), "{}", done.text);
    assert_eq!(lines(folder.path(), "shared"), ["2"]);
}

/// The data of a program is kept with its session, which need not define anything.
#[test]
fn the_data_of_a_program_waits_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    for isolate in [&[][..], &["--isolate"]] {
        let arguments = [&["--store", &store], isolate].concat();
        let mut client = Client::start_stateless(&configuration(folder.path()), &arguments);
        let program = "(str (notes/share {:line (:a data)}) (:b data))";
        let run = run_of(&client.call("lisp_eval", json!({"program": program, "data": {"a": "x", "b": [1, 2]}})));
        kill(&mut client, folder.path(), &store);
        printed(&approvals(&store, &["approve", &run, "--call", "1.1"]));
        let mut client = Client::start_stateless(&configuration(folder.path()), &arguments);
        let done = continued(&mut client, &run);
        assert!(done.text.starts_with("\"added x[1 2]\""), "{}", done.text);
    }
}

/// The number of schedules for each store; `LISPBOX_KILLS` sets another.
fn schedules() -> u32 {
    std::env::var("LISPBOX_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(4)
}

/// A call of a program with a run key.
pub fn keyed(key: &str, arguments: Value) -> Value {
    let mut meta = crate::meta();
    meta["lispbox/run-key"] = json!(key);
    json!({"name": "lisp_eval", "arguments": arguments, "_meta": meta})
}

/// A process that is killed while it evaluates or continues a run, some milliseconds after the request each time.
#[test]
fn no_call_is_made_twice_or_lost_wherever_a_process_is_killed() {
    crate::databases::on_each_store(|store| {
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            max_shrink_iters: 0,
            ..ProptestConfig::with_cases(schedules())
        });
        let kills = prop::collection::vec(0..120_u64, 1..4);
        let outcome = runner.run(&kills, |kills| {
            let folder = tempfile::tempdir().expect("a folder");
            let configuration = configuration(folder.path());
            let program = "(def all (pmap (fn [n] (if (= n 3) (notes/share {:line \"3\"}) (notes/add {:line (str n)})))
                                          (range 1 6)))
                           (mapv (fn [n] (notes/add {:line (str n)})) (range 6 9))
                           (str (count all) (notes/add {:line \"9\"}))";
            let key = folder.path().display().to_string();
            let call = keyed(&key, json!({ "program": program }));
            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            // It has opened its store.
            client.eval("1");
            let (mut known, mut deaths) = (None, kills.into_iter());
            let done = loop {
                if let Some(moment) = deaths.next() {
                    client.begin("tools/call", call.clone());
                    std::thread::park_timeout(std::time::Duration::from_millis(moment));
                    kill(&mut client, folder.path(), store);
                    client = Client::start_stateless(&configuration, &["--store", store]);
                }
                // A person looks which of the calls happened, and approves what has not.
                for run in listed(store) {
                    let identity = run["run"].as_str().expect("a run").to_owned();
                    if known.as_ref().is_some_and(|known| *known != identity) || run["state"] == "ended" {
                        continue;
                    }
                    known = Some(identity.clone());
                    for call in run["open"].as_array().expect("calls") {
                        let line = call["arguments"]["line"].as_str().expect("a line").to_owned();
                        let happened =
                            ["added", "shared"].iter().any(|file| lines(folder.path(), file).contains(&line));
                        let number = call["call"].as_str().expect("a number");
                        let reply = format!("\"added {line}\"");
                        let decision = match (call["unknown"] == true, happened) {
                            (false, _) => vec!["approve", &identity, "--call", number],
                            (true, true) => vec!["settle", &identity, "--call", number, "--happened", &reply],
                            (true, false) => vec!["settle", &identity, "--call", number, "--did-not-happen"],
                        };
                        printed(&approvals(store, &decision));
                    }
                }
                if deaths.len() > 0 {
                    continue;
                }
                let answer = Answer::of(&client.request("tools/call", call.clone()));
                if !answer.text.starts_with("Suspended: ") {
                    break answer;
                }
            };
            let (added, shared) = (lines(folder.path(), "added"), lines(folder.path(), "shared"));
            let expected = ["1", "2", "4", "5", "6", "7", "8", "9"];
            if done.text.contains("perhaps by the run itself") {
                // It died between the writes of its session and of its record: it is refused, and makes no further call.
                let mut once = added.clone();
                once.dedup();
                prop_assert_eq!(&once, &added);
                prop_assert!(added.iter().all(|line| expected.contains(&line.as_str())) && shared.len() <= 1);
            } else {
                prop_assert!(done.text.contains("\n\"5added 9\"\n"), "{}", done.text);
                prop_assert_eq!((added, shared), (expected.map(str::to_owned).to_vec(), vec!["3".to_owned()]));
            }
            // If its reply could not be stored, it is in the way of the next one.
            known.into_iter().for_each(|identity| _ = approvals(store, &["cancel", &identity]));
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{store}: {failure}"));
    });
}

#[test]
fn requests_with_one_run_key_are_one_run() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let program = json!({"program": "(def a 1) (notes/hold {:line (:line data)})", "data": {"line": "x"}});
        let call = keyed("monday's report", program);
        let mut clients = [0, 1].map(|_| Client::start_stateless(&configuration, &["--store", store]));
        let first = clients[0].begin("tools/call", call.clone());
        until(|| lines(folder.path(), "held") == ["x"]);
        // Another process, while the run is evaluated.
        let second = clients[1].begin("tools/call", call.clone());
        std::fs::write(folder.path().join("go"), "").expect("written");
        let texts: Vec<String> = clients
            .iter_mut()
            .zip([first, second])
            .map(|(client, id)| {
                loop {
                    let message = client.receive();
                    if message["id"] == id {
                        break Answer::of(&message).text;
                    }
                }
            })
            .collect();
        assert!(texts.iter().all(|text| text.starts_with("\"added x\"")), "{texts:?}");
        // A client that has lost the reply.
        let again = Answer::of(&clients[1].request("tools/call", call));
        assert!(again.text.starts_with("\"added x\""), "{}", again.text);
        let session = again.handle().expect("a session");
        let found = clients[1].call("lisp_eval", json!({"program": "a", "session": session}));
        assert!(found.text.starts_with('1'), "{}", found.text);
        assert_eq!(lines(folder.path(), "held"), ["x"]);
        let other = keyed("monday's report", json!({"program": "(notes/add {:line \"y\"})"}));
        let refused = Answer::of(&clients[0].request("tools/call", other));
        assert_eq!(refused.record["error"], "RunKeyReused", "{}", refused.text);
        let mut other = keyed("", json!({"program": "1"}));
        let refused = Answer::of(&clients[0].request("tools/call", other.clone()));
        assert!(refused.text.contains("a text of 1 to 200 bytes"), "{}", refused.text);
        other["_meta"]["lispbox/run-key"] = json!(5);
        assert!(Answer::of(&clients[0].request("tools/call", other)).is_error);
        assert!(lines(folder.path(), "added").is_empty());
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &[]);
    let refused = Answer::of(&client.request("tools/call", keyed("a", json!({"program": "1"}))));
    assert!(refused.text.contains("but the server has no `--store`"), "{}", refused.text);
}
