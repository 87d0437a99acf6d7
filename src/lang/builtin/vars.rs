//! Vars: definitions as values, inspected, changed, and temporarily rebound.

use super::arguments::{map, take};
use super::names;
use crate::error::{Error, Outcome};
use crate::eval::UNBOUND;
use crate::eval::is_unbound;
use crate::heap::{CellKind, Handle, State};
use crate::machine::{Global, Machine};
use crate::meter::limit;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::function::Bound;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::print::shown_name;
use crate::value::text::{Name, split_name};
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "var?",
        &["[x]"],
        "True for vars: `#'name`, what `def` and `resolve` return, the names of `with-local-vars`.",
        &[("(var? #'inc)", "true"), ("(var? inc)", "false")],
        |_, arguments| Ok(Value::Bool(Var::of(&arguments[0]).is_some())),
    ),
    Builtin::new(
        "var-get",
        &["[var]"],
        "The value of a var, as `@var`.",
        &[("(def x 1) (var-get #'x)", "1")],
        |machine, arguments| Var::expected(&arguments[0])?.value(machine),
    ),
    Builtin::new(
        "var-set",
        &["[var value]"],
        "Sets the value of a var bound by `binding` or `with-local-vars`, and returns the value.",
        &[("(with-local-vars [n 1] (var-set n (inc @n)) @n)", "2")],
        var_set,
    ),
    Builtin::new(
        "bound?",
        &["[& vars]"],
        "True if every var has a value.",
        &[("(def x) (bound? #'x)", "false"), ("(def x 1) (bound? #'x)", "true")],
        is_bound,
    ),
    Builtin::new(
        "thread-bound?",
        &["[& vars]"],
        "True if every var is bound by an enclosing `binding`.",
        &[("(def ^:dynamic *x* 1) [(thread-bound? #'*x*) (binding [*x* 2] (thread-bound? #'*x*))]", "[false true]")],
        is_bound_here,
    ),
    Builtin::new(
        "resolve",
        &["[name]", "[locals name]"],
        "The var that a symbol names, or nil; `((resolve 'inc) 1)` calls it. Names in `locals` give nil.",
        &[("(resolve 'inc)", "#'inc"), ("((resolve 'inc) 1)", "2"), ("(resolve 'no-such-name)", "nil")],
        |machine, arguments| {
            let name = take(arguments, arguments.len() - 1);
            let is_local = arguments.len() == 2 && is_among(&arguments[0], &name)?;
            if is_local { Ok(Value::Nil) } else { resolve(machine, &name) }
        },
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "ns-resolve",
        &["[namespace name]", "[namespace locals name]"],
        "Like `resolve`, in a namespace of the language or a server; any other means the session's.",
        &[("(ns-resolve 'str 'join)", "#'str/join"), ("(ns-resolve 'user 'inc)", "#'inc")],
        ns_resolve,
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "find-var",
        &["[name]"],
        "Like `resolve`.",
        &[("(find-var 'clojure.core/inc)", "#'inc")],
        |machine, arguments| resolve(machine, &arguments[0]),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "intern",
        &["[name]", "[namespace name]", "[namespace name value]"],
        "Defines a name and returns its var; given one string, Common Lisp's `intern`: the symbol of that name.",
        &[("(intern 'user 'limit 5) limit", "5"), ("(intern \"a\")", "a")],
        intern,
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "alter-var-root",
        &["[var f & args]"],
        "Redefines a name as the result of `f` on its value and `args`, and returns it.",
        &[("(def n 1) (alter-var-root #'n + 10) n", "11")],
        alter_var_root,
    ),
    Builtin::new(
        "with-redefs-fn",
        &["[values-by-var f]"],
        "Calls `f` with definitions temporarily replaced.",
        &[("(defn f [] 1) [(with-redefs-fn {#'f (fn [] 2)} (fn [] (f))) (f)]", "[2 1]")],
        |machine, arguments| {
            let pairs = by_var(machine, take(arguments, 0))?;
            redefined(machine, pairs, &arguments[1])
        },
    ),
    Builtin::new(
        "with-bindings*",
        &["[values-by-var f & args]"],
        "Calls `f` with `args` while the vars are bound as by `binding`.",
        &[("(def ^:dynamic *x* 1) (with-bindings* {#'*x* 2} (fn [n] (+ n *x*)) 10)", "12")],
        |machine, arguments| {
            let pairs = by_var(machine, take(arguments, 0))?;
            let function = take(arguments, 1);
            machine.with_bindings(pairs, |machine| machine.call(&function, &mut arguments[2..]))
        },
    )
    .with_conduct(Conduct::CallsLast),
    Builtin::new(
        "bound-fn*",
        &["[f]"],
        "A function that calls `f` with the current bindings of `binding`.",
        &[("(def ^:dynamic *x* 1) (defn x [] *x*) ((binding [*x* 2] (bound-fn* x)))", "2")],
        |machine, arguments| {
            let bindings = bound_now(machine);
            Ok(Value::Bound(Arc::new(Bound {
                builtin: &BOUND_FUNCTION,
                arguments: vec![take(arguments, 0), bindings],
            })))
        },
    ),
    Builtin::new(
        "get-thread-bindings",
        &["[]"],
        "The bindings of enclosing `binding` forms: a map from var to value.",
        &[("(def ^:dynamic *x* 1) (binding [*x* 2] (get-thread-bindings))", "{#'*x* 2}")],
        |machine, _| Ok(bound_now(machine)),
    ),
    Builtin::new(
        "binding*",
        &["[& vars-values-and-function]"],
        "Expansion of `binding`.",
        &[],
        |machine, arguments| {
            let (function, pairs) = pairs(machine, arguments)?;
            machine.with_bindings(pairs, |machine| machine.call(&function, &mut []))
        },
    )
    .with_conduct(Conduct::CallsLast),
    Builtin::new(
        "with-redefs*",
        &["[& vars-values-and-function]"],
        "Expansion of `with-redefs`.",
        &[],
        |machine, arguments| {
            let (function, pairs) = pairs(machine, arguments)?;
            redefined(machine, pairs, &function)
        },
    )
    .with_conduct(Conduct::CallsLast),
    Builtin::new("local-var*", &["[value]"], "Expansion of `with-local-vars`.", &[], |machine, arguments| {
        let content = State::Done(take(arguments, 0));
        Ok(Value::Cell(machine.core.heap.allocate(CellKind::Var, content)))
    })
    .passing_on(),
];

/// Aliases of builtins of this file.
pub const ALIASES: &[(&str, &str)] = &[("requiring-resolve", "resolve"), ("symbol-function", "resolve")];

/// The internal function codes defined in this file.
pub const STEPS: &[&Builtin] = &[&UNBOUND, &BOUND_FUNCTION];

/// A function with the bindings captured at its creation. The first two arguments are the function and the bindings;
/// the others are passed to the function.
static BOUND_FUNCTION: Builtin = Builtin::new(
    "bound*",
    &["[f bindings & args]"],
    "A function with the bindings of its creation.",
    &[],
    |machine, arguments| {
        let pairs = by_var(machine, take(arguments, 1))?;
        let function = take(arguments, 0);
        machine.with_bindings(pairs, |machine| machine.call(&function, &mut arguments[2..]))
    },
);

/// A var: a definition by its name, or a local var of `with-local-vars`.
enum Var<'a> {
    Defined(&'a Name),
    Local(&'a Arc<Handle>),
}

impl Var<'_> {
    fn of(value: &Value) -> Option<Var<'_>> {
        match value {
            Value::Var(name) => Some(Var::Defined(name)),
            Value::Cell(handle) if handle.cell_kind() == CellKind::Var => Some(Var::Local(handle)),
            _ => None,
        }
    }

    fn expected(value: &Value) -> Result<Var<'_>, Error> {
        Var::of(value).ok_or_else(|| {
            Error::expected("a var", value)
                .suggest("`#'name` is the var of a definition, `(resolve 'name)` looks for one")
        })
    }

    fn value(&self, machine: &mut Machine) -> Outcome<Value> {
        match self {
            Var::Defined(name) => machine.var_value(name),
            Var::Local(handle) => machine.realise(handle),
        }
    }
}

/// Returns the index of the session's definition that a var refers to.
fn definition(machine: &mut Machine, value: &Value) -> Result<u32, Error> {
    match value {
        Value::Var(name) => machine.definition(name.as_str()),
        other => Err(Error::expected("a var such as `#'name`", other)),
    }
}

/// Fuel cost of a look-up by name, in steps.
const LOOK_UP: u64 = 64;

/// The number of known but undefined names that a session may have, in addition to the limit on bindings.
const NAMES: u64 = 10_000;

/// Resolves a symbol to its var, or nil; returns a var unchanged.
fn resolve(machine: &mut Machine, name: &Value) -> Outcome<Value> {
    match name {
        symbol if let Some(name) = symbol.as_symbol() => {
            // The look-up may scan the names of all tools.
            machine.charge(LOOK_UP)?;
            let known = machine.var_name(name.as_str())?;
            Ok(known.map_or(Value::Nil, |known| Value::Var(known.as_str().into())))
        }
        var @ Value::Var(_) => Ok(var.clone()),
        other => Err(Error::expected("a symbol", other).suggest("a quoted name: `(resolve 'inc)`").into()),
    }
}

fn is_among(locals: &Value, name: &Value) -> Outcome<bool> {
    Ok(match locals {
        Value::Nil => false,
        Value::Map(map) => map.get(name).is_some(),
        Value::Set(set) => set.contains(name),
        other => return Err(Error::expected("a map or set of local names", other).into()),
    })
}

fn ns_resolve(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let name = take(arguments, arguments.len() - 1);
    if arguments.len() == 3 && is_among(&arguments[1], &name)? {
        return Ok(Value::Nil);
    }
    if let (Some(namespace), Some(plain)) = (arguments[0].as_symbol(), name.as_symbol())
        && plain.namespace().is_none()
    {
        machine.reserve((namespace.as_str().len() + plain.as_str().len()) as u64)?;
        let qualified = Value::symbol(&format!("{}/{}", namespace.as_str(), plain.as_str()));
        let found = resolve(machine, &qualified)?;
        if !found.is_nil() {
            return Ok(found);
        }
    }
    resolve(machine, &name)
}

fn intern(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return names::symbol(machine, arguments);
    }
    let name = match &arguments[1] {
        Value::Str(text) => text.as_str(),
        other => match other.as_symbol() {
            Some(name) => name.as_str(),
            None => return Err(Error::expected("a symbol", other).into()),
        },
    };
    if split_name(name).0.is_some() || name.is_empty() {
        return Err(Error::expected("a plain name without a namespace", &arguments[1]).into());
    }
    let (name, metadata) = (name.to_string(), metadata(&arguments[1]));
    machine.reserve(4 * name.len() as u64)?;
    let allowed = u64::from(machine.core.meter.limits.bindings) + NAMES;
    let known = machine.core.globals.known() as u64;
    if known > allowed {
        return Err(limit("bindings", format!("{allowed} names"), format!("{known} names")).into());
    }
    let index = machine.core.globals.index(&name);
    let value = if arguments.len() == 3 { take(arguments, 2) } else { machine.declared_value(index) };
    let mut global = Global { value: Some(value), ..Global::default() };
    if let Some(metadata) = metadata {
        machine.add_metadata(&name, &mut global, metadata)?;
    }
    machine.set_definition(index, global);
    Ok(Value::Var(name.as_str().into()))
}

fn alter_var_root(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let index = definition(machine, &arguments[0])?;
    let function = take(arguments, 1);
    let old = machine.root(index).unwrap_or_default();
    arguments[1] = old;
    let value = machine.call(&function, &mut arguments[1..])?;
    let mut global = machine.core.globals.get(index).clone();
    global.value = Some(value.clone());
    machine.set_definition(index, global);
    Ok(value)
}

fn var_set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 1);
    match Var::expected(&arguments[0])? {
        Var::Local(handle) => drop(machine.core.heap.change(handle, State::Done(value.clone()))?),
        Var::Defined(name) => {
            let shown = shown_name(name.as_str());
            match machine.core.globals.find(name.as_str()).filter(|index| machine.is_bound_here(*index)) {
                Some(index) => machine.rebind(index, value.clone()),
                None => {
                    return Err(Error::new("NotBound", format!("`{shown}` is not bound by a `binding` around this place"))
                        .about(shown)
                        .suggest(format!(
                            "`(def {shown} …)` redefines it; what changes is held by an atom: `(def {shown} (atom 0)) (reset! {shown} 5) @{shown}`"
                        ))
                        .into());
                }
            }
        }
    }
    Ok(value)
}

fn is_bound(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    for var in arguments.iter() {
        let has_value = match Var::expected(var)? {
            Var::Local(_) => true,
            Var::Defined(name) => match machine.core.globals.find(name.as_str()) {
                Some(index) => !machine.core.globals.get(index).value.as_ref().is_some_and(is_unbound),
                // A name of the language or of a server, unless it is a definition that was removed.
                None => name.namespace().is_some() || machine.var_value(name).is_ok(),
            },
        };
        if !has_value {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn is_bound_here(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    for var in arguments.iter() {
        let holds = match Var::expected(var)? {
            Var::Local(_) => true,
            Var::Defined(name) => {
                machine.core.globals.find(name.as_str()).is_some_and(|index| machine.is_bound_here(index))
            }
        };
        if !holds {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

/// Converts a map from vars to values to pairs of definition indices and values.
fn by_var(machine: &mut Machine, bindings: Value) -> Outcome<Vec<(u32, Value)>> {
    let bindings = map(bindings)?;
    machine.charge(bindings.len() as u64)?;
    machine.reserve_values(2 * bindings.len() as u64)?;
    let mut out = Vec::with_capacity(bindings.len());
    for (var, value) in bindings.iter() {
        out.push((definition(machine, var)?, value.clone()));
    }
    Ok(out)
}

/// Takes alternating vars and values and the function that follows them.
fn pairs(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<(Value, Vec<(u32, Value)>)> {
    let Some((function, pairs)) = arguments.split_last_mut() else { return Ok((Value::Nil, Vec::new())) };
    let mut out = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact_mut(2) {
        out.push((definition(machine, &pair[0])?, take(pair, 1)));
    }
    Ok((std::mem::take(function), out))
}

/// Calls a function while definitions have other values, which branches started meanwhile also see. Inside a branch the
/// new values are visible to that branch only, since concurrent branches may end in any order.
fn redefined(machine: &mut Machine, pairs: Vec<(u32, Value)>, function: &Value) -> Outcome<Value> {
    if machine.is_branch() {
        return machine.with_bindings(pairs, |machine| machine.call(function, &mut []));
    }
    let mut before = Vec::with_capacity(pairs.len());
    for (index, value) in pairs {
        before.push((index, machine.exchange_root(index, Some(value))));
    }
    let result = machine.call(function, &mut []);
    for (index, value) in before.into_iter().rev() {
        machine.exchange_root(index, value);
    }
    result
}

fn bound_now(machine: &Machine) -> Value {
    let mut out = Map::default();
    for (index, value) in machine.bound_now() {
        out.insert(Value::Var(machine.core.globals.name(index).into()), value);
    }
    Value::Map(Arc::new(out))
}
