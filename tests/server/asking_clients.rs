//! Approval through third-party clients that show forms: the TypeScript and Python SDKs, over standard input and output
//! and over HTTP. In revision 2026-07-28 the reply to a call asks, in 2025-11-25 a request to the client does.
//!
//! Below `$LISPBOX_PEERS` are `node_modules` with `@modelcontextprotocol/client` as `mcp-client`,
//! `@modelcontextprotocol/sdk` and `node`, and the Python environments `venv` with `mcp` 2 and `fastmcp2` with `mcp` 1.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::http_client::Server;
use crate::mcp_client::{installed, script};
use crate::peers::folder;
use crate::rounds::{configuration, lines};
use serde_json::{Value, json};

const ROUNDS: &str = "2026-07-28";
const DURING_CALLS: &str = "2025-11-25";

/// A client: its interpreter, the revision that it speaks, and a file that is installed with it.
type Kind = (&'static str, &'static str, &'static str);

const NODE: &str = "node_modules/node/bin/node";
const TYPESCRIPT: [Kind; 2] = [
    (NODE, ROUNDS, "node_modules/mcp-client/package.json"),
    (NODE, DURING_CALLS, "node_modules/@modelcontextprotocol/sdk/package.json"),
];
const PYTHON: [Kind; 3] = [
    ("venv/bin/python", ROUNDS, "venv/bin/fastmcp"),
    ("venv/bin/python", DURING_CALLS, "venv/bin/fastmcp"),
    ("fastmcp2/bin/python", DURING_CALLS, "fastmcp2/bin/fastmcp"),
];

/// A client and the server that it talks to.
struct Peer {
    interpreter: PathBuf,
    revision: &'static str,
    target: Vec<String>,
    folder: tempfile::TempDir,
    /// Keeps the server running.
    _server: Option<Server>,
}

/// The output of a client.
struct Said {
    /// The first four lines of each question, which name the tool and its arguments.
    asked: Vec<String>,
    /// How often the client called, and how often it answered a request; `None` if that is unknown.
    sent: Option<(usize, usize)>,
    /// The first line of each reply. The whole text is in `replies`.
    results: Vec<(String, bool)>,
    replies: Vec<String>,
}

/// Tests clients over each transport, against a server with these further options.
fn with_each(clients: &[Kind], options: &dyn Fn(&Path) -> Vec<String>, test: impl Fn(&Peer)) {
    for &(interpreter, revision, package) in clients {
        let (Some(interpreter), Some(_)) = (installed(interpreter), installed(package)) else { continue };
        for over_http in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("servers.json");
            std::fs::write(&file, configuration(folder.path()).to_string()).expect("written");
            let mut arguments = vec!["--config".to_owned(), file.to_string_lossy().into_owned()];
            arguments.extend(options(folder.path()));
            if !over_http && !arguments.iter().any(|argument| argument == "--store") {
                arguments.extend(["--store".to_owned(), "memory".to_owned()]);
            }
            let borrowed: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let server = over_http.then(|| Server::start(&borrowed, &[]));
            let target = match &server {
                Some(server) => vec![server.url()],
                None => [&[env!("CARGO_BIN_EXE_lispbox").to_owned(), "serve".to_owned()][..], &arguments].concat(),
            };
            let interpreter = interpreter.clone();
            test(&Peer { interpreter, revision, target, folder, _server: server });
        }
    }
}

impl Peer {
    /// Calls `lisp_eval` with these arguments one after the other. A client without `answers` shows no forms.
    fn call(&self, calls: &Value, answers: Option<&Value>) -> Said {
        let mut command = Command::new(&self.interpreter);
        match self.interpreter.ends_with("node") {
            true => command.arg(script("asking.js")).arg(folder()),
            false => command.arg(script("asking.py")),
        };
        command.arg(self.revision).args(&self.target).env("CALLS", calls.to_string()).env_remove("ANSWERS");
        command.env("LISPBOX_CACHE", self.folder.path().join("cache"));
        if let Some(answers) = answers {
            command.env("ANSWERS", answers.to_string());
        }
        let output = command.output().expect("it runs");
        let said = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{self}: {output:?}"));
        assert_eq!(said["revision"], self.revision, "{self}");
        let sent = said["sent"].as_array().map(|sent| {
            let count = |kind: &str| sent.iter().filter(|message| **message == kind).count();
            (count("tools/call"), count("answer"))
        });
        let questions = said["asked"].as_array().expect("questions").iter();
        let asked = questions
            .map(|question| question.as_str().expect("text").lines().skip(1).take(4).collect::<Vec<_>>().join(" "))
            .collect();
        let replies: Vec<&Value> = said["results"].as_array().expect("results").iter().collect();
        let text = |reply: &Value| reply["text"].as_str().expect("text").to_owned();
        let first = |reply: &Value| text(reply).lines().next().unwrap_or_default().to_owned();
        Said {
            asked,
            sent,
            results: replies.iter().map(|reply| (first(reply), reply["isError"] == true)).collect(),
            replies: replies.iter().map(|reply| text(reply)).collect(),
        }
    }

    /// Checks the number of calls and of answered requests: a client is asked either in replies, and calls again, or by
    /// requests, and answers them.
    fn has_sent(&self, said: &Said, calls: usize, rounds: usize) {
        if let Some(sent) = said.sent {
            let expected = match self.revision {
                ROUNDS => (calls + rounds, 0),
                _ => (calls, said.asked.len()),
            };
            assert_eq!(sent, expected, "{self}");
        }
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let mut lines = lines(self.folder.path(), name);
        lines.sort();
        lines
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} with {} of {}", self.interpreter.display(), self.target[0], self.revision)
    }
}

fn accept() -> Value {
    json!({"action": "accept", "content": {"allow": true}})
}

fn question(line: &str) -> String {
    format!("A program wants to call notes/share with {{   \"line\": \"{line}\" }}")
}

const PARALLEL: &str = r#"(pmap (fn [n] (notes/add {:line (str n)})
                                  (try (notes/share {:line (str "line " n)}) (catch ToolDenied e :denied)))
                                (range 5))"#;

#[test]
fn each_answer_reaches_its_call_and_each_call_is_made_once() {
    let answers = json!([
        ["line 0", accept()],
        ["line 1", {"action": "decline"}],
        ["line 2", {"action": "cancel"}],
        ["line 3", {"action": "accept", "content": {"allow": false}}],
        ["line 4", accept()],
    ]);
    with_each(&[&TYPESCRIPT[..], &PYTHON].concat(), &|_| vec![], |client| {
        let said = client.call(&json!([{"program": PARALLEL}]), Some(&answers));
        assert_eq!(
            said.results,
            [(r#"("added line 0" :denied :denied :denied "added line 4")"#.to_owned(), false)],
            "{client}"
        );
        let mut asked = said.asked.clone();
        asked.sort();
        assert_eq!(asked, [0, 1, 2, 3, 4].map(|n| question(&format!("line {n}"))), "{client}");
        client.has_sent(&said, 1, 1);
        assert_eq!(client.lines("added"), ["0", "1", "2", "3", "4"], "{client}");
        assert_eq!(client.lines("shared"), ["line 0", "line 4"], "{client}");
    });
}

#[test]
fn calls_before_between_and_after_questions_are_made_once() {
    let program = r#"(def kept (notes/add {:line "first form"}))
        [(notes/add {:line "before"}) (notes/share {:line "a"}) (notes/add {:line "between"})
         (notes/share {:line "b"}) (notes/add {:line "after"})]"#;
    let denied = r#"(notes/add {:line "earlier"}) (notes/share {:line "c"}) (notes/add {:line "never"})"#;
    let answers = json!([["\"a\"", accept()], ["\"b\"", accept()], ["\"c\"", {"action": "cancel"}]]);
    with_each(&[&TYPESCRIPT[..], &PYTHON].concat(), &|_| vec![], |client| {
        let said = client.call(&json!([{"program": program}, {"program": denied}]), Some(&answers));
        assert_eq!(
            said.results[0],
            (r#"["added before" "added a" "added between" "added b" "added after"]"#.to_owned(), false),
            "{client}"
        );
        assert!(said.results[1].1, "{client}: {:?}", said.results);
        assert!(said.replies[1].contains("a person was asked and said no"), "{client}: {:?}", said.replies);
        assert_eq!(said.asked, ["a", "b", "c"].map(question), "{client}");
        client.has_sent(&said, 2, 3);
        let mut expected = ["first form", "before", "between", "after", "earlier"];
        expected.sort_unstable();
        assert_eq!(client.lines("added"), expected, "{client}");
        assert_eq!(client.lines("shared"), ["a", "b"], "{client}");
    });
}

#[test]
fn a_client_without_forms_is_told_which_run_waits_and_continues_it() {
    let store = |folder: &Path| format!("sqlite:{}", folder.join("sessions.db").display());
    let options = |folder: &Path| vec!["--store".to_owned(), store(folder)];
    with_each(&TYPESCRIPT, &options, |client| {
        let said = client.call(&json!([{"program": PARALLEL}]), None);
        let reply = &said.replies[0];
        assert_eq!(
            (said.results[0].clone(), said.asked.len()),
            (("Suspended: the program waits until a person has decided on 5 calls".to_owned(), false), 0),
            "{client}"
        );
        let (_, rest) = reply.split_once("by `lispbox approvals show ").unwrap_or_else(|| panic!("{client}: {reply}"));
        let run = rest.split('`').next().expect("a run");
        let advice = format!("Then continue\nwith {{\"run\": \"{run}\"}} in place of `program`.");
        assert!(reply.replace("continue with", "continue\nwith").contains(&advice), "{client}: {reply}");
        assert_eq!((client.lines("added").len(), client.lines("shared").len()), (5, 0), "{client}");

        // Another client process continues it, before and after a person has decided.
        let resume = json!([{"run": run}]);
        assert_eq!(client.call(&resume, None).results, said.results, "{client}");
        let approvals = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
            command.args(["approvals", "--store", &store(client.folder.path())]).args(arguments);
            let output = command.output().expect("it runs");
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).expect("text")
        };
        let listed: Value = serde_json::from_str(&approvals(&["list", "--json"])).expect("one run");
        for open in listed["open"].as_array().expect("open calls") {
            let number = open["call"].as_str().expect("a number");
            match open["arguments"]["line"] == "line 2" {
                true => approvals(&["deny", run, "--call", number]),
                false => approvals(&["approve", run, "--call", number]),
            };
        }
        let done = client.call(&resume, None);
        assert_eq!(
            done.results,
            [(r#"("added line 0" "added line 1" :denied "added line 3" "added line 4")"#.to_owned(), false)],
            "{client}"
        );
        assert_eq!((client.lines("added").len(), client.lines("shared").len()), (5, 4), "{client}");
    });
}

#[test]
fn without_a_store_a_client_without_forms_is_told_the_rule() {
    with_each(&TYPESCRIPT, &|_| vec![], |client| {
        let said = client.call(&json!([{"program": r#"(notes/share {:line "a"})"#}]), None);
        assert!(said.results[0].1 && said.asked.is_empty(), "{client}: {:?}", said.results);
        assert!(said.replies[0].contains("ToolNeedsApproval"), "{client}: {}", said.replies[0]);
        assert!(client.lines("shared").is_empty(), "{client}");
    });
}
