//! Work outside of the evaluator whose size a downstream server determines: it blocks neither its caller nor other
//! evaluations.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::http_client::Server;
use serde_json::{Value, json};

/// A server over HTTP with a downstream server `s` whose tools the test defines.
struct Scene {
    server: Server,
    folder: tempfile::TempDir,
}

impl Scene {
    fn start(tools: &Value, policy: &Value, arguments: &[&str]) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let (list, file) = (folder.path().join("tools.json"), folder.path().join("servers.json"));
        std::fs::write(&list, tools.to_string()).expect("written");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/schemas.py");
        let configuration =
            json!({"mcpServers": {"s": {"command": "python3", "args": [script, list]}}, "policy": policy});
        std::fs::write(&file, configuration.to_string()).expect("written");
        let file = file.to_string_lossy().into_owned();
        let arguments: Vec<&str> = ["--config", &file].into_iter().chain(arguments.iter().copied()).collect();
        let cache = folder.path().join("cache").to_string_lossy().into_owned();
        let server = Server::start(&arguments, &[("LISPBOX_CACHE", &cache)]);
        Scene { server, folder }
    }

    fn eval(&self, program: &str) -> (String, bool) {
        self.server.eval("", program, None)
    }

    /// Checks that the server answers its health check, and ends within 10 s of SIGTERM.
    fn lives_and_ends(mut self) {
        let begun = Instant::now();
        assert_eq!(self.server.request("GET", "/healthz", "", b"").status, 200);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let asked = Command::new("kill").args(["-TERM", &self.server.process.id().to_string()]).status();
        assert!(asked.expect("kill runs").success());
        let begun = Instant::now();
        while self.server.process.try_wait().expect("a child").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it does not end");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

/// A schema with forty definitions, each of which except the first refers to the previous one through `link`.
fn bomb(link: impl Fn(Value) -> Value) -> Value {
    let mut schema = json!({"type": "object", "$ref": "#/$defs/a39", "$defs": {"a0": {"type": "object"}}});
    for at in 1..40 {
        schema["$defs"][format!("a{at}")] = link(json!({"$ref": format!("#/$defs/a{}", at - 1)}));
    }
    schema
}

fn tools(schemas: &[(&str, Value)]) -> Value {
    let tool = |(name, schema): &(&str, Value)| json!({"name": name, "description": "Works.", "inputSchema": schema});
    schemas.iter().map(tool).collect()
}

fn bombs() -> Value {
    tools(&[
        ("all", bomb(|one| json!({"allOf": [one, one]}))),
        ("any", bomb(|one| json!({"anyOf": [{"allOf": [one, {"required": ["no"]}]}, one]}))),
        ("one", bomb(|one| json!({"oneOf": [one, one]}))),
        ("left", bomb(|one| json!({"unevaluatedProperties": false, "anyOf": [one, one]}))),
        ("loop", json!({"type": "object", "allOf": [{"$ref": "#"}]})),
        ("usual", json!({"type": "object", "properties": {"reply": {"type": "string"}}})),
    ])
}

#[test]
fn schema_bombs_neither_hang_the_call_nor_the_server() {
    let scene = Scene::start(&bombs(), &json!({"defaults": {"unchecked": "allow"}}), &[]);
    for tool in ["all", "any", "one", "left", "loop"] {
        let begun = Instant::now();
        let (text, failed) = scene.eval(&format!("(s/{tool} {{:a 1 :b {{:c 2}}}})"));
        assert!(!failed && text.starts_with(&format!("\"{tool}\"")), "{text}");
        assert!(text.contains(&format!("the arguments were not checked: the schema of `s/{tool}`")), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    // The documentation of the tools, as a model reads it.
    let (text, failed) = scene.eval("(dir 's) (doc s/all) (doc s/loop) (apropos \"works\")");
    assert!(!failed, "{text}");
    // Many concurrent calls, whose callers disconnect.
    let calls: Vec<_> = (0..8)
        .map(|_| scene.server.begin("", "lisp_eval", json!({"program": "(pmap (fn [n] (s/all {:n n})) (range 50))"})))
        .collect();
    assert!(scene.eval("(s/usual {:reply \"fine\"})").0.contains("fine"));
    drop(calls);
    scene.lives_and_ends();
}

#[test]
fn a_person_is_asked_about_unchecked_arguments_unless_the_policy_says_otherwise() {
    let (text, failed) = Scene::start(&bombs(), &json!({}), &[]).eval("(s/all {:a 1})");
    assert!(failed && text.contains("`policy.defaults` is unchecked: ask"), "{text}");
    let denies = Scene::start(&bombs(), &json!({"defaults": {"unchecked": "deny"}}), &[]);
    let (text, failed) = denies.eval("(s/all {:a 1})");
    assert!(failed && text.contains("`policy.defaults` is unchecked: deny"), "{text}");
    assert!(!denies.eval("(s/usual {:reply \"ok\"})").1);
    let named = Scene::start(&bombs(), &json!({"allow": ["s/all"]}), &[]);
    assert!(!named.eval("(s/all {:a 1})").1);
}

#[test]
fn patterns_count_with_their_repetitions_and_those_that_look_around_are_left_out() {
    let text = |pattern: &str| {
        json!({"type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer"}, "x": {"type": "string", "pattern": pattern}, "reply": {"type": "string"}}})
    };
    let list = tools(&[
        ("huge", text("^(((a{1,100}){1,100}){1,100})$")),
        ("bare", text("a{30}{30}{30}{30}b")),
        ("slow", text("a{3}{3}{3}{3}{3}{3}{3}{3}{3}b|c")),
        ("ahead", text("^(?=.*x).*$")),
    ]);
    let scene = Scene::start(&list, &json!({}), &[]);
    for tool in ["huge", "bare"] {
        let (text, failed) = scene.eval(&format!("(s/{tool} {{:n \"not a number\"}})"));
        assert!(failed && text.contains("`policy.defaults` is unchecked: ask"), "{text}");
    }
    let begun = Instant::now();
    let (text, failed) = scene.eval("(s/slow {:n 1 :x (apply str (repeat 100000 \"a\"))})");
    assert!(failed && text.contains("`policy.defaults` is unchecked: ask"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // The rest of the schema is still checked.
    let (text, failed) = scene.eval("(s/ahead {:n \"not a number\"})");
    assert!(failed && text.contains("argument `n` of `s/ahead`: expected integer, got the string"), "{text}");
    let (text, failed) = scene.eval("(s/ahead {:n 1 :x \"no match\"})");
    assert!(!failed && text.starts_with("\"ahead\""), "{text}");
    scene.lives_and_ends();
}

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";

/// Writes a tokens file of `ann` and `bob`, and returns its path.
fn tokens(folder: &Path) -> String {
    crate::http_client::tokens_file(folder, &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}))
        .to_string_lossy()
        .into_owned()
}

/// `config check` lists unchecked arguments before any call.
#[test]
fn a_check_of_the_configuration_names_arguments_that_are_not_checked() {
    let mut list = bombs();
    let more = tools(&[
        ("remote", json!({"type": "object", "$ref": "https://example.com/schema.json"})),
        ("ahead", json!({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?=x)"}}})),
    ]);
    list.as_array_mut().expect("a list").extend(more.as_array().expect("a list").iter().cloned());
    let scene = Scene::start(&list, &json!({}), &[]);
    let mut check = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    check.args(["config", "check", "--config"]).arg(scene.folder.path().join("servers.json"));
    let output = check.env("LISPBOX_CACHE", scene.folder.path().join("cache")).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for (tool, why) in [
        ("all", "are not checked: its schema "),
        ("left", "are not checked: its schema expands to more parts than are supported"),
        ("loop", "are not checked: its schema "),
        ("remote", "are not checked: its schema cannot be understood: the reference `https://example.com/schema.json`"),
        ("ahead", "are not checked against a pattern: ^(?=x)"),
    ] {
        assert!(text.contains(&format!("warning: the arguments of s/{tool} {why}")), "{tool}: {text}");
    }
    assert!(!text.contains("s/usual are not"), "{text}");
}

#[test]
fn checks_for_one_principal_leave_room_for_those_of_another() {
    let choices: Vec<Value> = (0..2_000).map(|at| json!({"const": at})).collect();
    let heavy = json!({"type": "object", "properties": {"t": {"items": {"anyOf": choices}}}});
    let list =
        tools(&[("heavy", heavy), ("usual", json!({"type": "object", "properties": {"reply": {"type": "string"}}}))]);
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::start(&list, &json!({}), &["--tokens", &tokens(folder.path())]);
    assert!(scene.server.eval(ANN, "(s/usual {:reply \"there\"})", None).0.contains("there"));
    let program = "(pmap (fn [n] (s/heavy {:t (vec (range 10 1900))})) (range 100))";
    let calls: Vec<_> = (0..2).map(|_| scene.server.begin(ANN, "lisp_eval", json!({"program": program}))).collect();
    for _ in 0..3 {
        let begun = Instant::now();
        let (text, failed) = scene.server.eval(BOB, "(s/usual {:reply \"fine\"})", None);
        assert!(!failed && text.contains("fine"), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    drop(calls);
    scene.lives_and_ends();
}

#[test]
fn names_and_texts_of_megabytes_are_no_trouble() {
    let long = "x".repeat(1 << 20);
    let many: serde_json::Map<String, Value> =
        (0..20_000).map(|at| (format!("argument_{at}"), json!({"type": "string"}))).collect();
    let required: Vec<&String> = many.keys().collect();
    let mut list = tools(&[
        ("many", json!({"type": "object", "properties": many, "required": required})),
        ("long", json!({"type": "object", "properties": {&long: {"const": long}}, "required": [long]})),
        ("loose", json!({"type": "object", "properties": many})),
    ]);
    list[1]["description"] = json!(long);
    let scene = Scene::start(&list, &json!({"defaults": {"unchecked": "allow"}}), &[]);
    let begun = Instant::now();
    for program in [
        "(dir 's)",
        "(doc s/many)",
        "(doc s/long)",
        "(apropos \"argument\")",
        "(try (s/many {:argumnet_1 \"x\"}) (catch Exception e (ex-message e)))",
        "(try (s/long {:y 1}) (catch Exception e (ex-message e)))",
        "(s/loose (into {} (map (fn [n] [(str \"argumnet_\" n \"_\") n]) (range 2000))))",
    ] {
        let (text, _) = scene.eval(program);
        assert!(!text.contains("`total`") && text.len() < 200_000, "{program}: {} bytes", text.len());
    }
    assert!(begun.elapsed() < Duration::from_secs(180), "{:?}", begun.elapsed());
    scene.lives_and_ends();
}

/// The files in one folder of a cache.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("files are kept");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn shapes_are_their_principals_and_have_no_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = tools(&[("get", json!({"type": "object", "properties": {"reply": {"type": "string"}}}))]);
    let scene = Scene::start(&list, &json!({}), &["--tokens", &tokens(folder.path())]);
    let reply = r#"{\"items\": [{\"alice\": 1, \"bob\": 2}], \"total\": 1, \"secretPlan\": true}"#;
    let (text, failed) = scene.server.eval(ANN, &format!("(s/get {{:reply \"{reply}\"}})"), None);
    assert!(!failed, "{text}");
    let (ann, _) = scene.server.eval(ANN, "(doc s/get)", None);
    assert!(ann.contains("seen to return {:items [{_ integer}] :total integer _ boolean}"), "{ann}");
    let (bob, _) = scene.server.eval(BOB, "(doc s/get) (dir 's) (apropos \"get\")", None);
    assert!(!bob.contains("seen") && !bob.contains("secretPlan"), "{bob}");
    let cache = scene.folder.path().join("cache");
    for kind in ["tools", "shapes"] {
        let folder = cache.join(kind);
        let files = files(&folder);
        assert_eq!(files.len(), 1, "{files:?}");
        let kept = std::fs::read_to_string(&files[0]).expect("it is there");
        assert!(!kept.contains("secretPlan") && !kept.contains("alice") && !kept.contains("ann"), "{kept}");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&files[0]), mode(&folder)), (0o600, 0o700));
    }
}
