//! Java-style access to records: `(.field x)`, `(.method x y)`, and the methods of `Object` that a type defines.
//!
//! The methods of `Object` are multimethods by type, like protocol functions. They are stored in the table of
//! definitions under names that no program can define, so that they are rolled back, retained and written to snapshots.

use super::methods::{add, implemented, is_of_protocol, multimethod};
use crate::builtin::arguments::take;
use crate::builtin::builders::{builder, content};
use crate::error::{Error, Outcome, Signal};
use crate::machine::{Global, Machine};
use crate::native::{Builtin, Intrinsic};
use crate::value::Value;
use crate::value::function::Bound;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "object-call*",
    &["[name f x & args]"],
    "Call of a method that the language has.",
    &[],
    object_call,
)
.passing_on()
.with_intrinsic(Intrinsic::ObjectCall)];

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

/// Methods of string builders that read or change the builder itself, not its text.
const OF_BUILDERS: &[&str] = &[
    ".append",
    ".write",
    ".insert",
    ".delete",
    ".deleteCharAt",
    ".setCharAt",
    ".setLength",
    ".reverse",
    ".flush",
    ".close",
    ".equals",
    ".getClass",
    ".hashCode",
];

/// Implements `(.length x)`, where `.length` is a function of the language: nil has no methods, a record may have a field
/// or a method of that name, and a string builder is read like its text.
fn object_call(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (Value::Symbol(name), function) = (take(arguments, 0), take(arguments, 1)) else {
        return Err(crate::eval::internal_error().into());
    };
    let call = &mut arguments[2..];
    match &call[0] {
        Value::Nil => {
            let error = Error::expected("an object", &Value::Nil)
                .suggest(format!("nil has no methods: `(some-> x {name})` is nil for nil", name = name.as_str()));
            return Err(Signal::from(error).by(name.as_str()));
        }
        Value::Map(map) if map.kind().is_some() => {
            if let Some(result) = own_member(machine, name.as_str().trim_start_matches('.'), call)? {
                return Ok(result);
            }
        }
        object if is_text_only(name.as_str(), object) => {
            return Err(Signal::from(Error::expected("a string", object)).by(name.as_str()));
        }
        object
            if let Some(cell) = builder(object).cloned()
                && !OF_BUILDERS.contains(&name.as_str()) =>
        {
            call[0] = Value::Str(content(machine, &cell)?);
        }
        _ => {}
    }
    machine.call(&function, call)
}

/// True for a collection as the object of a method that only strings have, and which would read its text.
fn is_text_only(method: &str, object: &Value) -> bool {
    match object {
        Value::List(_) | Value::Lazy(_) => matches!(method, ".length") || is_of_texts(method),
        Value::Vector(_) => is_of_texts(method),
        Value::Map(_) => matches!(method, ".length" | ".contains" | ".indexOf" | ".lastIndexOf") || is_of_texts(method),
        Value::Set(_) => matches!(method, ".length" | ".indexOf" | ".lastIndexOf") || is_of_texts(method),
        _ => false,
    }
}

fn is_of_texts(method: &str) -> bool {
    matches!(method, ".toUpperCase" | ".toLowerCase" | ".startsWith" | ".endsWith")
}

/// Calls a method of the object, reads a field of the record, or calls a protocol function that its type implements, in
/// this order; `None` if it has none of that name.
fn own_member(machine: &mut Machine, name: &str, call: &mut [Value]) -> Outcome<Option<Value>> {
    if let Some(method) = object_method(machine, &call[0], name)? {
        return machine.call(&method, call).map(Some);
    }
    if let (Value::Map(map), 1) = (&call[0], call.len())
        && let Some(Value::Vector(fields)) = map.fields()
        && fields.iter().any(|field| matches!(field, Value::Keyword(field) if field.as_str() == name))
    {
        return Ok(map.get(&Value::keyword(name)).cloned());
    }
    let function = protocol_function(machine, name);
    match function {
        Some(function) if implemented(machine, &function, &call[0])?.is_some() => {
            machine.call(&function, call).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the session's function of that name if it is one of a protocol.
fn protocol_function(machine: &Machine, name: &str) -> Option<Value> {
    let defined = machine.core.globals.find(name)?;
    machine.core.globals.get(defined).value.clone().filter(is_of_protocol)
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
    match protocol_function(machine, &name) {
        Some(function) => machine.call(&function, call),
        None => Err(machine.unknown_method(&format!(".{name}"))?.into()),
    }
}
