//! Texts in messages and listings.

use std::borrow::Cow;

/// Truncates a text to `most` characters and marks the truncation.
pub(in crate::server) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Truncates a text to `most` bytes and marks the truncation.
pub(in crate::server) fn cut_bytes(text: &str, most: usize) -> Cow<'_, str> {
    match text.len() > most {
        true => Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(most)])),
        false => Cow::Borrowed(text),
    }
}

/// Puts a text on one line, truncated to fit into a listing.
pub(in crate::server) fn one_line(text: &str) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), 200)
}

/// True for a character that a symbol cannot contain.
pub(in crate::server) fn is_unreadable(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "()[]{}\"'`~@^;,/\\#".contains(c)
}
