//! Reads single tokens: names, keywords and characters here; numbers and strings in separate files.

use super::numbers::{number, symbolic_number};
use super::strings::string;
use super::tokens::single_quoted;
use super::{ReadError, excerpt, text_of};
use crate::form::{Form, FormKind};
use crate::lexer::{Lexeme, Token};
use crate::span::Span;
use crate::value::map::{CONDITIONAL, KIND, TAGGED};
use crate::value::names::LONGEST_NAME;
use crate::value::time::Time;

/// Reads a token that is a complete form; returns `None` for brackets and prefixes.
#[inline(always)]
pub(crate) fn literal(source: &str, lexeme: Lexeme) -> Option<Result<Form, ReadError>> {
    let Lexeme { token, span } = lexeme;
    let text = text_of(source, span);
    if matches!(token, Token::Name | Token::Keyword)
        && let Err(error) = short_enough(text, span)
    {
        return Some(Err(error));
    }
    let kind = match token {
        Token::Name => name(text, span),
        Token::Keyword => keyword(text, span),
        Token::Number => number(text, span),
        Token::String => return Some(string(text, span).map(|text| Form::new(FormKind::Str(text), span))),
        Token::Regex => Ok(FormKind::Regex(text[2..text.len() - 1].to_string())),
        Token::Character => character(&text[1..], text, span),
        Token::SchemeCharacter => character(&text[2..], text, span),
        Token::True => Ok(FormKind::Bool(true)),
        Token::False => Ok(FormKind::Bool(false)),
        Token::SymbolicNumber => symbolic_number(text, span),
        _ => return None,
    };
    Some(kind.map(|kind| Form::new(kind, span)).map_err(|error| or_single_quoted(source, error)))
}

fn short_enough(name: &str, span: Span) -> Result<(), ReadError> {
    if name.len() <= LONGEST_NAME {
        return Ok(());
    }
    let message = format!("a name may have at most {LONGEST_NAME} bytes, got {}", name.len());
    Err(ReadError::new("NameTooLong", span, message).suggest("long text is written as a string, `\"…\"`"))
}

fn name(text: &str, span: Span) -> Result<FormKind, ReadError> {
    match text {
        "nil" => return Ok(FormKind::Nil),
        "true" => return Ok(FormKind::Bool(true)),
        "false" => return Ok(FormKind::Bool(false)),
        _ => {}
    }
    if text == "/" || !text.contains(['/', ':']) {
        return Ok(FormKind::Symbol(text.to_string()));
    }
    let error = |message: String| ReadError::new("InvalidSymbol", span, message);
    let shown = excerpt(text);
    if text.starts_with("//") || text.starts_with("/*") {
        return Err(ReadError::new("CommentSyntax", span, format!("`{shown}` does not begin a comment"))
            .suggest("comments begin with `;`"));
    }
    if let Some(name) = text.strip_suffix(':') {
        return Err(error(format!("`{shown}` ends with a colon, which a name cannot"))
            .suggest(format!("a keyword begins with it: `:{}`", excerpt(name))));
    }
    if text.contains("::") {
        return Err(error(format!("`{shown}` has two colons in a row, which a name cannot")));
    }
    if text.starts_with('/') {
        return Err(error(format!("`{shown}` begins with `/`: the namespace before it is missing"))
            .suggest(format!("if it is text, write `\"{shown}\"`")));
    }
    if text.ends_with('/') && !text.ends_with("//") {
        return Err(error(format!("`{shown}` ends with `/`: the name after it is missing")));
    }
    Ok(FormKind::Symbol(text.to_string()))
}

fn keyword(text: &str, span: Span) -> Result<FormKind, ReadError> {
    // `::name` is a keyword of the current namespace, and programs here have only one. In `::alias/name`, one colon is
    // kept until the alias is resolved.
    let name = text.strip_prefix("::").unwrap_or(&text[1..]);
    // Almost all are like this, and sessions have many.
    if !name.is_empty() && !name.bytes().any(|byte| matches!(byte, b':' | b'/')) {
        return Ok(FormKind::Keyword(name.to_string()));
    }
    let error = |message: String| ReadError::new("InvalidKeyword", span, message);
    let shown = excerpt(text);
    if name.is_empty() {
        return Err(error(format!("`{shown}` is incomplete: the name of the keyword is missing"))
            .suggest("a map is written `{:key value}` or `{\"key\" value}`, without a colon between the two"));
    }
    if name.starts_with(':') || name.contains("::") {
        return Err(error(format!("`{shown}` has too many colons")));
    }
    if let Some(name) = name.strip_suffix(':') {
        return Err(error(format!("`{shown}` ends with a colon, which a keyword cannot"))
            .suggest(format!("write `:{}`", excerpt(name))));
    }
    if name != "/" && (name.starts_with('/') || (name.ends_with('/') && !name.ends_with("//"))) {
        return Err(error(format!("`{shown}` lacks a name on one side of its `/`")));
    }
    let has_alias = text.starts_with("::") && name.len() > 1 && name.contains('/');
    Ok(FormKind::Keyword(if has_alias { text[1..].to_string() } else { name.to_string() }))
}

/// Adds the advice to use double quotes if the token is inside single ones.
fn or_single_quoted(source: &str, error: ReadError) -> ReadError {
    match single_quoted(source, error.span.start) {
        Some(text) => error.suggest(format!("strings are written in double quotes: `\"{text}\"`")),
        None => error,
    }
}

/// Reads a character by its name, the text after its backslash; `text` is the whole token.
fn character(name: &str, text: &str, span: Span) -> Result<FormKind, ReadError> {
    let error = |message: String| ReadError::new("InvalidCharacter", span, message);
    let mut chars = name.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        if only != ' ' && (only.is_whitespace() || only.is_control()) {
            return Err(error("a backslash before white space other than a blank is not a character".to_string())
                .suggest("write `\\space`, `\\newline`, `\\tab` or `\\return`"));
        }
        return Ok(FormKind::Char(only));
    }
    let scheme = text.starts_with('#');
    let lowercase = if scheme { name.to_ascii_lowercase() } else { name.to_string() };
    let named = match lowercase.as_str() {
        "newline" | "linefeed" => Some('\n'),
        "space" => Some(' '),
        "tab" => Some('\t'),
        "return" => Some('\r'),
        "backspace" => Some('\u{8}'),
        "formfeed" | "page" => Some('\u{c}'),
        "nul" | "null" => Some('\0'),
        "delete" | "rubout" => Some('\u{7f}'),
        "escape" | "altmode" => Some('\u{1b}'),
        _ => None,
    };
    let hexadecimal = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let found = named.or_else(|| match name.as_bytes()[0] {
        b'u' if name.len() == 5 && is_hexadecimal(&name[1..]) => hexadecimal(&name[1..]),
        b'x' if scheme && name.len() <= 7 && is_hexadecimal(&name[1..]) => hexadecimal(&name[1..]),
        b'o' if name.len() <= 4 && name.as_bytes()[1].is_ascii_digit() => {
            u8::from_str_radix(&name[1..], 8).ok().map(char::from)
        }
        _ => None,
    });
    found.map(FormKind::Char).ok_or_else(|| {
        error(format!("`{}` is not a character", excerpt(text))).suggest(
            "characters are `\\a`, `\\newline`, `\\space`, `\\tab`, `\\return`, `\\u0041`; text is written in double quotes",
        )
    })
}

/// Applies a tag of the language to the form after it; returns `None` for all other tags.
pub fn known_tag(tag: &str, form: &Form, span: Span) -> Option<Result<Form, ReadError>> {
    match tag {
        _ if is_known_tag(tag) => Some(tagged(tag, form.clone(), span)),
        _ if is_record_tag(tag) => Some(record(tag, form.clone(), span)),
        _ => None,
    }
}

/// Represents `#tag form` as data.
pub(super) fn tagged_literal(tag: &str, form: Form, span: Span) -> Form {
    of_kind(TAGGED, [("tag", Form::symbol(tag, span)), ("form", form)], span)
}

/// Represents `#?(…)` or `#?@(…)` as data.
pub(super) fn conditional(items: Vec<Form>, span: Span, splices: bool) -> Form {
    let splices = Form::new(FormKind::Bool(splices), span);
    of_kind(CONDITIONAL, [("form", Form::list(items, span)), ("splicing?", splices)], span)
}

/// Builds the record of that kind with those fields.
fn of_kind(kind: &str, fields: [(&str, Form); 2], span: Span) -> Form {
    let entry = |(name, value): (&str, Form)| [Form::new(FormKind::Keyword(name.to_string()), span), value];
    let map = Form::new(FormKind::Map(fields.map(entry).into_iter().flatten().collect()), span);
    with_kind(kind, map, span)
}

/// Returns whether this is the tag of a record: `#user.Point{:x 1}`.
fn is_record_tag(tag: &str) -> bool {
    tag.strip_prefix("user.").is_some_and(|name| !name.is_empty())
}

/// Reads the printed form of a record: the map, with its type as metadata.
fn record(tag: &str, form: Form, span: Span) -> Result<Form, ReadError> {
    if !matches!(form.kind, FormKind::Map(_)) {
        let message = format!("`#{}` must precede a map", excerpt(tag));
        return Err(ReadError::new("InvalidTaggedText", span, message)
            .suggest("a record is written `#user.Name{:field value}`"));
    }
    Ok(with_kind(tag, form, span))
}

/// Attaches the kind of a record as metadata: its type, and its keys as the fields.
fn with_kind(kind: &str, map: Form, span: Span) -> Form {
    let keyword = |name: &str| Form::new(FormKind::Keyword(name.to_string()), span);
    let fields = match &map.kind {
        FormKind::Map(items) => items.iter().step_by(2).cloned().collect(),
        _ => Vec::new(),
    };
    let kind = vec![keyword("type"), Form::symbol(kind, span), keyword("fields"), Form::vector(fields, span)];
    let metadata = Form::new(FormKind::Map(vec![keyword(KIND), Form::new(FormKind::Map(kind), span)]), span);
    Form { metadata: Some(Box::new(metadata)), span, ..map }
}

/// Returns whether [`tagged`] supports the tag.
fn is_known_tag(tag: &str) -> bool {
    matches!(tag, "uuid" | "keyword" | "symbol") || Time::read(tag, "").is_some()
}

/// Returns the value of tagged text: `#inst "2024-02-29"`, `#uuid "…"`, `#keyword "a b"`.
fn tagged(tag: &str, form: Form, span: Span) -> Result<Form, ReadError> {
    let error = |message: String| ReadError::new("InvalidTaggedText", span, message);
    let FormKind::Str(text) = &form.kind else {
        return Err(error(format!("`#{tag}` must precede a string")));
    };
    if tag == "uuid" {
        if !is_uuid(text) {
            return Err(error(format!("`{}` is not a UUID", excerpt(text)))
                .suggest("it has 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12"));
        }
        return Ok(Form::new(FormKind::Str(text.to_ascii_lowercase()), span));
    }
    match tag {
        "keyword" => return short_enough(text, span).map(|()| Form::new(FormKind::Keyword(text.clone()), span)),
        "symbol" => return short_enough(text, span).map(|()| Form::new(FormKind::Symbol(text.clone()), span)),
        _ => {}
    }
    match Time::read(tag, text) {
        Some(Ok(time)) => Ok(Form::new(FormKind::Time(time), span)),
        Some(Err(message)) => Err(error(format!("`#{tag} \"{}\"`: {message}", excerpt(text)))),
        None => Ok(form),
    }
}

/// Returns whether the text is a UUID.
pub fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
