//! What is measured: programs in a warm session with every limit on, each with the answer that it must give.
//!
//! `language.rs` takes their time, `instructions/` counts their instructions.
#![allow(dead_code, reason = "each measurement uses its part")]

mod collections;
mod evaluation;
mod formats;
mod sequences;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lispbox::lang::meter::Metered;
use lispbox::lang::{Engine, Host, Limits, Reply, Request, Session, ToolCall, ToolReply};
use mimalloc::MiMalloc;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: Metered<MiMalloc> = Metered::new(MiMalloc);

/// A program of some hundred lines as agents write them: definitions, and nothing that computes.
pub const DEFINITIONS: &str = include_str!("report.clj");

/// Ten thousand mails as text (`json`, 1.3 MB) and as data (`mails`), and as many numbers (`numbers`).
pub const DATA: &str = r#"
(def json
  (json/write
    (for [i (range 10000)]
      {:id i
       :sender {:name (str "Customer " (mod i 97)) :email (str "customer-" (mod i 97) "@example.org")}
       :subject (str "Invoice " (mod i 500))
       :unread (even? i)
       :size (/ (mod (* i 7919) 10007) 4.0)})))
(def mails (json/parse json))
(def numbers (vec (range 10000)))
"#;

/// How often [`each`] computes its expression.
const TIMES: u64 = 10_000;

/// A program to measure.
pub struct Program {
    /// What the tables call it.
    pub name: &'static str,
    /// What its session holds before.
    given: &'static str,
    /// What is measured.
    text: String,
    /// What comes out.
    answer: &'static str,
    /// How many of what its name says are done.
    pub operations: u64,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Program {
    /// A session in which the program has run once.
    ///
    /// # Panics
    /// If it answers anything else than it should.
    pub fn session(&self) -> Session {
        let mut session = engine().session();
        answered(session.eval(request(self.given), host()));
        let answer = answered(session.eval(self.request(), host()));
        assert_eq!(answer, self.answer, "{}", self.name);
        session
    }

    /// The request that is measured.
    pub fn request(&self) -> Request {
        request(&self.text)
    }
}

/// The programs of one part of the language.
pub fn part(name: &str) -> Vec<Program> {
    match name {
        "evaluation" => evaluation::programs(),
        "collections" => collections::programs(),
        "sequences" => sequences::programs(),
        "text" => text::programs(),
        "formats" => formats::programs(),
        _ => panic!("there are no programs about {name}"),
    }
}

/// The program of that name in one part of the language.
pub fn find(part: &str, name: &str) -> Option<Program> {
    self::part(part).into_iter().find(|program| program.name == name)
}

/// A program that is one operation, or so many.
fn whole(name: &'static str, given: &'static str, text: &str, answer: &'static str, operations: u64) -> Program {
    Program { name, given, text: text.to_string(), answer, operations }
}

/// A program that computes an expression ten thousand times, with `i` counting up; the answer is the last one's.
/// What the loop itself takes is measured as `nothing`.
fn each(name: &'static str, given: &'static str, expression: &str, answer: &'static str) -> Program {
    let text = format!("(loop [i 0 last nil] (if (< i {TIMES}) (recur (inc i) {expression}) last))");
    Program { name, given, text, answer, operations: TIMES }
}

/// An engine that keeps the limit of memory.
pub fn engine() -> Arc<Engine> {
    Engine::builder().build().expect("the metering allocator is installed above")
}

/// A request with the limits that programs have, and time for whatever counts their instructions.
pub fn request(program: &str) -> Request {
    let limits = Limits { compute: Duration::from_secs(60), ..Limits::default() };
    Request { limits, ..Request::new(program) }
}

/// What was answered.
///
/// # Panics
/// If that is an error.
pub fn answered(reply: Reply) -> String {
    match reply.failure {
        Some(failure) => panic!("{}", failure.rendered),
        None => reply.value.unwrap_or_default(),
    }
}

/// A world without tools.
pub fn host() -> Arc<dyn Host> {
    Arc::new(World { begun: Instant::now() })
}

struct World {
    begun: Instant,
}

impl Host for World {
    fn call(&self, _: ToolCall) -> ToolReply {
        ToolReply::Denied("there are no tools".to_string())
    }

    fn now_millis(&self) -> i64 {
        1_750_000_000_000
    }

    fn random(&self) -> u64 {
        4
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }
}
