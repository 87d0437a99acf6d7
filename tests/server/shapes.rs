//! Result shapes that were learned: they are kept across restarts, for one principal, one version of a server and one
//! schema of a tool, without values and without keys that are data.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::http_client::{Server, evaluation, tokens_file};
use crate::mcp_client::python;
use serde_json::{Value, json};

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";

/// A folder with a configuration, a cache, and the file that describes the downstream server `crm`.
struct Scene {
    folder: tempfile::TempDir,
    tokens: PathBuf,
}

impl Scene {
    /// `None` if Python is missing.
    fn new(crm: &Value, policy: &Value) -> Option<Scene> {
        python()?;
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
        let scene = Scene { folder, tokens };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/schemas.py");
        let server = json!({"command": "python3", "args": [script, scene.path("crm.json")]});
        scene.write("servers.json", &json!({"mcpServers": {"crm": server}, "policy": policy}));
        scene.write("crm.json", crm);
        Some(scene)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &Value) {
        std::fs::write(self.path(name), content.to_string()).expect("written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(arguments).arg("--config").arg(self.path("servers.json"));
        command.env("LISPBOX_CACHE", self.path("cache"));
        command.env("LISPBOX_STORE", "memory").env("LISPBOX_NO_PREFETCH", "true");
        command
    }

    /// Runs a program in a process of its own, as the local user.
    fn eval(&self, program: &str) -> String {
        printed(self.command(&["eval", program]).output())
    }

    /// Runs programs in a server on standard input and output, and returns its log.
    fn log_of(&self, programs: &[&str]) -> String {
        let mut command = self.command(&["serve"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("it runs");
        let (mut input, output) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        let mut replies = BufReader::new(output).lines();
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(input, "{hello}\n{ready}").expect("it reads");
        replies.next().expect("it answers").expect("text");
        for program in programs {
            writeln!(input, "{}", evaluation(1, program)).expect("it reads");
            replies.next().expect("it answers").expect("text");
        }
        drop(input);
        printed(process.wait_with_output())
    }

    /// Starts a server for two principals.
    fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--http", "127.0.0.1:0"]);
        command.arg("--tokens").arg(&self.tokens).env_remove("LISPBOX_TOKEN");
        Server::of(command)
    }

    /// The files of learned shapes.
    fn shapes(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("cache/shapes"));
        entries.map_or_else(|_| Vec::new(), |entries| entries.flatten().map(|entry| entry.path()).collect())
    }
}

fn printed(output: std::io::Result<Output>) -> String {
    let output = output.expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    text(output.stdout) + &text(output.stderr)
}

/// Ends a server as an operator does, so that it writes what it has learned.
fn end(mut server: Server) {
    let asked = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status();
    assert!(asked.expect("kill runs").success());
    server.process.wait().expect("a child");
}

fn tool(name: &str, arguments: Value, annotations: Value) -> Value {
    let schema = json!({"type": "object", "properties": arguments});
    json!({"name": name, "description": format!("Gives {name}."), "inputSchema": schema, "annotations": annotations})
}

/// A server in this version, whose tool `tickets` takes these arguments.
fn crm(version: &str, arguments: Value) -> Value {
    let tickets = json!({"tickets": [{"key": "T-1", "status": "open"}], "page": 1, "totalPages": 3}).to_string();
    json!({
        "version": version,
        "tools": [tool("tickets", arguments, json!({"readOnlyHint": true}))],
        "replies": {"tickets": tickets},
    })
}

const SEEN: &str = "-> seen {:tickets [{:key :status}] :page :totalPages}";

#[test]
fn a_shape_outlives_the_process_but_neither_another_version_nor_another_schema() {
    let Some(scene) = Scene::new(&crm("1", json!({})), &json!({})) else { return };
    assert!(!scene.eval("(dir)").contains("seen"));
    scene.eval("(crm/tickets)");
    assert!(scene.eval("(dir)").contains(SEEN), "{}", scene.eval("(dir)"));
    assert!(scene.eval("(dir 'crm)").contains(SEEN));
    // A new version is noticed when the server is started.
    scene.write("crm.json", &crm("2", json!({})));
    assert!(!scene.eval("(dir 'crm)").contains("seen"));
    scene.eval("(crm/tickets)");
    assert!(scene.eval("(dir 'crm)").contains(SEEN));
    scene.write("crm.json", &crm("2", json!({"page": {"type": "integer"}})));
    assert!(!scene.eval("(dir 'crm)").contains("seen"));
    assert_eq!(scene.shapes().len(), 1);
}

#[test]
fn a_principal_finds_its_own_shapes_after_a_restart_and_no_others() {
    let Some(scene) = Scene::new(&crm("1", json!({})), &json!({})) else { return };
    let server = scene.serve();
    assert!(!server.eval(ANN, "(count (crm/tickets))", None).1);
    end(server);
    let server = scene.serve();
    let (ann, _) = server.eval(ANN, "(dir)", None);
    assert!(ann.contains(SEEN), "{ann}");
    let (bob, _) = server.eval(BOB, "(dir) (dir 'crm) (doc crm/tickets) (apropos \"tickets\")", None);
    assert!(bob.contains("(crm/tickets)") && !bob.contains("seen"), "{bob}");
    assert!(!scene.eval("(dir)").contains("seen"), "the local user is another principal");
    end(server);
    let files = scene.shapes();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(!files[0].to_string_lossy().contains("ann"), "{files:?}");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(&scene.path("cache/shapes"))), (0o600, 0o700));
    // A file that others could have changed is made private before it is read.
    std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o666)).expect("it is ours");
    let server = scene.serve();
    assert!(server.eval(ANN, "(dir)", None).0.contains(SEEN));
    assert_eq!(mode(&files[0]), 0o600);
    end(server);
}

#[test]
fn keys_that_are_data_are_neither_shown_nor_stored() {
    let id = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    for data in [
        json!({"ann@example.com": {"total": 5}, "bob@example.com": {"total": 6}}),
        json!({(id): {"total": 5}}),
        json!({"2024-05-01": 5, "2024-05-02": 6}),
        json!({"1001": {"total": 5}, "1002": {"total": 6}}),
        json!({"page": 1, "users": {"alice": {"total": 5}, "bob": {"total": 6}}}),
    ] {
        let mut crm = crm("1", json!({}));
        crm["replies"]["tickets"] = json!(data.to_string());
        let Some(scene) = Scene::new(&crm, &json!({})) else { return };
        scene.eval("(crm/tickets)");
        let shown = scene.eval("(dir) (doc crm/tickets)");
        assert!(shown.contains("seen"), "{shown}");
        let stored: String = scene.shapes().iter().map(|file| std::fs::read_to_string(file).expect("text")).collect();
        for key in ["ann@", "bob", id, "2024", "1001", "alice"] {
            assert!(!shown.contains(key) && !stored.contains(key), "{key}: {shown}{stored}");
        }
    }
}

#[test]
fn what_cannot_be_stored_is_said_once_and_nothing_is_stored_if_that_is_off() {
    let Some(scene) = Scene::new(&crm("1", json!({})), &json!({})) else { return };
    // A file where the folder should be.
    std::fs::write(scene.path("cache"), "").expect("written");
    let said = scene.log_of(&["(count (crm/tickets))", "(count (crm/tickets))"]);
    let warning = "tool lists and result shapes cannot be stored";
    assert_eq!(said.matches(warning).count(), 1, "{said}");
    std::fs::remove_file(scene.path("cache")).expect("removed");
    let off = |program: &str| {
        printed(
            scene
                .command(&["eval", program])
                .env("LISPBOX_CACHE", "off")
                .env("LISPBOX_PINS", scene.path("pins"))
                .current_dir(scene.folder.path())
                .output(),
        )
    };
    off("(crm/tickets)");
    assert!(!off("(dir)").contains("seen"));
    assert!(!scene.path("cache").exists() && !scene.path("off").exists());
}

#[test]
fn a_check_samples_what_only_reads_if_it_is_asked_to_and_the_policy_allows_it() {
    let reads = json!({"readOnlyHint": true});
    let mut described = crm("1", json!({"page": {"type": "integer"}}));
    let tools = described["tools"].as_array_mut().expect("a list");
    tools.push(tool("secrets", json!({}), reads.clone()));
    tools.push(tool("remove", json!({}), json!({"destructiveHint": true})));
    tools.push(tool("plain", json!({}), json!({})));
    let mut needy = tool("get", json!({"id": {"type": "string"}}), reads);
    needy["inputSchema"]["required"] = json!(["id"]);
    tools.push(needy);
    let Some(scene) = Scene::new(&described, &json!({"ask": ["crm/secrets"]})) else { return };
    let check = |arguments: &[&str]| {
        let all: Vec<&str> = ["config", "check"].into_iter().chain(arguments.iter().copied()).collect();
        printed(scene.command(&all).output())
    };
    assert!(!check(&[]).contains("sample"));
    assert!(!scene.eval("(dir)").contains("seen"));
    let said = check(&["--sample"]);
    let shape = "{:tickets [{:key string :status string}] :page integer :totalPages integer}";
    assert!(said.contains(&format!("sample  crm/tickets -> seen {shape}\n")), "{said}");
    assert!(said.contains("sample  crm/secrets: ") && !said.contains("crm/secrets ->"), "{said}");
    let others = "sample  crm: not called: 3 tools with required arguments, or not declared read-only\n";
    assert!(said.contains(others), "{said}");
    assert!(!said.contains("T-1") && !said.contains("open"), "{said}");
    assert!(scene.eval("(dir)").contains(SEEN), "{}", scene.eval("(dir)"));
}

/// The requests of a client that connects: method, parameters and header lines, by the two revisions that differ.
fn hellos() -> [(&'static str, Value, &'static str); 2] {
    let client = json!({"name": "test", "version": "1"});
    let old = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";
    [("initialize", old, ""), ("server/discover", json!({"_meta": crate::meta()}), headers)]
}

/// The instructions for a principal; the same by both requests.
fn instructions(server: &Server, headers: &str) -> String {
    let told = hellos().map(|(method, params, more)| {
        let headers = format!("{more}{headers}");
        let response = server.post(&headers, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        response.message()["result"]["instructions"].as_str().unwrap_or_else(|| panic!("{}", response.body)).to_owned()
    });
    assert_eq!(told[0], told[1]);
    assert!(told[0].len() <= 2_000, "{} bytes", told[0].len());
    told[0].clone()
}

#[test]
fn a_client_that_connects_is_told_the_tools_that_are_known_and_no_server_is_started_for_it() {
    let mut described = crm("1", json!({"page": {"type": "integer"}}));
    described["tools"].as_array_mut().expect("a list").push(tool("secrets", json!({}), json!({})));
    let Some(scene) = Scene::new(&described, &json!({"deny": ["crm/secrets"]})) else { return };
    let server = scene.serve();
    let told = instructions(&server, ANN);
    assert!(told.starts_with("lispbox runs ") && told.ends_with(":\ncrm"), "{told}");
    assert!(!server.eval(ANN, "(count (crm/tickets))", None).1);
    end(server);
    // The next process knows the tools, and Ann what her call returned. The server itself is gone.
    std::fs::remove_file(scene.path("crm.json")).expect("it is there");
    let server = scene.serve();
    let line = "\ncrm\n  (crm/tickets :page? integer)";
    let ann = instructions(&server, ANN);
    assert!(ann.contains("\nTools, by server ") && ann.contains(&format!("{line} {SEEN}")), "{ann}");
    let bob = instructions(&server, BOB);
    assert!(bob.contains(&format!("{line}  Gives tickets")) && !bob.contains("seen"), "{bob}");
    assert!(!ann.contains("secrets"), "{ann}");
    end(server);
}

#[test]
fn of_many_tools_the_instructions_have_as_many_as_there_is_room_for() {
    let page = json!({"page": {"type": "integer", "description": "The number of the page, at least 1."}});
    let mut described = crm("1", page.clone());
    let tools = described["tools"].as_array_mut().expect("a list");
    tools.extend((0..300).map(|n| tool(&format!("change_{n}"), page.clone(), json!({}))));
    let Some(scene) = Scene::new(&described, &json!({})) else { return };
    scene.eval("(dir 'crm)");
    let server = scene.serve();
    let told = instructions(&server, ANN);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[2], "crm");
    // What only reads comes first.
    assert!(lines[3].starts_with("  (crm/tickets "), "{told}");
    assert!(lines[lines.len() - 2].ends_with(" more: (dir 'crm)") && told.len() > 1_700, "{told}");
    assert_eq!(lines.last(), Some(&"Many writes: (all-settled f items) returns the outcome of each."));
    end(server);
}
