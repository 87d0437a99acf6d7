//! Dynamic names: print settings, reader settings, and the capture of output.

use super::arguments::take;
use crate::error::{Error, Outcome};
use crate::machine::{Capture, Global, Machine};
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::print::Settings;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new("dynamic*", &["[name]"], "Expansion of names such as `*print-length*`.", &[], dynamic),
    Builtin::new("set-dynamic*", &["[name value]"], "Expansion of `(set! *print-length* …)`.", &[], set_dynamic),
    Builtin::new("with-out-str*", &["[f]"], "Expansion of `with-out-str`.", &[], with_out_str)
        .with_conduct(Conduct::CallsLast),
];

/// Clojure's dynamic names that are known without a definition, with their initial values. Most of those that begin
/// with `*print-` affect printing, and `*default-data-reader-fn*` affects reading; the others are accepted without any
/// effect.
const KNOWN: &[(&str, Value)] = &[
    ("*assert*", Value::Bool(true)),
    ("*compile-files*", Value::Bool(false)),
    ("*default-data-reader-fn*", Value::Nil),
    ("*flush-on-newline*", Value::Bool(true)),
    ("*math-context*", Value::Nil),
    ("*print-dup*", Value::Bool(false)),
    ("*print-length*", Value::Nil),
    ("*print-level*", Value::Nil),
    ("*print-meta*", Value::Bool(false)),
    ("*print-namespace-maps*", Value::Bool(false)),
    ("*print-pretty*", Value::Bool(true)),
    ("*print-readably*", Value::Bool(true)),
    ("*print-right-margin*", Value::Int(72)),
    ("*read-eval*", Value::Bool(true)),
    ("*unchecked-math*", Value::Bool(false)),
    ("*warn-on-reflection*", Value::Bool(false)),
];

/// Name of the reader functions by tag that `read-string` uses; initially an empty map.
const READERS: &str = "*data-readers*";

/// Returns a known dynamic name without its namespace, and its initial value.
pub(crate) fn known_dynamic(name: &str) -> Option<(&'static str, Value)> {
    if !name.ends_with('*') {
        return None;
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    if base == READERS {
        return Some((READERS, Value::Map(Arc::default())));
    }
    KNOWN.iter().find(|(known, _)| *known == base).map(|(known, value)| (*known, value.clone()))
}

/// Returns the current value of a known dynamic name.
pub(super) fn current(machine: &Machine, name: &str) -> Value {
    let globals = &machine.core.globals;
    let own = globals.find(name).and_then(|index| globals.get(index).value.clone());
    own.unwrap_or_else(|| known_dynamic(name).map_or(Value::Nil, |(_, value)| value))
}

/// Returns the current print settings.
pub(super) fn print_settings(machine: &Machine) -> Settings {
    if !machine.core.globals.has_print_settings {
        return Settings::default();
    }
    let number = |name: &str| match current(machine, name) {
        Value::Int(number) => Some(number),
        _ => None,
    };
    let flag = |name: &str| current(machine, name).is_truthy();
    Settings {
        length: number("*print-length*"),
        level: number("*print-level*"),
        metadata: flag("*print-meta*"),
        namespace_maps: flag("*print-namespace-maps*"),
        readable: flag("*print-readably*"),
        duplicable: flag("*print-dup*"),
    }
}

fn dynamic(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(arguments[0].as_symbol().map_or(Value::Nil, |name| current(machine, name.as_str())))
}

/// Sets a dynamic name: inside a `binding` for its extent, else for the session. Outside a `binding`, only names that
/// begin with `*print-` are set; the others are ignored.
fn set_dynamic(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 1);
    let Some((name, _)) = arguments[0].as_symbol().and_then(|name| known_dynamic(name.as_str())) else {
        return Err(Error::expected("a dynamic name", &arguments[0]).into());
    };
    let index = machine.core.globals.index(name);
    if machine.is_bound_here(index) {
        machine.rebind(index, value.clone());
    } else if name.starts_with("*print-") {
        machine.set_definition(index, Global { value: Some(value.clone()), ..Global::default() });
    }
    Ok(value)
}

fn with_out_str(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let depth = machine.core.captured.len();
    machine.core.captured.push(Capture::default());
    let result = machine.call(&arguments[0], &mut []);
    let Capture { text, .. } = machine.core.captured.drain(depth..).next().unwrap_or_default();
    result?;
    machine.reserve(text.len() as u64)?;
    Ok(Value::string(&text))
}
