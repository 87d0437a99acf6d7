//! The interface for Rust programs: functions, tools and worlds made of closures, typed runs, and sessions as values.
//!
//! An [`Engine`](crate::Engine) holds the language and the [functions](crate::EngineBuilder::function) that the program
//! adds to it. A [`World`] holds what one evaluation can reach: its [`Tools`], clock, random numbers, output and
//! [cancellation](CancelHandle), and the [`Layer`]s around its calls. A [`Session`](crate::Session) runs programs in a world and keeps their definitions.

mod arguments;
mod attempts;
mod call;
mod cancel;
mod chain;
mod eval_error;
mod form;
mod function;
mod layer;
mod names;
mod program;
mod request;
mod run;
mod session;
mod spans;
mod suspended;
mod tools;
mod world;

pub use attempts::FailedRun;
pub use call::{Call, Progress};
pub use cancel::{CancelGuard, CancelHandle};
pub use eval_error::EvalError;
pub use function::{Function, FunctionEntry};
pub use layer::{Layer, Next};
pub use names::{NameError, RegisterError};
pub(crate) use names::{canonical_name, split_name};
pub use program::Program;
pub use request::{Access, CallRequest};
pub use run::{Outcome, Report, Run};
pub use session::{RestoreError, SessionError};
pub use suspended::{NoQuestion, RunError, SettleError, Suspended};
pub use tools::{NoArguments, ToolEntry, Tools};
pub use world::{CallReport, World};
