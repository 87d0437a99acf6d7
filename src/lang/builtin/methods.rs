//! Java's string methods that need code of their own, under their dotted names; the others are aliases.

use super::arguments::{integer, string, take};
use super::dispatch::objects::object_method;
use super::matchers;
use super::regex::compile_running;
use super::search::{first_place, last_place, replace, split_at};
use super::text::textual;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::compare::compare;
use crate::value::text::Text;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        ".contains",
        &["[s part]"],
        "True if the string has the substring or the collection the item.",
        &[("(.contains \"hello\" \"ell\")", "true"), ("(.contains [1 2] 2)", "true")],
        contains,
    ),
    Builtin::new(
        ".indexOf",
        &["[s part]", "[s part from]"],
        "The first index of the substring in the string or the item in the collection; -1 if absent.",
        &[("(.indexOf \"hello\" \"l\")", "2"), ("(.indexOf [1 2] 3)", "-1")],
        index_of,
    ),
    Builtin::new(
        ".lastIndexOf",
        &["[s part]", "[s part from]"],
        "The last index of the substring in the string or the item in the collection; -1 if absent.",
        &[("(.lastIndexOf \"hello\" \"l\")", "3"), ("(.lastIndexOf [1 2 1] 1)", "2")],
        |machine, arguments| {
            let place = match &arguments[0] {
                Value::List(_) | Value::Vector(_) | Value::Lazy(_) => {
                    place_of_item(machine, take(arguments, 0), &arguments[1], true)?
                }
                _ => {
                    code_point(arguments)?;
                    last_place(machine, arguments)?
                }
            };
            Ok(Value::Int(place.unwrap_or(-1)))
        },
    ),
    Builtin::new(
        ".split",
        &["[s regex]", "[s regex limit]"],
        "The parts between matches of a regex, which may be given as a string.",
        &[("(.split \"a.b\" \"\\\\.\")", "[\"a\" \"b\"]")],
        split,
    ),
    Builtin::new(
        ".replaceAll",
        &["[s regex replacement]", "[matcher replacement]"],
        "Replaces every match of a regex, which may be given as a string, or of a matcher.",
        &[("(.replaceAll \"a1b2\" \"\\\\d\" \"-\")", "\"a-b-\"")],
        |machine, arguments| replace_pattern(machine, arguments, usize::MAX),
    ),
    Builtin::new(
        ".replaceFirst",
        &["[s regex replacement]", "[matcher replacement]"],
        "Replaces the first match of a regex, which may be given as a string, or of a matcher.",
        &[("(.replaceFirst \"a1b2\" \"\\\\d\" \"-\")", "\"a-b2\"")],
        |machine, arguments| replace_pattern(machine, arguments, 1),
    ),
    Builtin::new(
        ".isEmpty",
        &["[coll]"],
        "True for empty strings and collections.",
        &[("(.isEmpty \"\")", "true"), ("(.isEmpty [1])", "false")],
        is_empty,
    ),
    Builtin::new(".charAt", &["[s index]"], "The character at an index.", &[("(.charAt \"abc\" 1)", "\\b")], char_at),
    Builtin::new(
        ".equals",
        &["[x y]"],
        "True if the two are equal.",
        &[("(.equals \"a\" \"a\")", "true")],
        |machine, arguments| match object_method(machine, &arguments[0], "equals")? {
            Some(own) => machine.call(&own, arguments),
            None => machine.equal(&arguments[0], &arguments[1]).map(Value::Bool),
        },
    ),
    Builtin::new(
        ".equalsIgnoreCase",
        &["[s t]"],
        "True if the strings are equal, ignoring case.",
        &[("(.equalsIgnoreCase \"a\" \"A\")", "true")],
        equals_ignore_case,
    ),
    Builtin::new(
        ".compareTo",
        &["[x y]"],
        "A negative number, 0 or a positive number if `x` is before, equal to or after `y`; for texts and characters, as in \
         Java, the difference at the first character that differs, or of the lengths.",
        &[("(.compareTo \"apple\" \"app\")", "2"), ("(.compareTo 1 2)", "-1")],
        compare_to,
    ),
    Builtin::new(
        ".compareToIgnoreCase",
        &["[s t]"],
        "As `.compareTo`, ignoring case.",
        &[("(.compareToIgnoreCase \"apple\" \"APP\")", "2")],
        |machine, arguments| {
            let folded = |text: &str| text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
            let mut both = [Value::Nil, Value::Nil];
            for (one, given) in both.iter_mut().zip(arguments.iter()) {
                let text = textual(machine, given)?;
                super::text::ask_for_copy(machine, &text, 3)?;
                let folded: String = folded(&text);
                *one = Value::string(&folded);
            }
            compare_to(machine, &mut both)
        },
    ),
    Builtin::new(
        ".toString",
        &["[x]", "[n radix]"],
        "The text of a value; of an integer, optionally in another radix.",
        &[("(.toString 5)", "\"5\""), ("(.toString (biginteger 255) 16)", "\"ff\"")],
        |machine, arguments| match arguments {
            [value] => super::text::text_of(machine, value),
            _ => super::conversions::number_to_string(machine, arguments),
        },
    ),
    Builtin::new(".keySet", &["[m]"], "The keys of a map, as a set.", &[("(.keySet {:a 1})", "#{:a}")], key_set),
    Builtin::new(
        ".containsValue",
        &["[m x]"],
        "True if the map has the value.",
        &[("(.containsValue {:a 1} 1)", "true")],
        |machine, arguments| {
            let map = super::arguments::map(take(arguments, 0))?;
            for (_, value) in map.iter() {
                machine.charge(1)?;
                if machine.equal(value, &arguments[1])? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    ),
    Builtin::new(
        ".entrySet",
        &["[m]"],
        "The entries of a map, as a set.",
        &[("(.entrySet {:a 1})", "#{[:a 1]}")],
        |machine, arguments| {
            let map = Value::Map(super::arguments::map(take(arguments, 0))?);
            let mut entries = crate::value::set::Set::default();
            for entry in machine.items(map)? {
                entries.insert(machine.key(entry)?);
            }
            Ok(Value::Set(std::sync::Arc::new(entries)))
        },
    ),
    Builtin::new(
        ".codePointAt",
        &["[s index]"],
        "The code point of the character at an index.",
        &[("(.codePointAt \"a\" 0)", "97")],
        |machine, arguments| match char_at(machine, arguments)? {
            Value::Char(character) => Ok(Value::Int(i64::from(u32::from(character)))),
            other => Ok(other),
        },
    ),
    Builtin::new(
        ".get",
        &["[coll key]", "[coll key default]"],
        "The value of a key of a map, or the item at an index of a list or vector, as in Java.",
        &[("(.get {:a 1} :a)", "1"), ("(.get '(1 2) 0)", "1")],
        |machine, arguments| match &arguments[0] {
            Value::Vector(_) | Value::List(_) | Value::Lazy(_) => super::sequences::ends::nth(machine, arguments),
            Value::Map(_) | Value::Set(_) | Value::Cell(_) => super::maps::get(machine, arguments),
            other => Err(Error::expected("a map, a list or a vector", other).into()),
        },
    ),
    Builtin::new(
        ".getBytes",
        &["[s]", "[s charset]"],
        "The bytes of the text in UTF-8, from -128 to 127, as a vector; `(String. bytes)` is the text again.",
        &[("(.getBytes \"aé\")", "[97 -61 -87]")],
        |machine, arguments| {
            if let Some(charset) = arguments.get(1).filter(|charset| !is_utf_8(charset)) {
                return Err(Error::expected("\"UTF-8\" as the charset", charset).into());
            }
            let text = textual(machine, &arguments[0])?;
            machine.reserve_values(text.len() as u64)?;
            machine.charge(text.len() as u64 / 8)?;
            Ok(Value::vector(text.bytes().map(|byte| Value::Int(i64::from(byte as i8))).collect()))
        },
    ),
    Builtin::new("text-of-bytes*", &["[bytes]"], "The text that bytes are in UTF-8.", &[], |machine, arguments| {
        let mut bytes = Vec::new();
        for item in machine.items(take(arguments, 0))? {
            machine.charge(1)?;
            let number = integer(&item)?;
            // Bytes may be signed, as Java's are.
            match u8::try_from(number).ok().or_else(|| i8::try_from(number).ok().map(|byte| byte as u8)) {
                Some(byte) => bytes.push(byte),
                None => return Err(Error::expected("a byte, from -128 to 255", &item).into()),
            }
        }
        Ok(Value::string(&String::from_utf8_lossy(&bytes)))
    }),
    Builtin::new(
        "into-array",
        &["[coll]", "[type coll]"],
        "The items as a vector; arrays are vectors.",
        &[("(into-array [1 2])", "[1 2]"), ("(into-array String [\"a\"])", "[\"a\"]")],
        |machine, arguments| {
            let items = arguments.last_mut().map(std::mem::take).unwrap_or_default();
            Ok(Value::vector(machine.items(items)?))
        },
    ),
    Builtin::new(
        ".hashCode",
        &["[s]"],
        "Java's hash code of a string; any other value: `hash`.",
        &[("(.hashCode \"abc\")", "96354")],
        hash_code,
    ),
    Builtin::new(
        ".getName",
        &["[x]"],
        "The name of a type, a keyword or a symbol.",
        &[("(.getName (class \"a\"))", "\"java.lang.String\""), ("(.getName :a/b)", "\"b\"")],
        name_of,
    ),
    Builtin::new(
        ".getSimpleName",
        &["[type]"],
        "The name of a type without its package.",
        &[("(.getSimpleName (class \"a\"))", "\"String\"")],
        simple_name,
    ),
];

/// Aliases of methods that exist as functions, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    (".size", "count"),
    (".getOrDefault", "get"),
    (".containsKey", "contains?"),
    (".values", "vals"),
    (".valAt", "get"),
    (".assoc", "assoc"),
    (".cons", "conj"),
    (".seq", "seq"),
    (".count", "count"),
    (".nth", "nth"),
    (".isNaN", "NaN?"),
    (".isInfinite", "infinite?"),
    (".key", "key"),
    (".val", "val"),
    (".getKey", "key"),
    (".toCharArray", "seq"),
    (".stripLeading", "str/triml"),
    (".stripTrailing", "str/trimr"),
    ("to-array", "vec"),
    ("aclone", "vec"),
    ("aget", "nth"),
    ("alength", "count"),
    (".getClass", "type"),
    (".subtract", "-'"),
    (".multiply", "*'"),
    (".negate", "-'"),
    (".mod", "mod"),
    (".gcd", "gcd"),
    (".testBit", "bit-test"),
    (".min", "min"),
    (".max", "max"),
    (".matcher", "re-matcher"),
    (".lines", "str/split-lines"),
    (".toArray", "vec"),
    ("Arrays/asList", "vec"),
    ("Character/compare", ".compareTo"),
    (".subSequence", "subs"),
    (".remainder", "rem"),
    (".abs", "abs"),
    (".intValue", "long"),
    (".longValue", "long"),
    (".doubleValue", "double"),
    ("string-ci=?", ".equalsIgnoreCase"),
    // JavaScript's array methods.
    (".map", "map"),
    (".flatMap", "mapcat"),
    (".filter", "filter"),
    (".findIndex", "position"),
    (".forEach", "for-each"),
    (".some", "some"),
    (".every", "every?"),
    (".includes", ".contains"),
    (".slice", "sublist"),
    (".join", "string-join"),
    ("Pattern/compile", "re-pattern"),
    ("java.util.regex.Pattern/compile", "re-pattern"),
];

/// True for the name of UTF-8.
fn is_utf_8(charset: &Value) -> bool {
    charset.as_str().is_some_and(|name| name.eq_ignore_ascii_case("utf-8") || name.eq_ignore_ascii_case("utf8"))
}

fn contains(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        Value::Set(set) => {
            let set = set.clone();
            let member = machine.key(take(arguments, 1))?;
            Ok(Value::Bool(set.get(&member).is_some()))
        }
        Value::List(_) | Value::Vector(_) | Value::Lazy(_) => {
            let place = place_of_item(machine, take(arguments, 0), &arguments[1], false)?;
            Ok(Value::Bool(place.is_some()))
        }
        _ => Ok(Value::Bool(first_place(machine, arguments)?.is_some())),
    }
}

fn index_of(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let place = match &arguments[0] {
        Value::List(_) | Value::Vector(_) | Value::Lazy(_) => {
            place_of_item(machine, take(arguments, 0), &arguments[1], false)?
        }
        _ => {
            code_point(arguments)?;
            first_place(machine, arguments)?
        }
    };
    Ok(Value::Int(place.unwrap_or(-1)))
}

/// Replaces the code point in `(.indexOf s code)` by its character.
fn code_point(arguments: &mut [Value]) -> Outcome<()> {
    if let Value::Int(_) = arguments[1] {
        arguments[1] = Value::Char(super::characters::character(&arguments[1])?);
    }
    Ok(())
}

fn compare_to(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let difference = match (&arguments[0], &arguments[1]) {
        (Value::Char(a), Value::Char(b)) => Some(i64::from(u32::from(*a)) - i64::from(u32::from(*b))),
        (Value::Str(a), Value::Str(b)) => {
            super::text::pay(machine, a.as_str())?;
            super::text::pay(machine, b.as_str())?;
            Some(text_difference(a.as_str(), b.as_str()))
        }
        _ => None,
    };
    match difference {
        Some(difference) => Ok(Value::Int(difference)),
        None => Ok(Value::Int(compare(machine, &arguments[0], &arguments[1])? as i64)),
    }
}

/// Compares two texts as Java does: the difference of the first UTF-16 units that differ, or of the lengths.
fn text_difference(a: &str, b: &str) -> i64 {
    let (mut left, mut right) = (a.encode_utf16(), b.encode_utf16());
    loop {
        match (left.next(), right.next()) {
            (Some(one), Some(other)) if one == other => {}
            (Some(one), Some(other)) => return i64::from(one) - i64::from(other),
            (None, None) => return 0,
            (Some(_), None) => return 1 + left.count() as i64,
            (None, Some(_)) => return -1 - right.count() as i64,
        }
    }
}

/// Returns the index of the first or last item that equals `wanted`.
fn place_of_item(machine: &mut Machine, collection: Value, wanted: &Value, last: bool) -> Outcome<Option<i64>> {
    let mut items = machine.seq(collection)?;
    let (mut at, mut found) = (0, None);
    while let Some(item) = items.next(machine)? {
        if machine.equal(&item, wanted)? {
            found = Some(at);
            if !last {
                break;
            }
        }
        at += 1;
    }
    Ok(found)
}

/// Compiles a pattern given as a string to a regex, in place.
fn read_pattern(machine: &mut Machine, pattern: &mut Value) -> Outcome<()> {
    if let Value::Str(text) = pattern {
        *pattern = Value::Regex(compile_running(machine, text.clone().as_str())?);
    }
    Ok(())
}

fn split(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    read_pattern(machine, &mut arguments[1])?;
    let text = textual(machine, &arguments[0])?;
    let limit = arguments.get(2).map(integer).transpose()?.unwrap_or(0);
    match &arguments[1] {
        Value::Regex(regex) => split_at(machine, &text, regex, limit),
        other => Err(Error::expected("a regex", other).into()),
    }
}

fn replace_pattern(machine: &mut Machine, arguments: &mut [Value], most: usize) -> Outcome<Value> {
    if let [matcher, replacement] = arguments {
        let (regex, text) = matchers::regex_and_text(machine, matcher)?;
        return replace(machine, &mut [text, regex, std::mem::take(replacement)], most);
    }
    read_pattern(machine, &mut arguments[1])?;
    replace(machine, arguments, most)
}

fn is_empty(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut items = machine.seq(take(arguments, 0))?;
    Ok(Value::Bool(items.next(machine)?.is_none()))
}

fn char_at(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let index = integer(&arguments[1])?;
    let text = match &arguments[0] {
        Value::Str(text) => text.clone(),
        other => Text::from(&*textual(machine, other)?),
    };
    machine.charge(text.finding_effort())?;
    let place = usize::try_from(index).ok().and_then(|index| text.place_of(index));
    match place.and_then(|place| text.as_str()[place..].chars().next()) {
        Some(character) => Ok(Value::Char(character)),
        None => Err(Error::new("IndexOutOfBounds", format!("index {index} is outside of the string")).into()),
    }
}

fn key_set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let map = super::arguments::map(take(arguments, 0))?;
    let mut keys = crate::value::set::Set::default();
    machine.reserve_values(map.len() as u64)?;
    for (key, _) in map.iter() {
        machine.charge(1)?;
        keys.insert(key.clone());
    }
    Ok(Value::Set(std::sync::Arc::new(keys)))
}

fn hash_code(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let Some(own) = object_method(machine, &arguments[0], "hashCode")? {
        return machine.call(&own, arguments);
    }
    if !matches!(arguments[0], Value::Str(_)) {
        return super::equality::hash(machine, arguments);
    }
    let text = textual(machine, &arguments[0])?;
    Ok(Value::Int(i64::from(super::text::java_hash(machine, &text)?)))
}

/// Returns the base name of a type, keyword or symbol; types are symbols with the dots of their packages.
fn name_of(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        named if let Some(name) = named.as_name() => Ok(Value::string(name.base())),
        other => Err(Error::expected("a type, a keyword or a symbol", other).into()),
    }
}

fn simple_name(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        Value::Symbol(name) => Ok(Value::string(name.base().rsplit('.').next().unwrap_or_default())),
        other => Err(Error::expected("a type", other).into()),
    }
}

fn equals_ignore_case(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (Value::Str(_), Value::Str(_)) = (&arguments[0], &arguments[1]) else { return Ok(Value::Bool(false)) };
    let (left, right) = (string(&arguments[0])?, string(&arguments[1])?);
    machine.charge(left.len().min(right.len()) as u64 / 16)?;
    let same = left.chars().flat_map(char::to_lowercase).eq(right.chars().flat_map(char::to_lowercase));
    Ok(Value::Bool(same))
}
