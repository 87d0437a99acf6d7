//! Texts in messages and listings.

use std::borrow::Cow;

pub(in crate::server) use lispbox_policy::internal::cut;

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
