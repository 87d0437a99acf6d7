//! The references to environment variables that Gemini CLI expands: `$NAME`, `${NAME}`, and on Windows `%NAME%`.
//!
//! A name in capitals is a reference for certain: if the variable is not set, the server is not used, since it would get
//! the name in place of a credential. Any other name may be part of a password, so that it stays as it is if there is no
//! such variable, as in Gemini CLI.

use serde_json::Value;

/// Rewrites the references in all texts of a value as ours.
pub(super) fn rewrite(value: &mut Value) {
    match value {
        Value::String(text) => *text = rewritten(text),
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        Value::Object(fields) => fields.values_mut().for_each(rewrite),
        _ => {}
    }
}

fn rewritten(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['$', '%']) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let name = &after[1..][..name_length(&after[1..])];
        let is_variable = name.starts_with(|first: char| !first.is_ascii_digit());
        let length = if !is_variable {
            // `${…}` is ours as well.
            let end = after.strip_prefix("${").and_then(|inside| inside.find('}')).map_or(1, |end| end + 3);
            out.push_str(&after[..end]);
            end
        } else if after.starts_with('$') {
            out.push_str(&if is_in_capitals(name) { format!("${{{name}}}") } else { format!("${{{name}:-${name}}}") });
            1 + name.len()
        } else if after[1 + name.len()..].starts_with('%') && is_in_capitals(name) {
            out.push_str(&format!("${{{name}:-%{name}%}}"));
            2 + name.len()
        } else {
            out.push_str(&after[..1]);
            1
        };
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

fn name_length(text: &str) -> usize {
    text.find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_')).unwrap_or(text.len())
}

fn is_in_capitals(name: &str) -> bool {
    name.len() > 1 && !name.contains(|sign: char| sign.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_ours_afterwards() {
        for (theirs, ours) in [
            ("$TOKEN", "${TOKEN}"),
            ("Bearer $MY_TOKEN2", "Bearer ${MY_TOKEN2}"),
            ("${TOKEN}/${A:-b}$HOME", "${TOKEN}/${A:-b}${HOME}"),
            ("pa$word", "pa${word:-$word}"),
            ("pa$$w0rd", "pa$${w0rd:-$w0rd}"),
            ("costs $5", "costs $5"),
            ("%APPDATA%\\x", "${APPDATA:-%APPDATA%}\\x"),
            ("100% of 5%", "100% of 5%"),
            ("a%20b%2F", "a%20b%2F"),
            ("$", "$"),
            ("${", "${"),
        ] {
            assert_eq!(rewritten(theirs), ours);
        }
    }
}
