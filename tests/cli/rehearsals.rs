//! `lispbox eval --rehearse` and `lispbox run --rehearse`.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A tool that appends a line to the file `lines`.
fn configuration(folder: &Path) -> String {
    let add = json!({
        "command": "sh",
        "args": ["-c", "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"", folder.join("lines"), "{line}"],
        "parameters": {"properties": {"line": {"type": "string"}}, "required": ["line"]},
    });
    let file = folder.join("servers.json");
    std::fs::write(&file, json!({"local": {"notes/add": add}}).to_string()).expect("written");
    file.display().to_string()
}

/// Runs lispbox in a session of its own, without a terminal, in that folder.
fn lispbox(folder: &Path, arguments: &[&str]) -> (String, String, bool) {
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_lispbox")]).args(arguments).stdin(std::process::Stdio::null());
    said(&command.current_dir(folder).env("USER", "ann").output().expect("it runs"))
}

fn said(output: &Output) -> (String, String, bool) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

fn lines(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("lines")).unwrap_or_default()
}

#[test]
fn a_rehearsal_is_shown_as_text_as_json_and_as_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let program = "(notes/add {:line \"<b>1</b>\"}) :done";
    std::fs::write(folder.path().join("program.lisp"), program).expect("written");
    let text = "#<unknown result \"notes/add\">\n:done\nrehearsed: 1 call was not made\n\ncall 1: notes/add with\n{\n  \"line\": \"<b>1</b>\"\n}\n\nThey are not kept: ";
    for isolate in [&[][..], &["--isolate"]] {
        let eval = [&["eval", "--rehearse", "--config", &config, program], isolate].concat();
        let run = [&["run", "--rehearse", "--config", &config], isolate, &["program.lisp"]].concat();
        for command in [eval, run] {
            let (shown, message, is_well) = lispbox(folder.path(), &command);
            assert!(is_well && shown.starts_with(text), "{shown}{message}");
        }
    }
    let (record, _, is_well) =
        lispbox(folder.path(), &["eval", "--rehearse", "--json", "--html", "page.html", "--config", &config, program]);
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let call = json!({"server": "notes", "tool": "add", "arguments": {"line": "<b>1</b>"}});
    assert_eq!((&record["json"], &record["rehearsed"]["calls"], is_well), (&json!("done"), &json!([call]), true));
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("Call 1: notes/add") && page.contains("&lt;b&gt;1&lt;/b&gt;"), "{page}");
    assert!(!page.contains("<b>") && !page.contains("<script"), "{page}");
    let (shown, message, is_well) =
        lispbox(folder.path(), &["eval", "--rehearse", "--config", &config, "(count (notes/add {:line \"1\"}))"]);
    assert!(!is_well && message.starts_with("RehearsedResult: "), "{message}");
    assert!(shown.ends_with("They cannot be made: the program did not come to its end.\n"), "{shown}");
    assert_eq!(lines(folder.path()), "");
}

#[test]
fn the_calls_of_a_rehearsal_with_a_run_key_are_made_once_they_are_decided_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let program = "(run! (fn [n] (notes/add {:line n})) [\"milk\" \"rice\"])";
    let store = ["--store", "sqlite:runs.db"];
    let eval = |rehearse: &[&str]| {
        let arguments =
            [&["eval", "--config", &config, "--run-key", "shopping", program], &store[..], rehearse].concat();
        lispbox(folder.path(), &arguments)
    };
    let approvals = |arguments: &[&str]| lispbox(folder.path(), &[&["approvals"], &store[..], arguments].concat());
    let (shown, message, is_well) = eval(&["--rehearse"]);
    assert!(is_well && shown.contains("They are made once a person has decided on each"), "{shown}{message}");
    let (_, message, is_well) = eval(&["--rehearse"]);
    assert!(!is_well && message.contains("the program waits until a person has decided on 2 calls"), "{message}");
    let (_, message, is_well) = eval(&[]);
    assert!(!is_well && message.contains("RunKeyReused"), "{message}");
    let (listed, ..) = approvals(&["list", "--json"]);
    let listed: Value = serde_json::from_str(listed.trim()).expect("one run");
    let run = listed["run"].as_str().expect("a run");
    let (shown, ..) = approvals(&["show", run]);
    assert!(shown.contains(program) && shown.contains("call 1.2\nA program wants to call notes/add with"), "{shown}");
    assert!(approvals(&["deny", run, "--call", "1.2"]).2 && approvals(&["approve", run]).2);
    assert_eq!(lines(folder.path()), "");
    let outcomes =
        "[{:result \"added milk\"} {:denied \"`notes/add` may not be called: a person was asked and said no\"}]\n";
    assert_eq!(eval(&["--rehearse"]), (outcomes.to_owned(), String::new(), true));
    assert_eq!(eval(&["--rehearse"]), (outcomes.to_owned(), String::new(), true), "the stored reply");
    assert_eq!(lines(folder.path()), "milk\n");
}

#[test]
fn a_commit_asks_at_the_terminal_about_each_call() {
    use rexpect::reader::Options;
    use rexpect::session::spawn_with_options;
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let program = "(run! (fn [n] (notes/add {:line n})) [\"milk\" \"rice\"])";
    let arguments = ["eval", "--rehearse", "--commit", "--config", &config, program];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(arguments).current_dir(folder.path());
    let options = Options::new().timeout_ms(Some(120_000)).strip_ansi_escape_codes(true);
    let mut terminal = spawn_with_options(command, options).expect("a terminal");
    for key in ["n", "y"] {
        terminal.exp_string("Allow this call? [y/N] ").expect("the person is asked");
        terminal.send_line(key).expect("a key");
    }
    let shown = terminal.exp_eof().expect("it ends");
    assert!(shown.contains("{:result \"added rice\"}]"), "{shown}");
    assert_eq!(lines(folder.path()), "rice\n");

    let (_, message, is_well) = lispbox(folder.path(), &arguments);
    assert!(!is_well && message.contains("not all calls were made"), "{message}");
    assert_eq!(lines(folder.path()), "rice\n");
}
