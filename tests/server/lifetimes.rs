//! Termination of the server: it ends promptly, and no process that it started outlives it.
#![cfg(target_os = "linux")]

use crate::mcp_client::{Client, hostile, is_alive, python, until};
use serde_json::json;

/// Starts a server whose downstream server has a child and a grandchild. Returns the client and the three process ids.
fn family() -> Option<(Client, Vec<i64>)> {
    family_of(&[])
}

/// Does the same as [`family`], with further arguments.
fn family_of(arguments: &[&str]) -> Option<(Client, Vec<i64>)> {
    python()?;
    let mut client = Client::start(&json!({"mcpServers": {"hostile": hostile(&[])}}), arguments);
    let answer = client.eval("(hostile/children)").text;
    let numbers: Vec<i64> = answer
        .lines()
        .next()
        .expect("a value")
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    assert_eq!(numbers.len(), 3, "{answer}");
    assert!(numbers.iter().all(|number| is_alive(*number)));
    Some((client, numbers))
}

fn signal(client: &Client, signal: i32) {
    let process = i32::try_from(client.process.id()).expect("a process number");
    // SAFETY: a system call on integers; the process is a child that has not been reaped.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

fn all_gone(numbers: &[i64]) {
    until(|| numbers.iter().all(|number| !is_alive(*number)));
}

#[test]
fn at_the_end_of_input() {
    let Some((mut client, numbers)) = family() else { return };
    client.close();
    assert!(client.wait().success());
    all_gone(&numbers);
}

#[test]
fn on_sigterm_with_the_input_open() {
    let Some((mut client, numbers)) = family() else { return };
    signal(&client, libc::SIGTERM);
    assert!(client.wait().success());
    all_gone(&numbers);
}

#[test]
fn on_sigkill() {
    let Some((mut client, numbers)) = family() else { return };
    signal(&client, libc::SIGKILL);
    client.wait();
    all_gone(&numbers);
}

#[test]
fn while_programs_run() {
    let Some((mut client, numbers)) = family_of(&["--grace", "200ms"]) else { return };
    for program in ["(loop [] (recur))", "(hostile/hang)"] {
        let arguments = json!({"program": program, "limits": {"compute": "60s", "fuel": 1e9}});
        client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments}));
    }
    client.close();
    client.wait();
    all_gone(&numbers);
}

#[test]
fn a_server_that_ignores_all_requests_to_end() {
    let configuration = json!({"mcpServers": {"deaf": {
        "command": "sh", "args": ["-c", "trap '' TERM INT HUP; while :; do sleep 1; done"], "start_timeout_seconds": 60
    }}});
    let mut client = Client::start(&configuration, &[]);
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(deaf/x)"}}));
    let deaf = || -> Option<i64> {
        let children = format!("/proc/{0}/task", client.process.id());
        let tasks = std::fs::read_dir(children).ok()?;
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
            .flat_map(|text| text.split_whitespace().filter_map(|number| number.parse().ok()).collect::<Vec<i64>>())
            .find(|number| {
                std::fs::read_to_string(format!("/proc/{number}/cmdline")).is_ok_and(|line| line.contains("while :"))
            })
    };
    let mut found = None;
    until(|| {
        found = deaf();
        found.is_some()
    });
    let number = found.expect("found above");
    signal(&client, libc::SIGTERM);
    client.wait();
    all_gone(&[number]);
}
