//! Runs the corpus of hostile programs, `tests/hostile/*.md`: one file for each kind, in which each program is paired
//! with its expected outcome under small limits: `limit: fuel`, `error: Code`, a value, or the beginning of a long
//! value (`[[[…`).
//!
//! One child process per kind runs the programs of its file in turn, each in a fresh session, twice:
//! 1. With little fuel and ample time, the outcome is the same on every machine. It must be the documented one, within
//!    the memory limit, and afterwards the session must evaluate `(+ 1 1)`.
//! 2. With unlimited fuel and little time, the program must return in time, even from within a single long step. An
//!    outcome that differs only because the clock rather than the fuel ended the program is accepted. The time limit is
//!    wall-clock time; lateness is measured in processor time of the child, since other processes may load the machine.
//!
//! After the first run of all its programs, the child may have grown only slightly beyond the memory limit.
#![cfg(target_os = "linux")]

mod common;

use common::hostile::{Program, built, corpus};
use lispbox::lang::{Engine, Reply, Request, Session};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// The memory limit, in MiB.
const MEMORY: u64 = 64;

/// Maximum number of bytes that may be counted. The limit is checked every few hundred steps, so small allocations made
/// between two checks may exceed it.
const COUNTED: u64 = (MEMORY + 1) << 20;

/// Maximum growth of the process, in MiB: the limit, three quarters of it for a block that a larger one replaces, and 16 MiB.
const GROWTH: u64 = MEMORY * 7 / 4 + 16;

/// Little fuel: a program ends by what it spends.
const BY_FUEL: [(&str, &str); 4] = [("fuel", "2e6"), ("memory", "64MiB"), ("compute", "30s"), ("total", "120s")];

/// Little time: a program is ended by the clock.
const BY_CLOCK: [(&str, &str); 4] = [("fuel", "1e12"), ("memory", "64MiB"), ("compute", "200ms"), ("total", "120s")];

/// Maximum processor time of a program under [`BY_CLOCK`], in milliseconds: the limit plus 50 ms. A step of an
/// unoptimised build takes about four times as long, and unoptimised builds run on machines that are slow at times;
/// there, the bound only tells a late program from a runaway one.
const IN_TIME: u64 = if cfg!(debug_assertions) { 200 + 2_000 } else { 200 + 50 };

/// Maximum number of runs of a program that is late.
const TRIES: u32 = 4;

/// Longer than any program may take, however busy the machine is; after this time the child is considered hung.
const HANGS: Duration = Duration::from_secs(120);

fn limited(session: &mut Session, program: &str, limits: [(&str, &str); 4]) -> Reply {
    let mut request = Request::new(program);
    for (name, amount) in limits {
        request.limits.set(name, amount).expect("a known limit");
    }
    session.eval(request, common::host())
}

/// Returns the processor time that the process has used, in milliseconds. The kernel counts in hundredths of a second.
fn processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a text");
    let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
    let times = fields.split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<u64>().expect("a number") * 10).sum()
}

/// Returns true if the outcome is the documented one.
fn fits(outcome: &str, expected: &str) -> bool {
    match expected.strip_suffix('…') {
        Some(beginning) => outcome.starts_with(beginning),
        None => outcome == expected,
    }
}

/// Runs a program with little fuel. Returns what is wrong with the outcome, and the bytes that the program took.
fn by_fuel(engine: &Arc<Engine>, program: &Program) -> (Vec<String>, u64) {
    let mut wrong = Vec::new();
    let mut session = engine.session();
    let reply = limited(&mut session, &program.text, BY_FUEL);
    let bytes = reply.spent.memory_bytes;
    if bytes > COUNTED {
        wrong.push(format!("took {bytes} bytes"));
    }
    let outcome = common::outcome(reply);
    if !fits(&outcome, &program.expected) {
        wrong.push(format!("came to {}", beginning(&outcome)));
    }
    let after = common::outcome(limited(&mut session, "(+ 1 1)", BY_FUEL));
    if after != "2" {
        wrong.push(format!("left a session that answers {after}"));
    }
    (wrong, bytes)
}

/// Runs a program with little time. Returns what is wrong with the outcome, and the processor time it took. Retries a
/// late program: the best time counts, so that a busy machine causes no failure.
fn by_clock(engine: &Arc<Engine>, program: &Program) -> (Vec<String>, u64) {
    let mut wrong = Vec::new();
    let mut taken = u64::MAX;
    for _ in 0..TRIES {
        let once = once_by_clock(engine, program);
        wrong.extend(once.0);
        taken = taken.min(once.1);
        if taken <= IN_TIME {
            return (wrong, taken);
        }
    }
    // Retries excuse lateness only.
    wrong.push(format!("took {taken} ms under the clock"));
    (wrong, taken)
}

fn once_by_clock(engine: &Arc<Engine>, program: &Program) -> (Vec<String>, u64) {
    let mut wrong = Vec::new();
    let mut session = engine.session();
    let before = processor();
    let reply = limited(&mut session, &program.text, BY_CLOCK);
    let taken = processor() - before;
    // Drops the garbage of the last form before the next program is measured.
    limited(&mut session, "(+ 1 1)", BY_FUEL);
    let bytes = reply.spent.memory_bytes;
    if bytes > COUNTED {
        wrong.push(format!("took {bytes} bytes under the clock"));
    }
    let outcome = common::outcome(reply);
    let fine = fits(&outcome, &program.expected) || outcome == "limit: compute" || program.expected == "limit: fuel";
    if !fine || outcome == "error: InternalError" {
        wrong.push(format!("came to {} under the clock", beginning(&outcome)));
    }
    (wrong, taken)
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(120)]
}

/// The report of a child about its programs.
#[derive(Default)]
struct Report {
    programs: usize,
    wrong: Vec<String>,
    /// The longest processor time with little fuel, and the place of its program.
    longest: (u64, String),
    /// The longest processor time under the clock, and the place of its program.
    slowest: (u64, String),
    /// The largest memory use in bytes, and the place of its program.
    largest: (u64, String),
    /// Growth of the process, in MiB.
    growth: u64,
    /// The program that the child began last.
    last: String,
}

/// Environment variable that passes the kind of programs to the child.
const CHILD: &str = "LISPBOX_HOSTILE_KIND";

/// Makes glibc's allocator return freed memory to the system, as the allocator of the binary does, so that the memory
/// of the process reflects that of its programs. By default glibc keeps large blocks for reuse.
const RETURNS_MEMORY: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// Runs all programs of a kind in a child process.
fn in_child(kind: &str) -> Report {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "a_child", "--nocapture"])
        .env(CHILD, kind)
        .envs(RETURNS_MEMORY)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut report = Report::default();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("a text");
        let Some((mark, rest)) = line.split_once('\t') else { continue };
        let (number, place) = rest.split_once(' ').unwrap_or((rest, ""));
        let measured = || (number.parse().expect("a number"), place.to_string());
        match mark {
            "began" => report.last = rest.to_string(),
            "wrong" => report.wrong.push(rest.to_string()),
            "spent" => report.longest = measured().max(std::mem::take(&mut report.longest)),
            "bytes" => report.largest = measured().max(std::mem::take(&mut report.largest)),
            "milliseconds" => {
                report.programs += 1;
                report.slowest = measured().max(std::mem::take(&mut report.slowest));
            }
            "growth" => report.growth = measured().0,
            _ => {}
        }
    }
    let output = child.wait_with_output().expect("it ends");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        report.wrong.push(format!("{}: the process ended with {}: {}", report.last, output.status, beginning(&said)));
    }
    if report.growth > GROWTH {
        report.wrong.push(format!("{kind}: the process grew by {} MiB", report.growth));
    }
    report
}

/// Body of the child process that the test below starts; does nothing unless the variable is set.
#[test]
fn a_child() {
    let Ok(kind) = std::env::var(CHILD) else { return };
    let (comes_back, watched) = mpsc::channel();
    std::thread::spawn(move || {
        while watched.recv_timeout(HANGS) != Err(mpsc::RecvTimeoutError::Timeout) {}
        std::process::exit(9);
    });
    let programs = corpus().remove(&kind).expect("a kind");
    let engine = common::engine();
    let run = |program: &Program, measure: &str, run: fn(&Arc<Engine>, &Program) -> (Vec<String>, u64)| {
        comes_back.send(()).expect("someone watches");
        println!("began\t{}", program.place);
        let before = processor();
        let (wrong, measured) = run(&engine, program);
        for wrong in wrong {
            println!("wrong\t{}: {wrong}, not {}: {:?}", program.place, program.expected, beginning(&program.text));
        }
        println!("{measure}\t{measured} {}", program.place);
        if measure == "bytes" {
            println!("spent\t{} {}", processor() - before, program.place);
        }
    };
    limited(&mut engine.session(), "(+ 1 1)", BY_FUEL);
    let before = common::most_memory();
    println!();
    for program in &programs {
        run(program, "bytes", by_fuel);
    }
    println!("growth\t{}", common::most_memory() - before);
    for program in &programs {
        run(program, "milliseconds", by_clock);
    }
}

#[test]
fn hostile_programs_come_to_what_is_said_of_them() {
    let corpus = corpus();
    let total: usize = corpus.values().map(Vec::len).sum();
    assert!(total >= 300, "{total} programs");
    // Starts with the kinds that have the most programs, two at a time.
    let mut kinds: Vec<(usize, String)> =
        corpus.iter().map(|(kind, programs)| (programs.len(), kind.clone())).collect();
    kinds.sort();
    let (waiting, wrong) = (Arc::new(Mutex::new(kinds)), Arc::new(Mutex::new(Vec::new())));
    let worker = |_| {
        let (waiting, wrong) = (waiting.clone(), wrong.clone());
        std::thread::spawn(move || {
            let next = || waiting.lock().expect("not poisoned").pop();
            while let Some((count, kind)) = next() {
                let report = in_child(&kind);
                let ((longest, long), (slowest, slow), (largest, large)) =
                    (&report.longest, &report.slowest, &report.largest);
                println!(
                    "{kind}: {} of {count} programs; slowest {longest} ms ({long}), under the clock {slowest} ms \
                     ({slow}); largest {} MiB ({large}); the process grew by {} MiB",
                    report.programs,
                    largest >> 20,
                    report.growth,
                );
                wrong.lock().expect("not poisoned").extend(report.wrong);
            }
        })
    };
    for worker in [0, 1].map(worker) {
        worker.join().expect("it ends");
    }
    let wrong = wrong.lock().expect("not poisoned");
    assert!(wrong.is_empty(), "{} of {total} programs:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn pieces_are_put_together() {
    assert_eq!(built(r#""(" * 3 + "a{n} " * 2 + ")""#), "(((a0 a1 )");
}
