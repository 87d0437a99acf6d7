//! Measures how promptly limits and cancellations take effect: runs the corpus of hostile programs with little time,
//! stopped once by the time limit and once by the caller, and reports the lateness of each.
//!
//! `cargo run --release --example promptness`

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::hostile::{Program, corpus};
use lispbox::lang::{Engine, Limits, Request};

/// The time after which each program is stopped.
const STOP: Duration = Duration::from_millis(100);

fn main() {
    let engine = common::engine();
    let programs: Vec<Program> = corpus().into_values().flatten().collect();
    println!("{} programs, each stopped after {STOP:?}", programs.len());
    for (what, run) in
        [("by the clock", by_clock as fn(&Arc<Engine>, &Program) -> Duration), ("by the caller", by_caller)]
    {
        let mut late: Vec<(Duration, &str)> = programs
            .iter()
            .map(|program| (run(&engine, program), program.place.as_str()))
            .filter(|(taken, _)| *taken >= STOP)
            .map(|(taken, place)| (taken - STOP, place))
            .collect();
        late.sort();
        let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize].0;
        println!(
            "{what}: {} were stopped; late by {:.1?} (median), {:.1?} (p90), {:.1?} (p99), {:.1?} at most",
            late.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0),
        );
        for (late, place) in late.iter().rev().take(10) {
            println!("  {late:.1?} {place}");
        }
    }
}

fn endless() -> Limits {
    Limits { fuel: 1_000_000_000_000, memory: 64 << 20, ..Limits::default() }
}

fn by_clock(engine: &Arc<Engine>, program: &Program) -> Duration {
    let mut request = Request::new(&program.text);
    request.limits = Limits { compute: STOP, ..endless() };
    let mut session = engine.session();
    let begun = Instant::now();
    session.eval(request, common::host());
    begun.elapsed()
}

fn by_caller(engine: &Arc<Engine>, program: &Program) -> Duration {
    let mut request = Request::new(&program.text);
    request.limits = Limits { compute: Duration::from_secs(60), ..endless() };
    let host = Arc::new(common::Scripted::new());
    let mut session = engine.session();
    std::thread::scope(|scope| {
        let caller = host.clone();
        scope.spawn(move || {
            std::thread::sleep(STOP);
            caller.cancelled.store(true, Ordering::Relaxed);
        });
        let begun = Instant::now();
        session.eval(request, host);
        begun.elapsed()
    })
}
