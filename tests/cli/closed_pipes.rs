//! Commands end without an error if the reader of their output closes the pipe.
#![cfg(unix)]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(LISPBOX);
    command.args(arguments).current_dir(home).env("HOME", home).env("LISPBOX_CACHE", home.join("cache"));
    command.env_remove("XDG_CONFIG_HOME").env("LISPBOX_AUDIT", home.join("audit"));
    command.env("LISPBOX_STORE", "sqlite:sessions.db").env("LISPBOX_CONFIG", home.join("servers.json"));
    command
}

/// The write end of a pipe whose read end is closed.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// Creates a home folder with a configuration, an audit log and a session.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let server = json!({"command": LISPBOX, "args": ["sample-mailbox"]});
    let servers = json!({"mcpServers": {"mail": server}}).to_string();
    std::fs::write(home.path().join("servers.json"), servers).expect("written");
    let mut serving = command(home.path(), &["serve"]);
    let mut serving =
        serving.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut input = serving.stdin.take().expect("piped");
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "lisp_eval", "arguments": {"program": "(def n (count (mail/fetch-emails :limit 3)))"}}}),
    ];
    for message in messages {
        writeln!(input, "{message}").expect("it reads");
    }
    drop(input);
    let mut replies = String::new();
    serving.stdout.take().expect("piped").read_to_string(&mut replies).expect("text");
    serving.wait().expect("it ends");
    assert!(replies.contains("session:"), "{replies}");
    home
}

const COMMANDS: &[&[&str]] = &[
    &["config", "show"],
    &["config", "check"],
    &["config", "import", "--dry-run"],
    &["setup", "cursor", "--dry-run"],
    &["audit", "show"],
    &["audit", "show", "--json"],
    &["audit", "stats"],
    &["audit", "verify"],
    &["sessions", "list"],
    &["sessions", "list", "--json"],
    &["tools"],
    &["doc"],
    &["doc", "Strings"],
    &["doc", "--search", "map"],
    &["completions", "bash"],
    &["eval", "(dotimes [i 100000] (println i))"],
    &["eval", "--json", "(vec (range 1000))"],
    &["eval", "--batch"],
    &["repl"],
    &["demo"],
    &["--help"],
    &["--version"],
    &["serve", "--help"],
];

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let home = home();
    for arguments in COMMANDS {
        let mut running = command(home.path(), arguments);
        let running = running.stdin(Stdio::piped()).stdout(closed()).stderr(Stdio::piped());
        let mut running = running.spawn().expect("it runs");
        let mut input = running.stdin.take().expect("piped");
        // The write fails if the command has ended without reading its input.
        let _ = input.write_all(b"\"(+ 1 2)\"\n\"(+ 3 4)\"\n");
        drop(input);
        let ended = running.wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*errors), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn errors_that_nobody_can_read_change_no_exit_code() {
    let home = home();
    let cases: &[(&[&str], i32)] = &[
        (&["eval", "(nonsense)"], 1),
        (&["eval", "1", "--limit", "nonsense=1"], 2),
        (&["eval", "--nonsense"], 2),
        (&["config", "check", "--config", "nothing.json"], 2),
        (&["tools", "zzzzzz"], 1),
        (&["doc", "map-indxed"], 1),
        (&["sessions", "show", "nothing"], 1),
        (&["serve", "--limit", "nonsense=1"], 2),
    ];
    for (arguments, code) in cases {
        let mut running = command(home.path(), arguments);
        let running = running.stdin(Stdio::null()).stdout(closed()).stderr(closed());
        let ended = running.status().expect("it runs");
        assert_eq!(ended.code(), Some(*code), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let home = home();
    for arguments in [&["config", "show"][..], &["eval", "1"], &["doc"], &["sessions", "list"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let ended = command(home.path(), arguments).stdin(Stdio::null()).stdout(full).output().expect("it runs");
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("standard output could not be written: No space left"), "{arguments:?}: {errors}");
    }
}
