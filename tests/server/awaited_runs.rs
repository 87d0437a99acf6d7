//! Waits for runs: without a thread, with the connection of the client, and within the share of its principal.
#![cfg(unix)]

use std::path::Path;

use crate::http_client::{Connection, Server, tokens_file};
use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{approvals, configuration, continued, keyed, lines, listed, printed, run_of};
use serde_json::{Value, json};

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";

fn threads(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", server.process.id())).map_or(0, Iterator::count)
}

/// A server for two principals, on a store in that folder.
fn server_for_two(folder: &Path) -> (Server, String) {
    let store = format!("sqlite:{}", folder.join("sessions.db").display());
    let file = folder.join("servers.json");
    std::fs::write(&file, configuration(folder).to_string()).expect("written");
    let tokens = tokens_file(folder, &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let (file, tokens) = (file.display().to_string(), tokens.display().to_string());
    let arguments = ["--config", &file, "--tokens", &tokens, "--store", &store];
    let cache = folder.join("cache").display().to_string();
    (Server::start(&arguments, &[("LISPBOX_CACHE", &cache)]), store)
}

/// Begins a program with a run key that holds until the file `go` is there, and returns the identity of its run.
fn held(server: &Server, folder: &Path, store: &str) -> (Connection, String) {
    let mut meta = crate::meta();
    meta["lispbox/run-key"] = json!("a report");
    let arguments = json!({"program": "(notes/hold {:line \"x\"})"});
    let params = json!({"name": "lisp_eval", "arguments": arguments, "_meta": meta});
    let mut connection = server.connect();
    let head = format!("{ANN}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: lisp_eval\r\n");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    connection.begin_post(&head, &call);
    until(|| lines(folder, "held") == ["x"]);
    let run = listed(store)[0]["run"].as_str().expect("a run").to_owned();
    (connection, run)
}

#[test]
fn a_request_for_a_run_that_is_evaluated_takes_no_thread_and_ends_with_its_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, store) = server_for_two(folder.path());
    let (mut first, run) = held(&server, folder.path(), &store);
    let before = threads(&server);
    for _ in 0..12 {
        let dropped: Vec<Connection> = (0..40).map(|_| server.begin(ANN, "lisp_eval", json!({"run": run}))).collect();
        assert_eq!(server.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
        drop(dropped);
    }
    assert!(threads(&server) < before + 60, "{} threads, {before} before", threads(&server));
    // Those that are still there have a place each, and the others leave as much room to other principals.
    let waiting: Vec<Connection> = (0..60).map(|_| server.begin(ANN, "lisp_eval", json!({"run": run}))).collect();
    assert_eq!(server.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
    std::fs::write(folder.path().join("go"), "").expect("written");
    let answers: Vec<String> = waiting.into_iter().map(|mut one| one.receive().result().0).collect();
    let (answered, busy): (Vec<String>, Vec<String>) =
        answers.into_iter().partition(|text| text.starts_with("\"added x\""));
    assert!(answered.len() > 10, "{busy:?}");
    assert!(busy.iter().all(|text| text.contains("it must leave as much room for others")), "{busy:?}");
    assert!(!busy.is_empty(), "a principal waits within its share");
    assert!(first.receive().result().0.starts_with("\"added x\""));
    assert_eq!(lines(folder.path(), "held"), ["x"], "it was evaluated once");
}

#[test]
fn of_many_requests_that_continue_a_run_one_does_and_the_others_get_its_reply() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let mut clients = [0, 1].map(|_| Client::start_stateless(&configuration, &["--store", store]));
        let run = run_of(&clients[0].eval("(notes/share {:line \"a\"}) (notes/hold {:line \"b\"})"));
        printed(&approvals(store, &["approve", &run]));
        let asked: Vec<Vec<i64>> = clients
            .iter_mut()
            .map(|client| {
                let ask = |_| client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"run": run}}));
                (0..6).map(ask).collect()
            })
            .collect();
        until(|| lines(folder.path(), "held") == ["b"]);
        std::fs::write(folder.path().join("go"), "").expect("written");
        for (client, mut ids) in clients.iter_mut().zip(asked) {
            while !ids.is_empty() {
                let message = client.receive();
                ids.retain(|id| message["id"] != *id);
                let text = Answer::of(&message).text;
                assert!(text.starts_with("\"added a\"\n\"added b\""), "{text}");
            }
        }
        assert_eq!((lines(folder.path(), "shared").len(), lines(folder.path(), "held").len()), (1, 1));
    });
}

#[test]
fn a_request_that_is_withdrawn_while_it_waits_for_a_run_is_answered_no_more_and_the_run_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let mut client = Client::start_stateless(&configuration(folder.path()), &["--store", &store]);
    let call = keyed("a report", json!({"program": "(notes/hold {:line \"x\"})"}));
    let first = client.begin("tools/call", call.clone());
    until(|| lines(folder.path(), "held") == ["x"]);
    let second = client.begin("tools/call", call);
    client.notify("notifications/cancelled", json!({"requestId": second}));
    std::fs::write(folder.path().join("go"), "").expect("written");
    let answer = loop {
        let message = client.receive();
        assert_ne!(message["id"], second, "{message}");
        if message["id"] == first {
            break Answer::of(&message);
        }
    };
    assert!(answer.text.starts_with("\"added x\""), "{}", answer.text);
}

/// Suspends that many runs, and returns their identities.
fn suspended(client: &mut Client, count: usize) -> Vec<String> {
    (0..count).map(|n| run_of(&client.eval(&format!("(notes/share {{:line \"{n}\"}})")))).collect()
}

#[test]
fn the_programs_that_wait_are_counted_in_the_store_for_all_instances() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let mut clients = [0, 1].map(|_| Client::start_stateless(&configuration, &["--store", store]));
        let runs = [suspended(&mut clients[0], 10), suspended(&mut clients[1], 10)].concat();
        for client in &mut clients {
            let (error, message) = client.fails("(notes/share {:line \"one more\"})");
            assert_eq!(error, "ToolNeedsApproval");
            assert!(message.contains("20 programs wait for approval already, and no further one can"), "{message}");
        }
        // One that the other instance has continued, one that was cancelled, and one that was decided on.
        printed(&approvals(store, &["approve", &runs[0]]));
        assert!(!continued(&mut clients[1], &runs[0]).is_error);
        printed(&approvals(store, &["cancel", &runs[1]]));
        printed(&approvals(store, &["deny", &runs[2]]));
        suspended(&mut clients[0], 3);
        assert_eq!(clients[1].fails("(notes/share {:line \"one more\"})").0, "ToolNeedsApproval");
        let status = clients[1].eval("(frequencies (map :state (run/status)))").text;
        assert!(status.starts_with("{\"waiting\" 20 \"decided\" 1}") || status.contains("\"waiting\" 20"), "{status}");
        assert_eq!(lines(folder.path(), "shared"), ["0"]);
    });
}

/// The resident memory of a process, in bytes.
fn resident(client: &Client) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.process.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
}

#[test]
fn the_log_of_a_run_has_a_hard_size_wherever_it_is_kept() {
    // Answers about runs, calls with wrong arguments, and calls that nobody can be asked about, all of them caught.
    let answers = "(dotimes [_ 500] (try (run/status big) (catch Exception e nil)))";
    let wrong = "(dotimes [_ 150] (try (notes/add {:line big :other 1}) (catch Exception e nil)))";
    let refused = "(dotimes [_ 150] (try (notes/share {:line big}) (catch Exception e nil)))";
    let together = "(dotimes [_ 10] (try (doall (pmap (fn [_] (try (notes/share {:line big}) (catch Exception e nil)))
                                               (range 16))) (catch Exception e nil)))";
    let clock = "(dotimes [_ 30000] (now))";
    for program in [answers, wrong, refused, together, clock] {
        for isolate in [&[][..], &["--isolate"]] {
            let folder = tempfile::tempdir().expect("a folder");
            let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
            let arguments = [&["--store", &store, "--reply-within", "never"], isolate].concat();
            let mut client = Client::start_stateless(&configuration(folder.path()), &arguments);
            suspended(&mut client, 20);
            let before = resident(&client);
            let program = format!("(let [big (apply str (repeat 200000 \"xy\"))] {program} :done)");
            let limits: Value = json!({"memory": 32 << 20, "compute": "60s", "total": 120, "fuel": 1_000_000_000});
            let answer = client.call("lisp_eval", json!({"program": program, "limits": limits}));
            assert!(answer.text.starts_with(":done"), "{}", answer.text);
            let grown = resident(&client).saturating_sub(before);
            // Twice the memory of the program, and as much for what the allocator keeps of sixteen calls at once.
            assert!(grown < 128 << 20, "{isolate:?}: {program} grew by {} MiB", grown >> 20);
        }
    }
}
