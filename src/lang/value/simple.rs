//! Regular expressions simple enough for a byte scan: a class of ASCII characters, single or as a run, and the end of a
//! line. They are the most common separators for splitting texts.

use super::walk::Pace;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Literal, Repetition};
use std::ops::Range;
use std::sync::Arc;

/// Maximum length of an expression that is analysed.
const LONGEST: usize = 64;

/// An expression that is matched by a byte scan. A clone shares the class.
#[derive(Clone, Debug)]
pub enum Simple {
    /// One character of a class, or a maximal run of them.
    Class {
        /// For each byte, true if it is a member.
        members: Arc<[bool; 256]>,
        /// True to match a maximal run.
        runs: bool,
    },
    /// `\r?\n`
    LineEnd,
}

impl Simple {
    /// Recognizes an expression in the syntax of the `regex` crate; `None` if it is not simple.
    pub fn of(expression: &str) -> Option<Simple> {
        if matches!(expression, "\r?\n" | r"\r?\n") {
            return Some(Simple::LineEnd);
        }
        if expression.len() > LONGEST {
            return None;
        }
        let parsed = ParserBuilder::new().crlf(true).build().parse(expression).ok()?;
        match parsed.kind() {
            HirKind::Repetition(Repetition { min: 1, max: None, greedy: true, sub }) => {
                Some(Simple::Class { members: members(sub)?, runs: true })
            }
            _ => Some(Simple::Class { members: members(&parsed)?, runs: false }),
        }
    }

    /// Returns the first match at or after the byte offset `from`.
    ///
    /// # Errors
    /// Returns the error of `pace` if it aborts the search.
    #[inline]
    pub fn find<P: Pace>(&self, text: &str, from: usize, pace: &mut P) -> Result<Option<Range<usize>>, P::Stop> {
        let bytes = text.as_bytes();
        match self {
            Simple::Class { members, runs } => {
                let Some(start) = first(bytes, from, pace, |byte| members[usize::from(byte)])? else { return Ok(None) };
                let end = match runs {
                    true => first(bytes, start, pace, |byte| !members[usize::from(byte)])?.unwrap_or(bytes.len()),
                    false => start + 1,
                };
                Ok(Some(start..end))
            }
            Simple::LineEnd => {
                let found = memchr::memchr(b'\n', &bytes[from..]);
                // `memchr` examines many bytes per instruction.
                pace.step(1 + found.unwrap_or(bytes.len() - from) as u64 / 512)?;
                Ok(found.map(|at| from + at).map(|at| {
                    let start = if at > from && bytes[at - 1] == b'\r' { at - 1 } else { at };
                    start..at + 1
                }))
            }
        }
    }
}

/// Returns the offset of the first byte at or after `from` that satisfies the predicate. Scans in pieces and charges
/// for each.
#[inline(always)]
fn first<P: Pace>(
    bytes: &[u8],
    from: usize,
    pace: &mut P,
    is_one: impl Fn(u8) -> bool,
) -> Result<Option<usize>, P::Stop> {
    const PIECE: usize = 1 << 14;
    let mut at = from;
    loop {
        let piece = &bytes[at..bytes.len().min(at + PIECE)];
        let found = piece.iter().position(|byte| is_one(*byte));
        let passed = found.unwrap_or(piece.len());
        pace.step(1 + passed as u64 / 64)?;
        at += passed;
        if found.is_some() || at == bytes.len() {
            return Ok(found.map(|_| at));
        }
    }
}

/// Returns the characters of a class or of a one-character literal; `None` unless all are ASCII.
fn members(expression: &Hir) -> Option<Arc<[bool; 256]>> {
    let mut members = [false; 256];
    match expression.kind() {
        HirKind::Literal(Literal(bytes)) => match &**bytes {
            [byte] if byte.is_ascii() => members[usize::from(*byte)] = true,
            _ => return None,
        },
        HirKind::Class(Class::Unicode(class)) => {
            for range in class.ranges() {
                let last = u8::try_from(range.end()).ok().filter(u8::is_ascii)?;
                for character in u8::try_from(range.start()).ok()?..=last {
                    members[usize::from(character)] = true;
                }
            }
        }
        _ => return None,
    }
    Some(Arc::new(members))
}

#[cfg(test)]
mod tests {
    use super::Simple;
    use crate::value::walk::Free;
    use proptest::prelude::*;
    use regex::RegexBuilder;

    const SIMPLE: [&str; 9] = [r"[\t\n\x0B\x0C\r\x20]+", ",", "[,;]", "[,;]+", "a+", r"\r?\n", "\r?\n", r"\t", "[0-9]"];

    #[test]
    fn what_needs_the_library_is_not_simple() {
        for expression in ["", "ab", "a*", "a+?", "(a)", "^a", "a|bc", "[^a]", r"\p{L}", "(?i)k", "é", r"\bx", "a{2}"]
        {
            assert!(Simple::of(expression).is_none(), "{expression}");
        }
        for expression in SIMPLE {
            assert!(Simple::of(expression).is_some(), "{expression}");
        }
    }

    proptest! {
        #[test]
        fn it_finds_what_the_library_finds(text in "[ab,; \t\r\n0é]{0,40}", which in 0..SIMPLE.len()) {
            let simple = Simple::of(SIMPLE[which]).expect("a simple one");
            let regex = RegexBuilder::new(SIMPLE[which]).crlf(true).build().expect("a valid one");
            for from in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let Ok(found) = simple.find(&text, from, &mut Free);
                prop_assert_eq!(found, regex.find_at(&text, from).map(|found| found.range()));
            }
        }
    }
}
