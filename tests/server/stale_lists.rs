//! Tools that a server changes without saying so: its list is asked for again when it is old or doubted.

use std::path::PathBuf;

use crate::mcp_client::{Client, python, script};
use serde_json::{Value, json};

/// A server that lists the tools in a file.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// `None` if Python is missing.
    fn new(list: &Value) -> Option<Scene> {
        python()?;
        let scene = Scene { folder: tempfile::tempdir().expect("a folder") };
        scene.set(list);
        Some(scene)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("list.json")
    }

    /// Sets the result of `tools/list` from now on.
    fn set(&self, list: &Value) {
        let whole = self.folder.path().join("whole.json");
        std::fs::write(&whole, list.to_string()).expect("written");
        std::fs::rename(whole, self.file()).expect("replaced");
    }

    fn client(&self, arguments: &[&str]) -> Client {
        self.client_with(arguments, "lenient")
    }

    fn client_with(&self, arguments: &[&str], pinning: &str) -> Client {
        let server = json!({"command": "python3", "args": [script("odd.py"), "--list", self.file()]});
        Client::start(&json!({"mcpServers": {"s": server}, "pinning": pinning}), arguments)
    }
}

/// A tool that only reads, with these arguments and no others.
fn tool(name: &str, arguments: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({
        "name": name,
        "inputSchema": {"type": "object", "properties": properties, "additionalProperties": false},
        "annotations": {"readOnlyHint": true},
    })
}

/// A list with these tools, and with one that counts.
fn list(mut tools: Vec<Value>) -> Value {
    tools.push(tool("count", &[]));
    json!({ "tools": tools })
}

fn lists(client: &mut Client) -> String {
    client.eval("(:lists (s/count))").text.lines().next().unwrap_or_default().to_owned()
}

/// Evaluation in the process of the server and, on Linux, in worker processes.
const WAYS: &[&[&str]] = if cfg!(target_os = "linux") { &[&[], &["--isolate"]] } else { &[&[]] };

#[test]
fn a_tool_that_is_unknown_is_asked_for_once_a_minute() {
    for way in WAYS {
        let Some(scene) = Scene::new(&list(vec![tool("t", &["x"])])) else { return };
        let mut client = scene.client(way);
        assert!(!client.eval("(s/t {:x \"1\"})").is_error);
        scene.set(&list(vec![tool("t", &["x"]), tool("late", &[])]));
        assert!(client.eval("(:tool (s/late))").text.starts_with("\"late\""));
        assert_eq!(lists(&mut client), "2");
        let answer = client.eval("(s/lat)");
        assert!(answer.text.starts_with("UnknownTool: server `s` has no tool `lat`"), "{answer:?}");
        assert!(answer.text.contains("Did you mean s/late?"), "{answer:?}");
        assert_eq!(lists(&mut client), "2", "a minute has not passed");
    }
}

#[test]
fn an_argument_that_does_not_exist_is_asked_for() {
    for way in WAYS {
        // An argument that no person has accepted has no position.
        for (program, pinning) in [
            (r#"(s/t {:x "1" :y "2"})"#, "lenient"),
            (r#"(s/t :x "1" :y "2")"#, "lenient"),
            (r#"(s/t "1" "2")"#, "off"),
        ] {
            let Some(scene) = Scene::new(&list(vec![tool("t", &["x"])])) else { return };
            let mut client = scene.client_with(way, pinning);
            // The function keeps the tool as it was.
            assert!(!client.eval("(defn call [& given] (:given (apply s/t given))) (call \"1\")").is_error);
            scene.set(&list(vec![tool("t", &["x", "y"])]));
            let answer = client.eval(&program.replace("s/t", "call"));
            assert!(answer.text.starts_with(r#"{:x "1", :y "2"}"#), "{program}: {answer:?}");
            assert_eq!(lists(&mut client), "2", "{program}");
        }
    }
}

#[test]
fn a_tool_that_has_changed_is_held_when_it_is_asked_for_again() {
    let unsaid = |arguments: &[&str]| {
        let mut tool = tool("t", arguments);
        tool["annotations"] = json!({"destructiveHint": false});
        list(vec![tool])
    };
    let Some(scene) = Scene::new(&unsaid(&["x"])) else { return };
    let mut client = scene.client(&[]);
    assert!(!client.eval("(s/t {:x \"1\"})").is_error);
    scene.set(&unsaid(&["x", "y"]));
    let (code, message) = client.fails(r#"(s/t {:x "1" :y "2"})"#);
    assert_eq!(code, "ToolChanged", "{message}");
}

#[test]
fn a_call_that_the_server_refuses_makes_its_list_doubtful() {
    let Some(scene) = Scene::new(&list(vec![tool("t", &[])])) else { return };
    let mut client = scene.client(&[]);
    assert!(!client.eval("(s/t)").is_error);
    scene.set(&list(vec![tool("renamed", &[])]));
    assert_eq!(client.fails("(s/t)").1, "`s/t` failed: Unknown tool: t");
    let listed = client.eval("(with-out-str (dir))").text;
    assert!(listed.contains("(s/renamed)") && !listed.contains("(s/t)"), "{listed}");
}

#[test]
fn a_list_is_old_after_the_time_that_its_server_gives() {
    let fresh_for = |milliseconds: u64, tools| {
        let mut list = list(tools);
        list["ttlMs"] = json!(milliseconds);
        list
    };
    for (milliseconds, is_old) in [(0, true), (1_000_000, false)] {
        let Some(scene) = Scene::new(&fresh_for(milliseconds, vec![tool("t", &[])])) else { return };
        let mut client = scene.client(&[]);
        assert_eq!(client.eval("(:tool (s/t))").text.lines().next(), Some("\"t\""));
        scene.set(&list(vec![tool("t", &[]), tool("late", &[])]));
        let listed = client.eval("(with-out-str (dir))").text;
        // Each use of a list that is old at once renews it, but not twice within a minute.
        assert_eq!(lists(&mut client), if is_old { "2" } else { "1" }, "{milliseconds}: {listed}");
    }
}

#[test]
fn a_list_that_cannot_be_renewed_remains() {
    let Some(scene) = Scene::new(&list(vec![tool("t", &[])])) else { return };
    let mut client = scene.client(&[]);
    assert!(!client.eval("(s/t)").is_error);
    scene.set(&json!({"error": {"code": -32603, "message": "not now"}}));
    assert!(client.eval("(s/late)").text.starts_with("UnknownTool"));
    assert_eq!(lists(&mut client), "2");
    scene.set(&list(vec![tool("t", &[])]));
    assert!(client.eval("(:tool (s/t))").text.starts_with("\"t\""));
}
