//! The values that the description of an argument names: `one of open, closed`. A schema with an enumeration is checked
//! by the host; one that only describes its values in words is not, and a tool may silently find nothing for others.
//!
//! Descriptions are prose, so a list counts as complete only if a phrase introduces it as such or if it has the form
//! `a|b|c`. All its items must be single words or quoted strings, and the description must not mention other values,
//! examples, or several values in one string. Other lists after a colon or in parentheses may be examples: for these,
//! only a misspelt value gets a note.

use crate::error::suggest::closest;
use crate::foreign_text;
use crate::value::Value;
use crate::value::function::{NamedValues, ToolFunction};
use serde_json::Value as Json;

/// Maximum length of a description that is examined, in bytes.
const LOOKED_AT: usize = 2_000;
/// Maximum length of a value, in bytes, and maximum number of values of a list.
const LONGEST: usize = 60;
const MOST: usize = 40;
/// Maximum number of items of an argument that are compared.
const ITEMS: usize = 100;
/// Maximum number of values shown in a note.
const SHOWN: usize = 8;

/// Phrases that introduce a complete list of values, in lower case.
const LEADS: [&str; 13] = [
    "one of",
    "allowed values are",
    "allowed values",
    "available values are",
    "available values",
    "possible values are",
    "possible values",
    "valid options are",
    "valid options",
    "valid values are",
    "valid values",
    "accepted values",
    "supported values",
];

/// Phrases that introduce a complete list only if its values are quoted. Otherwise they may introduce kinds of values.
const QUOTED_LEADS: [&str; 6] = ["either", "must be", "can be", "may be", "options", "values"];

/// Words that say that other values are possible as well, or that the list is about something else.
#[rustfmt::skip]
const OPEN: [&str; 41] = [
    "e.g", "i.e", "example", "such as", "like", "etc", "...", "…", "including", " any", "other", "custom", "more",
    "not ", "n't ", "except", "unless", "prefix", "suffix", "leading", "append", "followed", "separated", "delimited",
    "multiple", "several", "combin", "mask", "flags", "insensitive", "at least", "at most", "provide",
    "empty", "omit", "blank", "wildcard", "*", "pattern", "alias", "deprecated",
];

/// Words that name kinds of values, such as `id or name`, or types.
#[rustfmt::skip]
const KINDS: [&str; 40] = [
    "array", "base64", "body", "boolean", "branch", "byte", "cidr", "date", "domain", "email", "file", "filename",
    "float", "hex", "id", "integer", "ip", "iso", "key", "latitude", "longitude", "name", "null", "number", "object",
    "path", "phone", "ref", "regex", "selector", "sha", "slug", "string", "text", "timestamp", "title", "uri", "url",
    "username", "uuid",
];

/// Returns a note on each argument of a call whose value is none of those that its description names.
pub(super) fn unnamed(tool: &ToolFunction, arguments: &Value) -> Vec<String> {
    let Value::Map(arguments) = arguments else { return Vec::new() };
    let named = tool.named.get_or_init(|| named_values(&tool.tool.input_schema));
    let note = |named: &NamedValues| {
        let value = arguments.iter().find(|(key, _)| key.as_text() == Some(&named.argument))?.1;
        let items = value.as_block().unwrap_or(std::slice::from_ref(value));
        let other = items.iter().take(ITEMS).filter_map(shown).find(|value| !named.values.contains(value))?;
        let meant = named.values.iter().find(|known| known.eq_ignore_ascii_case(&other)).map(String::as_str);
        // Texts that differ in a digit are different names.
        let is_word = other.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | ' '));
        let similar = || closest(&other, named.values.iter().map(String::as_str)).filter(|_| is_word);
        let meant = meant.or_else(similar);
        if meant.is_none() && !named.is_complete {
            return None;
        }
        let list: Vec<String> = named.values.iter().take(SHOWN).map(|value| format!("{value:?}")).collect();
        let more = if named.values.len() > SHOWN { ", …" } else { "" };
        let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
        Some(format!(
            "{} of {} is {other:?}, but its description names only {}{more}{meant}",
            foreign_text::argument(&named.argument),
            foreign_text::qualified(&tool.server, &tool.name),
            list.join(", "),
        ))
    };
    named.iter().filter_map(note).collect()
}

/// Returns the text of a value that could be in a list: a word, or an integer. A text with other characters may be
/// several values, or an expression.
fn shown(value: &Value) -> Option<String> {
    let is_word = |text: &str| {
        !text.is_empty()
            && text.len() <= LONGEST
            && text.starts_with(char::is_alphanumeric)
            && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
    };
    match value {
        Value::Str(text) if is_word(text.as_str()) => Some(text.as_str().to_owned()),
        Value::Keyword(_) => value.as_text().filter(|text| is_word(text)).map(str::to_owned),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the arguments whose values a schema names in words.
fn named_values(schema: &Json) -> Box<[NamedValues]> {
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else { return Box::default() };
    let named = |(argument, schema): (&String, &Json)| {
        let (values, is_complete) = values_of(schema)?;
        Some(NamedValues { argument: argument.clone(), values, is_complete })
    };
    properties.iter().filter_map(named).collect()
}

/// Returns the values that a schema names in words, and whether these are all; `None` if it names none, has other rules,
/// or has a default or an example that is not among them.
fn values_of(schema: &Json) -> Option<(Vec<String>, bool)> {
    const RULES: [&str; 9] = ["enum", "const", "pattern", "format", "anyOf", "oneOf", "allOf", "$ref", "not"];
    let item = schema.get("items").unwrap_or(schema);
    let both = [schema, item];
    if both.iter().any(|schema| RULES.iter().any(|rule| schema.get(rule).is_some())) {
        return None;
    }
    let description = schema.get("description").or_else(|| item.get("description"))?.as_str()?;
    let (values, is_complete) = listed(&description[..description.floor_char_boundary(LOOKED_AT)])?;
    let is_number = |value: &String| value.bytes().all(|byte| byte.is_ascii_digit());
    let takes = |kind: &str| item.get("type").is_some_and(|given| given == kind);
    let fits = if takes("integer") || takes("number") { values.iter().all(is_number) } else { takes("string") };
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = both.iter().flat_map(|schema| {
        let examples = schema.get("examples").and_then(Json::as_array).into_iter().flatten();
        examples.chain(schema.get("default")).chain(schema.get("example"))
    });
    let is_listed = |given: &Json| given.is_null() || given.is_array() || values.contains(&text(given));
    (fits && given.into_iter().all(is_listed)).then_some((values, is_complete))
}

/// The marks around a value.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Finds the one list of values in a description, and whether it is introduced as complete.
fn listed(description: &str) -> Option<(Vec<String>, bool)> {
    // Only ASCII letters change, so that places are the same in both.
    let lower = description.to_ascii_lowercase();
    if OPEN.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let mut lists = Vec::new();
    for sentence in description.split(". ").flat_map(|sentence| sentence.split(['\n', ';'])) {
        let sentence = sentence.trim().trim_end_matches('.');
        let lower = sentence.to_ascii_lowercase();
        let after = |lead: &str| {
            let at = lower.find(lead)?;
            let is_apart = !lower[..at].ends_with(char::is_alphanumeric);
            let rest = &sentence[at + lead.len()..];
            (is_apart && rest.starts_with([' ', ':', '('])).then(|| rest.trim_start_matches([' ', ':']))
        };
        let quoted = |rest: &&str| rest.starts_with(QUOTES);
        let introduced = LEADS.iter().filter_map(|lead| after(lead));
        let introduced = introduced.chain(QUOTED_LEADS.iter().filter_map(|lead| after(lead)).filter(quoted));
        let introduced = introduced.filter_map(items).max_by_key(Vec::len);
        // `Sort order: asc|desc`, `Status: "open" or "closed"`, and `Status (open, closed)`.
        let tail = sentence.rsplit_once(": ").map_or(sentence, |(_, tail)| tail);
        let inner = sentence.strip_suffix(')').and_then(|text| text.rsplit_once('(')).map(|(_, inner)| inner);
        let is_choice = tail.contains('|')
            && !tail.contains(',')
            && (tail.starts_with(QUOTES) || !tail.contains(' ') && tail.to_lowercase() == tail);
        let alone = || [Some(tail), inner].into_iter().flatten().find_map(items).map(|list| (list, is_choice));
        lists.extend(introduced.map(|list| (list, true)).or_else(alone));
    }
    let [(values, _)] = &lists[..] else { return None };
    let is_kind = |value: &String| KINDS.contains(&value.to_lowercase().trim_end_matches('s'));
    let is_known = |quoted: &str| values.iter().any(|value| value == quoted);
    let quoted = description.split(['"', '`']).skip(1).step_by(2).all(is_known);
    (quoted && !values.iter().any(is_kind)).then(|| lists.swap_remove(0))
}

/// Splits `a, b or c`, `"a" | "b"` and `(a, b)` into the values; `None` unless the whole text is a list of at least two
/// single words, or of texts in quotes.
fn items(text: &str) -> Option<Vec<String>> {
    let mut values: Vec<String> = Vec::new();
    let mut rest = text.trim_start_matches('(').trim_end_matches(')');
    let is_quoted = rest.starts_with(QUOTES);
    loop {
        rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| QUOTES.contains(c));
        if quote.is_some() != is_quoted || values.len() == MOST {
            return None;
        }
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
        let separated = rest.strip_prefix(',').or_else(|| rest.strip_prefix('|'));
        let separated = separated.or_else(|| rest.strip_prefix('/').filter(|_| is_quoted));
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
        let cases: [(&str, &[&str]); 20] = [
            ("One of open, closed, all.", &["open", "closed", "all"]),
            ("Filter by state; one of: open, closed or all", &["open", "closed", "all"]),
            ("The status. Must be one of \"new\", \"in progress\", or \"done\".", &["new", "in progress", "done"]),
            ("asc|desc", &["asc", "desc"]),
            ("Sort order: asc|desc", &["asc", "desc"]),
            ("Possible values: low, normal, high", &["low", "normal", "high"]),
            ("Possible values are low, normal and high.", &["low", "normal", "high"]),
            ("Level (one of low, high)", &["low", "high"]),
            ("Page size, one of 10, 25, 50", &["10", "25", "50"]),
            ("Allowed values: (a, b)", &["a", "b"]),
            ("Valid values: IN_TRANSIT, DELIVERED.\nThe default is all of them.", &["IN_TRANSIT", "DELIVERED"]),
            ("Must be one of: x, y", &["x", "y"]),
            ("Supported values: `json` | `csv`", &["json", "csv"]),
            ("\"open\" | \"closed\"", &["open", "closed"]),
            ("The order: 'asc'|'desc'", &["asc", "desc"]),
            ("Either \"asc\" or \"desc\".", &["asc", "desc"]),
            ("The order. Must be 'asc' or 'desc'", &["asc", "desc"]),
            ("Can be `day`, `week` or `month`.", &["day", "week", "month"]),
            ("Valid options: fast, slow", &["fast", "slow"]),
            ("Required. One of: open, closed", &["open", "closed"]),
        ];
        for (description, values) in cases {
            let (found, is_complete) = listed(description).unwrap_or_default();
            assert_eq!(
                (found.iter().map(String::as_str).collect(), is_complete),
                (values.to_vec(), true),
                "{description}"
            );
        }
        let weak = [
            "Status: `open` or `closed`",
            "\"day\", \"week\" or \"month\"",
            "Unit: 'kg'/'lb'",
            "Status: open, closed or all",
            "Only tickets in this status (open, closed, all).",
        ];
        for description in weak {
            assert!(!listed(description).expect("a list").1, "{description}");
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
            "Must be http or https",
            "Must be PNG or JPEG",
            "Must be owner/repo",
            "Either a name or an e-mail address",
            "Org identifier (either id or slug)",
            "Must not be \"root\" or \"admin\"",
            "Folder: inbox, sent, drafts and your own folders",
            "Fields like \"name\", \"size\"",
            "One of open, closed. For archived ones: one of old, older",
            "Id of the user or \"me\"",
            "\"me\" for yourself",
            "'primary' or email",
            "Query, as from:ann|bob subject:x",
            "Values of the row",
            "Bind values: strings, numbers or booleans",
            "Sizes including \"s\", \"m\"",
            "1 or more platforms, comma-separated. Possible values: DESK, PHON, TBLT",
            "Space-separated scopes. Allowed values: read, write, admin",
            "Bit mask: one of 1, 2, 4",
            "One of email or phone",
            "One of URL, base64, path",
            "branch|tag|sha",
            "Type: string|null",
            "string | number",
            "Latitude|longitude",
            "One of open, closed. Case-insensitive.",
            "One of open, closed. Use * for all.",
            "One of open, closed. Use \"all\" to include both.",
            "One of open, closed. Omit for both.",
            "One of open, closed. Leave empty for all.",
            "One of name, date. Append :desc to reverse.",
            "One of name, date. Use a leading - for descending.",
            "One of debug, error, or custom",
            "One of us, eu, and others",
            "One of low, high, other",
            "At least one of: title, body",
            "Provide one of: id, handle",
            "Required with one of name, path",
            "Labels: \"bug\", \"feature\", ...",
            "\u{130} one of\u{212b}",
            "Ein Wert: Größe oder Höhe",
        ] {
            assert_eq!(listed(description), None, "{description}");
        }
    }
}
