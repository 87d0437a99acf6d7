//! What embedding an engine costs: times and memory of the same work, written with each engine.
//!
//! The work is that of a service with one engine and a session per user. [`measure`] takes the times of one engine,
//! [`table`] runs it for all of them in turns and prints the medians.

use crate::Failed;

#[path = "../../../peers/src/clock.rs"]
pub mod clock;
pub mod data;
pub mod lispbox;
pub mod measure;
pub mod mlua;
#[cfg(feature = "monty")]
pub mod monty;
pub mod rhai;
pub mod starlark;
pub mod table;
pub mod wasmtime;

pub use data::{Order, Price, Quote, orders, quote};

/// An engine as a service uses it: with the tool [`quote`], and with limits on work and memory that it never reaches.
pub trait Subject: Sized {
    /// The state of a user, which lasts from run to run.
    type Session;

    /// The way to suspend a run and to continue it from text or bytes, or the reason why there is none.
    const SUSPEND: Result<Suspend<Self>, &'static str>;

    /// Restrictions, and what is not as the reader expects.
    const NOTES: &'static [&'static str];

    /// What the service creates once.
    fn new() -> Result<Self, Failed>;

    /// The state of one more user, whose programs can call the tool.
    fn session(&self) -> Result<Self::Session, Failed>;

    /// Runs a program that defines `bonus` as [`BONUS`].
    fn define(&self, session: &mut Self::Session) -> Result<(), Failed>;

    /// Runs a program that adds the amounts of the paid orders to `bonus`.
    fn run(&self, session: &mut Self::Session, orders: &[Order]) -> Result<i64, Failed>;

    /// Runs a program that calls the tool [`CALLS`] times, with amounts from zero, and adds what it answers.
    fn calls(&self, session: &mut Self::Session) -> Result<i64, Failed>;
}

/// Runs the program of [`Subject::run`] and then a call that waits for a decision; writes all state out, reads it into a
/// fresh session and continues. The call answers with its argument, the sum. Returns that, and the bytes written.
pub type Suspend<S> = fn(&S, <S as Subject>::Session, &[Order]) -> Result<(i64, usize), Failed>;

/// The variable that the sessions define.
pub const BONUS: i64 = 7;

/// The calls of the tool in one run: the default limit of lispbox.
pub const CALLS: i64 = 500;

/// The limit on instructions, operations or rounds, whatever the engine counts.
pub const STEPS: u32 = 50_000_000;

/// The limit on memory in bytes.
pub const MEMORY: usize = 256 << 20;
