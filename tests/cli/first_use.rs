//! `config import`, `setup` and `config check` as a new user runs them, including their failures.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");

/// Runs a command with `home` as its home and working directory.
fn lispbox(home: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(LISPBOX)
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .env("LISPBOX_CACHE", home.join("cache"))
        .envs(variables.iter().copied())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the binary runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command, checks its exit code, and returns its output.
fn ends(home: &Path, code: i32, arguments: &[&str]) -> String {
    let output = lispbox(home, arguments, &[]);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    said(&output)
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, text).expect("written");
}

fn servers(commands: &[(&str, &str)]) -> String {
    let servers = commands.iter().map(|(name, command)| ((*name).to_owned(), json!({"command": command})));
    json!({"mcpServers": Value::Object(servers.collect())}).to_string()
}

/// The names of the imported servers, in alphabetical order.
fn imported(home: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(home.join(".config/lispbox/config.d/imported.json")).unwrap_or_default();
    let root: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut names: Vec<String> =
        root["mcpServers"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

#[test]
fn imported_servers_stay_until_they_are_pruned() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let (cursor, code) = (home.join(".cursor/mcp.json"), home.join(".claude.json"));
    write(&cursor, &servers(&[("mail", "a"), ("web", "b")]));
    write(&code, &servers(&[("notes", "c")]));
    let first = ends(home, 0, &["config", "import"]);
    assert!(first.contains("mail: added") && first.contains("3 added, 0 changed, 0 removed"), "{first}");

    // One client has other servers than before, and the file of the other client cannot be read.
    write(&cursor, &servers(&[("web", "changed"), ("more", "d"), ("lispbox", "/usr/bin/lispbox")]));
    write(&code, "{\"mcpServers\": {\n");
    for broken in ["{\"mcpServers\": {\n", "", "[]", "{\"mcpServers\": []}", "{\"mcpServers\": {\"notes\": 5}}"] {
        write(&code, broken);
        let dry = ends(home, 1, &["config", "import", "--prune", "--dry-run"]);
        assert!(
            dry.contains(".claude.json cannot be read") && !dry.contains("notes: would be removed"),
            "{broken}: {dry}"
        );
    }
    write(&code, "{\"mcpServers\": {\n");
    let second = ends(home, 1, &["config", "import"]);
    assert_eq!(imported(home), ["mail", "more", "notes", "web"]);
    for part in [
        "more: added",
        "web: changed (command)",
        "mail: kept, no client has it any more; `--prune` removes it",
        "cannot be read",
        "the `{` at line 1, column 16 is not closed",
    ] {
        assert!(second.contains(part), "{part}: {second}");
    }
    let third = ends(home, 1, &["config", "import", "--prune"]);
    assert!(third.contains("mail: removed"), "{third}");
    assert_eq!(imported(home), ["more", "notes", "web"], "what cannot be looked at stays");
    write(&code, &servers(&[]));
    let partly = ends(home, 0, &["config", "import", "--prune", "--from", "cursor"]);
    assert!(partly.contains("was not read"), "{partly}");
    assert_eq!(imported(home), ["more", "notes", "web"]);
    ends(home, 0, &["config", "import", "--prune"]);
    assert_eq!(imported(home), ["more", "web"]);
    write(&home.join(".config/lispbox/config.d/imported.json"), "{ // mine\n}");
    assert!(ends(home, 1, &["config", "import"]).contains("comments"));
}

#[test]
fn one_server_is_counted_as_one() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    write(&home.join(".cursor/mcp.json"), &servers(&[("mail", "x")]));
    assert!(ends(home, 0, &["config", "import", "--dry-run"]).contains("\n1 server would be written to "));
    assert!(ends(home, 0, &["config", "import"]).contains("\n1 server written to "));
    assert!(ends(home, 0, &["config", "import"]).contains(" is unchanged: 1 server\n"));
}

#[test]
fn files_of_a_project_are_imported_when_asked_for() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let project = home.join("project");
    for file in [".mcp.json", ".cursor/mcp.json", ".gemini/settings.json"] {
        write(&project.join(file), &servers(&[("evil", "curl\u{1b}[2K evil.example")]));
    }
    write(
        &project.join(".vscode/mcp.json"),
        &json!({"servers": {"other": {"command": "sh", "args": ["-c", "rm -rf ."], "env": {"K": "a-secret"}}}})
            .to_string(),
    );
    let run = |arguments: &[&str]| {
        let output = Command::new(LISPBOX).args(arguments).current_dir(&project).env_clear().env("HOME", home).output();
        said(&output.expect("it runs"))
    };
    assert!(run(&["config", "import"]).contains("no servers were found"));
    assert!(imported(home).is_empty());
    let shown = run(&["config", "import", "--project"]);
    assert!(shown.contains("other: added  starts sh -c rm -rf . (env K)") && !shown.contains("a-secret"), "{shown}");
    assert!(shown.contains("evil: added  starts curl") && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(imported(home), ["evil", "other"]);
    let later = run(&["config", "import", "--prune"]);
    assert!(later.contains("was not read"), "{later}");
    assert_eq!(imported(home), ["evil", "other"]);
    ends(home, 2, &["config", "import", "--project", "nowhere"]);
}

#[test]
fn setup_shows_its_change_alone_and_takes_it_back() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let file = home.join(".claude.json");
    let before = json!({"mcpServers": {"mail": {"command": "m", "env": {"KEY": "a-secret"}}}, "oauth": "a-secret"});
    write(&file, &before.to_string());
    let dry = ends(home, 0, &["setup", "claude-code", "--dry-run"]);
    assert!(dry.contains("+     \"lispbox\": {") && !dry.contains("a-secret"), "{dry}");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), before.to_string());
    for wrong in ["nope.json", "broken.json"] {
        write(&home.join("broken.json"), "{");
        let refused = ends(home, 2, &["setup", "claude-code", "--config", wrong]);
        assert!(refused.contains(wrong), "{refused}");
    }
    write(&home.join("servers.json"), &servers(&[]));
    ends(home, 0, &["setup", "claude-code", "--config", "servers.json"]);
    let read = || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).expect("there")).expect("JSON") };
    assert_eq!(read()["mcpServers"]["lispbox"]["args"][1], "--config");
    let dry = ends(home, 0, &["setup", "claude-code", "--remove", "--dry-run"]);
    assert!(dry.contains("-     \"lispbox\": {") && !dry.contains("a-secret"), "{dry}");
    ends(home, 0, &["setup", "claude-code", "--remove"]);
    assert_eq!(read(), before);
    assert!(ends(home, 0, &["setup", "claude-code", "--remove"]).contains("does not have lispbox"));
    assert!(ends(home, 0, &["setup", "cursor", "--remove"]).contains("does not have lispbox"));
    assert!(!home.join(".cursor").exists());
}

#[test]
fn a_check_sees_the_settings_of_the_server() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let mailbox = json!({"mcpServers": {"mail": {"command": LISPBOX, "args": ["sample-mailbox"]}}});
    write(&home.join("servers.json"), &mailbox.to_string());
    write(&home.join("plain"), "");
    let wrong = [
        ("LISPBOX_LIMIT", "fule=1"),
        ("LISPBOX_LOG", "debgu"),
        ("LISPBOX_LOG", "lispbx=debug"),
        ("LISPBOX_LOG", "warn,[x]=debug"),
        ("LISPBOX_TOTAL_MEMORY", "much"),
        ("LISPBOX_REPLY", "nonsense"),
        ("LISPBOX_KEEP_DAYS", "many"),
        ("LISPBOX_QUARANTINE", "nothing.txt"),
        ("LISPBOX_HTTP", "8787"),
        ("LISPBOX_HTTP", "0.0.0.0:8787"),
        ("LISPBOX_AUDIT", "plain"),
        ("LISPBOX_ASK", "[a"),
    ];
    for (name, value) in wrong {
        for arguments in [&["config", "check", "--config", "servers.json"][..], &["serve", "--config", "servers.json"]]
        {
            let output = lispbox(home, arguments, &[(name, value)]);
            assert_eq!(output.status.code(), Some(2), "{name}={value} {arguments:?}: {}", said(&output));
            assert!(!said(&output).contains("panicked"), "{}", said(&output));
        }
    }
    let levels = said(&lispbox(home, &["serve"], &[("LISPBOX_LOG", "debgu")]));
    assert!(["off", "error", "warn", "info", "debug", "trace"].iter().all(|level| levels.contains(level)), "{levels}");
    let allowed = ends(home, 0, &["config", "check", "--config", "servers.json", "--deny", "send-*"]);
    assert!(allowed.contains("ok      mail") && allowed.contains("may not be called: send-email"), "{allowed}");

    let local = json!({"local": {
        "a/ok": {"command": "sh"}, "b/gone": {"command": "no-such-command"}, "c/folder": {"command": "sh", "cwd": "nowhere"},
    }});
    write(&home.join("local.json"), &local.to_string());
    let checked = ends(home, 1, &["config", "check", "--config", "local.json"]);
    for part in ["ok      a: 1 tool", "broken  b: `gone`", "broken  c: `folder`", "2 of 3 servers"] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
}

#[test]
fn a_server_that_ends_at_once_is_said_to_have_ended() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let quits = |script: &str| json!({"command": "sh", "args": ["-c", script]});
    let root = json!({"mcpServers": {"one": quits("echo no licence >&2; exit 3"), "two": quits("exec 0<&-; exec 1>&-; exit 4")}});
    write(&home.join("servers.json"), &root.to_string());
    for _ in 0..5 {
        let checked = ends(home, 1, &["config", "check", "--config", "servers.json"]);
        assert!(!checked.contains("Broken pipe"), "{checked}");
        for part in ["did not start: it ended with", "exit status: 3", "no licence", "exit status: 4"] {
            assert!(checked.contains(part), "{part}: {checked}");
        }
    }
}

#[test]
fn tools_are_found_whatever_else_is_down() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let root = json!({"mcpServers": {"mail": {"command": LISPBOX, "args": ["sample-mailbox"]}, "gone": {"command": "no-such-command"}}});
    write(&home.join("servers.json"), &root.to_string());
    let found = ends(home, 0, &["tools", "fetch", "--config", "servers.json"]);
    assert!(found.contains("mail/fetch-emails"), "{found}");
    let missed = ends(home, 1, &["tools", "fetch-emials", "--config", "servers.json"]);
    assert!(
        missed.contains("no tool has `fetch-emials`") && missed.contains("did you mean `fetch-emails`?"),
        "{missed}"
    );
    assert!(ends(home, 1, &["tools", "maill", "--config", "servers.json"]).contains("did you mean `mail`?"));
    assert!(ends(home, 1, &["tools", "gone", "--config", "servers.json"]).contains("could not be asked"));
    ends(home, 1, &["tools", "--config", "servers.json"]);
}

#[test]
fn a_port_in_use_is_named_and_names_are_addresses() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    for host in ["127.0.0.1", "localhost"] {
        let address = format!("{host}:{port}");
        let refused = ends(home, 1, &["serve", "--no-config", "--http", &address]);
        assert!(refused.contains(&format!("127.0.0.1:{port} is in use")), "{refused}");
    }
    for wrong in ["8787", "localhost", "http://localhost:8787", ":8787", "localhost:99999"] {
        assert!(ends(home, 2, &["serve", "--no-config", "--http", wrong]).contains("HOST:PORT"));
    }
    let open = ends(home, 2, &["serve", "--no-config", "--http", "0.0.0.0:0"]);
    assert!(open.contains("needs tokens"), "{open}");
}

#[test]
fn limits_say_how_they_are_raised_and_truncated_json_where_it_is_open() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let stopped = ends(home, 1, &["eval", "--limit", "fuel=1000", "(loop [] (recur))"]);
    assert!(stopped.contains("`--limit fuel=VALUE` allows more") && !stopped.contains("operator"), "{stopped}");
    write(&home.join("data.json"), "{\"a\": [1,\n  {\"b\": 2");
    let cut = ends(home, 1, &["eval", "--data", "data.json", "data"]);
    assert!(cut.contains("got the end of the text: the `{` at line 2, column 3 is not closed"), "{cut}");
    write(&home.join("servers.json"), "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\",\n");
    let cut = ends(home, 2, &["config", "show", "--config", "servers.json"]);
    assert!(
        cut.contains("the file ends at line 2 before it is complete: the `{` at line 2, column 8 is not closed"),
        "{cut}"
    );
    // A truncated string, followed by a line break.
    write(&home.join("servers.json"), "{\"mcpServers\": {\n  \"a\": {\"command\": \"x -\n");
    let cut = ends(home, 2, &["config", "show", "--config", "servers.json"]);
    assert!(
        cut.contains("the file ends at line 2 before it is complete: the `\"` at line 2, column 20 is not closed"),
        "{cut}"
    );
    write(&home.join("servers.json"), "{\"mcpServers\": {\n  \"a\": {\"command\": \"x -\n\"}}}");
    let broken = ends(home, 2, &["config", "show", "--config", "servers.json"]);
    assert!(broken.contains("line terminator in string at line 2 column 24"), "{broken}");
    let help = ends(home, 0, &["--help"]);
    assert!(help.contains("Exit codes:"), "{help}");
}

#[test]
fn what_a_setting_names_and_is_not_there_is_wrong_usage() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    write(&home.join("servers.json"), &servers(&[("mail", "x")]));
    std::fs::create_dir(home.join("empty")).expect("made");
    let serve = ["serve", "--config", "servers.json"];
    let cases: &[(&[&str], &str)] = &[
        (&["config", "show", "--config", "nope.json"], "nope.json"),
        (&["run", "nope.lisp"], "nope.lisp: "),
        (&["eval", "--data", "nope.json", "1"], "nope.json: "),
        (&["serve", "--quarantine", "nope.txt"], "nope.txt: "),
        (&["audit", "show", "--audit", "nope"], "the audit log in nope: "),
        (&["audit", "verify", "--audit", "servers.json"], "the audit log in servers.json: "),
        (&["audit", "stats", "--audit", "empty"], "there is no audit log in empty"),
        (&["sessions", "list", "--store", "sqlite:nope.db"], "there is no store at nope.db"),
        (&["sessions", "list", "--store", "sqlite:empty"], "sqlite:empty: "),
        (&[&serve[..], &["--store", "sqlite:/nope/x.db"]].concat(), "sqlite:/nope/x.db: "),
        (&["config", "check", "--config", "servers.json", "--store", "sqlite:/nope/x.db"], "there is no folder /nope"),
        (&[&serve[..], &["--audit", "/proc/nope"]].concat(), "the audit log in /proc/nope: "),
        (&[&serve[..], &["--audit", "servers.json"]].concat(), "the audit log in servers.json: "),
        (&["login", "--config", "servers.json", "mial"], "there is no server `mial`; did you mean `mail`?"),
        (&["login", "--config", "servers.json", "nope"], "there is no server `nope`\n"),
        (&["sessions", "import", "nope.txt", "--store", "sqlite:made.db"], "nope.txt: "),
    ];
    for (arguments, problem) in cases {
        let said = ends(home, 2, arguments);
        assert!(said.contains(problem), "{arguments:?}: {said}");
    }
    assert!(!home.join("made.db").exists(), "nothing was started");
}
