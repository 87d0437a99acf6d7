//! Where printing goes while a function runs.

use super::Builtin;
use crate::lang::error::Outcome;
use crate::lang::eval::Machine;
use crate::lang::value::Value;

/// The entries of this file.
pub const TABLE: &[Builtin] =
    &[Builtin::new("with-out-str*", &["[f]"], "What `with-out-str` expands to.", &[], with_out_str)];

fn with_out_str(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let depth = machine.core.captured.len();
    machine.core.captured.push(String::new());
    let result = machine.call(&arguments[0], &mut []);
    let text = machine.core.captured.drain(depth..).next().unwrap_or_default();
    result?;
    machine.reserve(text.len() as u64)?;
    Ok(Value::string(&text))
}
