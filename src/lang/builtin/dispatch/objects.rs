//! Java-style access to records: `(.field x)`, `(.method x y)`, and the methods of `Object` that a type defines.
//!
//! The methods of `Object` are multimethods by type, like protocol functions. They are stored in the table of
//! definitions under names that no program can define, so that they are rolled back, retained and written to snapshots.

use super::methods::{add, implemented, is_of_protocol, multimethod};
use crate::builtin::arguments::take;
use crate::error::{Error, Outcome};
use crate::machine::{Global, Machine};
use crate::native::Builtin;
use crate::value::Value;
use crate::value::function::Bound;
use std::sync::Arc;

/// Builtins that implement the function values created in this module.
pub const STEPS: &[&Builtin] = &[&INVOKE];

/// Calls a method by name, as in `.area`: the method that the object or its type has under that name.
static INVOKE: Builtin = Builtin::new("invoke*", &["[name x & args]"], "A method by name.", &[], invoke);

/// Prefix of the methods of `Object` in the table of definitions.
const PREFIX: &str = "Object/";

/// The supported methods of `Object`.
const METHODS: &[&str] = &["toString", "equals", "hashCode"];

/// Returns the function that a name such as `.area` denotes if it is not a builtin.
pub fn method(name: &str) -> Option<Value> {
    let base = name.strip_prefix('.').filter(|base| base.starts_with(|c: char| c.is_alphabetic() || c == '_'))?;
    Some(Value::Bound(Arc::new(Bound { builtin: &INVOKE, arguments: vec![Value::symbol(base)] })))
}

/// True for `Object` in the position of a protocol.
pub fn is_object(protocol: &Value) -> bool {
    matches!(protocol, Value::Symbol(name) if name.as_str() == "java.lang.Object")
}

/// True for the name of a type that the session defines.
pub fn is_own(of: &Value) -> bool {
    matches!(of, Value::Symbol(name) if name.as_str().starts_with("user."))
}

/// Adds methods of `Object` to a type of the session.
///
/// # Errors
/// Returns `NoMethod` if `Object` has no supported method of that name, and `TypeError` if `methods` is not a map.
pub fn extend(machine: &mut Machine, of: &Value, methods: &Value) -> Outcome<()> {
    let Value::Map(methods) = methods else {
        return Err(Error::expected("a map of functions by name after `Object`", methods).into());
    };
    for (name, function) in methods.iter() {
        let name = name.to_string();
        let name = name.trim_start_matches(':');
        if !METHODS.contains(&name) {
            return Err(Error::new("NoMethod", format!("`Object` has no method `{name}`"))
                .suggest(format!("its methods are: {}", METHODS.join(", ")))
                .into());
        }
        let index = machine.core.globals.index(&format!("{PREFIX}{name}"));
        let known = machine.core.globals.get(index).value.clone();
        let method = match known {
            Some(method) => method,
            None => {
                let made = multimethod(machine, Value::symbol(name), Value::Nil, Value::Nil, Value::Nil);
                machine.core.globals.set(index, Global { value: Some(made.clone()), ..Global::default() });
                made
            }
        };
        add(machine, &method, of.clone(), function.clone())?;
    }
    Ok(())
}

/// Returns the text that a value's own `toString` produces; `None` if its type defines none.
///
/// # Errors
/// Propagates errors of the method; halts if a resource limit is exceeded.
#[inline]
pub fn own_text(machine: &mut Machine, value: &Value) -> Outcome<Option<Value>> {
    match value {
        Value::Map(map) if map.kind().is_some() => {}
        _ => return Ok(None),
    }
    match object_method(machine, value, "toString")? {
        Some(method) => machine.call(&method, &mut [value.clone()]).map(Some),
        None => Ok(None),
    }
}

/// Returns the implementation of a method of `Object` by a value's own type.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn object_method(machine: &mut Machine, value: &Value, name: &str) -> Outcome<Option<Value>> {
    if let Value::Map(map) = value
        && let Some(own) = map.kind().and_then(|kind| kind.get(&Value::symbol(name)))
    {
        return Ok(Some(own.clone()));
    }
    let index = machine.core.globals.find_note(&format!("{PREFIX}{name}"));
    let method = index.and_then(|index| machine.core.globals.get(index).value.clone());
    match method {
        Some(method) => implemented(machine, &method, value),
        None => Ok(None),
    }
}

/// Implements `(.area shape)`: calls a method of the object, reads a field of the record, or calls a protocol function,
/// in this order.
fn invoke(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Value::Symbol(name) = take(arguments, 0) else { return Err(crate::eval::internal_error().into()) };
    let name = name.as_str().to_string();
    let call = &mut arguments[1..];
    if let Some(method) = object_method(machine, &call[0], &name)? {
        return machine.call(&method, call);
    }
    if let (Value::Map(map), 1) = (&call[0], call.len())
        && map.fields().is_some()
        && let Some(value) = map.get(&Value::keyword(&name))
    {
        return Ok(value.clone());
    }
    let defined = machine.core.globals.find(&name);
    let function = defined.and_then(|index| machine.core.globals.get(index).value.clone());
    match function {
        Some(function) if is_of_protocol(&function) => machine.call(&function, call),
        _ => Err(machine.unknown_method(&format!(".{name}"))?.into()),
    }
}
