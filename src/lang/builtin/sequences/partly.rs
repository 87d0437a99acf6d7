//! Partial reads: the resolver inserts these functions where only a part of a sequence is read.
//!
//! `(take 3 (map f xs))` becomes `(realised* (take 3 (map f (stepwise* xs))))`: over the lazy sequence, `map` is lazy as
//! well, so that `f` is called three times; and its effects still happen in the order of the program.
//!
//! `(for [c xs, r (go …)] …)` within `go` becomes `(for* … (as-read* go … xs))`: a search that reads one solution does
//! not compute all. So does `(for [c xs, r (other …)] …)` if `other` calls `go`, and `(concat r (map f r))` behind
//! `(let [r (go …)] …)`. Two designs were considered; only the chosen one was built and measured:
//!
//! - **All of `map`, `filter`, `mapcat`, `concat` and `for` lazy where they are pure.** Each item then costs a cell and a
//!   step of its own, which is several times what an item of a block costs, and nearly all programs read all items.
//! - **Joins lazy within the function that they call** (chosen). Only these grow exponentially: each level multiplies the
//!   items of the next. All other calls stay eager, which costs at most the items of one collection. Where all solutions
//!   are read, permutations, subsets, leaves of trees and queens take 1.0 to 1.5 times the steps of an eager search,
//!   and up to a three-hundredth of its memory; where one is read, the levels times their branches instead of a power.

use super::super::arguments::take;
use super::as_seq;
use crate::error::Outcome;
use crate::heap::State;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, Reading};
use crate::value::Value;
use crate::value::walk::Cursor;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("stepwise*", &["[coll]"], "Makes the source of a partial read lazy.", &[], stepwise)
        .with_conduct(Conduct::Same)
        .reading(Reading::Source),
    Builtin::new("as-read*", &["[& functions-and-coll]"], "Makes the source of a recursive join lazy.", &[], as_read)
        .with_conduct(Conduct::Same)
        .reading(Reading::Source),
    Builtin::new(
        "as-read-through*",
        &["[function & functions-and-coll]"],
        "Makes the source of a join lazy if the other functions call the first one.",
        &[],
        as_read_through,
    )
    .with_conduct(Conduct::Same)
    .reading(Reading::Source),
    Builtin::new("realised*", &["[coll]"], "Computes the result of a partial read.", &[], realised)
        .with_conduct(Conduct::Same)
        .reading(Reading::Result),
];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&SOURCE];

/// The step that realises a source at once.
static SOURCE: Builtin = Builtin::new("lazy-source*", &["[coll]"], "The source of a partial read.", &[], source);

fn source(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    as_seq(machine, take(arguments, 0))
}

fn stepwise(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let collection = take(arguments, 0);
    let has_several =
        Cursor::over(collection.clone()).and_then(|cursor| cursor.remaining()).is_some_and(|left| left > 1);
    // Others are lazy already, need no partial read, or are the function of a call in the other order.
    if !has_several || machine.is_lazy(&collection) {
        return Ok(collection);
    }
    Ok(machine.lazy(&SOURCE, vec![collection]))
}

/// Returns the collection, the last argument, as a lazy sequence if the functions among the other arguments are pure.
fn as_read(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Some((collection, functions)) = arguments.split_last_mut() else { return Ok(Value::Nil) };
    if machine.is_lazy(collection) || !machine.are_pure(functions)? {
        return Ok(std::mem::take(collection));
    }
    stepwise(machine, std::slice::from_mut(collection))
}

/// As [`as_read`], if the functions behind the first one call it, so that the join is recursive.
fn as_read_through(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let [own, others @ .., collection] = arguments else { return Ok(Value::Nil) };
    if machine.is_lazy(collection) || !machine.are_pure_and_call(others, own)? {
        return Ok(std::mem::take(collection));
    }
    stepwise(machine, std::slice::from_mut(collection))
}

fn realised(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let sequence = take(arguments, 0);
    if !is_of_source(machine, &sequence)? {
        return Ok(sequence);
    }
    machine.items(sequence).map(Value::list)
}

/// True for a sequence of unrealised steps over the source of a partial read. All others stay lazy, as they may be
/// infinite.
fn is_of_source(machine: &mut Machine, sequence: &Value) -> Outcome<bool> {
    let mut sequence = sequence.clone();
    loop {
        machine.charge(1)?;
        let Value::Lazy(handle) = &sequence else { return Ok(false) };
        let State::Waiting(Value::Bound(step)) = machine.core.heap.state(handle)? else { return Ok(false) };
        if std::ptr::eq(step.builtin, &SOURCE) {
            return Ok(true);
        }
        let inner = step.arguments.iter().find(|argument| matches!(argument, Value::Lazy(_))).cloned();
        sequence = inner.unwrap_or_default();
    }
}
