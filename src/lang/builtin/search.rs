//! Searching, splitting and replacing text in strings.

use super::arguments::{integer, string, take};
use super::regex::{Found, Search, compile_running, groups};
use super::text::{Builder, ask_for_copy, byte_of, excerpt, index_of_byte, pay, spelled, textual};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::pattern::Pattern;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "str/includes?",
        &["[s part]"],
        "True if the string contains `part`.",
        &[("(str/includes? \"hello\" \"ell\")", "true")],
        |machine, arguments| test(machine, arguments, |text, part| find(text, part).is_some()),
    ),
    Builtin::new(
        "str/starts-with?",
        &["[s part]"],
        "True if the string starts with `part`.",
        &[("(str/starts-with? \"hello\" \"he\")", "true")],
        |machine, arguments| test(machine, arguments, |text, part| text.starts_with(part)),
    ),
    Builtin::new(
        "str/ends-with?",
        &["[s part]"],
        "True if the string ends with `part`.",
        &[("(str/ends-with? \"hello\" \"lo\")", "true")],
        |machine, arguments| test(machine, arguments, |text, part| text.ends_with(part)),
    ),
    Builtin::new(
        "str/index-of",
        &["[s part]", "[s part from]"],
        "The index of the first occurrence of `part` (at or after `from`), or nil.",
        &[("(str/index-of \"hello\" \"l\")", "2"), ("(str/index-of \"hello\" \"x\")", "nil")],
        |machine, arguments| Ok(first_place(machine, arguments)?.map_or(Value::Nil, Value::Int)),
    ),
    Builtin::new(
        "str/last-index-of",
        &["[s part]", "[s part from]"],
        "The index of the last occurrence of `part` (at or before `from`), or nil.",
        &[("(str/last-index-of \"hello\" \"l\")", "3")],
        |machine, arguments| Ok(last_place(machine, arguments)?.map_or(Value::Nil, Value::Int)),
    ),
    Builtin::new(
        "str/split",
        &["[s separator]", "[s separator limit]"],
        "Splits at the matches of a regex or string; trailing empty parts are dropped unless a limit is given.",
        &[
            ("(str/split \"a,b,c\" #\",\")", "[\"a\" \"b\" \"c\"]"),
            ("(str/split \"a,b,,\" \",\")", "[\"a\" \"b\"]"),
            ("(str/split \"a,b,c\" #\",\" 2)", "[\"a\" \"b,c\"]"),
        ],
        split,
    ),
    Builtin::new(
        "str/split-lines",
        &["[s]"],
        "The lines of the string.",
        &[("(str/split-lines \"a\\nb\\r\\nc\")", "[\"a\" \"b\" \"c\"]")],
        split_lines,
    ),
    Builtin::new(
        "string-split",
        &["[s]", "[s separator]"],
        "Splits into words at whitespace, or at a separator.",
        &[("(string-split \" a  b \")", "[\"a\" \"b\"]"), ("(string-split \"a,b\" \",\")", "[\"a\" \"b\"]")],
        split_words,
    ),
    Builtin::new(
        "str/replace",
        &["[s match replacement]"],
        "Replaces every match of a string, character or regex with a string (`$1` is a group) or the result of a \
         function.",
        &[
            ("(str/replace \"a.b.c\" \".\" \"-\")", "\"a-b-c\""),
            ("(str/replace \"a1b2\" #\"(\\d)\" \"<$1>\")", "\"a<1>b<2>\""),
            ("(str/replace \"ab\" #\"[a-z]\" str/upper-case)", "\"AB\""),
        ],
        |machine, arguments| replace(machine, arguments, usize::MAX),
    ),
    Builtin::new(
        "str/replace-first",
        &["[s match replacement]"],
        "Like `str/replace`, but the first match only.",
        &[("(str/replace-first \"aa\" \"a\" \"b\")", "\"ba\"")],
        |machine, arguments| replace(machine, arguments, 1),
    ),
    Builtin::new(
        "str/re-quote-replacement",
        &["[s]"],
        "Escapes `$` and `\\`, so that the string is a literal regex replacement.",
        &[("(str/re-quote-replacement \"$1\")", "\"\\\\$1\"")],
        quote_replacement,
    ),
];

/// Java's names and those of other Lisps.
pub const ALIASES: &[(&str, &str)] = &[
    ("str/contains?", "str/includes?"),
    ("includes?", "str/includes?"),
    ("string-contains?", "str/includes?"),
    ("string-contains", "str/includes?"),
    ("starts-with?", "str/starts-with?"),
    ("ends-with?", "str/ends-with?"),
    (".startsWith", "str/starts-with?"),
    (".endsWith", "str/ends-with?"),
    ("split-lines", "str/split-lines"),
    ("string-replace", "str/replace"),
    (".replace", "str/replace"),
    ("Matcher/quoteReplacement", "str/re-quote-replacement"),
];

fn test(machine: &mut Machine, arguments: &[Value], holds: fn(&str, &str) -> bool) -> Outcome<Value> {
    let text = spelled(machine, &arguments[0])?;
    let part = textual(machine, &arguments[1])?;
    Ok(Value::Bool(holds(&text, &part)))
}

/// Returns the byte offset of the first occurrence of `part`. Uses a vectorized search that does not check the
/// deadline.
fn find(text: &str, part: &str) -> Option<usize> {
    memchr::memmem::find(text.as_bytes(), part.as_bytes())
}

/// Returns the character index of the first occurrence of a substring, for `(index-of s part from)`.
pub(super) fn first_place(machine: &mut Machine, arguments: &[Value]) -> Outcome<Option<i64>> {
    let from = arguments.get(2).map(integer).transpose()?.unwrap_or(0).max(0);
    if let Value::Str(text) = &arguments[0] {
        let part = textual(machine, &arguments[1])?;
        machine.charge(text.finding_effort())?;
        let behind = |place: usize| text.as_str().get(place..).unwrap_or_default();
        let from = usize::try_from(from).ok().and_then(|from| text.place_of(from)).unwrap_or(text.as_str().len());
        let found = find(behind(from), &part);
        machine.charge(found.unwrap_or(behind(from).len()) as u64 / 64)?;
        return Ok(found.map(|at| text.index_at(from + at) as i64));
    }
    let text = spelled(machine, &arguments[0])?;
    let part = textual(machine, &arguments[1])?;
    let from = byte_of(&text, from as u64).unwrap_or(text.len());
    Ok(find(&text[from..], &part).map(|at| index_of_byte(&text, from + at)))
}

/// Returns the character index of the last occurrence of a substring, for `(last-index-of s part from)`.
pub(super) fn last_place(machine: &mut Machine, arguments: &[Value]) -> Outcome<Option<i64>> {
    let text = spelled(machine, &arguments[0])?;
    let part = textual(machine, &arguments[1])?;
    let end = match arguments.get(2).map(integer).transpose()? {
        Some(from) if from < 0 => return Ok(None),
        // The match may start at `from`, so it may end up to its length after `from`.
        Some(from) => {
            let end = byte_of(&text, from as u64).unwrap_or(text.len()).saturating_add(part.len()).min(text.len());
            (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
        }
        None => text.len(),
    };
    Ok(text[..end].rfind(&*part).map(|at| index_of_byte(&text, at)))
}

fn split(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = textual(machine, &arguments[0])?;
    let regex = separator(machine, &arguments[1])?;
    let limit = arguments.get(2).map(integer).transpose()?.unwrap_or(0);
    split_at(machine, &text, &regex, limit)
}

/// Converts a separator to a regex; a string or character matches literally.
fn separator(machine: &mut Machine, value: &Value) -> Outcome<Arc<Pattern>> {
    match value {
        Value::Regex(regex) => Ok(regex.clone()),
        Value::Str(_) | Value::Char(_) => {
            let literal = textual(machine, value)?;
            compile_running(machine, &regex_syntax::escape(&literal))
        }
        other => Err(Error::expected("a regex or a string to split at", other).into()),
    }
}

/// Splits a text at the matches of a regex, with the semantics of Java's `split`.
///
/// # Errors
/// Returns an error if a limit is exceeded.
pub(super) fn split_at(machine: &mut Machine, text: &str, regex: &Pattern, limit: i64) -> Outcome<Value> {
    let mut search = Search::new(regex, text);
    ask_for_copy(machine, text, 1)?;
    // Capacity for the words of a short text; more might be wasted.
    let mut parts = Vec::with_capacity((text.len() / 6).min(8));
    let mut from = 0;
    while let Some(found) = search.next_place(machine)? {
        if limit > 0 && parts.len() as i64 >= limit - 1 {
            break;
        }
        // An empty match at the very beginning does not split.
        if found.end == 0 {
            continue;
        }
        parts.push(Value::string(&text[from..found.start]));
        machine.grown(parts.len())?;
        from = found.end;
    }
    if parts.is_empty() {
        return Ok(Value::vector(vec![Value::string(text)]));
    }
    parts.push(Value::string(&text[from..]));
    if limit == 0 {
        while parts.last().is_some_and(|last| last.as_str() == Some("")) {
            parts.pop();
        }
    }
    Ok(Value::vector(parts))
}

fn split_lines(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = textual(machine, &arguments[0])?;
    let regex = compile_running(machine, "\r?\n")?;
    split_at(machine, &text, &regex, 0)
}

fn split_words(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        return split(machine, arguments);
    }
    let text = textual(machine, &arguments[0])?;
    ask_for_copy(machine, &text, 1)?;
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        machine.charge(1)?;
        words.push(Value::string(word));
        machine.grown(words.len())?;
    }
    Ok(Value::vector(words))
}

/// The replacement for a match.
enum Replacement {
    /// A literal text.
    Text(String),
    /// A template with group references, such as `<$1>`.
    Template(String),
    /// A function or a map applied to the match.
    Function(Value),
}

/// Replaces up to `most` matches.
pub(super) fn replace(machine: &mut Machine, arguments: &mut [Value], most: usize) -> Outcome<Value> {
    let (text, pattern, replacement) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    let text = spelled(machine, &text)?;
    let replacement = match replacement {
        Value::Str(_) | Value::Char(_) => {
            let replacement = textual(machine, &replacement)?.into_owned();
            if matches!(pattern, Value::Regex(_)) && replacement.contains(['$', '\\']) {
                Replacement::Template(replacement)
            } else {
                Replacement::Text(replacement)
            }
        }
        function if function.is_function() || matches!(function, Value::Map(_) | Value::Keyword(_)) => {
            Replacement::Function(function)
        }
        other => return Err(Error::expected("a string or a function as replacement", &other).into()),
    };
    match &pattern {
        Value::Regex(regex) => replace_regex(machine, &text, regex, &replacement, most),
        Value::Str(_) | Value::Char(_) => {
            let part = textual(machine, &pattern)?;
            replace_literal(machine, &text, &part, &replacement, most)
        }
        other => Err(Error::expected("a string, a character or a regex to replace", other).into()),
    }
}

fn replace_literal(
    machine: &mut Machine,
    text: &str,
    part: &str,
    replacement: &Replacement,
    most: usize,
) -> Outcome<Value> {
    let mut builder = Builder::default();
    let finder = memchr::memmem::Finder::new(part);
    let mut from = 0;
    // An empty substring matches before each character and at the end.
    let mut next = Some(0);
    for _ in 0..most {
        let found = next.and_then(|next| finder.find(&text.as_bytes()[next..]).map(|at| next + at));
        let Some(at) = found else { break };
        machine.charge(1)?;
        let behind = at + part.len();
        next = match part.is_empty() {
            true => text[at..].chars().next().map(|passed| at + passed.len_utf8()),
            false => Some(behind),
        };
        builder.push(machine, &text[from..at])?;
        match replacement {
            Replacement::Text(text) | Replacement::Template(text) => builder.push(machine, text)?,
            Replacement::Function(function) => {
                let made = machine.call1(function, Value::string(part))?;
                builder.push_value(machine, &made)?;
            }
        }
        from = behind;
    }
    builder.push(machine, &text[from..])?;
    Ok(builder.finish())
}

/// Replaces up to `most` matches of a regex.
fn replace_regex(
    machine: &mut Machine,
    text: &str,
    regex: &Pattern,
    replacement: &Replacement,
    most: usize,
) -> Outcome<Value> {
    let mut search = Search::new(regex, text);
    let mut builder = Builder::default();
    let mut from = 0;
    for _ in 0..most {
        if let Replacement::Text(replacement) = replacement {
            let Some(whole) = search.next_place(machine)? else { break };
            builder.push(machine, &text[from..whole.start])?;
            builder.push(machine, replacement)?;
            from = whole.end;
            continue;
        }
        let Some(found) = search.next(machine)? else { break };
        let whole = found.whole();
        builder.push(machine, &text[from..whole.start])?;
        match replacement {
            Replacement::Text(text) => builder.push(machine, text)?,
            Replacement::Template(template) => expand(machine, &mut builder, template, regex, &found)?,
            Replacement::Function(function) => {
                let matched = groups(machine, &found)?;
                let made = machine.call1(function, matched)?;
                builder.push_value(machine, &made)?;
            }
        }
        from = whole.end;
    }
    builder.push(machine, &text[from..])?;
    Ok(builder.finish())
}

/// Appends a template with its group references expanded, with Java's syntax: `$1`, `${name}`, and `\` to escape a
/// character.
fn expand(
    machine: &mut Machine,
    builder: &mut Builder,
    template: &str,
    regex: &Pattern,
    found: &Found<'_, '_>,
) -> Outcome<()> {
    let mut rest = template;
    while let Some(at) = rest.find(['$', '\\']) {
        machine.charge(1)?;
        builder.push(machine, &rest[..at])?;
        let escaped = rest[at..].starts_with('\\');
        rest = &rest[at + 1..];
        if escaped {
            let literal = rest.chars().next().map_or(0, char::len_utf8);
            builder.push(machine, &rest[..literal])?;
            rest = &rest[literal..];
            continue;
        }
        let group = if let Some((name, behind)) = rest.strip_prefix('{').and_then(|named| named.split_once('}')) {
            rest = behind;
            let number = regex.compiled().group(name).ok_or_else(|| no_such_group(template))?;
            found.get(number)
        } else {
            let (number, length) = group_number(rest, found.group_count()).ok_or_else(|| no_such_group(template))?;
            rest = &rest[length..];
            found.get(number)
        };
        builder.push(machine, group.unwrap_or_default())?;
    }
    builder.push(machine, rest)
}

#[cold]
fn no_such_group(template: &str) -> Error {
    Error::new("IndexOutOfBounds", format!("`{}` names a group that the regex does not have", excerpt(template)))
        .suggest("the groups are `$1` and so on, one for each bracket; `\\\\$` is a dollar sign")
}

/// Parses the group number at the start of a text: the longest run of digits that denotes an existing group. Returns
/// the number and its length.
fn group_number(text: &str, count: usize) -> Option<(usize, usize)> {
    let mut number = 0;
    let mut length = 0;
    for digit in text.chars().map_while(|c| c.to_digit(10)) {
        let longer = number * 10 + digit as usize;
        if longer >= count {
            break;
        }
        number = longer;
        length += 1;
    }
    (length > 0).then_some((number, length))
}

fn quote_replacement(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = string(&arguments[0])?;
    pay(machine, text)?;
    ask_for_copy(machine, text, 3)?;
    Ok(Value::string(&text.replace('\\', "\\\\").replace('$', "\\$")))
}
