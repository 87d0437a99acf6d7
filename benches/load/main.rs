//! Load test of the server over HTTP: evaluations by many concurrent clients, the memory of idle sessions, and the time
//! to restore a session from a store.
//!
//! `cargo bench --bench load` starts the real binary with its default limits and prints three tables.

#[path = "../../tests/http_client/mod.rs"]
mod http_client;

use http_client::{Connection, Server, handle};
use std::time::{Duration, Instant};

/// The total number of calls for each number of clients.
const CALLS: usize = 4_000;

/// The numbers of sessions held in memory.
const HELD: [usize; 4] = [1_000, 2_000, 4_000, 10_000];

/// The number of sessions used among those in memory or in the store.
const LOOKED_AT: usize = 500;

/// The definitions of a session and the program that uses them: 50 records.
const DEFINE: &str = "(def mails (mapv (fn [i] {:id i :size (* 3 i)}) (range 50)))";
const PROGRAM: &str = "(reduce + (map :size mails))";
const DEFINE_LITTLE: &str = "(def n 1)";

fn main() {
    round_trips();
    held("one number", DEFINE_LITTLE, "n");
    held("50 records", DEFINE, PROGRAM);
    taken_up();
}

/// Evaluations by several clients, each with its own connection and session.
fn round_trips() {
    println!("| `lisp_eval` over HTTP, a session for each client | median | p99 | a second |\n|---|--:|--:|--:|");
    let server = Server::start(&[], &[]);
    for clients in [1, 16, 64] {
        let begun = Instant::now();
        let client = || {
            let mut connection = server.connect();
            let session = handle(&evaluated(&mut connection, DEFINE, None));
            let evaluate = |_| timed(|| evaluated(&mut connection, PROGRAM, Some(&session)));
            (0..CALLS / clients).map(evaluate).collect::<Vec<Duration>>()
        };
        let each: Vec<Duration> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
            clients.into_iter().flat_map(|client| client.join().expect("no client failed")).collect()
        });
        let rate = each.len() as f64 / begun.elapsed().as_secs_f64();
        let times = Times::of(each);
        println!("| clients: {clients} | {} | {} | {rate:.0} |", times.at(50), times.at(99));
    }
}

/// Memory of a growing number of idle sessions, and the time of an evaluation in one of them.
fn held(what: &str, define: &str, program: &str) {
    println!(
        "\n| sessions held, of {what} | memory of the server | more for each | an evaluation in one: median | p99 |"
    );
    println!("|--:|--:|--:|--:|--:|");
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    // Warm-up, so that one-time allocations of the server are not attributed to sessions.
    for _ in 0..LOOKED_AT {
        evaluated(&mut connection, &format!("{define} (session/close)"), None);
    }
    let (mut before, mut sessions) = (server.memory("VmRSS"), Vec::<String>::new());
    for count in HELD {
        let more = count - sessions.len();
        sessions.extend((0..more).map(|_| handle(&evaluated(&mut connection, define, None))));
        let now = server.memory("VmRSS");
        let each = before.zip(now).map(|(before, now)| now.saturating_sub(before) as f64 / more as f64 / 1024.0);
        before = now;
        let looked_at = sessions.iter().step_by(count / LOOKED_AT);
        let times =
            Times::of(looked_at.map(|session| timed(|| evaluated(&mut connection, program, Some(session)))).collect());
        let shown =
            |size: Option<f64>, unit: &str| size.map_or("unknown".to_owned(), |size| format!("{size:.1} {unit}"));
        println!(
            "| {count} | {} | {} | {} | {} |",
            shown(now.map(|bytes| bytes as f64 / 1024.0 / 1024.0), "MiB"),
            shown(each, "KiB"),
            times.at(50),
            times.at(99)
        );
    }
}

/// Sessions in SQLite: their creation, and their restoration after a restart.
fn taken_up() {
    println!("\n| a session of 50 records in SQLite | median | p99 |\n|---|--:|--:|");
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let server = Server::start(&["--store", &store], &[]);
    let mut connection = server.connect();
    let mut sessions = Vec::with_capacity(LOOKED_AT);
    let mut make = || sessions.push(handle(&evaluated(&mut connection, DEFINE, None)));
    row("made and written", (0..LOOKED_AT).map(|_| timed(&mut make)));
    drop(server);
    let server = Server::start(&["--store", &store], &[]);
    let mut connection = server.connect();
    evaluated(&mut connection, "(+ 1 2)", None);
    for title in ["evaluated in after a restart, which reads it", "evaluated in again"] {
        row(title, sessions.iter().map(|session| timed(|| evaluated(&mut connection, PROGRAM, Some(session)))));
    }
    let change = "(def mails (conj mails {:id 50 :size 1}))";
    row(
        "changed and written",
        sessions.iter().map(|session| timed(|| evaluated(&mut connection, change, Some(session)))),
    );
}

fn row(title: &str, each: impl Iterator<Item = Duration>) {
    let times = Times::of(each.collect());
    println!("| {title} | {} | {} |", times.at(50), times.at(99));
}

/// The durations of many calls, in ascending order.
struct Times(Vec<Duration>);

impl Times {
    fn of(mut each: Vec<Duration>) -> Times {
        each.sort_unstable();
        Times(each)
    }

    /// The percentile `part` of the durations.
    fn at(&self, part: usize) -> String {
        let time = self.0[(self.0.len() - 1) * part / 100].as_secs_f64() * 1e6;
        if time < 10_000.0 { format!("{time:.0} µs") } else { format!("{:.0} ms", time / 1e3) }
    }
}

fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// The text of the reply to a program, which must not fail.
fn evaluated(connection: &mut Connection, program: &str, session: Option<&str>) -> String {
    let (text, failed) = connection.eval("", program, session);
    assert!(!failed, "{text}");
    text
}
