//! Texts in messages and listings.

/// Truncates a text to `most` characters and marks the truncation.
pub(in crate::server) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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
