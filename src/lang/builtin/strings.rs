//! Strings: joining, slicing, letter case, trimming. Lengths and indices count Unicode scalar values.

use super::arguments::{string, take, whole};
use super::text::{Builder, ask_for_copy, pay, pieces, spelled, text_of, textual};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::text::Text;
use std::cmp::Ordering;
use unicode_normalization::UnicodeNormalization;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "str",
        &["[& values]"],
        "Concatenates values into a string; nil is empty.",
        &[("(str \"a\" 1 :b nil)", "\"a1:b\""), ("(str [1 \"x\"])", "\"[1 \\\"x\\\"]\""), ("(str)", "\"\"")],
        str,
    ),
    Builtin::new(
        "subs",
        &["[s start]", "[s start end]"],
        "The substring from `start` up to but not including `end`, by default to the end.",
        &[("(subs \"hello\" 1 3)", "\"el\""), ("(subs \"hello\" 2)", "\"llo\"")],
        subs,
    ),
    Builtin::new(
        "str/join",
        &["[coll]", "[separator coll]"],
        "Joins items into one string, with a separator between them.",
        &[
            ("(str/join \", \" [1 2 3])", "\"1, 2, 3\""),
            ("(str/join [1 2])", "\"12\""),
            ("(str/join [1 2] \"-\")", "\"1-2\""),
        ],
        join,
    ),
    Builtin::new(
        "str/upper-case",
        &["[s]"],
        "Converts to uppercase.",
        &[("(str/upper-case \"aB\")", "\"AB\"")],
        upper_case,
    ),
    Builtin::new(
        "str/lower-case",
        &["[s]"],
        "Lowercases a string.",
        &[("(str/lower-case \"aB\")", "\"ab\"")],
        lower_case,
    ),
    Builtin::new(
        "str/capitalize",
        &["[s]"],
        "Uppercases the first letter and lowercases the rest.",
        &[("(str/capitalize \"hELLO\")", "\"Hello\"")],
        capitalize,
    ),
    Builtin::new(
        "str/trim",
        &["[s]"],
        "Trims whitespace at both ends.",
        &[("(str/trim \" a \")", "\"a\"")],
        |machine, arguments| trimmed(machine, arguments, |text| text.trim_matches(is_blank)),
    ),
    Builtin::new(
        "str/triml",
        &["[s]"],
        "Trims leading whitespace.",
        &[("(str/triml \" a \")", "\"a \"")],
        |machine, arguments| trimmed(machine, arguments, |text| text.trim_start_matches(is_blank)),
    ),
    Builtin::new(
        "str/trimr",
        &["[s]"],
        "Trims trailing whitespace.",
        &[("(str/trimr \" a \")", "\" a\"")],
        |machine, arguments| trimmed(machine, arguments, |text| text.trim_end_matches(is_blank)),
    ),
    Builtin::new(
        "str/trim-newline",
        &["[s]"],
        "Trims trailing line breaks.",
        &[("(str/trim-newline \"a\\r\\n\")", "\"a\"")],
        |machine, arguments| trimmed(machine, arguments, |text| text.trim_end_matches(['\n', '\r'])),
    ),
    Builtin::new(
        "str/blank?",
        &["[s]"],
        "True for nil, the empty string, or only whitespace.",
        &[("(str/blank? \" \")", "true"), ("(str/blank? nil)", "true"), ("(str/blank? \"a\")", "false")],
        is_blank_text,
    ),
    Builtin::new(
        "str/reverse",
        &["[s]"],
        "The characters in reverse order.",
        &[("(str/reverse \"abc\")", "\"cba\"")],
        reverse,
    ),
    Builtin::new(
        "str/escape",
        &["[s replacements]"],
        "Replaces each character for which the map or function returns a value other than nil.",
        &[("(str/escape \"a<b\" {\\< \"&lt;\"})", "\"a&lt;b\"")],
        escape,
    ),
    Builtin::new(
        "str/repeat",
        &["[s n]"],
        "The string repeated `n` times.",
        &[("(str/repeat \"ab\" 3)", "\"ababab\"")],
        repeat,
    ),
    Builtin::new(
        "string=?",
        &["[s & strings]"],
        "True if the strings are equal.",
        &[("(string=? \"a\" \"a\")", "true")],
        |machine, arguments| ordered(machine, arguments, Ordering::is_eq),
    ),
    Builtin::new(
        "string<?",
        &["[s & strings]"],
        "True if the strings are strictly ascending.",
        &[("(string<? \"a\" \"b\")", "true"), ("(string<? \"b\" \"a\")", "false")],
        |machine, arguments| ordered(machine, arguments, Ordering::is_lt),
    ),
    Builtin::new(
        "string>?",
        &["[s & strings]"],
        "True if the strings are strictly descending.",
        &[("(string>? \"b\" \"a\")", "true")],
        |machine, arguments| ordered(machine, arguments, Ordering::is_gt),
    ),
    Builtin::new(
        "string->symbol",
        &["[s]"],
        "The symbol with this name.",
        &[("(string->symbol \"a\")", "a")],
        string_to_symbol,
    ),
    Builtin::new(
        "symbol->string",
        &["[symbol]"],
        "The name of a symbol or keyword.",
        &[("(symbol->string 'a)", "\"a\"")],
        symbol_to_string,
    ),
    Builtin::new(
        "str/normalize",
        &["[s]", "[s form]"],
        "The text in a normal form of Unicode: `:nfc` (composed, the default), `:nfd` (decomposed), `:nfkc` or `:nfkd`.",
        &[("(count (str/normalize \"e\\u0301\"))", "1"), ("(count (str/normalize \"\\u00e9\" :nfd))", "2")],
        normalize,
    ),
];

/// Java's names and those of other Lisps.
pub const ALIASES: &[(&str, &str)] = &[
    ("string-append", "str"),
    ("substring", "subs"),
    (".substring", "subs"),
    ("string-length", "count"),
    (".length", "count"),
    ("string-join", "str/join"),
    ("String/join", "str/join"),
    ("string-upcase", "str/upper-case"),
    ("string-downcase", "str/lower-case"),
    ("upper-case", "str/upper-case"),
    ("lower-case", "str/lower-case"),
    ("str/upper", "str/upper-case"),
    ("str/lower", "str/lower-case"),
    (".toUpperCase", "str/upper-case"),
    (".toLowerCase", "str/lower-case"),
    ("string-capitalize", "str/capitalize"),
    ("capitalize", "str/capitalize"),
    ("string-trim", "str/trim"),
    ("trim", "str/trim"),
    (".trim", "str/trim"),
    (".strip", "str/trim"),
    ("string-reverse", "str/reverse"),
    ("blank?", "str/blank?"),
    (".isBlank", "str/blank?"),
    (".repeat", "str/repeat"),
    ("Normalizer/normalize", "str/normalize"),
];

fn str(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [only] = arguments {
        return text_of(machine, only);
    }
    let mut builder = match arguments.first_mut() {
        Some(Value::Str(first @ Text::Marked(_))) => match std::mem::replace(first, Text::from("")).into_own() {
            // A text that only this call holds is extended in place, so that a loop that adds to it is linear.
            Ok(own) => Builder::extending(own),
            Err(shared) => {
                *first = shared;
                Builder::default()
            }
        },
        _ => Builder::default(),
    };
    for value in arguments {
        machine.charge(1)?;
        builder.push_value(machine, &std::mem::take(value))?;
    }
    Ok(builder.finish())
}

/// Returns the value of Java's names for the forms of normalization, such as `Normalizer$Form/NFC`; `None` for all other
/// names.
pub fn form_of_normalization(name: &str) -> Option<Value> {
    let form = name.strip_prefix("java.text.").unwrap_or(name).strip_prefix("Normalizer$Form/")?;
    matches!(form, "NFC" | "NFD" | "NFKC" | "NFKD").then(|| Value::keyword(&form.to_ascii_lowercase()))
}

fn normalize(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let form = match arguments.get(1) {
        None => "nfc".to_string(),
        Some(Value::Keyword(name)) => name.as_str().to_ascii_lowercase(),
        Some(Value::Str(name)) => name.as_str().to_ascii_lowercase(),
        Some(other) => return Err(not_a_form(other).into()),
    };
    let text = string(&arguments[0])?;
    pay(machine, text)?;
    // A character decomposes to at most eighteen.
    ask_for_copy(machine, text, 18)?;
    let normal: String = match form.as_str() {
        "nfc" => text.nfc().collect(),
        "nfd" => text.nfd().collect(),
        "nfkc" => text.nfkc().collect(),
        "nfkd" => text.nfkd().collect(),
        _ => return Err(not_a_form(&arguments[1]).into()),
    };
    Ok(Value::string(&normal))
}

fn not_a_form(value: &Value) -> Error {
    Error::expected("a normal form, one of :nfc, :nfd, :nfkc and :nfkd", value)
}

fn subs(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Value::Str(held) = &arguments[0] else { return Err(Error::expected("a string", &arguments[0]).into()) };
    let text = held.as_str();
    machine.charge(held.finding_effort())?;
    let start = whole(&arguments[1])?;
    let end = arguments.get(2).map(whole).transpose()?;
    let place = |index: i64| usize::try_from(index).ok().and_then(|index| held.place_of(index));
    let (from, to) = match (place(start), end.map_or(Some(text.len()), place)) {
        (Some(from), Some(to)) if from <= to => (from, to),
        _ => return Err(outside(text, start, end).into()),
    };
    pay(machine, &text[from..to])?;
    ask_for_copy(machine, &text[from..to], 1)?;
    Ok(Value::string(&text[from..to]))
}

#[cold]
fn outside(text: &str, start: i64, end: Option<i64>) -> Error {
    let count = text.chars().count();
    let part = match end {
        Some(end) => format!("from {start} to {end}"),
        None => format!("from {start}"),
    };
    Error::new("IndexOutOfBounds", format!("the part {part} is outside of a string of {count} characters"))
        .suggest("clamp the end: `(subs s 0 (min 10 (count s)))`")
}

fn join(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let is_collection =
        |value: &Value| matches!(value, Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_));
    if arguments.len() == 2 && is_collection(&arguments[0]) && !is_collection(&arguments[1]) {
        arguments.swap(0, 1);
    }
    if let [relation @ Value::Set(_), Value::Set(_)] = arguments {
        let error = Error::expected("a separator", relation);
        return Err(error.suggest("`(set/join relation other)` joins two relations").into());
    }
    let (separator, collection) = match arguments {
        [collection] => (Value::Nil, std::mem::take(collection)),
        [separator, collection, ..] => (std::mem::take(separator), std::mem::take(collection)),
        [] => return Ok(Value::string("")),
    };
    let Value::Str(separator) = text_of(machine, &separator)? else { return Ok(Value::Nil) };
    let mut items = machine.seq(collection)?;
    let mut builder = Builder::default();
    let mut first = true;
    while let Some(item) = items.next(machine)? {
        if !std::mem::take(&mut first) {
            builder.push(machine, separator.as_str())?;
        }
        builder.push_value(machine, &item)?;
    }
    Ok(builder.finish())
}

fn upper_case(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelled(machine, &arguments[0])?;
    let mut builder = Builder::default();
    push_changed(machine, &mut builder, &text, str::to_uppercase)?;
    Ok(builder.finish())
}

fn lower_case(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelled(machine, &arguments[0])?;
    let mut builder = Builder::default();
    push_changed(machine, &mut builder, &text, str::to_lowercase)?;
    Ok(builder.finish())
}

/// Appends a text with its letter case changed.
fn push_changed(machine: &mut Machine, builder: &mut Builder, text: &str, change: fn(&str) -> String) -> Outcome<()> {
    for piece in pieces(text) {
        machine.charge(piece.len() as u64 / 16)?;
        builder.push(machine, &change(piece))?;
    }
    Ok(())
}

fn capitalize(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelled(machine, &arguments[0])?;
    let mut builder = Builder::default();
    let first = text.chars().next().map_or(0, char::len_utf8);
    push_changed(machine, &mut builder, &text[..first], str::to_uppercase)?;
    push_changed(machine, &mut builder, &text[first..], str::to_lowercase)?;
    Ok(builder.finish())
}

/// True for white space as Java defines it, which excludes the no-break spaces.
pub(super) fn is_blank(character: char) -> bool {
    match character {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        other => other.is_whitespace(),
    }
}

fn trimmed(machine: &mut Machine, arguments: &mut [Value], trim: fn(&str) -> &str) -> Outcome<Value> {
    let text = textual(machine, &arguments[0])?;
    let inner = trim(&text);
    if inner.len() == text.len() && matches!(arguments[0], Value::Str(_)) {
        return Ok(arguments[0].clone());
    }
    ask_for_copy(machine, inner, 1)?;
    Ok(Value::string(inner))
}

fn is_blank_text(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments[0].is_nil() {
        return Ok(Value::Bool(true));
    }
    Ok(Value::Bool(textual(machine, &arguments[0])?.chars().all(is_blank)))
}

fn reverse(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = textual(machine, &arguments[0])?;
    machine.charge(text.len() as u64 / 16)?;
    ask_for_copy(machine, &text, 1)?;
    Ok(Value::string(&text.chars().rev().collect::<String>()))
}

fn escape(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (text, replacements) = (take(arguments, 0), take(arguments, 1));
    let text = textual(machine, &text)?;
    let mut builder = Builder::default();
    for character in text.chars() {
        match machine.call1(&replacements, Value::Char(character))? {
            Value::Nil => builder.push(machine, character.encode_utf8(&mut [0; 4]))?,
            replacement => builder.push_value(machine, &replacement)?,
        }
    }
    Ok(builder.finish())
}

fn repeat(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = textual(machine, &arguments[0])?;
    let times = super::arguments::count(&arguments[1])?;
    let mut builder = Builder::default();
    builder.push_times(machine, &text, usize::try_from(times).unwrap_or(usize::MAX))?;
    Ok(builder.finish())
}

fn ordered(machine: &mut Machine, strings: &[Value], holds: fn(Ordering) -> bool) -> Outcome<Value> {
    string(&strings[0])?;
    for pair in strings.windows(2) {
        let (left, right) = (string(&pair[0])?, string(&pair[1])?);
        machine.charge(1 + left.len().min(right.len()) as u64 / 64)?;
        if !holds(left.cmp(right)) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn string_to_symbol(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::symbol(super::names::short_enough(string(&arguments[0])?)?))
}

fn symbol_to_string(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        named if let Some(name) = named.as_name() => {
            pay(machine, name.as_str())?;
            ask_for_copy(machine, name.as_str(), 1)?;
            Ok(Value::string(name.as_str()))
        }
        Value::Str(_) => Ok(take(arguments, 0)),
        other => Err(Error::expected("a symbol", other).into()),
    }
}
