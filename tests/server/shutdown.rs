//! Shutdown of the server: each accepted request gets one reply, which reports what was kept.
#![cfg(unix)]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::http_client::{Server, evaluation, handle};
use crate::mcp_client::{Client, is_alive, python, script, until};
use serde_json::{Value, json};

/// A folder with a store, the file of the downstream server `witness`, and the file that it waits for.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Scene {
        Scene(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.file("sessions.db").display())
    }

    fn configuration(&self) -> Value {
        json!({"mcpServers": {"witness": {"command": "python3", "args": [script("witness.py"), self.file("witness")]}}})
    }

    fn http(&self, arguments: &[&str]) -> Server {
        let file = self.file("servers.json");
        std::fs::write(&file, self.configuration().to_string()).expect("written");
        let configured = ["--config", &file.display().to_string()];
        Server::start(
            &[&configured, arguments].concat(),
            &[("LISPBOX_CACHE", &self.file("cache").display().to_string())],
        )
    }

    /// A program that makes a definition and then waits for [`Scene::release`].
    fn held(&self) -> String {
        format!("(def kept 1) (witness/hold {{:id 1 :until {:?}}})", self.file("go").display().to_string())
    }

    /// Waits until `count` calls have reached the witness.
    fn until_held(&self, count: usize) {
        until(|| std::fs::read_to_string(self.file("witness")).unwrap_or_default().lines().count() > count);
    }

    fn release(&self) {
        std::fs::write(self.file("go"), "").expect("written");
    }
}

fn terminate(process: u32) {
    let told = Command::new("kill").args(["-TERM", &process.to_string()]).status();
    assert!(told.expect("kill runs").success());
}

/// The error message of a program that the shutdown cancels after a grace period of 300 ms.
fn cancelled(kept: &str) -> String {
    format!(
        "Cancelled: the evaluation was cancelled: the server is shutting down and lets programs run for at most 300 \
         ms (`serve --grace`); {kept}"
    )
}

const KEPT: &str = "the definitions of its earlier expressions are kept in its session";

#[test]
fn over_http_a_program_beyond_its_grace_is_answered_in_both_generations() {
    if python().is_none() {
        return;
    }
    for isolated in [false, true] {
        let scene = Scene::new();
        let mut arguments = vec!["--grace", "300ms", "--store"];
        let store = scene.store();
        arguments.push(&store);
        arguments.extend(isolated.then_some("--isolate"));
        let mut server = scene.http(&arguments);
        let session = server.initialize("", "2025-06-18").expect("a session");
        let mut older = server.connect();
        older.begin_post(&session.head(), &evaluation(7, &scene.held()));
        let mut newer = server.begin("", "lisp_eval", json!({"program": scene.held()}));
        scene.until_held(2);
        let told = Instant::now();
        terminate(server.process.id());
        let replies = [older.receive(), newer.receive()];
        assert!(server.process.wait().expect("a child").success());
        assert!(told.elapsed() < Duration::from_secs(8), "{:?}", told.elapsed());
        drop(server);
        let next = scene.http(&["--store", &store]);
        for reply in replies {
            assert_eq!(reply.status, 200);
            let (text, is_error) = reply.result();
            assert!(is_error && text.starts_with(&cancelled(KEPT)), "{text}");
            assert_eq!(next.eval("", "kept", Some(&handle(&text))), ("1".to_owned(), false), "isolated: {isolated}");
        }
    }
}

#[test]
fn over_http_a_program_within_its_grace_ends_by_itself_and_nothing_more_is_taken_in() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let mut server = scene.http(&["--grace", "60s"]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    let mut older = server.connect();
    older.begin_post(&session.head(), &evaluation(7, &scene.held()));
    let mut newer = server.begin("", "lisp_eval", json!({"program": scene.held()}));
    let other = server.initialize("", "2025-06-18").expect("a session");
    let mut withdrawn = server.connect();
    let hold = r#"(witness/hold {:id 3 :until "/nowhere/at/all"})"#;
    withdrawn.begin_post(&other.head(), &evaluation(9, hold));
    scene.until_held(3);
    // A message that has not arrived completely is not a request yet.
    let mut slow = server.connect();
    slow.write(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    );
    terminate(server.process.id());
    until(|| server.request("GET", "/readyz", "", b"").status == 503);
    assert_eq!(server.request("GET", "/readyz", "", b"").body, "the server is stopping\n");
    let message = "the server is shutting down and accepts no further requests; nothing was done";
    let refused =
        [session.post(&evaluation(8, "(+ 1 2)")), server.call("", "lisp_eval", json!({"program": "(+ 1 2)"}))];
    for (response, id) in refused.iter().zip([8, 1]) {
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32099, "message": message}});
        assert_eq!(response.message(), error);
    }
    assert_eq!(slow.receive().status, 503);
    // A call can still be cancelled during the shutdown.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    assert_eq!(other.post(&cancel).status, 202);
    scene.release();
    for reply in [older.receive(), newer.receive()] {
        let (text, is_error) = reply.result();
        assert!(!is_error && text.starts_with("\"held\""), "{text}");
        let contents = reply.message()["result"]["content"].clone();
        let note = "[the server is shutting down and has no store: the session ends with it]";
        assert_eq!(contents[1]["text"], note, "{contents}");
    }
    assert!(server.process.wait().expect("a child").success());
}

#[test]
fn a_second_signal_ends_the_grace() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let mut server = scene.http(&["--grace", "60s"]);
    let mut running = server.begin("", "lisp_eval", json!({"program": scene.held()}));
    scene.until_held(1);
    terminate(server.process.id());
    until(|| server.request("GET", "/readyz", "", b"").status == 503);
    let told = Instant::now();
    terminate(server.process.id());
    let (text, is_error) = running.receive().result();
    assert!(is_error && text.starts_with("Cancelled: "), "{text}");
    assert!(server.process.wait().expect("a child").success());
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
}

/// The reply to this request, skipping other messages.
fn reply(client: &mut Client, id: i64) -> Value {
    loop {
        let message = client.receive();
        if message["id"] == id {
            return message;
        }
    }
}

fn begin(client: &mut Client, program: &str) -> i64 {
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}))
}

#[test]
fn over_pipes_a_program_beyond_its_grace_is_answered_in_both_generations() {
    if python().is_none() {
        return;
    }
    for stateless in [false, true] {
        for way in ["closes", "terminates"] {
            let scene = Scene::new();
            let store = scene.store();
            let start = if stateless { Client::start_stateless } else { Client::start };
            let mut client = start(&scene.configuration(), &["--grace", "300ms", "--store", &store]);
            let id = begin(&mut client, &scene.held());
            scene.until_held(1);
            match way {
                "closes" => client.close(),
                _ => terminate(client.process.id()),
            }
            let answer = crate::mcp_client::Answer::of(&reply(&mut client, id));
            assert!(answer.is_error && answer.text.starts_with(&cancelled(KEPT)), "{way}: {}", answer.text);
            assert!(client.wait().success());
            let mut next = Client::start(&json!({"mcpServers": {}}), &["--store", &store]);
            let handle = answer.handle().expect("a handle");
            assert_eq!(next.call("lisp_eval", json!({"program": "kept", "session": handle})).text, "1");
        }
    }
}

#[test]
fn over_pipes_a_program_within_its_grace_ends_by_itself() {
    if python().is_none() {
        return;
    }
    for way in ["closes", "terminates"] {
        let scene = Scene::new();
        let mut client = Client::start_stateless(&scene.configuration(), &["--grace", "60s"]);
        let id = begin(&mut client, &scene.held());
        scene.until_held(1);
        match way {
            "closes" => client.close(),
            _ => {
                terminate(client.process.id());
                // The server accepts requests until it has handled the signal.
                until(|| {
                    client.request("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "1"}}))["error"]
                        == json!({"code": -32099, "message": "the server is shutting down and accepts no further requests; nothing was done"})
                });
            }
        }
        scene.release();
        let answer = reply(&mut client, id);
        let text = answer["result"]["content"][0]["text"].as_str().expect("text");
        assert!(text.starts_with("\"held\""), "{way}: {answer}");
        assert!(client.wait().success());
    }
}

/// A signal and the end of input, in either order, end the grace period: the client does not want to wait.
#[test]
fn over_pipes_a_signal_and_the_end_of_input_end_the_grace() {
    if python().is_none() {
        return;
    }
    for signal_is_first in [false, true] {
        let scene = Scene::new();
        let mut client = Client::start(&scene.configuration(), &["--grace", "1h"]);
        let id = begin(&mut client, &scene.held());
        scene.until_held(1);
        if signal_is_first {
            terminate(client.process.id());
            // In the session of the held program, it would wait for that program.
            let call = json!({"name": "lisp_eval", "arguments": {"program": "1", "session": "another"}});
            until(|| !client.request("tools/call", call.clone())["error"].is_null());
            client.close();
        } else {
            client.close();
            terminate(client.process.id());
        }
        let answer = crate::mcp_client::Answer::of(&reply(&mut client, id));
        assert!(answer.is_error, "{}", answer.text);
        assert!(answer.text.contains("its session ends with the server, which has no store"), "{}", answer.text);
        assert!(client.wait().success());
    }
}

/// The server does not wait for the programs of a client that has disconnected, since no replies can be delivered.
#[test]
fn over_pipes_nothing_is_waited_for_that_nobody_reads() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let file = scene.file("servers.json");
    std::fs::write(&file, scene.configuration().to_string()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["serve", "--grace", "1h", "--config"]).arg(&file).env("LISPBOX_CACHE", scene.file("cache"));
    command.env("LISPBOX_STORE", "memory");
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut process = command.spawn().expect("the binary runs");
    let params = json!({"name": "lisp_eval", "arguments": {"program": scene.held()}, "_meta": crate::meta()});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut input = process.stdin.take().expect("piped");
    std::io::Write::write_all(&mut input, format!("{call}\n").as_bytes()).expect("it reads");
    scene.until_held(1);
    let witness = std::fs::read_to_string(scene.file("witness")).expect("written");
    let witness: i64 = witness.lines().next().and_then(|line| line.parse().ok()).expect("a process");
    drop((input, process.stdout.take()));
    until(|| process.try_wait().expect("a child").is_some());
    until(|| !is_alive(witness));
}
