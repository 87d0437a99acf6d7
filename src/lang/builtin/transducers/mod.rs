//! Transducers: the results of `(map f)`, `(filter pred)` and related functions without a collection.
//!
//! A transducer converts one step function to another. A step function is called with no arguments to initialize, with
//! a result to complete, and with a result and an item to advance. All of them are data. A transducer is [`STATELESS`]
//! or [`STATEFUL`] bound to the code of its step, the initial state if any, and its parameter; a step is that code
//! bound to the state cell if any, the parameter and the next step.

pub mod state;
pub mod steps;

use super::arguments::take;
use super::functions::bound;
use super::sequences::{LEFT_OUT, add, all_lazy, cursors, in_front, next_of_each, or_empty, reduce_from};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::heap::{CellKind, Handle, State};
use crate::machine::Machine;
use crate::native::{Builtin, Role};
use crate::value::Value;
use crate::value::walk::Cursor;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "transduce",
        &["[xform f coll]", "[xform f init coll]"],
        "Like `reduce`, with the items passed through a transducer first.",
        &[("(transduce (map inc) + [1 2 3])", "9"), ("(transduce (filter odd?) conj [] [1 2 3])", "[1 3]")],
        transduce,
    ),
    Builtin::new(
        "sequence",
        &["[coll]", "[xform coll]", "[xform coll & colls]"],
        "The items as a sequence, through a transducer if given; the empty list if there are none.",
        &[("(sequence (map inc) [1 2])", "(2 3)"), ("(sequence nil)", "()")],
        sequence,
    ),
    Builtin::new(
        "eduction",
        &["[xform & xforms-and-coll]"],
        "The items of the last argument, passed through the transducers before it.",
        &[("(eduction (map inc) (filter even?) [1 2 3])", "(2 4)")],
        eduction,
    ),
    Builtin::new(
        "completing",
        &["[f]", "[f end]"],
        "The step function `f`, completed by `end`, or with the result unchanged.",
        &[("(transduce (map inc) (completing + str) 0 [1 2])", "\"5\"")],
        completing,
    ),
    Builtin::new(
        "halt-when",
        &["[pred]", "[pred f]"],
        "A transducer that ends the reduction at the first item for which `pred` is true. The result is that item, or \
         `(f result item)`.",
        &[
            ("(transduce (halt-when neg?) conj [1 -2 3])", "-2"),
            ("(transduce (halt-when neg? (fn [result item] result)) conj [1 -2 3])", "[1]"),
        ],
        halt_when,
    ),
    Builtin::new(
        "cat",
        &["[step]"],
        "A transducer that concatenates its items.",
        &[("(into [] cat [[1 2] [3]])", "[1 2 3]")],
        cat,
    ),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("vector->list", "sequence"), ("string->list", "sequence")];

/// The internal codes of functions and lazy sequences defined in this file.
pub const STEPS: &[&Builtin] = &[&PUSH, &GATHER, &STATELESS, &STATEFUL, &COMPLETED, &LAZY_SEQUENCE, &LAZY_GATHERED];

/// Creates a transducer with a stateless step: `step` is called with `parameter`, the next step, and the arguments of a
/// step function.
pub fn stateless(step: &'static Builtin, parameter: Value) -> Value {
    bound(&STATELESS, vec![Value::Builtin(step), parameter])
}

static STATELESS: Builtin =
    Builtin::new("transducer*", &["[code parameter step]"], "A transducer.", &[], make_stateless)
        .with_role(Role::Transducer);

fn make_stateless(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        Value::Builtin(code) => Ok(bound(code, vec![take(arguments, 1), take(arguments, 2)])),
        other => Err(Error::expected("the code of a step", &other).into()),
    }
}

/// Creates a transducer with a stateful step: a cell that contains `initial` precedes the arguments of a stateless
/// step.
pub fn stateful(step: &'static Builtin, initial: Value, parameter: Value) -> Value {
    bound(&STATEFUL, vec![Value::Builtin(step), initial, parameter])
}

static STATEFUL: Builtin = Builtin::new(
    "stateful-transducer*",
    &["[code initial parameter step]"],
    "A transducer with a state.",
    &[],
    make_stateful,
);

fn make_stateful(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let cell = machine.core.heap.allocate(CellKind::Volatile, State::Done(take(arguments, 1)));
    match take(arguments, 0) {
        Value::Builtin(code) => Ok(bound(code, vec![Value::Cell(cell), take(arguments, 2), take(arguments, 3)])),
        other => Err(Error::expected("the code of a step", &other).into()),
    }
}

/// The final step when transducing into a collection.
pub static PUSH: Builtin =
    Builtin::new("push*", &["[]", "[result]", "[result item]"], "The last step of `into` and `sequence`.", &[], push)
        .passing_on();

fn push(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [] => Ok(Value::vector(Vec::new())),
        [result] => Ok(std::mem::take(result)),
        [result, item, ..] => add(machine, std::mem::take(result), std::mem::take(item)),
    }
}

/// Reduces a collection with `function` as the final step of a transducer.
pub fn reduce(
    machine: &mut Machine,
    transducer: &Value,
    function: &Value,
    init: Value,
    collection: Value,
) -> Outcome<Value> {
    let step = machine.call1(transducer, function.clone())?;
    let cursor = machine.seq(collection)?;
    let result = reduce_from(machine, &step, init, cursor)?;
    machine.call1(&step, result)
}

/// Transforms a collection with a builtin transducer; returns a list, or a lazy sequence for a lazy collection.
pub fn through(machine: &mut Machine, transducer: &Value, collection: Value) -> Outcome<Value> {
    if machine.is_lazy(&collection) {
        let step = machine.call1(transducer, Value::Builtin(&PUSH))?;
        return Ok(machine.lazy(&LAZY_SEQUENCE, vec![step, collection]));
    }
    let out = reduce(machine, transducer, &Value::Builtin(&PUSH), Value::vector(Vec::new()), collection)?;
    Ok(Value::list(machine.items(out)?))
}

/// One step of a lazy sequence through a builtin transducer: reads items until one is produced.
static LAZY_SEQUENCE: Builtin =
    Builtin::new("lazy-sequence*", &["[step coll & colls]"], "A step of a lazy `sequence`.", &[], lazy_sequence);

fn lazy_sequence(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let step = take(arguments, 0);
    let mut cursors = cursors(machine, &mut arguments[1..])?;
    let none = || Value::vector(Vec::new());
    let mut found = Vec::new();
    for _ in 0..LEFT_OUT {
        let Some(items) = next_of_each(machine, &mut cursors)? else {
            let out = machine.call1(&step, none())?;
            return Ok(Value::list(machine.items(out)?));
        };
        let mut given = vec![none()];
        given.extend(items);
        let out = match machine.call(&step, &mut given)? {
            Value::Reduced(last) => {
                let out = machine.call1(&step, last.0.clone())?;
                return Ok(Value::list(machine.items(out)?));
            }
            out => out,
        };
        found = machine.items(out)?;
        if !found.is_empty() {
            break;
        }
    }
    let mut rest = vec![step];
    for cursor in cursors {
        rest.push(rest_of(machine, cursor)?);
    }
    let rest = machine.lazy(&LAZY_SEQUENCE, rest);
    in_front(machine, found, rest)
}

/// The final step of a sequence through a user-defined transducer. It collects items in a buffer, so that they survive
/// whatever the transducer does to the result.
static GATHER: Builtin = Builtin::new(
    "gather*",
    &["[buffer]", "[buffer result]", "[buffer result item]"],
    "The last step of `sequence` and `eduction`.",
    &[],
    gather,
)
.passing_on();

fn gather(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [buffer, _, item] = arguments {
        let Value::Cell(buffer) = buffer else { return Err(Error::expected("the buffer of a step", buffer).into()) };
        let items = state::taken(machine, buffer)?;
        let items = add(machine, items, std::mem::take(item))?;
        state::put(machine, buffer, items)?;
    }
    Ok(arguments.get_mut(1).map(std::mem::take).unwrap_or_default())
}

/// Creates a buffer and the step of a transducer that fills it.
fn gathering(machine: &mut Machine, transducer: &Value) -> Outcome<(Value, Arc<Handle>)> {
    let buffer = machine.core.heap.allocate(CellKind::Volatile, State::Done(Value::vector(Vec::new())));
    let step = machine.call1(transducer, bound(&GATHER, vec![Value::Cell(buffer.clone())]))?;
    Ok((step, buffer))
}

/// Takes the contents of a buffer.
fn gathered(machine: &mut Machine, buffer: &Arc<Handle>) -> Outcome<Vec<Value>> {
    let items = state::taken(machine, buffer)?;
    state::put(machine, buffer, Value::vector(Vec::new()))?;
    machine.items(items)
}

/// Passes the next items to a step, or completes it if the input is exhausted or the step is done; returns true if it
/// accepts more.
fn advance(machine: &mut Machine, step: &Value, cursors: &mut [Cursor]) -> Outcome<bool> {
    if let Some(items) = next_of_each(machine, cursors)? {
        let mut given = vec![Value::Nil];
        given.extend(items);
        if !matches!(machine.call(step, &mut given)?, Value::Reduced(_)) {
            return Ok(true);
        }
    }
    machine.call1(step, Value::Nil)?;
    Ok(false)
}

/// Transforms the items of parallel collections with a user-defined transducer; returns a list, or a lazy sequence if
/// all collections are lazy.
fn sequence_of(machine: &mut Machine, transducer: &Value, mut collections: Vec<Value>) -> Outcome<Value> {
    let (step, buffer) = gathering(machine, transducer)?;
    if all_lazy(machine, &collections) {
        let start = [Value::Cell(buffer), step];
        return Ok(machine.lazy(&LAZY_GATHERED, start.into_iter().chain(collections).collect()));
    }
    let mut cursors = cursors(machine, &mut collections)?;
    while advance(machine, &step, &mut cursors)? {}
    gathered(machine, &buffer).map(Value::list)
}

/// One step of a lazy sequence through a user-defined transducer: reads items until one is produced.
static LAZY_GATHERED: Builtin =
    Builtin::new("lazy-gathered*", &["[buffer step coll & colls]"], "A step of a lazy `sequence`.", &[], lazy_gathered);

fn lazy_gathered(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (buffer, step) = (take(arguments, 0), take(arguments, 1));
    let Value::Cell(cell) = &buffer else { return Err(Error::expected("the buffer of a step", &buffer).into()) };
    let mut cursors = cursors(machine, &mut arguments[2..])?;
    let mut items = Vec::new();
    for _ in 0..LEFT_OUT {
        let goes_on = advance(machine, &step, &mut cursors)?;
        items = gathered(machine, cell)?;
        if !goes_on {
            return Ok(Value::list(items));
        }
        if !items.is_empty() {
            break;
        }
    }
    let mut rest = vec![buffer, step];
    for cursor in cursors {
        rest.push(rest_of(machine, cursor)?);
    }
    let rest = machine.lazy(&LAZY_GATHERED, rest);
    in_front(machine, items, rest)
}

fn transduce(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (transducer, function) = (take(arguments, 0), take(arguments, 1));
    let init = if arguments.len() == 4 { take(arguments, 2) } else { machine.call(&function, &mut [])? };
    let collection = take(arguments, arguments.len() - 1);
    reduce(machine, &transducer, &function, init, collection)
}

fn sequence(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return match take(arguments, 0) {
            sequence @ (Value::List(_) | Value::Lazy(_)) => Ok(sequence),
            other => super::sequences::as_seq(machine, other).map(or_empty),
        };
    }
    let transducer = take(arguments, 0);
    sequence_of(machine, &transducer, arguments[1..].iter_mut().map(std::mem::take).collect())
}

fn eduction(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Some((last, transducers)) = arguments.split_last_mut() else { return Ok(Value::Nil) };
    let mut sequence = std::mem::take(last);
    for transducer in transducers {
        sequence = sequence_of(machine, transducer, vec![sequence])?;
    }
    if let Value::List(_) | Value::Lazy(_) = sequence {
        return Ok(sequence);
    }
    super::sequences::as_seq(machine, sequence).map(or_empty)
}

fn completing(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let end = arguments.get_mut(1).map(std::mem::take).unwrap_or(Value::Nil);
    Ok(bound(&COMPLETED, vec![take(arguments, 0), end]))
}

static COMPLETED: Builtin = Builtin::new(
    "completed*",
    &["[f end]", "[f end result]", "[f end result item]"],
    "Result of `completing`.",
    &[],
    completed,
);

fn completed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, end) = (take(arguments, 0), take(arguments, 1));
    match &mut arguments[2..] {
        [result] if end.is_nil() => Ok(std::mem::take(result)),
        [result] => machine.call1(&end, std::mem::take(result)),
        others => machine.call(&function, others),
    }
}

fn cat(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(bound(&steps::MAPCAT, vec![Value::Nil, take(arguments, 0)]))
}

fn halt_when(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let parameter = Value::vector(arguments.iter_mut().map(std::mem::take).collect());
    Ok(stateful(&state::HALT_WHEN, Value::Nil, parameter))
}
