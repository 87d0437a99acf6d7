//! The language: from text to values, with no access to the outside world.
//!
//! `span ← lexer ← reader ← expand ← resolve ← eval`, with `value`, `meter`, `error` and `heap` beneath and `builtin`
//! and `prelude` beside `eval`. [`Host`] is the only interface to the outside.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

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
pub mod json;
pub mod lexer;
pub mod meter;
pub mod node;
pub mod prelude;
pub mod reader;
pub mod reply;
pub mod resolve;
mod session;
pub mod snapshot;
pub mod span;
pub mod value;

pub use builtin::discovery::index::Index;
pub use environment::{Environment, Sandbox};
pub use error::{Error, Fault, Halt, Outcome, Signal};
pub use eval::{Machine, Stacks};
pub use host::{
    CallId, Catalogue, Found, Host, Server, Tool, ToolCall, ToolError, ToolErrorKind, ToolHints, ToolReply,
};
pub use json::Unclosed;
pub use meter::{Limits, parse_size};
pub use reply::{CallRecord, Failure, Reply, Spent, Status};
pub use session::{Engine, EngineBuilder, EngineError, Request, Session};
pub use snapshot::{EncodeError, EncodeReason};
pub use span::{Source, SourceName, Span};
pub use value::Value;
