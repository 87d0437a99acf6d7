//! Random schedules of endings: however often a program fails, is cut off or loses its process, corrected ones make each
//! change once.

use std::path::Path;
use std::time::Duration;

use crate::failed_runs::configuration;
use crate::mcp_client::{Answer, Client, until};
use crate::running_programs::awaited;
use crate::waiting_runs::{approvals, kill, lines, listed, printed, run_of};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// How an attempt ends.
#[derive(Clone, Debug)]
enum Ending {
    /// By an error behind that change.
    Error(u32),
    /// By the limit on calls.
    Limit(u32),
    /// The client cancels the request after that time, in milliseconds. In a session, its next program waits for the end.
    Cancel(u64),
    /// The call is answered before the end of the program, which is then ended.
    Answered,
    /// The process is killed after that time, in milliseconds.
    Kill(u64),
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        3 => (0..8_u32).prop_map(Ending::Error),
        2 => (1..8_u32).prop_map(Ending::Limit),
        2 => (0..60_u64).prop_map(Ending::Cancel),
        1 => Just(Ending::Answered),
        1 => (0..60_u64).prop_map(Ending::Kill),
    ]
}

#[derive(Clone, Debug)]
struct Schedule {
    /// The endings, and whether the attempt makes its changes concurrently.
    attempts: Vec<(Ending, bool)>,
    is_stateless: bool,
    has_store: bool,
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let attempts = prop::collection::vec((ending(), any::<bool>()), 1..4);
    (attempts, any::<bool>(), any::<bool>()).prop_map(|(attempts, is_stateless, has_store)| Schedule {
        attempts,
        is_stateless,
        has_store,
    })
}

/// A server, whose process may be replaced, and the run of its client.
struct Server<'f> {
    folder: &'f Path,
    store: Option<String>,
    is_stateless: bool,
    client: Client,
    run: Option<String>,
}

impl Server<'_> {
    fn start(folder: &Path, store: Option<&str>, is_stateless: bool) -> Client {
        let options =
            [&["--reply-within", "400ms"][..], &store.map_or(vec![], |store| vec!["--store", store])].concat();
        match is_stateless {
            true => Client::start_stateless(&configuration(folder), &options),
            false => Client::start(&configuration(folder), &options),
        }
    }

    /// Attempts to make the changes that are not known to be made without a record.
    fn arguments(&self, ending: Option<&Ending>, is_concurrent: bool) -> Value {
        let behind = match ending {
            Some(Ending::Error(at)) => format!("(when (= n {at}) (/ 1 0))"),
            Some(Ending::Answered) => "(when (= n 5) (loop [] (recur)))".to_owned(),
            _ => String::new(),
        };
        let step = format!("(fn [n] (notes/add {{:line (str n)}}) {behind})");
        let program = match is_concurrent {
            true => format!("(doall (pmap {step} (range 8)))"),
            false => format!("(run! {step} (range 8))"),
        };
        let mut arguments = json!({"program": program});
        if let Some(run) = &self.run {
            arguments["run"] = json!(run);
        }
        match ending {
            Some(Ending::Limit(calls)) => arguments["limits"] = json!({"calls": calls}),
            Some(Ending::Answered) => arguments["limits"] = json!({"fuel": 1e9, "compute": "50s"}),
            // Those of the attempt before are in force otherwise.
            _ => arguments["limits"] = json!({"calls": 100}),
        }
        arguments
    }

    /// Makes an attempt that ends like this.
    fn attempt(&mut self, ending: &Ending, is_concurrent: bool) {
        let arguments = self.arguments(Some(ending), is_concurrent);
        match ending {
            Ending::Error(_) | Ending::Limit(_) => {
                let answer = self.awaited(&arguments);
                self.named(&answer);
            }
            Ending::Answered => {
                let answer = self.client.call("lisp_eval", arguments);
                self.named(&answer);
                if answer.text.starts_with("[running: ") {
                    self.client.call("lisp_eval", json!({"run": self.run, "cancel": true}));
                }
            }
            Ending::Cancel(after) => {
                let id = self.client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments}));
                std::thread::park_timeout(Duration::from_millis(*after));
                self.client.notify("notifications/cancelled", json!({"requestId": id}));
            }
            Ending::Kill(after) => {
                self.client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments}));
                std::thread::park_timeout(Duration::from_millis(*after));
                let store = self.store.clone().expect("only with a store");
                kill(&mut self.client, self.folder, &store);
                self.client = Server::start(self.folder, Some(&store), self.is_stateless);
            }
        }
        self.find_run();
        self.settle();
    }

    /// Takes the run that a reply names.
    fn named(&mut self, answer: &Answer) {
        if let Some((_, rest)) = answer.text.split_once("{\"run\": \"") {
            self.run = rest.split('"').next().map(str::to_owned);
        }
    }

    /// Waits until no program is evaluated, and takes the run that failed, if there is one.
    fn find_run(&mut self) {
        let mut found = None;
        until(|| {
            let program = "(json/write (mapv #(select-keys % [:run :state]) (run/status)))";
            let status = self.awaited(&json!({ "program": program }));
            let text: String = status.text.lines().find(|line| line.starts_with("\"[")).unwrap_or("\"[]\"").to_owned();
            let runs: String = serde_json::from_str(&text).expect("a text");
            let runs: Vec<Value> = serde_json::from_str(&runs).expect("JSON");
            found = runs.first().and_then(|run| run["run"].as_str()).map(str::to_owned);
            runs.iter().all(|run| run["state"] != "running")
        });
        if found.is_some() {
            self.run = found;
        }
    }

    /// Waits until no process of a tool is left, nor one of the server that is about to become such a process.
    fn until_tools_end(&self) {
        let (server, mark) = (self.client.process.id().to_string(), self.folder.display().to_string());
        until(|| {
            let processes = std::fs::read_dir("/proc").expect("processes").flatten();
            let others = processes.filter(|process| *process.file_name() != *server);
            let mut lines = others.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
            !lines.any(|line| String::from_utf8_lossy(&line).contains(&mark))
        });
    }

    /// A person looks which of the unknown calls happened. Without a store nobody can say so.
    fn settle(&self) {
        self.until_tools_end();
        let Some(store) = &self.store else { return };
        for run in listed(store) {
            let identity = run["run"].as_str().expect("a run");
            for call in run["open"].as_array().expect("calls").iter().filter(|call| call["unknown"] == true) {
                let line = call["arguments"]["line"].as_str().expect("a line").to_owned();
                let number = call["call"].as_str().expect("a number");
                let reply = format!("\"added {line}\"");
                let found: &[&str] = match lines(self.folder, "added").contains(&line) {
                    true => &["--happened", &reply],
                    false => &["--did-not-happen"],
                };
                printed(&approvals(store, &[&["settle", identity, "--call", number], found].concat()));
            }
        }
    }

    /// Waits for the reply to a call.
    fn awaited(&mut self, arguments: &Value) -> Answer {
        let answer = self.client.call("lisp_eval", arguments.clone());
        if answer.text.starts_with("[running: ") {
            return awaited(&mut self.client, &run_of(&answer));
        }
        answer
    }

    /// Makes the last attempt, and returns its reply. Without a store, a call whose outcome is unknown stops it: whoever
    /// has looked says so.
    fn end(&mut self) -> Answer {
        let mut arguments = self.arguments(None, false);
        let mut answer = self.awaited(&arguments);
        while answer.text.starts_with("EffectRepeated: ") {
            let missing: Vec<String> =
                (0..8).map(|n| n.to_string()).filter(|n| !lines(self.folder, "added").contains(n)).collect();
            arguments["program"] = json!(format!("(run! (fn [n] (notes/add {{:line n}})) {missing:?})"));
            arguments["repeat"] = json!(true);
            answer = self.awaited(&arguments);
        }
        if answer.text.starts_with("RunNotResumed: the run has ended") {
            // An attempt in a store is not cancelled with its request.
            answer = self.client.call("lisp_eval", json!({"run": self.run}));
        }
        answer
    }
}

fn schedules() -> u32 {
    std::env::var("LISPBOX_EFFECT_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(8)
}

#[test]
fn each_change_is_made_once_however_its_programs_end() {
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(schedules())
    });
    let outcome = runner.run(&schedule(), |Schedule { attempts, is_stateless, has_store }| {
        let folder = tempfile::tempdir().expect("a folder");
        let store = has_store.then(|| format!("sqlite:{}", folder.path().join("sessions.db").display()));
        let client = Server::start(folder.path(), store.as_deref(), is_stateless);
        let mut server = Server { folder: folder.path(), store, is_stateless, client, run: None };
        for (ending, is_concurrent) in &attempts {
            let is_possible = match ending {
                Ending::Kill(_) => has_store,
                Ending::Cancel(_) => !is_stateless,
                Ending::Error(_) | Ending::Limit(_) | Ending::Answered => true,
            };
            if !is_possible {
                continue;
            }
            server.attempt(ending, *is_concurrent);
            if server.run.is_none() && lines(folder.path(), "added").len() == 8 {
                // It has ended well before it was cancelled: nothing is left to do.
                return Ok(());
            }
        }
        let done = server.end();
        // An attempt may end well just before it is cancelled; nothing of its run is kept in memory then.
        let has_ended = !has_store && done.text.starts_with("RunNotResumed: there is no such run");
        prop_assert!(!done.is_error || has_ended, "{}", done.text);
        let added = lines(folder.path(), "added");
        prop_assert_eq!(added, (0..8).map(|n| n.to_string()).collect::<Vec<_>>(), "{}", done.text);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
