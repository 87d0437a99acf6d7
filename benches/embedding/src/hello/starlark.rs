//! The program parses a module and evaluates it with the standard functions.

use std::error::Error;

use starlark::environment::{Globals, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::UnpackValue;

/// A syntax tree, functions, a module, an evaluator.
pub fn hello() -> Result<i64, Box<dyn Error>> {
    let script =
        AstModule::parse("script", "1 + 1".to_string(), &Dialect::Standard).map_err(|error| error.into_anyhow())?;
    let globals = Globals::standard();
    Module::with_temp_heap(|module| {
        let answer = Evaluator::new(&module).eval_module(script, &globals).map_err(|error| error.into_anyhow())?;
        let answer = i64::unpack_value(answer).map_err(|error| error.into_anyhow())?;
        answer.ok_or_else(|| "not an integer".into())
    })
}
