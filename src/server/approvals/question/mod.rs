//! The question about a call that is shown to a person, as text.
//!
//! The person sees the name of every argument. If the arguments are too large, values are cut, the longest first, each
//! to a prefix with its size; then the items of arrays, the innermost levels, and the fields of inner objects, each
//! with their number. Every omission is marked in its place. So is a long run of blanks, which would move what follows
//! out of sight. No question is asked about a call if not all of its arguments can be named.

use std::fmt::{self, Write};

use serde_json::{Map, Value};

use crate::lang::internal::foreign_text::shows_nothing;
use crate::server::identity::sha256;

/// Maximum length of the arguments as shown, in characters.
const SHOWN: usize = 8_000;
/// Maximum length of a server, tool or argument name as shown, in characters.
const LONGEST_NAME: usize = 500;
/// Maximum number of blanks and invisible characters in a row that are shown as they are.
const MOST_BLANKS: usize = 8;
/// Maximum length of a rule as shown, in characters.
const LONGEST_RULE: usize = 2_000;

/// The form of the identities of the questions about a plan, which no call has.
pub(in crate::server) const PLANNED: u32 = u32::MAX;

/// The later calls of a session that a person can allow together with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaterCalls {
    /// Calls of the tool with the same arguments.
    SameArguments,
    /// All calls of the tool.
    SameTool,
}

/// A call on which a person must decide, or all calls of a tool by a program that has not begun. Its text shows every argument.
#[derive(Clone, Debug)]
pub struct Question {
    /// The name of the server.
    pub server: String,
    /// The exact name of the tool.
    pub tool: String,
    /// The arguments as they will be sent, an object.
    pub arguments: Value,
    /// The SHA-256 of the program text, in hexadecimal.
    pub program: String,
    /// The rule that requires the question, as a clause.
    pub rule: String,
    /// If the question is about all calls of the tool that a program plans, their number, such as `at most 3 calls`; there
    /// are no arguments yet.
    pub planned: Option<String>,
    /// The later calls that may be allowed together with this one; empty where a decision holds for this call alone.
    pub later: Vec<LaterCalls>,
}

impl Question {
    /// Creates the question about a call of a program with that SHA-256.
    pub(in crate::server) fn of(asked: &crate::lang::Question, program: &str) -> Question {
        let crate::lang::Question { id, server, tool, arguments, reason, .. } = asked;
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.clone()));
        Question {
            server: server.to_string(),
            tool: tool.to_string(),
            planned: (id.form == PLANNED).then(|| crate::lang::at_most(arguments["most"].as_u64())),
            arguments,
            program: program.to_owned(),
            rule: reason.clone(),
            later: Vec::new(),
        }
    }

    /// Returns the question with the later calls that a grant can cover.
    pub(in crate::server) fn offering_later(self, is_guarded: bool) -> Question {
        let later = match is_guarded {
            _ if self.planned.is_some() => Vec::new(),
            // A decision about the tool in general is made without knowledge of the values that the guard is about.
            true => vec![LaterCalls::SameArguments],
            false => vec![LaterCalls::SameArguments, LaterCalls::SameTool],
        };
        Question { later, ..self }
    }

    /// Returns why a person cannot be shown the whole call, as a clause; `None` if they can.
    pub fn unshowable(&self) -> Option<String> {
        if [&self.server, &self.tool].into_iter().any(|name| name.chars().count() > LONGEST_NAME) {
            return Some(format!("its name is longer than the {LONGEST_NAME} characters that a person can be shown"));
        }
        match shown(&self.arguments) {
            Some(_) => None,
            None => {
                let count = self.arguments.as_object().map_or(0, Map::len);
                Some(format!("the names of its {count} arguments are more than a person can be shown"))
            }
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { server, tool, arguments, program, rule, planned, later: _ } = self;
        let arguments = match shown(arguments) {
            Some(arguments) => arguments,
            None => format!(
                "arguments that cannot be shown as a whole; SHA-256 {}",
                sha256(arguments.to_string().as_bytes())
            ),
        };
        let program = program.get(..16).unwrap_or(program);
        let (server, tool) = (cut(server, LONGEST_NAME), cut(tool, LONGEST_NAME));
        let rule = cut(rule, LONGEST_RULE);
        if let Some(planned) = planned {
            return write!(
                formatter,
                "A program wants to make {planned} of {server}/{tool}, with any arguments.\n\nThe program's SHA-256 begins with {program}. You are asked because {rule}."
            );
        }
        write!(
            formatter,
            "A program wants to call {server}/{tool} with\n{arguments}\n\nThe program's SHA-256 begins with {program}. You are asked because {rule}."
        )
    }
}

/// Formats the arguments within the limit; `None` if even their names do not fit.
fn shown(arguments: &Value) -> Option<String> {
    let mut caps = Caps::NONE;
    let text = caps.text_within(arguments).or_else(|| caps.tighten(arguments))?;
    if caps == Caps::NONE {
        return Some(text);
    }
    let hash = sha256(arguments.to_string().as_bytes());
    Some(format!("{text}\nParts too long to show are marked with `…`; SHA-256 of the whole: {hash}"))
}

/// Limits on how much of each value is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Caps {
    /// Maximum characters of a text.
    text: usize,
    /// Maximum items of an array.
    items: usize,
    /// Maximum fields of an object nested in the arguments.
    fields: usize,
    /// Maximum nesting depth.
    depth: usize,
}

/// Selects one of the limits.
type Cap = fn(&mut Caps) -> &mut usize;

impl Caps {
    const NONE: Caps = Caps { text: usize::MAX, items: usize::MAX, fields: usize::MAX, depth: usize::MAX };

    /// The limits in the order in which they are lowered, each with the value to which it is lowered first.
    const ORDER: [(Cap, usize); 6] = [
        (|caps| &mut caps.text, 40),
        (|caps| &mut caps.items, 1),
        (|caps| &mut caps.depth, 2),
        (|caps| &mut caps.fields, 0),
        (|caps| &mut caps.depth, 1),
        (|caps| &mut caps.text, 0),
    ];

    fn text_within(&self, arguments: &Value) -> Option<String> {
        let mut text = Bounded { text: String::new(), room: SHOWN };
        self.write(&mut text, arguments, 0).ok().map(|()| text.text)
    }

    /// Lowers the limits until the arguments fit, each no further than necessary.
    fn tighten(&mut self, arguments: &Value) -> Option<String> {
        for (at, (cap, least)) in Caps::ORDER.into_iter().enumerate() {
            *cap(self) = least;
            if self.text_within(arguments).is_some() {
                // Lowering a later limit may have made it unnecessary to lower an earlier one as far.
                for (cap, _) in Caps::ORDER[..=at].iter().rev() {
                    self.raise(*cap, arguments);
                }
                return self.text_within(arguments);
            }
        }
        None
    }

    /// Raises a limit as far as the arguments still fit, by binary search.
    fn raise(&mut self, cap: Cap, arguments: &Value) {
        let (mut fits, mut most) = (*cap(self), SHOWN);
        while fits < most {
            let middle = fits + (most - fits).div_ceil(2);
            *cap(self) = middle;
            if self.text_within(arguments).is_some() { fits = middle } else { most = middle - 1 }
        }
        *cap(self) = fits;
    }

    fn write(&self, out: &mut Bounded, value: &Value, depth: usize) -> fmt::Result {
        match value {
            Value::Object(fields) if fields.is_empty() => out.write_str("{}"),
            Value::Array(items) if items.is_empty() => out.write_str("[]"),
            Value::Object(fields) if depth >= self.depth => write!(out, "{{… {} fields}}", fields.len()),
            Value::Array(items) if depth >= self.depth => write!(out, "[… {} items]", items.len()),
            Value::Object(fields) => {
                out.write_str("{")?;
                let most = if depth == 0 { usize::MAX } else { self.fields };
                for (at, (name, value)) in fields.iter().take(most).enumerate() {
                    out.line(at, depth + 1)?;
                    // An argument with a truncated name could be mistaken for another one.
                    if depth == 0 && name.chars().count() > LONGEST_NAME {
                        return Err(fmt::Error);
                    }
                    write_text(out, name, LONGEST_NAME)?;
                    out.write_str(": ")?;
                    self.write(out, value, depth + 1)?;
                }
                out.rest(fields.len().saturating_sub(most), "fields", depth + 1)?;
                out.end(depth, "}")
            }
            Value::Array(items) => {
                out.write_str("[")?;
                for (at, item) in items.iter().take(self.items).enumerate() {
                    out.line(at, depth + 1)?;
                    self.write(out, item, depth + 1)?;
                }
                out.rest(items.len().saturating_sub(self.items), "items", depth + 1)?;
                out.end(depth, "]")
            }
            Value::String(text) => write_text(out, text, self.text),
            other => out.write_str(&cut(&other.to_string(), self.text.max(40))),
        }
    }
}

/// Writes a text in quotes. A text longer than the limit is cut to a prefix, followed by its size after the closing
/// quote.
fn write_text(out: &mut Bounded, text: &str, most: usize) -> fmt::Result {
    out.write_str("\"")?;
    let mut written = 0;
    for piece in pieces(text, escaped) {
        written += piece.chars().count();
        if written > most {
            return write!(out, "…\" ({} bytes in all)", text.len());
        }
        out.write_str(&piece)?;
    }
    out.write_str("\"")
}

/// Splits a text into its characters as shown, and long runs of blanks, each as its number: `\{3000 blanks}`. A text in
/// quotes cannot contain that, since its backslashes are doubled.
fn pieces(text: &str, shown: fn(char) -> String) -> impl Iterator<Item = String> {
    let is_blank = |c: char| c.is_whitespace() || !is_seen(c);
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        if !is_blank(first) {
            rest = &rest[first.len_utf8()..];
            return Some(shown(first));
        }
        let (run, behind) = rest.split_at(rest.find(|c| !is_blank(c)).unwrap_or(rest.len()));
        let count = run.chars().count();
        if count <= MOST_BLANKS {
            rest = &rest[first.len_utf8()..];
            return Some(shown(first));
        }
        rest = behind;
        let kind = if run.chars().all(|c| c == ' ') {
            "blanks".to_owned()
        } else if run.chars().all(|c| c == first) {
            format!("times {}", escaped(first))
        } else {
            "blanks and invisible characters".to_owned()
        };
        Some(format!("\\{{{count} {kind}}}"))
    })
}

/// Returns a character as shown in a quoted text, always visible.
fn escaped(c: char) -> String {
    match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c => visible(c),
    }
}

/// Returns a character, or its code point if it is invisible or a control, such as those that change the writing
/// direction.
fn visible(c: char) -> String {
    if is_seen(c) { c.to_string() } else { format!("\\u{{{:x}}}", u32::from(c)) }
}

/// Returns false for a control character, and for one that is invisible, looks like a space, or that fonts show as they
/// like (private use).
pub(in crate::server) fn is_seen(c: char) -> bool {
    let is_private = |c: char| matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{10FFFF}');
    let is_unseen = |c: char| shows_nothing(c) || is_private(c) || (c.is_whitespace() && c != ' ');
    !(c.is_control() || (!c.is_ascii() && is_unseen(c)))
}

/// Formats a text on one line without quotes, with all characters visible; a long one is truncated.
fn cut(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, piece) in pieces(text, visible).enumerate() {
        if at == most {
            let _ = write!(shown, "… ({} bytes in all)", text.len());
            break;
        }
        shown.push_str(&piece);
    }
    shown
}

/// A text buffer of limited length, in characters.
struct Bounded {
    text: String,
    room: usize,
}

impl Bounded {
    /// Begins the line of the next field or item.
    fn line(&mut self, at: usize, depth: usize) -> fmt::Result {
        write!(self, "{}\n{:indent$}", if at == 0 { "" } else { "," }, "", indent = 2 * depth)
    }

    fn end(&mut self, depth: usize, bracket: &str) -> fmt::Result {
        write!(self, "\n{:indent$}{bracket}", "", indent = 2 * depth)
    }

    /// Writes the number of omitted fields or items.
    fn rest(&mut self, count: usize, what: &str, depth: usize) -> fmt::Result {
        if count == 0 { Ok(()) } else { write!(self, "\n{:indent$}… {count} more {what}", "", indent = 2 * depth) }
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.chars().count();
        self.room = self.room.checked_sub(length).ok_or(fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
