//! The values that the description of an argument names: `one of open, closed`. A schema with an enumeration is checked
//! by the host; one that only describes its values in words is not, and a tool may silently find nothing for others.

use crate::error::suggest::closest;
use crate::foreign_text;
use crate::host::Tool;
use crate::value::Value;
use serde_json::Value as Json;

/// Maximum length of a description that is examined, in bytes, and of a value that is compared.
const LOOKED_AT: usize = 2_000;
const LONGEST: usize = 60;

/// Maximum number of values shown in a note.
const SHOWN: usize = 8;

/// What introduces a complete list of values, in lower case.
const LEADS: [&str; 12] = [
    "one of",
    "either",
    "allowed values",
    "allowed values are",
    "possible values",
    "possible values are",
    "valid values",
    "valid values are",
    "accepted values",
    "supported values",
    "values",
    "must be",
];

/// Words that say that other values are possible as well, or that the list is about something else.
const OPEN: [&str; 16] = [
    "e.g",
    "i.e",
    "example",
    "such as",
    "like",
    "etc",
    "...",
    "…",
    "including",
    "or any",
    "any other",
    "not ",
    "except",
    "unless",
    "prefix",
    "combination",
];

/// Returns a note on each argument of a call whose value is none of those that its description names.
pub(super) fn unnamed(tool: &Tool, arguments: &Value) -> Vec<String> {
    let Value::Map(arguments) = arguments else { return Vec::new() };
    let Some(properties) = tool.input_schema.get("properties").and_then(Json::as_object) else { return Vec::new() };
    let note = |(key, value): (&Value, &Value)| {
        let name = key.as_text()?;
        let schema = properties.get(name)?;
        let named = named_values(schema)?;
        let values = match value {
            Value::Vector(items) => items.iter().filter_map(shown).collect(),
            value => Vec::from_iter(shown(value)),
        };
        let is_named = |value: &String| named.iter().any(|known| known == value);
        let other = values.into_iter().find(|value| !is_named(value))?;
        let meant = named.iter().find(|known| known.eq_ignore_ascii_case(&other)).map(String::as_str);
        let is_word = other.contains(char::is_alphabetic);
        let similar = || closest(&other, named.iter().map(String::as_str)).filter(|_| is_word);
        let meant = meant.or_else(similar);
        let list: Vec<String> = named.iter().take(SHOWN).map(|value| format!("{value:?}")).collect();
        let more = if named.len() > SHOWN { ", …" } else { "" };
        let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        Some(format!(
            "{} of {} is {other:?}, but its description names only {}{more}{meant}",
            foreign_text::argument(name),
            foreign_text::qualified(&tool.server, &tool.name),
            list.join(", "),
        ))
    };
    arguments.iter().filter_map(note).collect()
}

/// Returns the text of a value that can be in a list: a string or an integer.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Str(text) if text.as_str().len() <= LONGEST => Some(text.as_str().to_owned()),
        Value::Keyword(_) => value.as_text().map(str::to_owned),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the values that a schema names in words; `None` if it names none, or has other rules.
fn named_values(schema: &Json) -> Option<Vec<String>> {
    const RULES: [&str; 9] = ["enum", "const", "pattern", "format", "anyOf", "oneOf", "allOf", "$ref", "not"];
    let item = schema.get("items").unwrap_or(schema);
    if [schema, item].iter().any(|schema| RULES.iter().any(|rule| schema.get(rule).is_some())) {
        return None;
    }
    let description = schema.get("description").or_else(|| item.get("description"))?.as_str()?;
    listed(&description[..description.floor_char_boundary(LOOKED_AT)])
}

/// Finds the one complete list of values in a description.
fn listed(description: &str) -> Option<Vec<String>> {
    let lower = description.to_lowercase();
    if OPEN.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let mut lists = Vec::new();
    for sentence in description.split(". ").flat_map(|sentence| sentence.split(['\n', ';'])) {
        let sentence = sentence.trim().trim_end_matches('.');
        let lower = sentence.to_lowercase();
        if lower.len() != sentence.len() {
            continue;
        }
        let after = |lead: &&str| {
            let at = lower.find(*lead)?;
            let is_apart = !lower[..at].ends_with(char::is_alphanumeric);
            let rest = &sentence[at + lead.len()..];
            (is_apart && rest.starts_with([' ', ':', '('])).then(|| rest.trim_start_matches([' ', ':']))
        };
        let mut rests: Vec<&str> = LEADS.iter().filter_map(after).collect();
        // `Status: "open" or "closed"`, and `open|closed`.
        let tail = sentence.rsplit_once(": ").map_or(sentence, |(_, tail)| tail);
        let is_marked = tail.starts_with(['"', '\'', '`']) || tail.contains('|');
        rests.extend(is_marked.then_some(tail));
        let found = rests.into_iter().filter_map(items).max_by_key(Vec::len);
        lists.extend(found);
    }
    match &mut lists[..] {
        [only] => Some(std::mem::take(only)),
        _ => None,
    }
}

/// Splits `a, b or c`, `"a" | "b"` and `(a/b)` into the values; `None` unless the whole text is a list of at least two
/// single words, or of texts in quotes.
fn items(text: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = text.trim_start_matches('(').trim_end_matches(')');
    loop {
        rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
        let (value, after) = match quote {
            Some(quote) => rest[1..].split_once(quote)?,
            None => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        if value.is_empty() || value.len() > LONGEST || values.iter().any(|known| known == value) {
            return None;
        }
        values.push(value.to_owned());
        rest = after.trim_start();
        if rest.is_empty() {
            return (values.len() >= 2).then_some(values);
        }
        let separated = rest.strip_prefix(',').or_else(|| rest.strip_prefix('|')).or_else(|| rest.strip_prefix('/'));
        let rest_of = separated.map(str::trim_start).unwrap_or(rest);
        let joined = ["or ", "and "].iter().find_map(|word| rest_of.strip_prefix(word));
        rest = joined.or(separated)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_lists_of_values_are_found() {
        let cases: [(&str, &[&str]); 16] = [
            ("One of open, closed, all.", &["open", "closed", "all"]),
            ("Filter by state; one of: open, closed or all", &["open", "closed", "all"]),
            ("The status. Must be \"new\", \"in progress\", or \"done\".", &["new", "in progress", "done"]),
            ("asc|desc", &["asc", "desc"]),
            ("Sort order: asc|desc", &["asc", "desc"]),
            ("Status: `open` or `closed`", &["open", "closed"]),
            ("Either 'summary' or 'full'.", &["summary", "full"]),
            ("Possible values: low, normal, high", &["low", "normal", "high"]),
            ("Possible values are low, normal and high.", &["low", "normal", "high"]),
            ("Level (one of low/high)", &["low", "high"]),
            ("Page size, one of 10, 25, 50", &["10", "25", "50"]),
            ("Allowed values: (a, b)", &["a", "b"]),
            ("Valid values: IN_TRANSIT, DELIVERED.\nThe default is all of them.", &["IN_TRANSIT", "DELIVERED"]),
            ("\"day\", \"week\" or \"month\"", &["day", "week", "month"]),
            ("The unit. Values: kg, lb", &["kg", "lb"]),
            ("Must be one of: x, y", &["x", "y"]),
        ];
        for (description, values) in cases {
            assert_eq!(listed(description).unwrap_or_default(), values, "{description}");
        }
    }

    #[test]
    fn other_descriptions_name_no_complete_list() {
        for description in [
            "",
            "The state, e.g. open, closed",
            "The status of the ticket, such as \"open\" or \"closed\"",
            "One of the statuses of the board",
            "One of open, closed, or any custom state",
            "Search text; searches subject, body and tags",
            "Must be a valid e-mail address",
            "Must be before the end",
            "Either a name or an e-mail address",
            "Must not be \"root\" or \"admin\"",
            "Folder: inbox, sent, drafts and your own folders",
            "Fields like \"name\", \"size\"",
            "One of open, closed. For archived ones: one of old, older",
            "Id of the user or \"me\"",
            "\"me\" for yourself",
            "Query, as from:ann|bob subject:x",
            "Values of the row",
            "Sizes including \"s\", \"m\"",
        ] {
            assert_eq!(listed(description), None, "{description}");
        }
    }
}
