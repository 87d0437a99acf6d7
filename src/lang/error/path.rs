//! The path to a part of data, for messages.

use std::borrow::Cow;

/// A step from a collection to one of its parts.
#[derive(Debug)]
pub(crate) enum Step<'t> {
    Key(Cow<'t, str>),
    Index(usize),
}

/// Writes the steps from the outermost collection inwards, such as `mails[3].size`.
pub(crate) fn written<'s>(steps: impl Iterator<Item = &'s Step<'s>>) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            Step::Key(key) if out.is_empty() => out.push_str(key),
            Step::Key(key) => out.extend([".", key]),
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}
