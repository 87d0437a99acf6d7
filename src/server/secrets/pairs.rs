//! Values with the name of a secret: `name=value`, `name: value`, `--name value`, and fields of JSON.

use percent_encoding::percent_decode_str;
use serde_json::{Deserializer, Value};

use super::names::names_a_secret;

/// Options whose value is a user with a password, as for `curl` and others.
const USERS: &[&str] =
    &["-u", "-U", "--user", "--userpwd", "--proxy-user", "--auth", "--basic", "--basic-auth", "--login"];

/// `password=…`, `--api-key=…`, `?token=…`, `Password=…;`.
pub(super) fn assignments(text: &str, found: &mut Vec<String>) {
    for (at, _) in text.match_indices('=') {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        // Comparisons, arrows, and base64 padding.
        if behind.starts_with(['=', '>']) || before.ends_with(['=', '!', ':', '<']) {
            continue;
        }
        let name = last_name(before);
        if names_a_secret(name) {
            let value = behind.trim_start_matches([' ', '\t']);
            value_of(value, |c| c.is_whitespace() || matches!(c, '&' | ';'), found);
        } else if is_user_option(name) {
            user(first(behind, char::is_whitespace), found);
        }
    }
    // The value may contain characters that end a value elsewhere.
    if let Some((name, value)) = text.split_once('=')
        && !name.contains(|c: char| c.is_whitespace() || "&;?,:".contains(c))
        && names_a_secret(name)
    {
        given(value, found);
    }
}

/// `Authorization: …` at the start of an argument, and `"password": "…"` or `password: …` anywhere.
pub(super) fn members(text: &str, found: &mut Vec<String>) {
    for (at, _) in text.match_indices(':') {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        let name = last_name(before);
        if name.is_empty() || behind.starts_with("//") || !names_a_secret(name) {
            continue;
        }
        let start = &before[..name.as_ptr() as usize - before.as_ptr() as usize];
        let start = start.trim_end_matches(['"', '\'', '\\', ' ', '\t', '-']);
        let is_first = start.is_empty() || start.ends_with(['\n', '\r']);
        let is_quoted = before.ends_with(['"', '\'']);
        if !(is_quoted || (is_first && !is_version(behind)) || behind.starts_with([' ', '\t'])) {
            continue;
        }
        if is_first {
            given(first(behind, |c| matches!(c, '\n' | '\r')), found);
        }
        value_of(behind.trim_start(), |c| c.is_whitespace() || matches!(c, ';' | '}'), found);
    }
}

/// `--token VALUE` and `-u user:password` inside a command, and `password VALUE` as in `.netrc`.
pub(super) fn words(text: &str, found: &mut Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_netrc = words.iter().any(|word| matches!(*word, "machine" | "login"));
    for pair in words.windows(2) {
        let (name, value) = (pair[0].trim_matches(['"', '\'']), pair[1]);
        if name.starts_with('-') {
            found.extend(behind_option(name, value));
        } else if !name.contains(['=', ':']) && (is_netrc || (words.len() == 2 && is_made_up(value))) {
            let is_password = matches!(&*name.to_lowercase(), "password" | "passwd" | "pass" | "pwd" | "requirepass");
            if is_password {
                given(value, found);
            }
        }
    }
}

/// Returns the credentials in the word after an option: the whole word if the option has the name of a secret.
pub(in crate::server) fn behind_option(option: &str, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    if option.starts_with('-') && !option.contains(['=', ' ']) && !word.starts_with('-') {
        if names_a_secret(option) {
            given(word, &mut found);
        }
        if is_user_option(option) {
            user(word, &mut found);
        }
    }
    found
}

fn is_user_option(option: &str) -> bool {
    USERS.contains(&option)
}

/// `user:password` as the value of an option. The numeric ids of a user and a group are not credentials.
fn user(text: &str, found: &mut Vec<String>) {
    let text = text.trim_matches(['"', '\'']);
    let Some((name, password)) = text.split_once(':') else { return };
    let are_ids = [name, password].iter().all(|id| id.bytes().all(|c| c.is_ascii_digit()));
    if !password.is_empty() && !password.starts_with("//") && name != password && !are_ids {
        found.extend([password.to_owned(), text.to_owned()]);
    }
}

/// Fields of JSON with the name of a secret, entries of a list of names with values, and credentials inside other
/// strings. The JSON may follow other text, such as `--config=`.
pub(super) fn json(text: &str, found: &mut Vec<String>) {
    let Some(start) = text.find(['{', '[']) else { return };
    if let Some(Ok(value)) = Deserializer::from_str(&text[start..]).into_iter::<Value>().next() {
        fields(&value, found);
    }
}

fn fields(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if names_a_secret(name) {
                    scalars(value, found);
                }
                fields(value, found);
            }
            // `{"name": "API_KEY", "value": "…"}`
            let of = |names: [&str; 5]| members.iter().find(|(name, _)| names.contains(&&*name.to_lowercase()));
            if let Some((_, Value::String(name))) = of(["name", "key", "header", "variable", "field"])
                && let Some((_, value)) = of(["value", "val", "content", "data", "text"])
                && names_a_secret(name)
            {
                scalars(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        // The string is shorter than the text that contains it, so the recursion terminates.
        Value::String(text) => found.extend(super::recognition::written_out(text)),
        _ => {}
    }
}

/// The texts and numbers of a field, including those of a list.
fn scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => given(text, found),
        Value::Number(number) => given(&number.to_string(), found),
        Value::Array(items) => items.iter().filter(|item| !item.is_array()).for_each(|item| scalars(item, found)),
        _ => {}
    }
}

/// Returns the name at the end of a text, without a closing quotation mark or bracket.
fn last_name(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '\t']).trim_end_matches(['"', '\'', '\\', ']']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '%');
    text.rfind(|c| !is_name(c)).map_or(text, |at| &text[at + text[at..].chars().next().map_or(1, char::len_utf8)..])
}

/// Extracts the value at the beginning of a text: up to its closing quotation mark or brace, or else to a delimiter. A
/// character that may either end the value or belong to it yields two candidates.
fn value_of(text: &str, is_end: fn(char) -> bool, found: &mut Vec<String>) {
    let text = text.trim_start_matches('\\');
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '{')) {
        let close = if quote == '{' { '}' } else { quote };
        given(first(&text[1..], |c| c == close).trim_end_matches('\\'), found);
        return;
    }
    let value = first(text, |c| is_end(c) || matches!(c, '"' | '\''));
    let shorter = first(value, |c| matches!(c, ',' | '?' | '#' | ')' | ']' | '}' | '|'));
    given(value, found);
    if shorter.len() < value.len() {
        given(shorter, found);
    }
}

/// Returns the text before the first character of a kind.
fn first(text: &str, is_end: impl Fn(char) -> bool) -> &str {
    &text[..text.find(is_end).unwrap_or(text.len())]
}

/// Adds a value with the name of a secret.
fn given(value: &str, found: &mut Vec<String>) {
    let value = value.trim().trim_matches(['"', '\'']);
    if !value.is_empty() {
        found.push(value.to_owned());
        found.extend(percent_decode_str(value).decode_utf8().ok().filter(|text| text != value).map(|text| text.into()));
        // `Bearer TOKEN`: the token alone is secret as well.
        found.extend(value.split_once(' ').map(|(_, rest)| rest.trim().to_owned()));
    }
}

/// Returns whether a text is not a plain word: it contains a digit or a sign.
fn is_made_up(text: &str) -> bool {
    text.contains(|c: char| !c.is_alphabetic())
}

/// Returns whether the text begins with a port, or with the version of an image whose name resembles that of a secret.
fn is_version(text: &str) -> bool {
    let rest = text.trim_start_matches('v').trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(['.', '/'])
}
