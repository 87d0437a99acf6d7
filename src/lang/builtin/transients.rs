//! Transients: collections that are changed in place until `persistent!` converts them to values again.
//!
//! A transient is a cell that uniquely owns its content, so that updates copy nothing.

use super::arguments::take;
use super::metadata::without_metadata;
use super::{ends, maps, sequences, sets};
use crate::error::{Error, Outcome};
use crate::eval::transients::{SPENT, cell_of, spent};
use crate::heap::{CellKind, State};
use crate::machine::Machine;
use crate::native::{Builtin, Run};
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "transient",
        &["[coll]"],
        "A mutable copy of a vector, map or set, changed in place by `conj!`, `assoc!`, `dissoc!`, `disj!` and `pop!`; \
         `persistent!` converts it back.\n\
         It is read with `get`, `nth`, `count` and `contains?`. `conj` and `assoc` are as fast on a collection with no \
         other references.",
        &[("(persistent! (conj! (transient [1]) 2))", "[1 2]"), ("(count (transient {:a 1}))", "1")],
        transient,
    ),
    Builtin::new(
        "persistent!",
        &["[transient]"],
        "The persistent collection of a transient. The transient cannot be used after that.",
        &[("(persistent! (assoc! (transient {}) :a 1))", "{:a 1}")],
        persistent,
    ),
    Builtin::new(
        "conj!",
        &["[]", "[transient]", "[transient x]"],
        "Adds an item to a transient, in place, and returns it.",
        &[("(persistent! (reduce conj! (transient []) [1 2]))", "[1 2]")],
        add,
    )
    .passing_on(),
    Builtin::new(
        "assoc!",
        &["[transient key val & keyvals]"],
        "Sets keys of a transient map, or indices of a transient vector, to values in place, and returns it.",
        &[("(persistent! (assoc! (transient [1 2]) 0 5))", "[5 2]")],
        put,
    )
    .passing_on(),
    Builtin::new(
        "dissoc!",
        &["[transient key & keys]"],
        "Removes keys from a transient map, in place, and returns it.",
        &[("(persistent! (dissoc! (transient {:a 1 :b 2}) :a))", "{:b 2}")],
        |machine, arguments| change(machine, arguments, maps::dissoc),
    ),
    Builtin::new(
        "disj!",
        &["[transient]", "[transient item & items]"],
        "Removes members from a transient set, in place, and returns it.",
        &[("(persistent! (disj! (transient #{1 2}) 1))", "#{2}")],
        |machine, arguments| {
            if arguments.len() == 1 { Ok(take(arguments, 0)) } else { change(machine, arguments, sets::disj) }
        },
    ),
    Builtin::new(
        "pop!",
        &["[transient]"],
        "Removes the last item of a transient vector, in place, and returns the vector.",
        &[("(persistent! (pop! (transient [1 2])))", "[1]")],
        |machine, arguments| change(machine, arguments, ends::pop),
    ),
];

fn transient(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let content = take(arguments, 0);
    let sorted = match &content {
        Value::Vector(_) => false,
        Value::Map(map) => map.order().is_some(),
        Value::Set(set) => set.order().is_some(),
        other => return Err(Error::expected("a vector, a map or a set", other).into()),
    };
    if sorted {
        let error = Error::new("TypeError", "a sorted collection cannot be made a transient");
        return Err(error.suggest("put into it with `into`, `conj` and `assoc`").into());
    }
    let content = without_metadata(machine, content)?;
    Ok(Value::Cell(machine.core.heap.allocate(CellKind::Transient, State::Done(content))))
}

/// Applies a function on collections to the content of a transient, which is the first argument. If the function fails,
/// the transient can no longer be used.
fn change(machine: &mut Machine, arguments: &mut [Value], function: Run) -> Outcome<Value> {
    let transient = take(arguments, 0);
    let cell = cell_of(&transient)?;
    let State::Done(content) = machine.core.heap.change(cell, SPENT)? else { return Err(spent().into()) };
    arguments[0] = content;
    let changed = function(machine, arguments)?;
    machine.core.heap.change(cell, State::Done(changed))?;
    Ok(transient)
}

fn persistent(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match machine.core.heap.change(cell_of(&arguments[0])?, SPENT)? {
        State::Done(content) => Ok(content),
        _ => Err(spent().into()),
    }
}

fn add(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [] => transient(machine, &mut [Value::vector(Vec::new())]),
        [same] => Ok(std::mem::take(same)),
        arguments => change(machine, arguments, sequences::reducing::conj),
    }
}

fn put(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() % 2 == 1 {
        return change(machine, arguments, maps::assoc);
    }
    // The value of a trailing key is nil, as in Clojure.
    let mut arguments: Vec<Value> = arguments.iter_mut().map(std::mem::take).collect();
    arguments.push(Value::Nil);
    change(machine, &mut arguments, maps::assoc)
}
