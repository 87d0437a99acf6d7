//! Predicates on scalars: truth values, numbers, text, names.

use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("nil?", &["[x]"], "True if `x` is nil.", &[("(nil? nil)", "true"), ("(nil? false)", "false")], is_nil),
    Builtin::new(
        "some?",
        &["[x]"],
        "True unless `x` is nil.",
        &[("(some? false)", "true"), ("(some? nil)", "false")],
        is_some,
    ),
    Builtin::new("any?", &["[x]"], "Always true.", &[("(any? nil)", "true")], is_any),
    Builtin::new(
        "true?",
        &["[x]"],
        "True only for true.",
        &[("(true? true)", "true"), ("(true? 1)", "false")],
        is_true,
    ),
    Builtin::new(
        "false?",
        &["[x]"],
        "True only for false.",
        &[("(false? false)", "true"), ("(false? nil)", "false")],
        is_false,
    ),
    Builtin::new("boolean?", &["[x]"], "True for true and false.", &[("(boolean? false)", "true")], is_boolean),
    Builtin::new(
        "number?",
        &["[x]"],
        "True for numbers.",
        &[("(number? 1.5)", "true"), ("(number? \"1\")", "false")],
        is_number,
    ),
    Builtin::new(
        "integer?",
        &["[x]"],
        "True for integers, small or big.",
        &[("(integer? 1)", "true"), ("(integer? 1.0)", "false")],
        is_integer,
    ),
    Builtin::new(
        "int?",
        &["[x]"],
        "True for 64-bit integers.",
        &[("(int? 1)", "true"), ("(int? 1N)", "false")],
        is_int,
    ),
    Builtin::new(
        "float?",
        &["[x]"],
        "True for doubles.",
        &[("(float? 1.0)", "true"), ("(float? 1)", "false")],
        is_float,
    ),
    Builtin::new(
        "ratio?",
        &["[x]"],
        "Always false: there are no ratios, `(/ 7 2)` and `7/2` are 3.5.",
        &[("(ratio? 0.5)", "false")],
        is_ratio,
    ),
    Builtin::new(
        "rational?",
        &["[x]"],
        "True for exact numbers.",
        &[("(rational? 1)", "true"), ("(rational? 1.0)", "false")],
        is_rational,
    ),
    Builtin::new(
        "pos-int?",
        &["[x]"],
        "True for positive 64-bit integers.",
        &[("(pos-int? 1)", "true"), ("(pos-int? 0)", "false")],
        is_positive_int,
    ),
    Builtin::new(
        "neg-int?",
        &["[x]"],
        "True for negative 64-bit integers.",
        &[("(neg-int? -1)", "true")],
        is_negative_int,
    ),
    Builtin::new(
        "nat-int?",
        &["[x]"],
        "True for non-negative 64-bit integers.",
        &[("(nat-int? 0)", "true"), ("(nat-int? -1)", "false")],
        is_natural_int,
    ),
    Builtin::new(
        "string?",
        &["[x]"],
        "True for strings.",
        &[("(string? \"a\")", "true"), ("(string? :a)", "false")],
        is_string,
    ),
    Builtin::new("char?", &["[x]"], "True for characters.", &[("(char? \\a)", "true")], is_char),
    Builtin::new("keyword?", &["[x]"], "True for keywords.", &[("(keyword? :a)", "true")], is_keyword),
    Builtin::new("symbol?", &["[x]"], "True for symbols.", &[("(symbol? 'a)", "true")], is_symbol),
    Builtin::new(
        "ident?",
        &["[x]"],
        "True for keywords and symbols.",
        &[("(ident? :a)", "true"), ("(ident? \"a\")", "false")],
        is_ident,
    ),
    Builtin::new(
        "simple-keyword?",
        &["[x]"],
        "True for keywords without a namespace.",
        &[("(simple-keyword? :a)", "true"), ("(simple-keyword? :b/a)", "false")],
        is_simple_keyword,
    ),
    Builtin::new(
        "qualified-keyword?",
        &["[x]"],
        "True for keywords with a namespace.",
        &[("(qualified-keyword? :b/a)", "true")],
        is_qualified_keyword,
    ),
    Builtin::new(
        "simple-symbol?",
        &["[x]"],
        "True for symbols without a namespace.",
        &[("(simple-symbol? 'a)", "true")],
        is_simple_symbol,
    ),
    Builtin::new(
        "qualified-symbol?",
        &["[x]"],
        "True for symbols with a namespace.",
        &[("(qualified-symbol? 'b/a)", "true")],
        is_qualified_symbol,
    ),
    Builtin::new(
        "simple-ident?",
        &["[x]"],
        "True for keywords and symbols without a namespace.",
        &[("(simple-ident? :a)", "true")],
        is_simple_ident,
    ),
    Builtin::new(
        "qualified-ident?",
        &["[x]"],
        "True for keywords and symbols with a namespace.",
        &[("(qualified-ident? :b/a)", "true")],
        is_qualified_ident,
    ),
];

/// Aliases of builtins of this file.
pub const ALIASES: &[(&str, &str)] = &[
    ("double?", "float?"),
    ("numberp", "number?"),
    ("integerp", "integer?"),
    ("floatp", "float?"),
    ("stringp", "string?"),
    ("characterp", "char?"),
    ("keywordp", "keyword?"),
    ("symbolp", "symbol?"),
    ("exact?", "rational?"),
    ("inexact?", "float?"),
    ("real?", "number?"),
];

fn is_nil(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Nil)))
}

fn is_some(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(!arguments[0].is_nil()))
}

fn is_any(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments.len() == 1))
}

fn is_true(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Bool(true))))
}

fn is_false(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Bool(false))))
}

fn is_boolean(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Bool(_))))
}

fn is_number(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(super::arithmetic::is_number(&arguments[0])))
}

fn is_integer(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Int(_) | Value::BigInt(_))))
}

fn is_int(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Int(_))))
}

fn is_float(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Float(_))))
}

fn is_ratio(_: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(false))
}

fn is_rational(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Int(_) | Value::BigInt(_) | Value::Decimal(_))))
}

fn is_positive_int(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Int(1..))))
}

fn is_negative_int(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Int(..0))))
}

fn is_natural_int(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Int(0..))))
}

fn is_string(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Str(_))))
}

fn is_char(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Char(_))))
}

fn is_keyword(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Keyword(_))))
}

fn is_symbol(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_symbol().is_some()))
}

fn is_ident(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_name().is_some()))
}

fn is_simple_keyword(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Keyword(name) if name.namespace().is_none())))
}

fn is_qualified_keyword(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(matches!(&arguments[0], Value::Keyword(name) if name.namespace().is_some())))
}

fn is_simple_symbol(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_symbol().is_some_and(|name| name.namespace().is_none())))
}

fn is_qualified_symbol(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_symbol().is_some_and(|name| name.namespace().is_some())))
}

fn is_simple_ident(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_name().is_some_and(|name| name.namespace().is_none())))
}

fn is_qualified_ident(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].as_name().is_some_and(|name| name.namespace().is_some())))
}
