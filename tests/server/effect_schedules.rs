//! Random schedules of endings: however often a program fails, is cut off or loses its process, corrected ones make each
//! change once.
//!
//! `LISPBOX_EFFECT_SCHEDULES=1000` sets their number. `LISPBOX_EFFECT_SEED` sets the first seed, which each run prints. A
//! seed that fails is added to `effect_schedules.seeds`, whose seeds run first from then on.

use std::path::Path;
use std::time::Duration;

use crate::databases::{Database, Kind};
use crate::failed_runs::configuration;
use crate::grant_schedules::{first_seed, keep, kept, variable};
use crate::mcp_client::{Answer, Client, until};
use crate::running_programs::awaited;
use crate::waiting_runs::{approvals, kill, lines, listed, printed, run_of};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

/// The number of schedules.
const SCHEDULES: u64 = 8;

/// The file of the seeds that have failed.
const SEEDS: &str = "effect_schedules.seeds";

/// How an attempt ends.
#[derive(Clone, Debug)]
enum Ending {
    /// By an error behind that change.
    Error(u32),
    /// By the limit on calls.
    Limit(u32),
    /// The client cancels the request after that time, in milliseconds. Its next program waits for the end.
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
    store: Option<Store>,
}

/// A kind of store.
#[derive(Clone, Copy, Debug)]
enum Store {
    Sqlite,
    Database(Kind),
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let attempts = prop::collection::vec((ending(), any::<bool>()), 1..4);
    let store = prop_oneof![
        3 => Just(None),
        2 => Just(Some(Store::Sqlite)),
        1 => Just(Some(Store::Database(Kind::Redis))),
        1 => Just(Some(Store::Database(Kind::Postgres))),
    ];
    (attempts, any::<bool>(), store).prop_map(|(attempts, is_stateless, store)| Schedule {
        attempts,
        is_stateless,
        store,
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

    /// A person looks which of the unknown calls happened. Without a store nobody can say so.
    fn settle(&self) {
        until_tools_end(self.folder, self.client.process.id());
        self.store.iter().for_each(|store| settle(self.folder, store));
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
        // An attempt in a store goes on although its request was cancelled.
        while answer.text.contains("the program is still running") || answer.text.contains("another attempt of it") {
            awaited(&mut self.client, arguments["run"].as_str().expect("it goes on with a run"));
            answer = self.awaited(&arguments);
        }
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

/// Waits until no process of a tool is left, nor one of the server that is about to become such a process.
pub fn until_tools_end(folder: &Path, server: u32) {
    let (server, mark) = (server.to_string(), folder.display().to_string());
    until(|| {
        let processes = std::fs::read_dir("/proc").expect("processes").flatten();
        let others = processes.filter(|process| *process.file_name() != *server);
        let mut lines = others.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        !lines.any(|line| String::from_utf8_lossy(&line).contains(&mark))
    });
}

/// A person looks which of the unknown calls of `notes/add` and `notes/hold` happened, and says so.
pub fn settle(folder: &Path, store: &str) {
    for run in listed(store) {
        let identity = run["run"].as_str().expect("a run");
        for call in run["open"].as_array().expect("calls").iter().filter(|call| call["unknown"] == true) {
            let line = call["arguments"]["line"].as_str().expect("a line").to_owned();
            let file = if call["tool"] == "hold" { "held" } else { "added" };
            let number = call["call"].as_str().expect("a number");
            let reply = format!("\"added {line}\"");
            let happened: &[&str] = match lines(folder, file).contains(&line) {
                true => &["--happened", &reply],
                false => &["--did-not-happen"],
            };
            printed(&approvals(store, &[&["settle", identity, "--call", number], happened].concat()));
        }
    }
}

/// The databases of the schedules, as far as they are installed.
struct Databases([Option<Database>; 2]);

impl Databases {
    /// Returns the URL of an empty store; `None` if the database is not installed.
    fn empty(&self, store: Store, folder: &Path) -> Option<String> {
        let Store::Database(kind) = store else {
            return Some(format!("sqlite:{}", folder.join("sessions.db").display()));
        };
        let at = Kind::ALL.iter().position(|known| *known == kind)?;
        let database = self.0[at].as_ref()?;
        database.tell(match kind {
            Kind::Redis => "FLUSHDB",
            Kind::Postgres => "DROP SCHEMA public CASCADE; CREATE SCHEMA public",
        });
        Some(database.url())
    }
}

/// Runs a schedule to its end.
fn check(schedule: &Schedule, databases: &Databases) {
    let Schedule { attempts, is_stateless, store } = schedule;
    let folder = tempfile::tempdir().expect("a folder");
    let store = match store {
        None => None,
        Some(store) => match databases.empty(*store, folder.path()) {
            None => return,
            url => url,
        },
    };
    let client = Server::start(folder.path(), store.as_deref(), *is_stateless);
    let mut server = Server { folder: folder.path(), store, is_stateless: *is_stateless, client, run: None };
    for (ending, is_concurrent) in attempts {
        // Without a store nothing is left of a process.
        if server.store.is_none() && matches!(ending, Ending::Kill(_)) {
            continue;
        }
        server.attempt(ending, *is_concurrent);
        if server.run.is_none() && lines(folder.path(), "added").len() == 8 {
            // It has ended well, and its reply was sent, before it was cancelled: nothing is left to do.
            return;
        }
    }
    let done = server.end();
    assert!(!done.is_error, "{}", done.text);
    let added = lines(folder.path(), "added");
    assert_eq!(added, (0..8).map(|n| n.to_string()).collect::<Vec<_>>(), "{}", done.text);
}

/// Returns the schedule of a seed.
fn of_seed(seed: u64) -> Schedule {
    let bytes: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(32).collect();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    schedule().new_tree(&mut runner).expect("a schedule").current()
}

#[test]
fn each_change_is_made_once_however_its_programs_end() {
    let databases = Databases(Kind::ALL.map(Database::start));
    let seed = first_seed("LISPBOX_EFFECT_SEED");
    let count = variable("LISPBOX_EFFECT_SCHEDULES").unwrap_or(SCHEDULES);
    for seed in kept(SEEDS).into_iter().chain((0..count).map(|at| seed.wrapping_add(at))) {
        let schedule = of_seed(seed);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&schedule, &databases)));
        if let Err(failure) = outcome {
            keep(SEEDS, seed);
            println!("LISPBOX_EFFECT_SEED={seed} fails: {schedule:#?}");
            std::panic::resume_unwind(failure);
        }
    }
}
