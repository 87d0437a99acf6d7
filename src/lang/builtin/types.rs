//! The type of a value, named as the corresponding Clojure class.
//!
//! There are no classes here: `String` and similar names are ordinary names that evaluate to symbols, which `type`
//! returns and `instance?` accepts, with or without their packages.

use super::kinds::{is_callable, is_counted_collection};
use super::ordered::is_sorted;
use crate::error::class::{catches, full_name};
use crate::error::suggest::{closest, did_you_mean};
use crate::error::{Error, Outcome};
use crate::heap::CellKind;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::reader::is_uuid;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::set::Set;
use crate::value::time::{Time, is_fixed};
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "type",
        &["[x]"],
        "The name of the value's type, as a symbol; nil for nil.",
        &[("(type 1)", "java.lang.Long"), ("(= (type \"a\") String)", "true"), ("(type nil)", "nil")],
        type_of,
    ),
    Builtin::new(
        "instance?",
        &["[type x]"],
        "True if the value is of that type.",
        &[("(instance? String \"a\")", "true"), ("(instance? Number :a)", "false")],
        instance,
    ),
    Builtin::new(
        "class?",
        &["[x]"],
        "True for the name of a type, as `type` returns it.",
        &[("(class? String)", "true"), ("(class? \"a\")", "false")],
        |_, arguments| Ok(Value::Bool(is_class(&arguments[0]))),
    ),
];

/// Aliases of builtins of this file.
pub const ALIASES: &[(&str, &str)] = &[("class", "type"), ("type-of", "type")];

/// True if the value is a symbol that is the full name of a type.
pub fn is_class(value: &Value) -> bool {
    value.as_symbol().is_some_and(|name| is_type_name(name.as_str()))
}

/// A type: its full name, and the predicate for its instances.
struct Type(&'static str, fn(&Value) -> bool);

/// The interface of the records of `defrecord`.
const RECORD: &str = "clojure.lang.IRecord";

/// The named types.
const TYPES: &[Type] = &[
    Type("java.lang.String", |value| matches!(value, Value::Str(_))),
    Type("java.lang.CharSequence", |value| matches!(value, Value::Str(_))),
    Type("java.lang.Long", |value| matches!(value, Value::Int(_))),
    Type("java.lang.Integer", |_| false),
    Type("java.lang.Double", |value| matches!(value, Value::Float(_))),
    Type("java.lang.Float", |_| false),
    Type("java.lang.Number", super::arithmetic::is_number),
    Type("java.lang.Boolean", |value| matches!(value, Value::Bool(_))),
    Type("java.lang.Character", |value| matches!(value, Value::Char(_))),
    Type("java.lang.Object", |value| !value.is_nil()),
    Type("java.lang.Throwable", |value| is_error(value, "Throwable")),
    Type("java.lang.Exception", |value| is_error(value, "Exception")),
    Type("java.lang.Error", |value| is_error(value, "Error")),
    Type("java.lang.AssertionError", |value| is_error(value, "AssertionError")),
    Type("java.lang.RuntimeException", |value| is_error(value, "RuntimeException")),
    Type("java.lang.ArithmeticException", |value| is_error(value, "ArithmeticException")),
    Type("java.lang.ClassCastException", |value| is_error(value, "ClassCastException")),
    Type("java.lang.IllegalArgumentException", |value| is_error(value, "IllegalArgumentException")),
    Type("java.lang.NumberFormatException", |value| is_error(value, "NumberFormatException")),
    Type("clojure.lang.ArityException", |value| is_error(value, "ArityException")),
    Type("java.util.IllegalFormatException", |value| is_error(value, "IllegalFormatException")),
    Type("java.util.regex.PatternSyntaxException", |value| is_error(value, "PatternSyntaxException")),
    Type("java.lang.IllegalStateException", |value| is_error(value, "IllegalStateException")),
    Type("java.lang.IndexOutOfBoundsException", |value| is_error(value, "IndexOutOfBoundsException")),
    Type("java.lang.StringIndexOutOfBoundsException", |value| is_error(value, "StringIndexOutOfBoundsException")),
    Type("java.lang.ArrayIndexOutOfBoundsException", |value| is_error(value, "ArrayIndexOutOfBoundsException")),
    Type("java.lang.NullPointerException", |value| is_error(value, "NullPointerException")),
    Type("java.lang.UnsupportedOperationException", |value| is_error(value, "UnsupportedOperationException")),
    Type("java.util.NoSuchElementException", |value| is_error(value, "NoSuchElementException")),
    Type("java.time.DateTimeException", |value| is_error(value, "DateTimeException")),
    Type("java.time.format.DateTimeParseException", |value| is_error(value, "DateTimeParseException")),
    Type("clojure.lang.ExceptionInfo", |value| is_error(value, "ExceptionInfo")),
    Type("java.math.BigInteger", |_| false),
    Type("java.math.BigDecimal", |value| matches!(value, Value::Decimal(_))),
    Type("java.time.Instant", |value| is_time(value, |time| matches!(time, Time::Instant(_)))),
    Type("java.util.Date", |value| is_time(value, |time| matches!(time, Time::Instant(_)))),
    Type("java.time.LocalDate", |value| is_time(value, |time| matches!(time, Time::Date(_)))),
    Type("java.time.LocalTime", |value| is_time(value, |time| matches!(time, Time::Clock(_)))),
    Type("java.time.LocalDateTime", |value| is_time(value, |time| matches!(time, Time::DateTime(_)))),
    Type("java.time.OffsetDateTime", |value| {
        is_time(value, |time| matches!(time, Time::Zoned(zoned) if is_fixed(zoned)))
    }),
    Type("java.time.ZonedDateTime", |value| is_time(value, |time| matches!(time, Time::Zoned(_)))),
    Type("java.time.Duration", |value| is_time(value, |time| matches!(time, Time::Duration(_)))),
    Type("java.time.Period", |value| is_time(value, |time| matches!(time, Time::Period(_)))),
    Type("java.time.YearMonth", |value| is_time(value, |time| matches!(time, Time::YearMonth(_)))),
    Type("java.time.ZoneId", |value| is_time(value, |time| matches!(time, Time::Zone(_)))),
    Type("java.time.ZoneOffset", |value| {
        is_time(value, |time| matches!(time, Time::Zone(zone) if zone.to_fixed_offset().is_ok()))
    }),
    Type("java.util.regex.Pattern", |value| matches!(value, Value::Regex(_))),
    Type("java.util.UUID", |value| value.as_str().is_some_and(is_uuid)),
    Type("java.lang.Class", |value| matches!(value, Value::Symbol(name) if is_type_name(name.as_str()))),
    Type("java.lang.Comparable", |value| {
        super::arithmetic::is_number(value)
            || matches!(
                value,
                Value::Bool(_)
                    | Value::Char(_)
                    | Value::Str(_)
                    | Value::Keyword(_)
                    | Value::Symbol(_)
                    | Value::Annotated(_)
                    | Value::Vector(_)
                    | Value::Time(_)
            )
    }),
    Type("java.lang.Iterable", is_collection),
    Type("java.lang.Runnable", is_callable),
    Type("java.util.concurrent.Callable", is_callable),
    Type("java.util.RandomAccess", |value| matches!(value, Value::Vector(_))),
    Type("java.util.Map$Entry", is_entry),
    Type(RECORD, |value| matches!(value, Value::Map(map) if map.fields().is_some())),
    Type("java.util.Map", |value| matches!(value, Value::Map(_))),
    Type("java.util.List", |value| matches!(value, Value::List(_) | Value::Lazy(_) | Value::Vector(_))),
    Type("java.util.Set", |value| matches!(value, Value::Set(_))),
    Type("java.util.Collection", |value| {
        matches!(value, Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Set(_))
    }),
    Type("clojure.lang.Keyword", |value| matches!(value, Value::Keyword(_))),
    Type("clojure.lang.Symbol", |value| value.as_symbol().is_some()),
    Type("clojure.lang.BigInt", |value| matches!(value, Value::BigInt(_))),
    Type("clojure.lang.Ratio", |_| false),
    Type("clojure.lang.PersistentVector", |value| matches!(value, Value::Vector(_))),
    Type("clojure.lang.PersistentQueue", |value| matches!(value, Value::Vector(items) if items.is_queue())),
    Type("clojure.lang.IPersistentVector", |value| matches!(value, Value::Vector(_))),
    Type("clojure.lang.PersistentArrayMap", |value| matches!(value, Value::Map(_)) && !is_sorted(value)),
    Type("clojure.lang.PersistentHashMap", |value| matches!(value, Value::Map(_)) && !is_sorted(value)),
    Type("clojure.lang.PersistentTreeMap", |value| matches!(value, Value::Map(_)) && is_sorted(value)),
    Type("clojure.lang.IPersistentMap", |value| matches!(value, Value::Map(_))),
    Type("clojure.lang.APersistentMap", |value| matches!(value, Value::Map(_))),
    Type("clojure.lang.PersistentHashSet", |value| matches!(value, Value::Set(_)) && !is_sorted(value)),
    Type("clojure.lang.PersistentTreeSet", |value| matches!(value, Value::Set(_)) && is_sorted(value)),
    Type("clojure.lang.IPersistentSet", |value| matches!(value, Value::Set(_))),
    Type("clojure.lang.PersistentList", |value| matches!(value, Value::List(_))),
    Type("clojure.lang.IPersistentList", |value| matches!(value, Value::List(_))),
    Type("clojure.lang.LazySeq", |value| matches!(value, Value::Lazy(_))),
    Type("clojure.lang.ISeq", |value| matches!(value, Value::List(_) | Value::Lazy(_))),
    Type("clojure.lang.Sequential", |value| matches!(value, Value::List(_) | Value::Lazy(_) | Value::Vector(_))),
    Type("clojure.lang.IPersistentCollection", is_collection),
    Type("clojure.lang.Seqable", is_collection),
    Type("clojure.lang.Associative", is_associative),
    Type("clojure.lang.ILookup", is_associative),
    Type("clojure.lang.APersistentVector", |value| matches!(value, Value::Vector(_))),
    Type("clojure.lang.IMapEntry", is_entry),
    Type("clojure.lang.MapEntry", is_entry),
    Type("clojure.lang.Cons", |value| matches!(value, Value::List(_))),
    Type("clojure.lang.Counted", is_counted_collection),
    Type("clojure.lang.Indexed", |value| matches!(value, Value::Vector(_))),
    Type("clojure.lang.Reversible", |value| matches!(value, Value::Vector(_)) || is_sorted(value)),
    Type("clojure.lang.Sorted", is_sorted),
    Type("clojure.lang.PersistentTreeMap", |value| matches!(value, Value::Map(_)) && is_sorted(value)),
    Type("clojure.lang.PersistentTreeSet", |value| matches!(value, Value::Set(_)) && is_sorted(value)),
    Type("clojure.lang.IEditableCollection", |value| {
        matches!(value, Value::Vector(_) | Value::Map(_) | Value::Set(_)) && !is_sorted(value)
    }),
    Type("clojure.lang.Named", |value| value.as_name().is_some()),
    Type("clojure.lang.IMeta", is_annotated),
    Type("clojure.lang.IObj", is_annotated),
    Type("clojure.lang.IPending", |value| matches!(value, Value::Lazy(_)) || is_cell(value, CellKind::Delay)),
    Type("clojure.lang.Fn", |value| value.is_function() && !matches!(value, Value::Var(_))),
    Type("clojure.lang.Var", |value| matches!(value, Value::Var(_)) || is_cell(value, CellKind::Var)),
    Type("clojure.lang.IFn", is_callable),
    Type("clojure.lang.Atom", |value| is_cell(value, CellKind::Atom)),
    Type("clojure.lang.Volatile", |value| is_cell(value, CellKind::Volatile)),
    Type("clojure.lang.Delay", |value| is_cell(value, CellKind::Delay)),
    Type("clojure.lang.ITransientCollection", |value| is_cell(value, CellKind::Transient)),
    Type("java.util.regex.Matcher", |value| is_cell(value, CellKind::Matcher)),
    Type("java.lang.StringBuilder", |value| is_cell(value, CellKind::Text)),
    Type("java.io.StringWriter", |value| is_cell(value, CellKind::Text)),
    Type("clojure.lang.IDeref", |value| {
        matches!(value, Value::Cell(_) | Value::Reduced(_) | Value::Var(_))
            && !is_cell(value, CellKind::Transient)
            && !is_cell(value, CellKind::Matcher)
            && !is_cell(value, CellKind::Text)
    }),
    Type("clojure.lang.Reduced", |value| matches!(value, Value::Reduced(_))),
];

/// True for collections.
pub(super) fn is_collection(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_))
}

/// True for maps and vectors.
pub(super) fn is_associative(value: &Value) -> bool {
    matches!(value, Value::Vector(_) | Value::Map(_))
}

/// True for values that can carry metadata.
fn is_annotated(value: &Value) -> bool {
    is_collection(value) || value.is_function() || value.as_symbol().is_some() || is_cell(value, CellKind::Atom)
}

/// True for a vector of two items, the form of a map entry.
fn is_entry(value: &Value) -> bool {
    matches!(value, Value::Vector(items) if items.len() == 2)
}

/// True if the name is the full name of a type.
fn is_type_name(name: &str) -> bool {
    TYPES.iter().any(|Type(full, _)| *full == name)
}

/// True for an exception that `catch` with that class catches.
fn is_error(value: &Value, class: &str) -> bool {
    matches!(value, Value::Exception(error) if catches(class, error))
}

fn is_cell(value: &Value, kind: CellKind) -> bool {
    matches!(value, Value::Cell(cell) if cell.cell_kind() == kind)
}

fn is_time(value: &Value, is_of: fn(&Time) -> bool) -> bool {
    matches!(value, Value::Time(time) if is_of(time))
}

/// Finds a type by name, with or without its package.
fn find(name: &str) -> Option<&'static Type> {
    let is_short = !name.contains('.');
    let names = |package: &str| package.is_empty() || is_short && package.ends_with('.');
    TYPES.iter().find(|Type(full, _)| full.strip_suffix(name).is_some_and(names))
}

/// Returns the value of a type name, a symbol; `None` for all other names.
pub fn constant(name: &str) -> Option<Value> {
    find(name).map(|Type(full, _)| Value::symbol(full))
}

fn type_of(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(type_name(&arguments[0]))
}

/// Returns the type of a value as a symbol; its metadata `:type` takes precedence, as in Clojure.
pub fn type_name(value: &Value) -> Value {
    let said = metadata(value).and_then(|own| own.get(&Value::keyword("type")).cloned());
    said.unwrap_or_else(|| class_name(value))
}

/// Returns the type of a value as a symbol, regardless of its metadata.
pub fn class_name(value: &Value) -> Value {
    let name = match value {
        Value::Nil => return Value::Nil,
        Value::Bool(_) => "java.lang.Boolean",
        Value::Int(_) => "java.lang.Long",
        Value::Float(_) => "java.lang.Double",
        Value::Char(_) => "java.lang.Character",
        Value::Str(_) => "java.lang.String",
        Value::Keyword(_) => "clojure.lang.Keyword",
        Value::Symbol(_) | Value::Annotated(_) => "clojure.lang.Symbol",
        Value::BigInt(_) => "clojure.lang.BigInt",
        Value::Decimal(_) => "java.math.BigDecimal",
        Value::Time(time) => time_type(time),
        Value::List(_) => "clojure.lang.PersistentList",
        Value::Lazy(_) => "clojure.lang.LazySeq",
        Value::Vector(items) if items.is_queue() => "clojure.lang.PersistentQueue",
        Value::Vector(_) => "clojure.lang.PersistentVector",
        Value::Map(map) => match map.type_name() {
            Some(name) => return name.clone(),
            None if map.order().is_some() => "clojure.lang.PersistentTreeMap",
            None => "clojure.lang.PersistentArrayMap",
        },
        Value::Set(set) if set.order().is_some() => "clojure.lang.PersistentTreeSet",
        Value::Set(_) => "clojure.lang.PersistentHashSet",
        Value::Regex(_) => "java.util.regex.Pattern",
        Value::Builtin(_) | Value::Native(_) | Value::Closure(_) | Value::Bound(_) | Value::Tool(_) => {
            "clojure.lang.Fn"
        }
        Value::Var(_) => "clojure.lang.Var",
        Value::Cell(cell) => match cell.cell_kind() {
            CellKind::Atom => "clojure.lang.Atom",
            CellKind::Volatile => "clojure.lang.Volatile",
            CellKind::Transient => "clojure.lang.ITransientCollection",
            CellKind::Delay => "clojure.lang.Delay",
            CellKind::Var => "clojure.lang.Var",
            CellKind::Matcher => "java.util.regex.Matcher",
            CellKind::Text => "java.lang.StringBuilder",
            CellKind::Lazy => "clojure.lang.LazySeq",
            CellKind::Unknown => "java.lang.Object",
        },
        Value::Exception(error) => return Value::symbol(&full_name(error)),
        Value::Reduced(_) => "clojure.lang.Reduced",
    };
    Value::symbol(name)
}

/// True if values of the type `child` are also of the type `parent`.
pub fn is_kind_of(child: &str, parent: &str) -> bool {
    if parent == "java.lang.Object" {
        return true;
    }
    match (sample(child), find(parent)) {
        (Some(sample), Some(Type(_, is_of))) => is_of(&sample),
        // A record is a map.
        (None, Some(_)) if parent == RECORD => child.starts_with("user."),
        (None, Some(Type(_, is_of))) => child.starts_with("user.") && is_of(&Value::Map(Arc::default())),
        _ => false,
    }
}

/// Returns a sample value of a type.
fn sample(name: &str) -> Option<Value> {
    Some(match name {
        "java.lang.Boolean" => Value::Bool(true),
        "java.lang.Long" => Value::Int(0),
        "java.lang.Double" => Value::Float(0.0),
        "java.lang.Character" => Value::Char('a'),
        "java.lang.String" => Value::string(""),
        "clojure.lang.Keyword" => Value::keyword("a"),
        "clojure.lang.Symbol" => Value::symbol("a"),
        "clojure.lang.BigInt" => Value::BigInt(Arc::default()),
        "java.math.BigDecimal" => Value::Decimal(Arc::default()),
        "clojure.lang.PersistentList" | "clojure.lang.LazySeq" => Value::list(Vec::new()),
        "clojure.lang.PersistentVector" => Value::vector(Vec::new()),
        "clojure.lang.PersistentArrayMap" => Value::Map(Arc::default()),
        "clojure.lang.PersistentTreeMap" => Value::Map(Arc::new(Map::sorted(Value::Nil))),
        "clojure.lang.PersistentHashSet" => Value::Set(Arc::default()),
        "clojure.lang.PersistentTreeSet" => Value::Set(Arc::new(Set::sorted(Value::Nil))),
        _ => return None,
    })
}

fn time_type(time: &Time) -> &'static str {
    match time {
        Time::Instant(_) => "java.time.Instant",
        Time::Date(_) => "java.time.LocalDate",
        Time::Clock(_) => "java.time.LocalTime",
        Time::DateTime(_) => "java.time.LocalDateTime",
        Time::Zoned(zoned) if is_fixed(zoned) => "java.time.OffsetDateTime",
        Time::Zoned(_) => "java.time.ZonedDateTime",
        Time::Duration(_) => "java.time.Duration",
        Time::Period(_) => "java.time.Period",
        Time::YearMonth(_) => "java.time.YearMonth",
        Time::Zone(_) => "java.time.ZoneId",
    }
}

fn instance(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let is_type = |value: &Value| {
        value.as_symbol().is_some_and(|name| name.as_str().starts_with("user.") || find(name.as_str()).is_some())
    };
    if !is_type(&arguments[0]) && is_type(&arguments[1]) {
        arguments.swap(0, 1);
    }
    if let Some(wanted) = arguments[0].as_symbol()
        && wanted.as_str().starts_with("user.")
    {
        return Ok(Value::Bool(
            matches!(class_name(&arguments[1]), Value::Symbol(own) if own.as_str() == wanted.as_str()),
        ));
    }
    let Some(name) = arguments[0].as_symbol() else {
        return Err(Error::expected("the name of a type, such as `String`", &arguments[0]).into());
    };
    match find(name.as_str()) {
        Some(Type(_, is_of)) => Ok(Value::Bool(is_of(&arguments[1]))),
        None => {
            let error = Error::new("UnknownType", format!("there is no type `{}`", name.as_str()));
            let names = TYPES.iter().filter_map(|Type(full, _)| full.rsplit('.').next());
            Err(match closest(name.as_str(), names) {
                Some(nearest) => error.suggest(did_you_mean(nearest)),
                None => error.suggest("predicates such as `map?`, `string?` and `number?` tell values apart"),
            }
            .into())
        }
    }
}
