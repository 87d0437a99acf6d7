//! The measured programs: they run in a warm session with all limits on, and each has an expected answer.
//!
//! `language.rs` measures their time, `instructions/` counts their instructions.
#![allow(dead_code, reason = "each measurement uses its part")]

mod collections;
mod evaluation;
mod formats;
mod sequences;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lispbox::lang::Metered;
use lispbox::lang::{Engine, Host, Limits, Reply, Request, Session, ToolCall, ToolReply};
use mimalloc::MiMalloc;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: Metered<MiMalloc> = Metered::new(MiMalloc);

/// A program of some hundred lines as agents write them: only definitions, no computation.
pub const DEFINITIONS: &str = include_str!("report.clj");

/// Ten thousand mails as text (`json`, 1.3 MB) and as data (`mails`), and ten thousand numbers (`numbers`).
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

/// The number of times that [`each`] computes its expression.
const TIMES: u64 = 10_000;

/// A measured program.
pub struct Program {
    /// The name in the tables.
    pub name: &'static str,
    /// The definitions that its session contains beforehand.
    given: &'static str,
    /// The measured text.
    text: String,
    /// The expected answer.
    answer: &'static str,
    /// The number of operations, in the unit of the name.
    pub operations: u64,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Program {
    /// Creates a session in which the program has run once.
    ///
    /// # Panics
    /// Panics if the answer is not the expected one.
    pub fn session(&self) -> Session {
        let mut session = engine().session();
        answered(session.eval(request(self.given), host()));
        let answer = answered(session.eval(self.request(), host()));
        assert_eq!(answer, self.answer, "{}", self.name);
        session
    }

    /// The measured request.
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

/// Finds a program by name in one part of the language.
pub fn find(part: &str, name: &str) -> Option<Program> {
    self::part(part).into_iter().find(|program| program.name == name)
}

/// A program that performs `operations` operations.
fn whole(name: &'static str, given: &'static str, text: &str, answer: &'static str, operations: u64) -> Program {
    Program { name, given, text: text.to_string(), answer, operations }
}

/// A program that computes an expression ten thousand times, with `i` counting up; the answer is that of the last
/// iteration. The cost of the loop itself is measured as `nothing`.
fn each(name: &'static str, given: &'static str, expression: &str, answer: &'static str) -> Program {
    let text = format!("(loop [i 0 last nil] (if (< i {TIMES}) (recur (inc i) {expression}) last))");
    Program { name, given, text, answer, operations: TIMES }
}

/// An engine that enforces memory limits.
pub fn engine() -> Arc<Engine> {
    Engine::builder().build().expect("the metering allocator is installed above")
}

/// A request with the default limits, but with enough time for instruction counting.
pub fn request(program: &str) -> Request {
    let limits = Limits { compute: Duration::from_secs(60), ..Limits::default() };
    Request { limits, ..Request::new(program) }
}

/// The text of the answer.
///
/// # Panics
/// Panics if the reply is an error.
pub fn answered(reply: Reply) -> String {
    match reply.failure {
        Some(failure) => panic!("{}", failure.rendered),
        None => reply.value.unwrap_or_default(),
    }
}

/// A host without tools.
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
