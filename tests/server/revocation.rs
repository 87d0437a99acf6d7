//! Changes to the tokens file while the server runs: revoked tokens, new tokens, and invalid files.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::http_client::{Server, handle, tokens_file};
use serde_json::{Value, json};

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";
const NEW: &str = "Authorization: Bearer new-new-new-new-new\r\n";

/// Polls until the condition holds. Panics after 40 s.
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(40), "it did not come to pass");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn both() -> Value {
    json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"})
}

fn serving(folder: &Path) -> Server {
    let file = tokens_file(folder, &both());
    Server::start(&["--tokens", &file.to_string_lossy()], &[])
}

/// The HTTP status of a call with these headers.
fn status(server: &Server, headers: &str) -> u16 {
    server.call(headers, "lisp_eval", json!({"program": "(+ 1 2)"})).status
}

/// True if `/metrics` reports that the tokens file cannot be used.
fn is_stale(server: &Server) -> bool {
    let metrics = server.request("GET", "/metrics", BOB, b"").body;
    let value = metrics.lines().find_map(|line| line.strip_prefix("lispbox_tokens_file_stale "));
    value.unwrap_or_else(|| panic!("no such metric: {metrics}")) == "1"
}

#[test]
fn a_revoked_token_ends_at_once_and_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serving(folder.path());
    let (of_ann, of_bob) = (
        server.initialize(ANN, "2025-06-18").expect("a session"),
        server.initialize(BOB, "2025-06-18").expect("a session"),
    );
    let mut streams = [of_ann.listen(""), of_bob.listen("")];
    assert!(streams.iter_mut().all(|stream| stream.receive_head().status == 200));
    let endless = json!({"program": "(loop [] (recur))", "limits": {"compute": "50s", "fuel": 1e12}});
    let mut running = server.begin(ANN, "lisp_eval", endless);
    let mut kept = server.connect();
    assert_eq!(kept.call(ANN, "lisp_eval", json!({"program": "1"})).status, 200);
    tokens_file(folder.path(), &json!({"bob": "bob-bob-bob-bob-bob"}));
    streams[0].rest();
    assert_eq!(running.receive().status, 401, "what ran for it has ended");
    assert_eq!(kept.call(ANN, "lisp_eval", json!({"program": "1"})).status, 401, "also on a connection that is open");
    assert_eq!(status(&server, ANN), 401);
    assert_eq!(of_ann.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status, 401);
    assert_eq!(of_bob.eval("(+ 1 2)"), ("3".to_owned(), false));
    assert!(streams[1].is_silent_for(Duration::from_millis(50)) || !streams[1].rest().is_empty(), "bob's goes on");
}

#[test]
fn a_token_that_is_exchanged_keeps_what_its_principal_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serving(folder.path());
    let session = handle(&server.eval(ANN, "(def n 5)", None).0);
    let of_ann = server.initialize(ANN, "2025-06-18").expect("a session");
    tokens_file(folder.path(), &json!({"ann": "new-new-new-new-new", "bob": "bob-bob-bob-bob-bob"}));
    until(|| status(&server, NEW) == 200);
    assert_eq!(status(&server, ANN), 401);
    assert_eq!(server.eval(NEW, "n", Some(&session)), ("5".to_owned(), false));
    let exchanged = crate::http_client::Session { headers: NEW.to_owned(), ..of_ann };
    assert_eq!(exchanged.eval("(+ 1 2)").0, "3");
    // The same token under another name belongs to another principal.
    tokens_file(folder.path(), &json!({"anna": "new-new-new-new-new", "bob": "bob-bob-bob-bob-bob"}));
    // A call that is under way while the file is read may be refused.
    until(|| {
        let answer = server.call(NEW, "lisp_eval", json!({"program": "n", "session": session}));
        answer.status == 200 && answer.message().to_string().contains("UnknownSession")
    });
    assert_eq!(exchanged.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status, 404);
    // The allowances of a principal are also reloaded.
    let slow =
        json!({"anna": {"token": "new-new-new-new-new", "requests_per_minute": 1}, "bob": "bob-bob-bob-bob-bob"});
    tokens_file(folder.path(), &slow);
    until(|| status(&server, NEW) == 429);
}

#[test]
fn a_wrong_file_changes_nothing_and_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serving(folder.path());
    let file = folder.path().join("tokens.json");
    let one = json!({"bob": "bob-bob-bob-bob-bob"}).to_string();
    let cases: [&dyn Fn(); 6] = [
        &|| std::fs::write(&file, "").expect("written"),
        &|| std::fs::write(&file, r#"{"bob": "bob-bob-bob-bob-bob""#).expect("written"),
        &|| std::fs::write(&file, r#"{"bob": "short"}"#).expect("written"),
        &|| std::fs::write(&file, r#"{"bob": "${NOT_SET_ANYWHERE}"}"#).expect("written"),
        &|| {
            std::fs::write(&file, &one).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).expect("it is ours");
        },
        &|| std::fs::remove_file(&file).expect("it was there"),
    ];
    for (number, wrong) in cases.iter().enumerate() {
        assert!(!is_stale(&server), "{number}");
        wrong();
        until(|| is_stale(&server));
        assert_eq!((status(&server, ANN), status(&server, BOB)), (200, 200), "{number}");
        assert_eq!(server.request("GET", "/readyz", "", b"").status, 200, "it serves those that it knows");
        tokens_file(folder.path(), &both());
        until(|| !is_stale(&server));
    }
    // A file without names is valid: it revokes all tokens.
    tokens_file(folder.path(), &json!({}));
    until(|| status(&server, ANN) == 401);
    assert_eq!(status(&server, ""), 401, "and opens the server to nobody");
}

#[test]
fn a_token_of_the_environment_outlives_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = tokens_file(folder.path(), &both());
    let server = Server::start(&["--tokens", &file.to_string_lossy()], &[("LISPBOX_TOKEN", "new-new-new-new-new")]);
    assert_eq!((status(&server, NEW), status(&server, ANN)), (200, 200));
    tokens_file(folder.path(), &json!({"bob": "bob-bob-bob-bob-bob"}));
    until(|| status(&server, ANN) == 401);
    assert_eq!((status(&server, NEW), status(&server, BOB)), (200, 200));
}

#[test]
fn a_file_that_others_may_write_is_refused_and_one_that_they_may_read_is_warned_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = tokens_file(folder.path(), &both());
    let set_mode = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let advice = format!("chmod 600 {}", file.display());
    for mode in [0o620, 0o602, 0o666] {
        set_mode(mode);
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["serve", "--http", "127.0.0.1:0", "--tokens"]).arg(&file).env_remove("LISPBOX_TOKEN");
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(&advice) && !errors.contains("ann-ann"), "{errors}");
    }
    set_mode(0o644);
    let server = Server::start(&["--tokens", &file.to_string_lossy()], &[]);
    assert_eq!(status(&server, ANN), 200);
}
