//! The measurements of one engine. Each runs in a process of its own, which prints them for [`super::table`].

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::clock::Stopwatch;
use super::{BONUS, CALLS, Subject, orders, quote};
use crate::{Failed, hello, memory};

/// The unit of a measurement.
#[derive(Clone, Copy)]
pub enum Unit {
    /// A time.
    Seconds,
    /// A size in memory or of what is written.
    Bytes,
}

/// The rows of the table: a name, a description and a unit.
pub const ROWS: [(&str, &str, Unit); 9] = [
    ("first", "*hello*: an engine, and `1 + 1` in it, first in a process", Unit::Seconds),
    ("hello", "the same again in that process", Unit::Seconds),
    ("session", "a *session* more, created and dropped", Unit::Seconds),
    ("fresh", "memory of each of 10,000 of them", Unit::Bytes),
    ("used", "the same after a first program, which defines a number", Unit::Bytes),
    (
        "run",
        "*run*: 100 orders from the host, the program from its text, the sum of those that are paid",
        Unit::Seconds,
    ),
    ("call", "*tool call* with a struct, which returns one", Unit::Seconds),
    ("suspend", "*suspend and resume*: the same run, stopped at a call, written, read, resumed", Unit::Seconds),
    ("written", "what is written for that", Unit::Bytes),
];

/// The time for which a measurement is repeated.
const TIME: Duration = Duration::from_millis(150);

/// The number of sessions whose memory is measured.
const SESSIONS: usize = 10_000;

/// An engine that is measured.
pub struct Measured {
    /// The name of its crate.
    pub name: &'static str,
    /// Measures its times.
    pub times: fn() -> Result<Figures, Failed>,
    /// Measures its memory.
    pub memory: fn() -> Result<Figures, Failed>,
    /// The reason why it has no row for suspended runs.
    pub unable: Option<&'static str>,
    /// Restrictions.
    pub notes: &'static [&'static str],
}

/// The names of measurements, and their results in the unit of [`ROWS`].
pub type Figures = Vec<(&'static str, f64)>;

macro_rules! measured {
    ($module:ident, $subject:ident) => {
        Measured {
            name: stringify!($module),
            times: || times::<super::$module::$subject>(|| Ok(hello::$module::hello()?)),
            memory: sizes::<super::$module::$subject>,
            unable: <super::$module::$subject as Subject>::SUSPEND.err(),
            notes: <super::$module::$subject as Subject>::NOTES,
        }
    };
}

/// The engines that are compiled in; lispbox is the first.
pub fn measured() -> Vec<Measured> {
    vec![
        measured!(lispbox, Lispbox),
        measured!(rhai, Rhai),
        measured!(mlua, Mlua),
        measured!(starlark, Starlark),
        measured!(wasmtime, Wasmtime),
        #[cfg(feature = "monty")]
        measured!(monty, Monty),
    ]
}

/// Measures the times of an engine, and checks all results.
fn times<S: Subject>(hello: fn() -> Result<i64, Failed>) -> Result<Figures, Failed> {
    let start = Stopwatch::start();
    equal(hello()?, 2)?;
    let mut figures = vec![("first", start.taken().cpu.as_secs_f64())];
    figures.push(("hello", median(20, || Ok(()), |()| equal(hello()?, 2))?));

    let subject = S::new()?;
    let defined = || {
        let mut session = subject.session()?;
        subject.define(&mut session)?;
        Ok(session)
    };
    let session = |(): &mut ()| {
        black_box(subject.session()?);
        Ok(())
    };
    figures.push(("session", median(500, || Ok(()), session)?));

    let orders = orders();
    let total = BONUS + orders.iter().filter(|order| order.paid).map(|order| order.amount).sum::<i64>();
    let run = |session: &mut S::Session| equal(subject.run(session, &orders)?, total);
    figures.push(("run", median(100, defined, run)?));

    let prices = (0..CALLS).map(|amount| quote(&super::Quote { customer: String::new(), amount, express: false }));
    let prices: i64 = prices.map(|price| price.net + price.shipping).sum();
    let calls = |session: &mut S::Session| equal(subject.calls(session)?, prices);
    figures.push(("call", median(1, defined, calls)? / CALLS as f64));

    if let Ok(suspend) = S::SUSPEND {
        let mut written = 0;
        let resume = |session: &mut Option<S::Session>| {
            let (answer, bytes) = suspend(&subject, session.take().ok_or("used once")?, &orders)?;
            written = bytes;
            equal(answer, total)
        };
        figures.push(("suspend", median(1, || defined().map(Some), resume)?));
        figures.push(("written", written as f64));
    }
    Ok(figures)
}

/// Measures the memory that sessions keep resident, before and after their first program.
fn sizes<S: Subject>() -> Result<Figures, Failed> {
    let subject = S::new()?;
    let mut sessions = Vec::with_capacity(2 * SESSIONS);
    // The first half takes what the process has free, and what the engine creates with its first session.
    for _ in 0..SESSIONS {
        let mut session = subject.session()?;
        subject.define(&mut session)?;
        sessions.push(session);
    }
    let before = memory("VmRSS:")?;
    for _ in 0..SESSIONS {
        sessions.push(subject.session()?);
    }
    let fresh = memory("VmRSS:")?;
    for session in &mut sessions[SESSIONS..] {
        subject.define(session)?;
    }
    let used = memory("VmRSS:")?;
    let each = |now: u64| now.saturating_sub(before) as f64 * 1024.0 / SESSIONS as f64;
    Ok(vec![("fresh", each(fresh)), ("used", each(used))])
}

/// Repeats a step in batches, each with a state of its own, whose creation is not measured. Returns the median of the
/// batches, in seconds of processor time per step; the first batch does not count.
fn median<T>(
    batch: u32,
    mut state: impl FnMut() -> Result<T, Failed>,
    mut step: impl FnMut(&mut T) -> Result<(), Failed>,
) -> Result<f64, Failed> {
    let (end, mut times) = (Instant::now() + TIME, Vec::new());
    while times.len() < 6 || Instant::now() < end {
        let mut state = state()?;
        let start = Stopwatch::start();
        for _ in 0..batch {
            step(&mut state)?;
        }
        times.push(start.taken().each(batch).cpu.as_secs_f64());
    }
    Ok(super::table::middle(times.split_off(1)))
}

/// Fails unless a program has returned the right number.
fn equal(answer: i64, right: i64) -> Result<(), Failed> {
    if answer == right { Ok(()) } else { Err(format!("a program returned {answer} in place of {right}").into()) }
}
