//! Sorted maps and sets: construction, binary search, and the part between two keys.

use super::arguments::take;
use super::arithmetic::is_number;
use super::primitives::cut_to_32;
use super::sequences::entry;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::compare::compare;
use crate::value::large::SortOrder;
use crate::value::map::Map;
use crate::value::set::Set;
use crate::value::view::{Part, View};
use std::cmp::Ordering;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "sorted-map",
        &["[& keyvals]"],
        "A map with keys in the order of `compare`.",
        &[("(sorted-map :b 2 :a 1)", "{:a 1, :b 2}"), ("(assoc (sorted-map 3 :c) 1 :a)", "{1 :a, 3 :c}")],
        |machine, arguments| map_from(machine, Value::Nil, arguments),
    ),
    Builtin::new(
        "sorted-map-by",
        &["[comparator & keyvals]"],
        "A map with keys in the order of a comparator: a function of two keys that returns true or a negative number \
         if the first comes first.",
        &[("(sorted-map-by > 1 :a 3 :c 2 :b)", "{3 :c, 2 :b, 1 :a}")],
        |machine, arguments| {
            let comparator = take(arguments, 0);
            map_from(machine, comparator, &mut arguments[1..])
        },
    ),
    Builtin::new(
        "sorted-set",
        &["[& items]"],
        "A set with members in the order of `compare`.",
        &[("(sorted-set 3 1 2)", "#{1 2 3}"), ("(first (conj (sorted-set 5) 4))", "4")],
        |machine, arguments| set_from(machine, Value::Nil, arguments),
    ),
    Builtin::new(
        "sorted-set-by",
        &["[comparator & items]"],
        "A set with members in the order of a comparator.",
        &[("(sorted-set-by > 3 1 2)", "#{3 2 1}")],
        |machine, arguments| {
            let comparator = take(arguments, 0);
            set_from(machine, comparator, &mut arguments[1..])
        },
    ),
    Builtin::new(
        "sorted?",
        &["[coll]"],
        "True for a sorted map or set.",
        &[("(sorted? (sorted-map))", "true"), ("(sorted? {})", "false")],
        |_, arguments| Ok(Value::Bool(is_sorted(&arguments[0]))),
    ),
    Builtin::new(
        "subseq",
        &["[sorted test key]", "[sorted start-test start-key end-test end-key]", "[coll start]", "[coll start end]"],
        "The entries of a sorted collection whose keys pass the test (`<` `<=` `>` `>=`) against a key, or both tests. \
         With indices, Common Lisp's `subseq`: see `sublist`.",
        &[
            ("(subseq (sorted-set 1 2 3 4) > 2)", "(3 4)"),
            ("(subseq (sorted-map 1 :a 2 :b 3 :c) >= 2 < 3)", "([2 :b])"),
        ],
        |machine, arguments| match &arguments[1] {
            Value::Int(_) => super::dialects::lists::sublist(machine, arguments),
            _ if arguments.len() == 2 => Err(Error::new("ArityError", "`subseq` takes a test and a key").into()),
            _ => part(machine, arguments, false),
        },
    ),
    Builtin::new(
        "rsubseq",
        &["[sorted test key]", "[sorted start-test start-key end-test end-key]"],
        "Like `subseq`, in reverse.",
        &[("(rsubseq (sorted-set 1 2 3 4) <= 3)", "(3 2 1)")],
        |machine, arguments| part(machine, arguments, true),
    ),
];

/// Checks that a comparator is callable, even if there are no keys to order yet.
fn check_comparator(comparator: &Value) -> Result<(), Error> {
    if comparator.is_nil() || super::kinds::is_callable(comparator) {
        return Ok(());
    }
    Err(Error::expected("a comparator", comparator)
        .suggest("it comes first, a function of two keys such as `>` or `#(compare %2 %1)`; `sorted-map` needs none"))
}

fn map_from(machine: &mut Machine, comparator: Value, pairs: &mut [Value]) -> Outcome<Value> {
    check_comparator(&comparator)?;
    let mut map = Map::sorted(comparator);
    super::maps::put_all(machine, &mut map, pairs)?;
    Ok(Value::Map(Arc::new(map)))
}

fn set_from(machine: &mut Machine, comparator: Value, items: &mut [Value]) -> Outcome<Value> {
    check_comparator(&comparator)?;
    let mut set = Set::sorted(comparator);
    for item in items {
        let item = machine.key(std::mem::take(item))?;
        machine.add_member(&mut set, item)?;
    }
    Ok(Value::Set(Arc::new(set)))
}

/// True for a sorted map or set.
pub fn is_sorted(value: &Value) -> bool {
    order_of(value).is_some()
}

/// Returns the order of a sorted collection; `None` for any other value.
fn order_of(value: &Value) -> Option<&SortOrder> {
    match value {
        Value::Map(map) => map.order(),
        Value::Set(set) => set.order(),
        _ => None,
    }
}

fn part(machine: &mut Machine, arguments: &mut [Value], backwards: bool) -> Outcome<Value> {
    if arguments.len() == 4 {
        return Err(Error::new("ArityError", "`subseq` takes a test and a key, or two of each").into());
    }
    let collection = take(arguments, 0);
    let Some(order) = order_of(&collection) else {
        return Err(Error::expected("a sorted map or set", &collection)
            .suggest("`(into (sorted-map) m)` and `(into (sorted-set) coll)` make one")
            .into());
    };
    // The result is nil if no key passes the bounds at which the walk begins, and the empty list if one does but none
    // fits.
    let begins = if backwards { [Bound::Below, Bound::UpTo] } else { [Bound::Above, Bound::From] };
    let (mut from, mut to, mut is_begun) = (0, order.len(), true);
    for bound in arguments[1..].chunks(2) {
        let Some(kind) = Bound::of(&bound[0]) else {
            return tested(machine, &collection, &arguments[1..], backwards);
        };
        let place = machine.bound(order, kind, &bound[1])?;
        match kind {
            Bound::Above | Bound::From => from = from.max(place),
            Bound::Below | Bound::UpTo => to = to.min(place),
        }
        if begins.contains(&kind) {
            is_begun = if backwards { to > 0 } else { from < order.len() };
        }
    }
    let part = if backwards { Part::Reversed } else { Part::Items };
    let view = View::of(collection, part).and_then(|view| view.between(from, to.max(from)));
    Ok(match view.map_or(Value::Nil, View::into_seq) {
        Value::Nil if is_begun => Value::list(Vec::new()),
        found => found,
    })
}

/// A test of `subseq` that splits the keys in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Above,
    From,
    Below,
    UpTo,
}

impl Bound {
    fn of(test: &Value) -> Option<Bound> {
        let Value::Builtin(test) = test else { return None };
        Some(match test.name {
            ">" => Bound::Above,
            ">=" => Bound::From,
            "<" => Bound::Below,
            "<=" => Bound::UpTo,
            _ => return None,
        })
    }
}

/// Returns the items whose keys pass tests of any kind.
fn tested(machine: &mut Machine, collection: &Value, tests: &[Value], backwards: bool) -> Outcome<Value> {
    let comparator = order_of(collection).map(|order| order.comparator.clone()).unwrap_or_default();
    let mut found = Vec::new();
    let mut cursor = machine.seq(collection.clone())?;
    while let Some(item) = cursor.next(machine)? {
        let key = if matches!(collection, Value::Map(_)) { entry(machine, &item)?.0 } else { item.clone() };
        let mut fits = true;
        for bound in tests.chunks(2) {
            let order = ordering(machine, &comparator, &key, &bound[1])? as i64;
            fits &= machine.call2(&bound[0], Value::Int(order), Value::Int(0))?.is_truthy();
        }
        if fits {
            found.push(item);
            machine.grown(found.len())?;
        }
    }
    if backwards {
        found.reverse();
    }
    Ok(Value::list(found))
}

/// Orders two keys by a comparator; nil means `compare`.
fn ordering(machine: &mut Machine, comparator: &Value, left: &Value, right: &Value) -> Outcome<Ordering> {
    if comparator.is_nil() {
        return compare(machine, left, right);
    }
    match machine.call2(comparator, left.clone(), right.clone())? {
        Value::Bool(true) => Ok(Ordering::Less),
        Value::Bool(false) => {
            let greater = machine.call2(comparator, right.clone(), left.clone())?.is_truthy();
            Ok(if greater { Ordering::Greater } else { Ordering::Equal })
        }
        number => order_by_number(&number),
    }
}

/// Converts a comparator's number to an ordering: the sign of its low 32 bits, with the fraction dropped, as in Java,
/// where a comparator returns an `int`.
///
/// # Errors
/// Returns `TypeError` if the value is not a number.
pub(super) fn order_by_number(number: &Value) -> Outcome<Ordering> {
    if !is_number(number) {
        return Err(Error::expected("true, false or a number from the comparator", number)
            .suggest("a comparator takes two items, as `<` does; to sort by a key, use `sort-by`")
            .into());
    }
    Ok(cut_to_32(number)?.cmp(&0))
}

impl Machine {
    /// Finds a key in an order by binary search: `Ok` holds its index, `Err` the insertion point.
    fn place(&mut self, order: &SortOrder, key: &Value) -> Outcome<Result<usize, usize>> {
        let (mut low, mut high) = (0, order.len());
        if high == 0 {
            // Compare the first key with itself, so that a key without an order is rejected right away rather than on
            // the second insertion.
            ordering(self, &order.comparator, key, key)?;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(known) = order.key(middle) else { break };
            match ordering(self, &order.comparator, known, key)? {
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Returns the first index of an order whose key passes a lower bound, or fails an upper one.
    fn bound(&mut self, order: &SortOrder, kind: Bound, key: &Value) -> Outcome<usize> {
        let (mut low, mut high) = (0, order.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(known) = order.key(middle) else { break };
            let is_before = match ordering(self, &order.comparator, known, key)? {
                Ordering::Less => true,
                Ordering::Equal => matches!(kind, Bound::Above | Bound::UpTo),
                Ordering::Greater => false,
            };
            if is_before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns the index of a known key in the order of a sorted collection. Returns `None` for an unsorted collection,
    /// and if the comparator does not find the key, which then has to be searched for, as the charge says.
    ///
    /// # Errors
    /// Propagates errors of the comparator.
    pub(super) fn place_of(&mut self, order: Option<&SortOrder>, known: &Value) -> Outcome<Option<usize>> {
        let Some(order) = order else { return Ok(None) };
        let place = self.place(order, known)?.ok().filter(|place| order.key(*place) == Some(known));
        if place.is_none() {
            self.charge(order.len() as u64 / 16)?;
        }
        Ok(place)
    }

    /// Associates a key with a value, at the position that the comparator determines in a sorted map. A record keeps
    /// the existing spelling of the key.
    ///
    /// # Errors
    /// Propagates errors of the comparator; halts if a resource limit is exceeded.
    pub(crate) fn put(&mut self, map: &mut Map, key: Value, value: Value) -> Outcome<()> {
        if map.is_record() && map.get_exact(&key).is_none() {
            map.prepare_spellings(&key, |steps| self.charge(steps))?;
        }
        let place = match map.order() {
            Some(order) if !map.contains_key(&key) => self.place(order, &key)?,
            _ => {
                map.insert(key, value);
                return Ok(());
            }
        };
        match place {
            Ok(place) => {
                let known = map.order().and_then(|order| order.key(place)).cloned();
                map.insert(known.unwrap_or(key), value);
            }
            Err(place) => map.insert_at(place, key, value),
        }
        Ok(())
    }

    /// Adds a member, at the position that the comparator determines in a sorted set.
    ///
    /// # Errors
    /// Propagates errors of the comparator.
    pub(crate) fn add_member(&mut self, set: &mut Set, member: Value) -> Outcome<()> {
        match set.order() {
            Some(order) if !set.contains(&member) => {
                if let Err(place) = self.place(order, &member)? {
                    set.insert_at(place, member);
                }
            }
            _ => {
                set.insert(member);
            }
        }
        Ok(())
    }

    /// Finds the entry of a key: in a record under any spelling, in a sorted map by its comparator.
    ///
    /// # Errors
    /// Propagates errors of the comparator; halts if a resource limit is exceeded.
    pub(crate) fn entry_in<'m>(&mut self, map: &'m Map, key: &Value) -> Outcome<Option<(&'m Value, &'m Value)>> {
        let exact = map.get_exact(key);
        if exact.is_some() {
            return Ok(exact);
        }
        if map.is_record() {
            map.prepare_spellings(key, |steps| self.charge(steps))?;
            return Ok(map.get_other_spelling(key));
        }
        match map.order() {
            Some(order) => Ok(self.known_key(order, key)?.and_then(|known| map.get_exact(known))),
            None => Ok(None),
        }
    }

    /// Finds the member equal to a value, in a sorted set by its comparator.
    ///
    /// # Errors
    /// Propagates errors of the comparator.
    pub(crate) fn member_in<'s>(&mut self, set: &'s Set, value: &Value) -> Outcome<Option<&'s Value>> {
        match (set.get(value), set.order()) {
            (None, Some(order)) => self.known_key(order, value),
            (found, _) => Ok(found),
        }
    }

    /// Finds the stored key that the comparator treats as equal to `key`.
    fn known_key<'o>(&mut self, order: &'o SortOrder, key: &Value) -> Outcome<Option<&'o Value>> {
        if order.len() == 0 {
            return Ok(None);
        }
        Ok(self.place(order, key)?.ok().and_then(|place| order.key(place)))
    }
}
