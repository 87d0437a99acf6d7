//! The lexer: splits text into tokens with their kinds and positions. Their contents are decoded later.

use logos::{Logos, Skip};

use crate::span::Span;

/// The kinds of token. The text of a token is its span of the source.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(error = LexFault)]
#[logos(skip r"[\s,]+")]
#[logos(skip(r"(;|#!)[^\n]*", allow_greedy = true))]
// Characters inside a name: anything but white space, delimiters, control characters, invisible marks, and look-alikes
// of quotes and brackets. (Clojure excludes the delimiters only.)
#[logos(subpattern part = r##"[^\s,;"^@`~()\[\]{}\\\x00-\x1f\x7f-\x9f«»\u{200b}\u{200e}\u{200f}\u{2018}-\u{201f}\u{202a}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{ff02}\u{ff08}\u{ff09}\u{ff0c}\u{ff1b}\u{ff3b}\u{ff3d}\u{ff5b}\u{ff5d}]"##)]
// First character of a name: as above, except those that begin a number, a keyword, a quote or a dispatch.
#[logos(subpattern head = r##"[^\s,;"^@`~()\[\]{}\\\x00-\x1f\x7f-\x9f«»\u{200b}-\u{200f}\u{2018}-\u{201f}\u{202a}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{ff02}\u{ff08}\u{ff09}\u{ff0c}\u{ff1b}\u{ff3b}\u{ff3d}\u{ff5b}\u{ff5d}#':0-9]"##)]
pub enum Token {
    /// `(`
    #[token("(")]
    ListOpen,
    /// `#(`
    #[token("#(")]
    FunctionOpen,
    /// `#?(`
    #[regex(r"#\?[\s,]*\(")]
    ConditionalOpen,
    /// `#?@(`
    #[regex(r"#\?@[\s,]*\(")]
    SpliceOpen,
    /// `[`
    #[token("[")]
    VectorOpen,
    /// `{`
    #[token("{")]
    MapOpen,
    /// `#{`
    #[token("#{")]
    SetOpen,
    /// `)`
    #[token(")")]
    ListClose,
    /// `]`
    #[token("]")]
    VectorClose,
    /// `}`
    #[token("}")]
    MapClose,

    /// `'`
    #[token("'")]
    Quote,
    /// `` ` ``
    #[token("`")]
    SyntaxQuote,
    /// `~`
    #[token("~")]
    Unquote,
    /// `~@`
    #[token("~@")]
    UnquoteSplicing,
    /// `@`
    #[token("@")]
    Deref,
    /// `#'`
    #[token("#'")]
    Var,
    /// `^`, `#^`
    #[token("^")]
    #[token("#^")]
    Metadata,
    /// `#_`
    #[token("#_")]
    Discard,
    /// `#name`
    #[regex(r"#[\p{Alphabetic}](?&part)*")]
    Tag,
    /// `#:name`, `#::name`: the namespace of the keys of the map that follows
    #[regex(r"#:(?&part)*")]
    Namespace,

    /// A name, `nil`, `true` and `false` among them
    #[regex(r"(?&head)(?&part)*", priority = 2)]
    Name,
    /// Anything that begins like a number
    #[regex(r"[+-]?\.?[0-9](?&part)*", priority = 5)]
    Number,
    /// `:name`
    #[regex(r":(?&part)*")]
    Keyword,
    /// `#t`, `#true`
    #[token("#t", priority = 20)]
    #[token("#true", priority = 20)]
    True,
    /// `#f`, `#false`
    #[token("#f", priority = 20)]
    #[token("#false", priority = 20)]
    False,
    /// `##Inf`, `##-Inf`, `##NaN`, and anything else with that prefix
    #[regex(r"##(?&part)+")]
    SymbolicNumber,
    /// `\a`, `\newline`
    #[regex(r"\\(?s:.)(?&part)*")]
    Character,
    /// `#\a`, `#\space`: Scheme's syntax
    #[regex(r"#\\(?s:.)(?&part)*")]
    SchemeCharacter,
    /// `"text"`, quotes included
    #[token("\"", |lexer| quoted(lexer, LexFault::UnterminatedString))]
    String,
    /// `#"pattern"`, quotes included
    #[token("#\"", |lexer| quoted(lexer, LexFault::UnterminatedRegex))]
    Regex,

    /// `#| comment |#`, skipped, and text that is rejected on sight: never returned as a token
    #[token("#|", block_comment)]
    #[token("```", |_| refused(LexFault::MarkdownFence))]
    #[token("#", |_| refused(LexFault::UnknownDispatch))]
    #[token("##", |_| refused(LexFault::UnknownDispatch))]
    Nothing,
}

impl Token {
    /// Returns the matching closing bracket if this is an opening one.
    pub fn closer(self) -> Option<Token> {
        match self {
            Token::ListOpen | Token::FunctionOpen | Token::ConditionalOpen | Token::SpliceOpen => {
                Some(Token::ListClose)
            }
            Token::VectorOpen => Some(Token::VectorClose),
            Token::MapOpen | Token::SetOpen => Some(Token::MapClose),
            _ => None,
        }
    }

    /// Returns whether this is a closing bracket.
    pub fn is_closer(self) -> bool {
        matches!(self, Token::ListClose | Token::VectorClose | Token::MapClose)
    }

    /// Returns whether this is a prefix: a token that combines with the following form, or discards it.
    pub fn is_prefix(self) -> bool {
        use Token::*;
        matches!(self, Quote | SyntaxQuote | Unquote | UnquoteSplicing | Deref)
            || matches!(self, Var | Metadata | Discard | Tag | Namespace)
    }
}

/// A token with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// The kind of the token.
    pub token: Token,
    /// The position of the token.
    pub span: Span,
}

/// The reason why text cannot be tokenized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LexFault {
    /// A character that begins no token.
    #[default]
    UnexpectedCharacter,
    /// A string without a closing quote.
    UnterminatedString,
    /// A regex without a closing quote.
    UnterminatedRegex,
    /// A block comment without an end.
    UnterminatedComment,
    /// Three backquotes.
    MarkdownFence,
    /// `#` before a character that it does not combine with.
    UnknownDispatch,
}

/// The first lexical error of a text.
#[derive(Clone, Debug)]
pub struct LexError {
    /// The kind of the error.
    pub fault: LexFault,
    /// The position of the error; the opening delimiter of an unterminated token.
    pub span: Span,
    /// The tokens before the error.
    pub before: Vec<Lexeme>,
}

/// Splits a program into tokens, without white space and comments. Skips a byte order mark at the start.
pub fn lex(source: &str) -> Result<Vec<Lexeme>, LexError> {
    lex_until(source, 0, Vec::with_capacity(8 + source.len() / 6), |_| false)
}

/// Appends the tokens of a program from the offset `start` on to `lexemes`, up to the first one after which `enough`
/// returns true for the tokens so far.
pub fn lex_until(
    source: &str,
    start: usize,
    mut lexemes: Vec<Lexeme>,
    mut enough: impl FnMut(&mut Vec<Lexeme>) -> bool,
) -> Result<Vec<Lexeme>, LexError> {
    let mut lexer = Token::lexer(source);
    if start > 0 {
        lexer.bump(start);
    } else if source.starts_with('\u{feff}') {
        lexer.bump('\u{feff}'.len_utf8());
    }
    while let Some(token) = lexer.next() {
        let range = lexer.span();
        match token {
            Ok(token) => {
                lexemes.push(Lexeme { token, span: Span::new(range.start, range.end) });
                if enough(&mut lexemes) {
                    return Ok(lexemes);
                }
            }
            Err(fault) => {
                let length = match fault {
                    LexFault::UnexpectedCharacter => source[range.start..].chars().next().map_or(0, char::len_utf8),
                    LexFault::UnterminatedString => 1,
                    LexFault::UnterminatedRegex | LexFault::UnterminatedComment => 2,
                    LexFault::MarkdownFence | LexFault::UnknownDispatch => range.len(),
                };
                let span = Span::new(range.start, range.start + length);
                return Err(LexError { fault, span, before: lexemes });
            }
        }
    }
    Ok(lexemes)
}

/// Consumes the rest of a string including its closing quote; a backslash escapes the next character.
fn quoted(lexer: &mut logos::Lexer<'_, Token>, unterminated: LexFault) -> Result<(), LexFault> {
    let rest = lexer.remainder().as_bytes();
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => {
                lexer.bump(at + 1);
                return Ok(());
            }
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    lexer.bump(rest.len());
    Err(unterminated)
}

/// Rejects the text with that fault.
fn refused(fault: LexFault) -> Result<Skip, LexFault> {
    Err(fault)
}

/// Skips the rest of a block comment, including nested ones.
fn block_comment(lexer: &mut logos::Lexer<'_, Token>) -> Result<Skip, LexFault> {
    let rest = lexer.remainder().as_bytes();
    let mut depth = 1;
    let mut at = 0;
    while at + 1 < rest.len() {
        match &rest[at..at + 2] {
            b"|#" => depth -= 1,
            b"#|" => depth += 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            lexer.bump(at);
            return Ok(Skip);
        }
    }
    lexer.bump(rest.len());
    Err(LexFault::UnterminatedComment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> Vec<(Token, &str)> {
        let lexemes = lex(source).expect("it lexes");
        let text = |span: Span| &source[span.start as usize..span.end as usize];
        lexemes.iter().map(|lexeme| (lexeme.token, text(lexeme.span))).collect()
    }

    fn fault(source: &str) -> (LexFault, u32, u32) {
        let error = lex(source).expect_err("it does not lex");
        (error.fault, error.span.start, error.span.end)
    }

    #[test]
    fn names_numbers_and_keywords_are_told_apart() {
        use Token::*;
        assert_eq!(
            tokens("a' -> - -1 +.5 .x 1a :k :a/b a#b %1 é"),
            [
                (Name, "a'"),
                (Name, "->"),
                (Name, "-"),
                (Number, "-1"),
                (Number, "+.5"),
                (Name, ".x"),
                (Number, "1a"),
                (Keyword, ":k"),
                (Keyword, ":a/b"),
                (Name, "a#b"),
                (Name, "%1"),
                (Name, "é"),
            ]
        );
    }

    #[test]
    fn dispatches_take_the_longest_spelling() {
        use Token::*;
        let source = "#t #true #truth #_x #'f #^m ##Inf #?(#?@(#{#(#:a{#\\a \\( #\"\\\"\"";
        let kinds: Vec<Token> = tokens(source).into_iter().map(|(token, _)| token).collect();
        let dispatches = [True, True, Tag, Discard, Name, Var, Name, Metadata, Name, SymbolicNumber];
        assert_eq!(kinds[..10], dispatches);
        let brackets = [ConditionalOpen, SpliceOpen, SetOpen, FunctionOpen, Namespace, MapOpen];
        assert_eq!(kinds[10..16], brackets);
        assert_eq!(kinds[16..], [SchemeCharacter, Character, Regex]);
    }

    #[test]
    fn comments_and_white_space_are_nothing() {
        assert_eq!(tokens("\u{feff}#!/usr/bin/lispbox\n; a (\n,\u{a0}#| b #| c |# ( |# #||#;"), []);
    }

    #[test]
    fn the_first_fault_is_reported_at_its_opening() {
        assert_eq!(fault("a \"b"), (LexFault::UnterminatedString, 2, 3));
        assert_eq!(fault("a \"b\\\""), (LexFault::UnterminatedString, 2, 3));
        assert_eq!(fault("#\"b\\"), (LexFault::UnterminatedRegex, 0, 2));
        assert_eq!(fault("#| #| |#"), (LexFault::UnterminatedComment, 0, 2));
        assert_eq!(fault("(print “a”)"), (LexFault::UnexpectedCharacter, 7, 10));
        assert_eq!(fault("x\u{0}"), (LexFault::UnexpectedCharacter, 1, 2));
        assert_eq!(fault("\\"), (LexFault::UnexpectedCharacter, 0, 1));
        assert_eq!(fault("```clojure"), (LexFault::MarkdownFence, 0, 3));
        assert_eq!(fault("# a"), (LexFault::UnknownDispatch, 0, 1));
    }
}
