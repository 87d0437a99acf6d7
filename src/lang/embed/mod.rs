//! The interface for Rust programs: functions, tools and worlds made of closures, typed runs, and sessions as values.
//!
//! An [`Engine`](crate::Engine) holds the language and the [functions](crate::EngineBuilder::function) that the program
//! adds to it. A [`World`] holds what one evaluation can reach: its [`Tools`], clock, random numbers, output and
//! [cancellation](CancelHandle). A [`Session`](crate::Session) runs programs in a world and keeps their definitions.

mod cancel;
mod function;
mod program;
mod run;
mod session;
mod spans;
mod suspended;
mod tools;
mod world;

pub use cancel::{CancelGuard, CancelHandle};
pub use function::{Function, FunctionEntry};
pub use program::Program;
pub use run::{EvalError, Outcome, Report, Run};
pub use session::{NameError, RestoreError, SessionError};
pub use suspended::{NoQuestion, RunError, SettleError, Suspended};
pub use tools::{Call, NoArguments, Progress, ToolEntry, Tools};
pub use world::{CallReport, World};
