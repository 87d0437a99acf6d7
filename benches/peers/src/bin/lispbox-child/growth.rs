//! Measures one row of the table of growth.

use crate::peer::{Lispbox, Running};
use crate::tools::Tools;
use lispbox::lang::Limits;
use lispbox_peers::child::{LONGEST, Meaning, Session, resident_kib};
use lispbox_peers::clock::{Stopwatch, Taken};
use lispbox_peers::growth::Growth;
use lispbox_peers::inputs::{lines, mails};
use lispbox_peers::workload::{Language, Workload};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The number of calls of one tool.
const CALLS: u32 = 100_000;
/// The number of fresh environments, after a tenth as many for warm-up.
const ENVIRONMENTS: u32 = 2_000;
/// The total number of evaluations in all sessions.
const EVALUATIONS: u32 = 20_000;
/// The number of mails in each session, as in a small page of mails with a function.
const HELD_MAILS: usize = 20;

/// The result of a measurement.
struct Row {
    taken: Taken,
    /// The number of units by which the time is divided.
    units: u64,
    /// Live bytes according to the meter, per holder.
    bytes: Option<u64>,
    /// Growth of the resident memory of the process, per holder.
    resident: Option<u64>,
}

/// Measures a row and prints it as one line of JSON; returns the exit code of the child.
pub fn report(growth: Growth, size: usize) -> ExitCode {
    match measured(growth, size) {
        Ok(row) => {
            let mut record = row.taken.record();
            record.insert("units".to_string(), json!(row.units));
            record.insert("bytes".to_string(), json!(row.bytes));
            record.insert("resident".to_string(), json!(row.resident));
            println!("{}", Value::Object(record));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// The limits, which are on and exceed the largest size.
fn limits() -> Limits {
    Limits {
        fuel: 10_000_000_000,
        memory: 4 << 30,
        session: 4 << 30,
        compute: LONGEST,
        calls: CALLS,
        ..Limits::default()
    }
}

fn measured(growth: Growth, size: usize) -> Result<Row, String> {
    let peer = |tools| Lispbox::new(tools, limits());
    match growth {
        Growth::Calls => calls(&peer(Tools::many(0))?, size),
        Growth::Mails => filtered(&peer(Tools::many(0))?, mails(size, 500), size),
        Growth::Senders => filtered(&peer(Tools::many(0))?, mails(100_000, size), 100_000),
        Growth::Lines => counted(&peer(Tools::many(0))?, size),
        Growth::Tools => tool_calls(&peer(Tools::many(size))?, &Tools::last(size)),
        Growth::ToolsUnused => environments(&peer(Tools::many(size))?, "(+ 1 1)", "2"),
        Growth::ToolsUsed => {
            environments(&peer(Tools::many(size))?, &format!("({} {{:a 1 :b 1}})", Tools::last(size)), "2")
        }
        Growth::Sessions => sessions(&peer(Tools::many(0))?, size),
    }
}

/// Runs a program; the time, and the peak memory if requested, is divided by `units`.
fn timed(session: &mut Running, program: &str, units: usize, with_memory: bool) -> Result<Row, String> {
    let watch = Stopwatch::start();
    let reply = session.eval(program, None)?;
    let taken = watch.taken();
    let units = units as u64;
    Ok(Row { taken, units, bytes: with_memory.then(|| reply.spent.memory_bytes / units), resident: None })
}

/// A binary tree of calls, of the depth at which there are about `size` calls.
fn calls(peer: &Lispbox, size: usize) -> Result<Row, String> {
    let depth = size.ilog2();
    let program = format!(
        "(defn leaves [n] (if (< n 2) 1 (+ (leaves (- n 1)) (leaves (- n 1)))))\n\
         (assert (= {} (leaves {depth})))",
        size / 2
    );
    timed(&mut peer.environment(), &program, size - 1, false)
}

fn filtered(peer: &Lispbox, text: String, mails: usize) -> Result<Row, String> {
    let mut session = peer.environment();
    session.give(text, Meaning::Json)?;
    session.parse()?;
    timed(&mut session, Language::Lisp.program(Workload::MailsFromValues), mails, true)
}

fn counted(peer: &Lispbox, size: usize) -> Result<Row, String> {
    let mut session = peer.environment();
    session.give(lines(size), Meaning::Words)?;
    timed(&mut session, Language::Lisp.program(Workload::Words), size, true)
}

fn tool_calls(peer: &Lispbox, tool: &str) -> Result<Row, String> {
    let program = format!(
        "(loop [i 0 total 0]\n  (if (< i {CALLS})\n    (recur (inc i) (+ total ({tool} {{:a i :b 2}})))\n    total))"
    );
    timed(&mut peer.environment(), &program, CALLS as usize, false)
}

fn environments(peer: &Lispbox, program: &str, expected: &str) -> Result<Row, String> {
    let several = |count: u32| {
        for _ in 0..count {
            let answer = peer.environment().run(program)?;
            if answer != expected {
                return Err(format!("{program} is {answer}"));
            }
        }
        Ok(())
    };
    several(ENVIRONMENTS / 10)?;
    let watch = Stopwatch::start();
    several(ENVIRONMENTS)?;
    Ok(Row { taken: watch.taken(), units: u64::from(ENVIRONMENTS), bytes: None, resident: None })
}

fn sessions(peer: &Lispbox, size: usize) -> Result<Row, String> {
    let data = mails(HELD_MAILS, HELD_MAILS);
    let begin = || {
        let mut session = peer.environment();
        session.eval("(defn unread [mails] (filter :unread mails))", Some(data.clone()))?;
        Ok::<_, String>(session)
    };
    // The memory of threads and of the language's tables must not be attributed to sessions.
    drop(begin()?);
    let before = resident_kib();
    let mut held = (0..size).map(|_| begin()).collect::<Result<Vec<_>, String>>()?;
    let rounds = EVALUATIONS.div_ceil(size as u32);
    let watch = Stopwatch::start();
    for _ in 0..rounds {
        for session in &mut held {
            session.eval("(count (unread (:mails data)))", None)?;
        }
    }
    let taken = watch.taken();
    let grown = resident_kib().zip(before).map(|(after, before)| after.saturating_sub(before) * 1024);
    let bytes = held.iter().map(Running::live_bytes).sum::<u64>() / size as u64;
    Ok(Row {
        taken,
        units: u64::from(rounds) * size as u64,
        bytes: Some(bytes),
        resident: grown.map(|grown| grown / size as u64),
    })
}
