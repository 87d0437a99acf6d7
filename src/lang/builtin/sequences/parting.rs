//! Partitioning a sequence into parts of a given size or of items that belong together.

use super::super::arguments::{count, function_over_items, take};
use super::super::transducers::{self, state};
use super::{before, in_front, is_number, skip};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::walk::Cursor;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "partition",
        &["[n coll]", "[n step coll]", "[n step pad coll]"],
        "Splits into parts of `n` items, `step` (`n`) apart; a last part that is too short is padded from `pad` or \
         dropped. With a predicate instead of `n`, as in Scheme: the items that satisfy it, and the others.",
        &[
            ("(partition 2 [1 2 3 4 5])", "((1 2) (3 4))"),
            ("(partition 2 1 [1 2 3])", "((1 2) (2 3))"),
            ("(partition odd? [1 2 3])", "[(1 3) (2)]"),
            ("(partition 2 2 [:x] [1 2 3])", "((1 2) (3 :x))"),
        ],
        partition,
    ),
    Builtin::new(
        "partition-all",
        &["[n]", "[n coll]", "[n step coll]"],
        "Parts of `n` items, `step` (`n`) apart; the last ones may be shorter.",
        &[("(partition-all 2 [1 2 3])", "((1 2) (3))")],
        partition_all,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "partition-by",
        &["[f]", "[f coll]"],
        "Parts of consecutive items with equal `(f item)`.",
        &[("(partition-by odd? [1 3 2 5])", "((1 3) (2) (5))")],
        partition_by,
    ),
];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&LAZY_PARTITION, &LAZY_PARTITION_BY, &LAZY_RUN, &BEHIND_RUN];

/// The treatment of a last part that is too short.
#[derive(Clone)]
enum Short {
    /// It is dropped.
    Dropped,
    /// It is kept short.
    Kept,
    /// It is padded from this sequence.
    Padded(Value),
}

/// The parameters of a partition.
struct Cut {
    size: u64,
    step: u64,
    short: Short,
}

fn partition(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 && arguments[0].is_function() {
        return by_truth(machine, arguments);
    }
    collection_last(arguments);
    let size = bounded(&arguments[0])?;
    let step = if arguments.len() > 2 { bounded(&arguments[1])? } else { size };
    let short = if arguments.len() == 4 { Short::Padded(take(arguments, 2)) } else { Short::Dropped };
    let collection = take(arguments, arguments.len() - 1);
    parts(machine, "partition", &Cut { size, step, short }, collection)
}

/// SRFI 1's `(partition odd? xs)`: the items that satisfy the predicate, and the others.
fn by_truth(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, collection) = function_over_items(machine, arguments);
    let mut cursor = machine.seq(collection)?;
    let (mut yes, mut no) = (Vec::new(), Vec::new());
    while let Some(item) = cursor.next(machine)? {
        let side = if machine.call_on(&predicate, &item)?.is_truthy() { &mut yes } else { &mut no };
        side.push(item);
        let len = side.len();
        machine.grown(len)?;
    }
    Ok(Value::vector(vec![Value::list(yes), Value::list(no)]))
}

fn partition_all(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    collection_last(arguments);
    let size = bounded(&arguments[0])?;
    if arguments.len() == 1 {
        if size == 0 {
            return Err(endless("partition-all").into());
        }
        let none = Value::vector(Vec::new());
        return Ok(transducers::stateful(&state::PARTITION_ALL, none, Value::Int(size as i64)));
    }
    let step = if arguments.len() > 2 { bounded(&arguments[1])? } else { size };
    let collection = take(arguments, arguments.len() - 1);
    parts(machine, "partition-all", &Cut { size, step, short: Short::Kept }, collection)
}

/// Accepts `(partition coll n)` as `(partition n coll)`.
fn collection_last(arguments: &mut [Value]) {
    if arguments.len() > 1 && !is_number(&arguments[0]) {
        arguments.rotate_left(1);
    }
}

fn bounded(value: &Value) -> Outcome<u64> {
    Ok(count(value)?.min(i64::MAX as u64))
}

/// The error for a step of 0 through items, which never ends.
fn endless(name: &str) -> Error {
    Error::new("IllegalArgument", format!("`{name}` takes steps of at least 1"))
}

fn parts(machine: &mut Machine, name: &str, cut: &Cut, collection: Value) -> Outcome<Value> {
    if cut.step == 0 {
        let first = machine.seq(collection)?.next(machine)?;
        return if first.is_none() { Ok(Value::list(Vec::new())) } else { Err(endless(name).into()) };
    }
    if machine.is_lazy(&collection) {
        return Ok(put_off(machine, cut, collection));
    }
    let items = machine.items(collection)?;
    let mut out = Vec::new();
    let mut at = 0;
    while at < items.len() {
        let end = items.len().min(at.saturating_add(usize::try_from(cut.size).unwrap_or(usize::MAX)));
        machine.reserve_values((end - at) as u64)?;
        machine.charge((end - at) as u64)?;
        let Some(part) = filled(machine, cut, items[at..end].to_vec())? else { break };
        let short = end - at < usize::try_from(cut.size).unwrap_or(usize::MAX);
        out.push(part);
        machine.grown(out.len())?;
        // A padded part is the last one, whereas `partition-all` continues to the end.
        if short && !matches!(cut.short, Short::Kept) {
            break;
        }
        at = at.saturating_add(usize::try_from(cut.step).unwrap_or(usize::MAX));
    }
    Ok(Value::list(out))
}

/// Creates a part from these items, padded if necessary; returns `None` if it is too short and dropped.
fn filled(machine: &mut Machine, cut: &Cut, mut items: Vec<Value>) -> Outcome<Option<Value>> {
    if (items.len() as u64) < cut.size {
        match &cut.short {
            Short::Dropped => return Ok(None),
            Short::Kept => {}
            Short::Padded(pad) => {
                let mut pad = machine.seq(pad.clone())?;
                while (items.len() as u64) < cut.size {
                    let Some(item) = pad.next(machine)? else { break };
                    items.push(item);
                    machine.grown(items.len())?;
                }
            }
        }
    }
    Ok(Some(Value::list(items)))
}

/// Creates the lazy sequence of the parts of a lazy sequence.
fn put_off(machine: &mut Machine, cut: &Cut, collection: Value) -> Value {
    let short = match &cut.short {
        Short::Dropped => Value::Bool(false),
        Short::Kept => Value::Bool(true),
        Short::Padded(pad) => Value::list(vec![pad.clone()]),
    };
    machine.lazy(&LAZY_PARTITION, vec![Value::Int(cut.size as i64), Value::Int(cut.step as i64), short, collection])
}

/// One step of a lazy `partition`: yields one part. `short` is true if short parts are kept, false if they are dropped,
/// and a list of the padding if they are padded.
static LAZY_PARTITION: Builtin =
    Builtin::new("lazy-partition*", &["[n step short coll]"], "A step of a lazy `partition`.", &[], lazy_partition);

fn lazy_partition(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let short = match take(arguments, 2) {
        Value::Bool(false) => Short::Dropped,
        Value::List(pad) => Short::Padded(pad.as_slice().and_then(|pad| pad.first()).cloned().unwrap_or_default()),
        _ => Short::Kept,
    };
    let cut = Cut { size: count(&arguments[0])?, step: count(&arguments[1])?, short };
    let start = take(arguments, 3);
    let mut cursor = machine.seq(start.clone())?;
    let mut items = Vec::new();
    while (items.len() as u64) < cut.size {
        let Some(item) = cursor.next(machine)? else { break };
        items.push(item);
        machine.grown(items.len())?;
    }
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let ends = (items.len() as u64) < cut.size && !matches!(cut.short, Short::Kept);
    let Some(part) = filled(machine, &cut, items)? else { return Ok(Value::Nil) };
    if ends {
        return Ok(before(part, Value::Nil));
    }
    if cut.step < cut.size {
        cursor = machine.seq(start)?;
        skip(machine, &mut cursor, cut.step)?;
    } else {
        skip(machine, &mut cursor, cut.step - cut.size)?;
    }
    let rest = rest_of(machine, cursor)?;
    let rest = put_off(machine, &cut, rest);
    Ok(before(part, rest))
}

fn partition_by(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateful(&state::PARTITION_BY, Value::vector(Vec::new()), take(arguments, 0)));
    }
    let (function, collection) = function_over_items(machine, arguments);
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_PARTITION_BY, vec![function, collection]));
    }
    let mut cursor = machine.seq(collection)?;
    let mut out = Vec::new();
    let mut next = cursor.next(machine)?;
    while let Some(first) = next {
        let (part, behind) = neighbours(machine, &function, first, &mut cursor)?;
        out.push(part);
        machine.grown(out.len())?;
        next = behind;
    }
    Ok(Value::list(out))
}

/// Returns the part that begins with `first` and the item after it; both are consumed from the cursor.
fn neighbours(
    machine: &mut Machine,
    function: &Value,
    first: Value,
    cursor: &mut Cursor,
) -> Outcome<(Value, Option<Value>)> {
    let shared = machine.call1(function, first.clone())?;
    let mut part = vec![first];
    while let Some(item) = cursor.next(machine)? {
        let found = machine.call_on(function, &item)?;
        if !machine.equal(&shared, &found)? {
            return Ok((Value::list(part), Some(item)));
        }
        part.push(item);
        machine.grown(part.len())?;
    }
    Ok((Value::list(part), None))
}

static LAZY_PARTITION_BY: Builtin =
    Builtin::new("lazy-partition-by*", &["[f coll]"], "A step of a lazy `partition-by`.", &[], lazy_partition_by);

fn lazy_partition_by(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let mut cursor = machine.seq(take(arguments, 1))?;
    let Some(first) = cursor.next(machine)? else { return Ok(Value::Nil) };
    let shared = machine.call1(&function, first.clone())?;
    let mut part = vec![first];
    while part.len() < READ_AHEAD {
        let Some(item) = cursor.next(machine)? else { return Ok(before(Value::list(part), Value::Nil)) };
        let found = machine.call_on(&function, &item)?;
        if !machine.equal(&shared, &found)? {
            let rest = rest_of(machine, cursor)?;
            let rest = machine.lazy(&LAZY_PARTITION_BY, vec![function, before(item, rest)]);
            return Ok(before(Value::list(part), rest));
        }
        part.push(item);
    }
    // A part that may be infinite is lazy from here on; the rest of the sequence first iterates through that part.
    let rest = rest_of(machine, cursor)?;
    let run = machine.lazy(&LAZY_RUN, vec![function.clone(), shared, rest.clone()]);
    let behind = machine.lazy(&BEHIND_RUN, vec![function, run.clone(), rest]);
    Ok(before(in_front(machine, part, run)?, behind))
}

/// Maximum number of items of a part that a lazy `partition-by` reads before it treats the part as possibly infinite.
const READ_AHEAD: usize = 1_024;

static LAZY_RUN: Builtin =
    Builtin::new("lazy-run*", &["[f shared coll]"], "A step of a long part of a lazy `partition-by`.", &[], lazy_run);

fn lazy_run(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, shared) = (take(arguments, 0), take(arguments, 1));
    let mut cursor = machine.seq(take(arguments, 2))?;
    let Some(item) = cursor.next(machine)? else { return Ok(Value::Nil) };
    let found = machine.call_on(&function, &item)?;
    if !machine.equal(&shared, &found)? {
        return Ok(Value::Nil);
    }
    let rest = rest_of(machine, cursor)?;
    let rest = machine.lazy(&LAZY_RUN, vec![function, shared, rest]);
    Ok(before(item, rest))
}

static BEHIND_RUN: Builtin = Builtin::new(
    "behind-run*",
    &["[f run coll]"],
    "The rest of a lazy `partition-by` after a long part.",
    &[],
    behind_run,
);

fn behind_run(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let mut run = machine.seq(take(arguments, 1))?;
    let mut cursor = machine.seq(take(arguments, 2))?;
    while run.next(machine)?.is_some() {
        cursor.next(machine)?;
    }
    let rest = rest_of(machine, cursor)?;
    lazy_partition_by(machine, &mut [function, rest])
}
