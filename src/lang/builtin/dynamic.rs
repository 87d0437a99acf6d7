//! What holds while a function runs: dynamic bindings, and where printing goes.

use super::Builtin;
use super::arguments::take;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("binding*", &["[& names-values-and-function]"], "What `binding` expands to.", &[], binding),
    Builtin::new("with-out-str*", &["[f]"], "What `with-out-str` expands to.", &[], with_out_str),
];

fn binding(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Some((function, pairs)) = arguments.split_last_mut() else { return Ok(Value::Nil) };
    let mut indices = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        let Value::Symbol(name) = &pair[0] else { return Err(Error::expected("a name", &pair[0]).into()) };
        let name = name.as_str();
        let Some(index) = machine.core.globals.find(name) else {
            return Err(Error::new("UnboundVariable", format!("`{name}` is not defined by the session"))
                .about(name)
                .suggest(format!(
                    "define it first: `(def ^:dynamic {name} nil)`; the language's own functions keep their meaning"
                ))
                .into());
        };
        indices.push(index);
    }
    let mut before = Vec::with_capacity(indices.len());
    for (pair, index) in pairs.chunks_exact_mut(2).zip(&indices) {
        before.push((*index, machine.core.globals.exchange(*index, take(pair, 1))));
    }
    let result = machine.call(function, &mut []);
    for (index, value) in before.into_iter().rev() {
        machine.core.globals.exchange(index, value.unwrap_or_default());
    }
    result
}

fn with_out_str(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let depth = machine.core.captured.len();
    machine.core.captured.push(String::new());
    let result = machine.call(&arguments[0], &mut []);
    let text = machine.core.captured.drain(depth..).next().unwrap_or_default();
    result?;
    machine.reserve(text.len() as u64)?;
    Ok(Value::string(&text))
}
