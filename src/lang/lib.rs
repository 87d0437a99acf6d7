//! The language: from text to values, with no access to the outside world.
//!
//! `span ← lexer ← reader ← expand ← resolve ← eval`, with `value`, `meter`, `error` and `heap` beneath and `builtin`
//! and `prelude` beside `eval`. [`Host`] is the only interface to the outside.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod absent;
pub mod builtin;
mod environment;
pub mod error;
pub mod eval;
pub mod expand;
mod foreign;
pub mod foreign_text;
pub mod form;
pub mod heap;
pub mod host;
pub mod index;
pub mod json;
pub mod lexer;
pub mod machine;
pub mod meter;
pub mod native;
pub mod node;
pub mod operators;
pub mod prelude;
pub mod reader;
pub mod registry;
pub mod reply;
pub mod resolve;
mod session;
pub mod snapshot;
pub mod span;
pub mod value;

pub use environment::{Environment, Sandbox};
pub use error::{Error, Fault, Halt, Outcome, Signal};
pub use host::{
    CallId, CallRecord, Catalogue, Found, Host, Server, Tool, ToolCall, ToolError, ToolErrorKind, ToolHints, ToolReply,
};
pub use index::Index;
pub use json::Unclosed;
pub use machine::{Machine, Stacks};
pub use meter::{Limits, parse_size};
pub use reply::{Failure, Reply, Spent, Status};
pub use session::{Engine, EngineBuilder, EngineError, Request, Session};
pub use snapshot::{EncodeError, EncodeReason};
pub use span::{Source, SourceName, Span};
pub use value::Value;
