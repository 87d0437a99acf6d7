//! Sorted maps and sets: making them, finding places in them, and parts of them between two keys.

use super::Builtin;
use super::arguments::take;
use super::sequences::entry;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;
use crate::lang::value::compare::{compare, compare_numbers};
use crate::lang::value::large::Order;
use crate::lang::value::map::Map;
use crate::lang::value::set::Set;
use std::cmp::Ordering;
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "sorted-map",
        &["[& keyvals]"],
        "A map whose keys stay in the order of `compare`.",
        &[("(sorted-map :b 2 :a 1)", "{:a 1, :b 2}"), ("(assoc (sorted-map 3 :c) 1 :a)", "{1 :a, 3 :c}")],
        |machine, arguments| map_from(machine, Value::Nil, arguments),
    ),
    Builtin::new(
        "sorted-map-by",
        &["[comparator & keyvals]"],
        "A map whose keys stay in the order of a comparator: a function of two keys that gives true or a negative number where the first comes first.",
        &[("(sorted-map-by > 1 :a 3 :c 2 :b)", "{3 :c, 2 :b, 1 :a}")],
        |machine, arguments| {
            let comparator = take(arguments, 0);
            map_from(machine, comparator, &mut arguments[1..])
        },
    ),
    Builtin::new(
        "sorted-set",
        &["[& items]"],
        "A set whose members stay in the order of `compare`.",
        &[("(sorted-set 3 1 2)", "#{1 2 3}"), ("(first (conj (sorted-set 5) 4))", "4")],
        |machine, arguments| set_from(machine, Value::Nil, arguments),
    ),
    Builtin::new(
        "sorted-set-by",
        &["[comparator & items]"],
        "A set whose members stay in the order of a comparator.",
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
        "The entries of a sorted collection whose keys stand to a key, or to two, as the tests `<` `<=` `>` `>=` want. With places it is Common Lisp's, `sublist`.",
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
        "As `subseq`, from the end.",
        &[("(rsubseq (sorted-set 1 2 3 4) <= 3)", "(3 2 1)")],
        |machine, arguments| part(machine, arguments, true),
    ),
];

/// What is to order keys must be a function, even where there is nothing to order yet.
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

/// The order of a sorted collection.
fn order_of(value: &Value) -> Option<&Order> {
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
    let comparator = order.comparator.clone();
    // `>` says where the walk up begins, `<` where it ends: where it does not even begin there is nil, where
    // it ends at once the empty list.
    let starts = |test: &Value| {
        let wanted = if backwards { ["<", "<="] } else { [">", ">="] };
        matches!(test, Value::Builtin(test) if wanted.contains(&test.name))
    };
    let (mut found, mut begun) = (Vec::new(), !arguments[1..].chunks(2).any(|bound| starts(&bound[0])));
    let mut cursor = machine.seq(collection.clone())?;
    while let Some(item) = cursor.next(machine)? {
        let key = if matches!(collection, Value::Map(_)) { entry(machine, &item)?.0 } else { item.clone() };
        let (mut fits, mut begins) = (true, true);
        for bound in arguments[1..].chunks(2) {
            let order = ordering(machine, &comparator, &key, &bound[1])? as i64;
            let passed = machine.call2(&bound[0], Value::Int(order), Value::Int(0))?.is_truthy();
            fits &= passed;
            begins &= passed || !starts(&bound[0]);
        }
        begun |= begins;
        if fits {
            found.push(item);
            machine.grown(found.len())?;
        }
    }
    if backwards {
        found.reverse();
    }
    Ok(if begun { Value::list(found) } else { Value::Nil })
}

/// How a comparator orders two keys; nil stands for `compare`.
fn ordering(machine: &mut Machine, comparator: &Value, left: &Value, right: &Value) -> Outcome<Ordering> {
    if comparator.is_nil() {
        return compare(machine, left, right);
    }
    match machine.call2(comparator, left.clone(), right.clone())? {
        Value::Bool(true) => Ok(Ordering::Less),
        Value::Bool(false) | Value::Nil => {
            let greater = machine.call2(comparator, right.clone(), left.clone())?.is_truthy();
            Ok(if greater { Ordering::Greater } else { Ordering::Equal })
        }
        number => compare_numbers(&number, &Value::Int(0)).ok_or_else(|| {
            Error::expected("true, false or a number from the comparator", &number)
                .suggest("a comparator takes two keys, as `<` does")
                .into()
        }),
    }
}

impl Machine {
    /// Where a key stands in an order, or where it belongs.
    fn place(&mut self, order: &Order, key: &Value) -> Outcome<Result<usize, usize>> {
        let (mut low, mut high) = (0, order.keys.len());
        if high == 0 {
            // What cannot be compared is refused at once, not when a second key comes.
            ordering(self, &order.comparator, key, key)?;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(known) = order.keys.get(middle) else { break };
            match ordering(self, &order.comparator, known, key)? {
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Makes a key stand for a value, in a sorted map where its comparator says.
    ///
    /// # Errors
    /// What the comparator raises.
    pub fn put(&mut self, map: &mut Map, key: Value, value: Value) -> Outcome<()> {
        let Some(order) = map.order().filter(|_| !map.contains_key(&key)).cloned() else {
            map.insert(key, value);
            return Ok(());
        };
        match self.place(&order, &key)? {
            Ok(place) => map.insert(order.keys.get(place).cloned().unwrap_or(key), value),
            Err(place) => map.insert_at(place, key, value),
        }
        Ok(())
    }

    /// Adds a member, to a sorted set where its comparator says.
    ///
    /// # Errors
    /// What the comparator raises.
    pub fn add_member(&mut self, set: &mut Set, member: Value) -> Outcome<()> {
        let Some(order) = set.order().filter(|_| !set.contains(&member)).cloned() else {
            set.insert(member);
            return Ok(());
        };
        if let Err(place) = self.place(&order, &member)? {
            set.insert_at(place, member);
        }
        Ok(())
    }

    /// The key of a sorted collection that its comparator finds equal; `None` where the collection is
    /// not sorted or has none.
    ///
    /// # Errors
    /// What the comparator raises.
    pub fn known_key(&mut self, collection: &Value, key: &Value) -> Outcome<Option<Value>> {
        let Some(order) = order_of(collection).filter(|order| !order.keys.is_empty()).cloned() else {
            return Ok(None);
        };
        Ok(match self.place(&order, key)? {
            Ok(place) => order.keys.get(place).cloned(),
            Err(_) => None,
        })
    }
}
