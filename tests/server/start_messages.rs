//! A server that does not start is reported with the cause, the server's words, and what to do.

use std::os::unix::fs::PermissionsExt;

use crate::mcp_client::{Client, hostile, python, script};
use serde_json::{Value, json};

/// Returns why a server does not start.
fn problem(server: Value) -> String {
    let mut client = Client::start(&json!({"mcpServers": {"s": server}}), &[]);
    let (code, message) = client.fails("(s/t)");
    assert_eq!(code, "ServerUnavailable", "{message}");
    message.strip_prefix("server `s` did not start: ").unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[test]
fn a_command_that_is_not_found_is_reported_with_what_is_wrong() {
    for (command, expected) in [
        (
            "npx -y @modelcontextprotocol/server-memory",
            "the command `npx …` was not found: `command` is one program; its arguments go into `args`",
        ),
        (
            "KEY=1 node server.js",
            "the command `KEY=…` was not found: `command` is one program; its arguments go into `args`, \
             and variables into `env`",
        ),
        ("~/bin/srv", "the command `srv` was not found: `~` is not expanded in `command`; `${HOME}` is"),
        ("no-such-command", "the command `no-such-command` was not found; it was looked for on PATH"),
        ("/no/such/command", "the command `command` was not found"),
        ("/tmp", "the command `tmp` is a folder"),
    ] {
        let problem = problem(json!({ "command": command }));
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn a_script_whose_interpreter_is_missing_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("srv");
    std::fs::write(&file, "#!/no/such/python -u\nprint()\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let expected = "the command `srv` cannot be run: its interpreter `/no/such/python`, which its first line names, was \
                    not found; install it, or name another one there";
    assert_eq!(problem(json!({ "command": file })), expected);
    std::fs::write(&file, "#!/usr/bin/python3\r\nprint()\r\n").expect("written");
    let expected =
        "the command `srv` cannot be run: its first line ends as on Windows; save it with the line ends of Unix";
    assert_eq!(problem(json!({ "command": file })), expected);
}

#[test]
fn what_a_server_prints_before_it_answers_is_quoted() {
    if python().is_none() {
        return;
    }
    let run = |program: &str| json!({"command": "python3", "args": ["-c", program], "start_timeout_seconds": 20});
    let printed = "its standard output, which is for messages of MCP alone, was";
    assert_eq!(
        problem(run("print('missing API key'); raise SystemExit(2)")),
        format!("it ended with exit status: 2; {printed}: \"missing API key\"")
    );
    let mut listening = run("print('Listening on http://127.0.0.1:8000', flush=True); import time; time.sleep(60)");
    listening["start_timeout_seconds"] = json!(2);
    let message = problem(listening);
    let hint = "a server that listens at an address is configured by its `url`";
    assert!(message.ends_with(&format!("{printed}: \"Listening on http://127.0.0.1:8000\"; {hint}")), "{message}");
    let uvicorn =
        "import sys, time; print('Uvicorn running on http://0.0.0.0:80', file=sys.stderr, flush=True); time.sleep(60)";
    let mut listening = run(uvicorn);
    listening["start_timeout_seconds"] = json!(2);
    let message = problem(listening);
    assert!(message.ends_with(&format!("it said: \"Uvicorn running on http://0.0.0.0:80\"; {hint}")), "{message}");
}

#[test]
fn words_of_a_process_that_ends_at_once_are_quoted_without_secrets() {
    let secret = "sk-live-0123456789abcdef";
    let long = format!("seq 1 50; echo 'Error: no licence'; seq 51 200; printf {}; exit 1", "z".repeat(400));
    for (script, status, expected) in [
        ("echo 'Usage: srv --key KEY'; exit 64", 64, "\"Usage: srv --key KEY\""),
        ("printf 'no end of line'; exit 3", 3, "\"no end of line\""),
        ("echo '[INFO] missing key'; exit 1", 1, "\"[INFO] missing key\""),
        (r#"echo '{"level":50,"msg":"missing key"}'; exit 1"#, 1, r#""{"level":50,"msg":"missing key"}""#),
        ("printf '\\033[31mred\\033[0m\\n'; exit 1", 1, "\"[31mred[0m\""),
        ("echo \"the key $API_KEY is unknown\"; exit 1", 1, "\"the key [redacted] is unknown\""),
        (long.as_str(), 1, "\"Error: no licence / … / zzz"),
    ] {
        let server = json!({"command": "sh", "args": ["-c", script], "env": {"API_KEY": secret}});
        let begin = format!(
            "it ended with exit status: {status}; its standard output, which is \
             for messages of MCP alone, was: {expected}"
        );
        // How far the handshake gets before the process has ended differs.
        for _ in 0..4 {
            let message = problem(server.clone());
            assert!(message.starts_with(&begin) && message.len() < 500, "{message}");
        }
    }
}

#[test]
fn what_other_clients_expand_is_named() {
    if python().is_none() {
        return;
    }
    for (server, expected) in [
        (json!({"command": "python3", "args": ["~/srv.py"]}), "; `~` is not expanded in `args`; `${HOME}` is"),
        (json!({"command": "python3", "args": ["$HOME/srv.py"]}), "; `$NAME` is not expanded in `args`; `${NAME}` is"),
        (
            json!({"command": "python3", "cwd": "~/srv"}),
            "its `cwd` is not a folder that exists: `srv`; `~` is not expanded in `cwd`; `${HOME}` is",
        ),
        (
            json!({"command": "srv", "env": {"PATH": "/opt/bin:$PATH"}}),
            "it was looked for on the PATH that its `env` sets; `$PATH` is not expanded there; `${PATH}` is",
        ),
        (
            json!({"command": "srv", "args": ["${command:pickPort}"]}),
            "VS Code alone can fill in `${command:pickPort}`; write the value itself, or a variable as `${NAME}`",
        ),
    ] {
        let message = problem(server);
        assert!(message.ends_with(expected), "{message}");
    }
}

#[test]
fn a_server_without_tools_can_be_used_whatever_it_says_about_them() {
    if python().is_none() {
        return;
    }
    let handshake = |capabilities: Value| {
        let about = json!({"name": "o", "version": "1"});
        json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about}).to_string()
    };
    for code in [-32601, -32603, -32000] {
        let tools = json!({"error": {"code": code, "message": "Server does not support tools"}});
        let list = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(list.path(), tools.to_string()).expect("written");
        let odd = |capabilities: Value| {
            json!({"command": "python3", "args": [
                script("odd.py"), "--list", list.path(), "--handshake", handshake(capabilities)
            ]})
        };
        let servers = json!({"prompts": odd(json!({"prompts": {}})), "tools": odd(json!({"tools": {}}))});
        let mut client = Client::start(&json!({ "mcpServers": servers }), &[]);
        let answer = client.eval("(dir 'prompts)");
        assert!(!answer.is_error, "{code}: {answer:?}");
        assert_eq!(client.fails("(dir 'tools)").1, "`tools/list` failed: Server does not support tools");
    }
}

#[test]
fn a_first_list_of_tools_may_take_as_long_as_a_start() {
    if python().is_none() {
        return;
    }
    let slow = |seconds: f64| {
        json!({"command": "python3", "args": [script("framing.py"), "lines", "--listing", seconds.to_string()],
               "start_timeout_seconds": 2})
    };
    let servers = json!({"mcpServers": {"patient": slow(1.5), "late": slow(60.0)}});
    let mut client = Client::start(&servers, &[]);
    assert!(client.eval("(:a (patient/echo :a 2))").text.starts_with('2'));
    let answer = client.eval("(late/echo)");
    assert_eq!(answer.failure().1, "`tools/list` did not answer within 2 s");
    assert_eq!(answer.record["suggestion"], "`start_timeout_seconds` of the server allows more");
}

#[test]
fn a_call_that_takes_too_long_says_how_it_gets_more_time() {
    if python().is_none() {
        return;
    }
    let servers = json!({"mcpServers": {"hostile": hostile(&[])}});
    let mut client = Client::start(&servers, &["--limit", "tool=300ms"]);
    let answer = client.eval("(hostile/hang)");
    let expected = "`timeout_seconds` of the server, or else `limits {\"tool\": …}` of the evaluation, allows more";
    assert_eq!(answer.record["suggestion"], expected, "{answer:?}");
}
