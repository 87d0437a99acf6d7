//! The stateless steps of transducers. Each is called with the transducer's parameter, the next step, and then nothing,
//! a result, or a result and an item.

use super::super::arguments::take;
use super::super::arithmetic::float;
use super::super::chance::fraction;
use super::super::maps::entry_of;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::{Reduced, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The argument lists of these steps.
const ARGUMENTS: &[&str] = &["[f step]", "[f step result]", "[f step result item]"];

/// The step of `(map f)`.
pub static MAP: Builtin = Builtin::new(
    "map-step*",
    &["[f step]", "[f step result]", "[f step result item & items]"],
    "A step of `(map f)`.",
    &[],
    map,
);
/// The step of `(filter pred)`.
pub static FILTER: Builtin = Builtin::new("filter-step*", ARGUMENTS, "A step of `(filter pred)`.", &[], filter);
/// The step of `(remove pred)`.
pub static REMOVE: Builtin = Builtin::new("remove-step*", ARGUMENTS, "A step of `(remove pred)`.", &[], remove);
/// The step of `(keep f)`.
pub static KEEP: Builtin = Builtin::new("keep-step*", ARGUMENTS, "A step of `(keep f)`.", &[], keep);
/// The step of `(take-while pred)`.
pub static TAKE_WHILE: Builtin =
    Builtin::new("take-while-step*", ARGUMENTS, "A step of `(take-while pred)`.", &[], take_while);
/// The step of `(mapcat f)`, or of `cat` if `f` is nil.
pub static MAPCAT: Builtin = Builtin::new(
    "mapcat-step*",
    &["[f step]", "[f step result]", "[f step result item & items]"],
    "A step of `(mapcat f)`.",
    &[],
    mapcat,
);

/// The step of `(replace smap)`.
pub static REPLACE: Builtin = Builtin::new("replace-step*", ARGUMENTS, "A step of `(replace smap)`.", &[], replace);
/// The step of `(random-sample probability)`.
pub static SAMPLE: Builtin =
    Builtin::new("random-sample-step*", ARGUMENTS, "A step of `(random-sample probability)`.", &[], sample);

/// The steps defined in this file.
pub const STEPS: &[&Builtin] = &[&MAP, &FILTER, &REMOVE, &KEEP, &TAKE_WHILE, &MAPCAT, &REPLACE, &SAMPLE];

/// The arguments of a step that receives an item: function, next step, result so far, item.
type Item = (Value, Value, Value, Value);

/// Parses the arguments of a step that receives an item. Initialization and completion are forwarded to the next step
/// immediately; `Break` holds the result.
fn item(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<ControlFlow<Value, Item>> {
    let (function, step) = (take(arguments, 0), take(arguments, 1));
    if arguments.len() < 4 {
        return machine.call(&step, &mut arguments[2..]).map(ControlFlow::Break);
    }
    Ok(ControlFlow::Continue((function, step, take(arguments, 2), take(arguments, 3))))
}

fn map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() > 4 {
        let (function, step, result) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
        let made = machine.call(&function, &mut arguments[3..])?;
        return machine.call2(&step, result, made);
    }
    let (function, step, result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let made = machine.call1(&function, item)?;
    machine.call2(&step, result, made)
}

fn filter(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    pick(machine, arguments, true)
}

fn remove(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    pick(machine, arguments, false)
}

fn pick(machine: &mut Machine, arguments: &mut [Value], wanted: bool) -> Outcome<Value> {
    let (predicate, step, result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    if machine.call_on(&predicate, &item)?.is_truthy() == wanted {
        return machine.call2(&step, result, item);
    }
    Ok(result)
}

fn keep(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, step, result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    match machine.call1(&function, item)? {
        Value::Nil => Ok(result),
        made => {
            made.touch();
            machine.call2(&step, result, made)
        }
    }
}

fn take_while(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, step, result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    if machine.call_on(&predicate, &item)?.is_truthy() {
        return machine.call2(&step, result, item);
    }
    Ok(Value::Reduced(Arc::new(Reduced(result))))
}

fn mapcat(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() > 4 {
        // The function's result for several parallel items is processed like an item of `cat`.
        let function = take(arguments, 0);
        let part = machine.call(&function, &mut arguments[3..])?;
        return mapcat(machine, &mut [Value::Nil, take(arguments, 1), take(arguments, 2), part]);
    }
    let (function, step, mut result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let part = if function.is_nil() { item } else { machine.call1(&function, item)? };
    let mut cursor = machine.seq(part)?;
    while let Some(item) = cursor.next(machine)? {
        result = machine.call2(&step, result, item)?;
        // Stays reduced, so that the outer reduction ends as well.
        if let Value::Reduced(_) = result {
            break;
        }
    }
    Ok(result)
}

fn replace(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (replacements, step, result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    let replaced = entry_of(machine, &replacements, &item)?.map_or(item, |(_, replacement)| replacement);
    machine.call2(&step, result, replaced)
}

fn sample(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (probability, step, result, item) = match item(machine, arguments)? {
        ControlFlow::Continue(item) => item,
        ControlFlow::Break(done) => return Ok(done),
    };
    if fraction(machine) < float(&probability)? { machine.call2(&step, result, item) } else { Ok(result) }
}
