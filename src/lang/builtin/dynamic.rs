//! What holds while a function runs, and what macros make of code.

use super::Builtin;
use super::arguments::take;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("binding*", &["[& names-values-and-function]"], "What `binding` expands to.", &[], binding),
    Builtin::new("with-out-str*", &["[f]"], "What `with-out-str` expands to.", &[], with_out_str),
    Builtin::new(
        "macroexpand-1",
        &["[form]"],
        "The form after one step of expansion; as it is where its head is no macro.",
        &[("(macroexpand-1 '(-> x (f a)))", "(f x a)"), ("(macroexpand-1 '(inc 1))", "(inc 1)")],
        |machine, arguments| machine.macroexpand(take(arguments, 0), 1),
    ),
    Builtin::new(
        "macroexpand",
        &["[form]"],
        "The form after as many steps of expansion as it takes until its head is no macro.",
        &[("(first (macroexpand '(defn f [x] x)))", "def")],
        |machine, arguments| machine.macroexpand(take(arguments, 0), usize::MAX),
    ),
];

/// Other names of what is in this file.
pub const ALIASES: &[(&str, &str)] = &[("macroexpand-all", "macroexpand")];

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
