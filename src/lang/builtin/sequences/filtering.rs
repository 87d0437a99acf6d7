//! Selecting items: those that satisfy a predicate, every nth one, or each distinct one.

use super::super::arguments::{function_over_items, integer, take};
use super::super::transducers::{self, state, steps};
use super::making::REPEAT;
use super::{LEFT_OUT, before, count_and_collection};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, Reading};
use crate::value::Value;
use crate::value::set::Set;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "filter",
        &["[pred]", "[pred coll]"],
        "The items for which `pred` is true.",
        &[("(filter odd? [1 2 3])", "(1 3)"), ("(filter [{:a 1} {}] :a)", "({:a 1})")],
        filter,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::MapsRealised),
    Builtin::new(
        "filterv",
        &["[pred coll]"],
        "`filter`, but as a vector.",
        &[("(filterv odd? [1 2 3])", "[1 3]")],
        filterv,
    )
    .with_conduct(Conduct::Maps),
    Builtin::new(
        "remove",
        &["[pred]", "[pred coll]"],
        "The items for which `pred` is not true; given a number, string, character or list instead, the items not \
         equal to it.",
        &[("(remove odd? [1 2 3])", "(2)"), ("(remove nil? [1 nil])", "(1)"), ("(remove 2 [1 2 3])", "(1 3)")],
        remove,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::MapsRealised),
    Builtin::new(
        "take-nth",
        &["[n]", "[n coll]"],
        "Every `n`th item, starting with the first; the first one forever if `n` is below 1.",
        &[("(take-nth 2 [1 2 3 4 5])", "(1 3 5)")],
        take_nth,
    ),
    Builtin::new(
        "distinct",
        &["[]", "[coll]"],
        "The items without duplicates, keeping the first.",
        &[("(distinct [1 2 1 3 2])", "(1 2 3)")],
        distinct,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::Same),
    Builtin::new(
        "dedupe",
        &["[]", "[coll]"],
        "The items without consecutive duplicates.",
        &[("(dedupe [1 1 2 2 1])", "(1 2 1)")],
        dedupe,
    )
    .reading(Reading::Stepwise),
    Builtin::new(
        "random-sample",
        &["[probability]", "[probability coll]"],
        "A random selection of items, each kept with this probability (0 to 1).",
        &[("(random-sample 1 [1 2])", "(1 2)"), ("(random-sample 0 [1 2])", "()")],
        random_sample,
    ),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] =
    &[("remove-if", "remove"), ("remove-if-not", "filter"), ("delete-duplicates", "distinct")];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&LAZY_FILTER];

fn filter(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateless(&steps::FILTER, take(arguments, 0)));
    }
    pick(machine, arguments, true)
}

fn remove(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateless(&steps::REMOVE, take(arguments, 0)));
    }
    // Common Lisp's `remove` takes an item, which is never a function.
    if is_item(machine, &arguments[0], &arguments[1])? {
        return super::super::dialects::lists::delete(machine, arguments);
    }
    pick(machine, arguments, false)
}

/// True if the value in the predicate's position can only be an item of the following list. A vector is a function of
/// indices, so it counts as an item only if the list starts with a list or a vector.
fn is_item(machine: &mut Machine, item: &Value, list: &Value) -> Outcome<bool> {
    if !matches!(list, Value::List(_) | Value::Vector(_) | Value::Nil) {
        return Ok(false);
    }
    Ok(match item {
        Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Char(_) | Value::Bool(_) => true,
        Value::List(_) | Value::Vector(_) => {
            matches!(machine.seq(list.clone())?.next(machine)?, Some(Value::List(_) | Value::Vector(_)))
        }
        _ => false,
    })
}

/// Returns the items for which the truth of the predicate equals `wanted`.
fn pick(machine: &mut Machine, arguments: &mut [Value], wanted: bool) -> Outcome<Value> {
    let (predicate, collection) = function_over_items(machine, arguments);
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_FILTER, vec![predicate, collection, Value::Bool(wanted)]));
    }
    picked(machine, &predicate, collection, wanted).map(Value::list)
}

fn filterv(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, collection) = function_over_items(machine, arguments);
    picked(machine, &predicate, collection, true).map(Value::vector)
}

fn picked(machine: &mut Machine, predicate: &Value, collection: Value, wanted: bool) -> Outcome<Vec<Value>> {
    let mut cursor = machine.through(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        if machine.call_on(predicate, &item)?.is_truthy() == wanted {
            out.push(item);
            machine.grown(out.len())?;
        }
    }
    Ok(out)
}

static LAZY_FILTER: Builtin =
    Builtin::new("lazy-filter*", &["[pred coll wanted]"], "A step of a lazy `filter` or `remove`.", &[], lazy_filter);

fn lazy_filter(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, wanted) = (take(arguments, 0), take(arguments, 2));
    let mut cursor = machine.seq(take(arguments, 1))?;
    for _ in 0..LEFT_OUT {
        let Some(item) = cursor.next(machine)? else { return Ok(Value::Nil) };
        if machine.call_on(&predicate, &item)?.is_truthy() == wanted.is_truthy() {
            let rest = rest_of(machine, cursor)?;
            let tail = machine.lazy(&LAZY_FILTER, vec![predicate, rest, wanted]);
            return Ok(before(item, tail));
        }
    }
    let rest = rest_of(machine, cursor)?;
    Ok(machine.lazy(&LAZY_FILTER, vec![predicate, rest, wanted]))
}

fn take_nth(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let step = |distance: u64| {
        let distance = Value::Int(distance.min(i64::MAX as u64) as i64);
        transducers::stateful(&state::TAKE_NTH, Value::Int(0), distance)
    };
    if arguments.len() == 1 {
        return match integer(&arguments[0])?.unsigned_abs() {
            0 => Err(Error::new("IllegalArgument", "`(take-nth 0)` has no next item: use 1 for all of them").into()),
            distance => Ok(step(distance)),
        };
    }
    let (distance, collection) = count_and_collection(arguments)?;
    if distance > 0 {
        return transducers::through(machine, &step(distance), collection);
    }
    // A distance of zero never advances: the sequence repeats the first item endlessly.
    match machine.seq(collection)?.next(machine)? {
        Some(item) => Ok(machine.lazy(&REPEAT, vec![item])),
        None => Ok(Value::list(Vec::new())),
    }
}

fn distinct(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let transducer = || transducers::stateful(&state::DISTINCT, Value::Set(Default::default()), Value::Nil);
    if arguments.is_empty() {
        return Ok(transducer());
    }
    let collection = take(arguments, 0);
    if machine.is_lazy(&collection) {
        return transducers::through(machine, &transducer(), collection);
    }
    let mut cursor = machine.seq(collection)?;
    let (mut seen, mut out) = (Set::default(), Vec::new());
    while let Some(item) = cursor.next(machine)? {
        let key = machine.key(item.clone())?;
        if seen.insert(key) {
            out.push(item);
            machine.grown(out.len())?;
        }
    }
    Ok(Value::list(out))
}

fn dedupe(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let transducer = transducers::stateful(&state::DEDUPE, Value::vector(Vec::new()), Value::Nil);
    if arguments.is_empty() {
        return Ok(transducer);
    }
    transducers::through(machine, &transducer, take(arguments, 0))
}

fn random_sample(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let transducer = transducers::stateless(&steps::SAMPLE, take(arguments, 0));
    match arguments.get_mut(1).map(std::mem::take) {
        Some(collection) => transducers::through(machine, &transducer, collection),
        None => Ok(transducer),
    }
}
