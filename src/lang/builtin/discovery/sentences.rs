//! Short forms of descriptions: the first sentence of a tool's, and the remark that matters of an argument's.

use super::shape::cut;
use crate::foreign_text;

/// Maximum length of a remark, in characters.
const REMARK: usize = 40;

/// Maximum length of a description that is examined, in bytes.
const LOOKED_AT: usize = 4_000;

/// Words behind whose full stop a sentence continues.
const ABBREVIATIONS: [&str; 38] = [
    "al", "approx", "art", "ca", "cf", "co", "dept", "dr", "ed", "est", "excl", "ext", "fig", "govt", "inc", "incl",
    "jr", "lat", "lon", "ltd", "max", "min", "mr", "mrs", "ms", "nr", "no", "nos", "pp", "prof", "resp", "sec", "sr",
    "st", "tel", "ver", "vol", "vs",
];

/// Words that mark what a value must look like, in lower case and in the singular.
const TELLING: [&str; 31] = [
    "address",
    "ascii",
    "base64",
    "cent",
    "cron",
    "e-mail",
    "e.g.",
    "email",
    "epoch",
    "etag",
    "for example",
    "format",
    "formatted",
    "i.e.",
    "in days",
    "in hours",
    "in minutes",
    "in seconds",
    "iana",
    "iso",
    "json",
    "markdown",
    "milliseconds",
    "one of",
    "percent",
    "regex",
    "rfc",
    "separated",
    "such as",
    "utc",
    "uuid",
];

/// Words that mark bounds, where there is a number too.
const BOUNDING: [&str; 9] =
    ["at least", "at most", "between", "max", "maximum", "min", "minimum", "no more than", "up to"];

/// Returns the first sentence of a description, without its full stop.
pub fn first_sentence(description: &str) -> String {
    let lines = foreign_text::lines(beginning(description));
    let line = lines.into_iter().map(|line| line.trim().to_string()).find(|line| !line.is_empty()).unwrap_or_default();
    let end = sentence_end(&line);
    line[..end].trim_end().trim_end_matches(['.', '。']).to_string()
}

/// Returns the part of an argument's description that says what its values look like: `an e-mail address`, `max 100`.
/// Returns `None` if no part does.
pub fn remark(description: &str) -> Option<String> {
    let text = foreign_text::line(beginning(description));
    let parts = clauses(&text);
    let telling = parts.into_iter().find(|part| is_telling(part))?;
    let plain = telling.trim_matches(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':' | '(' | ')'));
    let start = ["an ", "a ", "the ", "An ", "A ", "The "].iter().find_map(|article| plain.strip_prefix(article));
    Some(cut(lowered(&as_example(start.unwrap_or(plain))), REMARK))
}

/// Writes `For example, x` and `e.g., x` as `e.g. x`.
fn as_example(remark: &str) -> String {
    let introductions = ["for example", "e.g."];
    let lower = remark.to_ascii_lowercase();
    match introductions.iter().find(|words| lower.starts_with(**words)) {
        Some(words) => format!("e.g. {}", remark[words.len()..].trim_start_matches([',', ':', ' '])),
        None => remark.to_string(),
    }
}

/// Writes the first word in lower case if it has its capital letter only because it begins a sentence.
fn lowered(remark: &str) -> String {
    let word = remark.split([' ', ':', ',']).next().unwrap_or_default();
    if OPENING.contains(&word) { remark[..1].to_ascii_lowercase() + &remark[1..] } else { remark.to_string() }
}

/// Words that begin remarks and are no names.
const OPENING: [&str; 24] = [
    "Amount",
    "As",
    "At",
    "Between",
    "Comma-separated",
    "Date",
    "Day",
    "Either",
    "Email",
    "For",
    "Format",
    "In",
    "Max",
    "Maximum",
    "Min",
    "Minimum",
    "Must",
    "Number",
    "One",
    "Only",
    "Optional",
    "Percent",
    "Such",
    "Up",
];

/// Maximum length of a list that is kept together, in bytes.
const LISTS: usize = 100;

/// Phrases that introduce an example or a format: the text is not split directly after them.
const INTRODUCING: [&str; 4] = ["e.g", "i.e", "for example", "format"];

/// Phrases that introduce a list: the text is not split after them at all.
const LISTING: [&str; 3] = ["one of", "such as", "values"];

fn is_telling(clause: &str) -> bool {
    let clause = clause.to_lowercase();
    let is_apart = |at: usize, mark: &str| {
        let rest = &clause[at + mark.len()..];
        let rest = rest.strip_prefix("es").or_else(|| rest.strip_prefix('s')).unwrap_or(rest);
        let is_letter = |c: char| c.is_alphanumeric();
        !clause[..at].ends_with(is_letter) && !rest.starts_with(is_letter)
    };
    let contains = |mark: &&str| clause.match_indices(*mark).any(|(at, _)| is_apart(at, mark));
    let has_number = clause.contains(|c: char| c.is_ascii_digit());
    clause.contains("yyyy") || TELLING.iter().any(&contains) || (has_number && BOUNDING.iter().any(contains))
}

/// Returns the part of a description that is examined.
fn beginning(description: &str) -> &str {
    let description = description.trim_start();
    &description[..description.floor_char_boundary(LOOKED_AT)]
}

/// Returns the end of the first sentence of a line, its punctuation included.
fn sentence_end(line: &str) -> usize {
    for (at, mark) in line.char_indices() {
        let after = at + mark.len_utf8();
        let rest = &line[after..];
        match mark {
            '。' => return after,
            '.' | '!' | '?' if rest.starts_with(char::is_whitespace) => {}
            _ => continue,
        }
        let starts_anew = rest.trim_start().chars().next().is_some_and(|next| !next.is_lowercase());
        if starts_anew && (mark != '.' || ends_sentence(&line[..at])) {
            return after;
        }
    }
    line.len()
}

/// True unless the last word before a full stop is an abbreviation or the number of an item. `etc.` ends a
/// sentence: what follows it starts anew, as the caller has checked.
fn ends_sentence(before: &str) -> bool {
    let start = before
        .rfind(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"'))
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let word = &before[start..];
    let is_letter = |part: &str| part.chars().count() == 1 && part.starts_with(char::is_alphabetic);
    let has_dots = word.contains('.') && word.split('.').all(is_letter);
    let is_item = start == 0 && word.bytes().all(|byte| byte.is_ascii_digit());
    !(has_dots || is_item || ABBREVIATIONS.contains(&word.to_lowercase().as_str()))
}

/// Splits a text into sentences and these at parentheses, semicolons, dashes and commas, except within numbers.
fn clauses(text: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (sentence, more) = rest.split_at(sentence_end(rest));
        let mut start = 0;
        for (at, mark) in sentence.char_indices() {
            let next = &sentence[at + mark.len_utf8()..];
            let splits = match mark {
                '(' | ')' | ';' | '–' | '—' => true,
                ',' | ':' => next.starts_with(' ') && !introduces(&sentence[start..at]),
                '-' => next.starts_with(' ') && sentence[..at].ends_with(' '),
                _ => false,
            };
            if splits {
                clauses.push(&sentence[start..at]);
                start = at + mark.len_utf8();
            }
        }
        clauses.push(&sentence[start..]);
        rest = more;
    }
    clauses
}

/// True if what follows the beginning of a clause belongs to it: an example, or the items of a list.
fn introduces(before: &str) -> bool {
    let before = before[before.ceil_char_boundary(before.len().saturating_sub(LISTS))..].to_ascii_lowercase();
    let before = before.trim_end_matches(['.', ':', ' ']);
    INTRODUCING.iter().any(|words| before.ends_with(words)) || LISTING.iter().any(|words| before.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_not_cut_at_an_abbreviation_or_a_version() {
        let whole = [
            "Finds tickets by state, e.g. open ones",
            "Finds tickets, i.e. Issues and tasks",
            "Lists mails, files etc. of a folder",
            "Runs on v1.2 and 3.0 of the API",
            "Returns approx. 20 items, max. 50 per page",
            "Books a room in the U.S. Embassy",
            "Compares A vs. B",
            "Sees Dr. Who",
            "Asks what? and why",
            "Reads a.b.c without more",
        ];
        for text in whole {
            assert_eq!(first_sentence(text), text);
            assert_eq!(first_sentence(&format!("{text}. Then more.")), text);
            assert_eq!(first_sentence(&format!("\n  {text}.\nThen more.")), text);
        }
        let cut = [
            ("Lists mails, files etc. The newest come first.", "Lists mails, files etc"),
            ("Is it there? Says so.", "Is it there?"),
            ("Supports version 2. Use it.", "Supports version 2"),
            ("1. Find it. 2. Take it.", "1. Find it"),
            ("メールを探す。次に読む。", "メールを探す"),
            ("Sends it. `to` is needed.", "Sends it"),
            ("", ""),
            (".", ""),
        ];
        for (text, first) in cut {
            assert_eq!(first_sentence(text), first, "{text}");
        }
    }

    #[test]
    fn a_remark_is_what_says_how_values_look() {
        let cases = [
            ("The sender's e-mail address.", Some("sender's e-mail address")),
            ("Whom to write to; each an email address", Some("each an email address")),
            ("Start of the range (ISO 8601, inclusive).", Some("ISO 8601")),
            ("Page size, max 100.", Some("max 100")),
            ("Number of items to return. At most 1,000 per page.", Some("at most 1,000 per page")),
            ("Amount in cents", Some("amount in cents")),
            ("The message id, for example msg-0042", Some("e.g. msg-0042")),
            ("The key. For example SUP-1001.", Some("e.g. SUP-1001")),
            ("The key. For example, SUP-1001.", Some("e.g. SUP-1001")),
            ("The key (for example: SUP-1001)", Some("e.g. SUP-1001")),
            ("The key (e.g., SUP-1001)", Some("e.g. SUP-1001")),
            ("The day. Format: YYYY-MM-DD", Some("format: YYYY-MM-DD")),
            ("The state. One of: open, closed", Some("one of: open, closed")),
            ("A field such as: a, b", Some("field such as: a, b")),
            ("The year (i.e., YYYY)", Some("i.e., YYYY")),
            ("É. Größe: e.g. ß, é", Some("e.g. ß")),
            ("Maximum number of items to return", None),
            ("Day as YYYY-MM-DD", Some("day as YYYY-MM-DD")),
            ("State of the ticket, e.g. open", Some("e.g. open")),
            ("The search text", None),
            ("The percentile of isolation", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(remark(text).as_deref(), expected, "{text}");
        }
        let long = remark(&format!("An e-mail address {}", "x".repeat(100))).expect("it tells");
        assert_eq!(long.chars().count(), REMARK + 1);
    }
}
