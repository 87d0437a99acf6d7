//! The program creates an engine with the standard library.

use std::error::Error;

use rhai::Engine;

/// An engine, an expression.
pub fn hello() -> Result<i64, Box<dyn Error>> {
    Ok(Engine::new().eval("1 + 1")?)
}
