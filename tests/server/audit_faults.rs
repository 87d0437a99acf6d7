//! The audit log of the real server under faults: kills, full disks, and clients that disconnect.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::audit_log::{audit, parts, records, records_of};
use crate::mcp_client::{Client, is_alive, python, script, until};
use serde_json::{Value, json};

/// A folder with the file of the downstream server `witness` and the audit log.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Scene {
        let scene = Scene(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(scene.audit()).expect("made");
        scene
    }

    fn audit(&self) -> PathBuf {
        self.0.path().join("audit")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn configuration(&self) -> Value {
        let arguments = json!([script("witness.py"), self.file("witness")]);
        json!({"mcpServers": {"witness": {"command": "python3", "args": arguments}}})
    }

    fn client(&self, arguments: &[&str]) -> Client {
        let audit = self.audit().display().to_string();
        Client::start(&self.configuration(), &[&["--audit", &audit], arguments].concat())
    }

    /// The lines of the witness's file: its process id, followed by the ids of the calls that reached it.
    fn witnessed(&self) -> Vec<i64> {
        let text = std::fs::read_to_string(self.file("witness")).unwrap_or_default();
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
    }

    fn calls(&self) -> Vec<i64> {
        self.witnessed().split_off(1)
    }
}

/// The `id` arguments in the audit records of this kind.
fn identities(folder: &Path, kind: &str) -> BTreeSet<i64> {
    records_of(folder, kind).iter().map(|record| record["arguments"]["id"].as_i64().expect("an identity")).collect()
}

/// The number of witnessed lines after which a round kills the process: below 60, and the same in each run of the test.
fn scattered(round: usize) -> usize {
    (round * 7 + round * round) % 60
}

#[test]
fn each_call_that_reached_its_server_is_written_down_whenever_the_process_is_killed() {
    if python().is_none() {
        return;
    }
    let mut open = 0;
    for round in 0..30 {
        let scene = Scene::new();
        let mut client = scene.client(&["--limit", "calls=5000", "--audit-part", "8KiB"]);
        let program = match round % 3 {
            0 => "(dotimes [n 5000] (witness/note {:id n}))",
            _ => "(pmap (fn [n] (witness/note {:id n})) (range 5000))",
        };
        client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
        until(|| scene.witnessed().len() > scattered(round));
        client.process.kill().expect("killed");
        client.process.wait().expect("a child");
        // Calls that were already sent still reach the witness.
        let witness = scene.witnessed()[0];
        until(|| !is_alive(witness));

        let intents = identities(&scene.audit(), "intent");
        let missing: Vec<i64> = scene.calls().into_iter().filter(|call| !intents.contains(call)).collect();
        assert!(missing.is_empty(), "round {round}: called and not written down: {missing:?}");
        let ended = identities(&scene.audit(), "call");
        let unknown = intents.difference(&ended).count();
        let (whole, said) = audit(&scene.audit(), &["verify"]);
        assert!(whole && said.contains("without an end"), "round {round}: {said}");
        assert_eq!(said.matches("witness/note by local, outcome unknown").count(), unknown, "round {round}: {said}");
        let (_, shown) = audit(&scene.audit(), &["show", "--last", "9999", "--outcome", "unknown", "--json"]);
        assert_eq!(shown.lines().count(), unknown, "round {round}: {shown}");
        open += unknown;
    }
    assert!(open > 0, "no call was under way in any round");
}

#[test]
fn a_call_in_flight_is_open_and_one_that_ended_is_not() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let mut client = scene.client(&[]);
    let held = scene.file("go").display().to_string();
    let program = format!("(witness/note {{:id 1}}) (witness/hold {{:id 2 :until {held:?}}})");
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
    until(|| scene.witnessed().len() == 3);
    let (whole, said) = audit(&scene.audit(), &["verify"]);
    assert!(whole && said.contains("witness/hold by local, outcome unknown"), "{said}");
    assert!(said.contains("1 call has no outcome"), "{said}");
    let (_, shown) = audit(&scene.audit(), &["show"]);
    assert!(shown.contains("outcome unknown"), "{shown}");
    let (_, stats) = audit(&scene.audit(), &["stats"]);
    let hold = stats.lines().find(|line| line.contains("witness/hold")).expect("a line");
    assert_eq!(hold.split_whitespace().take(6).collect::<Vec<_>>(), ["witness/hold", "1", "0", "0", "0", "1"]);
    std::fs::write(held, "").expect("written");
    assert_eq!(client.receive()["result"]["isError"], false);
    let (whole, said) = audit(&scene.audit(), &["verify"]);
    assert!(whole && !said.contains("unknown") && !said.contains("no outcome"), "{said}");
}

/// Makes calls until one is denied, and returns its message.
fn call_until_refused(scene: &Scene, client: &mut Client) -> String {
    let mut id = 0;
    loop {
        id += 1;
        let before = scene.calls().len();
        let answer = client.eval(&format!("(witness/note {{:id {id}}})"));
        if answer.is_error {
            assert_eq!(answer.record["error"], "ToolDenied", "{}", answer.text);
            assert_eq!(scene.calls().len(), before, "a call that is refused is not made");
            return answer.text;
        }
        assert!(id < 200, "the log takes everything");
    }
}

/// Checks that calls fail closed on a full disk, and that the log resumes once there is space.
fn fails_closed(scene: &Scene, client: &mut Client, folder: &Path, make_room: impl FnOnce()) {
    client.eval("(witness/note {:id 0})");
    let message = call_until_refused(scene, client);
    assert!(message.contains("the audit log cannot be written: "), "{message}");
    let made: BTreeSet<i64> = scene.calls().into_iter().collect();
    assert!(made.is_subset(&identities(folder, "intent")), "{made:?}");
    let both = client.fails("(pcalls (fn [] (witness/note {:id 1000})) (fn [] (witness/note {:id 1001})))");
    assert_eq!(both.0, "ToolDenied");
    let program = client.request("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(+ 1 2)"}}));
    let texts: Vec<&str> =
        program["result"]["content"].as_array().expect("texts").iter().filter_map(|c| c["text"].as_str()).collect();
    assert!(texts[0].starts_with('3') && texts[1].contains("is not written yet"), "{texts:?}");
    make_room();
    let answer = client.eval("(witness/note {:id 2000})");
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(scene.calls().into_iter().filter(|id| *id >= 1000).collect::<Vec<_>>(), [2000]);
    let (ids, ended) = (identities(folder, "intent"), identities(folder, "call"));
    assert!(ids.is_subset(&ended) && ended.contains(&1000), "{ids:?} {ended:?}");
}

/// `ulimit -f` limits the files of the server to 6 KiB: 12 blocks of 512 bytes.
#[test]
fn no_call_is_made_that_the_disk_does_not_take() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let audit_folder = scene.audit().display().to_string();
    let limited = r#"ulimit -S -f 12; exec "$0" "$@""#;
    let mut client = Client::start_within(&["sh", "-c", limited], &scene.configuration(), &["--audit", &audit_folder]);
    let process = client.process.id().to_string();
    fails_closed(&scene, &mut client, &scene.audit(), || {
        let raised = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited"]).status();
        assert!(raised.expect("prlimit runs").success());
    });
    client.close();
    client.wait();
    let (whole, said) = audit(&scene.audit(), &["verify"]);
    assert!(whole && !said.contains("unknown") && said.trim_end().ends_with("ended"), "{said}");
}

/// The log is on a file system of 64 KiB in a mount namespace of the server.
#[test]
#[cfg(target_os = "linux")]
fn no_call_is_made_that_a_full_file_system_does_not_take() {
    let may_mount = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if python().is_none() || !may_mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mounts in a namespace of one's own are not allowed here");
        return;
    }
    let scene = Scene::new();
    let folder = scene.audit().display().to_string();
    let mount = format!(
        r#"mount -t tmpfs -o size=64k tmpfs '{folder}' && head -c 40000 /dev/zero > '{folder}/filler' && exec "$0" "$@""#
    );
    let mut client = Client::start_within(
        &["unshare", "-rm", "sh", "-c", &mount],
        &scene.configuration(),
        &["--audit", &folder, "--audit-sync"],
    );
    let seen = PathBuf::from(format!("/proc/{}/root{folder}", client.process.id()));
    fails_closed(&scene, &mut client, &seen, || std::fs::remove_file(seen.join("filler")).expect("removed"));
    let (whole, said) = audit(&seen, &["verify"]);
    assert!(whole && !said.contains("unknown"), "{said}");
}

/// If the intent is on record and the outcome cannot be written, the reply reports that and no further call is made.
#[test]
fn an_outcome_that_cannot_be_written_is_loud() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let mut client = scene.client(&["--audit-part", "1"]);
    let held = scene.file("go").display().to_string();
    let call = format!("(witness/hold {{:id 1 :until {held:?}}})");
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": call}}));
    until(|| scene.witnessed().len() == 2);
    // Each record is in a separate part of the log, and the next part cannot be created.
    let last = parts(&scene.audit()).pop().expect("a part").display().to_string();
    let number: u32 = last.rsplit('.').nth(1).and_then(|number| number.parse().ok()).expect("a number");
    let obstacle = last.replace(&format!(".{number:04}."), &format!(".{:04}.", number + 1));
    std::fs::write(&obstacle, "").expect("written");
    std::fs::write(held, "").expect("written");
    let answer = client.receive();
    let text = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.starts_with("\"held\"") && text.contains("note: witness/hold: the outcome is not recorded"), "{text}");
    assert_eq!(client.fails("(witness/note {:id 2})").0, "ToolDenied");
    assert_eq!(scene.calls(), [1]);
    std::fs::remove_file(obstacle).expect("removed");
    assert!(!client.eval("(witness/note {:id 3})").is_error);
    client.close();
    client.wait();
    let (whole, said) = audit(&scene.audit(), &["verify"]);
    assert!(whole && !said.contains("unknown"), "{said}");
    assert_eq!(records_of(&scene.audit(), "evaluation").len(), 3);
}

/// The client disconnects, or the server receives SIGTERM, during a call.
#[test]
fn an_evaluation_whose_client_goes_away_leaves_its_record() {
    if python().is_none() {
        return;
    }
    for way in ["closes", "terminates"] {
        let scene = Scene::new();
        let mut client = scene.client(&["--grace", "200ms"]);
        let program = r#"(witness/hold {:id 1 :until "/nowhere/at/all"})"#;
        client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
        until(|| scene.witnessed().len() == 2);
        match way {
            "closes" => client.close(),
            _ => terminate(client.process.id()),
        }
        client.wait();
        let outcomes =
            |kind: &str| records_of(&scene.audit(), kind).iter().map(|r| r["outcome"].clone()).collect::<Vec<_>>();
        assert_eq!(
            (outcomes("call"), outcomes("evaluation")),
            (vec![json!("stopped")], vec![json!("Cancelled")]),
            "{way}"
        );
        let (whole, said) = audit(&scene.audit(), &["verify"]);
        assert!(whole && !said.contains("unknown") && said.trim_end().ends_with(", ended"), "{way}: {said}");
    }
}

fn terminate(process: u32) {
    let told = Command::new("kill").args(["-TERM", &process.to_string()]).status();
    assert!(told.expect("kill runs").success());
}

/// Over HTTP a client drops its connection, and the server keeps running.
#[test]
fn an_evaluation_whose_connection_is_dropped_leaves_its_record() {
    if python().is_none() {
        return;
    }
    let scene = Scene::new();
    let file = scene.file("servers.json");
    std::fs::write(&file, scene.configuration().to_string()).expect("written");
    let arguments = ["--config", &file.display().to_string(), "--audit", &scene.audit().display().to_string()];
    let server =
        crate::http_client::Server::start(&arguments, &[("LISPBOX_CACHE", &scene.file("cache").display().to_string())]);
    let program = r#"(witness/hold {:id 1 :until "/nowhere/at/all"})"#;
    let gone = server.begin("", "lisp_eval", json!({"program": program}));
    until(|| scene.witnessed().len() == 2);
    drop(gone);
    until(|| !records_of(&scene.audit(), "evaluation").is_empty());
    let kinds: Vec<Value> = records(&scene.audit()).iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds, ["begin", "program", "intent", "call", "evaluation"]);
}

const TOKEN: (&str, &str) = ("LISPBOX_TOKEN", "the-token-of-the-test");
const BEARER: &str = "Authorization: Bearer the-token-of-the-test\r\n";
const UNWRITABLE: &str = "the audit log cannot be written: file too large";
const WARNING: &str = "[warning: the audit log cannot be written: file too large; the record of this call is not written yet, and no tool is called until it is]";

/// Starts a server over HTTP with one token, whose files are limited to 6 KiB.
fn limited(scene: &Scene, arguments: &[&str]) -> crate::http_client::Server {
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; ulimit -S -f 12; exec "$0" "$@""#, env!("CARGO_BIN_EXE_lispbox"), "serve"]);
    command.env("LISPBOX_STORE", "memory");
    command.args(["--http", "127.0.0.1:0", "--audit"]).arg(scene.audit()).args(arguments).envs([TOKEN]);
    crate::http_client::Server::of(command)
}

/// Evaluates until a result is not just the value. Returns that result and the number of results before it.
fn until_full(mut eval: impl FnMut() -> Value) -> (Value, usize) {
    for count in 0..200 {
        let result = eval();
        let contents = result["content"].as_array().expect("texts");
        if contents.len() > 1 || contents[0]["text"] != "3" {
            return (result, count);
        }
    }
    panic!("the log takes everything");
}

#[test]
fn nothing_is_done_for_a_token_that_cannot_be_written_down() {
    let scene = Scene::new();
    let mut server = limited(&scene, &[]);
    let eval = || server.call(BEARER, "lisp_eval", json!({"program": "(+ 1 2)"})).message()["result"].clone();
    let (mut result, mut acknowledged) = until_full(eval);
    if result["isError"] != true {
        // The record of the program was written, and there was no space for its outcome.
        assert_eq!(result["content"], json!([{"type": "text", "text": "3"}, {"type": "text", "text": WARNING}]));
        acknowledged += 1;
        result = eval();
    }
    let refused = format!("AuditUnavailable: {UNWRITABLE}; nothing was evaluated (`serve --audit-failure`)");
    for _ in 0..3 {
        assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!(refused)));
        result = eval();
    }
    assert_eq!(server.call(BEARER, "lisp_env", json!({})).result(), (refused, true));
    server.process.kill().expect("killed");
    server.process.wait().expect("a child");
    let announced = records_of(&scene.audit(), "program").len();
    let ended = records_of(&scene.audit(), "evaluation").len();
    assert!(announced >= acknowledged, "{acknowledged} were acknowledged and {announced} announced");
    let (whole, said) = audit(&scene.audit(), &["verify"]);
    assert!(whole, "{said}");
    assert_eq!(said.matches("outcome unknown").count(), announced - ended, "{said}");
}

#[test]
fn a_log_that_can_be_written_again_lets_programs_of_tokens_run() {
    let scene = Scene::new();
    let server = limited(&scene, &[]);
    let eval = || server.call(BEARER, "lisp_eval", json!({"program": "(+ 1 2)"})).message()["result"].clone();
    until_full(eval);
    assert_eq!(eval()["isError"], true);
    let process = server.process.id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited"]).status();
    assert!(raised.expect("prlimit runs").success());
    assert_eq!(eval()["content"], json!([{"type": "text", "text": "3"}]));
    assert!(!server.call(BEARER, "lisp_env", json!({})).result().1);
}

#[test]
fn what_happens_on_a_full_disk_can_be_set() {
    let scene = Scene::new();
    let server = limited(&scene, &["--audit-failure", "warn"]);
    let eval = || server.call(BEARER, "lisp_eval", json!({"program": "(+ 1 2)"})).message()["result"].clone();
    until_full(eval);
    assert_eq!(eval()["content"], json!([{"type": "text", "text": "3"}, {"type": "text", "text": WARNING}]));

    let (scene, limited) = (Scene::new(), r#"trap "" XFSZ; ulimit -S -f 12; exec "$0" "$@""#);
    let audited = scene.audit().display().to_string();
    let arguments = ["--audit", &audited, "--audit-failure", "refuse"];
    let mut client = Client::start_within(&["sh", "-c", limited], &json!({"mcpServers": {}}), &arguments);
    let mut eval = || {
        client.request("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(+ 1 2)"}}))["result"]
            .clone()
    };
    until_full(&mut eval);
    assert_eq!(eval()["structuredContent"]["error"], "AuditUnavailable");
}

/// A program is recorded before it runs, which keeps it on record if the process is killed.
#[test]
fn a_program_that_was_running_at_a_kill_is_open() {
    let scene = Scene::new();
    let audited = scene.audit().display().to_string();
    let mut client = Client::start(&json!({"mcpServers": {}}), &["--audit", &audited]);
    client.eval("(+ 1 2)");
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(loop [] (recur))"}}));
    until(|| records_of(&scene.audit(), "program").len() == 2);
    client.process.kill().expect("killed");
    client.process.wait().expect("a child");
    let (whole, said) = audit(&scene.audit(), &["verify"]);
    assert!(whole && said.contains(" by local, outcome unknown"), "{said}");
    assert!(said.ends_with("1 program has no outcome: each may have run to its end, or is running\n"), "{said}");
    let (_, shown) = audit(&scene.audit(), &["show", "--evaluations", "--outcome", "unknown", "--json"]);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let (_, shown) = audit(&scene.audit(), &["show", "--evaluations"]);
    assert_eq!(shown.matches("program ").count(), 2, "{shown}");
    let (_, stats) = audit(&scene.audit(), &["stats"]);
    assert!(stats.lines().any(|line| line.split_whitespace().collect::<Vec<_>>() == ["unknown", "1"]), "{stats}");
}
