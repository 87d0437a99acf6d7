//! Programs that do not end well after they have made changes: what is said of them, and how they go on.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::http_client::{Server, tokens_file};
use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{approvals, continued, kill, lines, listed, printed, run_of};
use serde_json::{Value, json};

/// Tools that append a line to a file: `notes/add` and `notes/share`, about which a person is asked; `notes/hold` appends a
/// line and then waits for the file `go`; `notes/set` is idempotent. `notes/list` reads the lines of `notes/add`, and
/// `notes/try` fails until the file `ready` is there.
pub fn configuration(folder: &Path) -> Value {
    let mut configuration = crate::waiting_runs::configuration(folder);
    let line = json!({"properties": {"line": {"type": "string"}}, "required": ["line"]});
    let tool = |script: &str, name: &str, more: &[(&str, Value)]| {
        let arguments = json!(["-c", script, folder.join(name), "{line}", folder.join("ready")]);
        let mut tool = json!({"command": "sh", "args": arguments, "parameters": line});
        more.iter().for_each(|(key, value)| tool[*key] = value.clone());
        tool
    };
    let append = "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"";
    let attempt =
        "if [ ! -e \"$2\" ]; then echo 'temporarily unavailable'; exit 1; fi; printf '%s\\n' \"$1\" >> \"$0\"";
    let local = &mut configuration["local"];
    local["notes/set"] = tool(append, "set", &[("idempotent", json!(true))]);
    local["notes/list"] = tool("cat \"$0\" 2>/dev/null | wc -l | tr -d ' \\n'", "added", &[("read_only", json!(true))]);
    local["notes/try"] = tool(attempt, "tried", &[]);
    configuration["policy"]["allow"] = json!(["notes/add", "notes/hold", "notes/set", "notes/list", "notes/try"]);
    configuration
}

const ALL: [&str; 6] = ["0", "1", "2", "3", "4", "5"];

/// Adds six lines; fails after the fourth.
const FAILS: &str = "(doseq [n (range 6)] (notes/add {:line (str n)}) (when (= n 3) (/ 1 0)))";

/// Adds six lines.
const CORRECTED: &str = "(doseq [n (range 6)] (notes/add {:line (str n)}))";

pub fn go_on(client: &mut Client, run: &str, program: &str) -> Answer {
    client.call("lisp_eval", json!({"run": run, "program": program}))
}

fn repeated(client: &mut Client, program: &str) -> Answer {
    client.call("lisp_eval", json!({"program": program, "repeat": true}))
}

/// Runs a check for clients of old and new revisions, without a store and with one of each kind that is installed.
pub fn on_each(configuration: &dyn Fn(&Path) -> Value, check: impl Fn(&mut Client, &Path, Option<&str>)) {
    let start = |stateless: bool, arguments: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let client = match stateless {
            true => Client::start_stateless(&configuration, arguments),
            false => Client::start(&configuration, arguments),
        };
        (client, folder)
    };
    for stateless in [true, false] {
        let (mut client, folder) = start(stateless, &[]);
        check(&mut client, folder.path(), None);
        crate::databases::on_each_store(|store| {
            let (mut client, folder) = start(stateless, &["--store", store]);
            check(&mut client, folder.path(), Some(store));
        });
    }
}

#[test]
fn a_program_that_fails_names_its_changes_and_a_corrected_one_repeats_none_of_them() {
    on_each(&configuration, |client, folder, _| {
        let failed = client.eval(FAILS);
        let run = run_of(&failed);
        let line = format!(
            "[made before the error: notes/add 4 times; {{\"run\": \"{run}\", \"program\": \"whole, corrected\"}} goes on and \
             repeats none of them]"
        );
        assert_eq!(failed.text.lines().last(), Some(&*line), "{}", failed.text);
        assert_eq!(failed.record["made"], json!([{"tool": "notes/add", "count": 4}]));
        assert_eq!(failed.record["run"], json!(run));

        let done = go_on(client, &run, CORRECTED);
        assert!(!done.is_error && done.text.contains("[4 calls answered from earlier attempts]"), "{}", done.text);
        assert_eq!(lines(folder, "added"), ALL);
        let again = go_on(client, &run, CORRECTED);
        let why = "RunNotResumed: the run has ended, so `program` does not apply to it: `run` alone has its reply";
        assert!(again.text.starts_with(why), "{}", again.text);
        assert_eq!(continued(client, &run).text, done.text, "its reply is kept");
        assert_eq!(client.eval("(run/status)").text, "[]");
        // Nothing of it concerns a later program.
        assert!(!client.eval(CORRECTED).is_error);
        assert_eq!(lines(folder, "added").len(), 12);
    });
}

#[test]
fn each_ending_is_kept_with_what_it_has_made_and_each_way_to_go_on_makes_the_rest_once() {
    let endings = [
        ("an error", FAILS, json!({}), "error"),
        ("a limit of calls", CORRECTED, json!({"calls": 4}), "limit"),
        ("a limit of fuel", "(doseq [n (range 4)] (notes/add {:line (str n)})) (loop [] (recur))", json!({}), "limit"),
        (
            "an error of a tool",
            "(dotimes [n 4] (notes/add {:line (str n)})) (notes/try {:line \"x\"})",
            json!({}),
            "error",
        ),
        (
            "an error in a branch",
            "(pmap (fn [n] (notes/add {:line (str n)})) (range 4)) (doall (pmap (fn [n] (/ 1 n)) [0 1]))",
            json!({}),
            "error",
        ),
        (
            "an error in a function",
            "(defn f [n] (notes/add {:line (str n)})) (mapv f [0 1 2 3]) (f)",
            json!({}),
            "error",
        ),
        (
            "an error that is thrown on",
            "(try (dotimes [n 6] (notes/add {:line (str n)}) (when (= n 3) (throw (ex-info \"x\" {})))) (finally 1))",
            json!({}),
            "error",
        ),
    ];
    for (name, program, limits, status) in endings {
        for store in [false, true] {
            for way in ["corrected", "again", "by hand"] {
                let folder = tempfile::tempdir().expect("a folder");
                let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
                let arguments: &[&str] = if store { &["--store", &url] } else { &[] };
                let mut client = Client::start(&configuration(folder.path()), arguments);
                let failed = client.call("lisp_eval", json!({"program": program, "limits": limits}));
                let context = format!("{name}, {way}, store: {store}: {}", failed.text);
                assert_eq!(failed.record["status"], json!(status), "{context}");
                assert_eq!(failed.record["made"], json!([{"tool": "notes/add", "count": 4}]), "{context}");
                let run = run_of(&failed);
                let done = match way {
                    "corrected" => go_on(&mut client, &run, CORRECTED),
                    // The same program ends in the same way, and a later correction goes on from there. Calls that were
                    // made do not count again.
                    "again" => {
                        let again = client.call("lisp_eval", json!({"run": run}));
                        if name == "a limit of calls" {
                            again
                        } else {
                            assert_eq!(run_of(&again), run, "{context}: {}", again.text);
                            assert_eq!(lines(folder.path(), "added").len(), 4, "{context}");
                            go_on(&mut client, &run, CORRECTED)
                        }
                    }
                    _ => client.eval("(doseq [n [4 5]] (notes/add {:line (str n)}))"),
                };
                assert!(!done.is_error, "{context}: {}", done.text);
                assert_eq!(lines(folder.path(), "added"), ALL, "{context}");
            }
        }
    }
}

#[test]
fn the_same_program_again_is_stopped_once_before_the_first_call_that_it_repeats() {
    on_each(&configuration, |client, folder, _| {
        let run = run_of(&client.eval(FAILS));
        let stopped = client.eval(CORRECTED);
        assert!(stopped.text.starts_with("EffectRepeated: notes/add {\"line\":\"0\"} was made "), "{}", stopped.text);
        let advice = format!(
            " ago by a program that failed, so nothing was sent; {{\"run\": \"{run}\", \"program\": \"…\"}} keeps it and goes \
             on behind it, `\"repeat\": true` beside `program` makes it again"
        );
        assert!(stopped.text.lines().next().is_some_and(|line| line.ends_with(&advice)), "{}", stopped.text);
        assert_eq!(lines(folder, "added"), ["0", "1", "2", "3"]);
        // Another call is not stopped, and the same program means what it says.
        assert!(!client.eval("(notes/add {:line \"x\"})").is_error);
        assert!(!client.eval(CORRECTED).is_error);
        assert_eq!(lines(folder, "added").len(), 11);
    });
}

#[test]
fn what_is_to_be_repeated_is_made_again_and_what_is_harmless_is_never_stopped() {
    on_each(&configuration, |client, folder, _| {
        client.eval("(notes/add {:line \"1\"}) (notes/set {:line \"2\"}) (/ 1 0)");
        assert!(!client.eval("(notes/list {:line \"\"}) (notes/set {:line \"2\"})").is_error);
        assert!(!repeated(client, "(notes/add {:line \"1\"})").is_error);
        assert_eq!((lines(folder, "added").len(), lines(folder, "set").len()), (2, 2));
    });
}

#[test]
fn a_policy_says_what_becomes_of_repeated_calls() {
    for (repeats, is_stopped, added) in [("ask", true, 4), ("keep", false, 6), ("make", false, 10)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut configuration = configuration(folder.path());
        configuration["policy"]["repeats"] = json!(repeats);
        let mut client = Client::start(&configuration, &[]);
        client.eval(FAILS);
        let again = client.eval(CORRECTED);
        assert_eq!(again.text.starts_with("EffectRepeated: "), is_stopped, "{repeats}: {}", again.text);
        let note = "note: notes/add: answered by the call of a program that failed (`policy.repeats`)";
        assert_eq!(again.text.contains(note), repeats == "keep", "{repeats}: {}", again.text);
        assert_eq!(lines(folder.path(), "added").len(), added, "{repeats}");
    }
}

#[test]
fn equal_calls_are_answered_as_often_as_they_were_made() {
    on_each(&configuration, |client, folder, _| {
        let run = run_of(&client.eval("(notes/add {:line \"a\"}) (notes/add {:line \"a\"}) (/ 1 0)"));
        let done = go_on(client, &run, "(vec (pmap (fn [_] (notes/add {:line \"a\"})) (range 3)))");
        assert!(done.text.starts_with("[\"added a\" \"added a\" \"added a\"]"), "{}", done.text);
        assert!(done.text.contains("[2 calls answered from earlier attempts]"), "{}", done.text);
        assert_eq!(lines(folder, "added"), ["a", "a", "a"]);
    });
}

#[test]
fn each_further_failure_adds_to_what_is_not_repeated_and_what_is_left_out_is_said() {
    on_each(&configuration, |client, folder, _| {
        let run = run_of(&client.eval("(notes/add {:line \"1\"}) (notes/add {:line \"2\"}) (/ 1 0)"));
        let second = go_on(client, &run, "(notes/add {:line \"1\"}) (notes/add {:line \"3\"}) (/ 1 0)");
        assert_eq!(run_of(&second), run);
        assert_eq!(second.record["made"], json!([{"tool": "notes/add", "count": 3}]), "{}", second.text);
        assert_eq!(second.record["attempt"]["answered"], json!(1));
        let third =
            go_on(client, &run, "(str (notes/add {:line \"3\"}) (notes/add {:line \"2\"}) (notes/add {:line \"4\"}))");
        assert_eq!(
            third.text.lines().collect::<Vec<_>>(),
            [
                "\"added 3added 2added 4\"",
                "[3 tool calls]",
                "[2 calls answered from earlier attempts]",
                "[made before and not asked for now: notes/add once; the value may lack them]"
            ]
        );
        assert_eq!(lines(folder, "added"), ["1", "2", "3", "4"]);
    });
}

#[test]
fn the_attempts_of_a_run_are_shown_as_one_history() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start(&configuration(folder.path()), &["--store", store]);
        let run = run_of(&client.eval("(notes/add {:line \"1\"}) (/ 1 0)"));
        go_on(&mut client, &run, "(notes/add {:line \"1\"}) (notes/add {:line \"2\"}) (nth [] 1)");
        let shown = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
            command.args(["runs", "--store", store, "show", &run]);
            printed(&command.output().expect("the binary runs"))
        };
        let failed = shown();
        assert!(failed.starts_with(&format!("run {run}: error\n")), "{failed}");
        let attempts: Vec<&str> = failed.lines().filter(|line| line.starts_with("attempt ")).collect();
        assert_eq!(attempts.len(), 2, "{failed}");
        assert!(attempts[0].contains(" UTC: ArithmeticError: "), "{failed}");
        assert!(failed.contains("made so far: notes/add 2 times\ncalls answered from earlier attempts: 1"), "{failed}");
        assert!(!go_on(&mut client, &run, "(notes/add {:line \"1\"})").is_error);
        let ended = shown();
        assert!(ended.starts_with(&format!("run {run}: ok\n")) && ended.contains("attempt 2, until "), "{ended}");
    });
}

#[test]
fn reads_are_made_anew_unless_the_logged_ones_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start(&configuration(folder.path()), &["--store", &store]);
    let program = "(notes/add {:line (str \"after \" (notes/list {:line \"\"}))})";
    let failed = client.eval(&format!("{program} (/ 1 0)"));
    let run = run_of(&failed);
    assert!(
        failed.text.contains("\"program\": \"whole, corrected\", \"reads\": \"logged\"} goes on"),
        "{}",
        failed.text
    );
    let logged = json!({"run": run, "program": format!("{program} (/ 1 0)"), "reads": "logged"});
    let again = client.call("lisp_eval", logged);
    assert_eq!(again.record["attempt"]["answered"], json!(2), "{}", again.text);
    assert_eq!(lines(folder.path(), "added"), ["after 0"]);
    // Anew, the read has another result, so the call is another one; that it was made before is said.
    let anew = go_on(&mut client, &run, program);
    assert!(anew.text.contains("[made before and not asked for now: notes/add once; "), "{}", anew.text);
    assert_eq!(lines(folder.path(), "added"), ["after 0", "after 1"]);
}

#[test]
fn a_further_attempt_sees_the_clock_and_the_random_numbers_of_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start(&configuration(folder.path()), &["--store", &store]);
    let program = "(notes/add {:line (str (inst-ms (java.time.Instant/now)) \" \" (rand-int 1000000000))})";
    let failed = client.eval(&format!("{program} (/ 1 0)"));
    assert_eq!(failed.record["error"], json!("ArithmeticError"), "{}", failed.text);
    let done = go_on(&mut client, &run_of(&failed), program);
    assert!(done.text.contains("[1 call answered from an earlier attempt]"), "{}", done.text);
    assert_eq!(lines(folder.path(), "added").len(), 1);
}

#[test]
fn a_further_attempt_begins_in_the_session_as_it_was_unless_that_has_changed() {
    on_each(&configuration, |client, _, store| {
        let session = client.eval("(def log (atom [1]))").handle();
        let fails = "(swap! log conj 2) (def b 5) (notes/add {:line \"1\"}) (/ 1 0)";
        let failed = client.call("lisp_eval", json!({"program": fails, "session": session}));
        let run = run_of(&failed);
        let done = go_on(client, &run, "(swap! log conj 2) (notes/add {:line \"1\"}) [@log (resolve 'b)]");
        match store {
            Some(_) => {
                assert!(done.text.starts_with("[[1 2] nil]") || done.text.contains("\n[[1 2] nil]"), "{}", done.text)
            }
            // Without a store, the session before is known only if it had no definitions.
            None => assert!(
                done.text.contains("note: it began in the session as the failed attempt left it"),
                "{}",
                done.text
            ),
        }
        let failed = client.eval("(def counter (atom 0)) (swap! counter inc) (notes/add {:line \"2\"}) (/ 1 0)");
        let is_new = failed.handle().is_some();
        let run = run_of(&failed);
        let done = go_on(client, &run, "(def counter (atom 0)) (swap! counter inc) (notes/add {:line \"2\"}) @counter");
        assert!(done.text.lines().any(|line| line == "1"), "{is_new}: {}", done.text);
    });
}

#[test]
fn new_calls_of_a_further_attempt_need_their_decision_and_the_earlier_ones_none() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start(&configuration(folder.path()), &["--store", store]);
        let run = run_of(&client.eval("(notes/share {:line \"a\"}) (notes/add {:line \"1\"}) (/ 1 0)"));
        printed(&approvals(store, &["approve", &run]));
        let failed = continued(&mut client, &run);
        assert_eq!(failed.record["error"], json!("ArithmeticError"), "{}", failed.text);
        // Its reply was promised to the client.
        assert_eq!(continued(&mut client, &run).record["error"], json!("ArithmeticError"));
        let program = "(notes/share {:line \"a\"}) (notes/add {:line \"1\"}) (notes/share {:line \"b\"}) (notes/add {:line \"2\"})";
        let waits = go_on(&mut client, &run, program);
        assert!(
            waits.text.starts_with("Suspended: the program waits until a person has decided on 1 call"),
            "{}",
            waits.text
        );
        printed(&approvals(store, &["approve", &run]));
        let done = continued(&mut client, &run);
        assert!(done.text.starts_with("\"added a\"") || done.text.contains("\"added 2\""), "{}", done.text);
        assert_eq!(lines(folder.path(), "shared"), ["a", "b"]);
        assert_eq!(lines(folder.path(), "added"), ["1", "2"]);
    });
}

/// Begins a program that adds four lines and then holds, and waits until it does.
fn begin_and_hold(client: &mut Client, folder: &Path) -> i64 {
    let program = "(dotimes [n 4] (notes/add {:line (str n)})) (notes/hold {:line \"h\"})";
    let id = client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
    until(|| lines(folder, "held") == ["h"]);
    id
}

#[test]
fn a_program_that_is_cancelled_is_told_of_in_the_next_reply_and_goes_on() {
    on_each(&configuration, |client, folder, store| {
        let id = begin_and_hold(client, folder);
        client.notify("notifications/cancelled", json!({"requestId": id}));
        // Without a session too, the next program begins behind the end of the one that is cancelled.
        let next = client.eval("(+ 1 2)");
        assert!(next.text.starts_with("[made before a program was cut off: "), "{}", next.text);
        let told = "notes/add 4 times, notes/hold once (outcome unknown); {\"run\": \"";
        assert!(next.text.contains(told) && next.text.lines().nth(1) == Some("3"), "{}", next.text);
        assert_eq!(client.eval("(+ 1 2)").text, "3");
        let status = client.eval("(map (juxt :state :ended :unknown) (run/status))");
        assert_eq!(status.text, "([\"failed\" \"cancelled\" 1])");
        let run = run_of(&next);
        let program = "(doseq [n (range 6)] (notes/add {:line (str n)}))";
        match store {
            Some(store) => {
                let waits = go_on(client, &run, program);
                let call = "has found out whether 1 call happened\n- notes/hold {\"line\":\"h\"} (outcome unknown)\n";
                let next =
                    format!("Then continue with {{\"run\": \"{run}\"}}, or with a corrected `program` beside it.");
                assert!(waits.text.contains(call) && waits.text.contains(&next), "{}", waits.text);
                let open = listed(store).into_iter().find(|listed| listed["run"] == json!(run)).expect("it is listed");
                let number = open["open"][0]["call"].as_str().expect("a number").to_owned();
                printed(&approvals(store, &["settle", &run, "--call", &number, "--happened", "\"held\""]));
            }
            None => {
                // No person can settle it: the attempt is stopped before the call, and only there.
                let stopped = go_on(client, &run, "(notes/hold {:line \"h\"})");
                let why = "EffectRepeated: an earlier attempt has sent notes/hold {\"line\":\"h\"}, and it is not known whether";
                assert!(stopped.text.starts_with(why), "{}", stopped.text);
            }
        }
        let done = go_on(client, &run, program);
        assert!(!done.is_error && done.text.contains("notes/hold once"), "{}", done.text);
        assert_eq!(
            (lines(folder, "added"), lines(folder, "held")),
            (ALL.map(str::to_owned).to_vec(), vec!["h".into()])
        );
    });
}

#[test]
fn a_program_whose_connection_or_process_ends_is_kept_and_another_process_goes_on() {
    crate::databases::on_each_store(|store| {
        for ending in ["killed", "terminated", "disconnected"] {
            let folder = tempfile::tempdir().expect("a folder");
            let configuration = configuration(folder.path());
            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            begin_and_hold(&mut client, folder.path());
            match ending {
                "killed" => kill(&mut client, folder.path(), store),
                "terminated" => {
                    let process = client.process.id().to_string();
                    Command::new("kill").args(["-TERM", &process]).status().expect("kill runs");
                    until(|| client.process.try_wait().expect("a child").is_some());
                }
                _ => {
                    client.close();
                    until(|| client.process.try_wait().expect("a child").is_some());
                }
            }
            let mut client = Client::start_stateless(&configuration, &["--store", store]);
            let found = || {
                let runs = listed(store).into_iter();
                runs.filter(|run| run["open"][0]["tool"] == "hold").collect::<Vec<_>>()
            };
            until(|| found().iter().any(|run| run["state"] != "running"));
            let open = &found()[0];
            let (run, number) = (open["run"].as_str().expect("a run"), open["open"][0]["call"].as_str().expect("one"));
            printed(&approvals(store, &["settle", run, "--call", number, "--happened", "\"held\""]));
            let done = go_on(&mut client, run, &format!("{CORRECTED} (notes/hold {{:line \"h\"}})"));
            assert!(done.text.contains("[5 calls answered from earlier attempts]"), "{ending}: {}", done.text);
            assert_eq!(lines(folder.path(), "added"), ALL, "{ending}");
            assert_eq!(lines(folder.path(), "held"), ["h"], "{ending}");
        }
    });
}

#[test]
fn of_two_attempts_at_once_the_second_is_refused() {
    on_each(&configuration, |client, folder, _| {
        let run = run_of(&client.eval(FAILS));
        let program = "(notes/hold {:line \"h\"})";
        let first = json!({"name": "lisp_eval", "arguments": {"run": run, "program": program}});
        let id = client.begin("tools/call", first);
        until(|| lines(folder, "held") == ["h"]);
        let second = json!({"name": "lisp_eval", "arguments": {"run": run, "program": CORRECTED}});
        let second = client.begin("tools/call", second);
        // In a session of the connection, the second call waits for its turn, and finds that the run has ended.
        std::thread::scope(|scope| {
            let mut answers = std::collections::HashMap::new();
            scope.spawn(|| {
                until(|| !lines(folder, "held").is_empty());
                std::fs::write(folder.join("go"), "").expect("written");
            });
            while answers.len() < 2 {
                let message = client.receive();
                if let Some(answered) = message["id"].as_i64() {
                    answers.insert(answered, Answer::of(&message));
                }
            }
            assert!(!answers[&id].is_error, "{}", answers[&id].text);
            assert!(answers[&second].text.starts_with("RunNotResumed: "), "{}", answers[&second].text);
        });
        assert_eq!(lines(folder, "added").len(), 4);
    });
}

#[test]
fn a_run_belongs_to_its_principal() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, configuration(folder.path()).to_string()).expect("written");
    let tokens = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let (file, tokens) = (file.display().to_string(), tokens.display().to_string());
    let cache = folder.path().join("cache").display().to_string();
    let server = Server::start(&["--config", &file, "--tokens", &tokens], &[("LISPBOX_CACHE", &cache)]);
    let (ann, bob) = ("Authorization: Bearer ann-ann-ann-ann-ann\r\n", "Authorization: Bearer bob-bob-bob-bob-bob\r\n");
    let (failed, _) = server.eval(ann, FAILS, None);
    let run = failed.split_once("{\"run\": \"").and_then(|(_, rest)| rest.split('"').next()).expect("a run");
    let go_on = |who| server.call(who, "lisp_eval", json!({"run": run, "program": CORRECTED})).result();
    assert!(go_on(bob).0.starts_with("RunNotResumed: there is no such run"));
    // Nor is a program of another principal stopped.
    assert!(!server.eval(bob, "(notes/add {:line \"0\"})", None).1);
    assert_eq!(server.eval(bob, "(run/status)", None).0, "[]");
    assert!(go_on(ann).0.contains("[4 calls answered from earlier attempts]"));
    assert_eq!(lines(folder.path(), "added"), ["0", "0", "1", "2", "3", "4", "5"]);
}

#[test]
fn data_is_kept_with_a_store_and_asked_for_again_without() {
    on_each(&configuration, |client, folder, store| {
        let fails = "(doseq [line data] (notes/add {:line line})) (/ 1 0)";
        let failed = client.call("lisp_eval", json!({"program": fails, "data": ["a", "b"]}));
        let run = run_of(&failed);
        let program = "(doseq [line data] (notes/add {:line line})) (notes/add {:line \"c\"})";
        let mut done = go_on(client, &run, program);
        if store.is_none() {
            assert!(done.text.contains("pass `data` again; nothing was evaluated"), "{}", done.text);
            done = client.call("lisp_eval", json!({"run": run, "program": program, "data": ["a", "b"]}));
        }
        assert!(!done.is_error, "{}", done.text);
        assert_eq!(lines(folder, "added"), ["a", "b", "c"]);
    });
}

#[test]
fn failed_calls_are_named_with_what_tells_them_apart() {
    on_each(&configuration, |client, folder, _| {
        let program = "(mapv (fn [n] (try (notes/try {:line (str n)}) (catch ToolError e nil))) [1 2])";
        let answer = client.eval(program);
        let named = "[2 tool calls, 2 failed: notes/try :line \"1\" (";
        assert!(answer.text.contains(named) && answer.text.contains(", notes/try :line \"2\" ("), "{}", answer.text);
        // A tool that answers that it has failed has made no change: the program may make the call again.
        std::fs::write(folder.join("ready"), "").expect("written");
        assert!(!client.eval(program).is_error);
        assert_eq!(lines(folder, "tried"), ["1", "2"]);
    });
}

#[test]
fn a_call_that_has_failed_is_made_again_by_a_further_attempt() {
    on_each(&configuration, |client, folder, _| {
        let program = "(notes/add {:line \"1\"}) (notes/try {:line \"2\"})";
        let failed = client.eval(program);
        assert_eq!(failed.record["made"], json!([{"tool": "notes/add", "count": 1}]), "{}", failed.text);
        std::fs::write(folder.join("ready"), "").expect("written");
        let done = client.call("lisp_eval", json!({"run": run_of(&failed)}));
        assert!(!done.is_error, "{}", done.text);
        assert_eq!((lines(folder, "added"), lines(folder, "tried")), (vec!["1".into()], vec!["2".into()]));
    });
}

#[test]
fn arguments_beside_a_run_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &[]);
    let run = run_of(&client.eval(FAILS));
    for (arguments, refusal) in [
        (
            json!({"run": run, "session": "x"}),
            "InvalidArguments: `run` goes on with a program in its own session, which is not the one that `session` names; leave `session` out; nothing was evaluated",
        ),
        (json!({"run": run, "reads": "old"}), "InvalidArguments: `reads` is \"new\" or \"logged\", not \"old\""),
        (
            json!({"program": "1", "reads": "logged"}),
            "InvalidArguments: `reads` is for a further attempt of a program: it needs `run`",
        ),
        (
            json!({"run": "none", "program": "1"}),
            "RunNotResumed: there is no such run: it was continued before, was cancelled, has waited too long, or never existed; `(run/status)` lists those that there are; nothing was evaluated",
        ),
    ] {
        assert_eq!(client.call("lisp_eval", arguments).text, refusal);
    }
}

#[test]
fn a_run_may_be_named_with_its_session() {
    on_each(&configuration, |client, folder, _| {
        let session = client.eval("(def before 1)").handle();
        let failed = client.call("lisp_eval", json!({"program": FAILS, "session": session}));
        let session = failed.handle().or(session);
        let arguments = json!({"run": run_of(&failed), "program": "before", "session": session});
        let done = client.call("lisp_eval", arguments);
        assert!(!done.is_error, "{}", done.text);
        assert!(!lines(folder, "added").is_empty());
    });
}

#[test]
fn a_program_that_only_reads_is_not_kept() {
    on_each(&configuration, |client, _, store| {
        let failed = client.eval("(notes/list {:line \"\"}) (/ 1 0)");
        assert!(!failed.text.contains("{\"run\""), "{}", failed.text);
        assert_eq!(client.eval("(run/status)").text, "[]");
        assert!(store.is_none_or(|store| listed(store).is_empty()));
    });
}

#[test]
fn audit_records_name_the_run_and_the_attempt() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("audit");
    let mut client = Client::start(&configuration(folder.path()), &["--audit", &log.display().to_string()]);
    let run = run_of(&client.eval(FAILS));
    go_on(&mut client, &run, CORRECTED);
    client.close();
    client.wait();
    let records = crate::audit_log::records(&log);
    let evaluations = records.iter().filter(|record| record["kind"] == "evaluation");
    let named: Vec<_> = evaluations.map(|record| (&record["run"], &record["attempt"])).collect();
    assert_eq!(named, [(&json!(run), &Value::Null), (&Value::Null, &json!(2))]);
}
