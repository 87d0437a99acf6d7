//! Shared by the benchmarks that compare counts with recorded ones: the command line, valgrind, and the tables.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, ExitCode};
use std::str::FromStr;

/// The outcome of a step.
pub type Done<T = ()> = Result<T, Box<dyn Error>>;

/// Counts and compares with the table, or records the counts for `--record`. `own` carries out other arguments, and
/// returns `None` for those that it does not know.
pub fn run<Counts>(
    own: impl FnOnce(&[&str]) -> Option<Done>,
    count: impl FnOnce() -> Done<Counts>,
    check: impl FnOnce(&Counts) -> Done,
    record: impl FnOnce(&Counts) -> Done,
) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["--record"] => count().and_then(|counts| record(&counts)),
        [] => count().and_then(|counts| check(&counts)),
        _ => own(&arguments).unwrap_or_else(|| {
            println!("nothing is counted: of {arguments:?} this knows only `--record`");
            Ok(())
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the command under which a program's instructions are counted; the program and its arguments follow.
pub fn valgrind() -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--fair-sched=try"]);
    // Disables the time-based release of memory to the system.
    valgrind.env("MIMALLOC_PURGE_DELAY", "-1");
    valgrind
}

/// Returns the number of instructions in a report of valgrind.
pub fn instructions(report: &str) -> Option<u64> {
    let count = report.lines().find_map(|line| line.split_once("I   refs:").or_else(|| line.split_once("I refs:")));
    count.and_then(|(_, count)| count.trim().replace(',', "").parse().ok())
}

/// Parses the counts in a table.
pub fn recorded<Count: FromStr>(table: &str) -> BTreeMap<String, Count> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit_once(" | "));
    rows.filter_map(|(name, count)| Some((name.to_owned(), count.trim().replace(',', "").parse().ok()?))).collect()
}
