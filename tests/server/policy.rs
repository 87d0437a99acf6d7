//! Permission to call tools: the operator sets the policy, a person approves calls, and the model can do neither.

use std::path::Path;
use std::process::Command;

use crate::mcp_client::{Answer, Client, filesystem, installed, script};
use serde_json::{Value, json};

/// A program that writes a file with a tool that declares itself destructive.
fn write(folder: &Path, content: &str) -> String {
    format!("(files/write-file {{:path {:?} :content {content:?}}})", folder.join("note.txt"))
}

fn can_ask() -> Value {
    json!({"elicitation": {}})
}

/// Runs a program and answers each elicitation with `result`. Returns the reply and the questions.
fn answering(client: &mut Client, program: &str, result: &Value) -> (Answer, Vec<Value>) {
    let call = client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
    let mut asked = Vec::new();
    loop {
        let message = client.receive();
        if message["method"] == "elicitation/create" {
            client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string());
            asked.push(message["params"].clone());
        } else if message["id"] == call {
            return (Answer::of(&message), asked);
        }
    }
}

fn code(answer: &Answer) -> &str {
    answer.record["error"].as_str().unwrap_or_default()
}

#[test]
fn a_person_is_shown_a_destructive_call_and_decides_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let configuration = json!({"mcpServers": {"files": files}});
    let mut client = Client::start_able(&configuration, &[], can_ask());
    let note = folder.path().join("note.txt");
    let program = write(folder.path(), "hello");

    let (answer, asked) = answering(&mut client, &program, &json!({"action": "decline"}));
    assert_eq!(code(&answer), "ToolDenied", "{}", answer.text);
    assert!(answer.text.contains("a person was asked and said no"), "{}", answer.text);
    assert!(!note.exists());
    let [question] = &asked[..] else { panic!("{asked:?}") };
    let shown = question["message"].as_str().expect("a text");
    assert!(shown.starts_with("```\nA program wants to call files/write_file with\n{\n  \"path\": \""), "{shown}");
    assert!(shown.contains("\"content\": \"hello\""), "{shown}");
    let shown = shown.replace("\n↳ ", "");
    assert!(shown.ends_with("`policy.defaults` is destructive: ask, which is the default.\n```"), "{shown}");
    assert_eq!(question["requestedSchema"]["required"], json!(["allow"]));

    // An accepted form without `allow: true` is no consent.
    for content in [json!({}), json!({"allow": false}), json!({"allow": "true"})] {
        let (answer, _) = answering(&mut client, &program, &json!({"action": "accept", "content": content}));
        assert_eq!((code(&answer), note.exists()), ("ToolDenied", false), "{content}");
    }
    // An approval covers one call and not the next.
    let yes = json!({"action": "accept", "content": {"allow": true}});
    let twice = format!("{program} {}", write(folder.path(), "again"));
    let (answer, asked) = answering(&mut client, &twice, &yes);
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(asked.len(), 2);
    assert_eq!(std::fs::read_to_string(&note).expect("written"), "again");
    // A read-only tool needs no approval.
    let read = format!("(files/read-text-file {{:path {note:?}}})");
    let (answer, asked) = answering(&mut client, &read, &yes);
    assert_eq!((answer.is_error, asked.len()), (false, 0), "{}", answer.text);
}

#[test]
fn where_nobody_can_be_asked_the_call_is_refused_with_what_would_allow_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let configuration = json!({"mcpServers": {"files": files}});
    let program = write(folder.path(), "hello");
    let why = "this client cannot ask for approval (it does not support elicitation)";
    for mut client in [Client::start(&configuration, &[]), Client::start_stateless(&configuration, &[])] {
        let (code, message) = client.fails(&program);
        assert_eq!(code, "ToolNeedsApproval");
        assert!(message.contains(why), "{message}");
        assert!(message.contains("an operator allows it by `policy: {allow: [files/write_file]}` in "), "{message}");
        let caught = client.eval(&format!("(try {program} (catch ToolNeedsApproval e :asked))"));
        assert!(caught.text.starts_with(":asked"), "{}", caught.text);
    }
    assert!(!folder.path().join("note.txt").exists());
}

#[test]
fn the_operator_allows_denies_and_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let policy = json!({
        "allow": ["files/write_file"], "deny": ["*_directory"],
        "limits": [{"tools": "write_file", "per_evaluation": 2, "per_hour": 3}],
    });
    let configuration = json!({"servers": [{"name": "files", "command": files["command"], "args": files["args"]}],
        "policy": policy});
    let mut client = Client::start(&configuration, &[]);
    let program = write(folder.path(), "hello");
    let thrice = format!("(dotimes [_ 3] {program})");
    let (code, message) = client.fails(&thrice);
    assert_eq!(code, "ToolDenied");
    assert!(message.contains("`policy.limits[0]` of ") && message.ends_with(" allows 2 per evaluation"), "{message}");
    assert!(!client.eval(&program).is_error);
    let (code, message) = client.fails(&program);
    assert_eq!(code, "ToolDenied");
    assert!(message.contains(" allows 3 per hour; the next is free in "), "{message}");
    // A denied tool is not listed, and a call of it reports the reason.
    let (code, message) = client.fails("(files/list-directory {:path \"/\"})");
    assert_eq!(code, "ToolDenied");
    assert!(message.contains("`policy.deny` of ") && message.ends_with(" has `*_directory`"), "{message}");
    let listed = client.eval("(println (dir 'files))").text;
    assert!(listed.contains("write_file") && !listed.contains("(files/list_directory :path"), "{listed}");

    let mut client = Client::start(&json!({"mcpServers": {"files": files}}), &["--deny", "*", "--allow", "write_file"]);
    assert!(!client.eval(&program).is_error, "a name goes before a pattern");
    assert_eq!(client.fails("(files/list-allowed-directories)").0, "ToolDenied");
}

#[test]
fn a_rule_of_a_file_that_cannot_be_used_any_more_holds_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let dropped = tempfile::tempdir().expect("a folder");
    let rules = dropped.path().join("rules.yaml");
    std::fs::write(&rules, "policy: {deny: ['write_file']}").expect("written");
    let dropped_in = dropped.path().display().to_string();
    let mut client = Client::start(&json!({"mcpServers": {"files": files}}), &["--config", &dropped_in]);
    let program = write(folder.path(), "hello");
    assert_eq!(client.fails(&program).0, "ToolDenied");
    std::fs::write(&rules, "policy: {deny: ['write_file'").expect("written");
    assert_eq!(client.fails(&program).0, "ToolDenied");
    std::fs::write(&rules, "policy: {allow: ['write_file']}").expect("written");
    assert!(!client.eval(&program).is_error);
}

#[test]
fn config_check_shows_what_tools_say_of_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let file = folder.path().join("servers.json");
    std::fs::write(&file, json!({"mcpServers": {"files": files}}).to_string()).expect("written");
    let checked = Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .args(["config", "check", "--config"])
        .arg(&file)
        .env("LISPBOX_CACHE", folder.path().join("cache"))
        .output();
    let said = String::from_utf8(checked.expect("it runs").stdout).expect("text");
    assert!(said.contains("read_only, 1 writes, 3 destructive: ask)"), "{said}");
}

/// The user is asked on the controlling terminal, regardless of the standard streams of the process.
#[cfg(unix)]
#[test]
fn at_a_terminal_the_person_is_asked() {
    use rexpect::reader::Options;
    use rexpect::session::spawn_with_options;
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let file = folder.path().join("servers.json");
    std::fs::write(&file, json!({"mcpServers": {"files": files}}).to_string()).expect("written");
    let note = folder.path().join("note.txt");
    for (key, is_written) in [("", false), ("n", false), ("Y", true)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["eval", "--config"]).arg(&file).arg(write(folder.path(), "hello"));
        command.env("LISPBOX_CACHE", folder.path().join("cache"));
        let options = Options::new().timeout_ms(Some(120_000)).strip_ansi_escape_codes(true);
        let mut terminal = spawn_with_options(command, options).expect("a terminal");
        terminal.exp_string("A program wants to call files/write_file with").expect("the call is shown");
        terminal.exp_string("Allow this call? [y/N/a/t] ").expect("the person is asked");
        terminal.send_line(key).expect("a key");
        let said = terminal.exp_eof().expect("it ends");
        assert_eq!((note.exists(), said.contains("ToolDenied")), (is_written, !is_written), "{key}: {said}");
    }
    // A person allows later calls together with one.
    let twice = |text: &str| format!("[{} {}]", write(folder.path(), text), write(folder.path(), "twice"));
    for (key, text, asked) in [("t", "once", 1), ("a", "twice", 1), ("a", "other", 2)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["eval", "--config"]).arg(&file).arg(twice(text));
        command.env("LISPBOX_CACHE", folder.path().join("cache"));
        let options = Options::new().timeout_ms(Some(120_000)).strip_ansi_escape_codes(true);
        let mut terminal = spawn_with_options(command, options).expect("a terminal");
        for _ in 0..asked {
            terminal.exp_string("a: yes, and this tool with these arguments, for this session").expect("it is offered");
            terminal.exp_string("Allow this call? [y/N/a/t] ").expect("the person is asked");
            terminal.send_line(key).expect("a key");
        }
        let said = terminal.exp_eof().expect("it ends");
        assert!(!said.contains("Allow") && !said.contains("Denied"), "{key}: {said}");
        assert_eq!(std::fs::read_to_string(&note).expect("written"), "twice");
    }
    std::fs::write(&note, "hello").expect("written");
    // Without a controlling terminal, approval is not possible.
    let mut command = Command::new("setsid");
    command.arg(env!("CARGO_BIN_EXE_lispbox")).args(["eval", "--config"]).arg(&file).arg(write(folder.path(), "x"));
    let output = command.stdin(std::process::Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("ToolNeedsApproval") && said.contains("no terminal to ask on"), "{output:?}");
    assert_eq!(std::fs::read_to_string(&note).expect("written"), "hello");
}

/// A client with the `mcp` SDK of PyPI that asks its user.
#[test]
fn a_client_that_nobody_here_wrote_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = filesystem(folder.path()) else { return };
    let Some(python) = installed("venv/bin/python") else { return };
    let file = folder.path().join("servers.json");
    std::fs::write(&file, json!({"mcpServers": {"files": files}}).to_string()).expect("written");
    let mut command = Command::new(python);
    command
        .args([
            &script("asking.py"),
            "2025-11-25",
            env!("CARGO_BIN_EXE_lispbox"),
            "serve",
            "--store",
            "memory",
            "--config",
        ])
        .arg(&file);
    command.env("CALLS", json!([{"program": write(folder.path(), "hello")}]).to_string());
    command.env("ANSWERS", json!([["", {"action": "accept", "content": {"allow": true}}]]).to_string());
    let output = command.output().expect("it runs");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let asked = said["asked"][0].as_str().expect("a question");
    assert!(asked.starts_with("```\nA program wants to call files/write_file with\n"), "{said}");
    assert_eq!(said["results"][0]["isError"], false, "{said}");
    assert_eq!(std::fs::read_to_string(folder.path().join("note.txt")).expect("written"), "hello");
}

/// A tool about which a person is asked, and a client that shows forms, with its store.
fn asking_about_mail(folder: &Path) -> Client {
    let parameters = json!({"properties": {"to": {"type": "string"}}, "required": ["to"]});
    let send = json!({"command": "echo", "args": ["{to}"], "parameters": parameters});
    let configuration = json!({"local": {"mail/send": send}, "policy": {"ask": ["mail/send"]}});
    let store = format!("sqlite:{}", folder.join("sessions.db").display());
    Client::start_able(&configuration, &["--store", &store], can_ask())
}

#[test]
fn a_person_can_allow_later_calls_of_the_session_in_the_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let yes = |later: &str| json!({"action": "accept", "content": {"allow": true, "for": later}});
    let (same, tool) = ("this tool with these arguments, for this session", "this tool, for this session");
    let ten = "(count (mapv (fn [n] (mail/send {:to (str n)})) (range 10)))";

    let mut client = asking_about_mail(folder.path());
    let no = json!({"action": "accept", "content": {"allow": false, "for": tool}});
    let (answer, asked) = answering(&mut client, "(mail/send {:to \"a\"})", &no);
    assert_eq!((code(&answer), asked.len()), ("ToolDenied", 1), "{}", answer.text);
    let offered = &asked[0]["requestedSchema"]["properties"]["for"];
    let options = json!(["this call only", same, tool]);
    assert_eq!((&offered["enum"], &offered["default"]), (&options, &options[0]));
    assert_eq!(asked[0]["requestedSchema"]["required"], json!(["allow"]));
    let (answer, asked) = answering(&mut client, ten, &yes(tool));
    assert_eq!((answer.text.lines().next(), asked.len()), (Some("10"), 1), "one question for ten calls");
    let at_once = "(count (pmap (fn [n] (mail/send {:to (str \"p\" n)})) (range 4)))";
    let (answer, asked) = answering(&mut client, at_once, &yes("this call only"));
    assert_eq!((answer.text.lines().next(), asked.len()), (Some("4"), 0));

    let mut other = asking_about_mail(folder.path());
    let (_, asked) = answering(&mut other, "(mail/send {:to \"a\"})", &yes(same));
    assert_eq!(asked.len(), 1, "another session is asked about");
    let (_, asked) = answering(&mut other, "[(mail/send {:to \"a\"}) (mail/send {:to \"b\"})]", &yes("whatever"));
    assert_eq!(asked.len(), 1, "only the same arguments are allowed");
    assert!(asked[0]["message"].as_str().is_some_and(|text| text.contains("\"b\"")), "{asked:?}");
    let (_, asked) = answering(&mut other, "(mail/send {:to \"b\"})", &yes("this call only"));
    assert_eq!(asked.len(), 1, "what is not offered is allowed once");
}
