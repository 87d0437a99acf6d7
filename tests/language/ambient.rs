//! No ambient authority: a program can reach only what its host provides. The tests try every function and special form
//! of the language, with its own examples and with unintended arguments.

use crate::common;

use common::{Scripted, engine};
use lispbox::lang::{Catalogue, Host, Request, Server, Tool, ToolCall, ToolError, ToolReply};
#[cfg(feature = "cli")]
use serde_json::Value;
use std::collections::BTreeSet;
#[cfg(feature = "cli")]
use std::io::Write;
#[cfg(feature = "cli")]
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Functions that read the clock.
const CLOCK: &[&str] = &[
    "LocalDateTime/now",
    "LocalTime/now",
    "System/nanoTime",
    "Year/now",
    "YearMonth/now",
    "ZonedDateTime/now",
    "java.util.Date.",
    "now",
    "time",
    "time/now",
    "time/today",
];

/// Functions that use random numbers.
const RANDOM: &[&str] = &["rand", "rand-int", "rand-nth", "random-sample", "random-uuid", "shuffle"];

/// A host that records which capabilities a program uses.
struct Watching {
    host: Scripted,
    asked: Mutex<BTreeSet<&'static str>>,
}

impl Watching {
    fn new() -> Watching {
        Watching { host: Scripted::new(), asked: Mutex::default() }
    }

    fn asked(&self, what: &'static str) {
        self.asked.lock().expect("not poisoned").insert(what);
    }
}

impl Host for Watching {
    fn servers(&self) -> Vec<Server> {
        self.host.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.host.tools(server)
    }

    fn catalogue(&self) -> Catalogue {
        self.host.catalogue()
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        self.asked("tool");
        self.host.call(call)
    }

    fn now_millis(&self) -> i64 {
        self.asked("clock");
        self.host.now_millis()
    }

    fn random(&self) -> u64 {
        self.asked("random");
        self.host.random()
    }

    fn monotonic(&self) -> Duration {
        self.host.monotonic()
    }
}

/// Arguments of every type; each function is called with up to three of them.
const ARGUMENTS: [&str; 8] =
    ["\"/etc/passwd\"", "{:path \"/etc\" \"HOME\" 1}", "[3 1 2]", "inc", "5", ":name", "'user", "(atom 1)"];

/// Returns the name of each function and special form, and the programs that try it.
fn trials() -> Vec<(String, Vec<String>)> {
    let engine = engine();
    let mut trials = Vec::new();
    for entry in engine.registry().entries() {
        let mut programs: Vec<String> = entry.examples.iter().map(|(program, _)| program.to_string()).collect();
        for count in 0..4 {
            for first in 0..ARGUMENTS.len() {
                let arguments = (0..count).map(|at| ARGUMENTS[(first + at) % ARGUMENTS.len()]).collect::<Vec<_>>();
                programs.push(format!("({} {})", entry.name, arguments.join(" ")));
                if count == 0 {
                    break;
                }
            }
        }
        trials.push((entry.name.to_string(), programs));
    }
    trials
}

#[test]
fn time_and_randomness_come_through_the_host_alone() {
    let (mut clock, mut random) = (BTreeSet::new(), BTreeSet::new());
    let engine = engine();
    for (name, programs) in trials() {
        let entry = engine.registry().entries().find(|entry| entry.name == name).expect("it is tried");
        let examples: Vec<&str> = entry.examples.iter().map(|(program, _)| &**program).collect();
        for program in &programs {
            let host = Arc::new(Watching::new());
            let mut request = Request::new(program.as_str());
            request.limits.fuel = 200_000;
            let reply = engine.session().eval(request, host.clone());
            let broken = reply.failure.is_some_and(|failure| failure.error == "InternalError");
            assert!(!broken, "{program}");
            // In an example, another function may have used the clock or random numbers.
            let own = !examples.contains(&program.as_str());
            let asked = host.asked.lock().expect("not poisoned");
            assert!(!asked.contains("tool"), "{program}");
            if own && asked.contains("clock") {
                clock.insert(name.clone());
            }
            if own && asked.contains("random") {
                random.insert(name.clone());
            }
        }
    }
    assert_eq!(clock.iter().map(String::as_str).collect::<Vec<_>>(), CLOCK);
    assert_eq!(random.iter().map(String::as_str).collect::<Vec<_>>(), RANDOM);
}

/// Evaluates many programs, each in a fresh environment, in one process with this working directory and these
/// variables.
#[cfg(feature = "cli")]
fn replies(
    programs: &[String],
    arguments: &[&str],
    folder: &std::path::Path,
    variables: &[(&str, &str)],
) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .args(["eval", "--batch", "--limit", "fuel=200000", "--limit", "compute=60s"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("it has an input");
    let lines: String = programs.iter().map(|program| format!("{}\n", Value::from(program.as_str()))).collect();
    let feeding = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    feeding.join().expect("no panic").expect("it reads all");
    let text = String::from_utf8(output.stdout).expect("a text");
    let replies = text.lines().map(|line| {
        let mut reply: Value = serde_json::from_str(line).expect("a record");
        // Each process has its own hash secret, which also affects how full hash tables become.
        for varying in ["compute_ms", "total_ms", "memory_bytes"] {
            reply["spent"][varying] = Value::Null;
        }
        reply
    });
    replies.collect()
}

/// Returns true for a program whose arguments use time or randomness.
#[cfg(feature = "cli")]
fn varies(program: &str) -> bool {
    ["shuffle", "rand", "uuid", "gensym", "now", "today"].iter().any(|word| program.contains(word))
}

/// Returns true for functions that use neither the clock nor random numbers.
#[cfg(feature = "cli")]
fn is_fixed(name: &str) -> bool {
    !CLOCK.contains(&name) && !RANDOM.contains(&name)
}

#[test]
#[cfg(feature = "cli")]
fn answers_do_not_depend_on_the_surroundings_and_do_not_tell_them() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let trials = trials();
    let programs: Vec<String> =
        trials.into_iter().filter(|(name, _)| is_fixed(name)).flat_map(|(_, programs)| programs).collect();
    let one = replies(&programs, &[], folders[0].path(), &[("TZ", "UTC"), ("LANG", "C"), ("HOME", "/")]);
    let surroundings = [
        ("TZ", "Asia/Kathmandu"),
        ("LANG", "tr_TR.UTF-8"),
        ("LC_ALL", "tr_TR.UTF-8"),
        ("HOME", "/home/mustermann"),
        ("USER", "mustermann"),
        ("API_TOKEN", "geheimnis"),
    ];
    let other = replies(&programs, &[], folders[1].path(), &surroundings);
    assert_eq!((one.len(), other.len()), (programs.len(), programs.len()));
    for ((program, one), other) in programs.iter().zip(&one).zip(&other) {
        if !varies(program) {
            assert_eq!(one, other, "{program}");
        }
        let text = other.to_string();
        let folder = folders[1].path().to_string_lossy();
        for secret in ["mustermann", "geheimnis", "Kathmandu", &*folder, "/root", "/proc", ".rs:", "127.0.0.1", "root:"]
        {
            assert!(!text.contains(secret) || program.contains(secret), "{program}: {text}");
        }
    }
}

#[test]
#[cfg(all(feature = "cli", target_os = "linux"))]
fn a_process_that_can_only_compute_gives_the_same_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let trials = trials();
    let programs: Vec<String> = trials
        .into_iter()
        .filter(|(name, _)| is_fixed(name))
        .filter_map(|(_, programs)| programs.into_iter().next())
        .collect();
    let here = replies(&programs, &[], folder.path(), &[]);
    let there = replies(&programs, &["--isolate"], folder.path(), &[]);
    assert_eq!(here.len(), there.len());
    for ((program, here), there) in programs.iter().zip(here).zip(there) {
        if !varies(program) {
            assert_eq!(here, there, "{program}");
        }
    }
}
