//! The language of lispbox: from text to values, with no access to the outside world.
//!
//! `lispbox` re-exports this crate as `lispbox::lang`. A program that needs neither the server nor the stores depends on
//! this crate alone.
//!
//! # Layers
//! A room (a module of this crate) may use rooms of its own layer and of the layers below it, never one above.
//! `tests/layers.rs` enforces this, and bounds the import cycles within a room. From the bottom:
//! 1. `span`: positions in source texts.
//! 2. The kernel's data: [`value`], `error`, `heap`, `form`, `node` (resolved code), `meter` (limits),
//!    `host` (the interface to the outside), `machine` (the state of an evaluation), `native` (the contract of a
//!    builtin), `operators`, `registry` (the table of all names), `index` (search), `foreign_text`. These files
//!    refer to each other: a value can be a builtin, and the signature of a builtin names the machine.
//! 3. `lexer`, `reader`: text to forms. `absent`: advice on names that do not exist.
//! 4. `expand`, `resolve`, `json`, `convert`, `runs`: macro expansion, name resolution, JSON, conversion by serde, the
//!    log of host calls by which a run is suspended and resumed.
//! 5. `eval`: the evaluator. It runs on a [`Machine`] and knows the library only through the registry.
//! 6. The library: `builtin`, `prelude` (functions written in the language itself), and `snapshot` (serialized
//!    sessions); and `plan`, the analysis of the tools that a program can call.
//! 7. The entry points: [`Engine`], [`Session`], [`Environment`], [`Reply`] (with `planned`), and `embed`, the interface for Rust programs
//!    ([`World`], [`Tools`], [`Run`]).
//!
//! Two other designs were considered. *Opaque builtins* (`run: fn(&mut dyn Any, …)`, or a type parameter for the
//! machine) would separate values from the machine, but cost a check or a monomorphic copy of every value type on the
//! hottest path. *A crate for the library* would let the compiler enforce layer 6, but functions of the kernel that are
//! inlined into builtins today would then need link-time optimization, which doubles the time of the first build.
//!
//! # Glossary
//! - **answer**: the result of a node, passed in two registers.
//! - **branch**: one line of execution within an evaluation; `pmap` runs several, of which one computes at a time.
//! - **bound function**: a builtin with its first arguments filled in; its `Role` says what it is.
//! - **cell**: a mutable slot in the heap (atom, volatile, delay, lazy sequence), referred to by a reference-counted
//!   handle.
//! - **core**: the state that the branches of an evaluation share; the branch whose turn it is holds it.
//! - **cycle collector**: finds cells that are reachable only from themselves, by trial deletion; also called a sweep.
//! - **deferred release**: dropping a large structure in slices, so that no drop exceeds the time between two checks.
//! - **effort**: the estimated cost of hashing, comparing or printing a value, in fuel.
//! - **fuel**: the unit of the step limit; the same program on the same data always spends the same amount.
//! - **halt**: the end of an evaluation by a limit or a cancellation; programs cannot catch it.
//! - **inline cache**: the index of a key in the last small map, tried before a search.
//! - **owed work**: charges noted by code without access to the meter, such as hashing, and charged at the next check.
//! - **prelude**: the functions in `stdlib/*.lisp`, compiled on first use.
//! - **shape**: the ordered keys of a record, shared by all records with these keys (a hidden class); adding a key is a
//!   shape transition.
//! - **snapshot**: a session serialized as s-expressions, in rows that keep their numbers from one to the next.
//! - **step**: a builtin that programs cannot name: the code of a function or lazy sequence that another builtin
//!   returns.
//! - **undo log**: the replaced values of definitions and cells, by which a failed form is undone.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod absent;
mod builtin;
mod convert;
mod effects;
mod embed;
mod engine;
mod environment;
mod error;
mod eval;
mod evaluation;
mod expand;
mod failure;
mod foreign;
#[doc(hidden)]
pub mod foreign_text;
#[doc(hidden)]
pub mod form;
mod heap;
mod host;
mod index;
mod json;
#[doc(hidden)]
pub mod lexer;
mod machine;
mod meter;
mod native;
mod node;
mod operators;
mod plan;
mod planned;
mod prelude;
mod preview;
#[doc(hidden)]
pub mod reader;
mod registry;
mod reply;
mod resolve;
mod runs;
mod session;
mod snapshot;
mod span;
pub mod value;

pub use convert::ConvertError;
pub use convert::exact::{self, Exact, Scalar};
pub use effects::{Again, Attempt, CutOff, MadeCalls, unknown_calls};
pub use embed::{
    Access, Call, CallReport, CallRequest, CancelGuard, CancelHandle, EvalError, FailedRun, Function, FunctionEntry,
    Layer, NameError, Next, NoArguments, NoQuestion, Outcome, Program, Progress, RegisterError, Report, RestoreError,
    Run, RunError, SessionError, SettleError, Suspended, ToolEntry, Tools, World,
};
pub use engine::{Engine, EngineBuilder, EngineError};
pub use error::{Error, ErrorCode, Signal};
pub use failure::Failure;
pub use host::{
    CallId, CallIdError, CallRecord, Decision, OsRandom, Question, SeededRandom, SystemClock, TestClock, ToolError,
    ToolErrorKind, ToolHints, ToolReply,
};
pub use machine::Machine;
pub use meter::{Limits, Metered, outside, parse_size};
pub use plan::{Plan, PlannedCall, UnknownCall};
#[doc(hidden)]
pub use planned::{DecidedCall, DecidedPlan};
pub use reply::{EarlierValue, Rehearsed, RehearsedCall, Reply, Spent, Status};
pub use session::Session;
pub use snapshot::{EncodeError, EncodeReason};
pub use value::Value;

// The layer below the interface for embedders, on which the server, the workers and the command line are built. Like
// the items of `internal`, it may change in any version.
#[doc(hidden)]
pub use builtin::arguments;
#[doc(hidden)]
pub use environment::{Environment, Sandbox};
#[doc(hidden)]
pub use error::{Fault, Halt, TraceEntry};
#[doc(hidden)]
pub use host::{Audience, Catalogue, Found, Happened, Host, NO_HANDLES, NO_RUNS, Server, Tool, ToolCall};
#[doc(hidden)]
pub use index::{Hits, Index, Indexed};
#[doc(hidden)]
pub use json::Unclosed;
#[doc(hidden)]
pub use machine::Stacks;
#[doc(hidden)]
pub use meter::Residence;
#[doc(hidden)]
pub use native::{ArityRange, Builtin};
#[doc(hidden)]
pub use reply::Mark;
#[doc(hidden)]
pub use runs::{
    CallState, Draw, EarlierCall, Entry, Journal, Keep, LogChange, Logged, Observed, PlanBounds, Recorder, Replies,
    RunLog, Stage, Timing, Witness, asked_for, at_most,
};
#[doc(hidden)]
pub use session::Request;
#[doc(hidden)]
pub use span::{Source, SourceName, Span};

/// Items that the package `lispbox` and the tools of this repository share. Not part of the public API: they may change
/// in any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::builtin::all;
    pub use crate::builtin::discovery::{
        overview::{advice, outline},
        vocabulary,
    };
    pub use crate::builtin::syntax;
    pub use crate::error::suggest::closest;
    pub use crate::expand::{SPECIAL_FORMS, macro_names};
    pub use crate::host::meant;
    pub use crate::host::{NoHost, panic_text};
    pub use crate::json::{first_rounded, survives, unmarked};
    pub use crate::meter::{bytes, time};
    pub use crate::registry::Registry;
    pub use crate::reply::call_notes;
    pub use crate::value::map::kebab;
    pub use crate::value::names::{canonical, canonical_tool, writable};
    pub use crate::value::print::readable;
    pub use crate::value::shape::Shape;
    pub use crate::{foreign_text, form, lexer, reader};
}
