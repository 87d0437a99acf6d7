//! Writes a decoding grammar in the formats of other tools: GBNF (llama.cpp) and Lark.

use std::fmt::Write;

use crate::charset::CharSet;
use crate::ebnf::{Expression, Grammar, is_lexical};

/// A grammar format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The format of llama.cpp.
    Gbnf,
    /// The format of the Python package `lark`, restricted to the subset that llguidance supports.
    Lark,
}

/// Formats a grammar whose first rule is `program`.
pub fn write(form: Form, note: &str, grammar: &Grammar) -> String {
    let mut text = String::new();
    for line in note.lines() {
        let mark = if form == Form::Gbnf { "#" } else { "//" };
        let _ = writeln!(text, "{}", format!("{mark} {line}").trim_end());
    }
    text.push('\n');
    for (name, expression) in &grammar.rules {
        let sign = if form == Form::Gbnf { " ::=" } else { ":" };
        let _ = writeln!(text, "{}{sign} {}", named(form, name), written(form, expression, Place::Top));
    }
    text
}

fn named(form: Form, name: &str) -> String {
    match form {
        Form::Gbnf if name == "program" => "root".to_string(),
        Form::Gbnf => name.to_lowercase().replace('_', "-"),
        Form::Lark if name == "program" => "start".to_string(),
        Form::Lark if is_lexical(name) => name.to_string(),
        Form::Lark => name.replace('-', "_"),
    }
}

/// The context of an expression, which decides whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Top,
    Sequence,
    Repeated,
}

fn written(form: Form, expression: &Expression, place: Place) -> String {
    let repeated = |inner: &Expression, sign: &str| format!("{}{sign}", written(form, inner, Place::Repeated));
    let (text, fits) = match expression {
        Expression::Text(text) => (quoted(text), Place::Repeated),
        Expression::Class(set) => (class(form, set), Place::Repeated),
        Expression::Rule(name) => (named(form, name), Place::Repeated),
        Expression::Sequence(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| written(form, part, Place::Sequence)).collect();
            (parts.join(" "), Place::Sequence)
        }
        Expression::Choice(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| written(form, part, Place::Sequence)).collect();
            (parts.join(" | "), Place::Top)
        }
        Expression::Optional(inner) => (repeated(inner, "?"), Place::Sequence),
        Expression::Star(inner) => (repeated(inner, "*"), Place::Sequence),
        Expression::Plus(inner) => (repeated(inner, "+"), Place::Sequence),
        Expression::Except(..) => panic!("differences are resolved before"),
    };
    if place > fits { format!("({text})") } else { text }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

fn class(form: Form, set: &CharSet) -> String {
    let mut text = String::new();
    let (negated, ranges) = if set.is_mostly_everything() {
        let others = set.complement();
        // Neither format has a class of all characters, so NUL is excluded; no program needs it.
        let others = if others.is_empty() { CharSet::one('\0') } else { others };
        ("^", others)
    } else {
        ("", set.clone())
    };
    for (first, last) in ranges.ranges() {
        member(form, *first, &mut text);
        if last > first {
            text.push('-');
            member(form, *last, &mut text);
        }
    }
    match form {
        Form::Gbnf => format!("[{negated}{text}]"),
        Form::Lark => format!("/[{negated}{text}]/"),
    }
}

fn member(form: Form, code: u32, text: &mut String) {
    let plain = char::from_u32(code).filter(char::is_ascii_graphic);
    let _ = match (plain, form) {
        (Some(c @ ('\\' | ']' | '[')), _) => write!(text, "\\{c}"),
        (Some(c @ ('^' | '-')), Form::Gbnf) => write!(text, "\\x{:02X}", c as u32),
        // A slash would end the regex.
        (Some('/'), Form::Lark) => write!(text, "\\x2F"),
        (Some(c @ ('^' | '-' | '&' | '~')), Form::Lark) => write!(text, "\\{c}"),
        (Some(c), _) => write!(text, "{c}"),
        (None, _) if code < 0x100 => write!(text, "\\x{code:02X}"),
        (None, _) if code < 0x1_0000 => write!(text, "\\u{code:04X}"),
        (None, _) => write!(text, "\\U{code:08X}"),
    };
}
