//! Ten servers as people have them: four of npm, four of PyPI, one in Go and one native. Each is started, listed and
//! called, and answers as it does to a client that talks to it directly.
//!
//! They are below `$LISPBOX_PEERS/servers`, where `.ci/run` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mcp_client::Client;
use crate::peers::folder;
use serde_json::{Value, json};

/// A program below the folder of the servers; `None` if it is not installed, which is reported.
fn program(path: &str) -> Option<PathBuf> {
    let file = folder().join("servers").join(path);
    if !file.exists() {
        eprintln!("SKIPPED: servers/{path} is missing");
        return None;
    }
    Some(file)
}

/// A repository with one commit, notes, and the settings of a cluster that does not exist.
fn data(folder: &Path) {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]).args(arguments);
        assert!(command.current_dir(folder.join("repo")).output().expect("git runs").status.success());
    };
    for place in ["repo", "vault/.obsidian", "files"] {
        std::fs::create_dir_all(folder.join(place)).expect("a folder");
    }
    std::fs::write(folder.join("repo/f.txt"), "one\n").expect("written");
    std::fs::write(folder.join("vault/Project.md"), "# Project\n").expect("written");
    std::fs::write(folder.join("files/data.json"), r#"{"x": [1, 2]}"#).expect("written");
    let cluster = "apiVersion: v1\nkind: Config\nclusters:\n- name: none\n  cluster: {server: 'http://127.0.0.1:9'}\n\
                   contexts:\n- name: none\n  context: {cluster: none, user: ann}\ncurrent-context: none\nusers:\n- name: ann\n  user: {}\n";
    std::fs::write(folder.join("kubeconfig"), cluster).expect("written");
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first commit"]);
}

/// A server: its name, its program, its arguments, a program, and what its reply contains.
type Case<'c> = (&'c str, &'c str, &'c [&'c str], &'c str, &'c str);

/// The servers, with `DATA` in place of the folder of the data.
const CASES: [Case<'static>; 10] = [
    (
        "thinking",
        "node_modules/.bin/mcp-server-sequential-thinking",
        &[],
        r#"(:thought-number (thinking/sequentialthinking :thought "x" :thought-number 1 :total-thoughts 2 :next-thought-needed true))"#,
        "1",
    ),
    (
        "obsidian",
        "node_modules/.bin/mcp-obsidian",
        &["DATA/vault"],
        r#"(obsidian/read-notes :paths ["Project.md"])"#,
        "# Project",
    ),
    (
        "code",
        "node_modules/.bin/mcp-server-code-runner",
        &[],
        r#"(code/run-code :code "console.log(6 * 7)" :language-id "javascript")"#,
        "42",
    ),
    ("calc", "node_modules/.bin/calc-mcp", &[], r#"(calc/base :value "ff" :from 16 :to 2)"#, "11111111"),
    (
        "git",
        "mcp2/bin/mcp-server-git",
        &["--repository", "DATA/repo"],
        r#"(git/git-log :repo-path "DATA/repo")"#,
        "first commit",
    ),
    (
        "time",
        "mcp2/bin/mcp-server-time",
        &["--local-timezone", "Europe/Berlin"],
        r#"(:time_difference (time/convert-time :source-timezone "UTC" :time "12:00" :target-timezone "Asia/Tokyo"))"#,
        "+9.0h",
    ),
    (
        "calculator",
        "mcp1/bin/mcp-server-calculator",
        &[],
        r#"(calculator/calculate :expression "2**70")"#,
        "1180591620717411303424",
    ),
    ("cli", "mcp1/bin/cli-mcp-server", &[], r#"(cli/run-command :command "cat data.json")"#, ":x [1 2]"),
    // In Go.
    (
        "k8s",
        "node_modules/.bin/kubernetes-mcp-server",
        &["--kubeconfig", "DATA/kubeconfig", "--toolsets", "config"],
        "(k8s/configuration-view :minified true)",
        "http://127.0.0.1:9",
    ),
    // Native.
    (
        "cortex",
        "node_modules/@temporal-cortex/cortex-mcp-linux-x64/bin/cortex-mcp",
        &[],
        r#"(cortex/compute-duration :start "2026-01-01T00:00:00Z" :end "2026-01-02T01:00:00Z")"#,
        "90000",
    ),
];

#[test]
fn ten_servers_of_others_work_at_once() {
    // One of them refuses hidden folders, as temporary ones are by default, and loses capital letters.
    let prefix = format!("servers-{}", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).rand_bytes(0).tempdir().expect("a folder");
    data(folder.path());
    let place = folder.path().to_string_lossy().into_owned();
    let mut servers = serde_json::Map::new();
    for (name, path, arguments, ..) in CASES {
        let Some(file) = program(path) else { return };
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.replace("DATA", &place)).collect();
        let environment = json!({
            "HOME": place, "ALLOWED_DIR": format!("{place}/files"), "ALLOWED_COMMANDS": "cat", "ALLOWED_FLAGS": "all"});
        servers.insert(name.to_owned(), json!({"command": file, "args": arguments, "env": environment}));
    }
    let configuration = json!({"mcpServers": Value::Object(servers), "policy": {"defaults": {"destructive": "allow"}}});
    let mut client = Client::start(&configuration, &[]);
    for (name, _, _, program, expected) in CASES {
        let answer = client.eval(&program.replace("DATA", &place));
        assert!(!answer.is_error && answer.text.contains(expected), "{name}: {answer:?}");
    }
    let listed = client.eval("(dir)").text;
    for (name, ..) in CASES {
        assert!(listed.contains(name), "{name}: {listed}");
    }
}
