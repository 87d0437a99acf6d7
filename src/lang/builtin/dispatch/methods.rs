//! Multimethods: `defmulti`, `defmethod` and related queries.

use super::hierarchy::{is_a, session_parents};
use crate::builtin::arguments::take;
use crate::error::{Error, Outcome, describe};
use crate::heap::{CellKind, Handle, State};
use crate::machine::Machine;
use crate::native::{Builtin, Role};
use crate::value::Value;
use crate::value::function::Bound;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "multimethod*",
        &["[name dispatch default hierarchy]"],
        "Expansion of `defmulti`.",
        &[],
        |machine, arguments| {
            let [name, dispatch, default, hierarchy] = arguments else { return Ok(Value::Nil) };
            let (name, dispatch) = (std::mem::take(name), std::mem::take(dispatch));
            Ok(multimethod(machine, name, dispatch, std::mem::take(default), std::mem::take(hierarchy)))
        },
    ),
    Builtin::new("method*", &["[multi value function]"], "Expansion of `defmethod`.", &[], |machine, arguments| {
        let multi = take(arguments, 0);
        let value = machine.key(take(arguments, 1))?;
        add(machine, &multi, value, take(arguments, 2))?;
        Ok(multi)
    }),
    Builtin::new(
        "methods",
        &["[multi]"],
        "A map of the methods of a multimethod by dispatch value.",
        &[("(defmulti f :kind) (defmethod f :a [_] 1) (keys (methods f))", "(:a)")],
        |machine, arguments| Ok(Value::Map(part(machine, &arguments[0], "methods")?)),
    ),
    Builtin::new(
        "get-method",
        &["[multi value]"],
        "The method selected for a dispatch value; nil if none.",
        &[("(defmulti f :kind) (defmethod f :default [_] 1) ((get-method f :b) {})", "1")],
        |machine, arguments| {
            let multi = Multi::of(&arguments[0])?;
            let value = machine.key(take(arguments, 1))?;
            Ok(multi.choose(machine, &value)?.unwrap_or_default())
        },
    ),
    Builtin::new(
        "remove-method",
        &["[multi value]"],
        "Removes the method of a dispatch value.",
        &[("(defmulti f :kind) (defmethod f :a [_] 1) (remove-method f :a) (methods f)", "{}")],
        |machine, arguments| {
            let value = machine.key(take(arguments, 1))?;
            let mut methods = (*part(machine, &arguments[0], "methods")?).clone();
            methods.remove(&value);
            replace(machine, &arguments[0], "methods", methods)?;
            Ok(take(arguments, 0))
        },
    ),
    Builtin::new(
        "remove-all-methods",
        &["[multi]"],
        "Removes all methods.",
        &[("(defmulti f :kind) (defmethod f :a [_] 1) (methods (remove-all-methods f))", "{}")],
        |machine, arguments| {
            replace(machine, &arguments[0], "methods", Map::default())?;
            Ok(take(arguments, 0))
        },
    ),
    Builtin::new(
        "prefer-method",
        &["[multi value other]"],
        "If both dispatch values match, the first one's method is used.",
        &[("(defmulti f :kind) (prefers (prefer-method f :a :b))", "{:a #{:b}}")],
        |machine, arguments| {
            let (value, other) = (machine.key(take(arguments, 1))?, machine.key(take(arguments, 2))?);
            let mut prefers = (*part(machine, &arguments[0], "prefers")?).clone();
            let mut over = match prefers.get(&value) {
                Some(Value::Set(set)) => (**set).clone(),
                _ => Default::default(),
            };
            over.insert(other);
            prefers.insert(value, Value::Set(Arc::new(over)));
            replace(machine, &arguments[0], "prefers", prefers)?;
            Ok(take(arguments, 0))
        },
    ),
    Builtin::new(
        "prefers",
        &["[multi]"],
        "A map from dispatch value to the set it is preferred over.",
        &[("(defmulti f :kind) (prefers f)", "{}")],
        |machine, arguments| Ok(Value::Map(part(machine, &arguments[0], "prefers")?)),
    ),
];

/// Builtins that implement the function values created in this module.
pub const STEPS: &[&Builtin] = &[&MULTI];

/// The code of a multimethod: five bound arguments hold its parts, the others are those of the call.
static MULTI: Builtin = Builtin::new(
    "multi*",
    &["[cell name dispatch default hierarchy & args]"],
    "A multimethod.",
    &[],
    |machine, arguments| {
        let (own, call) = arguments.split_at_mut(5);
        let multi = Multi::read(own)?;
        let method = multi.method_for(machine, call)?;
        machine.call(&method, call)
    },
)
.with_role(Role::Multimethod);

/// The parts of a multimethod.
pub struct Multi {
    cell: Arc<Handle>,
    name: Value,
    dispatch: Value,
    default: Value,
    hierarchy: Value,
}

/// Creates a multimethod without methods.
pub fn multimethod(machine: &mut Machine, name: Value, dispatch: Value, default: Value, hierarchy: Value) -> Value {
    let cell = machine.core.heap.allocate(CellKind::Atom, State::Done(Value::Map(Arc::default())));
    let arguments = vec![Value::Cell(cell), name, dispatch, default, hierarchy];
    Value::Bound(Arc::new(Bound { builtin: &MULTI, arguments }))
}

impl Multi {
    fn read(own: &[Value]) -> Outcome<Multi> {
        match own {
            [Value::Cell(cell), name, dispatch, default, hierarchy, ..] => Ok(Multi {
                cell: cell.clone(),
                name: name.clone(),
                dispatch: dispatch.clone(),
                default: default.clone(),
                hierarchy: hierarchy.clone(),
            }),
            _ => Err(crate::eval::internal_error().into()),
        }
    }

    /// Returns the parts of a multimethod.
    ///
    /// # Errors
    /// Returns `TypeError` if the value is not a multimethod.
    pub fn of(value: &Value) -> Outcome<Multi> {
        match value {
            Value::Bound(bound) if bound.role() == Role::Multimethod => Multi::read(&bound.arguments),
            other => Err(Error::expected("a multimethod", other)
                .suggest("`(defmulti name dispatch-fn)` defines one, `(defmethod name value [args] …)` adds to it")
                .into()),
        }
    }

    fn state(&self, machine: &mut Machine) -> Outcome<Arc<Map>> {
        match machine.core.heap.state(&self.cell)? {
            State::Done(Value::Map(map)) => Ok(map.clone()),
            _ => Ok(Arc::default()),
        }
    }

    fn part(&self, machine: &mut Machine, name: &str) -> Outcome<Arc<Map>> {
        match self.state(machine)?.get(&Value::keyword(name)) {
            Some(Value::Map(map)) => Ok(map.clone()),
            _ => Ok(Arc::default()),
        }
    }

    fn is_of_protocol(&self) -> bool {
        self.dispatch.is_nil()
    }

    /// Returns the method that the value itself carries: as an object of `reify`, or in its metadata if the protocol
    /// permits that. A protocol has no default, so its `default` slot holds this flag.
    fn carried(&self, first: &Value) -> Option<Value> {
        if let Value::Map(map) = first
            && let Some(own) = map.kind().and_then(|kind| kind.get(&self.name))
        {
            return Some(own.clone());
        }
        let own = if self.default.is_truthy() { metadata(first)? } else { return None };
        own.get(&self.name).or_else(|| own.get(&Value::symbol(&format!("user/{}", self.name)))).cloned()
    }

    /// Selects the method for a call: by the dispatch function or, for a protocol, which has none, a method that the
    /// first argument carries, else by its type.
    fn method_for(&self, machine: &mut Machine, call: &[Value]) -> Outcome<Value> {
        let value = if self.is_of_protocol() {
            let first = call.first().cloned().unwrap_or_default();
            let class = crate::builtin::types::class_name(&first);
            // A method of the record's own type takes precedence over one in its metadata.
            let is_record = matches!(&first, Value::Map(map) if map.fields().is_some());
            let own = if is_record { self.part(machine, "methods")?.get(&class).cloned() } else { None };
            if let Some(method) = own.or_else(|| self.carried(&first)) {
                return Ok(method);
            }
            class
        } else {
            machine.pay_for_arguments(call.len())?;
            let value = machine.call(&self.dispatch, &mut call.to_vec())?;
            machine.key(value)?
        };
        match self.choose(machine, &value)? {
            Some(method) => Ok(method),
            None => Err(self.without_method(machine, &value, call)?.into()),
        }
    }

    /// Selects the method for a dispatch value: the exact one, else the preferred one among its ancestors', else the
    /// default.
    fn choose(&self, machine: &mut Machine, value: &Value) -> Outcome<Option<Value>> {
        let methods = self.part(machine, "methods")?;
        if let Some(method) = methods.get(value) {
            return Ok(Some(method.clone()));
        }
        let hierarchy = match &self.hierarchy {
            Value::Var(name) => machine.var_value(name)?,
            other => other.clone(),
        };
        let parents = match &hierarchy {
            Value::Nil => session_parents(machine)?,
            Value::Cell(cell) => match machine.core.heap.state(cell)? {
                State::Done(Value::Map(map)) => parents_in(map),
                _ => Arc::default(),
            },
            Value::Map(map) => parents_in(map),
            _ => Arc::default(),
        };
        let mut best: Option<(&Value, &Value)> = None;
        for (key, method) in methods.iter() {
            if !is_a(machine, &parents, value, key)? {
                continue;
            }
            best = match best {
                None => Some((key, method)),
                Some((other, _)) if self.dominates(machine, &parents, key, other)? => Some((key, method)),
                Some((other, _)) if !self.dominates(machine, &parents, other, key)? => {
                    return Err(Error::new(
                        "AmbiguousMethod",
                        format!("`{}` has methods for both {other:?} and {key:?}, and {value:?} fits both", self.name),
                    )
                    .suggest(format!("say which comes first: `(prefer-method {} {key:?} {other:?})`", self.name))
                    .into());
                }
                better => better,
            };
        }
        // A protocol has no default: its implementation for nil applies to nil alone.
        let default = || if self.is_of_protocol() { None } else { methods.get(&self.default).cloned() };
        Ok(best.map(|(_, method)| method.clone()).or_else(default))
    }

    /// True if the method of `one` takes precedence over that of `other`.
    fn dominates(&self, machine: &mut Machine, parents: &Map, one: &Value, other: &Value) -> Outcome<bool> {
        let prefers = self.part(machine, "prefers")?;
        let preferred = matches!(prefers.get(one), Some(Value::Set(over)) if over.contains(other));
        Ok(preferred || is_a(machine, parents, one, other)?)
    }

    #[cold]
    fn without_method(&self, machine: &mut Machine, value: &Value, call: &[Value]) -> Outcome<Error> {
        let known: Vec<String> =
            self.part(machine, "methods")?.iter().take(8).map(|(key, _)| format!("{key:?}")).collect();
        let known = if known.is_empty() { "none yet".to_string() } else { known.join(", ") };
        let name = &self.name;
        Ok(if self.is_of_protocol() {
            let first = call.first().cloned().unwrap_or_default();
            Error::new("NoMethod", format!("`{name}` is not implemented for {}", describe(&first))).suggest(format!(
                "it is for: {known}; add one with `(extend-type {value} PROTOCOL ({name} [this …] …))`"
            ))
        } else {
            Error::new("NoMethod", format!("`{name}` has no method for the dispatch value {value:?}")).suggest(format!(
                "there are methods for: {known}; add one with `(defmethod {name} {value:?} [args] …)`, or a default with `:default`"
            ))
        })
    }
}

/// True for a function of a protocol.
pub fn is_of_protocol(function: &Value) -> bool {
    Multi::of(function).is_ok_and(|multi| multi.is_of_protocol())
}

/// Returns a protocol function's implementation for a value; `None` if there is none.
///
/// # Errors
/// Returns `TypeError` if `function` is not a multimethod; halts if a resource limit is exceeded.
pub fn implemented(machine: &mut Machine, function: &Value, value: &Value) -> Outcome<Option<Value>> {
    let multi = Multi::of(function)?;
    match multi.carried(value) {
        Some(method) => Ok(Some(method)),
        None => multi.choose(machine, &crate::builtin::types::class_name(value)),
    }
}

fn parents_in(hierarchy: &Map) -> Arc<Map> {
    match hierarchy.get(&Value::keyword("parents")) {
        Some(Value::Map(parents)) => parents.clone(),
        _ => Arc::default(),
    }
}

fn part(machine: &mut Machine, multi: &Value, name: &str) -> Outcome<Arc<Map>> {
    Multi::of(multi)?.part(machine, name)
}

/// Replaces a part of a multimethod's state; the change is rolled back with the form.
fn replace(machine: &mut Machine, multi: &Value, name: &str, part: Map) -> Outcome<()> {
    let multi = Multi::of(multi)?;
    let mut state = (*multi.state(machine)?).clone();
    state.insert(Value::keyword(name), Value::Map(Arc::new(part)));
    machine.core.heap.change(&multi.cell, State::Done(Value::Map(Arc::new(state))))?;
    Ok(())
}

/// Adds a method.
///
/// # Errors
/// Returns `TypeError` if `multi` is not a multimethod.
pub fn add(machine: &mut Machine, multi: &Value, value: Value, function: Value) -> Outcome<()> {
    let mut methods = (*part(machine, multi, "methods")?).clone();
    machine.charge(methods.len() as u64 / 16)?;
    methods.insert(value, function);
    replace(machine, multi, "methods", methods)
}
