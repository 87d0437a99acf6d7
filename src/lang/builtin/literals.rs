//! Tagged literals `#tag form` and unresolved reader conditionals `#?(…)`, as data.
//!
//! They are records of dedicated types that print as they are written.

use super::arguments::take;
use super::dispatch::protocols::of_kind;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::{CONDITIONAL, Map, TAGGED};
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "tagged-literal",
        &["[tag form]"],
        "A tagged form as data with `:tag` and `:form`; it prints as `#tag form`.",
        &[
            ("(pr-str (tagged-literal 'point [1 2]))", "\"#point [1 2]\""),
            ("(:tag (tagged-literal 'point [1 2]))", "point"),
        ],
        |machine, arguments| {
            if arguments[0].as_symbol().is_none() {
                return Err(Error::expected("a symbol as the tag", &arguments[0]).into());
            }
            literal(machine, TAGGED, ["tag", "form"], arguments)
        },
    ),
    Builtin::new(
        "tagged-literal?",
        &["[x]"],
        "True for results of `tagged-literal`.",
        &[("(tagged-literal? (tagged-literal 'point [1 2]))", "true"), ("(tagged-literal? 1)", "false")],
        |_, arguments| Ok(Value::Bool(is_literal(&arguments[0], TAGGED))),
    ),
    Builtin::new(
        "reader-conditional",
        &["[form splicing?]"],
        "A reader conditional as data with `:form` and `:splicing?`; it prints as `#?(…)`.",
        &[("(pr-str (reader-conditional '(:clj 1 :cljs 2) false))", "\"#?(:clj 1 :cljs 2)\"")],
        |machine, arguments| literal(machine, CONDITIONAL, ["form", "splicing?"], arguments),
    ),
    Builtin::new(
        "reader-conditional?",
        &["[x]"],
        "True for results of `reader-conditional`.",
        &[("(reader-conditional? (reader-conditional '(:clj 1) true))", "true"), ("(reader-conditional? 1)", "false")],
        |_, arguments| Ok(Value::Bool(is_literal(&arguments[0], CONDITIONAL))),
    ),
];

fn literal(machine: &mut Machine, kind: &str, fields: [&str; 2], arguments: &mut [Value]) -> Outcome<Value> {
    let [first, second] = fields.map(Value::keyword);
    let content: Map =
        [(first.clone(), take(arguments, 0)), (second.clone(), take(arguments, 1))].into_iter().collect();
    let fields = Value::vector(vec![first, second]);
    let kind = [("type", Value::symbol(kind)), ("fields", fields)];
    let kind: Map = kind.into_iter().map(|(key, value)| (Value::keyword(key), value)).collect();
    of_kind(machine, Value::Map(Arc::new(content)), kind)
}

fn is_literal(value: &Value, kind: &str) -> bool {
    matches!(value, Value::Map(map) if matches!(map.type_name(), Some(Value::Symbol(name)) if name.as_str() == kind))
}
