//! Sessions that send good and hostile programs through a server at the same time, while its workers and its downstream
//! servers are killed. Every request must be answered exactly once, no answer may be wrong, and no resource may grow.
//!
//! Five seconds by default, or until each kind of outcome has occurred. `LISPBOX_SOAK_SECONDS=1200 cargo test --release --test soak -- --nocapture --test-threads 1`
//! runs longer and prints the summaries; `LISPBOX_SOAK_SEED` repeats the requests of an earlier run. A seed that has
//! failed is kept in `seeds.txt` and repeated by each run of the tests.
#![cfg(feature = "cli")]

mod chaos;
mod client;
#[path = "../common/mod.rs"]
mod common;
mod field;
mod jobs;
mod ledger;
#[path = "../../src/bin/lispbox/sample_mailbox/mailbox/mod.rs"]
mod mailbox;
mod processes;
mod run;
mod session;
mod summary;
mod tally;
mod watch;

use std::path::Path;
use std::time::Duration;

use run::Soak;
use summary::Summary;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// The seeds of earlier failures.
fn kept_seeds() -> impl Iterator<Item = u64> {
    let lines = include_str!("seeds.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.parse().expect("a line of seeds.txt is a number or a comment"))
}

fn soak(sessions: usize, isolated: bool) -> Summary {
    let any = || getrandom::u64().expect("a random number") >> 32;
    soak_with(setting("LISPBOX_SOAK_SEED").unwrap_or_else(any), sessions, isolated)
}

fn soak_with(seed: u64, sessions: usize, isolated: bool) -> Summary {
    let duration = Duration::from_secs(setting("LISPBOX_SOAK_SECONDS").unwrap_or(5));
    let soak = Soak { duration, sessions, isolated, seed };
    let summary = soak.run(Path::new(env!("CARGO_BIN_EXE_lispbox"))).expect("the server starts");
    summary.show();
    summary
}

fn adds_up(summary: &Summary) {
    assert_eq!(summary.failings(), Vec::<String>::new());
    let (account, tally) = (&summary.account, &summary.tally);
    assert_eq!((account.unanswered, account.faults, tally.wrong, summary.ending.left), (0, 0, 0, 0));
    assert_eq!(account.replies, account.requests - (account.withdrawn - account.withdrawn_answered));
    let counts = tally.kinds();
    assert!(!counts.contains(&0), "values, limits, errors, refusals, sessions, looks: {counts:?}");
    assert!(tally.lost <= summary.killed_workers);
    assert!(summary.killed_workers + summary.killed_servers > 0 || cfg!(not(target_os = "linux")));
}

#[test]
fn in_worker_processes_where_there_are_any() {
    adds_up(&soak(8, cfg!(target_os = "linux")));
}

#[test]
fn in_the_process_of_the_server() {
    let summary = soak(4, false);
    assert_eq!(summary.killed_workers, 0);
    adds_up(&summary);
}

#[test]
fn with_the_seeds_of_earlier_failures() {
    kept_seeds().for_each(|seed| adds_up(&soak_with(seed, 8, cfg!(target_os = "linux"))));
}
