//! What changes or is put off: atoms, volatiles, delays.
//!
//! The content of a cell is in the session's heap, which remembers what a form changed, so that a form
//! that fails leaves the cells as they were.

use super::Builtin;
use super::arguments::take;
use super::identity::identical;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::heap::{CellKind, Handle, State};
use crate::lang::value::Value;
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "atom",
        &["[x]"],
        "A cell that holds `x` until `swap!` or `reset!` changes it; `@` looks into it.",
        &[("(let [a (atom 1)] (swap! a inc) @a)", "2")],
        atom,
    ),
    Builtin::new(
        "volatile!",
        &["[x]"],
        "A cell as `atom` makes it, for `vswap!` and `vreset!`.",
        &[("(let [v (volatile! 1)] (vreset! v 2) @v)", "2")],
        volatile,
    ),
    Builtin::new(
        "deref",
        &["[cell]"],
        "What an atom or volatile holds, a delay comes to, or a var stands for; `@x` is `(deref x)`.",
        &[("(deref (atom 1))", "1"), ("@(delay (+ 1 2))", "3")],
        deref,
    ),
    Builtin::new(
        "swap!",
        &["[atom f & args]"],
        "Makes the atom hold what `f` makes of its content and `args`, and returns that.",
        &[("(swap! (atom 1) + 2 3)", "6"), ("(let [a (atom {})] (swap! a assoc :k 1) @a)", "{:k 1}")],
        swap,
    ),
    Builtin::new(
        "reset!",
        &["[atom x]"],
        "Makes the atom hold `x`, and returns it.",
        &[("(reset! (atom 1) 5)", "5")],
        reset,
    ),
    Builtin::new(
        "swap-vals!",
        &["[atom f & args]"],
        "`swap!` that returns the old content and the new, as `[old new]`.",
        &[("(swap-vals! (atom 1) inc)", "[1 2]")],
        swap_vals,
    ),
    Builtin::new(
        "reset-vals!",
        &["[atom x]"],
        "`reset!` that returns the old content and the new, as `[old new]`.",
        &[("(reset-vals! (atom 1) 5)", "[1 5]")],
        reset_vals,
    ),
    Builtin::new(
        "compare-and-set!",
        &["[atom old new]"],
        "Makes the atom hold `new` if it holds `old`; true if it did.",
        &[("(compare-and-set! (atom 1) 1 2)", "true"), ("(compare-and-set! (atom 1) 7 2)", "false")],
        compare_and_set,
    ),
    Builtin::new(
        "force",
        &["[x]"],
        "What a delay comes to; anything else as it is.",
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
    Builtin::new("delay*", &["[f]"], "What `delay` expands to.", &[], delay_star),
];

/// Other names of what is in this file.
pub const ALIASES: &[(&str, &str)] = &[("vreset!", "reset!"), ("vswap!", "swap!")];

fn atom(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let content = State::Done(take(arguments, 0));
    Ok(Value::Cell(machine.core.heap.allocate(CellKind::Atom, content)))
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
        Value::Cell(handle) if handle.cell_kind() != CellKind::Transient => machine.realise(&handle),
        Value::Var(name) => machine.var_value(&name),
        Value::Reduced(inner) => Ok(inner.0.clone()),
        other => Err(Error::expected("an atom, a volatile, a delay or a var", &other)
            .suggest("only cells are looked into with `@`; other values are used as they are")
            .into()),
    }
}

/// An atom or a volatile.
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

/// Old and new content of a `swap!`. While the function waits for a tool another branch may change the
/// atom; then the function runs again on what is there now.
fn exchange(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<(Value, Value)> {
    let handle = changeable(take(arguments, 0))?;
    let function = take(arguments, 1);
    loop {
        let old = machine.realise(&handle)?;
        let new = match &arguments[2..] {
            [] => machine.call1(&function, old.clone())?,
            more => machine.call(&function, &mut [std::slice::from_ref(&old), more].concat())?,
        };
        if identical(&machine.realise(&handle)?, &old) {
            machine.core.heap.change(&handle, State::Done(new.clone()))?;
            return Ok((old, new));
        }
    }
}

fn reset(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (handle, value) = (changeable(take(arguments, 0))?, take(arguments, 1));
    machine.core.heap.change(&handle, State::Done(value.clone()))?;
    Ok(value)
}

fn reset_vals(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (handle, value) = (changeable(take(arguments, 0))?, take(arguments, 1));
    let old = machine.realise(&handle)?;
    machine.core.heap.change(&handle, State::Done(value.clone()))?;
    Ok(Value::vector(vec![old, value]))
}

fn compare_and_set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let handle = changeable(take(arguments, 0))?;
    let holds = identical(&machine.realise(&handle)?, &arguments[1]);
    if holds {
        machine.core.heap.change(&handle, State::Done(take(arguments, 2)))?;
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
            Ok(Value::Bool(matches!(machine.core.heap.state(handle)?, State::Done(_))))
        }
        Value::List(_) => Ok(Value::Bool(true)),
        other => Err(Error::expected("a delay or a lazy sequence", other).into()),
    }
}
