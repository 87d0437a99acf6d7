//! A desktop client, from an empty home folder on: what it starts has a short PATH and hardly any environment, and its
//! user sees no terminal.
#![cfg(unix)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rexpect::reader::Options;
use rexpect::session::spawn_with_options;
use serde_json::{Value, json};

use crate::mcp_client::{Answer, Client, until};

pub const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");
pub const CLAUDE: &str = ".config/Claude/claude_desktop_config.json";

/// A home folder in an otherwise empty environment.
pub struct Home(pub tempfile::TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    pub fn write(&self, file: &str, text: &str) -> PathBuf {
        let file = self.path(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, text).expect("written");
        file
    }

    pub fn script(&self, file: &str, text: &str) -> PathBuf {
        let file = self.write(file, text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("executable");
        file
    }

    pub fn json(&self, file: &str) -> Value {
        let text = std::fs::read_to_string(self.path(file)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LISPBOX);
        command.args(arguments).current_dir(self.0.path()).env_clear().env("HOME", self.0.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command, checks its exit code, and returns its output.
    pub fn ends(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// Configures a tool that appends a line to a file, about which a person is asked.
    pub fn with_notes(self) -> Home {
        let line = json!({"properties": {"line": {"type": "string"}}, "required": ["line"]});
        let script = "printf '%s\\n' \"$1\" >> \"$0\"; printf 'added %s' \"$1\"";
        let share = json!({"command": "sh", "args": ["-c", script, self.path("shared"), "{line}"], "parameters": line});
        let root = json!({"local": {"notes/share": share}, "policy": {"ask": ["notes/share"]}});
        self.write(".config/lispbox/config.d/notes.json", &root.to_string());
        self
    }

    pub fn shared(&self) -> String {
        std::fs::read_to_string(self.path("shared")).unwrap_or_default()
    }

    pub fn client(&self) -> Client {
        Client::start_at_home(self.0.path(), &[], json!({}))
    }
}

pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Ends a client's server, as the client does when it is restarted.
pub fn end(mut client: Client) {
    client.close();
    client.wait();
}

pub fn mailbox() -> Value {
    json!({"command": LISPBOX, "args": ["sample-mailbox"]})
}

#[test]
fn a_command_is_found_in_the_usual_folders_of_what_installs_commands() {
    for (folder, owner) in [
        (".nvm/versions/node/v22.1.0/bin", "nvm"),
        (".local/share/fnm/node-versions/v22.1.0/installation/bin", "fnm"),
        (".volta/bin", "Volta"),
        (".asdf/shims", "asdf"),
        (".local/share/mise/shims", "mise"),
        (".linuxbrew/bin", "Homebrew"),
        (".local/bin", "uv and pipx"),
        (".cargo/bin", "Cargo"),
        (".npm-global/bin", "Node"),
    ] {
        let home = Home::new();
        // Its interpreter is beside it, as Node is beside npx.
        let interpreter = home.script(&format!("{folder}/interpreter-of-tests"), "#!/bin/sh\nexec sh \"$@\"\n");
        let text = format!("#!/usr/bin/env interpreter-of-tests\nexec '{LISPBOX}' sample-mailbox\n");
        let file = home.script(&format!("{folder}/mail-of-tests"), &text);
        home.write("servers.json", &json!({"mcpServers": {"mail": {"command": "mail-of-tests"}}}).to_string());
        let checked = home.ends(0, &["config", "check", "--config", "servers.json"]);
        let line = format!("command mail: {}, in the usual folder of {owner}\n", file.display());
        assert!(checked.contains("ok      mail: 6 tools") && checked.contains(&line), "{checked}");
        assert!(interpreter.exists());
    }
}

#[test]
fn a_command_is_found_on_the_path_of_the_login_shell() {
    let home = Home::new();
    let file = home.script("tools/mail-of-tests", &format!("#!/bin/sh\nexec '{LISPBOX}' sample-mailbox\n"));
    let shell = home
        .script("my-shell", "#!/bin/sh\necho welcome\nPATH=\"$HOME/tools:/usr/bin:/bin\"\nexport PATH\neval \"$4\"\n");
    home.write("servers.json", &json!({"mcpServers": {"mail": {"command": "mail-of-tests"}}}).to_string());
    let mut command = home.command(&["config", "check", "--config", "servers.json"]);
    let checked = said(&command.env("SHELL", shell).output().expect("it runs"));
    let line = format!("command mail: {}, on the PATH of the login shell `my-shell`\n", file.display());
    assert!(checked.contains(&line), "{checked}");
}

#[test]
fn a_command_that_is_nowhere_is_looked_for_and_the_places_are_named() {
    let home = Home::new();
    home.write("servers.json", &json!({"mcpServers": {"mail": {"command": "mail-of-tests"}}}).to_string());
    let mut command = home.command(&["config", "check", "--config", "servers.json"]);
    let checked = said(&command.env("SHELL", "/bin/false").output().expect("it runs"));
    let expected = "the command `mail-of-tests` was not found; it was looked for on PATH (the login shell `false` ended \
                    without saying its own) and in the usual folders of Node, nvm, fnm";
    assert!(checked.contains(expected), "{checked}");
}

/// A server that writes that it was started, and never answers.
fn noting(home: &Home) -> (PathBuf, Value) {
    let mark = home.path("started");
    (mark.clone(), json!({"command": "sh", "args": ["-c", "echo x >> \"$0\"; exec cat > /dev/null", mark]}))
}

#[test]
fn servers_whose_tools_are_not_known_start_before_they_are_needed() {
    let home = Home::new();
    let (mark, server) = noting(&home);
    home.write(".config/lispbox/config.d/servers.json", &json!({"mcpServers": {"slow": server}}).to_string());
    let mut client = home.client();
    until(|| mark.exists());
    // It is still starting, and keeps no one waiting for others.
    assert_eq!(client.eval("(+ 1 2)").text.lines().next(), Some("3"));
}

#[test]
fn servers_whose_tools_are_known_are_started_when_they_are_needed() {
    let home = Home::new();
    let mark = home.path("started");
    let script = format!("echo x >> \"$0\"; exec '{LISPBOX}' sample-mailbox");
    let server = json!({"command": "sh", "args": ["-c", script, mark]});
    home.write(".config/lispbox/config.d/servers.json", &json!({"mcpServers": {"mail": server}}).to_string());
    let starts = || std::fs::read_to_string(&mark).unwrap_or_default().lines().count();
    let mut client = home.client();
    assert!(client.eval("(dir)").text.contains("fetch-emails"));
    end(client);
    assert_eq!(starts(), 1);
    let mut client = home.client();
    assert!(client.eval("(dir)").text.contains("fetch-emails"));
    assert_eq!(starts(), 1);
}

#[test]
fn nothing_starts_beforehand_where_prefetch_is_off() {
    let home = Home::new();
    let (mark, server) = noting(&home);
    let off = json!({"servers": {"slow": server}, "execution": {"prefetch": false}});
    home.write(".config/lispbox/config.d/servers.json", &off.to_string());
    for arguments in [&[][..], &["--no-prefetch"]] {
        let mut client = Client::start_at_home(home.0.path(), arguments, json!({}));
        client.request("tools/list", json!({}));
        assert_eq!(client.eval("(+ 1 2)").text.lines().next(), Some("3"));
        end(client);
        assert!(!mark.exists());
        home.write(
            ".config/lispbox/config.d/servers.json",
            &json!({"mcpServers": {"slow": noting(&home).1}}).to_string(),
        );
    }
}

#[test]
fn the_instructions_say_what_this_is_whatever_is_known() {
    let told = |home: &Home| {
        let mut command = home.command(&["serve", "--no-prefetch"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("it runs");
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let mut input = process.stdin.take().expect("piped");
        writeln!(input, "{hello}").expect("it reads");
        drop(input);
        let output = process.wait_with_output().expect("it ends");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
        answer["result"]["instructions"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let home = Home::new();
    let none = told(&home);
    assert!(
        none.starts_with("lispbox runs Clojure-style programs") && none.contains("`lispbox config import`"),
        "{none}"
    );
    home.write(".config/lispbox/config.d/servers.json", &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let unknown = told(&home);
    assert!(unknown.starts_with("lispbox runs Clojure-style programs") && unknown.ends_with("\nmail"), "{unknown}");
    home.ends(0, &["config", "check"]);
    let known = told(&home);
    assert!(known.starts_with("lispbox runs Clojure-style programs") && known.contains("mail/fetch-emails"), "{known}");
}

#[test]
fn a_person_who_types_serve_is_told_what_it_is_and_that_it_waits() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--deny", "send-*"]);
    command.env("LISPBOX_STORE", "memory").stdin(Stdio::inherit());
    let options = Options::new().timeout_ms(Some(120_000));
    let mut terminal = spawn_with_options(command, options).expect("a terminal");
    let mut heard = |text: &str| terminal.exp_string(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
    heard("is an MCP server: an MCP client starts it");
    heard("It now waits here for a client. Ctrl-C ends it.");
    heard("`lispbox setup CLIENT`");
    for part in ["\"mcpServers\"", "\"lispbox\"", "\"command\"", "\"serve\"", "\"--deny\"", "\"send-*\""] {
        heard(part);
    }
    let before = heard("serving one client");
    assert!(before.contains("INFO") && !before.contains("{\"timestamp\""), "the log is for people: {before}");
    terminal.send_control('c').expect("typed");
    terminal.exp_eof().expect("it ends");
}

#[test]
fn the_options_of_serve_stand_under_headings() {
    let help = Home::new().ends(0, &["serve", "--help"]);
    let headings: Vec<&str> = help.lines().filter(|line| !line.starts_with(' ') && line.ends_with(':')).collect();
    for heading in ["Servers:", "Replies:", "Limits:", "HTTP:", "Sessions:", "Policy:", "Audit:"] {
        assert_eq!(headings.iter().filter(|known| **known == heading).count(), 1, "{heading}: {headings:?}");
    }
    let (_, others) = help.split_once("\nOptions:\n").expect("the options of every command");
    let others = others.split("\n\n\n").next().unwrap_or_default();
    let others = others.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let options = others.map(str::trim).filter(|line| line.starts_with('-'));
    let options: Vec<&str> = options.map(|line| line.split("  ").next().unwrap_or_default()).collect();
    assert_eq!(options, ["-h, --help", "-V, --version"]);
}

#[test]
fn setup_moves_the_servers_that_start_and_takes_that_back() {
    let home = Home::new();
    let before = json!({
        "mcpServers": {"mail": mailbox(), "gone": {"command": "no-such-command"}},
        "theme": "dark"
    });
    home.write(CLAUDE, &before.to_string());

    let dry = home.ends(0, &["setup", "claude-desktop", "--move", "--dry-run"]);
    assert!(dry.contains("1 of 2 servers would be moved"), "{dry}");
    assert_eq!(home.json(CLAUDE), before);
    assert!(!home.path(".config/lispbox/config.d/imported.json").exists());

    let moved = home.ends(0, &["setup", "claude-desktop", "--move"]);
    for part in [
        "starting 2 servers of Claude Desktop",
        "  mail: started, 6 tools; asks before send-email; about ",
        "  gone: stays in Claude Desktop: server `gone` did not start: the command `no-such-command` was not found",
        "tokens for their tools before, at most 290 for lispbox",
        "1 of 2 servers moved into ",
        "-     \"mail\": …",
        "written; the previous file is ",
        "`lispbox setup claude-desktop --undo` takes this back",
    ] {
        assert!(moved.contains(part), "{part}: {moved}");
    }
    let after = home.json(CLAUDE);
    assert_eq!(after["theme"], "dark");
    let names: Vec<&String> = after["mcpServers"].as_object().expect("servers").keys().collect();
    assert_eq!(names, ["gone", "lispbox"]);
    assert_eq!(after["mcpServers"]["lispbox"]["args"], json!(["serve", "--approve-tool"]));
    let imported = home.json(".config/lispbox/config.d/imported.json");
    assert_eq!(imported["mcpServers"]["mail"], mailbox());
    let backup: Value = home.json(".config/Claude/claude_desktop_config.json.backup");
    assert_eq!(backup, before);
    // The client finds its server behind lispbox.
    let mut client = home.client();
    assert!(client.eval("(count (mail/fetch-emails {:limit 2}))").text.starts_with('2'));
    end(client);

    // What was changed meanwhile stays.
    let mut changed = after;
    changed["mcpServers"]["new"] = json!({"command": "x"});
    home.write(CLAUDE, &changed.to_string());
    let undone = home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert!(undone.contains("+     \"mail\": …") && undone.contains("to stop using lispbox"), "{undone}");
    let mut expected = before;
    expected["mcpServers"]["new"] = json!({"command": "x"});
    assert_eq!(home.json(CLAUDE), expected);
    assert_eq!(home.json(".config/lispbox/config.d/imported.json")["mcpServers"], json!({}));
    let again = home.ends(2, &["setup", "claude-desktop", "--undo"]);
    assert!(again.contains("no servers were moved out of Claude Desktop"), "{again}");
}

#[test]
fn setup_moves_the_servers_of_codex_and_keeps_the_rest_of_its_file() {
    let home = Home::new();
    let file = ".codex/config.toml";
    let mailbox = mailbox();
    let before = format!(
        "# my settings\nmodel = \"o5\" # the best\n\n[mcp_servers.mail]\ncommand = {}\nargs = {}\n\n\
         [mcp_servers.gone]\ncommand = \"no-such-command\"\n\n[tui]\ntheme = \"dark\"\n",
        mailbox["command"], mailbox["args"]
    );
    home.write(file, &before);
    let text = || std::fs::read_to_string(home.path(file)).expect("it is there");
    let dry = home.ends(0, &["setup", "codex", "--dry-run"]);
    assert!(dry.contains("+ [mcp_servers.lispbox]\n+ command = ") && text() == before, "{dry}");

    let moved = home.ends(0, &["setup", "codex", "--move"]);
    for part in ["  gone: stays in Codex: ", "- [mcp_servers.mail] …", "`lispbox setup codex --undo` takes this back"]
    {
        assert!(moved.contains(part), "{part}: {moved}");
    }
    let after = text();
    assert!(after.starts_with("# my settings\nmodel = \"o5\" # the best\n"), "{after}");
    assert!(after.contains("[tui]\ntheme = \"dark\"\n") && !after.contains("[mcp_servers.mail]"), "{after}");
    assert!(after.contains("args = [\"serve\"]\n"), "{after}");
    let well = home.ends(0, &["doctor"]);
    assert!(
        well.contains("ok      Codex: attached, beside 1 server of its own; `lispbox setup codex --move`"),
        "{well}"
    );

    home.ends(0, &["setup", "codex", "--undo"]);
    assert!(text().contains("[mcp_servers.mail]\n") && !text().contains("[mcp_servers.lispbox]"), "{}", text());
    assert!(home.ends(0, &["setup", "codex", "--remove"]).contains("Codex does not have lispbox"));
    home.write(file, "model = ");
    let refused = home.ends(1, &["setup", "codex"]);
    assert!(refused.contains("add by hand:\n[mcp_servers.lispbox]\ncommand = "), "{refused}");
}

#[test]
fn setup_changes_nothing_if_no_server_starts_or_the_file_cannot_be_rewritten() {
    let home = Home::new();
    let text = json!({"mcpServers": {"gone": {"command": "no-such-command"}}}).to_string();
    home.write(CLAUDE, &text);
    let refused = home.ends(1, &["setup", "claude-desktop", "--move"]);
    assert!(refused.contains("no server of Claude Desktop was moved, and nothing is changed"), "{refused}");
    assert_eq!(std::fs::read_to_string(home.path(CLAUDE)).expect("it is there"), text);
    let commented = "{\"mcpServers\": {}} // mine";
    home.write(CLAUDE, commented);
    assert!(home.ends(1, &["setup", "claude-desktop", "--move"]).contains("comments"));
    assert_eq!(std::fs::read_to_string(home.path(CLAUDE)).expect("it is there"), commented);
}

#[test]
fn the_doctor_names_what_mends_each_trouble() {
    let home = Home::new();
    home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let first = home.ends(0, &["doctor"]);
    for part in [
        "Claude Desktop: not attached; `lispbox setup claude-desktop --move` attaches it",
        "        servers: none; `lispbox config import` imports those of your clients",
        "ok      store: none yet; the first client creates it",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    end(home.client());
    let well = home.ends(0, &["doctor"]);
    for part in [
        "ok      Claude Desktop: attached\n",
        "ok      server mail: 6 tools",
        ".local/share/lispbox/sessions.db, 0 sessions, ",
        "ok      approvals: nothing waits for you",
        "all is well",
    ] {
        assert!(well.contains(part), "{part}: {well}");
    }
    home.write(
        CLAUDE,
        &json!({"mcpServers": {"lispbox": {"command": "/nowhere/lispbox", "args": ["serve"]}}}).to_string(),
    );
    home.write(".config/lispbox/config.d/more.json", &json!({"mcpServers": {"x": {"command": "no-such"}}}).to_string());
    home.write(".local/share/lispbox/sessions.db", &"no database ".repeat(1_000));
    let broken = home.ends(1, &["doctor"]);
    for part in [
        "broken  Claude Desktop: /nowhere/lispbox is not there any more; `lispbox setup claude-desktop` names this one",
        "broken  server `x` did not start: the command `no-such` was not found",
        "broken  store: ",
        "move the file away, and a new one is created",
    ] {
        assert!(broken.contains(part), "{part}: {broken}");
    }
}

#[test]
fn a_session_goes_on_after_a_restart_without_any_setting() {
    let home = Home::new();
    let mut client = home.client();
    let handle = client.eval("(def answer 42)").handle().expect("a handle");
    end(client);
    let mut client = home.client();
    let answer = client.call("lisp_eval", json!({"program": "(inc answer)", "session": handle}));
    assert_eq!(answer.text.lines().next(), Some("43"), "{}", answer.text);
    let mode = |file: &str| std::fs::metadata(home.path(file)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(".local/share/lispbox"), 0o700);
    assert_eq!(mode(".local/share/lispbox/sessions.db"), 0o600);
    assert!(home.ends(0, &["sessions", "list"]).contains("answer"));
    // A model that leaves the handle out learns that it has to look for it; others are not told what it is.
    let lost = home.client().eval("(inc answer)");
    let hint = "`answer` is defined in an earlier session: call again with the `session` that an earlier reply showed; \
                `lispbox sessions list` shows it to the user";
    assert!(lost.is_error && lost.text.contains(hint) && !lost.text.contains(&handle), "{}", lost.text);
    assert!(!home.client().eval("(inc other)").text.contains("earlier session"));

    // `memory` means what it says.
    let mut other = Client::start_at_home(home.0.path(), &["--store", "memory"], json!({}));
    let unknown = other.call("lisp_eval", json!({"program": "(inc answer)", "session": handle}));
    assert!(unknown.is_error, "{}", unknown.text);
}

#[test]
fn several_clients_use_one_store_at_once() {
    let home = Home::new();
    let (mut one, mut two) = (home.client(), home.client());
    let handle = one.eval("(def total 0)").handle().expect("a handle");
    for _ in 0..10 {
        for client in [&mut one, &mut two] {
            let answer = client.call("lisp_eval", json!({"program": "(def total (inc total))", "session": handle}));
            assert!(!answer.is_error, "{}", answer.text);
        }
    }
    let answer = one.call("lisp_eval", json!({"program": "total", "session": handle}));
    assert_eq!(answer.text.lines().next(), Some("20"));
}

pub fn run_of(answer: &Answer) -> String {
    let (_, rest) = answer.text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {}", answer.text));
    rest.split('"').next().expect("a run").to_owned()
}

pub fn continued(client: &mut Client, run: &str) -> Answer {
    client.call("lisp_eval", json!({"run": run}))
}

#[test]
fn a_waiting_program_outlives_the_client_and_a_person_decides_at_a_terminal() {
    let home = Home::new().with_notes();
    let mut client = home.client();
    let run = run_of(&client.eval("(notes/share {:line \"hello\"})"));
    end(client);
    assert!(home.ends(0, &["approvals", "list"]).contains(&run));
    home.ends(0, &["approvals", "approve", &run]);
    let mut client = home.client();
    let answer = continued(&mut client, &run);
    assert!(answer.text.contains("added hello"), "{}", answer.text);
    assert_eq!(home.shared(), "hello\n");
}

/// Begins a program and returns the number of its request.
fn begin(client: &mut Client, program: &str) -> i64 {
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}))
}

#[test]
fn a_form_that_nobody_is_shown_makes_the_run_wait_for_another_door() {
    let home = Home::new().with_notes();
    let mut client = Client::start_at_home(home.0.path(), &[], json!({"elicitation": {}}));
    let call = begin(&mut client, "(notes/share {:line \"one\"})");
    assert_eq!(client.receive()["method"], "elicitation/create");
    let begun = Instant::now();
    let reply = loop {
        let message = client.receive();
        if message["id"] == call {
            break Answer::of(&message);
        }
    };
    let took = begun.elapsed();
    assert!((Duration::from_secs(19)..Duration::from_secs(40)).contains(&took), "{took:?}");
    assert!(reply.text.contains("`lispbox approvals open`"), "{}", reply.text);
    // That is remembered: nobody is asked by a form again.
    let next = client.eval("(notes/share {:line \"two\"})");
    assert!(next.text.contains("`lispbox approvals open`"), "{}", next.text);
    for run in [run_of(&reply), run_of(&next)] {
        home.ends(0, &["approvals", "approve", &run]);
        assert!(!continued(&mut client, &run).is_error);
    }
    assert_eq!(home.shared(), "one\ntwo\n");
}

#[test]
fn a_form_that_is_refused_at_once_makes_the_run_wait_unless_a_person_has_answered_before() {
    let home = Home::new().with_notes();
    let answering = |client: &mut Client, line: &str, result: Value| {
        let call = begin(client, &format!("(notes/share {{:line {line:?}}})"));
        loop {
            let message = client.receive();
            if message["method"] == "elicitation/create" {
                client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string());
            } else if message["id"] == call {
                return Answer::of(&message);
            }
        }
    };
    let (cancel, yes) = (json!({"action": "cancel"}), json!({"action": "accept", "content": {"allow": true}}));
    for no in [cancel.clone(), json!({"action": "decline"})] {
        let mut client = Client::start_at_home(home.0.path(), &[], json!({"elicitation": {}}));
        let waits = answering(&mut client, "one", no);
        assert!(waits.text.contains("`lispbox approvals open`"), "{}", waits.text);
    }

    let mut client = Client::start_at_home(home.0.path(), &[], json!({"elicitation": {}}));
    assert!(!answering(&mut client, "two", yes).is_error);
    let denied = answering(&mut client, "three", cancel);
    assert!(denied.text.contains("a person was asked and said no"), "{}", denied.text);
    assert_eq!(home.shared(), "two\n");
}

pub fn tools_of(client: &mut Client) -> Vec<String> {
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().expect("a list").iter();
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_prompt_of_a_client_decides_where_that_is_switched_on_and_there_is_no_better_door() {
    let home = Home::new().with_notes();
    let start = |arguments: &[&str], able: Value| Client::start_at_home(home.0.path(), arguments, able);
    assert_eq!(tools_of(&mut start(&[], json!({}))), ["lisp_eval", "lisp_env"]);
    assert_eq!(tools_of(&mut start(&["--approve-tool"], json!({"elicitation": {}}))), ["lisp_eval", "lisp_env"]);
    assert_eq!(tools_of(&mut start(&["--approve-tool", "--store", "memory"], json!({}))), ["lisp_eval", "lisp_env"]);
    let mut client = start(&["--approve-tool"], json!({}));
    assert_eq!(tools_of(&mut client), ["lisp_eval", "lisp_env", "lisp_approve"]);

    let waits = client.eval("[(notes/share {:line \"a\u{202E}b\"}) (notes/share {:line \"two\"})]");
    let run = run_of(&waits);
    let line = "notes/share {\"line\":\"a\\u202eb\"}";
    assert!(waits.text.contains(&format!("\n- {line}\n")) && waits.text.contains("`lisp_approve`"), "{}", waits.text);
    let approve =
        |client: &mut Client, run: &str, calls: Value| client.call("lisp_approve", json!({"run": run, "calls": calls}));
    // One byte less, another argument, a call that does not wait, no call, and a call beside a good one.
    for wrong in [
        json!(["notes/share {\"line\":\"a\\u202e\"}"]),
        json!(["notes/share {\"line\": \"a\\u202eb\"}"]),
        json!(["notes/share {\"line\":\"a\u{202E}b\"}"]),
        json!(["notes/add {\"line\":\"a\\u202eb\"}"]),
        json!([]),
        json!(line),
        json!([line, "notes/share {\"line\":\"three\"}"]),
    ] {
        let refused = approve(&mut client, &run, wrong.clone());
        assert!(refused.is_error && refused.text.starts_with("nothing was approved: "), "{wrong}: {}", refused.text);
    }
    // Another connection has not been shown this run.
    let mut other = start(&["--approve-tool"], json!({}));
    assert!(approve(&mut other, &run, json!([line])).is_error);
    assert!(continued(&mut client, &run).text.contains(line), "nothing was decided");
    assert_eq!(home.shared(), "");

    let approved = approve(&mut client, &run, json!([line]));
    assert!(!approved.is_error, "{}", approved.text);
    assert!(approve(&mut client, &run, json!([line])).is_error, "a call is approved once");
    let goes_on = continued(&mut client, &run);
    assert!(goes_on.text.contains("\n- notes/share {\"line\":\"two\"}"), "{}", goes_on.text);
    approve(&mut client, &run, json!(["notes/share {\"line\":\"two\"}"]));
    assert!(!continued(&mut client, &run).is_error);
    assert_eq!(home.shared(), "a\u{202E}b\ntwo\n");
    let shown = home.ends(0, &["approvals", "list", "--all"]);
    assert!(shown.contains(&run), "{shown}");
}
