//! Twelve embedding tasks, implemented with several scripting engines.
//!
//! Each engine has a file with twelve functions, one per task, named as in [`TASKS`]. All code that a task needs is
//! inside its function, so that its lines can be counted. The tools and the data of the tasks are here, because a back
//! end has them whatever the engine is.

use std::fmt::Display;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use std::{fs, io};

pub mod hello;
pub mod lispbox;
pub mod mlua;
#[cfg(feature = "monty")]
pub mod monty;
pub mod rhai;
pub mod starlark;
pub mod times;
pub mod wasmtime;

/// The degree to which an engine supports a task.
#[derive(Clone, Copy, Debug)]
pub enum Done {
    /// It does the whole task.
    Yes,
    /// It does the task with this restriction.
    Partly(&'static str),
    /// It cannot do the task, for this reason.
    No(&'static str),
}

/// The message of an error that a task did not expect.
#[derive(Debug)]
pub struct Failed(pub String);

/// Converts the error of any engine, so that a task can use `?`.
impl<E: Display> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed(error.to_string())
    }
}

/// The outcome of a task. A wrong result is a panic.
pub type Outcome = Result<Done, Failed>;

/// An engine and its tasks.
pub struct Engine {
    /// The name of its crate.
    pub name: &'static str,
    /// The source of its tasks.
    pub source: &'static str,
    /// Its tasks, in the order of [`TASKS`].
    pub tasks: [fn() -> Outcome; 12],
}

macro_rules! tasks {
    ($($task:ident: $description:literal,)*) => {
        /// The name of each task, and its description.
        pub const TASKS: [(&str, &str); 12] = [$((stringify!($task), $description)),*];

        macro_rules! engine {
            ($module:ident) => {
                Engine {
                    name: stringify!($module),
                    source: include_str!(concat!(stringify!($module), ".rs")),
                    tasks: [$(crate::$module::$task),*],
                }
            };
        }
    };
}

tasks! {
    typed_function: "a script calls a Rust closure with a capture; integers in and out",
    structs: "a list of structs in, a struct out",
    async_tool: "a script calls an `async` function as a plain function",
    deadline: "an endless script, and one that calls a slow tool, stop after 100 ms",
    cancel: "another thread stops a running script",
    limits: "bounds on instructions and on memory",
    keep_and_restore: "write data and a function out, and read them back in a fresh engine",
    fork: "two independent continuations of one state",
    compile_once: "compile once, run 1,000 times with different parameters",
    record_calls: "name, arguments, result size and time of each call of a tool",
    panic_in_tool: "a tool panics: the run fails with its message, the engine goes on",
    two_threads: "one compiled script on two threads at the same time",
}

/// The engines that are compiled in.
pub fn engines() -> Vec<Engine> {
    vec![
        engine!(lispbox),
        engine!(rhai),
        engine!(mlua),
        engine!(starlark),
        engine!(wasmtime),
        #[cfg(feature = "monty")]
        engine!(monty),
    ]
}

/// The time after which the scripts of the task `deadline` are stopped.
pub const DEADLINE: Duration = Duration::from_millis(100);

/// The tool of the task `deadline`, which returns after the deadline.
pub fn nap() {
    thread::sleep(Duration::from_millis(150));
}

/// The tool of the task `async_tool`.
pub async fn fetch(name: String) -> String {
    tokio::time::sleep(Duration::from_millis(20)).await;
    format!("page of {name}")
}

/// The tool of the task `record_calls`.
pub fn search(query: &str, limit: i64) -> String {
    format!("{limit} mails about {query}")
}

/// The tool of the task `two_threads`: returns when both threads have called it.
pub fn meet(both: &Barrier) {
    both.wait();
}

/// Runs a function on another thread in 20 ms, for the task `cancel`.
pub fn soon(run: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        thread::sleep(Duration::from_millis(20));
        run();
    });
}

/// The input of the task `structs`: of three values of the type `Mail` in scope, the first has both a label and a date.
#[macro_export]
macro_rules! mails {
    () => {
        [
            ("ann", vec!["work"], Some("2026-01-05")),
            ("bob", vec!["work", "urgent"], None),
            ("cy", vec![], Some("2026-02-01")),
        ]
        .into_iter()
        .zip(1..)
        .map(|((sender, labels, sent), id)| Mail {
            id,
            sender: sender.to_string(),
            labels: labels.into_iter().map(str::to_string).collect(),
            sent: sent.map(str::to_string),
        })
        .collect::<Vec<Mail>>()
    };
}

/// Returns the present (`VmRSS:`) or the highest (`VmHWM:`) memory of this process in KiB, and resets the latter when
/// the former is asked for. Systems other than Linux have neither; there the answer is zero.
pub fn memory(field: &str) -> io::Result<u64> {
    if cfg!(not(target_os = "linux")) {
        return Ok(0);
    }
    if field == "VmRSS:" {
        fs::write("/proc/self/clear_refs", "5")?;
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .ok_or_else(|| io::Error::other(field.to_string()))
}

/// Returns the version of a crate in `Cargo.lock`.
pub fn version(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock").split("[[package]]");
    let mut package =
        lock.filter_map(|package| package.trim().strip_prefix("name = \"")?.split_once("\"\nversion = \""));
    package.find(|(package, _)| *package == name).map_or("", |(_, rest)| rest.split('"').next().unwrap_or(""))
}
