//! Files of other clients mean the same to lispbox: folders, environment files, and keys of each client.

use std::path::Path;
use std::process::{Command, Output};

use crate::mcp_client::{python, script};
use serde_json::{Value, json};

const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");

/// Runs a command with `home` as its home and working directory.
fn lispbox(home: &Path, arguments: &[&str]) -> Output {
    Command::new(LISPBOX)
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", home)
        .env("LISPBOX_CACHE", home.join("cache"))
        .env("T_PLACE", "from-outside")
        .stdin(std::process::Stdio::null())
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

/// An entry of the peer that tells its folder, arguments and variables, with further keys.
fn entry(arguments: &[&str], more: Value) -> Value {
    let all: Vec<String> = std::iter::once(script("odd.py")).chain(arguments.iter().map(ToString::to_string)).collect();
    let mut entry = json!({"command": "python3", "args": all});
    entry.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    entry
}

/// What the server `s` of the usual configuration tells about itself.
fn about(home: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["eval", "--json", "(s/about)"], arguments].concat();
    let output = lispbox(home, &arguments);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    record["json"].clone()
}

#[test]
fn imported_entries_keep_their_folder() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    let servers = |key: &str, entry: Value| json!({key: {"s": entry}}).to_string();
    let cases = [
        (".vscode/mcp.json", "servers", entry(&["${workspaceFolder}"], json!({"envFile": "${workspaceFolder}/.env"}))),
        (".vscode/mcp.json", "servers", entry(&["-"], json!({"cwd": "${workspaceFolder}", "envFile": ".env"}))),
        (".cursor/mcp.json", "mcpServers", entry(&["./data"], json!({"envFile": ".env"}))),
        (".mcp.json", "mcpServers", entry(&["data"], json!({"envFile": ".env"}))),
    ];
    for (number, (file, key, entry)) in cases.into_iter().enumerate() {
        let home = root.join(number.to_string());
        let project = home.join("project");
        write(&project.join(".env"), "T_A=pa$$w0rd\n");
        let with_folder = entry["args"][1] == "${workspaceFolder}";
        write(&project.join(file), &servers(key, entry));
        let output = lispbox(&home, &["config", "import", "--project", "project"]);
        assert!(output.status.success(), "{}", said(&output));
        let about = about(&home, &[]);
        let project = project.display().to_string();
        assert_eq!((&about["cwd"], &about["env"]["T_A"]), (&json!(project), &json!("pa$$w0rd")), "{file}: {about}");
        assert!(!with_folder || about["args"][0] == project, "{file}: {about}");
    }
}

#[test]
fn entries_of_claude_code_and_of_all_projects_keep_theirs() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().canonicalize().expect("a folder");
    let app = home.join("app");
    std::fs::create_dir_all(&app).expect("a folder");
    let servers = json!({"s": entry(&[], json!({})), "off": entry(&[], json!({}))});
    let project = json!({"mcpServers": servers, "disabledMcpServers": ["off"]});
    write(&home.join(".claude.json"), &json!({"projects": {app.to_str().expect("UTF-8"): project}}).to_string());
    let cursor = json!({"mcpServers": {"where": entry(&["${workspaceFolder}"], json!({}))}});
    write(&home.join(".cursor/mcp.json"), &cursor.to_string());
    let output = lispbox(&home, &["config", "import"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("off: left out, as `disabledMcpServers` of Claude Code says"), "{}", said(&output));
    let reason = "server `where` is left out: `${workspaceFolder}` is the folder of a project";
    assert!(said(&output).contains(reason), "{}", said(&output));
    assert_eq!(about(&home, &[])["cwd"], json!(app.display().to_string()));
}

#[test]
fn an_environment_file_is_never_shown() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    write(&home.join(".env"), "\u{feff}T_A=it's-s3cret words\nsource ./s3cret.sh\nexport T_B={\"a\":1}\nT_C=abc#d$e\n");
    let servers = json!({"mcpServers": {"s": entry(&[], json!({"envFile": ".env"}))}});
    write(&home.join("servers.json"), &servers.to_string());
    let about = about(home, &["--config", "servers.json"]);
    assert_eq!(
        about["env"],
        json!({"T_A": "it's-s3cret words", "T_B": "{\"a\":1}", "T_C": "abc#d$e"}),
        "inherited variables are not among them"
    );
    let check = said(&lispbox(home, &["config", "check", "--config", "servers.json"]));
    assert!(check.contains("`envFile` .env: line 2 was skipped") && !check.contains("s3cret"), "{check}");
}

#[test]
fn keys_of_codex_and_gemini_apply() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let file = script("odd.py");
    write(
        &home.join(".codex/config.toml"),
        &format!(
            "[mcp_servers.s]\ncommand = 'python3'\nargs = ['{file}']\nenv_vars = ['T_PLACE']\ntool_timeout_sec = 20\n\
             startup_timeout_sec = 20\ndisabled_tools = ['say']\n\
             [mcp_servers.other]\nurl = 'http://127.0.0.1:1/mcp'\nscopes = ['read']\n"
        ),
    );
    let gemini = json!({"mcp": {"excluded": ["no"]}, "mcpServers": {
        "g": entry(&["$T_PLACE"], json!({"env": {"T_B": "$T_PLACE"}, "timeout": 20000})), "no": entry(&[], json!({}))}});
    write(&home.join(".gemini/settings.json"), &gemini.to_string());
    let output = lispbox(home, &["config", "import"]);
    let shown = said(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("server `other` is left out: `scopes`: "), "{shown}");
    assert!(shown.contains("no: left out, as `mcp.excluded` of Gemini CLI says"), "{shown}");
    let direct = about(home, &["--config", ".codex/config.toml"]);
    for about in [about(home, &[]), direct] {
        assert_eq!(about["env"]["T_PLACE"], "from-outside", "{about}");
    }
    let denied = lispbox(home, &["eval", "(s/say {:reply \"\"})"]);
    assert!(said(&denied).contains("ToolDenied"), "{}", said(&denied));
    let output = lispbox(home, &["eval", "--json", "(g/about)"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert_eq!(
        (&record["json"]["args"][0], &record["json"]["env"]["T_B"]),
        (&json!("from-outside"), &json!("from-outside"))
    );
}
