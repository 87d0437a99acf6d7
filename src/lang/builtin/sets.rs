//! Sets: creation, adding and removing members, set algebra.
//!
//! The `set/` functions accept a sequential collection as the set of its items, and nil as the empty set.

use super::arguments::{function_and_collection, take};
use super::metadata::without_metadata;
use super::sequences::set_of;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::set::Set;
use std::cmp::Ordering;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("hash-set", &["[& items]"], "A set of the arguments.", &[("(hash-set 1 2 1)", "#{1 2}")], hash_set),
    Builtin::new(
        "set",
        &["[coll]"],
        "A set of the items of `coll`.",
        &[("(set [3 1 3])", "#{3 1}"), ("(set nil)", "#{}")],
        set,
    )
    .with_conduct(Conduct::Same),
    Builtin::new("disj", &["[set & items]"], "The set without these members.", &[("(disj #{1 2} 1)", "#{2}")], disj),
    Builtin::new(
        "set/union",
        &["[& sets]"],
        "The set of the members of any of the sets.",
        &[("(set/union #{1 2} #{2 3})", "#{1 2 3}"), ("(set/union)", "#{}")],
        union,
    ),
    Builtin::new(
        "set/intersection",
        &["[set & sets]"],
        "The set of the members common to all sets.",
        &[("(set/intersection #{1 2 3} #{3 2})", "#{2 3}")],
        intersection,
    ),
    Builtin::new(
        "set/difference",
        &["[set & sets]"],
        "The first set without members of the others.",
        &[("(set/difference #{1 2 3} #{2})", "#{1 3}")],
        difference,
    ),
    Builtin::new(
        "set/subset?",
        &["[set1 set2]"],
        "True if the first set is a subset of the second.",
        &[("(set/subset? #{1} #{1 2})", "true")],
        subset,
    ),
    Builtin::new(
        "set/superset?",
        &["[set1 set2]"],
        "True if the first set is a superset of the second.",
        &[("(set/superset? #{1 2} #{1})", "true")],
        superset,
    ),
    Builtin::new(
        "set/select",
        &["[pred set]"],
        "The members for which `pred` is true, as a set.",
        &[("(set/select odd? #{1 2 3})", "#{1 3}")],
        select,
    ),
];

fn hash_set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // Racket's `hash-set`, with a table, a key and a value: a set of a map and a bare name is implausible. Racket has no
    // sorted tables.
    if let [Value::Map(map), key, _] = arguments
        && map.order().is_none()
        && key.as_text().is_some()
    {
        return super::dialects::tables::hash_set(machine, arguments);
    }
    let mut set = Set::default();
    for item in arguments {
        machine.charge(1)?;
        set.insert(machine.key(std::mem::take(item))?);
    }
    Ok(Value::Set(Arc::new(set)))
}

fn set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        set @ Value::Set(_) => without_metadata(machine, set),
        other => Ok(Value::Set(Arc::new(set_of(machine, other)?))),
    }
}

pub(super) fn disj(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        alone if arguments.len() == 1 => Ok(alone),
        Value::Nil => Ok(Value::Nil),
        Value::Set(mut set) => {
            for item in &mut arguments[1..] {
                let item = machine.key(std::mem::take(item))?;
                remove(machine, &mut set, &item)?;
            }
            Ok(Value::Set(set))
        }
        other => {
            Err(Error::expected("a set", &other).suggest("`(remove #{x} coll)` leaves out items of a sequence").into())
        }
    }
}

/// Removes a member. A large set is compacted from time to time; part of that cost is charged here.
fn remove(machine: &mut Machine, set: &mut Arc<Set>, item: &Value) -> Outcome<()> {
    machine.charge(1)?;
    let Some(known) = machine.member_in(set, item)?.cloned() else { return Ok(()) };
    let place = machine.place_of(set.order(), &known)?;
    let set = Arc::make_mut(set);
    if set.positions() > 2 * set.len() {
        machine.charge(set.len() as u64)?;
    }
    match place {
        Some(place) => set.remove_at(place),
        None => set.remove(&known),
    }
    Ok(())
}

/// Converts an argument to a set.
pub(super) fn as_set(machine: &mut Machine, value: Value) -> Outcome<Arc<Set>> {
    match value {
        Value::Set(set) => Ok(set),
        Value::Nil => Ok(Arc::default()),
        other @ (Value::Vector(_) | Value::List(_) | Value::Lazy(_)) => Ok(Arc::new(set_of(machine, other)?)),
        other => Err(Error::expected("a set", &other).into()),
    }
}

/// Drops Common Lisp's `:test #'equal` after two collections; it is the default anyway.
fn without_test(arguments: &mut [Value]) -> &mut [Value] {
    match arguments {
        [_, _, Value::Keyword(name), _] if name.as_str() == "test" => &mut arguments[..2],
        _ => arguments,
    }
}

/// Converts the arguments to sets. If any of them is sorted, the set from which Clojure builds its result moves to the
/// front: of two the larger (`Ordering::Greater`) or the smaller one, and the first on a tie; of more the last on a
/// tie. Unsorted sets keep their positions, and thereby the insertion order.
fn sets_of(machine: &mut Machine, arguments: &mut [Value], leads: Ordering) -> Outcome<Vec<Arc<Set>>> {
    let mut sets = Vec::with_capacity(arguments.len());
    for argument in arguments {
        sets.push(as_set(machine, std::mem::take(argument))?);
    }
    if sets.iter().any(|set| set.order().is_some()) {
        let mut first = 0;
        for (at, set) in sets.iter().enumerate().skip(1) {
            let order = set.len().cmp(&sets[first].len());
            if order == leads || (order.is_eq() && sets.len() > 2) {
                first = at;
            }
        }
        sets[..=first].rotate_right(1);
    }
    Ok(sets)
}

fn union(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let arguments = without_test(arguments);
    if let [alone] = arguments {
        return Ok(std::mem::take(alone));
    }
    // Clojure adds the other sets to the largest one. If all are empty, that is the first of two, or the last of more;
    // if it is nil, the result is nil.
    let base = if arguments.len() == 2 { arguments.first() } else { arguments.last() };
    let is_nil = base.is_some_and(Value::is_nil);
    let mut sets = sets_of(machine, arguments, Ordering::Greater)?.into_iter();
    let mut united = sets.next().unwrap_or_default();
    for more in sets {
        let own = (more.len() > united.len()).then(|| more.metadata().cloned());
        let set = Arc::make_mut(&mut united);
        if let Some(own) = own {
            set.set_metadata(own);
        }
        for at in 0..more.positions() {
            machine.charge(1)?;
            if let Some(member) = more.member(at) {
                machine.add_member(set, member.clone())?;
            }
        }
    }
    Ok(if is_nil && united.is_empty() { Value::Nil } else { Value::Set(united) })
}

fn intersection(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let arguments = without_test(arguments);
    if let [alone] = arguments {
        return Ok(std::mem::take(alone));
    }
    // An intersection with nil is empty; Clojure returns nil, unless the sets before it already have an empty
    // intersection.
    if arguments[0].is_nil() {
        return Ok(Value::Nil);
    }
    let nil = arguments.iter().position(Value::is_nil).unwrap_or(arguments.len());
    let mut sets = sets_of(machine, &mut arguments[..nil], Ordering::Less)?.into_iter();
    let mut shared = sets.next().unwrap_or_default();
    for more in sets {
        let smaller_first = shared.len() <= more.len();
        let mut kept = keep(machine, &shared, |machine, member| Ok(machine.member_in(&more, member)?.is_some()))?;
        if !smaller_first {
            kept.set_metadata(more.metadata().cloned());
        }
        shared = Arc::new(kept);
    }
    Ok(if nil < arguments.len() && !shared.is_empty() { Value::Nil } else { Value::Set(shared) })
}

fn difference(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let arguments = without_test(arguments);
    if let [alone] = arguments {
        return Ok(std::mem::take(alone));
    }
    if arguments[0].is_nil() {
        return Ok(Value::Nil);
    }
    let mut left = as_set(machine, take(arguments, 0))?;
    for more in &mut arguments[1..] {
        let more = as_set(machine, std::mem::take(more))?;
        if left.len() < more.len() {
            left = Arc::new(keep(machine, &left, |machine, member| Ok(machine.member_in(&more, member)?.is_none()))?);
            continue;
        }
        for at in 0..more.positions() {
            machine.charge(1)?;
            if let Some(member) = more.member(at) {
                remove(machine, &mut left, member)?;
            }
        }
    }
    Ok(Value::Set(left))
}

/// Returns the members that satisfy a predicate; a sorted set keeps its order.
fn keep(machine: &mut Machine, set: &Set, mut test: impl FnMut(&mut Machine, &Value) -> Outcome<bool>) -> Outcome<Set> {
    let mut out = set.order().map_or_else(Set::default, |order| Set::sorted(order.comparator.clone()));
    for at in 0..set.positions() {
        machine.charge(1)?;
        if let Some(member) = set.member(at)
            && test(machine, member)?
        {
            out.append(member.clone());
        }
    }
    out.set_metadata(set.metadata().cloned());
    Ok(out)
}

fn subset(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (inner, outer) = (as_set(machine, take(arguments, 0))?, as_set(machine, take(arguments, 1))?);
    contained(machine, &inner, &outer)
}

fn superset(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    arguments.swap(0, 1);
    subset(machine, arguments)
}

fn contained(machine: &mut Machine, inner: &Set, outer: &Set) -> Outcome<Value> {
    if inner.len() > outer.len() {
        return Ok(Value::Bool(false));
    }
    for at in 0..inner.positions() {
        machine.charge(1)?;
        if let Some(member) = inner.member(at)
            && machine.member_in(outer, member)?.is_none()
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn select(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, set) = function_and_collection(arguments);
    if set.is_nil() {
        return Ok(Value::Nil);
    }
    let set = as_set(machine, set)?;
    let chosen = keep(machine, &set, |machine, member| Ok(machine.call1(&predicate, member.clone())?.is_truthy()))?;
    Ok(Value::Set(Arc::new(chosen)))
}
