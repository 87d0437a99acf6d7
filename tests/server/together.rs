//! Third-party servers, all at once downstream of one lispbox, configured in the file formats of several clients.
//!
//! server-everything over its three transports, server-filesystem, server-memory, FastMCP of three release lines, and
//! the Python SDK. They are looked up below `$LISPBOX_PEERS`, as in `real_peers.rs`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::mcp_client::{Client, Listening, free_port, installed, listening, script};
use serde_json::{Map, Value, json};

/// Maximum time for all servers to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The third-party servers: those that already listen, and the commands of the others.
struct Peers {
    folder: tempfile::TempDir,
    /// Names, transports and URLs of server-everything and of two release lines of FastMCP.
    addresses: Vec<(&'static str, &'static str, String)>,
    /// Names and configuration entries of the servers over standard streams.
    commands: Vec<(&'static str, Value)>,
    /// The older release lines of FastMCP as commands, which start slowly.
    slow: Vec<(&'static str, Value)>,
    _listening: Vec<Listening>,
}

impl Peers {
    fn start() -> Option<Peers> {
        let server = |name: &str| installed(&format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"));
        let (everything, files, memory) = (server("everything")?, server("filesystem")?, server("memory")?);
        let [fast2, fast3, fast4] =
            ["fastmcp2", "fastmcp3", "venv"].map(|line| installed(&format!("{line}/bin/python")));
        let (fast2, fast3, fast4) = (fast2?, fast3?, fast4?);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("note.txt"), "forty-two").expect("written");

        let mut running = Vec::new();
        let mut addresses = Vec::new();
        let mut listen = |name, kind, path: &str, command: &mut Command, port: u16| {
            running.push(listening(command, port));
            addresses.push((name, kind, format!("http://127.0.0.1:{port}/{path}")));
        };
        for (name, kind, path, transport) in
            [("everything-http", "http", "mcp", "streamableHttp"), ("everything-sse", "sse", "sse", "sse")]
        {
            let port = free_port();
            let mut command = Command::new("node");
            listen(name, kind, path, command.arg(&everything).arg(transport).env("PORT", port.to_string()), port);
        }
        for (name, kind, path, python) in [("fast-2", "sse", "sse", &fast2), ("fast-3", "http", "mcp", &fast3)] {
            let port = free_port();
            let mut command = Command::new(python);
            listen(name, kind, path, command.args([&script("fast.py"), &port.to_string(), kind]), port);
        }
        let remembered = folder.path().join("memory.jsonl");
        let commands = vec![
            ("everything-stdio", json!({"command": "node", "args": [everything, "stdio"]})),
            ("files", json!({"command": "node", "args": [files, folder.path()]})),
            ("memory", json!({"command": "node", "args": [memory], "env": {"MEMORY_FILE_PATH": remembered}})),
            ("fast-4", json!({"command": fast4, "args": [script("fast.py")]})),
            ("sdk", json!({"command": fast4, "args": [script("sdk.py")]})),
        ];
        let slow = [("fast-2", fast2), ("fast-3", fast3)];
        let slow = slow.map(|(name, python)| (name, json!({"command": python, "args": [script("fast.py")]}))).to_vec();
        Some(Peers { folder, addresses, commands, slow, _listening: running })
    }

    /// Writes a configuration to a file with this name, and calls tools of each of its servers from one program.
    fn are_called(&self, file: &str, text: &str, servers: &[&str]) {
        let path = self.folder.path().join(file);
        std::fs::write(&path, text).expect("written");
        let note = self.folder.path().join("note.txt");
        let read = format!("(str/includes? (str (files/read_text_file {{:path {note:?}}})) \"forty-two\")");
        let calls: Vec<String> = servers
            .iter()
            .map(|server| match *server {
                "files" => read.clone(),
                "memory" => "(do (memory/create_entities {:entities [{:name \"Ada\" :entityType \"person\" :observations [\"born 1815\"]}]}) (str/includes? (str (memory/read_graph)) \"born 1815\"))".to_owned(),
                "sdk" => "(= \"HO!HO!\" (sdk/shout {:text \"ho\" :times 2}))".to_owned(),
                everything if everything.starts_with("everything") => format!(
                    "(and (str/includes? (str ({everything}/get-sum {{:a 2 :b 40}})) \"42\") (str/includes? (str ({everything}/echo {{:message \"hello\"}})) \"hello\"))"
                ),
                fast => format!("(and (= 42 ({fast}/add {{:a 40 :b 2}})) (= [\"Ada\" \"Grace\"] (map :name ({fast}/people))))"),
            })
            .collect();
        let program = format!("(vec (pvalues {}))", calls.join(" "));
        let begun = Instant::now();
        let mut client = Client::start(&json!({"mcpServers": {}}), &["--config", &path.to_string_lossy()]);
        let expected = format!("[{}]", vec!["true"; servers.len()].join(" "));
        // On a busy machine a server may not start within its timeout of 10 s: the program is retried, as a user would.
        let mut answer = client.eval(&program);
        while answer.record["error"] == "ServerUnavailable" && begun.elapsed() < PATIENCE {
            answer = client.eval(&program);
        }
        assert_eq!(answer.text.lines().next(), Some(expected.as_str()), "{file}: {answer:?}");
    }

    /// The entries of a client's configuration, for the servers that are started and for those that listen.
    fn entries(
        &self,
        process: impl Fn(Value) -> Value,
        address: impl Fn(&str, &str) -> Option<Value>,
    ) -> Map<String, Value> {
        let processes = self.commands.iter().map(|(name, command)| ((*name).to_owned(), process(command.clone())));
        let addresses = self.addresses.iter();
        let addresses = addresses.filter_map(|(name, kind, url)| Some(((*name).to_owned(), address(kind, url)?)));
        processes.chain(addresses).collect()
    }
}

/// Adds fields to an entry.
fn with(mut entry: Value, more: Value) -> Value {
    let fields = entry.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    entry
}

fn names(servers: &Map<String, Value>) -> Vec<&str> {
    servers.keys().map(String::as_str).collect()
}

#[test]
fn the_files_of_clients_name_them_as_they_stand() {
    let Some(peers) = Peers::start() else { return };
    let typed = |kind: &str, url: &str| Some(json!({"type": kind, "url": url}));
    // The file of Claude Desktop has commands only.
    let desktop = peers.entries(|entry| entry, |_, _| None);
    let text = json!({"globalShortcut": "Ctrl+Space", "mcpServers": desktop}).to_string();
    peers.are_called("claude_desktop_config.json", &text, &names(&desktop));

    let code = peers.entries(|entry| with(json!({"type": "stdio", "env": {}}), entry), typed);
    assert_eq!(code.len(), 9);
    peers.are_called(".mcp.json", &json!({"mcpServers": code}).to_string(), &names(&code));

    let cursor = peers.entries(|entry| entry, |_, url| Some(json!({"url": url})));
    let text = json!({"mcpServers": cursor}).to_string();
    peers.are_called("cursor.json", &format!("// mine\n{text}"), &names(&cursor));

    let vscode = peers.entries(|entry| with(entry, json!({"type": "stdio"})), typed);
    let text = json!({"inputs": [], "servers": vscode}).to_string();
    peers.are_called("mcp.json", &text, &names(&vscode));

    let kinds = |kind: &str, url: &str| Some(json!({"transport": kind, "url": url}));
    let mut ours = peers.entries(|entry| with(entry, json!({"transport": "stdio"})), kinds);
    // Starts the older release lines of FastMCP as commands too.
    for (name, entry) in &peers.slow {
        ours.insert(format!("{name}-stdio"), with(entry.clone(), json!({"start_timeout_seconds": 60})));
    }
    let list: Vec<Value> = ours.iter().map(|(name, entry)| with(entry.clone(), json!({"name": name}))).collect();
    assert_eq!(list.len(), 11);
    // JSON is valid YAML.
    let text = format!("execution:\n  timeout_seconds: 120\nservers: {}\n", json!(list));
    peers.are_called("servers.yaml", &text, &names(&ours));
    assert!(Path::new(&peers.folder.path().join("memory.jsonl")).exists());
}
