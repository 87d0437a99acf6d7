//! The reader: from a program's text to its forms.
//!
//! Three steps: the lexer cuts the text into tokens ([`crate::lang::lexer`]; `tokens` says why it could not); one
//! pass over the `brackets` refuses what is nested too deeply or not balanced (`report` says which bracket is to
//! blame, with `indentation` as its witness); `parse` folds the flat tokens over a stack of open forms, with
//! `literals`, `numbers`, `strings` and `collections` for what they mean. No step recurses with the nesting of its
//! input, and each is linear in its length.
//!
//! Codes of errors: `UnbalancedBrackets`, `NestingTooDeep`, `UnterminatedString`, `UnterminatedComment`,
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

pub use literals::{is_uuid, known_tag};

use std::fmt;

use crate::lang::form::Form;
use crate::lang::lexer::{Lexeme, lex, lex_until};
use crate::lang::span::Span;

/// How deep brackets and prefixes of a program may be nested.
pub const MAX_NESTING: usize = 256;

/// Why a text is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The stable code, such as `UnbalancedBrackets`.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// The main culprit.
    pub span: Span,
    /// Other places that bear on it, each with what it has to do with it.
    pub related: Vec<(Span, String)>,
    /// What to do about it, where that can be guessed.
    pub suggestion: Option<String>,
    /// True when the text only lacks closing brackets, a closing quote or the end of a comment: more may follow.
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

/// The top-level forms of a program; none for an empty one.
///
/// ```
/// use lispbox::lang::reader::read;
/// assert_eq!(read("(+ 1 2) ; three").map(|forms| forms.len()), Ok(1));
/// assert_eq!(read("(+ 1 2").map_err(|error| error.code), Err("UnbalancedBrackets"));
/// ```
pub fn read(source: &str) -> Result<Vec<Form>, ReadError> {
    read_as(source, &Reading::default())
}

/// The forms of a text that is read in that way.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_as(source: &str, reading: &Reading) -> Result<Vec<Form>, ReadError> {
    if u32::try_from(source.len()).is_err() {
        return Err(ReadError::new("ProgramTooLarge", Span::default(), "a program may have at most 4 GiB"));
    }
    let lexemes = lex(source).map_err(|error| tokens::explain(source, &error))?;
    brackets::check(source, &lexemes, reading.nesting)?;
    parse::parse(source, &lexemes, reading)
}

/// What becomes of reader conditionals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditionals {
    /// The first branch whose feature holds takes their place.
    #[default]
    Choose,
    /// They are data.
    Keep,
    /// They are errors.
    Refuse,
}

/// How a text is read: as a program, unless something else is said.
#[derive(Clone, Debug)]
pub struct Reading {
    /// True for data: tags are kept, and nothing splices into the top level.
    pub is_data: bool,
    /// What becomes of reader conditionals.
    pub conditionals: Conditionals,
    /// The features that hold beside `:clj` and `:default`.
    pub features: Vec<String>,
    /// How deep brackets and prefixes may be nested.
    pub nesting: usize,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { is_data: false, conditionals: Conditionals::default(), features: Vec::new(), nesting: MAX_NESTING }
    }
}

impl Reading {
    /// True for a feature whose branch is taken.
    fn holds(&self, feature: &Form) -> bool {
        let Some(name) = feature.as_keyword() else { return false };
        matches!(name, "clj" | "default") || self.features.iter().any(|known| known == name)
    }
}

/// The first form of a text, and the byte behind it; what stands there is not looked at. Nothing where the text
/// has no form.
///
/// # Errors
/// As [`read`].
pub fn read_first(source: &str, reading: &Reading) -> Result<Option<(Form, usize)>, ReadError> {
    if u32::try_from(source.len()).is_err() {
        return Err(ReadError::new("ProgramTooLarge", Span::default(), "a text may have at most 4 GiB"));
    }
    let (mut open, mut found) = (0_usize, None);
    let lexemes = lex_until(source, Vec::new(), |lexemes| {
        let Some(Lexeme { token, span }) = lexemes.last().copied() else { return false };
        match token {
            opener if opener.closer().is_some() => open += 1,
            // A bracket that closes nothing ends the text here.
            closer if closer.is_closer() && open == 0 => return true,
            closer if closer.is_closer() => open -= 1,
            _ => {}
        }
        if open > 0 || token.is_prefix() || brackets::check(source, lexemes, reading.nesting).is_err() {
            return false;
        }
        match parse::parse(source, lexemes, reading) {
            // Passed over, as what stands behind `#_`.
            Ok(forms) if forms.is_empty() => lexemes.clear(),
            Ok(forms) => found = forms.into_iter().next().map(|form| (form, span.end as usize)),
            // A prefix may still get its form.
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

/// The text of a span.
fn text_of(source: &str, span: Span) -> &str {
    source.get(span.start as usize..span.end as usize).unwrap_or_default()
}

/// A text short enough for a message: the beginning of its first line.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_string(),
    }
}
