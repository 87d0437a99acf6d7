//! Matchers: a regex's progress through a text, as created by `re-matcher`.
//!
//! A matcher is a cell that holds the regex, the text, the byte offset at which to continue (nil after the last match),
//! the most recent match, and the byte offsets of its groups.

use super::arguments::{take, whole};
use super::regex::{Found, Search, at_start, compile_running, groups, matches};
use super::sequences::questions::find_if;
use super::text::textual;
use crate::error::{Error, Outcome};
use crate::heap::{CellKind, State};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::pattern::Pattern;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "re-matcher",
        &["[regex s]"],
        "A matcher: each `(re-find m)` returns the next match, `(re-groups m)` the last one again. `re-seq` returns \
         all matches at once.",
        &[("(let [m (re-matcher #\"\\d\" \"1 2\")] [(re-find m) (re-find m) (re-find m)])", "[\"1\" \"2\" nil]")],
        matcher,
    ),
    Builtin::new(
        "re-groups",
        &["[matcher]"],
        "The matcher's last match: the text, or a vector of it and its groups.",
        &[("(let [m (re-matcher #\"(\\d)(\\d)\" \"12\")] (re-find m) (re-groups m))", "[\"12\" \"1\" \"2\"]")],
        last_match,
    ),
    Builtin::new(
        ".find",
        &["[matcher]", "[matcher from]", "[coll pred]"],
        "True if the matcher finds another match, or the first one from an index on, available from `re-groups` and \
         `.group`; for a collection, the first item for which `pred` is true, as in JavaScript.",
        &[
            ("(let [m (re-matcher #\"\\d\" \"1\")] [(.find m) (.group m) (.find m)])", "[true \"1\" false]"),
            ("(.find [1 2 3] even?)", "2"),
        ],
        |machine, arguments| match arguments {
            [matcher] => next(machine, matcher).map(|found| Value::Bool(!found.is_nil())),
            [Value::Cell(cell), from] if cell.cell_kind() == CellKind::Matcher => {
                let index = whole(from)?;
                let matcher = take(arguments, 0);
                begin_at(machine, &matcher, index)?;
                next(machine, &matcher).map(|found| Value::Bool(!found.is_nil()))
            }
            _ => find_if(machine, arguments),
        },
    ),
    Builtin::new(
        ".matches",
        &["[s regex]", "[matcher]"],
        "True if the regex, which may be given as a string, or that of a matcher, matches the whole string.",
        &[("(.matches \"ab\" \"a.\")", "true")],
        matches_whole,
    ),
    Builtin::new(
        ".lookingAt",
        &["[matcher]"],
        "True if the regex of a matcher matches at the start of its text; the match is available from `.group`.",
        &[("(.lookingAt (re-matcher #\"a+\" \"aab\"))", "true"), ("(.lookingAt (re-matcher #\"b\" \"ab\"))", "false")],
        looking_at,
    ),
    Builtin::new(
        ".reset",
        &["[matcher]", "[matcher s]"],
        "Makes a matcher begin anew, in another text if one is given; returns the matcher.",
        &[("(let [m (re-matcher #\"a\" \"a\")] [(.find m) (.find m) (.find (.reset m))])", "[true false true]")],
        |machine, arguments| {
            if let Some(text) = arguments.get(1) {
                let text = Value::string(&textual(machine, text)?);
                let content = Content { text, ..content(machine, &arguments[0])? };
                keep(machine, &arguments[0], content)?;
            }
            begin_at(machine, &arguments[0], 0)?;
            Ok(take(arguments, 0))
        },
    ),
    Builtin::new(
        ".group",
        &["[matcher]", "[matcher group]"],
        "The text of the matcher's last match, or of one of its groups, given by its number or name.",
        &[
            ("(let [m (re-matcher #\"a(.)\" \"ab\")] (.find m) [(.group m) (.group m 1)])", "[\"ab\" \"b\"]"),
            ("(let [m (re-matcher #\"(?<day>\\d+)\" \"5th\")] (.find m) (.group m \"day\"))", "\"5\""),
        ],
        group,
    ),
    Builtin::new(
        ".start",
        &["[matcher]", "[matcher group]"],
        "The index at which the matcher's last match, or one of its groups, begins; -1 for a group without a part in it.",
        &[("(let [m (re-matcher #\"b\" \"ab\")] (.find m) (.start m))", "1")],
        |machine, arguments| bound_of(machine, arguments, 0),
    ),
    Builtin::new(
        ".end",
        &["[matcher]", "[matcher group]"],
        "The index behind the matcher's last match, or behind one of its groups.",
        &[("(let [m (re-matcher #\"b\" \"ab\")] (.find m) (.end m))", "2")],
        |machine, arguments| bound_of(machine, arguments, 1),
    ),
    Builtin::new(
        ".groupCount",
        &["[matcher]"],
        "The number of groups in the matcher's regex.",
        &[("(.groupCount (re-matcher #\"(a)(b)\" \"ab\"))", "2")],
        |machine, arguments| {
            let regex = content(machine, &arguments[0])?.regex;
            Ok(Value::Int(group_names(regex.as_str()).len() as i64))
        },
    ),
];

fn matcher(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (regex, text) = (take(arguments, 0), take(arguments, 1));
    if !matches!(regex, Value::Regex(_)) {
        return Err(Error::expected("a regex", &regex).suggest("write a regex as `#\"…\"`").into());
    }
    let text = Value::string(&textual(machine, &text)?);
    let content = Value::vector(vec![regex, text, Value::Int(0), Value::Nil]);
    Ok(Value::Cell(machine.core.heap.allocate(CellKind::Matcher, State::Done(content))))
}

/// The parts of a matcher.
struct Content {
    regex: Arc<Pattern>,
    text: Value,
    /// The byte offset at which to continue; nil after the last match.
    from: Value,
    /// The most recent match, or nil.
    found: Value,
    /// The byte offsets of the match and its groups, two of each; nil before a match.
    places: Value,
}

/// Returns the parts of a matcher.
fn content(machine: &Machine, matcher: &Value) -> Outcome<Content> {
    if let Value::Cell(cell) = matcher
        && cell.cell_kind() == CellKind::Matcher
        && let State::Done(Value::Vector(parts)) = machine.core.heap.state(cell)?
        && let Some([Value::Regex(regex), text @ Value::Str(_), from, found, rest @ ..]) = parts.as_slice()
    {
        let places = rest.first().cloned().unwrap_or_default();
        return Ok(Content {
            regex: regex.clone(),
            text: text.clone(),
            from: from.clone(),
            found: found.clone(),
            places,
        });
    }
    Err(Error::expected("a matcher", matcher).suggest("`(re-matcher #\"…\" s)` makes one").into())
}

/// Returns the regex and the text of a matcher.
///
/// # Errors
/// Returns `TypeError` if the value is not a matcher.
pub fn regex_and_text(machine: &Machine, matcher: &Value) -> Outcome<(Value, Value)> {
    content(machine, matcher).map(|content| (Value::Regex(content.regex), content.text))
}

/// Keeps a match in its matcher, and the byte offset at which the next search begins.
fn keep(machine: &mut Machine, matcher: &Value, content: Content) -> Outcome<()> {
    let Content { regex, text, from, found, places } = content;
    let content = Value::vector(vec![Value::Regex(regex), text, from, found, places]);
    if let Value::Cell(cell) = matcher {
        machine.core.heap.change(cell, State::Done(content))?;
    }
    Ok(())
}

/// Returns the byte offsets of a match and its groups; -1 for a group that took no part in it.
fn places_of(found: &Found<'_, '_>) -> Value {
    let place = |at: usize| found.place(at).map_or([-1, -1], |place| [place.start as i64, place.end as i64]);
    Value::vector((0..found.group_count()).flat_map(place).map(Value::Int).collect())
}

/// Returns the next match of a matcher; nil after the last one.
///
/// # Errors
/// Returns `TypeError` if the value is not a matcher; halts if a resource limit is exceeded.
pub fn next(machine: &mut Machine, matcher: &Value) -> Outcome<Value> {
    let mut content = content(machine, matcher)?;
    let (regex, text) = (content.regex.clone(), content.text.clone());
    (content.found, content.places, content.from) = match content.from {
        Value::Int(from) => {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let mut search = Search::from(&regex, text.as_str().unwrap_or_default(), from);
            let (found, places) = match search.next(machine)? {
                Some(found) => (groups(machine, &found)?, places_of(&found)),
                None => (Value::Nil, Value::Nil),
            };
            (found, places, search.place().map_or(Value::Nil, |at| Value::Int(at as i64)))
        }
        _ => (Value::Nil, Value::Nil, Value::Nil),
    };
    let found = content.found.clone();
    keep(machine, matcher, content)?;
    Ok(found)
}

/// Forgets the match of a matcher, and lets it search from an index on.
fn begin_at(machine: &mut Machine, matcher: &Value, index: i64) -> Outcome<()> {
    let content = content(machine, matcher)?;
    let Value::Str(text) = &content.text else { return Err(crate::eval::internal_error().into()) };
    machine.charge(text.finding_effort())?;
    let Some(place) = usize::try_from(index).ok().and_then(|index| text.place_of(index)) else {
        let message = format!("index {index} is out of range: the text has {} characters", text.count());
        return Err(Error::new("IndexOutOfBounds", message).into());
    };
    let from = Value::Int(place as i64);
    keep(machine, matcher, Content { from, found: Value::Nil, places: Value::Nil, ..content })
}

/// Matches the regex of a matcher at the start of its text.
fn looking_at(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let content = content(machine, &arguments[0])?;
    let (regex, text) = (at_start(machine, &content.regex)?, content.text.clone());
    let mut search = Search::new(&regex, text.as_str().unwrap_or_default());
    let (found, places) = match search.next(machine)? {
        Some(found) => (groups(machine, &found)?, places_of(&found)),
        None => (Value::Nil, Value::Nil),
    };
    let is_found = !found.is_nil();
    let next = || search.place().map_or(Value::Nil, |at| Value::Int(at as i64));
    let from = if is_found { next() } else { content.from.clone() };
    keep(machine, &arguments[0], Content { from, found, places, ..content })?;
    Ok(Value::Bool(is_found))
}

/// True if a regex, or that of a matcher, matches a whole string.
fn matches_whole(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [matcher] = arguments {
        return match_whole(machine, matcher).map(|found| Value::Bool(!found.is_nil()));
    }
    let regex = match take(arguments, 1) {
        Value::Str(text) => compile_running(machine, text.as_str())?,
        Value::Regex(regex) => regex,
        other => return Err(Error::expected("a regex", &other).into()),
    };
    let text = textual(machine, &arguments[0])?;
    Ok(Value::Bool(!matches(machine, &regex, &text)?.is_nil()))
}

/// Matches the whole text of a matcher, as Java's `matches` does; returns the match, or nil.
fn match_whole(machine: &mut Machine, matcher: &Value) -> Outcome<Value> {
    let mut content = content(machine, matcher)?;
    let text = content.text.clone();
    let text = text.as_str().unwrap_or_default();
    let anchored = super::regex::anchored(machine, &content.regex)?;
    let (found, places) = match Search::new(&anchored, text).next(machine)? {
        Some(found) if found.whole() == (0..text.len()) => (groups(machine, &found)?, places_of(&found)),
        _ => (Value::Nil, Value::Nil),
    };
    content.from = if found.is_nil() { Value::Int(0) } else { Value::Int(text.len() as i64) };
    (content.found, content.places) = (found.clone(), places);
    keep(machine, matcher, content)?;
    Ok(found)
}

fn last_match(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let found = content(machine, &arguments[0])?.found;
    if found.is_nil() {
        return Err(Error::new("IllegalState", "the matcher has found no match")
            .suggest("`(re-find m)` looks for the next one, and gives nil where there is none")
            .into());
    }
    Ok(found)
}

/// Returns the groups of the most recent match, the whole match first, or none if there is no match; `None` if the
/// value is not a matcher.
pub fn last_groups(machine: &Machine, value: &Value) -> Option<Vec<Value>> {
    if !matches!(value, Value::Cell(_)) {
        return None;
    }
    match content(machine, value).ok()?.found {
        Value::Nil => Some(Vec::new()),
        Value::Vector(groups) => Some(groups.iter().cloned().collect()),
        text => Some(vec![text]),
    }
}

/// Returns the number of the group in `(.group m group)`: 0, the whole match, if none is given.
fn group_number(machine: &Machine, arguments: &[Value]) -> Outcome<i64> {
    match arguments.get(1) {
        None => Ok(0),
        Some(Value::Str(name)) => {
            let regex = content(machine, &arguments[0])?.regex;
            let names = group_names(regex.as_str());
            match names.iter().position(|known| *known == Some(name.as_str())) {
                Some(at) => Ok(at as i64 + 1),
                None => {
                    let message = format!("the regex has no group named `{}`", super::text::excerpt(name.as_str()));
                    Err(Error::new("IllegalArgument", message).suggest("a group is named by `(?<name>…)`").into())
                }
            }
        }
        Some(number) => Ok(whole(number)?),
    }
}

/// Returns the names of the groups of a regex, in order; `None` for a group without a name.
fn group_names(regex: &str) -> Vec<Option<&str>> {
    let mut names = Vec::new();
    let (mut rest, mut in_class) = (regex, 0_usize);
    while let Some(first) = rest.chars().next() {
        let mut after = &rest[first.len_utf8()..];
        match first {
            '\\' if after.starts_with('Q') => after = after.split_once("\\E").map_or("", |(_, after)| after),
            '\\' => after = after.chars().next().map_or("", |escaped| &after[escaped.len_utf8()..]),
            '[' => in_class += 1,
            ']' => in_class = in_class.saturating_sub(1),
            '(' if in_class == 0 => match after.strip_prefix("?<").or_else(|| after.strip_prefix("?P<")) {
                Some(named) => names.push(named.split_once('>').map(|(name, _)| name)),
                None if after.starts_with('?') => {}
                None => names.push(None),
            },
            _ => {}
        }
        rest = after;
    }
    names
}

/// Returns the index at which a group begins (`side` 0) or ends (1).
fn bound_of(machine: &mut Machine, arguments: &mut [Value], side: usize) -> Outcome<Value> {
    let number = group_number(machine, arguments)?;
    last_match(machine, arguments)?;
    let Content { text, places, .. } = content(machine, &arguments[0])?;
    let Value::Str(text) = text else { return Ok(Value::Nil) };
    machine.charge(text.finding_effort())?;
    let at = usize::try_from(number).ok().map(|number| 2 * number + side);
    match (&places, at) {
        (Value::Vector(places), Some(at)) => match places.get(at) {
            Some(Value::Int(place)) => {
                let place = usize::try_from(*place).ok().filter(|place| text.as_str().is_char_boundary(*place));
                Ok(Value::Int(place.map_or(-1, |place| text.index_at(place) as i64)))
            }
            _ => Err(no_group(number).into()),
        },
        _ => Err(no_group(number).into()),
    }
}

#[cold]
fn no_group(number: i64) -> Error {
    Error::new("IndexOutOfBounds", format!("the match has no group {number}"))
}

fn group(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let index = group_number(machine, arguments)?;
    match last_match(machine, arguments)? {
        Value::Vector(groups) => match usize::try_from(index).ok().and_then(|at| groups.get(at)) {
            Some(group) => Ok(group.clone()),
            None => Err(no_group(index).into()),
        },
        text if index == 0 => Ok(text),
        _ => Err(no_group(index).into()),
    }
}
