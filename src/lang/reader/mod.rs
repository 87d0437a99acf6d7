//! The reader: from a program's text to its forms.
//!
//! Three steps. The lexer splits the text into tokens ([`crate::lexer`]; `tokens` explains its errors). One pass
//! over the `brackets` rejects those that are nested too deeply or not balanced (`report` determines which bracket is
//! at fault, with `indentation` as evidence). `parse` folds the flat tokens over a stack of open forms; `literals`,
//! `numbers`, `strings` and `collections` define their meaning. No step recurses with the nesting of its input, and
//! each is linear in its length.
//!
//! Error codes: `UnbalancedBrackets`, `NestingTooDeep`, `UnterminatedString`, `UnterminatedComment`,
//! `UnexpectedCharacter`, `CommentSyntax`, `MarkdownFence`, `InvalidNumber`, `InvalidSymbol`, `InvalidKeyword`,
//! `InvalidCharacter`, `InvalidEscape`, `InvalidMetadata`, `InvalidConditional`, `UnsupportedLiteral`,
//! `UnsupportedSyntax`, `UnknownTag`, `PrefixWithoutForm`, `FunctionLiteral`, `MapLiteral`, `DuplicateKey`,
//! `ProgramTooLarge`.

mod brackets;
mod collections;
mod indentation;
mod literals;
mod numbers;
mod parse;
mod place;
mod report;
mod strings;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use collections::collection;
pub(crate) use literals::literal;
pub use literals::{is_uuid, known_tag};

use std::fmt;

use crate::form::Form;
use crate::lexer::{Lexeme, lex, lex_until};
use crate::span::Span;

/// Maximum nesting of brackets and prefixes in a program.
pub const MAX_NESTING: usize = 256;

/// The reason why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The stable code, such as `UnbalancedBrackets`.
    pub code: &'static str,
    /// The message, in one line.
    pub message: String,
    /// The position of the main fault.
    pub span: Span,
    /// Other relevant positions, each with an explanation.
    pub related: Vec<(Span, String)>,
    /// A suggested correction, if one can be guessed.
    pub suggestion: Option<String>,
    /// True if the text only lacks closing brackets, a closing quote or the end of a comment, so that more input may
    /// complete it.
    pub incomplete: bool,
}

impl ReadError {
    fn new(code: &'static str, span: Span, message: impl Into<String>) -> ReadError {
        let message = message.into();
        ReadError { code, message, span, related: Vec::new(), suggestion: None, incomplete: false }
    }

    fn suggest(mut self, suggestion: impl Into<String>) -> ReadError {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reads the top-level forms of a program.
///
/// ```
/// use lispbox::lang::internal::reader::read;
/// assert_eq!(read("(+ 1 2) ; three").map(|forms| forms.len()), Ok(1));
/// assert_eq!(read("(+ 1 2").map_err(|error| error.code), Err("UnbalancedBrackets"));
/// ```
pub fn read(source: &str) -> Result<Vec<Form>, ReadError> {
    read_as(source, &Reading::default())
}

/// Reads the forms of a text with these options.
///
/// # Errors
/// See [`read`].
pub(crate) fn read_as(source: &str, reading: &Reading) -> Result<Vec<Form>, ReadError> {
    if u32::try_from(source.len()).is_err() {
        return Err(ReadError::new("ProgramTooLarge", Span::default(), "a program may have at most 4 GiB"));
    }
    let lexemes = lex(source).map_err(|error| tokens::explain(source, &error))?;
    brackets::check(source, &lexemes, reading.nesting)?;
    parse::parse(source, &lexemes, reading)
}

/// The treatment of reader conditionals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditionals {
    /// Replaces them by the first branch whose feature holds.
    #[default]
    Choose,
    /// Keeps them as data.
    Keep,
    /// Rejects them.
    Refuse,
}

/// Options of the reader; the default reads a program.
#[derive(Clone, Debug)]
pub struct Reading {
    /// True for data: tags are kept, and splicing into the top level is not allowed.
    pub is_data: bool,
    /// The treatment of reader conditionals.
    pub conditionals: Conditionals,
    /// The features that hold, besides `:clj` and `:default`.
    pub features: Vec<String>,
    /// Maximum nesting of brackets and prefixes.
    pub nesting: usize,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { is_data: false, conditionals: Conditionals::default(), features: Vec::new(), nesting: MAX_NESTING }
    }
}

impl Reading {
    /// Returns whether the feature holds.
    fn holds(&self, feature: &Form) -> bool {
        let Some(name) = feature.as_keyword() else { return false };
        matches!(name, "clj" | "default") || self.features.iter().any(|known| known == name)
    }
}

/// Reads the first form of a text, and returns it with the offset of the byte after it. The remaining text is not read.
/// Returns `None` if the text has no form.
///
/// # Errors
/// See [`read`].
pub fn read_first(source: &str, reading: &Reading) -> Result<Option<(Form, usize)>, ReadError> {
    read_at(source, 0, reading)
}

/// Reads the first form at or after an offset of a text, as [`read_first`] does; the spans are those of the whole text.
///
/// # Errors
/// See [`read`].
pub(crate) fn read_at(source: &str, start: usize, reading: &Reading) -> Result<Option<(Form, usize)>, ReadError> {
    if u32::try_from(source.len()).is_err() {
        return Err(ReadError::new("ProgramTooLarge", Span::default(), "a text may have at most 4 GiB"));
    }
    let (mut open, mut found) = (0_usize, None);
    let lexemes = lex_until(source, start, Vec::new(), |lexemes| {
        let Some(Lexeme { token, span }) = lexemes.last().copied() else { return false };
        match token {
            opener if opener.closer().is_some() => open += 1,
            // A closing bracket without an opening one ends the text here.
            closer if closer.is_closer() && open == 0 => return true,
            closer if closer.is_closer() => open -= 1,
            _ => {}
        }
        if open > 0 || token.is_prefix() || brackets::check(source, lexemes, reading.nesting).is_err() {
            return false;
        }
        match parse::parse(source, lexemes, reading) {
            // The forms were discarded, as after `#_`.
            Ok(forms) if forms.is_empty() => lexemes.clear(),
            Ok(forms) => found = forms.into_iter().next().map(|form| (form, span.end as usize)),
            // The form of the prefix may still follow.
            Err(error) if error.code == "PrefixWithoutForm" || error.code == "InvalidMetadata" => {}
            Err(_) => return true,
        }
        found.is_some()
    })
    .map_err(|error| tokens::explain(source, &error))?;
    if found.is_some() {
        return Ok(found);
    }
    brackets::check(source, &lexemes, reading.nesting)?;
    parse::parse(source, &lexemes, reading).map(|_| None)
}

/// Returns the text of a span.
fn text_of(source: &str, span: Span) -> &str {
    source.get(span.start as usize..span.end as usize).unwrap_or_default()
}

/// Shortens a text for a message: the beginning of its first line.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_string(),
    }
}
