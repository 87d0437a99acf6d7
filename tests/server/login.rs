//! A server that requires an OAuth login, with the provider of FastMCP and a Python script in the role of the browser.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::mcp_client::{Announced, announced, free_port, installed, listening, python, script};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A lispbox command with `home` as its home and working directory, which contains `servers.json`.
fn lispbox(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(arguments).args(["--config", "servers.json"]).current_dir(home);
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env("LISPBOX_CACHE", home.join("cache"));
    command
}

fn secret(home: &Path) -> Output {
    lispbox(home, &["eval", "(guarded/secret)"]).output().expect("it runs")
}

/// The files that store logins.
fn logins(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.join(".config/lispbox/logins")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn a_person_logs_in_once() {
    let Some(python) = installed("venv/bin/python") else { return };
    let port = free_port();
    let _guarded = listening(Command::new(&python).args([script("guarded.py"), port.to_string()]), port);
    let home = tempfile::tempdir().expect("a folder");
    let servers = json!({"mcpServers": {"guarded": {"url": format!("http://127.0.0.1:{port}/mcp")}}});
    std::fs::write(home.path().join("servers.json"), servers.to_string()).expect("written");

    let refused = secret(home.path());
    let said = String::from_utf8_lossy(&refused.stderr);
    let expected = "server `guarded` did not start: it asks for authorization (HTTP status 401); \
        log in with `lispbox login guarded`";
    assert!(!refused.status.success() && said.contains(expected), "{refused:?}");

    let mut login = lispbox(home.path(), &["login", "guarded"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut output = BufReader::new(login.stdout.take().expect("piped"));
    let mut address = String::new();
    while !address.starts_with("http") {
        address.clear();
        assert_ne!(output.read_line(&mut address).expect("text"), 0, "it names an address");
    }
    let browse = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())";
    let page = Command::new(&python).args(["-c", browse, address.trim()]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&page.stdout).contains("You can close this page"), "{page:?}");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("text");
    assert!(login.wait().expect("a child").success() && said.contains("You are logged in at `guarded`."), "{said}");

    let files = logins(home.path());
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = std::fs::metadata(&files[0]).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let told = |home: &Path| {
        let told = secret(home);
        assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), "\"it is out\"", "{told:?}");
        let text = std::fs::read_to_string(&files[0]).expect("text");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let mut kept = told(home.path());
    // A token that was received two hours ago has expired: the next use refreshes it and stores the new one.
    kept["token_received_at"] = json!(kept["token_received_at"].as_u64().expect("a time") - 7200);
    std::fs::write(&files[0], kept.to_string()).expect("written");
    let refreshed = told(home.path());
    assert_ne!(refreshed["token_response"]["access_token"], kept["token_response"]["access_token"]);
    // Several processes that find it expired at once do not use a refresh token twice, which would revoke the login.
    let mut kept = refreshed;
    for _ in 0..3 {
        kept["token_received_at"] = json!(kept["token_received_at"].as_u64().expect("a time") - 7200);
        std::fs::write(&files[0], kept.to_string()).expect("written");
        let evaluate =
            || lispbox(home.path(), &["eval", "(guarded/secret)"]).stdout(Stdio::piped()).spawn().expect("it runs");
        let several: Vec<_> = (0..3).map(|_| evaluate()).collect();
        for process in several {
            let told = process.wait_with_output().expect("it ends");
            assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), "\"it is out\"", "{told:?}");
        }
        kept = told(home.path());
    }
    // The server can return the token, but it is redacted.
    let shown = lispbox(home.path(), &["eval", "(guarded/token)"]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), "\"it is [redacted]\"", "{shown:?}");
}

/// Starts the peer of that name; returns its address.
fn unregistering(arguments: &[&str]) -> (Announced, String) {
    let peer = announced(Command::new("python3").arg(script("unregistering.py")).args(arguments));
    let address = peer.url("http", "mcp");
    (peer, address)
}

#[test]
fn a_login_that_is_not_renewed_says_so_and_how_to_log_in_again() {
    if python().is_none() {
        return;
    }
    for (error, expected) in [
        ("invalid_grant", "it asks for authorization (HTTP status 401); log in with `lispbox login s`"),
        (
            "invalid_request",
            "the login could not be renewed: \"Server returned error response: invalid_request: the token [redacted] was \
             revoked\"; log in with `lispbox login s`",
        ),
    ] {
        let (_peer, url) = unregistering(&[error]);
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("servers.json"), json!({"mcpServers": {"s": {"url": url}}}).to_string())
            .expect("written");
        let folder = home.path().join(".config/lispbox/logins");
        std::fs::create_dir_all(&folder).expect("created");
        let token = json!({"access_token": "tok-0123456789", "token_type": "bearer", "refresh_token": "ref-0123456789",
                           "expires_in": 3600});
        let kept = json!({"client_id": "c", "token_response": token, "granted_scopes": [], "token_received_at": 1000});
        let name: String = Sha256::digest(&url).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(folder.join(format!("{name}.json")), kept.to_string()).expect("written");
        let output = lispbox(home.path(), &["eval", "(s/t)"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("server `s` did not start: {expected}\n")), "{error}: {said}");
    }
}

#[test]
fn a_login_at_a_server_that_registers_no_clients_says_what_to_do() {
    if python().is_none() {
        return;
    }
    let (_peer, url) = unregistering(&[]);
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("servers.json"), json!({"mcpServers": {"s": {"url": url}}}).to_string())
        .expect("written");
    let output = lispbox(home.path(), &["login", "s"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("its authorization server does not register lispbox as a client"), "{said}");
    assert!(said.contains(r#"put it into `headers` of the server: {"Authorization": "Bearer ${TOKEN}"}"#), "{said}");
}

#[test]
fn who_cannot_be_logged_in_to_says_so() {
    let home = tempfile::tempdir().expect("a folder");
    let servers = json!({"mcpServers": {"mail": {"command": "mail"}, "gone": {"url": "http://127.0.0.1:1/mcp"}}});
    std::fs::write(home.path().join("servers.json"), servers.to_string()).expect("written");
    let cases = [
        ("mail", "only a server with a `url` can ask for a login"),
        ("male", "there is no server `male`"),
        ("gone", "OAuth metadata discovery failed"),
    ];
    for (server, expected) in cases {
        let output = lispbox(home.path(), &["login", server]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{server}: {said}");
    }
}
