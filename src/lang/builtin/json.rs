//! JSON text to values and back.

use super::arguments::{string, take};
use super::builders::{add, builder};
use super::options::{FLAG, FUNCTION};
use super::text::ask_for_copy;
use crate::error::{Error, Outcome};
use crate::json;
use crate::machine::Machine;
use crate::native::{Builtin, Intrinsic, OptionKind, OptionSet, OptionSpec};
use crate::value::Value;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "json/parse",
        &["[s & options]"],
        "Parses JSON text and returns the value; objects become maps with keyword keys.\n\
         Options: `:bigdec true` reads numbers with a fraction as exact decimals; `:key-fn keyword` and \
         `:keywords? true`, as other libraries have it, change nothing; `:value-fn f` replaces each value of an object by \
         that of `(f key value)`, innermost first.",
        &[
            ("(json/parse \"{\\\"a\\\": [1, null, true]}\")", "{:a [1 nil true]}"),
            ("(:a (json/parse \"{\\\"a\\\": 1}\" :key-fn keyword))", "1"),
            ("(json/parse \"[0.1, 2]\" :bigdec true)", "[0.1M 2]"),
            (
                "(json/parse \"{\\\"at\\\": \\\"2024-03-05\\\"}\" :value-fn (fn [k v] (if (= k :at) (time/parse v) v)))",
                "{:at #time/date \"2024-03-05\"}",
            ),
        ],
        parse,
    )
    .with_options(&PARSE),
    Builtin::new(
        "json/write",
        &["[x & options]"],
        "The value as JSON text.\n\
         Options: `:indent true` writes one entry per line, `:indent 4` with that many spaces (true: 2) a level; \
         `:key-fn f` makes the text of each key; `:value-fn f` replaces each value of a map by that of `(f key value)`, \
         outermost first; `:escape-unicode true` writes characters beyond ASCII as `\\u00e9`, \
         `:escape-slash true` writes `/` as `\\/`.",
        &[
            ("(json/write {:a [1 nil \"x\"]})", "\"{\\\"a\\\":[1,null,\\\"x\\\"]}\""),
            ("(json/write {:a 1} :key-fn #(str/upper-case (name %)))", "\"{\\\"A\\\":1}\""),
            ("(json/write {:a 1 :b 2} :value-fn (fn [k v] (if (= k :b) \"x\" v)))", "\"{\\\"a\\\":1,\\\"b\\\":\\\"x\\\"}\""),
        ],
        write,
    )
    .with_options(&WRITE),
];

static PARSE: OptionSet = OptionSet {
    function: "json/parse",
    accepted: &[
        OptionSpec::new("key-fn", &KEYWORD),
        OptionSpec::new("keywords?", &YES).or(&["keywordize-keys"]),
        OptionSpec::new("bigdec", &FLAG),
        OptionSpec::new("value-fn", &FUNCTION),
    ],
};

static WRITE: OptionSet = OptionSet {
    function: "json/write",
    accepted: &[
        OptionSpec::new("indent", &INDENT).or(&["pretty"]),
        OptionSpec::new("key-fn", &FUNCTION),
        OptionSpec::new("value-fn", &FUNCTION),
        OptionSpec::new("escape-unicode", &FLAG),
        OptionSpec::new("escape-slash", &FLAG),
    ],
};

static KEYWORD: OptionKind = OptionKind {
    wanted: "`keyword` (keys are keywords, and are found as strings too; `update-keys` changes them)",
    fits: |value| matches!(value, Value::Builtin(function) if function.intrinsic == Some(Intrinsic::Keyword)),
};

static YES: OptionKind = OptionKind {
    wanted: "true (keys are keywords, and are found as strings too; `update-keys` changes them)",
    fits: |value| matches!(value, Value::Bool(true)),
};

static INDENT: OptionKind =
    OptionKind { wanted: "true, false or a number of spaces up to 10", fits: |value| indent(value).is_some() };

/// Returns the spaces a level that a value asks for, if any; `None` if the value asks for neither.
fn indent(value: &Value) -> Option<Option<usize>> {
    match value {
        Value::Bool(true) => Some(Some(2)),
        Value::Bool(false) | Value::Nil => Some(None),
        Value::Int(spaces @ 0..=10) => Some(usize::try_from(*spaces).ok()),
        _ => None,
    }
}

/// Aliases from Clojure's libraries and other languages, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("json/read-str", "json/parse"),
    ("json/read", "json/parse"),
    ("json/decode", "json/parse"),
    ("json/parse-string", "json/parse"),
    ("json/read-json", "json/parse"),
    ("parse-json", "json/parse"),
    ("json/loads", "json/parse"),
    ("json/read-value", "json/parse"),
    ("json/write-value-as-string", "json/write"),
    ("json/write-str", "json/write"),
    ("json/encode", "json/write"),
    ("json/generate-string", "json/write"),
    ("json/json-str", "json/write"),
    ("json/stringify", "json/write"),
    ("json/dumps", "json/write"),
];

fn parse(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = take(arguments, 0);
    let given = match &mut arguments[1..] {
        // Cheshire's `(parse-string s true)` requests keyword keys.
        [Value::Nil | Value::Bool(_)] => PARSE.none(),
        [function] if (KEYWORD.fits)(function) => PARSE.none(),
        [other] if !matches!(other, Value::Map(_) | Value::Keyword(_)) => {
            return Err(Error::expected("`keyword` as the function for keys", other)
                .suggest("leave it out: keys are keywords, and are found as strings too; `update-keys` changes them")
                .into());
        }
        rest => PARSE.read(rest)?,
    };
    let text = string(&text)?;
    let value = if given.is_on("bigdec") { json::parse_exactly(machine, text)? } else { json::parse(machine, text)? };
    match given.get("value-fn") {
        Some(function) => with_values(machine, value, function),
        None => Ok(value),
    }
}

/// Replaces each value of an object by the function's result for its key and itself; as in data.json, a result that is the
/// function omits the entry.
fn with_values(machine: &mut Machine, value: Value, function: &Value) -> Outcome<Value> {
    machine.check_stack()?;
    machine.charge(1)?;
    Ok(match value {
        Value::Map(map) => {
            let mut out = (*map).clone();
            for (key, value) in map.iter() {
                let value = with_values(machine, value.clone(), function)?;
                let value = machine.call2(function, key.clone(), value)?;
                if value == *function {
                    out.remove(key);
                } else {
                    out.insert(key.clone(), value);
                }
            }
            Value::Map(Arc::new(out))
        }
        Value::Vector(items) => {
            let mut out = Vec::with_capacity(items.len());
            for item in items.iter() {
                out.push(with_values(machine, item.clone(), function)?);
            }
            Value::vector(out)
        }
        other => other,
    })
}

/// Replaces each value of a map by the function's result for its key and itself, and then the values in that; as in
/// data.json, a result that is the function omits the entry.
fn with_written_values(machine: &mut Machine, value: Value, function: &Value) -> Outcome<Value> {
    machine.check_stack()?;
    machine.charge(1)?;
    Ok(match value {
        Value::Map(map) => {
            let mut out = (*map).clone();
            for (key, value) in map.iter() {
                let value = machine.call2(function, key.clone(), value.clone())?;
                if value == *function {
                    out.remove(key);
                } else {
                    out.insert(key.clone(), with_written_values(machine, value, function)?);
                }
            }
            Value::Map(Arc::new(out))
        }
        Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Lazy(_) => {
            let mut out = Vec::new();
            for item in machine.items(value)? {
                out.push(with_written_values(machine, item, function)?);
                machine.grown(out.len())?;
            }
            Value::vector(out)
        }
        other => other,
    })
}

fn write(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // data.json's `(write x writer)`.
    if let Some(cell) = arguments.get(1).and_then(builder).cloned() {
        arguments[1] = take(arguments, 0);
        let text = write(machine, &mut arguments[1..])?;
        add(machine, &cell, string(&text)?)?;
        return Ok(Value::Nil);
    }
    let value = take(arguments, 0);
    let given = WRITE.read(&mut arguments[1..])?;
    let layout = json::Layout {
        indent: given.get("indent").and_then(indent).flatten(),
        key_function: given.get("key-fn").cloned(),
    };
    let value = match given.get("value-fn") {
        Some(function) => with_written_values(machine, value, function)?,
        None => value,
    };
    let mut text = json::write(machine, &value, &layout)?;
    if given.is_on("escape-unicode") {
        ask_for_copy(machine, &text, 6)?;
        text = escaped(&text, |character| !character.is_ascii());
    }
    if given.is_on("escape-slash") {
        ask_for_copy(machine, &text, 2)?;
        text = text.replace('/', "\\/");
    }
    ask_for_copy(machine, &text, 1)?;
    Ok(Value::string(&text))
}

/// Writes characters of a JSON text as `\u` and their UTF-16 units. They must be parts of strings.
fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}
