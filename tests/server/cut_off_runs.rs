//! Programs whose process dies while they are evaluated for the first time, without a run key.
#![cfg(unix)]

use crate::mcp_client::{Client, until};
use crate::waiting_runs::{approvals, configuration, continued, kill, lines, listed, printed, refusal};
use serde_json::{Value, json};

#[test]
fn a_call_that_was_being_made_when_the_process_of_its_program_died_waits_for_a_person() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = configuration(folder.path());
        let program = "(def a (notes/add {:line \"1\"})) (println a) (def b (notes/hold {:line \"2\"}))
                       (str (notes/add {:line \"3\"}) b)";
        let mut client = Client::start_stateless(&configuration, &["--store", store]);
        client.begin(
            "tools/call",
            json!({"name": "lisp_eval", "arguments": {"program": program}, "_meta": crate::meta()}),
        );
        until(|| lines(folder.path(), "held") == ["2"]);
        kill(&mut client, folder.path(), store);

        // The next process reports it, and makes neither of the calls again.
        let mut client = Client::start_stateless(&configuration, &["--store", store]);
        let found = || listed(store).into_iter().find(|run| run["open"][0]["tool"] == "hold");
        until(|| found().is_some_and(|run| run["state"] == "waiting"));
        let run = found().expect("it waits");
        assert_eq!(run["open"][0]["unknown"], json!(true));
        let identity = run["run"].as_str().expect("a run").to_owned();
        let number = run["open"][0]["call"].as_str().expect("a number").to_owned();
        let status = client.eval(&format!("(println (map :unknown (filter #(= (:run %) {identity:?}) (run/status))))"));
        assert_eq!(status.text.lines().next(), Some("(1)"), "{}", status.text);
        let answer = continued(&mut client, &identity);
        assert!(answer.text.contains("until a person has found out whether 1 call happened"), "{}", answer.text);
        let shown = printed(&approvals(store, &["show", &identity]));
        assert!(shown.contains(&format!("call {number}: it is not known whether it happened")), "{shown}");

        printed(&approvals(store, &["settle", &identity, "--call", &number, "--happened", "\"found\""]));
        let done = continued(&mut client, &identity);
        assert_eq!(
            done.text.lines().take(3).collect::<Vec<_>>(),
            ["\"added 3found\"", "printed:", "added 1"],
            "{}",
            done.text
        );
        assert_eq!(
            (lines(folder.path(), "added"), lines(folder.path(), "held")),
            (vec!["1".into(), "3".into()], vec!["2".into()])
        );
        // Its reply can be had again.
        assert_eq!(continued(&mut client, &identity).text.lines().next(), Some("\"added 3found\""));
    });
}

/// The client of a process that has died is started again with a new one, and knows nothing.
#[test]
fn a_process_tells_of_what_an_earlier_one_did_not_end_and_programs_do_not_repeat_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let start = || Client::start(&configuration(folder.path()), &["--store", &store]);
    let mut client = start();
    let fails = client.eval("(def kept 1) (notes/add {:line \"0\"}) (/ 1 0)");
    let session = fails.handle().expect("a handle");
    let program = "(notes/add {:line \"1\"}) (notes/hold {:line \"2\"})";
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
    until(|| lines(folder.path(), "held") == ["2"]);
    kill(&mut client, folder.path(), &store);

    let mut client = start();
    let mut told = String::new();
    until(|| {
        told = client.eval("(+ 1 2)").text;
        told != "3"
    });
    let line = "[made before a program was cut off: notes/add once, notes/hold once (outcome unknown); {\"run\": \"";
    assert!(told.starts_with(line) && told.lines().nth(1) == Some("3"), "{told}");
    assert_eq!(client.eval("(+ 1 2)").text, "3", "once");
    let status =
        client.eval("(mapv (juxt :state :unknown (comp (partial mapv (juxt :tool :count)) :made)) (run/status))");
    let [cut_off, failed] =
        ["[\"waiting\" 1 [[\"notes/add\" 1] [\"notes/hold\" 1]]]", "[\"failed\" 0 [[\"notes/add\" 1]]]"];
    assert!(status.text.contains(cut_off) && status.text.contains(failed), "{}", status.text);
    for (line, how, session) in [("0", "failed", Some(&session)), ("1", "was cut off", None)] {
        let program = format!("(notes/add {{:line {line:?}}})");
        let repeated = client.call("lisp_eval", json!({"program": program, "session": session}));
        assert!(repeated.text.starts_with("EffectRepeated: ") && repeated.text.contains(how), "{}", repeated.text);
    }
    assert_eq!(lines(folder.path(), "added"), ["0", "1"]);
}

/// A person may look at a call for a while, and another attempt of its run may be made and cut off meanwhile.
#[test]
fn the_number_of_a_call_names_no_call_of_another_attempt() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start(&configuration(folder.path()), &["--store", store]);
        let mut cut_off = |arguments: Value, times: usize| {
            let id = client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments}));
            until(|| lines(folder.path(), "held").len() == times);
            client.notify("notifications/cancelled", json!({ "requestId": id }));
            match arguments["run"].as_str() {
                // An attempt that names its run outlives its request, and is ended by another one.
                Some(run) => until(|| {
                    let ended = client.call("lisp_eval", json!({"run": run, "cancel": true})).text;
                    !ended.contains("cannot be ended from here")
                }),
                None => drop(client.eval("nil")),
            }
            let run = listed(store).into_iter().find(|run| run["open"][0]["unknown"] == true).expect("it is listed");
            let named = |name: &Value| name.as_str().expect("a text").to_owned();
            (named(&run["run"]), named(&run["open"][0]["call"]))
        };
        let settle = |run: &str, number: &str| approvals(store, &["settle", run, "--call", number, "--did-not-happen"]);
        let program = "(notes/hold {:line \"h\"})";
        let (run, first) = cut_off(json!({ "program": program }), 1);
        printed(&settle(&run, &first));
        let (again, second) = cut_off(json!({"run": run, "program": program}), 2);
        assert_eq!(run, again);
        let refused = refusal(&settle(&run, &first));
        assert!(refused.contains(&format!("no open call {first}; open are: {second}")), "{refused}");
    });
}

#[test]
fn a_program_that_ends_well_leaves_no_record_behind() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start(&configuration(folder.path()), &["--store", store]);
        let before = listed(store).len();
        for program in ["(notes/add {:line \"1\"})", "(notes/add {:line \"2\"}) 3", "(notes/none) (/ 1 0)"] {
            client.eval(program);
        }
        assert_eq!((listed(store).len(), lines(folder.path(), "added").len()), (before, 2));
    });
}

#[test]
fn a_program_whose_record_cannot_be_stored_makes_no_call_that_changes_something() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sessions.db");
    let mut client = Client::start(&configuration(folder.path()), &["--store", &format!("sqlite:{}", path.display())]);
    assert!(client.eval("(notes/add {:line \"1\"})").text.starts_with("\"added 1\""));
    std::fs::remove_file(&path).expect("it is there");
    let refused = client.eval("(notes/add {:line \"2\"})");
    assert!(refused.is_error, "{}", refused.text);
    assert_eq!(lines(folder.path(), "added"), ["1"], "{}", refused.text);
}

#[test]
fn the_outcome_of_a_call_is_stored_though_no_call_follows_that_changes_something() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut configuration = configuration(folder.path());
    configuration["local"]["notes/hold"]["read_only"] = json!(true);
    let path = folder.path().join("sessions.db");
    let store = format!("sqlite:{}", path.display());
    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    let program = "(str (notes/add {:line \"1\"}) (notes/hold {:line \"2\"}))";
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}, "_meta": crate::meta()}));
    let files = [path.clone(), folder.path().join("sessions.db-wal")];
    let outcome = "added 1".as_bytes();
    until(|| {
        let mut contents = files.iter().filter_map(|file| std::fs::read(file).ok());
        contents.any(|content| content.windows(outcome.len()).any(|part| part == outcome))
    });
    kill(&mut client, folder.path(), &store);
    std::fs::write(folder.path().join("go"), "").expect("it is writable");

    let mut client = Client::start_stateless(&configuration, &["--store", &store]);
    until(|| listed(&store).first().is_some_and(|run| run["state"] == "begun"));
    let run = listed(&store)[0]["run"].as_str().expect("a run").to_owned();
    let done = continued(&mut client, &run);
    assert_eq!(done.text.lines().next(), Some("\"added 1added 2\""), "{}", done.text);
    assert_eq!(lines(folder.path(), "added"), ["1"]);
}
