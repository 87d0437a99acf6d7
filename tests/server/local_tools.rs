//! Local tools: commands and HTTP endpoints of the configuration that programs call as tools.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::mcp_client::{Client, is_alive, until};
use serde_json::{Value, json};

/// A script that prints its arguments as a JSON list, one item per argument.
const WORDS: &str = r#"import json, sys; print(json.dumps(sys.argv[1:]))"#;

fn client(tools: Value) -> Client {
    Client::start(&json!({"local": tools}), &[])
}

/// Escapes braces, so that a template takes them literally.
fn braced(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn words(arguments: Value, properties: Value) -> Value {
    let mut args = vec![json!("-c"), json!(WORDS)];
    args.extend(arguments.as_array().expect("a list").iter().cloned());
    json!({"command": "python3", "args": args, "parameters": {"properties": properties}})
}

#[test]
fn each_argument_is_one_word() {
    let text = json!({"type": "string"});
    let tool = words(
        json!(["--text={text}", ["--author", "{author}"], {"all": "--all"}, "--limit={limit}", "--", "{paths}"]),
        json!({
            "text": text, "author": text, "all": {"type": "boolean"}, "limit": {"type": "integer", "default": 10},
            "paths": {"type": "array", "items": text}
        }),
    );
    let mut client = client(json!({"show/words": tool}));
    let mut shows =
        |arguments: &str| client.eval(&format!("(show/words {arguments})")).text.lines().next().map(str::to_owned);
    assert_eq!(shows(r#"{}"#).as_deref(), Some(r#"["--limit=10" "--"]"#));
    assert_eq!(
        shows(r#"{:text "a b; rm -rf $HOME `id` {author}" :author "-x" :all true :limit 2 :paths ["-p" "" "q r"]}"#)
            .as_deref(),
        Some(r#"["--text=a b; rm -rf $HOME `id` {author}" "--author" "-x" "--all" "--limit=2" "--" "-p" "" "q r"]"#)
    );
    assert_eq!(shows(r#"{:all false :author nil}"#).as_deref(), Some(r#"["--limit=10" "--"]"#));
}

#[test]
fn arguments_are_checked_and_none_becomes_an_option() {
    let tool = words(json!(["{ref}"]), json!({"ref": {"type": ["string", "integer"]}}));
    let mut client = client(json!({"show/words": tool}));
    assert_eq!(
        client.fails(r#"(show/words {:ref "--output=/etc/passwd"})"#),
        (
            "ToolArgumentError".to_owned(),
            "`show/words`: argument `ref` begins with `-`, which the command would take for an option".to_owned()
        )
    );
    assert!(client.eval("(show/words {:ref -5})").text.starts_with(r#"["-5"]"#));
    assert_eq!(
        client.fails("(show/words {:ref true})").1,
        "argument `ref` of `show/words`: expected string or integer, got the boolean `true`"
    );
    assert_eq!(client.fails("(show/words {:reff 1})").1, "`show/words` has no argument `reff`; it takes `ref`");
}

#[test]
fn a_command_has_its_input_its_folder_and_little_of_our_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"import json, os, sys
print(json.dumps({"input": json.load(sys.stdin), "folder": os.getcwd(), "variables": sorted(os.environ), "key": os.environ["KEY"]}))"#;
    let tool = json!({
        "name": "facts", "command": "python3", "args": ["-c", braced(script), "{name}"], "stdin": "json", "cwd": folder.path(),
        "env": {"KEY": "${HOME}!"},
        "parameters": {"properties": {"name": {"type": "string"}, "rows": {"type": "array"}}}
    });
    let mut client = client(json!([tool]));
    let told = client
        .eval(r#"(let [f (local/facts {:name "x" :rows [1 2]})] [(:input f) (:folder f) (:key f) (:variables f)])"#)
        .text;
    let home = std::env::var("HOME").expect("a home");
    assert!(told.starts_with("[{:rows [1 2]}"), "{told}");
    assert!(told.contains(&format!("{:?}", folder.path().canonicalize().expect("there"))), "{told}");
    assert!(told.contains(&format!("\"{home}!\"")), "{told}");
    assert!(told.contains("\"PATH\"") && !told.contains("CARGO_MANIFEST") && !told.contains("LISPBOX"), "{told}");
}

#[test]
fn a_command_that_fails_says_why_and_can_be_caught() {
    let script = "import sys; print('no such branch', file=sys.stderr); sys.exit(3)";
    let mut client = client(json!({
        "git/fail": {"command": "python3", "args": ["-c", script]},
        "git/text": {"command": "python3", "args": ["-c", "print('a\\nb\\n')"]},
        "git/large": {"command": "python3", "args": ["-c", "print('x' * 100000)"], "max_output_bytes": 1000},
        "git/missing": {"command": "/secret/place/no-such-command"},
    }));
    assert_eq!(
        client.fails("(git/fail)"),
        ("ToolError".to_owned(), "`git/fail` failed: it ended with exit status: 3; it said: no such branch".to_owned())
    );
    assert!(client.eval("(try (git/fail) (catch Exception e :caught))").text.starts_with(":caught"));
    assert!(client.eval("(git/text)").text.starts_with("\"a\\nb\""));
    assert_eq!(
        client.fails("(git/large)"),
        ("ToolResultTooLarge".to_owned(), "`git/large`: its output exceeds 1000 bytes (`max_output_bytes`)".to_owned())
    );
    assert_eq!(client.fails("(git/missing)").1, "`git/missing` failed: the command `no-such-command` was not found");
    let listed = client.eval("(with-out-str (dir 'git))").text;
    assert!(listed.contains("fail") && listed.contains("large"), "{listed}");
    assert!(client.call("lisp_env", json!({})).text.contains("git"));
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_left_of_a_command_that_is_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    // The command has a child process, and both would run for a minute.
    let script = r#"import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"])
with open(sys.argv[1] + ".draft", "w") as file: file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".draft", sys.argv[1])
time.sleep(60)"#;
    let tool = |file: &str, seconds: f64| {
        let file = folder.path().join(file);
        json!({"command": "python3", "args": ["-c", braced(script), file], "timeout_seconds": seconds})
    };
    let tools = json!({"slow/short": tool("short", 2.0), "slow/called": tool("called", 60.0), "slow/ended": tool("ended", 60.0)});
    let processes = |file: &str| -> Vec<i64> {
        let file = folder.path().join(file);
        until(|| file.exists());
        let text = std::fs::read_to_string(file).expect("written");
        text.split(' ').map(|number| number.parse().expect("a number")).collect()
    };
    let gone = |processes: Vec<i64>| until(|| processes.iter().all(|process| !is_alive(*process)));
    let mut client = client(tools);
    let begun = Instant::now();
    assert_eq!(
        client.fails("(slow/short)"),
        ("ToolTimeout".to_owned(), "`slow/short` did not answer within 2 s".to_owned())
    );
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    gone(processes("short"));
    let id = client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(slow/called)"}}));
    let called = processes("called");
    client.notify("notifications/cancelled", json!({"requestId": id}));
    gone(called);
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(slow/ended)"}}));
    let ended = processes("ended");
    client.process.kill().expect("it runs");
    gone(ended);
}

/// Starts an HTTP endpoint that gives each of these answers to one request. Its thread returns the requests.
fn endpoint(answers: Vec<String>) -> (SocketAddr, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let serving = std::thread::spawn(move || {
        let answered = answers.into_iter().map(|answer| {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if let Some(size) = line.to_lowercase().strip_prefix("content-length:") {
                    length = size.trim().parse().expect("a number");
                }
                if line.trim().is_empty() {
                    break;
                }
                request.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            stream.write_all(answer.as_bytes()).expect("it reads");
            request + &String::from_utf8_lossy(&body)
        });
        answered.collect()
    });
    (address, serving)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn an_endpoint_is_asked_with_arguments_in_their_places() {
    let json = "Content-Type: application/json\r\n";
    let (address, serving) = endpoint(vec![
        answer("200 OK", json, "[1,2]"),
        answer("200 OK", json, "42"),
        answer("404 Not Found", "", "no such city"),
        answer("302 Found", "Location: http://127.0.0.1:1/elsewhere\r\n", ""),
        answer("200 OK", "", &"x".repeat(2000)),
    ]);
    let text = json!({"type": "string"});
    let tools = json!({
        "weather/of": {
            "url": format!("http://{address}/cities/{{city}}/today"), "query": {"day": "{days}", "units": "{units}"},
            "headers": {"X-Key": "${HOME}", "X-Note": "{note}"}, "max_output_bytes": 1000,
            "parameters": {
                "properties": {"city": text, "units": text, "note": text, "days": {"type": "array"}}, "required": ["city"]
            }
        },
        "weather/report": {
            "url": format!("http://{address}/reports/{{city}}"), "body": "json",
            "parameters": {"properties": {"city": text, "degrees": {"type": "number"}}, "required": ["city"]}
        }
    });
    let mut client = client(tools);
    let home = std::env::var("HOME").expect("a home");
    assert!(client.eval(r#"(weather/of {:city "a/b ?#&%2e" :days [1 2] :units "x&y=z"})"#).text.starts_with("[1 2]"));
    assert!(client.eval(r#"(weather/report {:city "Bern" :degrees 21.5})"#).text.starts_with("42"));
    assert_eq!(
        client.fails(r#"(weather/of {:city "Berm"})"#),
        ("ToolError".to_owned(), "`weather/of` failed: it answered with HTTP status 404: no such city".to_owned())
    );
    let elsewhere = "`weather/of` failed: it answered with HTTP status 302, a redirect to another address";
    assert_eq!(client.fails(r#"(weather/of {:city "Rome"})"#).1, elsewhere);
    assert_eq!(client.fails(r#"(weather/of {:city "Oslo"})"#).0, "ToolResultTooLarge");
    for (city, problem) in [("..", "changes the address"), ("", "is empty")] {
        let (code, message) = client.fails(&format!("(weather/of {{:city {city:?}}})"));
        assert!(code == "ToolArgumentError" && message.contains(problem), "{city}: {message}");
    }
    let (code, message) = client.fails(r#"(weather/of {:city "Bern" :note "a\nInjected: b"})"#);
    assert!(code == "ToolArgumentError" && message.contains("header `X-Note` cannot be sent"), "{message}");
    let requests = serving.join().expect("it served");
    let first = &requests[0];
    let line = "GET /cities/a%2Fb%20%3F%23%26%252e/today?day=1&day=2&units=x%26y%3Dz HTTP/1.1";
    assert!(first.starts_with(line), "{first}");
    assert!(first.contains(&format!("x-key: {home}")) && !first.contains("x-note"), "{first}");
    assert!(
        requests[1].starts_with("POST /reports/Bern HTTP/1.1") && requests[1].ends_with(r#"{"degrees":21.5}"#),
        "{}",
        requests[1]
    );
    assert_eq!(client.fails(r#"(weather/of {:city "Bern"})"#).0, "ServerUnavailable");
}

#[test]
fn they_are_shown_checked_and_kept_from_programs_like_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lispbox.yaml");
    let text = "local:
  - name: git/log
    description: The last commits
    command: git
    args: [log, '--max-count={count}']
    parameters: { properties: { count: { type: integer } } }
  - name: git/push
    command: git
    args: [push]
    destructive: true
  - { name: web/get, url: 'https://example.org/{page}', headers: { key: a-secret }, parameters: { properties: { page: { type: string } }, required: [page] } }
tools: { block: ['git/push'] }
";
    std::fs::write(&file, text).expect("written");
    let said = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        let output = command
            .args(arguments)
            .arg("--config")
            .arg(&file)
            .env("LISPBOX_CACHE", folder.path())
            .output()
            .expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let checked = said(&["config", "check"]);
    assert!(checked.contains("ok      git: 1 tool (1 unannotated), 1 more may not be called: push"), "{checked}");
    assert!(checked.contains("ok      web: 1 tool (1 unannotated)"), "{checked}");
    let shown = said(&["config", "show"]);
    assert!(shown.contains("log, push") && shown.contains("get") && !shown.contains("a-secret"), "{shown}");
    let tools = said(&["tools"]);
    assert!(tools.contains("(git/log :count? integer)  The last commits") && !tools.contains("push"), "{tools}");
    assert!(said(&["eval", "(git/push)"]).contains("may not be called"));
    std::fs::write(&file, text.replace("{count}", "{cuont}")).expect("written");
    let wrong = said(&["config", "check"]);
    assert!(
        wrong.contains("`{cuont}` is not one of the `properties` of `parameters`; did you mean `{count}`?"),
        "{wrong}"
    );
    std::fs::write(&file, text.replace("command: git\n    args: [push]", "comand: git")).expect("written");
    assert!(said(&["config", "check"]).contains("did you mean `command`?"));
}
