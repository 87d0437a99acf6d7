//! JSON text to values and back.

use super::arguments::{option, options, string, take};
use super::text::ask_for_copy;
use crate::error::{Error, Outcome};
use crate::json;
use crate::machine::Machine;
use crate::native::{Builtin, Intrinsic};
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "json/parse",
        &["[s & options]"],
        "Parses JSON text and returns the value; objects become maps with keyword keys.",
        &[
            ("(json/parse \"{\\\"a\\\": [1, null, true]}\")", "{:a [1 nil true]}"),
            ("(:a (json/parse \"{\\\"a\\\": 1}\" :key-fn keyword))", "1"),
        ],
        parse,
    ),
    Builtin::new(
        "json/write",
        &["[x & options]"],
        "The value as JSON text; with `:indent true`, one entry per line.",
        &[("(json/write {:a [1 nil \"x\"]})", "\"{\\\"a\\\":[1,null,\\\"x\\\"]}\"")],
        write,
    ),
];

/// Aliases from Clojure's libraries and other languages, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("json/read-str", "json/parse"),
    ("json/read", "json/parse"),
    ("json/decode", "json/parse"),
    ("json/parse-string", "json/parse"),
    ("json/read-json", "json/parse"),
    ("parse-json", "json/parse"),
    ("json/loads", "json/parse"),
    ("json/write-str", "json/write"),
    ("json/encode", "json/write"),
    ("json/generate-string", "json/write"),
    ("json/json-str", "json/write"),
    ("json/stringify", "json/write"),
    ("json/dumps", "json/write"),
];

fn parse(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = take(arguments, 0);
    let names_keys = |value: &Value| match value {
        // Cheshire's `true` requests keyword keys.
        Value::Nil | Value::Bool(_) => true,
        Value::Builtin(function) => function.intrinsic == Some(Intrinsic::Keyword),
        _ => false,
    };
    let key_function = match &mut arguments[1..] {
        [] => Value::Nil,
        [only] => std::mem::take(only),
        more => {
            let given = options("json/parse", more, &["key-fn", "keywords?", "keywordize-keys", "bigdec"])?;
            option(&given, "key-fn").unwrap_or_default()
        }
    };
    if !names_keys(&key_function) {
        return Err(Error::expected("`keyword` as the function for keys", &key_function)
            .suggest("leave it out: keys are keywords, and are found as strings too; `update-keys` changes them")
            .into());
    }
    json::parse(machine, string(&text)?)
}

fn write(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 0);
    let known = ["indent", "pretty", "escape-unicode", "escape-slash", "key-fn"];
    let given = match &mut arguments[1..] {
        [Value::Map(given)] => (**given).clone(),
        more => options("json/write", more, &known)?,
    };
    let indent = ["indent", "pretty"].iter().any(|name| option(&given, name).is_some_and(|value| value.is_truthy()));
    let text = json::write(machine, &value, indent)?;
    ask_for_copy(machine, &text, 1)?;
    Ok(Value::string(&text))
}
