//! Matchers: a regex's progress through a text, as created by `re-matcher`.
//!
//! A matcher is a cell that holds the regex, the text, the byte offset at which to continue (nil after the last match),
//! and the most recent match.

use super::arguments::{take, whole};
use super::regex::{Search, groups};
use super::sequences::questions::find_if;
use super::text::textual;
use crate::error::{Error, Outcome};
use crate::heap::{CellKind, State};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

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
        &["[matcher]", "[coll pred]"],
        "True if the matcher finds another match, available from `re-groups` and `.group`; for a collection, the first \
         item for which `pred` is true, as in JavaScript.",
        &[
            ("(let [m (re-matcher #\"\\d\" \"1\")] [(.find m) (.group m) (.find m)])", "[true \"1\" false]"),
            ("(.find [1 2 3] even?)", "2"),
        ],
        |machine, arguments| match arguments {
            [matcher] => next(machine, matcher).map(|found| Value::Bool(!found.is_nil())),
            _ => find_if(machine, arguments),
        },
    ),
    Builtin::new(
        ".group",
        &["[matcher]", "[matcher index]"],
        "The text of the matcher's last match, or of one of its groups.",
        &[("(let [m (re-matcher #\"a(.)\" \"ab\")] (.find m) [(.group m) (.group m 1)])", "[\"ab\" \"b\"]")],
        group,
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

/// Returns the four parts of a matcher.
fn content(machine: &Machine, matcher: &Value) -> Outcome<[Value; 4]> {
    if let Value::Cell(cell) = matcher
        && cell.cell_kind() == CellKind::Matcher
        && let State::Done(Value::Vector(parts)) = machine.core.heap.state(cell)?
        && let Some([regex @ Value::Regex(_), text @ Value::Str(_), from, found]) = parts.as_slice()
    {
        return Ok([regex.clone(), text.clone(), from.clone(), found.clone()]);
    }
    Err(Error::expected("a matcher", matcher).suggest("`(re-matcher #\"…\" s)` makes one").into())
}

/// Returns the next match of a matcher; nil after the last one.
///
/// # Errors
/// Returns `TypeError` if the value is not a matcher; halts if a resource limit is exceeded.
pub fn next(machine: &mut Machine, matcher: &Value) -> Outcome<Value> {
    let [Value::Regex(regex), Value::Str(text), from, _] = content(machine, matcher)? else { return Ok(Value::Nil) };
    let (found, goes_on_from) = match from {
        Value::Int(from) => {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let mut search = Search::from(&regex, text.as_str(), from);
            let found = match search.next(machine)? {
                Some(found) => groups(machine, &found)?,
                None => Value::Nil,
            };
            (found, search.place().map_or(Value::Nil, |at| Value::Int(at as i64)))
        }
        _ => (Value::Nil, Value::Nil),
    };
    let content = Value::vector(vec![Value::Regex(regex), Value::Str(text), goes_on_from, found.clone()]);
    if let Value::Cell(cell) = matcher {
        machine.core.heap.change(cell, State::Done(content))?;
    }
    Ok(found)
}

fn last_match(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let [.., found] = content(machine, &arguments[0])?;
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
    match content(machine, value).ok()? {
        [.., Value::Nil] => Some(Vec::new()),
        [.., Value::Vector(groups)] => Some(groups.iter().cloned().collect()),
        [.., text] => Some(vec![text]),
    }
}

fn group(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let index = arguments.get(1).map(whole).transpose()?.unwrap_or(0);
    match last_match(machine, arguments)? {
        Value::Vector(groups) => match usize::try_from(index).ok().and_then(|at| groups.get(at)) {
            Some(group) => Ok(group.clone()),
            None => Err(Error::new("IndexOutOfBounds", format!("the match has no group {index}")).into()),
        },
        text if index == 0 => Ok(text),
        _ => Err(Error::new("IndexOutOfBounds", format!("the match has no group {index}")).into()),
    }
}
