//! The cost of text for a model, in bytes and tokens.
//!
//! Tokens are estimated: the vocabulary of a tokenizer would be several megabytes of the binary. Text is cut as the
//! pattern of o200k_base cuts it, into words, digits, signs and blanks; each piece is taken for as many tokens as such
//! pieces have on average.

use std::iter::Peekable;
use std::ops::AddAssign;
use std::str::Chars;

/// The cost of some texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of bytes in UTF-8.
    pub bytes: usize,
    /// The estimated number of tokens.
    pub tokens: usize,
}

impl Cost {
    /// Returns the cost of these texts.
    pub fn of(texts: &[&str]) -> Cost {
        let mut all = Cost::default();
        for text in texts {
            all += Cost { bytes: text.len(), tokens: tokens(text) };
        }
        all
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.bytes += other.bytes;
        self.tokens += other.tokens;
    }
}

/// Characters of a word that are usually one token.
const WORD: usize = 8;
/// Tokens of each further character of a word.
const LONG: f64 = 0.18;
/// Tokens of each byte of a letter or a sign that ASCII does not have, after its first.
const FOREIGN: f64 = 0.5;
/// Tokens of a sign before a word, which often has it as its first character; brackets and quotes are tokens of their own.
const JOINED: f64 = 0.6;
/// Tokens of each further sign in a row.
const SIGN: f64 = 0.12;
/// Tokens of blanks that no word has as its first character.
const BLANKS: f64 = 1.0;

/// The class of a character in the pattern that splits text into pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    Lower,
    Digit,
    Sign,
    Blank,
    Line,
}

impl Kind {
    fn of(c: char) -> Kind {
        match c {
            '\n' | '\r' => Kind::Line,
            c if c.is_whitespace() => Kind::Blank,
            c if c.is_numeric() => Kind::Digit,
            c if c.is_ascii_uppercase() => Kind::Upper,
            c if c.is_alphabetic() => Kind::Lower,
            _ => Kind::Sign,
        }
    }

    fn is_letter(self) -> bool {
        matches!(self, Kind::Upper | Kind::Lower)
    }
}

/// Estimates the number of tokens of a text: within a tenth for prose, JSON and code in Latin letters, and within a sixth for
/// a short program.
fn tokens(text: &str) -> usize {
    let is_digit = |c: &char| Kind::of(*c) == Kind::Digit;
    let mut rest = text.chars().peekable();
    let (mut tokens, mut before) = (0.0, Kind::Blank);
    while let Some(first) = rest.next() {
        let kind = Kind::of(first);
        tokens += match kind {
            Kind::Upper | Kind::Lower => word(first, kind, &mut rest),
            Kind::Digit => {
                // Three digits are a token.
                let _ = (rest.next_if(is_digit), rest.next_if(is_digit));
                1.0
            }
            Kind::Sign => signs(first, &mut rest),
            Kind::Blank => {
                let is_run = run(&mut rest, Kind::Blank).0 > 0;
                let before_digit = rest.peek().is_some_and(is_digit);
                if is_run || before_digit { BLANKS } else { 0.0 }
            }
            Kind::Line => {
                run(&mut rest, Kind::Line);
                if before == Kind::Sign { 0.0 } else { 1.0 }
            }
        };
        before = kind;
    }
    tokens.round() as usize
}

/// Takes a word: upper-case letters, then others.
fn word(first: char, kind: Kind, rest: &mut Peekable<Chars<'_>>) -> f64 {
    let (mut letters, mut bytes, mut is_lower) = (1, first.len_utf8(), kind == Kind::Lower);
    while let Some(c) = rest.next_if(|c| {
        let kind = Kind::of(*c);
        kind == Kind::Lower || kind == Kind::Upper && !is_lower
    }) {
        is_lower |= Kind::of(c) == Kind::Lower;
        letters += 1;
        bytes += c.len_utf8();
    }
    1.0 + (bytes - letters) as f64 * FOREIGN + letters.saturating_sub(WORD) as f64 * LONG
}

/// Takes a run of signs.
fn signs(first: char, rest: &mut Peekable<Chars<'_>>) -> f64 {
    let (further, bytes) = run(rest, Kind::Sign);
    let is_joined = further == 0
        && !"([{\"'".contains(first)
        && first.is_ascii()
        && rest.peek().is_some_and(|c| Kind::of(*c).is_letter());
    let foreign = first.len_utf8() - 1 + bytes - further;
    if is_joined { JOINED } else { 1.0 + further as f64 * SIGN + foreign as f64 * FOREIGN }
}

/// Takes the next characters of a kind; returns how many there were, and their bytes.
fn run(rest: &mut Peekable<Chars<'_>>, kind: Kind) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    while let Some(c) = rest.next_if(|c| Kind::of(*c) == kind) {
        count += 1;
        bytes += c.len_utf8();
    }
    (count, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_mailbox::{mailbox, schemas};

    #[test]
    fn tokens_are_estimated_within_a_tenth() {
        let encoding = tiktoken_rs::o200k_base().expect("the vocabulary is built in");
        let mails =
            mailbox::Mailbox::new().call("fetch-emails", &mailbox::Arguments::new()).expect("a tool").expect("mails");
        let mails = mails.to_string();
        let schemas = serde_json::to_string(&schemas::tools()).expect("JSON");
        for text in [
            mails.as_str(),
            schemas.as_str(),
            include_str!("../../../../README.md"),
            include_str!("../../../../docs/security.md"),
            include_str!("../../../../tests/clojure/data-numbers.md"),
            include_str!("costs.rs"),
        ] {
            let (counted, estimated) = (encoding.encode_ordinary(text).len(), tokens(text));
            let start: String = text.chars().take(40).collect();
            assert!(estimated.abs_diff(counted) * 10 <= counted, "{estimated}, not {counted}: {start}");
        }
    }

    #[test]
    fn every_character_costs_something_somewhere() {
        assert_eq!(tokens(""), 0);
        for text in ["a", "7", "-", "\n", "  "] {
            assert_eq!(tokens(text), 1, "{text:?}");
        }
        assert_eq!(tokens(&"word ".repeat(1_000)), 1_000);
        assert_eq!(tokens("123456789"), 3);
    }
}
