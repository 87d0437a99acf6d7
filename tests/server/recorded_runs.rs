//! Recorded runs: shown and replayed by `lispbox runs`.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{approvals, configuration, continued, lines, listed, printed, refusal, run_of};
use serde_json::{Value, json};

/// Runs `lispbox runs` on a store.
fn runs(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["runs", "--store", store]).args(arguments).stdin(std::process::Stdio::null());
    command.output().expect("the binary runs")
}

/// The runs of a store, as `lispbox runs list --json` prints them.
fn recorded(store: &str) -> Vec<Value> {
    let text = printed(&runs(store, &["list", "--json"]));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The identity of the run of a program.
fn identity(store: &str, program: &str) -> String {
    let all = recorded(store);
    let run = all.iter().find(|run| run["program"] == *program).unwrap_or_else(|| panic!("no such run: {all:?}"));
    run["run"].as_str().expect("a run").to_owned()
}

fn text(answer: &Answer) -> &str {
    answer.text.lines().next().unwrap_or_default()
}

const SAME: &str = "was replayed without calling anything: value, prints, definitions";

/// Programs of one session: with calls, in branches, with errors, time, random numbers and tool listings.
const PROGRAMS: [&str; 8] = [
    "(def n (count (notes/add {:line \"a\"})))",
    "(println n) (def all (pmap (fn [i] (notes/add {:line (str i \" of \" n)})) (range 3))) (map count all)",
    "(try (notes/add {:lin 1}) (catch Exception e (println (ex-message e)) :caught))",
    "(def later (+ (rand-int 1000000) (System/currentTimeMillis))) later",
    "(defn twice [x] (* 2 x)) (twice (count (dir)))",
    "(println (apropos \"notes\"))",
    "(notes/add {:line \"z\"}) (/ 1 0)",
    "(conj all *1)",
];

#[test]
fn a_replay_repeats_value_prints_definitions_and_fuel_and_calls_nothing() {
    crate::databases::on_each_store(|store| {
        for isolate in [&[][..], &["--isolate"]] {
            let folder = tempfile::tempdir().expect("a folder");
            let arguments = [&["--store", store, "--record"], isolate].concat();
            let mut client = Client::start(&configuration(folder.path()), &arguments);
            // The same programs are recorded with and without isolation.
            let mark = isolate.len();
            let programs: Vec<String> = PROGRAMS.iter().map(|program| format!("{program} ; {mark}")).collect();
            programs.iter().for_each(|program| drop(client.eval(program)));
            let sent = lines(folder.path(), "added");
            assert_eq!(sent.len(), 5);
            drop(client);
            for program in &programs {
                let run = identity(store, program);
                let replayed = printed(&runs(store, &["replay", &run]));
                assert!(replayed.contains(SAME), "{program}: {replayed}");
            }
            assert_eq!(lines(folder.path(), "added"), sent, "a replay calls nothing");
        }
    });
}

#[test]
fn a_run_that_waited_is_replayed_as_a_whole() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let program = "(def before (notes/add {:line \"1\"})) (println before)
                       (pmap (fn [i] (if (= i 2) (notes/share {:line \"2\"}) (notes/add {:line (str i)}))) [2 3 4])";
        let mut client = Client::start(&configuration, &["--store", store, "--record", "30d"]);
        let run = run_of(&client.eval(program));
        let replayed = printed(&runs(store, &["replay", &run]));
        assert!(
            replayed.contains("has not ended; its replay reached the end of the record: it waits there"),
            "{replayed}"
        );
        let waiting = listed(store).into_iter().find(|waiting| waiting["run"] == *run).expect("it waits");
        let number = waiting["open"][0]["call"].as_str().expect("a number").to_owned();
        printed(&approvals(store, &["approve", &run, "--call", &number]));
        drop(client);
        // Another process continues it.
        let mut client = Client::start_stateless(&configuration, &["--store", store, "--record", "30d"]);
        assert_eq!(text(&continued(&mut client, &run)), "(\"added 2\" \"added 3\" \"added 4\")");
        let replayed = printed(&runs(store, &["replay", &run]));
        assert!(replayed.contains(SAME), "{replayed}");
        let shown = printed(&runs(store, &["show", &run]));
        assert!(shown.contains("\nform 1 (line 1, "), "{shown}");
        assert!(shown.contains("  1.1       notes/add {\"line\":\"1\"}  ok ("), "{shown}");
        assert!(shown.contains("notes/share {\"line\":\"2\"}  ok, approved ("), "{shown}");
        assert!(shown.contains("printed:\nadded 1\n"), "{shown}");
        assert!(shown.contains("decision: notes/share: approved (`lispbox approvals`, by ann)"), "{shown}");
        assert_eq!(lines(folder.path(), "shared"), ["2"]);
    });
}

/// A server on a new SQLite store that records runs, with the store and its folder.
fn recording(folder: &Path, options: &[&str]) -> (Client, String) {
    let store = format!("sqlite:{}", folder.join("sessions.db").display());
    let arguments = [&["--store", &store], options].concat();
    (Client::start(&configuration(folder), &arguments), store)
}

#[test]
fn a_changed_program_runs_against_the_recorded_replies() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut client, store) = recording(folder.path(), &["--record"]);
    let program = "(map (fn [i] (notes/add {:line (str i)})) [1 2])";
    client.eval(program);
    let run = identity(&store, program);
    let file = folder.path().join("changed.lisp");
    let with = |changed: &str| {
        std::fs::write(&file, changed).expect("written");
        runs(&store, &["replay", &run, "--with", &file.display().to_string()])
    };
    assert_eq!(printed(&with("(println 1) (count (notes/add {:line \"2\"}))")), "1\n7\n");
    let refused = refusal(&with("(notes/add {:line \"3\"})"));
    assert!(refused.contains("ReplayDiverged"), "{refused}");
    assert!(refused.contains("the record has no reply to this call of `notes/add`, so nothing was sent"), "{refused}");
    // `--live` makes what is not recorded.
    std::fs::write(&file, "(map (fn [i] (notes/add {:line (str i)})) [2 3])").expect("written");
    let servers = folder.path().join("servers.json");
    std::fs::write(&servers, configuration(folder.path()).to_string()).expect("written");
    let file = file.display().to_string();
    let live = ["replay", &run, "--with", &file, "--live", "--config", &servers.display().to_string()];
    assert_eq!(printed(&runs(&store, &live)), "(\"added 2\" \"added 3\")\n");
    assert_eq!(lines(folder.path(), "added"), ["1", "2", "3"]);
    let without = refusal(&runs(&store, &["replay", &run, "--live", "--no-config"]));
    assert!(without.contains("give the servers by `--config FILE`"), "{without}");
    let idle = refusal(&runs(&store, &["replay", &run, "--config", &servers.display().to_string()]));
    assert!(idle.contains("`--config` is for calls of tools, which only `--live` makes"), "{idle}");
}

#[test]
fn a_replay_stops_after_a_form_with_a_repl_in_its_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut client, store) = recording(folder.path(), &["--record"]);
    let program = "(def a (notes/add {:line \"1\"})) (def b (count a)) (def c (notes/add {:line \"2\"}))";
    client.eval(program);
    let run = identity(&store, program);
    let typed = |text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["runs", "--store", &store, "replay", &run, "--until", "form:2"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("it runs");
        let mut input = child.stdin.take().expect("piped");
        std::io::Write::write_all(&mut input, text.as_bytes()).expect("it reads");
        drop(input);
        child.wait_with_output().expect("it ends")
    };
    let said = printed(&typed("[a b (resolve 'c)]\n"));
    assert_eq!(said.lines().last(), Some("[\"added 1\" 7 nil]"), "{said}");
    let alone = refusal(&typed("(notes/add {:line \"9\"})\n"));
    assert!(alone.contains("there is no server `notes`"), "{alone}");
    assert_eq!(lines(folder.path(), "added"), ["1", "2"]);
    let beyond = refusal(&runs(&store, &["replay", &run, "--until", "form:9"]));
    assert!(beyond.contains("the program has 3 forms, not 9"), "{beyond}");
    let wrong = refusal(&runs(&store, &["replay", &run, "--until", "2"]));
    assert!(wrong.contains("expected a form by its number, from 1, such as `form:2`"), "{wrong}");
}

#[test]
fn the_page_of_a_run_has_no_scripts_and_escapes_what_tools_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut client, store) = recording(folder.path(), &["--record"]);
    let program = "(notes/add {:line \"<script>alert(1)</script>\"})";
    client.eval(program);
    let page = folder.path().join("run.html");
    printed(&runs(&store, &["show", &identity(&store, program), "--html", &page.display().to_string()]));
    let page = std::fs::read_to_string(page).expect("written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("class=\"bar\""), "{page}");
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("added &lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
}

#[test]
fn runs_are_recorded_only_on_request_within_their_size_and_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut client, store) = recording(folder.path(), &[]);
    client.eval("(notes/add {:line \"1\"})");
    assert!(recorded(&store).is_empty());
    drop(client);
    let (mut client, store) = recording(folder.path(), &["--record", "2s", "--record-size", "100KiB"]);
    client.eval("(notes/add {:line \"2\"})");
    let large = "(def large (vec (range 100000))) (notes/add {:line \"3\"})";
    client.eval(large);
    client.eval("(count large)");
    let run = identity(&store, "(count large)");
    let refused = refusal(&runs(&store, &["replay", &run]));
    assert!(refused.contains("was not recorded as a whole, or was too large"), "{refused}");
    until(|| recorded(&store).is_empty());
    // A run does not count as a session of its principal.
    let sessions = Command::new(env!("CARGO_BIN_EXE_lispbox")).args(["sessions", "list", "--store", &store]).output();
    assert_eq!(String::from_utf8_lossy(&sessions.expect("it runs").stdout).lines().count(), 1);
}

#[test]
fn a_program_asks_for_the_state_of_runs() {
    crate::databases::on_each_store(|store| {
        for isolate in [&[][..], &["--isolate"]] {
            let folder = tempfile::tempdir().expect("a folder");
            let arguments = [&["--store", store], isolate].concat();
            let mut client = Client::start(&configuration(folder.path()), &arguments);
            let run = run_of(&client.eval("(notes/share {:line \"1\"})"));
            let status = format!("(select-keys (run/status {run:?}) [:state :calls :unknown])");
            let answer = client.eval(&status);
            assert_eq!(text(&answer), "{:state \"waiting\", :calls [\"notes/share\"], :unknown 0}");
            let all = client.eval(&format!("(count (filter (fn [run] (= (:run run) {run:?})) (run/status)))"));
            assert_eq!(text(&all), "1");
            printed(&approvals(store, &["cancel", &run]));
            assert_eq!(text(&client.eval(&format!("(:state (run/status {run:?}))"))), "\"ended\"");
            let none = client.eval("(run/status \"x\")");
            assert_eq!(none.record["error"], json!("NoRun"), "{}", none.text);
        }
    });
}
