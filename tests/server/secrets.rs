//! Credentials of the configuration: only the configured processes receive them, and no output contains them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::http_client::Server;
use crate::mcp_client::{Client, python, script};
use serde_json::{Value, json};

/// A key with characters that encodings escape.
const KEY: &str = "sk/ann&\"qzx7\"+bob=ß-29";
const TOOLS: &[&str] =
    &["environment", "escaped", "structured", "keys", "split", "error", "refusal", "encoded", "blob"];

fn leaky(arguments: &[&str]) -> Value {
    let mut all = vec![script("leaky.py")];
    all.extend(arguments.iter().map(|argument| argument.to_string()));
    json!({"command": "python3", "args": all, "env": {"KEY": KEY}})
}

/// Checks that a text contains no part of the key, verbatim or encoded.
fn assert_harmless(text: &str) {
    let quoted = Value::from(KEY).to_string();
    for form in [KEY, &quoted[1..quoted.len() - 1], "qzx7", "ann&", "ß-29", "%71%7a%78%37"] {
        assert!(!text.contains(form), "{form}: {text}");
    }
}

fn lispbox(folder: &Path, configuration: &Value, arguments: &[&str]) -> Output {
    let file = folder.join("servers.json");
    std::fs::write(&file, configuration.to_string()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.env("LISPBOX_CACHE", folder.join("cache")).env("LISPBOX_CONFIG", &file).args(arguments);
    command.stdin(Stdio::null()).output().expect("it runs")
}

fn all_said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_server_inherits_listed_variables_alone() {
    let Some(_) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens.json");
    std::fs::write(&tokens, json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}).to_string())
        .expect("written");
    let mut one = leaky(&[]);
    one["inherit"] = json!(["MORE_*"]);
    let print = json!({"command": "python3", "args": ["-c", "import json, os; print(json.dumps(dict(os.environ)))"]});
    let configuration = json!({"servers": {"one": one, "two": leaky(&[])}, "local": {"here/env": print}});
    let file = folder.path().join("servers.json");
    std::fs::write(&file, configuration.to_string()).expect("written");
    let server = Server::start(
        &["--config", &file.to_string_lossy(), "--tokens", &tokens.to_string_lossy()],
        &[
            ("LISPBOX_TOKEN", "the-token-of-default"),
            ("LISPBOX_CACHE", &folder.path().join("cache").to_string_lossy()),
            ("OTHERS_API_KEY", "others-api-key-1"),
            ("SOMETHING", "that nobody named"),
            ("MORE_OF_IT", "more"),
            ("HTTPS_PROXY", "http://ann:hunter-22@proxy:3128"),
            ("LC_TIME", "C"),
        ],
    );
    let names = |namespace: &str| {
        let tool = if namespace == "here" { "here/env" } else { &format!("{namespace}/environment") };
        let program = format!("(sort (map name (keys ({tool}))))");
        let (text, failed) = server.eval("Authorization: Bearer bob-bob-bob-bob-bob\r\n", &program, None);
        assert!(!failed, "{text}");
        text
    };
    let has = |text: &str, name: &str| text.contains(&format!("\"{name}\""));
    for namespace in ["one", "two", "here"] {
        let names = names(namespace);
        assert!(has(&names, "PATH") && has(&names, "LC_TIME"), "{names}");
        assert_eq!(has(&names, "MORE_OF_IT"), namespace == "one", "{names}");
        assert!(!names.contains("LISPBOX") && !has(&names, "OTHERS_API_KEY") && !has(&names, "SOMETHING"), "{names}");
        assert!(!has(&names, "HTTPS_PROXY"), "its address has a password: {names}");
    }
}

#[test]
fn nothing_that_a_server_says_gives_a_credential_away() {
    let Some(_) = python() else { return };
    let configuration = json!({"mcpServers": {"leaky": leaky(&[]), "bad": leaky(&["--start"])}});
    let mut client = Client::start(&configuration, &["--reply", "structured"]);
    for tool in TOOLS {
        let answer = client.eval(&format!("(def it (leaky/{tool})) it"));
        assert_harmless(&format!("{} {}", answer.text, answer.record));
        assert!(answer.text.contains("[redacted]"), "{tool}: {answer:?}");
        // The value within the program is redacted too.
        let answer = client.eval("(pr-str it)");
        assert_harmless(&answer.text);
    }
    let numbers = client.eval("(:list (leaky/escaped))").text;
    assert!(numbers.starts_with("[1.5 1234567890123456789 \"[redacted]!\"]"), "{numbers}");
    assert!(client.eval("(:other (leaky/keys))").text.starts_with('3'));
    let split = client.eval("(apply str (leaky/split))");
    assert_harmless(&split.text);
    for query in ["leaky", "leaky/split", "apropos works", "bad/x", "bad"] {
        assert_harmless(&client.call("lisp_env", json!({"query": query})).text);
    }
    for program in ["(doc leaky/split)", "(bad/x)", "(doc bad/x)", "(apropos \"works\")", "(tools/search \"works\")"] {
        assert_harmless(&client.eval(program).text);
    }
    let blob = client.eval("(:blob (leaky/blob))").text.trim_matches('"').lines().next().map(str::to_owned);
    let contents = client.request("resources/read", json!({"uri": blob.expect("a reference").trim_matches('"')}));
    let data = contents["result"]["contents"][0]["blob"].as_str().unwrap_or_else(|| panic!("no blob: {contents}"));
    assert_eq!(data, "ZXhwb3J0IEtFWT1bcmVkYWN0ZWRdCg==", "export KEY=[redacted]");
}

#[test]
fn a_terminal_shows_no_credential() {
    let Some(_) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let leaky_one = json!({"mcpServers": {"leaky": leaky(&[])}});
    let bad = json!({"mcpServers": {"bad": leaky(&["--start"])}});
    for (configuration, arguments) in [
        (&bad, &["eval", "(bad/x)"][..]),
        (&bad, &["eval", "--json", "(bad/x)"]),
        (&bad, &["config", "check"]),
        (&bad, &["tools"]),
        (&bad, &["doc", "bad/x"]),
        (&leaky_one, &["eval", "(leaky/environment)"]),
        (&leaky_one, &["eval", "(let [it (apply str (leaky/split))] (print it))"]),
        (&leaky_one, &["eval", "--json", "(leaky/error)"]),
        (&leaky_one, &["tools"]),
        (&leaky_one, &["doc", "leaky/split"]),
        (&leaky_one, &["config", "check"]),
        (&leaky_one, &["config", "show"]),
    ] {
        let said = all_said(&lispbox(folder.path(), configuration, arguments));
        assert!(!said.is_empty(), "{arguments:?}");
        assert_harmless(&said);
    }
    // Printed in two pieces, so that no single value of the program contains the key.
    let (start, end) = (&KEY[..6], Value::from(&KEY[6..]).to_string());
    let program = format!("(do (print \"{start}\") (print {end}) (println \"!\"))");
    let output = lispbox(folder.path(), &leaky_one, &["eval", &program]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().next(), Some("[redacted]!"), "{}", all_said(&output));
}

#[test]
fn the_configuration_says_what_it_takes_for_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = "0123456789abcdef0123456789abcdef";
    let url = "postgres://app:S3cr3t@db.example.org/prod";
    let configuration = json!({"mcpServers": {
        "one": {"command": "no-such-command", "args": ["--token", "abc-def-1", format!("--dsn={url}"), token],
            "env": {"DATABASE_URL": url, "PORT": "8080", "DB_PWD": "hunter", "JWT": token}},
        "two": {"url": "https://ann:hunter-22@127.0.0.1:1/mcp?api_key=abc-def-2", "headers": {"X-Token": "abc-def-3"}},
    }});
    let said = all_said(&lispbox(folder.path(), &configuration, &["config", "show"]));
    for secret in ["abc-def", "S3cr3t", token, "hunter"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    assert!(said.contains("secret: env.DATABASE_URL, env.JWT, args[1], args[2]"), "{said}");
    assert!(said.contains("secret: headers.X-Token, url"), "{said}");
    let said = all_said(&lispbox(folder.path(), &configuration, &["config", "check"]));
    assert!(said.contains("warning: one: the secret at `env.DB_PWD` is too short to be redacted"), "{said}");
    for secret in ["abc-def", "S3cr3t", token, "hunter"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    let wrong =
        json!({"mcpServers": {"one": {"command": "x", "env": {"KEY": ["ghp_abcdefghijklmnop"]}, "args": token}}});
    let said = all_said(&lispbox(folder.path(), &wrong, &["config", "check"]));
    assert!(said.contains("expected an array") && !said.contains(token), "{said}");
}

#[test]
fn tokens_of_principals_are_redacted() {
    let server = Server::start(&[], &[("LISPBOX_TOKEN", "the-token-of-default")]);
    let headers = "Authorization: Bearer the-token-of-default\r\n";
    let (text, _) = server.eval(headers, "(str \"the-token-of\" \"-default\")", None);
    assert!(text.starts_with("\"[redacted]\""), "{text}");
}

#[test]
fn handles_are_repeated_to_whom_they_are_known() {
    let server = Server::start(&[], &[]);
    let (text, _) = server.eval("", "(def mails [1 2 3])", None);
    let handle = crate::http_client::handle(&text);
    let (text, failed) = server.eval("", "(count mails)", None);
    assert!(failed && !text.contains(&handle), "another client of the principal: {text}");
    assert!(text.contains("pass the `session`"), "{text}");

    // A connection that has a session.
    let mut client = Client::start(&json!({"mcpServers": {}}), &[]);
    let handle = client.eval("(def mails [1 2 3])").handle().expect("it is told");
    let fork = client.eval("(session/fork)").text.lines().next().unwrap_or_default().trim_matches('"').to_owned();
    client.eval("(session/forget 'mails)");
    let answer = client.eval("(count mails)");
    assert!(answer.text.contains(&fork) && !answer.text.contains(&handle), "{answer:?}");
}
