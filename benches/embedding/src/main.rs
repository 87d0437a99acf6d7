//! Runs all tasks of all engines and prints the table, or with `--times` the table of times; see README.md.

use std::env;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lispbox_embedding::times::table;
use lispbox_embedding::{Done, Engine, Failed, TASKS, engines, memory, version};

/// The memory by which the process may grow in the task `limits`, in KiB.
const MOST_MEMORY: u64 = 64 << 10;

/// The time that the task `deadline` may take: two scripts, of which one stops after 100 ms and the other after 150 ms.
const MOST_TIME: Duration = Duration::from_secs(2);

/// The rounds of `--times` without a number.
const ROUNDS: usize = 9;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        [] => return tasks(),
        ["--times" | table::CHILD, ..] if cfg!(debug_assertions) => Err("times need a build with --release".into()),
        ["--times"] => table::print(ROUNDS),
        ["--times", rounds] => rounds.parse().map_err(Failed::from).and_then(table::print),
        [table::CHILD, engine, part] => table::measure(engine, part),
        _ => Err("the arguments are none, or --times [ROUNDS]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(message)) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all tasks of all engines.
fn tasks() -> ExitCode {
    // One line per panic, without a backtrace: a task that is about panics causes one.
    panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let start = Instant::now();
    let engines = engines();
    let mut failures = Vec::new();
    let mut reasons = Vec::new();
    let mut rows: Vec<String> =
        TASKS.iter().map(|(task, description)| format!("| {description} (`{task}`) ")).collect();
    let mut header = "| task ".to_string();
    for engine in &engines {
        header += &format!("| {} {} ", engine.name, version(engine.name));
        for ((task, _), (run, row)) in TASKS.iter().zip(engine.tasks.iter().zip(&mut rows)) {
            let mut cell = String::new();
            match checked(task, *run) {
                Ok(Done::Yes) => cell = lines(engine, task).to_string(),
                Ok(Done::Partly(reason)) => {
                    cell = format!("{}~", lines(engine, task));
                    reasons.push(format!("- {} `{task}`~: {reason}", engine.name));
                }
                Ok(Done::No(reason)) => {
                    cell += "—";
                    reasons.push(format!("- {} `{task}` —: {reason}", engine.name));
                }
                Err(failure) => failures.push(format!("{} {task}: {failure}", engine.name)),
            }
            *row += &format!("| {cell} ");
        }
    }
    if !failures.is_empty() {
        failures.iter().for_each(|failure| eprintln!("{failure}"));
        return ExitCode::FAILURE;
    }
    println!("{header}|\n|---{}|", "|--:".repeat(engines.len()));
    rows.iter().for_each(|row| println!("{row}|"));
    println!("\n{}\n\nAll tasks ran in {:.1} s.", reasons.join("\n"), start.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

/// Runs a task, and checks what it cannot check itself: its time and its memory.
fn checked(task: &str, run: fn() -> lispbox_embedding::Outcome) -> Result<Done, String> {
    let before = memory("VmRSS:").map_err(|error| error.to_string())?;
    let start = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(run)).map_err(|_| "panicked; the message is above")?;
    let time = start.elapsed();
    let grown = memory("VmHWM:").map_err(|error| error.to_string())?.saturating_sub(before);
    match task {
        "deadline" if time > MOST_TIME => Err(format!("was stopped only after {time:?}")),
        "limits" if grown > MOST_MEMORY => Err(format!("took {grown} KiB of memory")),
        _ => done.map_err(|failed| failed.0),
    }
}

/// Returns the number of lines of a task, without blank lines and comments, from its `fn` to its closing brace.
fn lines(engine: &Engine, task: &str) -> usize {
    let signature = format!("pub fn {task}(");
    let function = engine.source.lines().skip_while(|line| !line.starts_with(&signature));
    let body = function.take_while(|line| *line != "}").map(str::trim);
    body.filter(|line| !line.is_empty() && !line.starts_with("//")).count() + 1
}
