//! The log: JSON lines that are correlated by ids, contain no secrets, and go to a stream that carries no protocol
//! messages.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::http_client::handle;
use crate::mcp_client::{Client, hostile, python, until};
use serde_json::{Value, json};

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";

/// Reads the lines of a stream in a thread and sends them over a channel.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The events up to the one that reports the end of the evaluation of this program.
fn up_to(lines: &Receiver<String>, program: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let line = lines.recv_timeout(Duration::from_secs(30)).expect("a line of the log");
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it is not JSON: {line}"));
        let is_last = event["fields"]["program"].as_str().is_some_and(|logged| logged.contains(program));
        seen.push(event);
        if is_last {
            return seen;
        }
    }
}

fn of<'e>(events: &'e [Value], target: &str) -> &'e Value {
    let found = events.iter().rfind(|event| event["target"] == target);
    &found.unwrap_or_else(|| panic!("nothing of {target}: {events:?}"))["fields"]
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn over_http_it_is_on_standard_output_behind_the_address() {
    let Some(_) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let servers = folder.path().join("servers.json");
    let mut server = hostile(&[]);
    server["env"] = json!({"KEY": "a-secret-of-the-server"});
    server["autoApprove"] = json!([]);
    std::fs::write(&servers, json!({"mcpServers": {"hostile": server}}).to_string()).expect("written");
    let tokens = crate::http_client::tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann"}));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["serve", "--http", "127.0.0.1:0", "--config"]).arg(&servers).arg("--tokens").arg(&tokens);
    command.env("LISPBOX_CACHE", folder.path().join("cache")).env_remove("LISPBOX_TOKEN").env("LISPBOX_LOG", "debug");
    let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut process = Ended(process);
    let log = lines(process.0.stdout.take().expect("piped"));
    let first = log.recv_timeout(Duration::from_secs(30)).expect("a line");
    let address = first.strip_prefix("listening on http://").and_then(|rest| rest.strip_suffix("/mcp"));
    let address = address.unwrap_or_else(|| panic!("a warning does not come before it: {first}"));
    let client = crate::http_client::Client { address: address.parse().expect("an address") };

    let (text, _) = client.eval(ANN, r#"(def found (hostile/echo {:text (str "a-secret-" "argument")}))"#, None);
    let session = handle(&text);
    client.eval(ANN, "(hostile/fail) ; second", Some(&session));
    let events = up_to(&log, "; second");
    let text = events.iter().map(Value::to_string).collect::<String>();
    for secret in ["a-secret-argument", "a-secret-of-the-server", "ann-ann", &session] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let (evaluation, call) = (of(&events, "lispbox::evaluation"), of(&events, "lispbox::call"));
    assert_eq!((&evaluation["principal"], &evaluation["outcome"]), (&json!("ann"), &json!("ToolError")));
    assert_eq!(
        (&call["server"], &call["tool"], &call["outcome"]),
        (&json!("hostile"), &json!("fail"), &json!("ToolError"))
    );
    for id in ["evaluation", "principal", "session"] {
        assert!(!call[id].is_null() && call[id] == evaluation[id], "{id}: {call} and {evaluation}");
    }
    let sessions = events.iter().filter(|event| event["target"] == "lispbox::evaluation");
    let sessions: Vec<&Value> = sessions.map(|event| &event["fields"]["session"]).collect();
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "one session has one name: {sessions:?}");
}

/// A server over HTTP whose log has not been read while it evaluated so many programs that lines were dropped.
#[cfg(unix)]
fn unread() -> (Ended, BufReader<ChildStdout>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["serve", "--http", "127.0.0.1:0"]).env("LISPBOX_LOG", "debug");
    let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut process = Ended(process);
    let mut output = BufReader::new(process.0.stdout.take().expect("piped"));
    let mut first = String::new();
    output.read_line(&mut first).expect("a line");
    let address = first.trim().strip_prefix("listening on http://").and_then(|rest| rest.strip_suffix("/mcp"));
    let client = crate::http_client::Client { address: address.expect(&first).parse().expect("an address") };
    // More lines than the pipe and the queue hold.
    for _ in 0..2000 {
        assert!(client.eval("", "(+ 1 2)", None).0.starts_with('3'));
    }
    (process, output)
}

#[test]
#[cfg(unix)]
fn over_http_a_server_whose_log_is_not_read_ends_when_it_is_told_to() {
    let (mut process, _unread) = unread();
    let told = Command::new("kill").args(["-TERM", &process.0.id().to_string()]).status();
    assert!(told.expect("kill runs").success());
    until(|| process.0.try_wait().expect("a child").is_some());
}

#[test]
#[cfg(unix)]
fn lines_that_were_dropped_are_counted_once_the_log_is_read() {
    let (_process, output) = unread();
    let warning = output.lines().map_while(Result::ok).find(|line| line.contains("were dropped"));
    let warning: Value = serde_json::from_str(&warning.expect("a warning")).expect("JSON");
    assert_eq!(warning["level"], "WARN");
    assert!(warning["fields"]["lines"].as_u64().is_some_and(|lines| lines > 0), "{warning}");
}

#[test]
fn over_stdio_it_is_on_standard_error() {
    let mut client = Client::start_with_unread_log(&json!({"mcpServers": {}}));
    let log = lines(client.process.stderr.take().expect("piped"));
    client.eval("(+ 1 2)");
    let events = up_to(&log, "(+ 1 2)");
    assert_eq!(of(&events, "lispbox::evaluation")["principal"], "local");
}
