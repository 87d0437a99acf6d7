//! Mutable and deferred values: atoms with watches and validators, volatiles, delays.
//!
//! The content of a cell is in the session's heap. Its undo log records the changes of a form, so that a failing form
//! leaves the cells unchanged.

use super::arguments::take;
use super::equality::identical;
use super::kinds::is_callable;
use super::metadata::map_of_metadata;
use super::options::{FUNCTION, MAP};
use crate::error::{Error, Outcome, describe};
use crate::heap::{CellKind, Handle, Notes, State};
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "atom",
        &["[x & options]"],
        "A mutable reference to `x`, changed by `swap!` and `reset!`, read with `@`.\n\
         Options: `:meta`, its metadata; `:validator`, a predicate that every value it holds must satisfy.",
        &[("(let [a (atom 1)] (swap! a inc) @a)", "2"), ("(meta (atom 1 :meta {:unit :eur}))", "{:unit :eur}")],
        atom,
    )
    .with_options(&ATOM)
    .passing_on(),
    Builtin::new(
        "volatile!",
        &["[x]"],
        "A mutable reference like an atom, for `vswap!` and `vreset!`.",
        &[("(let [v (volatile! 1)] (vreset! v 2) @v)", "2")],
        volatile,
    )
    .passing_on(),
    Builtin::new(
        "Object.",
        &["[]"],
        "A new value identical to no other: a sentinel that no data contains.",
        &[("(let [none (Object.)] (identical? none (get {} :a none)))", "true")],
        |machine, _| Ok(Value::Cell(machine.core.heap.allocate(CellKind::Volatile, State::Done(Value::Nil)))),
    ),
    Builtin::new(
        "deref",
        &["[cell]"],
        "The value of an atom, volatile, delay or var; `@x` is `(deref x)`.",
        &[("(deref (atom 1))", "1"), ("@(delay (+ 1 2))", "3")],
        deref,
    ),
    Builtin::new(
        "swap!",
        &["[atom f & args]"],
        "Sets the atom to `(f value args…)` and returns the new value.",
        &[("(swap! (atom 1) + 2 3)", "6"), ("(let [a (atom {})] (swap! a assoc :k 1) @a)", "{:k 1}")],
        swap,
    )
    .passing_on(),
    Builtin::new(
        "reset!",
        &["[atom x]"],
        "Sets the atom to `x` and returns `x`.",
        &[("(reset! (atom 1) 5)", "5")],
        reset,
    )
    .passing_on(),
    Builtin::new(
        "swap-vals!",
        &["[atom f & args]"],
        "Like `swap!`, but returns the old and the new value, `[old new]`.",
        &[("(swap-vals! (atom 1) inc)", "[1 2]")],
        swap_vals,
    )
    .passing_on(),
    Builtin::new(
        "reset-vals!",
        &["[atom x]"],
        "Like `reset!`, but returns the old and the new value, `[old new]`.",
        &[("(reset-vals! (atom 1) 5)", "[1 5]")],
        reset_vals,
    )
    .passing_on(),
    Builtin::new(
        "compare-and-set!",
        &["[atom old new]"],
        "Sets the atom to `new` if its value is identical to `old`; true if so.",
        &[("(compare-and-set! (atom 1) 1 2)", "true"), ("(compare-and-set! (atom 1) 7 2)", "false")],
        compare_and_set,
    ),
    Builtin::new(
        "add-watch",
        &["[atom key f]"],
        "Calls `f` with `key`, the atom, its old and its new value after each change; returns the atom.\n\
         Replaces a watch with an equal key; watches are called in the order in which they were added.",
        &[(
            "(let [a (atom 1) seen (atom [])] (add-watch a :log (fn [k a old new] (swap! seen conj [k old new]))) (swap! a inc) @seen)",
            "[[:log 1 2]]",
        )],
        add_watch,
    ),
    Builtin::new(
        "remove-watch",
        &["[atom key]"],
        "Removes the watch with that key; returns the atom.",
        &[("(let [a (atom 1)] (add-watch a :k println) (remove-watch a :k) (reset! a 2))", "2")],
        remove_watch,
    ),
    Builtin::new(
        "set-validator!",
        &["[atom f]"],
        "Makes the atom accept only values for which `f` is true; nil removes the validator.",
        &[(
            "(let [a (atom 1)] (set-validator! a pos?) (try (reset! a -1) (catch Exception e (ex-message e))))",
            "\"Invalid reference state: -1 (an integer) does not pass the validator\"",
        )],
        set_validator,
    ),
    Builtin::new(
        "get-validator",
        &["[atom]"],
        "The validator of an atom, or nil.",
        &[("(get-validator (atom 1))", "nil"), ("((get-validator (atom 1 :validator pos?)) -1)", "false")],
        |machine, arguments| {
            let handle = changeable(take(arguments, 0))?;
            Ok(machine.core.heap.notes(&handle).map_or(Value::Nil, |notes| notes.validator.clone()))
        },
    ),
    Builtin::new(
        "force",
        &["[x]"],
        "The value of a delay; any other value unchanged.",
        &[("(force (delay 1))", "1"), ("(force 2)", "2")],
        force,
    ),
    Builtin::new(
        "realized?",
        &["[x]"],
        "True if a delay or a lazy sequence has been computed.",
        &[("(realized? (delay 1))", "false"), ("(realized? (lazy-seq [1]))", "false")],
        is_realized,
    ),
    Builtin::new("delay*", &["[f]"], "Expansion of `delay`.", &[], delay_star),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("vreset!", "reset!"), ("vswap!", "swap!")];

static ATOM: OptionSet =
    OptionSet { function: "atom", accepted: &[OptionSpec::new("meta", &MAP), OptionSpec::new("validator", &FUNCTION)] };

fn atom(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let content = take(arguments, 0);
    let given = ATOM.read(&mut arguments[1..])?;
    let metadata = map_of_metadata(given.or_nil("meta"))?;
    let notes = Notes { metadata, validator: given.or_nil("validator"), ..Notes::default() };
    validate(machine, &notes.validator, &content)?;
    let handle = machine.core.heap.allocate(CellKind::Atom, State::Done(content));
    if !notes.is_empty() {
        machine.core.heap.annotate(&handle, notes)?;
    }
    Ok(Value::Cell(handle))
}

/// Returns the notes of an atom: metadata, validator and watches.
fn notes_of(machine: &Machine, handle: &Handle) -> Notes {
    machine.core.heap.notes(handle).map_or_else(Notes::default, |notes| (**notes).clone())
}

/// Replaces the metadata of an atom; the change is rolled back with the form.
///
/// # Errors
/// Returns `ForeignCell` if the cell belongs to another session.
pub(crate) fn set_metadata(machine: &mut Machine, handle: &Arc<Handle>, metadata: Option<Arc<Map>>) -> Outcome<()> {
    let notes = Notes { metadata, ..notes_of(machine, handle) };
    Ok(machine.core.heap.annotate(handle, notes)?)
}

/// Calls the validator, if there is one, and raises `InvalidState` if it rejects the content.
fn validate(machine: &mut Machine, validator: &Value, content: &Value) -> Outcome<()> {
    if validator.is_nil() || machine.call1(validator, content.clone())?.is_truthy() {
        return Ok(());
    }
    let message = format!("Invalid reference state: {} does not pass the validator", describe(content));
    Err(Error::new("InvalidState", message).into())
}

/// Changes the content of an atom, then calls the watches. The caller has already called the validator.
fn change(machine: &mut Machine, cell: &Arc<Handle>, old: Value, new: Value) -> Outcome<()> {
    let notes = machine.core.heap.notes(cell).cloned();
    machine.core.heap.change(cell, State::Done(new.clone()))?;
    for (key, watch) in notes.iter().flat_map(|notes| notes.watches.iter()) {
        machine.charge(1)?;
        machine.call(watch, &mut [key.clone(), Value::Cell(cell.clone()), old.clone(), new.clone()])?;
    }
    Ok(())
}

/// Calls an atom's own validator on its prospective content.
fn validate_for(machine: &mut Machine, cell: &Handle, content: &Value) -> Outcome<()> {
    match machine.core.heap.notes(cell).cloned() {
        Some(notes) => validate(machine, &notes.validator, content),
        None => Ok(()),
    }
}

/// Checks that a value is callable, so that a mistake surfaces where it was made.
fn callable(value: &Value) -> Result<(), Error> {
    if is_callable(value) { Ok(()) } else { Err(Error::expected("a function", value)) }
}

fn add_watch(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let handle = changeable(take(arguments, 0))?;
    let (key, watch) = (machine.key(take(arguments, 1))?, take(arguments, 2));
    callable(&watch)?;
    let mut notes = notes_of(machine, &handle);
    machine.charge(notes.watches.len() as u64 / 16)?;
    Arc::make_mut(&mut notes.watches).insert(key, watch);
    machine.core.heap.annotate(&handle, notes)?;
    Ok(Value::Cell(handle))
}

fn remove_watch(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let handle = changeable(take(arguments, 0))?;
    let key = machine.key(take(arguments, 1))?;
    let mut notes = notes_of(machine, &handle);
    machine.charge(notes.watches.len() as u64 / 16)?;
    Arc::make_mut(&mut notes.watches).remove(&key);
    machine.core.heap.annotate(&handle, notes)?;
    Ok(Value::Cell(handle))
}

fn set_validator(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let handle = changeable(take(arguments, 0))?;
    let validator = take(arguments, 1);
    if !validator.is_nil() {
        callable(&validator)?;
    }
    let content = machine.realise(&handle)?;
    validate(machine, &validator, &content)?;
    let notes = Notes { validator, ..notes_of(machine, &handle) };
    machine.core.heap.annotate(&handle, notes)?;
    Ok(Value::Nil)
}

fn volatile(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let content = State::Done(take(arguments, 0));
    Ok(Value::Cell(machine.core.heap.allocate(CellKind::Volatile, content)))
}

fn delay_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = State::Waiting(take(arguments, 0));
    Ok(Value::Cell(machine.core.heap.allocate(CellKind::Delay, function)))
}

fn deref(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        Value::Cell(handle)
            if !matches!(handle.cell_kind(), CellKind::Transient | CellKind::Matcher | CellKind::Text) =>
        {
            machine.realise(&handle)
        }
        Value::Var(name) => machine.var_value(&name),
        Value::Reduced(inner) => Ok(inner.0.clone()),
        other => Err(Error::expected("an atom, a volatile, a delay or a var", &other)
            .suggest("only cells are dereferenced with `@`; use other values directly")
            .into()),
    }
}

/// Returns the handle of an atom or a volatile.
fn changeable(value: Value) -> Outcome<Arc<Handle>> {
    match value {
        Value::Cell(handle) if matches!(handle.cell_kind(), CellKind::Atom | CellKind::Volatile) => Ok(handle),
        other => Err(Error::expected("an atom", &other)
            .suggest("an atom is made with `(atom x)`; other values never change")
            .into()),
    }
}

fn swap(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    exchange(machine, arguments).map(|(_, new)| new)
}

fn swap_vals(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    exchange(machine, arguments).map(|(old, new)| Value::vector(vec![old, new]))
}

/// Performs a `swap!` and returns the old and new content. While the function waits for a tool, another branch may
/// change the atom; in that case the function is retried on the current content.
fn exchange(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<(Value, Value)> {
    let handle = changeable(take(arguments, 0))?;
    let function = take(arguments, 1);
    loop {
        let old = machine.realise(&handle)?;
        let new = match &arguments[2..] {
            [] => machine.call1(&function, old.clone())?,
            more => machine.call(&function, &mut [std::slice::from_ref(&old), more].concat())?,
        };
        validate_for(machine, &handle, &new)?;
        if identical(&machine.realise(&handle)?, &old) {
            change(machine, &handle, old.clone(), new.clone())?;
            return Ok((old, new));
        }
    }
}

fn reset(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (handle, value) = (changeable(take(arguments, 0))?, take(arguments, 1));
    exchange_for(machine, &handle, value.clone())?;
    Ok(value)
}

/// Sets the content of an atom and returns the previous content.
fn exchange_for(machine: &mut Machine, cell: &Arc<Handle>, value: Value) -> Outcome<Value> {
    validate_for(machine, cell, &value)?;
    let old = machine.realise(cell)?;
    change(machine, cell, old.clone(), value)?;
    Ok(old)
}

fn reset_vals(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (handle, value) = (changeable(take(arguments, 0))?, take(arguments, 1));
    let old = exchange_for(machine, &handle, value.clone())?;
    Ok(Value::vector(vec![old, value]))
}

fn compare_and_set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let handle = changeable(take(arguments, 0))?;
    let holds = identical(&machine.realise(&handle)?, &arguments[1]);
    if holds {
        exchange_for(machine, &handle, take(arguments, 2))?;
    }
    Ok(Value::Bool(holds))
}

fn force(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        Value::Cell(handle) if handle.cell_kind() == CellKind::Delay => machine.realise(&handle),
        other => Ok(other),
    }
}

fn is_realized(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        Value::Lazy(handle) | Value::Cell(handle) if matches!(handle.cell_kind(), CellKind::Lazy | CellKind::Delay) => {
            Ok(Value::Bool(matches!(machine.core.heap.state(handle)?, State::Done(_) | State::Failed(_))))
        }
        Value::List(_) => Ok(Value::Bool(true)),
        other => Err(Error::expected("a delay or a lazy sequence", other).into()),
    }
}
