//! Creating sequences: from given items, from numbers, and from repeated calls of a function.

use super::super::arguments::{count, take, whole};
use super::super::arithmetic::{self, Operation, mixed};
use super::super::metadata::without_metadata;
use super::cutting::first_of;
use super::joining::concat_two;
use super::{as_seq, before, count_up, in_front, is_number, or_empty};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::compare::compare_numbers;
use crate::value::list::List;
use std::cmp::Ordering;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("list", &["[& items]"], "A list of the arguments.", &[("(list 1 2)", "(1 2)")], list)
        .with_conduct(Conduct::Collects)
        .passing_on(),
    Builtin::new(
        "list*",
        &["[args]", "[item & items-and-args]"],
        "A list of the arguments, the last of which is a sequence of further items.",
        &[("(list* 1 2 [3 4])", "(1 2 3 4)")],
        list_star,
    )
    .passing_on(),
    Builtin::new(
        "cons",
        &["[x coll]"],
        "A sequence of `x` followed by the items of `coll`; of two scalars, a pair.",
        &[("(cons 1 [2 3])", "(1 2 3)"), ("(cons :a 1)", "[:a 1]")],
        cons,
    )
    .passing_on(),
    Builtin::new("vec", &["[coll]"], "A vector of the items of `coll`.", &[("(vec (range 3))", "[0 1 2]")], vec)
        .with_conduct(Conduct::Same),
    Builtin::new("vector", &["[& items]"], "A vector of the arguments.", &[("(vector 1 2)", "[1 2]")], vector)
        .with_conduct(Conduct::Collects)
        .passing_on(),
    Builtin::new(
        "range",
        &["[]", "[end]", "[start end]", "[start end step]"],
        "Numbers from `start` (0) up to but not including `end`, by `step` (1); infinite without an end.",
        &[("(range 3)", "(0 1 2)"), ("(range 1 10 3)", "(1 4 7)"), ("(take 2 (range))", "(0 1)")],
        range,
    )
    .with_conduct(Conduct::Range),
    Builtin::new(
        "iota",
        &["[n]", "[n start]", "[n start step]"],
        "`n` numbers from `start` (0) by `step` (1).",
        &[("(iota 3)", "(0 1 2)"), ("(iota 3 1 2)", "(1 3 5)")],
        iota,
    ),
    Builtin::new(
        "repeat",
        &["[x]", "[n x]"],
        "`x` repeated `n` times, or infinitely.",
        &[("(repeat 3 :a)", "(:a :a :a)"), ("(take 2 (repeat 1))", "(1 1)")],
        repeat,
    )
    .passing_on(),
    Builtin::new(
        "repeatedly",
        &["[f]", "[n f]"],
        "The results of calling `f` without arguments, `n` times or infinitely.",
        &[("(repeatedly 2 (fn [] :a))", "(:a :a)"), ("(take 2 (repeatedly list))", "(() ())")],
        repeatedly,
    ),
    Builtin::new(
        "iterate",
        &["[f x]"],
        "`x`, `(f x)`, `(f (f x))` and so on, infinitely.",
        &[("(take 3 (iterate list 1))", "(1 (1) ((1)))")],
        iterate,
    ),
    Builtin::new(
        "cycle",
        &["[coll]"],
        "The items of `coll`, repeated infinitely.",
        &[("(take 5 (cycle [1 2]))", "(1 2 1 2 1)"), ("(cycle [])", "()")],
        cycle,
    ),
    Builtin::new(
        "tree-seq",
        &["[branch? children root]"],
        "The nodes of a tree, parents before their children; `children` returns them if `branch?` is true.",
        &[("(tree-seq vector? seq [1 [2]])", "([1 [2]] 1 [2] 2)")],
        tree_seq,
    ),
    Builtin::new("lazy-seq*", &["[f]"], "Expansion of `lazy-seq`.", &[], lazy_seq_star),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("list->vector", "vec")];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&REPEAT, &REPEATEDLY, &ITERATE, &CYCLE, &TREE, &ASCEND];

fn list(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::list(arguments.iter_mut().map(std::mem::take).collect()))
}

fn list_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let items: Vec<Value> = arguments.iter_mut().map(std::mem::take).collect();
    let (items, rest) = match items.split_last() {
        Some((rest, items)) => (items.to_vec(), rest.clone()),
        None => return Ok(Value::Nil),
    };
    let rest = as_seq(machine, rest)?;
    in_front(machine, items, rest)
}

fn cons(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (head, tail) = (take(arguments, 0), take(arguments, 1));
    let tail = match tail {
        Value::List(_) | Value::Lazy(_) | Value::Nil => tail,
        // Scheme's dotted pair. A collection before a scalar means that the arguments are in the wrong order.
        other if is_atomic(&other) && (is_atomic(&head) || matches!(head, Value::Str(_))) => {
            return Ok(Value::pair(head, other));
        }
        other => as_seq(machine, other)?,
    };
    Ok(before(head, tail))
}

/// True for a value that contains no items.
fn is_atomic(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Annotated(_)
            | Value::BigInt(_)
            | Value::Decimal(_)
            | Value::Time(_)
    )
}

fn vec(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        queue @ Value::Vector(_) if matches!(&queue, Value::Vector(items) if items.is_queue()) => {
            Ok(Value::vector(machine.items(queue)?))
        }
        vector @ Value::Vector(_) => without_metadata(machine, vector),
        other => Ok(Value::vector(machine.items(other)?)),
    }
}

fn vector(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::vector(arguments.iter_mut().map(std::mem::take).collect()))
}

fn range(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (start, end, step) = match arguments {
        [] => return Ok(Value::List(Arc::new(List::Range { start: 0, step: 1, count: List::ENDLESS }))),
        [end] => (Value::Int(0), end.clone(), Value::Int(1)),
        [start, end] => (start.clone(), end.clone(), Value::Int(1)),
        [start, end, step, ..] => (start.clone(), end.clone(), step.clone()),
    };
    if let (Value::Int(start), Value::Int(end), Value::Int(step)) = (&start, &end, &step) {
        return Ok(Value::List(Arc::new(integer_range(*start, *end, *step))));
    }
    if let (Value::Int(start), Value::Float(end), Value::Int(step)) = (&start, &end, &step)
        && !end.is_nan()
    {
        // The conversion saturates at 64 bits, a bound that no program reaches.
        let end = if *step < 0 { end.floor() } else { end.ceil() };
        return Ok(Value::List(Arc::new(integer_range(*start, end as i64, *step))));
    }
    let is_exact = |number: &Value| matches!(number, Value::BigInt(_) | Value::Decimal(_));
    if is_exact(&start) || is_exact(&end) || is_exact(&step) {
        return exact_range(machine, start, &end, &step);
    }
    let (from, to, by) = (as_double(&start)?, as_double(&end)?, as_double(&step)?);
    if to.is_infinite() && (by > 0.0) == (to > 0.0) && by != 0.0 && from.is_finite() {
        return Ok(machine.lazy(&ASCEND, vec![start, Value::Float(by)]));
    }
    let mut out = Vec::new();
    let mut at = from;
    while (by > 0.0 && at < to) || (by < 0.0 && at > to) {
        machine.charge(1)?;
        out.push(if out.is_empty() { start.clone() } else { Value::Float(at) });
        machine.grown(out.len())?;
        at += by;
    }
    Ok(Value::list(out))
}

static ASCEND: Builtin =
    Builtin::new("lazy-range*", &["[start step]"], "A step of a range of doubles without end.", &[], ascend);

fn ascend(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (start, step) = (take(arguments, 0), take(arguments, 1));
    let next = Value::Float(as_double(&start)? + as_double(&step)?);
    let rest = machine.lazy(&ASCEND, vec![next, step]);
    Ok(before(start, rest))
}

/// Builds a range in which at least one number is a big integer or a decimal.
fn exact_range(machine: &mut Machine, start: Value, end: &Value, step: &Value) -> Outcome<Value> {
    let wanted = match compare_with(step, &Value::Int(0))? {
        Some(Ordering::Greater) => Ordering::Less,
        Some(Ordering::Less) => Ordering::Greater,
        _ => return Ok(Value::list(Vec::new())),
    };
    let mut out = Vec::new();
    let mut at = start;
    while compare_with(&at, end)? == Some(wanted) {
        machine.charge(1)?;
        out.push(at.clone());
        machine.grown(out.len())?;
        at = mixed(machine, Operation::Add, &at, step).map(smallest_of(&at, step))?;
    }
    Ok(Value::list(out))
}

/// Returns a conversion for the sum of two numbers: the sum of two 64-bit integers becomes a 64-bit integer if it fits.
fn smallest_of(left: &Value, right: &Value) -> fn(Value) -> Value {
    match (left, right) {
        (Value::Int(_), Value::Int(_)) => |sum| match sum {
            Value::BigInt(sum) => Value::integer((*sum).clone()),
            sum => sum,
        },
        _ => |sum| sum,
    }
}

fn compare_with(left: &Value, right: &Value) -> Result<Option<Ordering>, Error> {
    for number in [left, right] {
        if !arithmetic::is_number(number) {
            return Err(Error::expected("a number", number));
        }
    }
    Ok(compare_numbers(left, right))
}

fn integer_range(start: i64, end: i64, step: i64) -> List {
    let distance = i128::from(end) - i128::from(start);
    let count = match step {
        0 if distance == 0 => 0,
        0 => u64::MAX,
        step => {
            let step = i128::from(step);
            let count = (distance + step - step.signum()) / step;
            u64::try_from(count.max(0)).unwrap_or(u64::MAX).min(List::ENDLESS - 1)
        }
    };
    List::Range { start, step, count }
}

/// Converts a number to a double.
fn as_double(value: &Value) -> Result<f64, Error> {
    match value {
        Value::Int(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        other => Err(Error::expected("a number", other)),
    }
}

/// Scheme's `iota`: a count, then the start and the step.
fn iota(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let wanted = count(&arguments[0])?;
    let start = arguments.get(1).cloned().unwrap_or(Value::Int(0));
    let step = arguments.get(2).cloned().unwrap_or(Value::Int(1));
    if let (Value::Int(start), Value::Int(step)) = (&start, &step) {
        return Ok(Value::List(Arc::new(List::Range {
            start: *start,
            step: *step,
            count: wanted.min(i64::MAX as u64),
        })));
    }
    let (from, by) = (as_double(&start)?, as_double(&step)?);
    machine.reserve_values(wanted)?;
    machine.charge(wanted)?;
    Ok(Value::list((0..wanted).map(|at| Value::Float(from + by * at as f64)).collect()))
}

fn repeat(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(machine.lazy(&REPEAT, vec![take(arguments, 0)]));
    }
    if !is_number(&arguments[0]) && is_number(&arguments[1]) {
        arguments.swap(0, 1);
    }
    let wanted = whole(&arguments[0])?.max(0) as u64;
    if wanted > List::LONG {
        let endless = machine.lazy(&REPEAT, vec![take(arguments, 1)]);
        return first_of(machine, wanted, endless);
    }
    machine.reserve_values(wanted)?;
    machine.charge(wanted)?;
    Ok(Value::list(vec![take(arguments, 1); wanted as usize]))
}

pub(super) static REPEAT: Builtin =
    Builtin::new("lazy-repeat*", &["[x]"], "A step of an endless `repeat`.", &[], repeat_step);

fn repeat_step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let item = take(arguments, 0);
    let rest = machine.lazy(&REPEAT, vec![item.clone()]);
    Ok(before(item, rest))
}

fn repeatedly(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(machine.lazy(&REPEATEDLY, vec![take(arguments, 0)]));
    }
    if !is_number(&arguments[0]) && is_number(&arguments[1]) {
        arguments.swap(0, 1);
    }
    let (wanted, function) = (count_up(&arguments[0])?, take(arguments, 1));
    if wanted > List::LONG {
        let endless = machine.lazy(&REPEATEDLY, vec![function]);
        return first_of(machine, wanted, endless);
    }
    machine.reserve_values(wanted)?;
    let mut out = Vec::new();
    for _ in 0..wanted {
        out.push(machine.call(&function, &mut [])?);
    }
    Ok(Value::list(out))
}

static REPEATEDLY: Builtin =
    Builtin::new("lazy-repeatedly*", &["[f]"], "A step of an endless `repeatedly`.", &[], repeatedly_step);

fn repeatedly_step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let item = machine.call(&function, &mut [])?;
    let rest = machine.lazy(&REPEATEDLY, vec![function]);
    Ok(before(item, rest))
}

fn iterate(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if !arguments[0].is_function() && arguments[1].is_function() {
        arguments.swap(0, 1);
    }
    let (function, start) = (take(arguments, 0), take(arguments, 1));
    let rest = machine.lazy(&ITERATE, vec![function, start.clone()]);
    Ok(before(start, rest))
}

static ITERATE: Builtin = Builtin::new("lazy-iterate*", &["[f x]"], "A step of `iterate`.", &[], iterate_step);

fn iterate_step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, last) = (take(arguments, 0), take(arguments, 1));
    let item = machine.call1(&function, last)?;
    let rest = machine.lazy(&ITERATE, vec![function, item.clone()]);
    Ok(before(item, rest))
}

fn cycle(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let all = as_seq(machine, take(arguments, 0))?;
    if all.is_nil() {
        return Ok(or_empty(all));
    }
    Ok(machine.lazy(&CYCLE, vec![all.clone(), all]))
}

static CYCLE: Builtin = Builtin::new("lazy-cycle*", &["[all rest]"], "A step of `cycle`.", &[], cycle_step);

fn cycle_step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let all = take(arguments, 0);
    let mut cursor = machine.seq(take(arguments, 1))?;
    let item = match cursor.next(machine)? {
        Some(item) => item,
        None => {
            cursor = machine.seq(all.clone())?;
            cursor.next(machine)?.unwrap_or_default()
        }
    };
    let rest = rest_of(machine, cursor)?;
    let rest = machine.lazy(&CYCLE, vec![all, rest]);
    Ok(before(item, rest))
}

fn tree_seq(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (branch, children, root) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    Ok(machine.lazy(&TREE, vec![branch, children, Value::list(vec![root])]))
}

/// One step of `tree-seq`: visits a node and puts its children before all pending nodes.
static TREE: Builtin = Builtin::new("lazy-tree*", &["[branch? children pending]"], "A step of `tree-seq`.", &[], tree);

fn tree(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (branch, children) = (take(arguments, 0), take(arguments, 1));
    let mut cursor = machine.seq(take(arguments, 2))?;
    let Some(node) = cursor.next(machine)? else { return Ok(Value::Nil) };
    let mut pending = rest_of(machine, cursor)?;
    if machine.call1(&branch, node.clone())?.is_truthy() {
        let below = machine.call1(&children, node.clone())?;
        pending = concat_two(machine, below, pending)?;
    }
    let rest = machine.lazy(&TREE, vec![branch, children, pending]);
    Ok(before(node, rest))
}

fn lazy_seq_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    Ok(machine.lazy_call(function))
}
