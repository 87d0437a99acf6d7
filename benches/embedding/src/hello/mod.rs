//! The smallest program with each engine, from nothing to the result of `1 + 1`. `cold.sh` builds each file alone.

pub mod lispbox;
pub mod mlua;
#[cfg(feature = "monty")]
pub mod monty;
pub mod rhai;
pub mod starlark;
pub mod wasmtime;
