//! Protocols and records: functions by the type of their first argument, and maps that have a type.
//!
//! A record of `defrecord` is a map whose metadata names its type, so all that works on maps works on it.

use super::methods::{add, multimethod};
use crate::lang::builtin::Builtin;
use crate::lang::builtin::arguments::take;
use crate::lang::builtin::types::type_name;
use crate::lang::builtin::{annotate, metadata};
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::heap::{CellKind, State};
use crate::lang::value::Value;
use crate::lang::value::map::Map;
use crate::lang::value::set::Set;
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("protocol*", &["[name & methods]"], "What `defprotocol` expands to.", &[], protocol),
    Builtin::new("protocol-method*", &["[protocol name]"], "A function of a protocol.", &[], |_, arguments| {
        method_of(&arguments[0], &arguments[1])
    }),
    Builtin::new(
        "extend",
        &["[type & protocols-and-methods]"],
        "Implements protocols for a type, each with a map of functions by name.",
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
            let carried = metadata(&arguments[1]).is_some_and(|own| own.contains_key(&Value::keyword("implements")));
            if carried && carries(&arguments[1], &arguments[0]) {
                return Ok(Value::Bool(true));
            }
            extends(machine, &arguments[0], &type_name(&arguments[1])).map(Value::Bool)
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
    Builtin::new("record*", &["[type map]"], "A record of that type.", &[], |machine, arguments| {
        let own: Map = [(Value::keyword("type"), take(arguments, 0))].into_iter().collect();
        let map = take(arguments, 1);
        annotate(machine, map, Some(Arc::new(own)))
    }),
    Builtin::new("reify*", &["[& protocols-and-methods]"], "What `reify` expands to.", &[], reify),
    Builtin::new(
        "record?",
        &["[x]"],
        "True for a record of `defrecord`.",
        &[("(defrecord P [x]) [(record? (->P 1)) (record? {:x 1})]", "[true false]")],
        |_, arguments| {
            let is_typed = metadata(&arguments[0]).is_some_and(|own| own.contains_key(&Value::keyword("type")));
            Ok(Value::Bool(is_typed && matches!(arguments[0], Value::Map(_))))
        },
    ),
];

/// `{:protocol name, :methods {"size" multimethod}, :types (atom #{})}`
fn protocol(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let name = take(arguments, 0);
    let mut methods = Map::default();
    for method in &mut arguments[1..] {
        let method = std::mem::take(method);
        let function = multimethod(machine, method.clone(), Value::Nil, Value::Nil, Value::Nil);
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
            .suggest("`(defprotocol Name (method [this]))` defines one; interfaces and classes of Java, `Object` included, cannot be implemented: write a function")
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

/// `(extend String Sized {:size f} Other {…})`
fn extend(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let of = take(arguments, 0);
    for pair in arguments[1..].chunks_mut(2) {
        let [protocol, methods] = pair else {
            return Err(Error::new("ArityError", "`extend` takes protocols and maps of functions in turn").into());
        };
        let Value::Cell(types) = field(protocol, "types")? else { continue };
        let mut known = match machine.core.heap.state(&types)? {
            State::Done(Value::Set(set)) => (**set).clone(),
            _ => Set::default(),
        };
        known.insert(of.clone());
        machine.core.heap.change(&types, State::Done(Value::Set(Arc::new(known))))?;
        let Value::Map(methods) = std::mem::take(methods) else {
            return Err(Error::new("TypeError", "expected a map of functions by name behind the protocol").into());
        };
        for (name, function) in methods.iter() {
            let method = method_of(protocol, name)?;
            add(machine, &method, of.clone(), function.clone())?;
        }
    }
    Ok(Value::Nil)
}

/// True if the protocol is implemented for that type or a kind that it is of.
fn extends(machine: &mut Machine, protocol: &Value, of: &Value) -> Outcome<bool> {
    let Value::Cell(types) = field(protocol, "types")? else { return Ok(false) };
    let known = match machine.core.heap.state(&types)? {
        State::Done(Value::Set(set)) => set.clone(),
        _ => Arc::default(),
    };
    let parents = super::hierarchy::session_parents(machine)?;
    for known in known.iter() {
        if super::hierarchy::is_a(machine, &parents, of, known)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if an object of `reify` implements the protocol.
fn carries(value: &Value, protocol: &Value) -> bool {
    let (Some(own), Ok(name)) = (metadata(value), field(protocol, "protocol")) else { return false };
    matches!(own.get(&Value::keyword("implements")), Some(Value::Set(names)) if names.contains(&name))
}

/// An object that carries its methods itself: `(reify* Sized {:size f})`.
fn reify(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut own = Map::default();
    let mut names = Set::default();
    for pair in arguments.chunks_mut(2) {
        let [protocol, methods] = pair else { break };
        names.insert(field(protocol, "protocol")?);
        let Value::Map(methods) = std::mem::take(methods) else { break };
        for (name, function) in methods.iter() {
            method_of(protocol, name)?;
            own.insert(Value::symbol(name.to_string().trim_start_matches(':')), function.clone());
        }
    }
    own.insert(Value::keyword("type"), Value::symbol("user.reify"));
    own.insert(Value::keyword("implements"), Value::Set(Arc::new(names)));
    annotate(machine, Value::Map(Arc::default()), Some(Arc::new(own)))
}
