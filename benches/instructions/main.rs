//! Counts the instructions of programs and compares them with the recorded counts in `counts.md` in this folder.
//!
//! `cargo bench --bench instructions` fails if a program takes 5% more instructions than
//! recorded; with `-- --record` it records the current counts.
//!
//! Each program runs under valgrind in two processes, once in one and twice in the other; the difference is its count,
//! so that the start and the definitions are excluded. The count of a short program is the mean of many runs, since the
//! allocator's work in a single one varies. Hash seeds are fixed, so that hash tables are identical in every run.

#[path = "../counts/mod.rs"]
mod counts;
#[path = "../programs/mod.rs"]
mod programs;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::sync::Mutex;

use programs::{answered, host, request};

/// Permitted difference from the recorded count, in percent.
const TOLERANCE: f64 = 5.0;

/// Fewer instructions than this are counted over many runs.
const SHORT: u64 = 1_000_000;

/// The file with the recorded counts.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/counts.md");

/// The counted programs, by part of `benches/programs`.
const COUNTED: &[(&str, &str)] = &[
    ("evaluation", "fib 20, each call"),
    ("evaluation", "loop of 100,000"),
    ("evaluation", "call of 3 arguments"),
    ("evaluation", "closure made and called"),
    ("evaluation", "let of a map's parts"),
    ("evaluation", "keyword looked up"),
    ("evaluation", "map of 3 made"),
    ("evaluation", "error thrown and caught"),
    ("evaluation", "minimal program"),
    ("evaluation", "program of 100 lines"),
    ("collections", "get, large map"),
    ("collections", "assoc of a key, small map"),
    ("collections", "update-in, small maps"),
    ("collections", "conj, large vector that is kept"),
    ("collections", "conj, a vector grown to 10,000"),
    ("collections", "assoc, a map grown to 10,000"),
    ("sequences", "reduce with a function"),
    ("sequences", "map, filter, map with functions"),
    ("sequences", "group-by"),
    ("sequences", "sort-by"),
    ("text", "format"),
    ("text", "re-find with groups"),
    ("text", "str/split of 10,000 parts"),
    ("formats", "JSON in"),
    ("formats", "JSON out"),
    ("formats", "CSV in"),
    ("formats", "printed"),
];

/// The number of instructions of each program.
type Counts = BTreeMap<String, u64>;

/// Replaces the source of the standard library's random seeds.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller guarantees that `buffer` points to `length` writable bytes.
    unsafe { buffer.write_bytes(4, length) };
    length.cast_signed()
}

fn main() -> ExitCode {
    let own = |arguments: &[&str]| match *arguments {
        ["--run", part, name, times] => Some(run(part, name, times)),
        _ => None,
    };
    counts::run(own, count_all, check, record)
}

/// Runs a program once and then `times` more times; this process is what valgrind measures.
fn run(part: &str, name: &str, times: &str) -> Result<(), Box<dyn Error>> {
    let program = programs::find(part, name).ok_or("there is no such program")?;
    let mut session = program.session();
    // Clears `*1`, `*2` and `*3`, so that the last results are dropped before the process ends.
    let last = std::iter::repeat_n("nil", 4).map(request);
    for request in std::iter::repeat_n(program.request(), times.parse()?).chain(last) {
        answered(session.eval(request, host()));
    }
    Ok(())
}

/// Counts all programs, as many in parallel as there are processors.
fn count_all() -> Result<Counts, Box<dyn Error>> {
    let left = Mutex::new(COUNTED.iter());
    let counts = Mutex::new(Ok(Counts::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let next = || left.lock().expect("not poisoned").next();
                while let Some((part, name)) = next() {
                    let counted = count(part, name);
                    let mut counts = counts.lock().expect("not poisoned");
                    match (&mut *counts, counted) {
                        (Ok(counts), Ok(count)) => drop(counts.insert((*name).to_string(), count)),
                        (Ok(_), Err(problem)) => *counts = Err(problem),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    Ok(counts.into_inner()??)
}

/// The instructions of one run of a program that has run before.
fn count(part: &str, name: &str) -> Result<u64, String> {
    let once = instructions(part, name, 0)?;
    let more = |times: u64| {
        let all = instructions(part, name, times)?;
        let more = all.checked_sub(once).ok_or_else(|| format!("{name}: nothing was counted ({once}, {all})"))?;
        Ok(more / times)
    };
    match more(1)? {
        count if count < SHORT => more(1_000),
        count => Ok(count),
    }
}

/// The instructions of a whole process that runs a program `times` additional times.
fn instructions(part: &str, name: &str, times: u64) -> Result<u64, String> {
    let executable = std::env::current_exe().map_err(|problem| problem.to_string())?;
    let output =
        counts::valgrind().arg(executable).args(["--run", part, name, &times.to_string()]).output().map_err(
            |problem| format!("valgrind does not start: {problem}; install it (`apt-get install valgrind`)"),
        )?;
    let report = String::from_utf8_lossy(&output.stderr);
    match counts::instructions(&report) {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("{name}: valgrind counted nothing ({})\n{report}", output.status)),
    }
}

/// Compares the counts with the table.
fn check(counts: &Counts) -> Result<(), Box<dyn Error>> {
    let table = std::fs::read_to_string(TABLE)?;
    let recorded: Counts = counts::recorded(&table);
    let (mut more, mut others) = (0, 0);
    for (name, count) in counts {
        let Some(before) = recorded.get(name) else {
            println!("{name}: {}, which is not written down", thousands(*count));
            others += 1;
            continue;
        };
        let change = (*count as f64 / *before as f64 - 1.0) * 100.0;
        println!("{change:+6.1}%  {:>12}  {name}", thousands(*count));
        if change > TOLERANCE {
            more += 1;
        } else if change < -TOLERANCE {
            others += 1;
        }
    }
    others += recorded.keys().filter(|name| !counts.contains_key(*name)).count();
    if others > 0 {
        println!(
            "{others} programs take less than is written down, are new, or are gone; record them anew:\n{}",
            how()
        );
    }
    if more > 0 {
        let toolchain = toolchain();
        let other = if table.contains(&toolchain) { "" } else { ", which was recorded with another compiler" };
        return Err(format!(
            "{more} programs take over {TOLERANCE}% more instructions with {toolchain} than in counts.md{other}. \
             If that is meant, record them anew:\n{}",
            how()
        )
        .into());
    }
    println!("{} programs take what they took", counts.len());
    Ok(())
}

/// The command that records the counts.
fn how() -> &'static str {
    "  cargo bench --bench instructions -- --record"
}

/// Writes the table.
fn record(counts: &Counts) -> Result<(), Box<dyn Error>> {
    let mut table = format!(
        "# Instruction counts\n\n\
         How many instructions the programs of `benches/programs/` take in a session that has run them before, as \
         valgrind counts them. `.ci/run` fails when one takes {TOLERANCE}% more. After a change that is meant to \
         change them, record them anew:\n\n```sh\n{}\n```\n\nRecorded with {}.\n\n| program | instructions |\n|---|--:|\n",
        how().trim_start(),
        toolchain()
    );
    for (_, name) in COUNTED {
        writeln!(table, "| {name} | {} |", thousands(counts[*name]))?;
    }
    std::fs::write(TABLE, table)?;
    println!("{} programs are written down in {TABLE}", counts.len());
    Ok(())
}

/// The compiler and the target processor.
fn toolchain() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    format!("{} for {}", version.unwrap_or_else(|_| "an unknown rustc".to_string()), std::env::consts::ARCH)
}

/// Formats a number with thousands separators.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
