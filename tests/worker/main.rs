//! Evaluation in worker processes: the answers are the same as in this process, and the loss of a worker affects only
//! the evaluation that it was running.
#![cfg(all(feature = "worker", target_os = "linux"))]

#[path = "../common/mod.rs"]
mod common;
mod sequences;

use common::{Scripted, engine, host};
use lispbox::lang::{Catalogue, Environment, Host, Limits, Reply, Request, Status, ToolCall, ToolReply};
use lispbox::worker::{Program, WorkerOptions, WorkerSession, Workers};
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_lispbox");

fn workers() -> Arc<Workers> {
    let options = WorkerOptions { spare: 1, ..WorkerOptions::new(Program::new(BINARY, &["worker"])) };
    Workers::start(options).expect("this system confines processes")
}

fn run(session: &mut WorkerSession, program: &str) -> String {
    shown(session.eval(Request::new(program), host()))
}

fn shown(reply: Reply) -> String {
    match reply.failure {
        Some(failure) => failure.rendered,
        None => reply.value.unwrap_or_default(),
    }
}

/// Workers that write their process ids to a file, so that a test can kill them.
struct Traced {
    folder: tempfile::TempDir,
    workers: Arc<Workers>,
}

impl Traced {
    fn start() -> Traced {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!("echo $$ >> '{}/numbers'; exec '{BINARY}' worker", folder.path().display());
        let options = WorkerOptions { spare: 1, ..WorkerOptions::new(Program::new("/bin/sh", &["-c", &script])) };
        let workers = Workers::start(options).expect("this system confines processes");
        Traced { folder, workers }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("numbers")
    }
}

fn kill_all(file: &std::path::Path) {
    let numbers = std::fs::read_to_string(file).expect("workers were started");
    for number in numbers.lines() {
        // The worker may have ended already.
        let _ = std::process::Command::new("/bin/kill").args(["-9", number]).output();
    }
}

#[test]
fn a_session_lives_in_its_worker() {
    let workers = workers();
    assert!(!workers.walls().is_empty());
    let mut session = workers.session();
    assert_eq!(run(&mut session, "(def a (atom 1)) (defn twice [x] (* 2 x)) (twice 21)"), "42");
    assert_eq!(run(&mut session, "(swap! a + 5)"), "6");
    assert_eq!(run(&mut session, "[(twice @a) *1]"), "[12 6]");
    assert_eq!(session.names(), ["a", "twice"]);
    assert!(session.defines("twice") && session.bindings() == 2 && session.live_bytes() > 0);
    let mut other = workers.session();
    assert!(run(&mut other, "(twice 1)").contains("UnboundVariable"));
    assert_eq!(session.bind("rows", "[1, 2]", host()), Ok(()));
    assert_eq!(run(&mut session, "(reduce + rows)"), "3");
    assert!(session.bind("rows", "[1, ", host()).is_err_and(|problem| problem.contains("`rows` is not JSON")));
    assert!(session.describe(None, host()).is_ok_and(|text| text.contains("twice")));
}

#[test]
fn replies_are_those_of_a_session_in_this_process() {
    let workers = workers();
    let programs = [
        "(+ 1 2)",
        "nil",
        "{:a [1 2.5 1/2 \"é\" \\a] :b #{1}}",
        "(println \"hello\") (print \"x\") 5",
        "(def x 1) (defn f [y] (/ y 0))\n(f x)",
        "(undefined-thing 1)",
        "(let [x 1",
        "(loop [] (recur))",
        "(reduce conj [] (range 100000000))",
        "(defn f [n] (+ 1 (f n))) (f 1)",
        "(throw (ex-info \"no\" {:a 1}))",
        "(str/repeat \"x\" 100000)",
        "(time/now)",
        "(do (rand) (rand-int 10))",
        "(range 100000)",
        // With notes.
        "(map :sendr [{:sender 1} {:sender 2}])",
        "[(map :a {:b 1}) (= 5 (first [\"5\"]))]",
    ];
    let limits = Limits { fuel: 100_000, output: 2_000, ..Limits::default() };
    for program in programs {
        let request =
            || Request { limits: limits.clone(), data: Some("{\"a\": 1.5}".to_string()), ..Request::new(program) };
        let mut here = engine().session().eval(request(), host());
        let mut there = workers.session().eval(request(), host());
        for reply in [&mut here, &mut there] {
            // Times differ, and so do the counts of the allocators.
            reply.spent.compute_ms = 0;
            reply.spent.total_ms = 0;
            reply.spent.memory_bytes = 0;
        }
        assert_eq!(format!("{there:?}"), format!("{here:?}"), "{program}");
    }
}

#[test]
fn tools_are_called_through_the_pipe_also_side_by_side() {
    let barrier = Arc::new(Barrier::new(8));
    let meeting = Arc::clone(&barrier);
    let host = Arc::new(
        Scripted::new()
            .tool("mail/meet", json!({"type": "object", "properties": {"n": {"type": "integer"}}}), move |arguments| {
                meeting.wait();
                ToolReply::Json(json!({"n": arguments["n"]}).to_string())
            })
            .tool("mail/text", json!({"type": "object", "properties": {}}), |_| ToolReply::Text("x".repeat(3_000_000)))
            .tool("mail/deny", json!({"type": "object", "properties": {}}), |_| {
                ToolReply::Denied("rule 1".to_string())
            }),
    );
    let mut session = workers().session();
    let reply = session.eval(Request::new("(pmap (fn [n] (:n (mail/meet {:n n}))) (range 8))"), host.clone());
    assert_eq!(reply.value.as_deref(), Some("(0 1 2 3 4 5 6 7)"), "{reply:?}");
    assert_eq!((reply.calls.len(), host.calls.lock().expect("not poisoned").len()), (8, 8));
    let reply = session.eval(Request::new("(count (mail/text))"), host.clone());
    assert_eq!(reply.value.as_deref(), Some("3000000"));
    let reply = session.eval(Request::new("(deny)"), host.clone());
    assert_eq!(reply.failure.expect("it is denied").error, "ToolDenied");
    let found = session.eval(Request::new("(apropos \"meeting by mail\")"), host.clone());
    assert!(found.prints.starts_with("(mail/meet :n? integer)  the tool meet\n"), "{}", found.prints);
    let reply = session.eval(Request::new("[(dir 'mail) (mail/txet)]"), host);
    assert!(reply.failure.is_some_and(|failure| failure.rendered.contains("Did you mean mail/text?")));
}

#[test]
fn a_worker_killed_amid_a_program_costs_that_program_alone() {
    let traced = Traced::start();
    let mut session = traced.workers.session();
    assert_eq!(run(&mut session, "(def kept (atom 1)) (reset! kept 2)"), "2");
    let file = traced.file();
    let killing = Arc::new(Scripted::new().tool("os/kill", json!({"type": "object", "properties": {}}), move |_| {
        kill_all(&file);
        ToolReply::Text("done".to_string())
    }));
    let begun = Instant::now();
    let reply = session.eval(Request::new("(reset! kept 3) (def more 1) (os/kill) (+ 1 1)"), killing);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let failure = reply.failure.expect("its worker is gone");
    assert_eq!(failure.error, "WorkerLost");
    assert_eq!(
        failure.message,
        "the worker process that ran this was lost: it was killed from outside, perhaps for lack of memory; \
         the session is as it was before this program"
    );
    assert_eq!(reply.calls.iter().map(|call| &*call.tool).collect::<Vec<_>>(), ["kill"]);
    assert_eq!(run(&mut session, "[@kept (+ 1 1)]"), "[2 2]");
    assert!(run(&mut session, "more").contains("UnboundVariable"));
}

/// A host that kills all workers when it is asked for its catalogue, and cancels at the first print.
struct Meddling {
    workers: PathBuf,
    cancelled: AtomicBool,
}

impl Meddling {
    fn with(traced: &Traced) -> Arc<Meddling> {
        Arc::new(Meddling { workers: traced.file(), cancelled: AtomicBool::new(false) })
    }
}

impl Host for Meddling {
    fn call(&self, _: ToolCall) -> ToolReply {
        ToolReply::Denied("there are no tools".to_string())
    }

    fn catalogue(&self) -> Catalogue {
        kill_all(&self.workers);
        Catalogue::default()
    }

    fn print(&self, _: &str) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn now_millis(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        4
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_question_whose_worker_is_killed_has_an_error_for_an_answer() {
    let traced = Traced::start();
    let mut session = traced.workers.session();
    assert_eq!(run(&mut session, "(def kept 1)"), "#'kept");
    let reply = session.describe(Some("mail"), Meddling::with(&traced)).expect_err("its worker is gone");
    assert_eq!(reply.failure.map(|failure| failure.error).as_deref(), Some("WorkerLost"));
    assert!(session.describe(None, host()).is_ok_and(|text| text.contains("kept")));
}

#[test]
fn a_flood_of_prints_is_cancelled_and_what_was_kept_before_it_outlives_the_worker() {
    let traced = Traced::start();
    let mut session = traced.workers.session();
    let limits = Limits { fuel: u64::MAX, compute: Duration::from_secs(100), ..Limits::default() };
    let program = "(def many (vec (range 5000))) (loop [] (println \"flood\") (recur))";
    let begun = Instant::now();
    let reply = session.eval(Request { limits, ..Request::new(program) }, Meddling::with(&traced));
    assert_eq!(reply.status, Status::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(run(&mut session, "(count many)"), "5000");
    kill_all(&traced.file());
    assert_eq!(run(&mut session, "(count many)"), "5000");
}

#[test]
fn workers_killed_while_nothing_runs_cost_nothing() {
    let traced = Traced::start();
    let mut session = traced.workers.session();
    assert_eq!(run(&mut session, "(defn next-id [] (swap! ids inc)) (def ids (atom 10)) (next-id)"), "11");
    assert_eq!(run(&mut session, "(next-id)"), "12");
    kill_all(&traced.file());
    assert_eq!(run(&mut session, "(next-id)"), "13");
    let mut other = traced.workers.session();
    assert_eq!(run(&mut other, "(+ 1 1)"), "2");
}

#[test]
fn more_sessions_than_workers_take_turns_at_them() {
    let program = Program::new(BINARY, &["worker"]);
    let workers = Workers::start(WorkerOptions { spare: 1, idle: 2, program }).expect("it starts");
    let mut sessions: Vec<WorkerSession> = (0..5).map(|_| workers.session()).collect();
    for (number, session) in sessions.iter_mut().enumerate() {
        assert_eq!(run(session, &format!("(def mine {number})")), "#'mine");
    }
    for (number, session) in sessions.iter_mut().enumerate() {
        assert_eq!(run(session, "mine"), number.to_string());
    }
}

#[test]
fn a_cancelled_evaluation_ends() {
    let host = Arc::new(Scripted::new());
    let cancelling = Arc::clone(&host);
    let mut session = workers().session();
    assert_eq!(run(&mut session, "(def kept 1)"), "#'kept");
    let limits = Limits { fuel: u64::MAX, compute: Duration::from_secs(100), ..Limits::default() };
    let request = Request { limits, ..Request::new("(loop [] (recur))") };
    let canceller = std::thread::spawn(move || cancelling.cancelled.store(true, Ordering::Relaxed));
    let reply = session.eval(request, host);
    canceller.join().expect("it ends");
    assert_eq!(reply.status, Status::Cancelled);
    assert_eq!(run(&mut session, "kept"), "1");
}

/// Starts fake workers: a script that speaks the protocol and then misbehaves.
fn impostor(then: &str) -> Option<Arc<Workers>> {
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        println!("SKIPPED: there is no {python} to play a worker that misbehaves");
        return None;
    }
    let script = format!(
        r#"
import os, struct, sys, time
def send(body): os.write(0, struct.pack("<Q", len(body)) + body)
def text(text): return bytes([len(text)]) + text.encode()
send(b"\x00" + text("{version}") + b"\x00")
os.read(0, 1 << 20)
{then}
"#,
        version = env!("CARGO_PKG_VERSION")
    );
    let options = WorkerOptions { spare: 1, ..WorkerOptions::new(Program::new(python, &["-c", &script])) };
    Some(Workers::start(options).expect("it says that it is ready"))
}

fn betrayed(then: &str) -> Option<(Status, String, Option<String>)> {
    let limits = Limits {
        compute: Duration::from_millis(100),
        memory: 1 << 20,
        session: 1 << 20,
        calls: 2,
        ..Limits::default()
    };
    let begun = Instant::now();
    let reply = impostor(then)?.session().eval(Request { limits, ..Request::new("(+ 1 1)") }, host());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let failure = reply.failure.expect("this is no worker");
    Some((reply.status, failure.message, failure.limit))
}

#[test]
fn a_worker_that_does_not_come_back_is_ended() {
    let Some((status, message, limit)) = betrayed("time.sleep(1000)") else { return };
    assert_eq!((status, limit.as_deref()), (Status::Limit, Some("compute")));
    assert_eq!(
        message,
        "the worker process was terminated, because it did not stop at its limit `compute` of 100 ms; \
         the session is as it was before this program"
    );
}

#[test]
fn a_worker_that_takes_too_much_memory_is_ended() {
    let fill = "hold = []\nwhile True: hold.append(bytearray(b'x' * 4000000)); time.sleep(0.001)";
    let Some((status, message, limit)) = betrayed(fill) else { return };
    assert_eq!((status, limit.as_deref()), (Status::Limit, Some("memory")), "{message}");
    assert!(message.contains("of memory; at most 100.5 MiB are allowed"), "{message}");
}

#[test]
fn a_worker_that_says_nonsense_is_ended() {
    for then in [
        "send(b'\\xff\\xff\\xff')",
        "os.write(0, struct.pack('<Q', 1 << 60)); time.sleep(1000)",
        "send(b'\\x00' + text('again') + b'\\x00'); time.sleep(1000)",
        "sys.exit(3)",
        "os.close(0); time.sleep(1000)",
    ] {
        let Some((status, message, _)) = betrayed(then) else { return };
        assert_eq!(status, Status::Error, "{then}");
        assert!(message.starts_with("the worker process that ran this was lost: "), "{then}: {message}");
    }
}

/// The reasons that `betrayed` gives for the loss of a worker.
fn reason(then: &str) -> Option<String> {
    let (_, message, _) = betrayed(then)?;
    let reason = message.strip_prefix("the worker process that ran this was lost: ").expect("it is lost");
    Some(reason.strip_suffix("; the session is as it was before this program").expect("it is lost").to_string())
}

#[test]
fn a_worker_that_aborts_says_which_allocation_failed() {
    let last_words = "os.write(2, b'noise\\n\\nmemory allocation of 3300000 bytes failed\\n'); os.abort()";
    let Some(said) = reason(last_words) else { return };
    // 1.5 MiB for data, 3 MiB for the session, 96 MiB for the process; 68 stacks.
    assert_eq!(
        said,
        "it could not allocate 3.1 MiB: the system had no more memory, or its address space was at its bound of \
         100.5 MiB for data and 18.1 GiB for stacks"
    );
    assert_eq!(reason("os.abort()").as_deref(), Some("it aborted for an unknown reason"));
}

#[test]
fn a_program_that_is_no_worker_is_refused() {
    for program in [Program::new("/bin/true", &[]), Program::new("/no/such/file", &[])] {
        assert!(Workers::start(WorkerOptions::new(program)).is_err());
    }
}
