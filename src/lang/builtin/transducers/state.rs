//! The stateful steps of transducers. Each is called with its state cell, the transducer's parameter, the next step,
//! and then nothing, a result, or a result and an item.

use super::super::arguments::{count, take};
use crate::error::{Error, Outcome};
use crate::heap::{Handle, State};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::map::Map;
use crate::value::set::Set;
use crate::value::{Reduced, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The argument lists of these steps.
const ARGUMENTS: &[&str] =
    &["[state parameter step]", "[state parameter step result]", "[state parameter step result item]"];

/// The step of `(take n)`; its state is the number of items still to take.
pub static TAKE: Builtin = Builtin::new("take-step*", ARGUMENTS, "A step of `(take n)`.", &[], take_step);
/// The step of `(drop n)`; its state is the number of items still to drop.
pub static DROP: Builtin = Builtin::new("drop-step*", ARGUMENTS, "A step of `(drop n)`.", &[], drop_step);
/// The step of `(drop-while pred)`; its state is true while items are dropped.
pub static DROP_WHILE: Builtin =
    Builtin::new("drop-while-step*", ARGUMENTS, "A step of `(drop-while pred)`.", &[], drop_while);
/// The step of `(take-nth n)`; its state counts the items.
pub static TAKE_NTH: Builtin = Builtin::new("take-nth-step*", ARGUMENTS, "A step of `(take-nth n)`.", &[], take_nth);
/// The step of `(map-indexed f)`; its state counts the items.
pub static MAP_INDEXED: Builtin =
    Builtin::new("map-indexed-step*", ARGUMENTS, "A step of `(map-indexed f)`.", &[], map_indexed);
/// The step of `(keep-indexed f)`; its state counts the items.
pub static KEEP_INDEXED: Builtin =
    Builtin::new("keep-indexed-step*", ARGUMENTS, "A step of `(keep-indexed f)`.", &[], keep_indexed);
/// The step of `(distinct)`; its state is the set of the items seen.
pub static DISTINCT: Builtin = Builtin::new("distinct-step*", ARGUMENTS, "A step of `(distinct)`.", &[], distinct);
/// The step of `(dedupe)`; its state is a vector of the last item, empty before the first.
pub static DEDUPE: Builtin = Builtin::new("dedupe-step*", ARGUMENTS, "A step of `(dedupe)`.", &[], dedupe);
/// The step of `(interpose separator)`; its state is true after the first item.
pub static INTERPOSE: Builtin =
    Builtin::new("interpose-step*", ARGUMENTS, "A step of `(interpose separator)`.", &[], interpose);
/// The step of `(partition-all n)`; its state is the current part.
pub static PARTITION_ALL: Builtin =
    Builtin::new("partition-all-step*", ARGUMENTS, "A step of `(partition-all n)`.", &[], partition_all);
/// The step of `(partition-by f)`; its state is a vector of the key, as returned by `f`, and the items of the current
/// part.
pub static PARTITION_BY: Builtin =
    Builtin::new("partition-by-step*", ARGUMENTS, "A step of `(partition-by f)`.", &[], partition_by);
/// The step of `(halt-when pred f)`. Its state is unused but kept for compatibility with stored sessions.
pub static HALT_WHEN: Builtin =
    Builtin::new("halt-when-step*", ARGUMENTS, "A step of `(halt-when pred f)`.", &[], halt_when);

/// The steps defined in this file.
pub const STEPS: &[&Builtin] = &[
    &TAKE,
    &DROP,
    &DROP_WHILE,
    &TAKE_NTH,
    &MAP_INDEXED,
    &KEEP_INDEXED,
    &DISTINCT,
    &DEDUPE,
    &INTERPOSE,
    &PARTITION_ALL,
    &PARTITION_BY,
    &HALT_WHEN,
];

/// The arguments of a step that receives an item.
struct Item {
    cell: Arc<Handle>,
    parameter: Value,
    step: Value,
    result: Value,
    item: Value,
}

impl Item {
    /// Passes a value to the next step.
    fn pass(self, machine: &mut Machine, value: Value) -> Outcome<Value> {
        machine.call2(&self.step, self.result, value)
    }
}

/// Parses the arguments of a step that receives an item. Initialization and completion are forwarded to the next step
/// immediately; `Break` holds the result. Steps with a pending part handle completion with [`flush`] before.
fn item(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<ControlFlow<Value, Item>> {
    let (cell, parameter, step) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    let Value::Cell(cell) = cell else { return Err(Error::expected("the state of a step", &cell).into()) };
    if arguments.len() < 5 {
        return machine.call(&step, &mut arguments[3..]).map(ControlFlow::Break);
    }
    let (result, item) = (take(arguments, 3), take(arguments, 4));
    Ok(ControlFlow::Continue(Item { cell, parameter, step, result, item }))
}

/// Takes the state out of its cell, so that it can be changed in place.
pub(super) fn taken(machine: &mut Machine, cell: &Arc<Handle>) -> Outcome<Value> {
    match machine.core.heap.change(cell, State::Done(Value::Nil))? {
        State::Done(state) => Ok(state),
        _ => Ok(Value::Nil),
    }
}

/// Stores a state in its cell.
pub(super) fn put(machine: &mut Machine, cell: &Arc<Handle>, state: Value) -> Outcome<()> {
    machine.core.heap.change(cell, State::Done(state))?;
    Ok(())
}

/// Increments a counter state; returns its previous value.
fn counted(machine: &mut Machine, cell: &Arc<Handle>) -> Outcome<i64> {
    let before = match taken(machine, cell)? {
        Value::Int(count) => count,
        _ => 0,
    };
    put(machine, cell, Value::Int(before + 1))?;
    Ok(before)
}

fn ended(result: Value) -> Value {
    match result {
        Value::Reduced(_) => result,
        result => Value::Reduced(Arc::new(Reduced(result))),
    }
}

fn take_step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let wanted = count(&taken(machine, &on.cell)?)?;
    put(machine, &on.cell, Value::Int(wanted.saturating_sub(1) as i64))?;
    if wanted == 0 {
        return Ok(ended(on.result));
    }
    let value = std::mem::take(&mut on.item);
    let result = on.pass(machine, value)?;
    Ok(if wanted == 1 { ended(result) } else { result })
}

fn drop_step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let unwanted = count(&taken(machine, &on.cell)?)?;
    put(machine, &on.cell, Value::Int(unwanted.saturating_sub(1) as i64))?;
    if unwanted > 0 {
        return Ok(on.result);
    }
    let value = std::mem::take(&mut on.item);
    on.pass(machine, value)
}

fn drop_while(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let dropping = taken(machine, &on.cell)?.is_truthy();
    let drops = dropping && machine.call_on(&on.parameter, &on.item)?.is_truthy();
    put(machine, &on.cell, Value::Bool(drops))?;
    if drops {
        return Ok(on.result);
    }
    let value = std::mem::take(&mut on.item);
    on.pass(machine, value)
}

fn take_nth(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let index = counted(machine, &on.cell)?;
    if !(index as u64).is_multiple_of(count(&on.parameter)?.max(1)) {
        return Ok(on.result);
    }
    let value = std::mem::take(&mut on.item);
    on.pass(machine, value)
}

fn map_indexed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let index = counted(machine, &on.cell)?;
    let made = machine.call2(&on.parameter, Value::Int(index), std::mem::take(&mut on.item))?;
    on.pass(machine, made)
}

fn keep_indexed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let index = counted(machine, &on.cell)?;
    match machine.call2(&on.parameter, Value::Int(index), std::mem::take(&mut on.item))? {
        Value::Nil => Ok(on.result),
        made => {
            made.touch();
            on.pass(machine, made)
        }
    }
}

fn distinct(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let key = machine.key(on.item.clone())?;
    let mut seen = match taken(machine, &on.cell)? {
        Value::Set(seen) => seen,
        _ => Arc::new(Set::default()),
    };
    let is_new = Arc::make_mut(&mut seen).insert(key);
    put(machine, &on.cell, Value::Set(seen))?;
    if !is_new {
        return Ok(on.result);
    }
    let value = std::mem::take(&mut on.item);
    on.pass(machine, value)
}

fn dedupe(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let last = taken(machine, &on.cell)?;
    put(machine, &on.cell, Value::vector(vec![on.item.clone()]))?;
    if let Value::Vector(last) = &last
        && let Some(last) = last.get(0)
        && machine.equal(last, &on.item)?
    {
        return Ok(on.result);
    }
    let value = std::mem::take(&mut on.item);
    on.pass(machine, value)
}

fn interpose(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let started = taken(machine, &on.cell)?.is_truthy();
    put(machine, &on.cell, Value::Bool(true))?;
    if started {
        on.result = machine.call2(&on.step, std::mem::take(&mut on.result), on.parameter.clone())?;
        if let Value::Reduced(_) = on.result {
            return Ok(on.result);
        }
    }
    let value = std::mem::take(&mut on.item);
    on.pass(machine, value)
}

/// Handles initialization and completion of a step with a pending part: on completion, passes a non-empty part to the
/// next step before completing that.
fn flush(machine: &mut Machine, arguments: &mut [Value], part: fn(Value) -> Vec<Value>) -> Outcome<Value> {
    let (cell, step) = (take(arguments, 0), take(arguments, 2));
    let Value::Cell(cell) = cell else { return Err(Error::expected("the state of a step", &cell).into()) };
    let [result] = &mut arguments[3..] else { return machine.call(&step, &mut []) };
    let mut result = std::mem::take(result);
    let items = part(taken(machine, &cell)?);
    put(machine, &cell, Value::vector(Vec::new()))?;
    if !items.is_empty() {
        result = match machine.call2(&step, result, Value::vector(items))? {
            Value::Reduced(inner) => inner.0.clone(),
            other => other,
        };
    }
    machine.call1(&step, result)
}

/// Returns the items of a vector.
fn contents(vector: Value) -> Vec<Value> {
    match vector {
        Value::Vector(items) => items.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Appends an item to a vector.
fn with(machine: &mut Machine, vector: Value, item: Value) -> Outcome<Value> {
    super::super::sequences::add(machine, vector, item)
}

fn partition_all(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() < 5 {
        return flush(machine, arguments, contents);
    }
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let part = taken(machine, &on.cell)?;
    let part = with(machine, part, std::mem::take(&mut on.item))?;
    let full = matches!(&part, Value::Vector(items) if items.len() as u64 >= count(&on.parameter)?);
    if !full {
        put(machine, &on.cell, part)?;
        return Ok(on.result);
    }
    put(machine, &on.cell, Value::vector(Vec::new()))?;
    on.pass(machine, part)
}

/// Returns the items of a part of `partition-by`, without the leading key.
fn behind_key(part: Value) -> Vec<Value> {
    let mut items = contents(part);
    items.drain(..items.len().min(1));
    items
}

fn partition_by(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() < 5 {
        return flush(machine, arguments, behind_key);
    }
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let key = machine.call_on(&on.parameter, &on.item)?;
    let part = taken(machine, &on.cell)?;
    let value = std::mem::take(&mut on.item);
    let known = match &part {
        Value::Vector(items) => items.get(0).cloned(),
        _ => None,
    };
    if let Some(known) = known {
        if machine.equal(&known, &key)? {
            let part = with(machine, part, value)?;
            put(machine, &on.cell, part)?;
            return Ok(on.result);
        }
        put(machine, &on.cell, Value::vector(vec![key, value]))?;
        return on.pass(machine, Value::vector(behind_key(part)));
    }
    put(machine, &on.cell, Value::vector(vec![key, value]))?;
    Ok(on.result)
}

/// The key that marks the result of a halt until completion, as in Clojure.
const HALT: &str = "clojure.core/halt";

fn halt_when(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // The steps after this one must not complete the result of a halt again.
    if let [_, _, _, Value::Map(result)] = &*arguments
        && let Some(halted) = result.get(&Value::keyword(HALT))
    {
        return Ok(halted.clone());
    }
    let mut on = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let functions = contents(std::mem::take(&mut on.parameter));
    let [predicate, function @ ..] = &functions[..] else { return Ok(on.result) };
    let value = std::mem::take(&mut on.item);
    if !machine.call1(predicate, value.clone())?.is_truthy() {
        return on.pass(machine, value);
    }
    let halted = match function {
        [function, ..] if !function.is_nil() => {
            let result = machine.call1(&on.step, on.result)?;
            machine.call2(function, result, value)?
        }
        _ => value,
    };
    let result: Map = [(Value::keyword(HALT), halted)].into_iter().collect();
    Ok(ended(Value::Map(Arc::new(result))))
}
