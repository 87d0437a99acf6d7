//! Protocols and records: functions that dispatch on the type of their first argument, and maps with a type.
//!
//! A record of `defrecord` is a map whose metadata names its type, so all map functions work on it.

use super::methods::{add, multimethod};
use super::objects;
use crate::builtin::arguments::take;
use crate::builtin::types::class_name;
use crate::error::{Error, Outcome};
use crate::eval::annotate;
use crate::heap::{CellKind, State};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::{KIND, Map};
use crate::value::set::Set;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new("protocol*", &["[name by-metadata & methods]"], "Expansion of `defprotocol`.", &[], protocol),
    Builtin::new("protocol-method*", &["[protocol name]"], "A function of a protocol.", &[], |_, arguments| {
        method_of(&arguments[0], &arguments[1])
    }),
    Builtin::new(
        "extend",
        &["[type & protocols-and-methods]"],
        "Implements protocols for a type, each with a map from name to function.",
        &[("(defprotocol Sized (size [x])) (extend String Sized {:size count}) (size \"abc\")", "3")],
        extend,
    ),
    Builtin::new(
        "satisfies?",
        &["[protocol x]"],
        "True if the protocol is implemented for the value's type.",
        &[(
            "(defprotocol Sized (size [x])) (extend-type String Sized (size [s] (count s))) [(satisfies? Sized \"\") (satisfies? Sized 1)]",
            "[true false]",
        )],
        |machine, arguments| {
            if carries(&arguments[1], &arguments[0])? {
                return Ok(Value::Bool(true));
            }
            extends(machine, &arguments[0], &class_name(&arguments[1])).map(Value::Bool)
        },
    ),
    Builtin::new(
        "extends?",
        &["[protocol type]"],
        "True if the protocol is implemented for the type.",
        &[("(defprotocol Sized (size [x])) (extends? Sized String)", "false")],
        |machine, arguments| {
            let of = take(arguments, 1);
            extends(machine, &arguments[0], &of).map(Value::Bool)
        },
    ),
    Builtin::new(
        "extenders",
        &["[protocol]"],
        "The types that implement the protocol.",
        &[(
            "(defprotocol Sized (size [x])) (extend-type String Sized (size [s] (count s))) (extenders Sized)",
            "(java.lang.String)",
        )],
        |machine, arguments| {
            let known = types_of(machine, &arguments[0])?;
            machine.reserve_values(known.len() as u64)?;
            Ok(if known.is_empty() { Value::Nil } else { Value::list(known.iter().cloned().collect()) })
        },
    ),
    Builtin::new("record*", &["[type fields map]"], "A record of that type.", &[], |machine, arguments| {
        let kind = [("type", take(arguments, 0)), ("fields", take(arguments, 1))];
        let kind: Map = kind.into_iter().map(|(key, value)| (Value::keyword(key), value)).collect();
        of_kind(machine, take(arguments, 2), kind)
    }),
    Builtin::new("reify*", &["[& protocols-and-methods]"], "Expansion of `reify`.", &[], reify),
    Builtin::new(
        "record?",
        &["[x]"],
        "True for a record of `defrecord`.",
        &[("(defrecord P [x]) [(record? (->P 1)) (record? {:x 1})]", "[true false]")],
        |_, arguments| Ok(Value::Bool(matches!(&arguments[0], Value::Map(map) if map.fields().is_some()))),
    ),
];

/// Creates a protocol: `{:protocol name, :methods {"size" multimethod}, :types (atom #{})}`.
fn protocol(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let name = take(arguments, 0);
    let by_metadata = take(arguments, 1);
    let mut methods = Map::default();
    for method in &mut arguments[2..] {
        let method = std::mem::take(method);
        let function = multimethod(machine, method.clone(), Value::Nil, by_metadata.clone(), Value::Nil);
        methods.insert(Value::keyword(&method.to_string()), function);
    }
    let types = machine.core.heap.allocate(CellKind::Atom, State::Done(Value::Set(Arc::default())));
    let parts = [("protocol", name), ("methods", Value::Map(Arc::new(methods))), ("types", Value::Cell(types))];
    let map: Map = parts.into_iter().map(|(key, value)| (Value::keyword(key), value)).collect();
    Ok(Value::Map(Arc::new(map)))
}

fn field(protocol: &Value, name: &str) -> Outcome<Value> {
    let found = match protocol {
        Value::Map(map) if map.contains_key(&Value::keyword("protocol")) => map.get(&Value::keyword(name)).cloned(),
        _ => None,
    };
    found.ok_or_else(|| {
        Error::expected("a protocol", protocol)
            .suggest("`(defprotocol Name (method [this]))` defines one; interfaces and classes of Java cannot be implemented, except `Object` in a `defrecord`, `deftype` or `reify`: write a function")
            .into()
    })
}

fn method_of(protocol: &Value, name: &Value) -> Outcome<Value> {
    let Value::Map(methods) = field(protocol, "methods")? else { return Ok(Value::Nil) };
    let text = name.to_string();
    match methods.get(&Value::keyword(text.trim_start_matches(':'))) {
        Some(method) => Ok(method.clone()),
        None => {
            let known: Vec<String> = methods.iter().map(|(name, _)| name.to_string().replace(':', "")).collect();
            let error = Error::new(
                "NoMethod",
                format!("the protocol `{}` has no method `{text}`", field(protocol, "protocol")?),
            );
            Err(error.suggest(format!("its methods are: {}", known.join(", "))).into())
        }
    }
}

/// Implements `(extend String Sized {:size f} Other {…})`.
fn extend(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let of = take(arguments, 0);
    for pair in arguments[1..].chunks_mut(2) {
        let [protocol, methods] = pair else {
            return Err(Error::new("ArityError", "`extend` takes protocols and maps of functions in turn").into());
        };
        if objects::is_object(protocol) && objects::is_own(&of) {
            objects::extend(machine, &of, &std::mem::take(methods))?;
            continue;
        }
        let Value::Cell(types) = field(protocol, "types")? else { continue };
        let mut known = match machine.core.heap.state(&types)? {
            State::Done(Value::Set(set)) => (**set).clone(),
            _ => Set::default(),
        };
        known.insert(of.clone());
        machine.core.heap.change(&types, State::Done(Value::Set(Arc::new(known))))?;
        let Value::Map(methods) = std::mem::take(methods) else {
            return Err(Error::unmet("TypeError", "a map of functions by name after the protocol").into());
        };
        for (name, function) in methods.iter() {
            let method = method_of(protocol, name)?;
            add(machine, &method, of.clone(), function.clone())?;
        }
    }
    Ok(Value::Nil)
}

/// Returns the types for which a protocol is implemented.
fn types_of(machine: &mut Machine, protocol: &Value) -> Outcome<Arc<Set>> {
    let Value::Cell(types) = field(protocol, "types")? else { return Ok(Arc::default()) };
    Ok(match machine.core.heap.state(&types)? {
        State::Done(Value::Set(set)) => set.clone(),
        _ => Arc::default(),
    })
}

/// Turns a map into a record or object of a kind.
pub(in crate::builtin) fn of_kind(machine: &mut Machine, map: Value, kind: Map) -> Outcome<Value> {
    let own: Map = [(Value::keyword(KIND), Value::Map(Arc::new(kind)))].into_iter().collect();
    annotate(machine, map, Some(Arc::new(own)))
}

/// True if the protocol is implemented for a type or one of its ancestors.
fn extends(machine: &mut Machine, protocol: &Value, of: &Value) -> Outcome<bool> {
    let known = types_of(machine, protocol)?;
    let parents = super::hierarchy::session_parents(machine)?;
    for known in known.iter() {
        if super::hierarchy::is_a(machine, &parents, of, known)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if the value is an object of `reify` that implements the protocol.
fn carries(value: &Value, protocol: &Value) -> Outcome<bool> {
    let name = field(protocol, "protocol")?;
    let Value::Map(map) = value else { return Ok(false) };
    let implemented = map.kind().and_then(|kind| kind.get(&Value::keyword("implements")));
    Ok(matches!(implemented, Some(Value::Set(names)) if names.contains(&name)))
}

/// Creates an object that carries its methods: `(reify* Sized {:size f})`.
fn reify(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut own = Map::default();
    let mut names = Set::default();
    for pair in arguments.chunks_mut(2) {
        let [protocol, methods] = pair else { break };
        let is_object = objects::is_object(protocol);
        names.insert(if is_object { protocol.clone() } else { field(protocol, "protocol")? });
        let Value::Map(methods) = std::mem::take(methods) else { break };
        for (name, function) in methods.iter() {
            if !is_object {
                method_of(protocol, name)?;
            }
            own.insert(Value::symbol(name.to_string().trim_start_matches(':')), function.clone());
        }
    }
    own.insert(Value::keyword("type"), Value::symbol("user.reify"));
    own.insert(Value::keyword("implements"), Value::Set(Arc::new(names)));
    of_kind(machine, Value::Map(Arc::default()), own)
}
