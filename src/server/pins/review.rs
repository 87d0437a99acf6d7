//! The review of changed and new tools by a person.

use serde_json::Value;

use crate::lang::internal::foreign_text;
use crate::server::config::Pinning;
use crate::server::quarantine::{DeclaredTexts, declared};

use super::declaration::Declaration;
use super::diff::{self, DiffLine};
use super::record::{Change, Pin, Record, passes};

/// Length of the digest that is shown, in hexadecimal digits.
const DIGEST: usize = 16;

/// A tool that was changed since it was pinned, or that is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// The name of the server.
    pub server: String,
    /// The name of the tool.
    pub tool: String,
    /// The beginning of the digest of the declaration that is not accepted.
    pub digest: String,
    /// True for a tool that the server did not have when it was first seen.
    pub is_new: bool,
    /// True if calls of the tool fail until the change is accepted.
    pub is_held: bool,
    /// The quarantine rules that match in the declaration that is not accepted.
    pub suspicions: Vec<String>,
    /// The parts that differ, each with its lines: `title`, `description`, `arguments`, `result`, `annotations`.
    pub parts: Vec<(String, Vec<DiffLine>)>,
}

/// Returns the changes and new tools of a server that no person has reviewed.
pub(super) fn all(server: &str, record: &Record, mode: Pinning) -> Vec<Review> {
    let mut checked = DeclaredTexts::default();
    let of_pin = |pin: &Pin| {
        let before = &pin.declaration;
        match (&pin.change, pin.is_new) {
            (Some(Change { declaration, digest, .. }), is_new) => {
                let is_held = !passes(before, declaration, mode, &mut checked);
                Some(review(server, (!is_new).then_some(before), (declaration, digest), is_held, &mut checked))
            }
            (None, true) => Some(review(server, None, (before, &pin.digest), false, &mut checked)),
            (None, false) => None,
        }
    };
    record.tools.values().filter_map(of_pin).collect()
}

/// Returns the review of a declaration, which has this digest, beside the one that is accepted, if there is one.
fn review(
    server: &str,
    before: Option<&Declaration>,
    (after, digest): (&Declaration, &str),
    is_held: bool,
    checked: &mut DeclaredTexts,
) -> Review {
    let empty = Declaration::unknown(&after.name);
    let parts = before.unwrap_or(&empty).parts().into_iter().zip(after.parts());
    let differing = parts.filter(|((_, before), (_, after))| before != after);
    let parts = differing.map(|((word, before), (_, after))| {
        let lines = diff::lines(&printed(&before), &printed(&after)).into_iter().map(|(sign, line)| {
            let suspicions = if sign == '+' { declared(&line) } else { Vec::new() };
            let suspicions = suspicions.into_iter().map(str::to_owned).collect();
            DiffLine { sign, text: visible(&line), suspicions }
        });
        (word.to_owned(), lines.collect())
    });
    Review {
        server: server.to_owned(),
        tool: after.name.clone(),
        digest: digest[..DIGEST.min(digest.len())].to_owned(),
        is_new: before.is_none(),
        is_held,
        suspicions: after.suspicions(checked).all(),
        parts: parts.collect(),
    }
}

/// Returns a part as text: a description as it is, a schema as indented JSON.
fn printed(part: &Value) -> String {
    match part {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// Returns a line with escapes for the characters that cannot be seen.
fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c != '\t' && foreign_text::shows_nothing(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Accepts what was reviewed. Returns the names of the tools for which the record says something else now.
pub(super) fn accept(record: &mut Record, reviewed: &[Review], now: u64) -> Vec<String> {
    let (mut missed, mut checked) = (Vec::new(), DeclaredTexts::default());
    for review in reviewed {
        let is_change = |pin: &Pin| {
            let change = pin.change.as_ref();
            change.is_some_and(|change| {
                change.declaration.name == review.tool && change.digest.starts_with(&review.digest)
            })
        };
        // A tool that was renamed is pinned under its earlier name.
        let changed = record.tools.iter().find(|(_, pin)| is_change(pin)).map(|(name, _)| name.clone());
        let change = changed.and_then(|name| record.tools.remove(&name)).and_then(|pin| pin.change);
        match (change, record.tools.get_mut(&review.tool)) {
            (Some(Change { declaration, digest, .. }), _) => {
                let pin = Pin::new(declaration, digest, now, false, &mut checked);
                record.tools.insert(review.tool.clone(), pin);
            }
            (None, Some(pin)) if pin.change.is_none() && pin.digest.starts_with(&review.digest) => pin.is_new = false,
            _ => missed.push(review.tool.clone()),
        }
    }
    missed
}
