//! Reducing many items to one result: `reduce`, the folds, `into`, `conj`.

use super::super::arguments::{function_and_collection, take};
use super::super::options::{ANY, KEY};
use super::super::transducers;
use super::{add, before, change_vector, reduce_from};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, OptionSet, OptionSpec};
use crate::value::walk::Cursor;
use crate::value::{Reduced, Value};
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "reduce",
        &["[f coll]", "[f init coll]", "[f coll :initial-value init]", "[f coll :key key :initial-value init]"],
        "Reduces the items with `(f result item)`; `(reduced x)` stops early. Common Lisp's options after the collection: \
         `:key f`, `:initial-value init`.",
        &[
            ("(reduce + [1 2 3])", "6"),
            ("(reduce conj [] '(1 2))", "[1 2]"),
            ("(reduce + [{:n 1} {:n 2}] :key :n)", "3"),
        ],
        reduce,
    )
    .with_conduct(Conduct::Folds)
    .with_options(&REDUCE)
    .passing_on(),
    Builtin::new(
        "reduce-kv",
        &["[f init coll]"],
        "Reduces a map with `(f result key value)`, or a vector with `(f result index item)`.",
        &[("(reduce-kv (fn [m k v] (assoc m v k)) {} {:a 1})", "{1 :a}")],
        reduce_kv,
    )
    .with_conduct(Conduct::Folds),
    Builtin::new(
        "reductions",
        &["[f coll]", "[f init coll]"],
        "The intermediate results of `reduce`.",
        &[("(reductions + [1 2 3])", "(1 3 6)"), ("(reductions conj [] [1 2])", "([] [1] [1 2])")],
        reductions,
    )
    .passing_on(),
    Builtin::new(
        "fold",
        &["[f init coll]"],
        "Reduces with `(f item result)`: as `reduce`, with the item first.",
        &[("(fold cons '() [1 2 3])", "(3 2 1)")],
        fold,
    ),
    Builtin::new(
        "fold-left",
        &["[f init coll]"],
        "Reduces with `(f result item)`.",
        &[("(fold-left list 0 [1 2])", "((0 1) 2)")],
        reduce,
    )
    .with_conduct(Conduct::Folds),
    Builtin::new(
        "fold-right",
        &["[f init coll]"],
        "Reduces with `(f item result)`, from the last item to the first.",
        &[("(fold-right cons '() [1 2 3])", "(1 2 3)"), ("(fold-right list 0 [1 2])", "(1 (2 0))")],
        fold_right,
    ),
    Builtin::new(
        "reduced",
        &["[x]"],
        "Ends the reduction that it is returned to with the value `x`.",
        &[("(reduce (fn [a x] (if (> x 2) (reduced a) (+ a x))) 0 (range))", "3")],
        reduced,
    )
    .with_conduct(Conduct::Same)
    .passing_on(),
    Builtin::new(
        "reduced?",
        &["[x]"],
        "True for a result of `reduced`.",
        &[("(reduced? (reduced 1))", "true")],
        is_reduced,
    ),
    Builtin::new(
        "unreduced",
        &["[x]"],
        "The value inside `(reduced x)`; anything else unchanged.",
        &[("(unreduced (reduced 1))", "1"), ("(unreduced 1)", "1")],
        unreduced,
    ),
    Builtin::new(
        "ensure-reduced",
        &["[x]"],
        "`(reduced x)`, unless `x` is already reduced.",
        &[("(unreduced (ensure-reduced (reduced 1)))", "1")],
        ensure_reduced,
    ),
    Builtin::new(
        "into",
        &["[]", "[to]", "[to from]", "[to xform from]"],
        "Adds the items of `from` to the collection `to`, through a transducer if one is given.",
        &[("(into [1] '(2 3))", "[1 2 3]"), ("(into {} [[:a 1]])", "{:a 1}"), ("(into [] (map list) [1])", "[(1)]")],
        into,
    ),
    Builtin::new(
        "conj",
        &["[]", "[coll & items]"],
        "Adds items: at the end of a vector, at the front of a list, into a map or set.",
        &[("(conj [1] 2)", "[1 2]"), ("(conj '(1) 2)", "(2 1)"), ("(conj {:a 1} [:b 2])", "{:a 1, :b 2}")],
        conj,
    )
    .passing_on(),
];

static REDUCE: OptionSet = OptionSet { function: "reduce", accepted: &[KEY, OptionSpec::new("initial-value", &ANY)] };

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("foldl", "fold"), ("foldr", "fold-right")];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&LAZY_REDUCTIONS];

fn reduce(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() > 3 {
        return reduce_with_options(machine, arguments);
    }
    if arguments.len() == 2 {
        let (function, collection) = function_and_collection(arguments);
        let mut cursor = machine.seq(collection)?;
        return match cursor.next(machine)? {
            None => machine.call(&function, &mut []),
            Some(first) => reduce_from(machine, &function, first, cursor),
        };
    }
    function_first(arguments);
    // Accept `(reduce + xs 0)`, the order of Python and JavaScript.
    let is_sequence = |value: &Value| Cursor::over(value.clone()).is_some();
    if !is_sequence(&arguments[2]) && matches!(arguments[1], Value::List(_) | Value::Vector(_) | Value::Lazy(_)) {
        arguments.swap(1, 2);
    }
    let (function, init) = (take(arguments, 0), take(arguments, 1));
    let cursor = machine.seq(take(arguments, 2))?;
    reduce_from(machine, &function, init, cursor)
}

/// Common Lisp's `(reduce f coll :key key :initial-value init)`.
fn reduce_with_options(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if !matches!(&arguments[2], Value::Keyword(_)) {
        return Err(Error::expected("`:initial-value` or `:key` after the collection", &arguments[2]).into());
    }
    let given = REDUCE.read(&mut arguments[2..])?;
    let (function, collection) = function_and_collection(arguments);
    let mut cursor = machine.seq(collection)?;
    if let Some(key) = given.get("key") {
        let mut values = Vec::new();
        while let Some(item) = cursor.next(machine)? {
            machine.grown(values.len())?;
            values.push(machine.call1(key, item)?);
        }
        cursor = machine.seq(Value::list(values))?;
    }
    if let Some(init) = given.get("initial-value") {
        return reduce_from(machine, &function, init.clone(), cursor);
    }
    match cursor.next(machine)? {
        None => machine.call(&function, &mut []),
        Some(first) => reduce_from(machine, &function, first, cursor),
    }
}

/// Reorders `(reduce coll init f)` and `(reduce coll f init)` to `(reduce f init coll)`.
fn function_first(arguments: &mut [Value]) {
    if arguments[0].is_function() {
        return;
    }
    if arguments[2].is_function() {
        arguments.swap(0, 2);
    } else if arguments[1].is_function() {
        arguments.rotate_left(1);
    }
}

fn reduce_kv(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    function_first(arguments);
    let (function, mut result) = (take(arguments, 0), take(arguments, 1));
    let map = match take(arguments, 2) {
        Value::Map(map) => map,
        Value::Vector(vector) => {
            for index in 0..vector.len() {
                let item = vector.get(index).cloned().unwrap_or_default();
                result = machine.call(&function, &mut [result, Value::Int(index as i64), item])?;
                if let Value::Reduced(inner) = &result {
                    return Ok(inner.0.clone());
                }
            }
            return Ok(result);
        }
        Value::Nil => return Ok(result),
        entries @ (Value::List(_) | Value::Lazy(_)) => {
            let mut cursor = machine.seq(entries)?;
            while let Some(pair) = cursor.next(machine)? {
                let (key, value) = super::entry(machine, &pair)?;
                result = machine.call(&function, &mut [result, key, value])?;
                if let Value::Reduced(inner) = &result {
                    return Ok(inner.0.clone());
                }
            }
            return Ok(result);
        }
        other => {
            return Err(Error::expected("a map, a vector or a sequence of entries", &other)
                .suggest("use `reduce` for other sequences")
                .into());
        }
    };
    for position in 0..map.positions() {
        machine.charge(1)?;
        let Some((key, value)) = map.entry(position) else { continue };
        result = machine.call(&function, &mut [result, key.clone(), value.clone()])?;
        if let Value::Reduced(inner) = &result {
            return Ok(inner.0.clone());
        }
    }
    Ok(result)
}

fn reductions(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, first, collection) = if arguments.len() == 2 {
        let (function, collection) = function_and_collection(arguments);
        (function, None, collection)
    } else {
        function_first(arguments);
        (take(arguments, 0), Some(take(arguments, 1)), take(arguments, 2))
    };
    let is_lazy = machine.is_lazy(&collection);
    let mut cursor = machine.seq(collection)?;
    let mut result = match first {
        Some(first) => first,
        None => match cursor.next(machine)? {
            Some(first) => first,
            None => return Ok(Value::list(vec![machine.call(&function, &mut [])?])),
        },
    };
    if let Value::Reduced(inner) = &result {
        return Ok(Value::list(vec![inner.0.clone()]));
    }
    if is_lazy {
        let rest = rest_of(machine, cursor)?;
        let rest = machine.lazy(&LAZY_REDUCTIONS, vec![function, result.clone(), rest]);
        return Ok(before(result, rest));
    }
    let mut out = vec![result.clone()];
    while let Some(item) = cursor.next(machine)? {
        result = machine.call2(&function, result, item)?;
        if let Value::Reduced(inner) = &result {
            out.push(inner.0.clone());
            break;
        }
        out.push(result.clone());
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

static LAZY_REDUCTIONS: Builtin =
    Builtin::new("lazy-reductions*", &["[f result coll]"], "A step of a lazy `reductions`.", &[], lazy_reductions);

fn lazy_reductions(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, result) = (take(arguments, 0), take(arguments, 1));
    let mut cursor = machine.seq(take(arguments, 2))?;
    let Some(item) = cursor.next(machine)? else { return Ok(Value::Nil) };
    let result = machine.call2(&function, result, item)?;
    if let Value::Reduced(inner) = &result {
        return Ok(before(inner.0.clone(), Value::Nil));
    }
    let rest = rest_of(machine, cursor)?;
    let rest = machine.lazy(&LAZY_REDUCTIONS, vec![function, result.clone(), rest]);
    Ok(before(result, rest))
}

/// The order of SRFI 1 and Racket: the function takes the item first.
fn fold(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    function_first(arguments);
    let (function, mut result) = (take(arguments, 0), take(arguments, 1));
    let mut cursor = machine.seq(take(arguments, 2))?;
    while let Some(item) = cursor.next(machine)? {
        result = machine.call2(&function, item, result)?;
    }
    Ok(result)
}

fn fold_right(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    function_first(arguments);
    let (function, mut result) = (take(arguments, 0), take(arguments, 1));
    for item in machine.items(take(arguments, 2))?.into_iter().rev() {
        result = machine.call2(&function, item, result)?;
    }
    Ok(result)
}

fn reduced(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Reduced(Arc::new(Reduced(take(arguments, 0)))))
}

fn is_reduced(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(arguments[0], Value::Reduced(_))))
}

fn unreduced(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(match take(arguments, 0) {
        Value::Reduced(inner) => inner.0.clone(),
        other => other,
    })
}

fn ensure_reduced(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(match take(arguments, 0) {
        reduced @ Value::Reduced(_) => reduced,
        other => Value::Reduced(Arc::new(Reduced(other))),
    })
}

fn into(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments.len() {
        0 => Ok(Value::vector(Vec::new())),
        1 => Ok(take(arguments, 0)),
        2 => {
            let (to, from) = (take(arguments, 0), take(arguments, 1));
            add_all(machine, to, from)
        }
        _ => {
            let (to, transducer, from) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
            transducers::reduce(machine, &transducer, &Value::Builtin(&transducers::PUSH), to, from)
        }
    }
}

/// Adds each item of `from` to `to`.
fn add_all(machine: &mut Machine, mut to: Value, from: Value) -> Outcome<Value> {
    let mut cursor = machine.seq(from)?;
    if let Some(count) = cursor.remaining() {
        machine.reserve_values(count)?;
    }
    if let Value::Vector(mut vector) = to {
        let items = change_vector(machine, &mut vector)?;
        while let Some(item) = cursor.next(machine)? {
            items.push(item);
            machine.grown(items.len())?;
        }
        return Ok(Value::Vector(vector));
    }
    while let Some(item) = cursor.next(machine)? {
        to = add(machine, to, item)?;
    }
    Ok(to)
}

pub(in crate::builtin) fn conj(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.is_empty() {
        return Ok(Value::vector(Vec::new()));
    }
    let mut collection = take(arguments, 0);
    for item in &mut arguments[1..] {
        collection = add(machine, collection, std::mem::take(item))?;
    }
    Ok(collection)
}
