//! List functions of Scheme, Common Lisp and Emacs Lisp: positions, sublists, deletion, concatenation.

use super::super::arguments::{integer, take, text};
use super::super::options::{FLAG, Given, KEY, TEST};
use super::super::text::{Builder, byte_of};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "position",
        &["[x coll & options]"],
        "The index of the first item that equals `x`, or, if `x` is a function, for which it is true; else nil. \
         Options: `:key f`, `:test f`.",
        &[("(position 3 '(1 2 3))", "2"), ("(position even? [1 3 4])", "2"), ("(position 9 [1])", "nil")],
        position,
    )
    .with_options(&POSITION),
    Builtin::new(
        "in-sequence?",
        &["[coll x]"],
        "True if an item equals `x`; also with `x` first.",
        &[("(in-sequence? '(1 2) 2)", "true")],
        |machine, arguments| {
            let (wanted, list) = item_and_list(arguments);
            let mut cursor = machine.seq(list)?;
            while let Some(item) = cursor.next(machine)? {
                if machine.equal(&item, &wanted)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    ),
    Builtin::new(
        "delete",
        &["[x coll & options]"],
        "The items not equal to `x`; Common Lisp's `remove`. Options: `:key f`, `:test f`.",
        &[("(delete 2 '(1 2 3 2))", "(1 3)")],
        delete,
    )
    .with_options(&DELETE),
    Builtin::new(
        "remove-duplicates",
        &["[coll & options]"],
        "The distinct items, like `distinct`; with `:key f`, items are compared by `(f item)`, with `:test f` by \
         `(f earlier later)`. The first of equal items is kept; with `:from-end false`, the last.",
        &[
            ("(remove-duplicates '(1 2 1) :test #'equal)", "(1 2)"),
            ("(remove-duplicates [1 4 2 5] :test (fn [a b] (= (mod a 3) (mod b 3))))", "(1 2)"),
            ("(remove-duplicates [{:id 1 :n 1} {:id 1 :n 2}] :key :id)", "({:id 1, :n 1})"),
        ],
        remove_duplicates,
    )
    .with_options(&REMOVE_DUPLICATES),
    Builtin::new(
        "sublist",
        &["[coll]", "[coll start]", "[coll start end]"],
        "The part of a string, vector or list from `start` to `end` (exclusive); negative indices count from the end.",
        &[("(subseq \"hello\" 1 3)", "\"el\""), ("(sublist [1 2 3] 1)", "[2 3]"), ("(sublist '(1 2 3) -2)", "(2 3)")],
        sublist,
    ),
    Builtin::new(
        "concatenate",
        &["[type & colls]"],
        "Concatenates the collections into a `'string`, `'list` or `'vector`.",
        &[
            ("(concatenate 'string \"a\" \"b\")", "\"ab\""),
            ("(concatenate 'list [1] '(2))", "(1 2)"),
            ("(concatenate '((1) (2)))", "(1 2)"),
        ],
        concatenate,
    ),
    Builtin::new(
        "concatenate-vectors",
        &["[& colls]"],
        "Concatenates the collections into a vector; Scheme's `vector-append`.",
        &[("(vector-append [1] [2 3])", "[1 2 3]")],
        |machine, arguments| joined(machine, arguments).map(Value::vector),
    ),
    Builtin::new(
        "coerce",
        &["[x type]"],
        "Converts items to a `'list`, `'vector` or `'string`, a number to a `'float` or `'integer`.",
        &[
            ("(coerce '(1 2) 'vector)", "[1 2]"),
            ("(coerce '(#\\a #\\b) 'string)", "\"ab\""),
            ("(coerce 1 'float)", "1.0"),
        ],
        coerce,
    ),
    Builtin::new(
        "list->string",
        &["[chars]"],
        "The string of these characters.",
        &[("(list->string '(#\\a #\\b))", "\"ab\"")],
        |machine, arguments| string_of(machine, take(arguments, 0), ""),
    ),
    Builtin::new(
        "string-map",
        &["[f s]"],
        "The string of the results of `f` for each character.",
        &[("(string-map char-upcase \"ab\")", "\"AB\"")],
        |machine, arguments| {
            let (function, list) = super::super::arguments::function_and_collection(arguments);
            let mut cursor = machine.seq(list)?;
            let mut builder = Builder::default();
            while let Some(item) = cursor.next(machine)? {
                let made = machine.call1(&function, item)?;
                builder.push_value(machine, &made)?;
            }
            Ok(builder.finish())
        },
    ),
    Builtin::new(
        "mapconcat",
        &["[f coll]", "[f coll separator]"],
        "Joins the results of `f` for the items with the separator, as a string.",
        &[("(mapconcat #'str '(1 2 3) \", \")", "\"1, 2, 3\"")],
        |machine, arguments| {
            let separator = arguments.get_mut(2).map(std::mem::take).unwrap_or_default();
            let separator = if separator.is_nil() { String::new() } else { text(machine, &separator)? };
            let (function, list) = super::super::arguments::function_and_collection(&mut arguments[..2]);
            let mut cursor = machine.seq(list)?;
            let mut builder = Builder::default();
            let mut first = true;
            while let Some(item) = cursor.next(machine)? {
                if !std::mem::take(&mut first) {
                    builder.push(machine, &separator)?;
                }
                let made = machine.call1(&function, item)?;
                builder.push_value(machine, &made)?;
            }
            Ok(builder.finish())
        },
    ),
    Builtin::new(
        "seq-reduce",
        &["[f coll init]"],
        "Like `reduce`, with the initial value last.",
        &[("(seq-reduce #'+ '(1 2 3) 10)", "16")],
        |machine, arguments| {
            let (function, list, mut held) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
            let mut cursor = machine.seq(list)?;
            while let Some(item) = cursor.next(machine)? {
                held = machine.call2(&function, held, item)?;
                if let Value::Reduced(last) = held {
                    return Ok(last.0.clone());
                }
            }
            Ok(held)
        },
    ),
    Builtin::new(
        "build-list",
        &["[n f]"],
        "A list of the results of `f` for 0 to `n` - 1; also with `f` first.",
        &[("(build-list 3 (lambda (i) (* i i)))", "(0 1 4)")],
        |machine, arguments| built(machine, arguments).map(Value::list),
    ),
    Builtin::new(
        "build-vector",
        &["[n f]"],
        "Like `build-list`, as a vector.",
        &[("(build-vector 3 inc)", "[1 2 3]")],
        |machine, arguments| built(machine, arguments).map(Value::vector),
    ),
    Builtin::new(
        "make-vector",
        &["[n]", "[n x]"],
        "A vector of `n` times `x`.",
        &[("(make-vector 3 0)", "[0 0 0]")],
        |machine, arguments| {
            let count = integer(&arguments[0])?.max(0) as u64;
            machine.charge(count)?;
            machine.reserve_values(count)?;
            let item = arguments.get(1).cloned().unwrap_or_default();
            Ok(Value::vector(vec![item; count as usize]))
        },
    ),
    Builtin::new(
        "pair?",
        &["[x]"],
        "True for a non-empty list or vector.",
        &[("(pair? '(1))", "true"), ("(pair? '())", "false"), ("(pair? 1)", "false")],
        |machine, arguments| {
            let value = take(arguments, 0);
            if !matches!(value, Value::List(_) | Value::Vector(_) | Value::Lazy(_)) {
                return Ok(Value::Bool(false));
            }
            let mut cursor = machine.seq(value)?;
            Ok(Value::Bool(cursor.next(machine)?.is_some()))
        },
    ),
    Builtin::new("fourth", &["[coll]"], "The fourth item.", &[("(fourth [1 2 3 4])", "4")], |machine, arguments| {
        item_at(machine, take(arguments, 0), 3)
    }),
    Builtin::new("fifth", &["[coll]"], "The fifth item.", &[("(fifth [1 2 3 4 5])", "5")], |machine, arguments| {
        item_at(machine, take(arguments, 0), 4)
    }),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("position-if", "position"),
    ("list-index", "position"),
    ("vector-index", "position"),
    ("find-index", "position"),
    ("index-where", "position"),
    ("findIndex", "position"),
    ("delq", "delete"),
    ("remq", "delete"),
    ("remv", "delete"),
    ("vector-copy", "sublist"),
    ("subvector", "sublist"),
    ("string-copy", "sublist"),
    ("slice", "sublist"),
    ("list-tabulate", "build-list"),
    ("vector-tabulate", "build-vector"),
    ("vector->string", "list->string"),
    ("chars->string", "list->string"),
    ("cadddr", "fourth"),
];

static POSITION: OptionSet = OptionSet { function: "position", accepted: &[KEY, TEST] };

static DELETE: OptionSet = OptionSet { function: "delete", accepted: &[KEY, TEST] };

static REMOVE_DUPLICATES: OptionSet =
    OptionSet { function: "remove-duplicates", accepted: &[KEY, TEST, OptionSpec::new("from-end", &FLAG)] };

/// Returns the item and the collection of `(delete x xs)`, given in either order.
fn item_and_list(arguments: &mut [Value]) -> (Value, Value) {
    let holds = |value: &Value| matches!(value, Value::List(_) | Value::Vector(_) | Value::Lazy(_) | Value::Set(_));
    let (first, second) = (take(arguments, 0), take(arguments, 1));
    if holds(&first) && !holds(&second) && !second.is_nil() { (second, first) } else { (first, second) }
}

/// Applies the `:key` function, if given, to an item.
fn keyed(machine: &mut Machine, given: &Given, item: &Value) -> Outcome<Value> {
    match given.get("key") {
        Some(key) => machine.call_on(key, item),
        None => Ok(item.clone()),
    }
}

/// True if an item matches: it equals `wanted`, or passes `:test`, or `wanted` is a predicate that accepts it.
fn fits(machine: &mut Machine, given: &Given, wanted: &Value, item: &Value) -> Outcome<bool> {
    if wanted.is_function() && given.get("test").is_none() {
        let item = keyed(machine, given, item)?;
        return Ok(machine.call1(wanted, item)?.is_truthy());
    }
    is_wanted(machine, given, wanted, item)
}

/// True if an item equals `wanted` or passes `:test`; a function is compared as a value rather than called.
pub(in crate::builtin) fn is_wanted(
    machine: &mut Machine,
    given: &Given,
    wanted: &Value,
    item: &Value,
) -> Outcome<bool> {
    let item = keyed(machine, given, item)?;
    match given.get("test") {
        Some(test) => Ok(machine.call2(test, wanted.clone(), item)?.is_truthy()),
        None => machine.equal(wanted, &item),
    }
}

fn position(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = POSITION.read(&mut arguments[2..])?;
    let (wanted, list) = item_and_list(arguments);
    let mut cursor = machine.seq(list)?;
    let mut index = 0;
    while let Some(item) = cursor.next(machine)? {
        if fits(machine, &given, &wanted, &item)? {
            return Ok(Value::Int(index));
        }
        index += 1;
    }
    Ok(Value::Nil)
}

/// Implements `(find x xs)` and `(find even? xs)`: returns the first match.
pub(in crate::builtin) fn found(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = POSITION.none();
    let (wanted, list) = item_and_list(arguments);
    let mut cursor = machine.seq(list)?;
    while let Some(item) = cursor.next(machine)? {
        if fits(machine, &given, &wanted, &item)? {
            return Ok(item);
        }
    }
    Ok(Value::Nil)
}

/// Implements `(delete x xs)`, and `(remove x xs)` if `x` is not a function.
pub(in crate::builtin) fn delete(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = DELETE.read(&mut arguments[2..])?;
    let (wanted, list) = item_and_list(arguments);
    let mut cursor = machine.seq(list)?;
    let mut kept = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        if !fits(machine, &given, &wanted, &item)? {
            kept.push(item);
            machine.grown(kept.len())?;
        }
    }
    Ok(Value::list(kept))
}

fn remove_duplicates(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = REMOVE_DUPLICATES.read(&mut arguments[1..])?;
    let mut items = machine.items(take(arguments, 0))?;
    let keeps_last = given.get("from-end").is_some_and(|value| matches!(value, Value::Bool(false)));
    if keeps_last {
        items.reverse();
    }
    let mut kept = match given.get("test") {
        Some(test) => distinct_by_test(machine, &given, test, keeps_last, items)?,
        None => distinct_by_value(machine, &given, items)?,
    };
    if keeps_last {
        kept.reverse();
    }
    Ok(Value::list(kept))
}

/// Returns the items that are not equal to an earlier one.
fn distinct_by_value(machine: &mut Machine, given: &Given, items: Vec<Value>) -> Outcome<Vec<Value>> {
    let mut seen = Map::default();
    let mut kept = Vec::new();
    for item in items {
        machine.charge(1)?;
        let key = keyed(machine, given, &item)?;
        let key = machine.key(key)?;
        if !seen.contains_key(&key) {
            seen.insert(key, Value::Nil);
            kept.push(item);
            machine.grown(kept.len())?;
        }
    }
    Ok(kept)
}

/// Returns the items for which `test` is false with every kept one. The test is called with the keys of the two in their
/// order in the collection, which `reversed` says is not that of `items`.
fn distinct_by_test(
    machine: &mut Machine,
    given: &Given,
    test: &Value,
    reversed: bool,
    items: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let mut keys: Vec<Value> = Vec::new();
    let mut kept = Vec::new();
    'items: for item in items {
        machine.charge(1)?;
        let key = keyed(machine, given, &item)?;
        for known in &keys {
            let (earlier, later) = if reversed { (&key, known) } else { (known, &key) };
            if machine.call2(test, earlier.clone(), later.clone())?.is_truthy() {
                continue 'items;
            }
        }
        keys.push(key);
        kept.push(item);
        machine.grown(kept.len())?;
    }
    Ok(kept)
}

/// Returns the part of a string, vector or list between two indices.
pub fn sublist(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let collection = take(arguments, 0);
    let total = match &collection {
        Value::Str(held) => {
            machine.charge(held.as_str().len() as u64 / 16)?;
            held.as_str().chars().count() as i64
        }
        other => machine.items(other.clone())?.len() as i64,
    };
    let place = |at: usize, default: i64| match arguments.get(at) {
        None | Some(Value::Nil) => Ok(default),
        Some(value) => integer(value).map(|place| if place < 0 { place + total } else { place }),
    };
    let (start, end) = (place(1, 0)?, place(2, total)?);
    if start < 0 || end > total || start > end {
        return Err(Error::new(
            "IndexOutOfBounds",
            format!("the part from {start} to {end} is outside of {total} items"),
        )
        .suggest("`(take n xs)` and `(drop n xs)` take what there is")
        .into());
    }
    if let Value::Str(held) = &collection {
        let held = held.as_str();
        let (from, to) = (byte_of(held, start as u64).unwrap_or(0), byte_of(held, end as u64).unwrap_or(held.len()));
        machine.reserve(2 * (to - from) as u64)?;
        return Ok(Value::string(&held[from..to]));
    }
    let is_vector = matches!(collection, Value::Vector(_));
    let part = machine.items(collection)?[start as usize..end as usize].to_vec();
    Ok(if is_vector { Value::vector(part) } else { Value::list(part) })
}

/// Concatenates the items of all collections.
fn joined(machine: &mut Machine, collections: &mut [Value]) -> Outcome<Vec<Value>> {
    let mut items = Vec::new();
    for collection in collections {
        let mut cursor = machine.seq(std::mem::take(collection))?;
        while let Some(item) = cursor.next(machine)? {
            items.push(item);
            machine.grown(items.len())?;
        }
    }
    Ok(items)
}

fn concatenate(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (kind, rest) = match arguments[0].as_name() {
        Some(name) => (name.as_str().to_lowercase(), &mut arguments[1..]),
        // SRFI 1: a single list of lists.
        None if arguments.len() == 1 => {
            let mut lists = machine.items(take(arguments, 0))?;
            return joined(machine, &mut lists).map(Value::list);
        }
        None => return Err(Error::expected("a type such as `'list`, `'vector` or `'string`", &arguments[0]).into()),
    };
    let items = joined(machine, rest)?;
    of_kind(machine, &kind, items)
}

fn coerce(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Some(name) = arguments[1].as_name() else {
        return Err(Error::expected("a type such as `'list`, `'vector` or `'string`", &arguments[1]).into());
    };
    let kind = name.as_str().rsplit('.').next().unwrap_or_default().to_lowercase();
    let value = take(arguments, 0);
    match (kind.as_str(), &value) {
        ("float" | "double" | "double-float" | "single-float" | "number", Value::Int(number)) => {
            Ok(Value::Float(*number as f64))
        }
        ("float" | "double" | "double-float" | "single-float" | "number", Value::Float(_)) => Ok(value),
        ("integer" | "int" | "fixnum", _) => integer(&value).map(Value::Int).map_err(Into::into),
        _ => {
            let items = machine.items(value)?;
            of_kind(machine, &kind, items)
        }
    }
}

/// Builds a collection of the named kind.
fn of_kind(machine: &mut Machine, kind: &str, items: Vec<Value>) -> Outcome<Value> {
    match kind {
        "list" | "cons" => Ok(Value::list(items)),
        "vector" | "simple-vector" | "array" => Ok(Value::vector(items)),
        "string" | "simple-string" => string_of(machine, Value::list(items), ""),
        other => Err(Error::new("UnknownType", format!("there is no type `{other}` to make"))
            .suggest("`'list`, `'vector` and `'string` can be made; `set` and `(into {} pairs)` make sets and maps")
            .into()),
    }
}

fn string_of(machine: &mut Machine, items: Value, separator: &str) -> Outcome<Value> {
    let mut cursor = machine.seq(items)?;
    let mut builder = Builder::default();
    while let Some(item) = cursor.next(machine)? {
        builder.push_value(machine, &item)?;
        builder.push(machine, separator)?;
    }
    Ok(builder.finish())
}

fn built(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Vec<Value>> {
    let (first, second) = (take(arguments, 0), take(arguments, 1));
    let (function, count) = if first.is_function() { (first, second) } else { (second, first) };
    let mut items = Vec::new();
    for index in 0..integer(&count)? {
        items.push(machine.call1(&function, Value::Int(index))?);
        machine.grown(items.len())?;
    }
    Ok(items)
}

fn item_at(machine: &mut Machine, collection: Value, index: usize) -> Outcome<Value> {
    let mut cursor = machine.seq(collection)?;
    for _ in 0..index {
        cursor.next(machine)?;
    }
    Ok(cursor.next(machine)?.unwrap_or_default())
}
