//! The configuration: the formats of other clients, reloading at run time, import, checks, and setup of clients.

use std::path::Path;
use std::process::{Command, Output};

use crate::mcp_client::Client;
use serde_json::{Value, json};

const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");

/// A server that needs no installation: the sample mailbox of the demo.
fn mailbox() -> Value {
    json!({"command": LISPBOX, "args": ["sample-mailbox"]})
}

/// Runs a command with `home` as its home and working directory.
fn lispbox(home: &Path, arguments: &[&str]) -> Output {
    Command::new(LISPBOX)
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .env("LISPBOX_CACHE", home.join("cache"))
        .output()
        .expect("the binary runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, text).expect("written");
}

#[test]
fn each_form_that_people_own_names_servers() {
    let home = tempfile::tempdir().expect("a folder");
    let forms = [
        ("claude_desktop_config.json", json!({"globalShortcut": "", "mcpServers": {"mail": mailbox()}}).to_string()),
        (".mcp.json", json!({"mcpServers": {"mail": {"type": "stdio", "command": LISPBOX, "args": ["sample-mailbox"], "env": {}}}}).to_string()),
        ("cursor.json", format!("{{\"mcpServers\": {{\n// ours\n\"mail\": {}, }}}}", mailbox())),
        ("vscode.json", json!({"inputs": [], "servers": {"mail": mailbox()}}).to_string()),
        ("servers.yaml", format!("servers:\n  - name: mail\n    transport: stdio\n    command: '{LISPBOX}'\n    args: [sample-mailbox]\nexecution:\n  timeout_seconds: 60\n  max_output_bytes: 65536\n")),
        ("servers.toml", format!("[[servers]]\nname = \"mail\"\ncommand = '{LISPBOX}'\nargs = [\"sample-mailbox\"]\n")),
    ];
    for (name, text) in forms {
        write(&home.path().join(name), &text);
        let output = lispbox(home.path(), &["eval", "(count (mail/fetch-emails :limit 7))", "--config", name]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "7", "{name}");
    }
}

#[test]
fn the_usual_places_are_read_and_shown() {
    let home = tempfile::tempdir().expect("a folder");
    let settings = home.path().join(".config/lispbox");
    let server = json!({"command": LISPBOX, "args": ["sample-mailbox"], "env": {"KEY": "a-secret"}});
    write(
        &settings.join("config.yaml"),
        "servers: []\ntools: {block: ['send-*']}\nexecution: {limits: {memory: 64MiB}}\n",
    );
    write(&settings.join("config.d/mail.json"), &json!({"mcpServers": {"mail": server}}).to_string());
    let shown = said(&lispbox(home.path(), &["config", "show"]));
    for expected in ["config.yaml", "mail.json", "(env KEY)", "without send-*", "memory     64MiB        execution"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("a-secret"), "{shown}");
    let settings = |variables: &[(&str, &str)]| {
        let mut command = Command::new(LISPBOX);
        command.args(["config", "show"]).env("HOME", home.path()).env_remove("XDG_CONFIG_HOME");
        said(&command.envs(variables.iter().copied()).output().expect("it runs"))
    };
    let line = |shown: &str, flag: &str| -> Vec<String> {
        let line = shown.lines().find(|line| line.trim_start().starts_with(flag)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(line(&settings(&[]), "--keep-days"), ["--keep-days", "30", "default,", "LISPBOX_KEEP_DAYS"]);
    let shown =
        settings(&[("LISPBOX_KEEP_DAYS", "7"), ("LISPBOX_STORE", "redis://:a-secret@host"), ("LISPBOX_DENY", "rm")]);
    assert_eq!(line(&shown, "--keep-days"), ["--keep-days", "7", "LISPBOX_KEEP_DAYS"]);
    assert_eq!(line(&shown, "--deny"), ["--deny", "rm", "LISPBOX_DENY"]);
    assert!(!shown.contains("a-secret"), "{shown}");
    let tools = lispbox(home.path(), &["tools"]);
    assert!(said(&tools).contains("mail/fetch-emails") && !said(&tools).contains("send-email"), "{}", said(&tools));
    assert!(lispbox(home.path(), &["tools", "--no-config"]).stdout.is_empty());
}

#[test]
fn what_is_dropped_in_is_there_at_the_next_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let dropped = folder.path().join("mail.json");
    let mut client = Client::start(&json!({"mcpServers": {}}), &["--config", &folder.path().display().to_string()]);
    assert_eq!(client.fails("(mail/list-labels)").0, "UnboundVariable");
    write(&dropped, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let seen = client.call("lisp_env", json!({}));
    assert!(seen.text.contains("mail"), "{}", seen.text);
    let tools = client.request("tools/list", json!({}));
    assert!(tools.to_string().contains("Servers: mail"), "{tools}");
    assert!(!client.eval("(def labels (mail/list-labels))").is_error);
    write(&dropped, "{");
    assert!(!client.eval("(mail/list-labels)").is_error, "what cannot be used leaves all as it is");
    std::fs::remove_file(&dropped).expect("it was there");
    assert_eq!(client.fails("(mail/list-labels)").0, "UnboundVariable");
    assert!(client.eval("(count labels)").text.starts_with(char::is_numeric), "the session goes on");
}

#[test]
fn what_may_not_be_called_is_neither_listed_nor_called() {
    let mut server = mailbox();
    server["tools"] = json!({"block": ["send-*"]});
    for more in [&[][..], &["--isolate"]] {
        let mut client = Client::start(&json!({"mcpServers": {"mail": server}}), more);
        let listed = client.eval("(with-out-str (dir 'mail))").text;
        assert!(listed.contains("fetch-emails") && !listed.contains("send-email"), "{listed}");
        for program in [r#"(mail/send-email {:to "a"})"#, r#"(mail/send_email :to "a")"#] {
            let (code, message) = client.fails(program);
            assert_eq!(code, "ToolDenied", "{message}");
            assert!(message.starts_with("`mail/send-email` may not be called: `tools.block` of "), "{message}");
            assert!(message.ends_with(" has `send-*`"), "{message}");
        }
    }
}

#[test]
fn servers_of_other_clients_are_imported_without_lispbox() {
    let home = tempfile::tempdir().expect("a folder");
    let claude = json!({"mcpServers": {"mail": mailbox_of("mail"), "lispbox": {"command": "/usr/bin/lispbox", "args": ["serve"]}}});
    write(&home.path().join(".config/Claude/claude_desktop_config.json"), &claude.to_string());
    write(
        &home.path().join(".cursor/mcp.json"),
        &json!({"mcpServers": {"mail": mailbox_of("other"), "web": {"url": "http://127.0.0.1:1/mcp"}}}).to_string(),
    );
    write(&home.path().join(".codex/config.toml"), "[mcp_servers.notes]\ncommand = \"notes\"\n");
    write(&home.path().join(".claude.json"), "{ not json");
    let written = home.path().join(".config/lispbox/config.d/imported.json");
    let dry = said(&lispbox(home.path(), &["config", "import", "--dry-run"]));
    assert!(dry.contains("4 servers would be written") && !written.exists(), "{dry}");
    let output = lispbox(home.path(), &["config", "import"]);
    assert_eq!(output.status.code(), Some(1), "a file could not be read");
    let output = said(&output);
    assert!(
        output.contains("lispbox: left out") && output.contains("Claude Code") && output.contains("cannot be read"),
        "{output}"
    );
    let root: Value = serde_json::from_str(&std::fs::read_to_string(&written).expect("written")).expect("JSON");
    let names: Vec<&String> = root["mcpServers"].as_object().expect("servers").keys().collect();
    assert_eq!(names, ["mail", "mail-cursor", "web", "notes"]);
    let again = said(&lispbox(home.path(), &["config", "import"]));
    assert!(!again.contains("the previous file"), "the same is not written again: {again}");
    let unknown = lispbox(home.path(), &["config", "import", "--from", "curser"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
}

fn mailbox_of(name: &str) -> Value {
    json!({"command": "a-mail-server", "args": [name]})
}

#[test]
fn a_check_says_what_works_and_what_does_not() {
    let home = tempfile::tempdir().expect("a folder");
    let servers = json!({"mcpServers": {
        "mail": {"command": LISPBOX, "args": ["sample-mailbox"], "disabledTools": ["send-email"], "alwaysAllow": []},
        "gone": {"command": "/no/such/command"},
        "unset": {"command": "x", "env": {"KEY": "${NO_SUCH_KEY}"}}
    }});
    write(&home.path().join("servers.json"), &servers.to_string());
    let output = lispbox(home.path(), &["config", "check", "--config", "servers.json"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for expected in [
        "ok      mail: 5 tools (5 read_only), 1 more may not be called: send-email",
        "broken  gone: server `gone` did not start: ",
        "broken  unset: server `unset` did not start: the environment variable `NO_SUCH_KEY` is not set",
        "ignored `alwaysAllow`",
        "2 of 3 servers cannot be used",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    write(&home.path().join("wrong.yaml"), "servers: [{name: a, comand: b}]");
    let output = lispbox(home.path(), &["config", "check", "--config", "wrong.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("did you mean `command`?"), "{}", said(&output));
}

#[test]
fn a_check_says_about_which_tools_a_person_is_asked() {
    let home = tempfile::tempdir().expect("a folder");
    let tool = json!({"command": "true", "description": "x"});
    let servers = |policy: Value| {
        json!({"policy": policy, "local": {
            "notes/delete_note": tool, "notes/send-note": tool, "notes/list_runs": tool, "notes/create": tool, "notes/sweep": tool}})
    };
    let check = |policy: Value| {
        write(&home.path().join("servers.json"), &servers(policy).to_string());
        let output = lispbox(home.path(), &["config", "check", "--config", "servers.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    let text = check(json!({"ask": ["notes/sweep"]}));
    assert!(text.contains("asks    notes: a person is asked about sweep\n"), "{text}");
    let proposal = "unasked notes: nobody is asked about 2 tools that do not say what they do: delete_note, send-note, \
                    which by their names do more than read; `policy: {defaults: {unannotated: by_name}}` asks\n";
    assert!(text.contains(proposal), "{text}");
    let text = check(json!({"defaults": {"unannotated": "by_name"}}));
    assert!(text.contains("asks    notes: a person is asked about delete_note, send-note\n"), "{text}");
    assert!(!text.contains("unasked"), "{text}");
    let eval = |program: &str| said(&lispbox(home.path(), &["eval", "--config", "servers.json", program]));
    let refused = eval("(notes/delete_note)");
    let rule = "its name has `delete`, and `policy.defaults` is unannotated: by_name of servers.json";
    assert!(refused.contains(rule), "{refused}");
    assert!(!eval("(notes/list_runs)").contains("Tool"), "it is not asked about");
}

#[test]
fn a_client_is_set_up_once_and_its_own_settings_stay() {
    let home = tempfile::tempdir().expect("a folder");
    let cases = [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("claude-code", ".claude.json"),
        ("cursor", ".cursor/mcp.json"),
    ];
    for (client, file) in cases {
        let file = home.path().join(file);
        let before = json!({"theme": "dark", "mcpServers": {"mail": {"command": "mail"}}}).to_string();
        write(&file, &before);
        let dry = said(&lispbox(home.path(), &["setup", client, "--dry-run"]));
        assert!(
            dry.contains("would change")
                && !dry.contains("theme")
                && std::fs::read_to_string(&file).expect("there") == before,
            "{dry}"
        );
        let first = said(&lispbox(home.path(), &["setup", client]));
        let backup = file.with_file_name(format!("{}.backup", file.file_name().expect("a name").display()));
        assert_eq!(std::fs::read_to_string(&backup).expect("a copy"), before, "{first}");
        let after = std::fs::read_to_string(&file).expect("written");
        let root: Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(root["theme"], "dark");
        assert_eq!(root["mcpServers"]["mail"]["command"], "mail");
        // Its prompt before each call of a tool is the only way in which it asks.
        let asks = if client == "claude-desktop" { json!(["serve", "--approve-tool"]) } else { json!(["serve"]) };
        assert_eq!(root["mcpServers"]["lispbox"]["args"], asks);
        let second = said(&lispbox(home.path(), &["setup", client]));
        assert!(second.contains("has lispbox already"), "{second}");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), after);
    }
    let commented = home.path().join("commented.json");
    write(&commented, "{ // mine\n}");
    let output = lispbox(home.path(), &["setup", "cursor", "--file", "commented.json"]);
    assert!(!output.status.success() && said(&output).contains("add by hand"), "{}", said(&output));
    let created = home.path().join("new/mcp.json");
    assert!(lispbox(home.path(), &["setup", "cursor", "--file", "new/mcp.json"]).status.success());
    assert!(created.exists());
}
