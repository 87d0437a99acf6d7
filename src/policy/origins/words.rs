//! The words of the user.

use super::urls;

/// Returns whether the user has said a text, as whole words of one of these texts in lowercase.
pub(super) fn is_said(words: &[String], value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    // White space around words is no part of them.
    if value.is_empty() || value.starts_with(char::is_whitespace) || value.ends_with(char::is_whitespace) {
        return false;
    }
    let is_bound = |next: Option<char>| next.is_none_or(|c| !c.is_alphanumeric());
    words.iter().any(|words| {
        words.match_indices(&value).any(|(at, found)| {
            let (before, after) = (&words[..at], &words[at + found.len()..]);
            let is_whole = is_bound(before.chars().next_back()) && is_bound(after.chars().next());
            is_whole && !is_inside(before, found, after) && !has_port(found, after)
        })
    })
}

/// Returns whether a text is the middle of a longer token, such as an account or an address: `example.org` of
/// `ann@example.org`.
fn is_inside(before: &str, text: &str, after: &str) -> bool {
    let joins = |c: char| matches!(c, '@' | '-' | '_' | '+');
    let is_before = before.chars().next_back().is_some_and(joins)
        || before.ends_with('.') && before[..before.len() - 1].ends_with(char::is_alphanumeric);
    let mut rest = after.chars();
    let is_after = match rest.next() {
        Some(c) if joins(c) => rest.next().is_some_and(char::is_alphanumeric),
        Some('.') => rest.next().is_some_and(char::is_alphanumeric),
        _ => false,
    };
    is_before || is_after || is_end_of_address(before, text) || is_start_of_address(before, text, after)
}

/// Returns whether a character joins the words of an address before its `@`: one of atext (RFC 5322) or a dot.
fn joins_address(c: char) -> bool {
    matches!(
        c,
        '!' | '#'
            | '$'
            | '%'
            | '&'
            | '\''
            | '*'
            | '+'
            | '-'
            | '/'
            | '='
            | '?'
            | '^'
            | '_'
            | '`'
            | '{'
            | '|'
            | '}'
            | '~'
            | '.'
    )
}

/// Returns whether an address is the end of a longer one, as `bob@example.org` is of `o'bob@example.org`. A sign without
/// a word before it is a quote or a bullet.
fn is_end_of_address(before: &str, text: &str) -> bool {
    let word = before.trim_end_matches(joins_address);
    text.contains('@') && word.len() < before.len() && word.ends_with(char::is_alphanumeric)
}

/// Returns the whole address in a text of a tool of which a token may be the end: `o'bob@example.org` for
/// `bob@example.org` in it. What stands behind the sign of a pair or of a column, as in `to=bob@example.org`, is whole.
pub(super) fn whole_address<'t>(text: &'t str, token: &'t str) -> &'t str {
    // A token that is put together, such as `@example.org`, does not stand in the text.
    let at = (token.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let Some(before) = text.get(..at).filter(|_| text.get(at..at + token.len()) == Some(token)) else { return token };
    if before.ends_with(['=', '&', '?', '#', '|']) || !is_end_of_address(before, token) {
        return token;
    }
    let rest = before.trim_end_matches(|c: char| c.is_alphanumeric() || joins_address(c));
    &text[rest.len()..at + token.len()]
}

/// Returns whether a text is the start of an address, as `ann` is of `ann/bob@example.org`. The host of a URL is none.
fn is_start_of_address(before: &str, text: &str, after: &str) -> bool {
    let rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || joins_address(c));
    let joined = &after[..after.len() - rest.len()];
    !text.contains('@')
        && !before.ends_with("//")
        && rest.starts_with('@')
        && joined.starts_with(joins_address)
        && joined.contains(char::is_alphanumeric)
}

/// Returns whether a host is followed by a port: it is another host then.
fn has_port(host: &str, after: &str) -> bool {
    let is_port = after.strip_prefix(':').is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit()));
    is_port && host.contains('.') && urls::bare_host(host).is_some()
}
