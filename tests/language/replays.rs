//! Runs that are evaluated again from their log: without a call, and after the process has died in the middle.

use crate::common;
use crate::suspended::program;

use common::{Scripted, engine};
use lispbox::lang::{
    CallState, Catalogue, Decision, Entry, Host, Journal, Keep, LogChange, Logged, Question, Recorder, Reply, Request,
    RunLog, Server, Stage, Status, Tool, ToolCall, ToolError, ToolReply, Witness,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// Tools, a clock and random numbers that are never the same twice.
struct Restless {
    tools: Scripted,
    log: Arc<RunLog>,
    time: AtomicI64,
    bits: AtomicU64,
    /// The calls that had an effect.
    sent: Arc<Mutex<Vec<String>>>,
    /// The number of moments until the process dies: each is a point before or after something is stored or sent.
    life: Arc<AtomicI64>,
}

/// What survives the process: the last stored state of each call.
type Disk = Arc<Mutex<BTreeMap<String, Entry>>>;

/// Stores entries while the process lives.
struct Writer {
    disk: Disk,
    life: Arc<AtomicI64>,
}

impl Journal for Writer {
    fn store(&self, entry: &Entry) -> Result<(), String> {
        if self.life.load(Ordering::SeqCst) >= 0 {
            self.disk.lock().expect("not poisoned").insert(format!("{:?}", entry.id), entry.clone());
        }
        Ok(())
    }
}

impl Restless {
    fn new(log: &Arc<RunLog>, sent: &Arc<Mutex<Vec<String>>>, life: &Arc<AtomicI64>) -> Arc<Restless> {
        let schema = || json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let answer = |_: &serde_json::Value| ToolReply::Json("0".to_owned());
        let tools = Scripted::new().tool("t/read", schema(), answer).tool("t/act", schema(), answer).tool(
            "t/ask",
            schema(),
            answer,
        );
        Arc::new(Restless {
            tools,
            log: Arc::clone(log),
            time: AtomicI64::new(1_700_000_000_000),
            bits: AtomicU64::new(1),
            sent: Arc::clone(sent),
            life: Arc::clone(life),
        })
    }

    /// Returns true if the process has died by this moment.
    fn is_dead(&self) -> bool {
        self.life.fetch_sub(1, Ordering::SeqCst) <= 0
    }
}

impl Host for Restless {
    fn servers(&self) -> Vec<Server> {
        self.tools.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.tools.tools(server)
    }

    fn catalogue(&self) -> Catalogue {
        self.tools.catalogue()
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).expect("JSON");
        let number = arguments["n"].as_i64().expect("a number");
        if &*call.tool == "read" {
            // Something else each time.
            return ToolReply::Json(format!("{}", number + self.time.fetch_add(7, Ordering::SeqCst) % 5));
        }
        if &*call.tool == "ask" && call.approved.as_deref() != Some(&call.arguments) {
            let ToolCall { id, server, tool, arguments, .. } = call;
            let reason = "it asks".to_owned();
            return ToolReply::Ask(Box::new(Question { id, server, tool, arguments, reason, is_guarded: false }));
        }
        if self.is_dead() {
            return ToolReply::Stopped;
        }
        self.log.starting(&call.id).expect("the disk works");
        if self.is_dead() {
            return ToolReply::Stopped;
        }
        self.sent.lock().expect("not poisoned").push(format!("{:?} {} {}", call.id, call.tool, call.arguments));
        if self.is_dead() {
            return ToolReply::Stopped;
        }
        ToolReply::Json(format!("{}", number * 3))
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        let decide = |question: &Question| match question.arguments.contains('3') {
            true => Decision::Denied("no".to_owned()),
            false => Decision::Approved,
        };
        questions.iter().map(decide).collect()
    }

    fn now_millis(&self) -> i64 {
        self.time.fetch_add(13, Ordering::SeqCst)
    }

    fn random(&self) -> u64 {
        self.bits.fetch_add(0x1234_5678_9abc, Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        self.tools.monotonic()
    }

    fn cancelled(&self) -> bool {
        self.life.load(Ordering::SeqCst) < 0
    }
}

fn run<H: Host + 'static>(program: &str, host: &Arc<H>, log: &Arc<RunLog>, is_strict: bool) -> (Reply, Option<String>) {
    let recorder = Recorder::new(Arc::clone(host), Arc::clone(log));
    let recorder = if is_strict { recorder.strict() } else { recorder };
    let mut session = engine().session();
    let reply = session.eval(Request::new(program), Arc::new(recorder));
    (reply, session.encode().ok())
}

/// The part of a reply that a replay must repeat: all but the time and memory that it took.
fn course(reply: &Reply) -> serde_json::Value {
    let mut reply = reply.clone();
    reply.calls.iter_mut().for_each(|call| call.ms = 0);
    (reply.spent.memory_bytes, reply.spent.compute_ms, reply.spent.total_ms) = (0, 0, 0);
    serde_json::to_value(reply).expect("it is data")
}

/// Keeps the changes of a log as they are stored.
#[derive(Default)]
struct Changes {
    log: OnceLock<Weak<RunLog>>,
    stored: Mutex<Vec<LogChange>>,
}

impl Changes {
    fn take(&self) {
        let log = self.log.get().and_then(Weak::upgrade).expect("it lives");
        self.stored.lock().expect("not poisoned").extend(log.changes());
    }
}

impl Journal for Changes {
    fn store(&self, _entry: &Entry) -> Result<(), String> {
        self.take();
        Ok(())
    }
}

fn forever() -> Arc<AtomicI64> {
    Arc::new(AtomicI64::new(i64::MAX))
}

fn log_of(logged: Logged, keep: Keep) -> Arc<RunLog> {
    Arc::new(RunLog::new(logged, keep, 1 << 20))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_replay_repeats_the_run_and_calls_nothing(program in program(), changed in any::<prop::sample::Index>()) {
        let changes = Arc::<Changes>::default();
        let log = Arc::new(RunLog::new(Logged::default(), Keep::Run, 1 << 20).kept_by(changes.clone()));
        changes.log.set(Arc::downgrade(&log)).expect("once");
        let sent = Arc::default();
        let witness = Arc::new(Witness::new(Restless::new(&log, &sent, &forever()) as Arc<dyn Host>));
        let original = run(&program, &witness, &log, false);
        let logged = log.logged();
        // The changes that were stored one after the other are the log.
        changes.take();
        let mut rebuilt = Logged::default();
        rebuilt.apply(changes.stored.lock().expect("not poisoned").clone());
        rebuilt.told.retain(|_, told| !told.is_empty());
        rebuilt.draws.retain(|_, draws| !draws.is_empty());
        prop_assert_eq!(&rebuilt, &logged, "{}", program);
        // As it is stored.
        let stored = serde_json::to_string(&logged).expect("it is data");
        let logged: Logged = serde_json::from_str(&stored).expect("it was written");

        let log = log_of(logged.clone(), Keep::Run);
        let nothing = Arc::default();
        let replay = run(&program, &Restless::new(&log, &nothing, &forever()), &log, true);
        prop_assert_eq!(course(&original.0), course(&replay.0), "{}", program);
        prop_assert_eq!(&original.1, &replay.1, "{}", program);
        prop_assert!(nothing.lock().expect("not poisoned").is_empty());
        prop_assert_eq!(&log.logged(), &logged, "the log is what it was");

        // Without the host, from what it has said.
        let observed = serde_json::to_string(&witness.observed()).expect("it is data");
        let stage = Arc::new(Stage::new(serde_json::from_str(&observed).expect("it was written")));
        let log = log_of(logged.clone(), Keep::Run);
        let staged = run(&program, &stage, &log, true);
        prop_assert_eq!(course(&original.0), course(&staged.0), "{}", program);
        prop_assert_eq!(&original.1, &staged.1, "{}", program);

        // A call that differs from its entry ends the run before anything is sent.
        if !logged.calls.is_empty() {
            let mut logged = logged;
            let at = changed.index(logged.calls.len());
            logged.calls[at].arguments = "{\"n\":-1}".to_owned();
            let log = log_of(logged, Keep::Run);
            let (diverged, _) = run(&program, &Restless::new(&log, &nothing, &forever()), &log, false);
            let code = diverged.failure.map(|failure| failure.error);
            prop_assert_eq!(code.as_deref(), Some("ReplayDiverged"), "{}", program);
            prop_assert!(nothing.lock().expect("not poisoned").is_empty());
        }
    }

    #[test]
    fn no_effect_happens_twice_or_is_lost_wherever_the_process_dies(program in program(), lives in prop::collection::vec(0..12_i64, 1..4)) {
        let disk = Disk::default();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut logged = Logged::default();
        let mut lives = lives.into_iter().map(Some).chain([None]);
        let done = loop {
            let life = Arc::new(AtomicI64::new(lives.next().flatten().unwrap_or(i64::MAX)));
            let writer = Writer { disk: Arc::clone(&disk), life: Arc::clone(&life) };
            let log = Arc::new(RunLog::new(logged, Keep::Run, 1 << 20).kept_by(Arc::new(writer)));
            let (reply, _) = run(&program, &Restless::new(&log, &sent, &life), &log, false);
            if life.load(Ordering::SeqCst) >= 0 {
                break reply;
            }
            // Another process finds what was stored. Reads are not, so it makes them again.
            let calls: Vec<Entry> = disk.lock().expect("not poisoned").values().cloned().collect();
            logged = Logged { calls, ..Logged::default() };
            logged.recover(|entry| &*entry.tool == "read");
            // A person looks whether it happened.
            let unknown: Vec<Entry> = logged.unknown().cloned().collect();
            for entry in unknown {
                let mark = format!("{:?} ", entry.id);
                let number: serde_json::Value = serde_json::from_str(&entry.arguments).expect("JSON");
                let reply = ToolReply::Json(format!("{}", number["n"].as_i64().expect("a number") * 3));
                let happened = sent.lock().expect("not poisoned").iter().any(|sent: &String| sent.starts_with(&mark));
                prop_assert!(logged.settle(&entry.id, happened.then_some(reply)));
                prop_assert!(!logged.settle(&entry.id, None), "it is known now");
            }
        };
        let sent = sent.lock().expect("not poisoned").clone();
        let mut calls: Vec<&str> = sent.iter().map(|sent| sent.split(" act").next().unwrap_or(sent)).collect();
        calls.sort_unstable();
        let all = calls.len();
        calls.dedup();
        prop_assert_eq!(calls.len(), all, "sent twice: {:?} by {}", sent, program);
        // A run whose reads came out differently ends before it sends anything else.
        if done.status == Status::Ok {
            let count = |outcome: &str| {
                done.calls.iter().filter(|call| &*call.tool != "read" && call.outcome == outcome).count()
            };
            // A call that was given up because another branch failed may have been sent.
            let reported = count("ok")..=count("ok") + count("stopped");
            prop_assert!(reported.contains(&all), "{} of {:?}: {}", all, reported, program);
        }
    }
}

#[test]
fn a_replay_has_the_notes_of_the_run() {
    let program = "(map :sendr [{:sender (t/act {:n 1})} {:sender 2}])";
    let log = log_of(Logged::default(), Keep::Run);
    let (original, _) = run(program, &Restless::new(&log, &Arc::default(), &forever()), &log, false);
    assert_eq!(original.notes, [":sendr is in none of 2 records; did you mean :sender?"]);
    let log = log_of(log.logged(), Keep::Run);
    let (replay, _) = run(program, &Restless::new(&log, &Arc::default(), &forever()), &log, true);
    assert_eq!(course(&replay), course(&original));
}

#[test]
fn a_reply_that_the_log_has_no_room_for_is_not_replayed() {
    let log = Arc::new(RunLog::new(Logged::default(), Keep::Run, 300));
    let sent = Arc::default();
    let (reply, _) = run("[(t/act {:n 1}) (t/act {:n 2})]", &Restless::new(&log, &sent, &forever()), &log, false);
    assert_eq!(reply.value.as_deref(), Some("[3 6]"));
    assert!(!log.is_kept());
    let logged = log.logged();
    assert!(logged.calls.iter().any(|entry| entry.state == CallState::Forgotten), "{logged:?}");
    let log = log_of(logged, Keep::Run);
    let again = Arc::default();
    let (reply, _) = run("[(t/act {:n 1}) (t/act {:n 2})]", &Restless::new(&log, &again, &forever()), &log, false);
    let failure = reply.failure.expect("it cannot be repeated");
    assert_eq!(failure.error, "ReplayDiverged");
    assert!(failure.message.contains("too large to be recorded"), "{}", failure.message);
    assert!(again.lock().expect("not poisoned").len() <= 1, "only what was never sent");
}

/// An evaluation in an isolated process may claim anything: it approves nothing, and asks no question of its own.
#[test]
fn an_evaluation_can_neither_approve_its_calls_nor_change_the_questions() {
    let log = log_of(Logged::default(), Keep::Form);
    let sent = Arc::default();
    let host = Restless::new(&log, &sent, &forever());
    let recorder = Recorder::new(Arc::clone(&host), Arc::clone(&log));
    let call = |number: i64, approved: Option<&str>| ToolCall {
        id: lispbox::lang::CallId { form: 0, branch: Vec::new(), ordinal: 0 },
        server: "t".into(),
        tool: "ask".into(),
        arguments: format!("{{\"n\":{number}}}"),
        remaining: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        fuel: 0,
        memory: 0,
        approved: approved.map(Into::into),
        values: None,
        room: u64::MAX,
    };
    let ToolReply::Ask(question) = recorder.call(call(3, Some("{\"n\":3}"))) else { panic!("it is asked about") };
    // The host denies what contains a 3, and would approve the forged question.
    let forged = Question { arguments: "{\"n\":1}".to_owned(), ..(*question).clone() };
    assert_eq!(recorder.decide(&[forged]), [Decision::Denied("no".to_owned())]);
    assert_eq!(recorder.call(call(3, None)), ToolReply::Denied("no".to_owned()));
    let unasked = Question { id: lispbox::lang::CallId { form: 9, branch: Vec::new(), ordinal: 9 }, ..*question };
    assert!(matches!(&recorder.decide(&[unasked])[..], [Decision::Unavailable(_)]));
    assert!(matches!(recorder.call(call(1, None)), ToolReply::Diverged(_)), "the same call with other arguments");
    assert!(sent.lock().expect("not poisoned").is_empty());
}
