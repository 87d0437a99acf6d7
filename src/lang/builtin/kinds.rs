//! Predicates for kinds of collections, functions and cells.

use super::ordered::is_sorted;
use super::types;
use crate::error::Outcome;
use crate::expand::SPECIAL_SYMBOLS;
use crate::heap::CellKind;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::list::List;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new("map?", &["[x]"], "True for maps.", &[("(map? {})", "true"), ("(map? [])", "false")], is_map),
    Builtin::new(
        "map-entry?",
        &["[x]"],
        "True for vectors of two items, such as the entries of maps.",
        &[("(map-entry? (first {:a 1}))", "true")],
        is_map_entry,
    ),
    Builtin::new(
        "vector?",
        &["[x]"],
        "True for vectors.",
        &[("(vector? [])", "true"), ("(vector? '())", "false")],
        is_vector,
    ),
    Builtin::new(
        "list?",
        &["[x]"],
        "True for lists and realized sequences; false for ranges and lazy sequences.",
        &[("(list? '(1))", "true"), ("(list? [1])", "false")],
        is_list,
    ),
    Builtin::new(
        "seq?",
        &["[x]"],
        "True for lists and sequences.",
        &[("(seq? '(1))", "true"), ("(seq? [1])", "false")],
        is_seq,
    ),
    Builtin::new("set?", &["[x]"], "True for sets.", &[("(set? #{})", "true")], is_set),
    Builtin::new(
        "coll?",
        &["[x]"],
        "True for collections: lists, sequences, vectors, maps, sets.",
        &[("(coll? {})", "true"), ("(coll? \"a\")", "false")],
        is_collection,
    ),
    Builtin::new(
        "sequential?",
        &["[x]"],
        "True for lists, sequences and vectors.",
        &[("(sequential? [])", "true"), ("(sequential? {})", "false")],
        is_sequential,
    ),
    Builtin::new(
        "associative?",
        &["[x]"],
        "True for maps and vectors.",
        &[("(associative? {})", "true"), ("(associative? #{})", "false")],
        is_associative,
    ),
    Builtin::new(
        "indexed?",
        &["[x]"],
        "True for collections with constant-time `nth`: vectors.",
        &[("(indexed? [1])", "true"), ("(indexed? '(1))", "false")],
        is_vector,
    ),
    Builtin::new(
        "reversible?",
        &["[x]"],
        "True for values that `rseq` accepts: vectors, sorted collections.",
        &[("(reversible? [1])", "true"), ("(reversible? '(1))", "false")],
        is_reversible,
    ),
    Builtin::new(
        "counted?",
        &["[x]"],
        "True for collections with constant-time `count`.",
        &[("(counted? [1])", "true"), ("(counted? (lazy-seq [1]))", "false")],
        is_counted,
    ),
    Builtin::new(
        "seqable?",
        &["[x]"],
        "True for values that `seq` accepts: collections, strings, nil.",
        &[("(seqable? \"a\")", "true"), ("(seqable? 1)", "false")],
        is_seqable,
    ),
    Builtin::new(
        "special-symbol?",
        &["[x]"],
        "True for symbols that name special forms of Clojure.",
        &[("(special-symbol? 'if)", "true"), ("(special-symbol? 'inc)", "false")],
        is_special_symbol,
    ),
    Builtin::new("bytes?", &["[x]"], "Always false: arrays are not supported.", &[("(bytes? \"a\")", "false")], never),
    Builtin::new("uri?", &["[x]"], "Always false: URIs are strings.", &[("(uri? \"http://a.b\")", "false")], never),
    Builtin::new("fn?", &["[x]"], "True for functions.", &[("(fn? inc)", "true"), ("(fn? :a)", "false")], is_function),
    Builtin::new(
        "ifn?",
        &["[x]"],
        "True for callable values: functions, keywords, symbols, maps, sets, vectors.",
        &[("(ifn? :a)", "true"), ("(ifn? 1)", "false")],
        is_invocable,
    ),
    Builtin::new("atom?", &["[x]"], "True for atoms.", &[("(atom? (atom 1))", "true")], is_atom),
    Builtin::new("volatile?", &["[x]"], "True for volatiles.", &[("(volatile? (volatile! 1))", "true")], is_volatile),
    Builtin::new("delay?", &["[x]"], "True for delays.", &[("(delay? (delay 1))", "true")], is_delay),
    Builtin::new(
        "exception?",
        &["[x]"],
        "True for exceptions.",
        &[("(exception? (ex-info \"no\" {}))", "true")],
        is_exception,
    ),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("function?", "fn?"),
    ("procedure?", "fn?"),
    ("functionp", "fn?"),
    ("listp", "seq?"),
    ("vectorp", "vector?"),
    ("hash-table-p", "map?"),
    ("hash-table?", "map?"),
    ("error?", "exception?"),
];

fn is_map(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Map(_))))
}

fn is_map_entry(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Vector(items) if items.len() == 2)))
}

fn is_vector(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Vector(_))))
}

fn is_reversible(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Vector(_)) || is_sorted(&arguments[0])))
}

fn is_list(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::List(list) if !matches!(**list, List::Range { .. }))))
}

fn is_seq(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::List(_) | Value::Lazy(_))))
}

fn is_set(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Set(_))))
}

fn is_collection(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(types::is_collection(&arguments[0])))
}

fn is_sequential(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Vector(_) | Value::List(_) | Value::Lazy(_))))
}

fn is_associative(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(types::is_associative(&arguments[0])))
}

fn is_counted(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(is_counted_collection(&arguments[0])))
}

fn is_seqable(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(
        &arguments[0],
        Value::Nil | Value::Str(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::List(_) | Value::Lazy(_)
    )))
}

fn is_function(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let is_var = matches!(&arguments[0], Value::Var(_));
    Ok(Value::Bool(arguments[0].is_function() && !is_var))
}

fn is_invocable(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(is_callable(&arguments[0])))
}

fn is_atom(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Cell(cell) if cell.cell_kind() == CellKind::Atom)))
}

fn is_volatile(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Cell(cell) if cell.cell_kind() == CellKind::Volatile)))
}

fn is_delay(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Cell(cell) if cell.cell_kind() == CellKind::Delay)))
}

fn is_exception(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Exception(_))))
}

fn never(_: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(false))
}

fn is_special_symbol(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_symbol().is_some_and(|name| SPECIAL_SYMBOLS.contains(&name.as_str()))))
}

/// True for collections that know their count.
pub(super) fn is_counted_collection(value: &Value) -> bool {
    match value {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) => true,
        Value::List(list) => !list.is_endless() && !matches!(**list, List::Cons(_)),
        _ => false,
    }
}

/// True for values that can be called.
pub(super) fn is_callable(value: &Value) -> bool {
    value.is_function()
        || value.as_name().is_some()
        || matches!(value, Value::Map(_) | Value::Set(_) | Value::Vector(_))
}
