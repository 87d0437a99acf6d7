//! `(source name)`: the source code of a function.

use super::name_of;
use crate::error::Outcome;
use crate::eval::Realised;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::function::Closure;
use crate::value::print::print_within;

/// Maximum length of the preview of a value that is not a function, in bytes.
const PREVIEW: usize = 2_000;

/// Prints the source code of a named definition or of the function itself.
///
/// # Errors
/// Returns `UnknownName` if the name is unknown; halts if a resource limit is exceeded.
pub fn source(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = match &arguments[0] {
        Value::Closure(closure) => code(machine, closure),
        other => {
            let name = name_of(machine, other)?;
            named(machine, &name)?
        }
    };
    machine.charge(text.len() as u64 / 64)?;
    machine.core.print(&format!("{text}\n"));
    Ok(Value::Nil)
}

fn named(machine: &mut Machine, name: &str) -> Outcome<String> {
    let plain = name.strip_prefix("session/").unwrap_or(name);
    if let Some(index) = machine.core.globals.find(plain) {
        return match machine.core.globals.get(index).value.clone().unwrap_or_default() {
            Value::Closure(closure) => Ok(code(machine, &closure)),
            value => Ok(format!("(def {plain} {})", print_within(&value, PREVIEW, true, &mut Realised(machine))?.text)),
        };
    }
    let registry = machine.core.registry.clone();
    if registry.find(name).is_some() {
        return Ok(format!("`{name}` is native: it is not written in the language; (doc {name}) says what it does"));
    }
    if let Some(function) = registry.find_prelude(name) {
        return Ok(function.text().to_string());
    }
    if registry.entry(name).is_some() {
        return Ok(format!("`{name}` is a form of the language; (doc {name}) says what it does"));
    }
    if let [function, ..] = *machine.functions_meant(name)? {
        return named(machine, function);
    }
    if machine.find_tool(name)?.is_some() {
        return Ok(format!("`{name}` is a tool of a server; (doc {name}) says what it does"));
    }
    Err(super::nothing_called(machine, name).into())
}

/// Returns the text that a function was compiled from.
fn code(machine: &Machine, closure: &Closure) -> String {
    if let Some(function) = machine.core.registry.prelude().declared(closure) {
        return function.text().to_string();
    }
    let span = closure.group.lambdas[closure.index as usize].form.span;
    let text = closure.group.source.text.get(span.start as usize..span.end as usize);
    text.filter(|text| !text.is_empty()).unwrap_or("its source is not available").to_string()
}
