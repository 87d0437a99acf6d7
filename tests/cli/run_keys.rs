//! `lispbox eval --run-key`: a program that is evaluated once, in however many processes.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Tools that append a line to the file `lines`: `notes/add`, which is allowed, and `notes/share`, about which a person is
/// asked.
fn configuration(folder: &Path) -> String {
    let append = json!({
        "command": "sh",
        "args": ["-c", "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"", folder.join("lines"), "{line}"],
        "parameters": {"properties": {"line": {"type": "string"}}, "required": ["line"]},
    });
    let configuration = json!({
        "local": {"notes/add": append, "notes/share": append},
        "policy": {"allow": ["notes/add"], "ask": ["notes/share"]},
    });
    let file = folder.join("servers.json");
    std::fs::write(&file, configuration.to_string()).expect("written");
    file.display().to_string()
}

/// Runs lispbox in a session of its own, without a terminal.
fn lispbox(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_lispbox")]).args(arguments).stdin(std::process::Stdio::null());
    let store = format!("sqlite:{}", folder.join("runs.db").display());
    command.env("LISPBOX_STORE", store).env("USER", "ann").output().expect("it runs")
}

fn said(output: &Output) -> (String, String, bool) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

#[test]
fn a_program_with_a_run_key_waits_and_is_evaluated_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let program = "(def a (notes/add {:line \"1\"})) (println a) (str a (notes/share {:line \"2\"}))";
    let eval = |program: &str, more: &[&str]| {
        let arguments = [&["eval", "--config", &config, "--run-key", "report", program], more].concat();
        said(&lispbox(folder.path(), &arguments))
    };
    let (printed, message, is_well) = eval(program, &[]);
    assert_eq!((printed.as_str(), is_well), ("added 1\n", false));
    assert!(
        message.contains("the program waits until a person has decided on 1 call: `lispbox approvals show "),
        "{message}"
    );
    let (_, again, is_well) = eval(program, &[]);
    assert_eq!((again, is_well), (message, false), "it still waits");

    let (listed, ..) = said(&lispbox(folder.path(), &["approvals", "list", "--json"]));
    let listed: Value = serde_json::from_str(listed.trim()).expect("one run");
    let run = listed["run"].as_str().expect("a run");
    assert!(said(&lispbox(folder.path(), &["approvals", "approve", run, "--call", "1.1"])).2);
    let done = ("added 1\n\"added 1added 2\"\n".to_owned(), String::new(), true);
    assert_eq!(eval(program, &[]), done);
    assert_eq!(eval(program, &[]), done, "the stored reply");
    let (record, _, is_well) = eval(program, &["--json"]);
    let record: Value = serde_json::from_str(&record).expect("JSON");
    assert_eq!((&record["json"], is_well), (&json!("added 1added 2"), true));
    assert_eq!(std::fs::read_to_string(folder.path().join("lines")).expect("written"), "1\n2\n");

    let (_, reused, is_well) = eval("(+ 1 1)", &[]);
    assert!(!is_well && reused.starts_with("RunKeyReused: a program with this run key had another text"), "{reused}");
}

#[test]
fn a_run_key_needs_a_store() {
    let output = Command::new(env!("CARGO_BIN_EXE_lispbox")).args(["eval", "--run-key", "a", "1"]).output();
    let (_, message, is_well) = said(&output.expect("it runs"));
    assert!(!is_well && message.contains("--store <URL>"), "{message}");
}
