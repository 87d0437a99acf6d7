//! A server that does not start is reported with the cause, the server's words, and what to do.

use std::os::unix::fs::PermissionsExt;

use crate::mcp_client::{Client, hostile, python};
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
    let script = folder.path().join("srv");
    std::fs::write(&script, "#!/no/such/python -u\nprint()\n").expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let expected = "the command `srv` cannot be run: its interpreter `/no/such/python`, which its first line names, was \
                    not found";
    assert_eq!(problem(json!({ "command": script })), expected);
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
        format!(
            "it closed the connection before it answered; it ended with exit status: 2; {printed}: missing API key"
        )
    );
    let mut listening = run("print('Listening on http://127.0.0.1:8000', flush=True); import time; time.sleep(60)");
    listening["start_timeout_seconds"] = json!(2);
    let message = problem(listening);
    let hint = "a server that listens at an address is configured by its `url`";
    assert!(message.ends_with(&format!("{printed}: Listening on http://127.0.0.1:8000; {hint}")), "{message}");
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
