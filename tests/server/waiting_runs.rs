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
fn configuration(folder: &Path) -> Value {
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

fn lines(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Runs `lispbox approvals` on a store.
fn approvals(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["approvals", "--store", store]).args(arguments).env("USER", "ann");
    command.output().expect("the binary runs")
}

/// What a command that succeeds prints.
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The runs of a store, as `lispbox approvals list --json` prints them.
fn listed(store: &str) -> Vec<Value> {
    let text = printed(&approvals(store, &["list", "--json", "--all"]));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn run_of(answer: &Answer) -> String {
    let (_, rest) = answer.text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {}", answer.text));
    rest.split('"').next().expect("a run").to_owned()
}

fn continued(client: &mut Client, run: &str) -> Answer {
    client.call("lisp_eval", json!({"run": run}))
}

/// Kills the server without warning, and waits until no process of its tools is left.
fn kill(client: &mut Client, folder: &Path) {
    client.process.kill().expect("it is a child");
    client.process.wait().expect("it is a child");
    let mark = folder.display().to_string();
    let of_tools = || {
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&mark)).count()
    };
    until(|| of_tools() == 0);
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
                     The operator decides within 6 days, by `lispbox approvals show "
                ),
                "{}",
                answer.text
            );
            let run = run_of(&answer);
            assert_eq!(lines(folder.path(), "added"), ["1", "2", "4", "5"]);
            assert_eq!(continued(&mut client, &run).text.lines().next(), answer.text.lines().next(), "it still waits");
            kill(&mut client, folder.path());

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
                // Nobody decides on a run while it is resumed.
                let held = refusal(&approvals(store, &["cancel", &run]));
                assert!(held.contains("the run is being resumed"), "{held}");
            }
            kill(&mut client, folder.path());

            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            let mut answer = continued(&mut client, &run);
            // The lease of the dead process expires first.
            until(|| {
                let is_held = answer.text.contains("is being resumed");
                if is_held {
                    answer = continued(&mut client, &run);
                }
                !is_held
            });
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
            assert!(done.text.starts_with(value), "{}", done.text);
            assert_eq!((lines(folder.path(), "shared").len(), lines(folder.path(), "held").len()), (1, held));
        }
    });
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
    assert!(gone.is_error && gone.text.contains("it was cancelled, or never existed"), "{}", gone.text);
    let both = call("ann-ann-ann-ann-ann", json!({"run": run, "program": "1"}));
    assert!(both.text.contains("leave `program` out"), "{}", both.text);
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
        kill(&mut client, folder.path());
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

/// The number of schedules for each store; `LISPBOX_KILLS` sets another.
fn schedules() -> u32 {
    std::env::var("LISPBOX_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(4)
}

/// A process that is killed while it continues a run, a few milliseconds after the request each time.
#[test]
fn no_call_is_made_twice_or_lost_wherever_a_resuming_process_is_killed() {
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
            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            let run = run_of(&client.eval(program));
            printed(&approvals(store, &["approve", &run, "--call", "1.3"]));
            let mut deaths = kills.into_iter();
            let done = loop {
                if let Some(moment) = deaths.next() {
                    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"run": run}}));
                    std::thread::park_timeout(std::time::Duration::from_millis(moment));
                    kill(&mut client, folder.path());
                    client = Client::start_stateless(&configuration, &["--store", store]);
                }
                // A person looks which of the calls happened.
                let open = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
                for call in open["open"].as_array().expect("calls") {
                    let line = call["arguments"]["line"].as_str().expect("a line").to_owned();
                    let happened = ["added", "shared"].iter().any(|file| lines(folder.path(), file).contains(&line));
                    let number = call["call"].as_str().expect("a number");
                    let reply = format!("\"added {line}\"");
                    let found: &[&str] = if happened { &["--happened", &reply] } else { &["--did-not-happen"] };
                    until(|| approvals(store, &[&["settle", &run, "--call", number], found].concat()).status.success());
                }
                if deaths.len() > 0 {
                    continue;
                }
                let answer = continued(&mut client, &run);
                match answer.text.contains("is being resumed") || answer.text.contains("being used by another process")
                {
                    true => continue,
                    false => break answer,
                }
            };
            prop_assert!(done.text.starts_with("\"5added 9\""), "{}", done.text);
            prop_assert_eq!(lines(folder.path(), "added"), ["1", "2", "4", "5", "6", "7", "8", "9"]);
            prop_assert_eq!(lines(folder.path(), "shared"), ["3"]);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{store}: {failure}"));
    });
}
