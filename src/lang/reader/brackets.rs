//! The one pass over the brackets: how deep they are nested, and which are unclosed, surplus or mismatched.
//!
//! A bracket that does not fit can be read in three ways: those inside were not closed, it is of the wrong kind, or
//! it is one too many. The pass is run under each reading, and the one that finds the fewest faults is reported.

use super::report::report;
use super::{MAX_NESTING, ReadError};
use crate::lang::lexer::{Lexeme, Token};
use crate::lang::span::Span;

/// A bracket out of place. Numbers are indices of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing closes it before the end of the program.
    Unclosed { opener: usize },
    /// Something around it is closed first.
    UnclosedBefore { opener: usize, closer: usize },
    /// It is closed by a bracket of another kind.
    WrongCloser { opener: usize, closer: usize },
    /// It closes nothing.
    Surplus { closer: usize, inside: Option<usize> },
}

/// What to make of a closer that does not fit the innermost opener.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    InnerUnclosed,
    WrongKind,
    Surplus,
}

/// A reading for closers that fit an opener further out, and one for those that fit none.
type Readings = (Reading, Reading);

const READINGS: [Readings; 4] = [
    (Reading::InnerUnclosed, Reading::WrongKind),
    (Reading::InnerUnclosed, Reading::Surplus),
    (Reading::WrongKind, Reading::WrongKind),
    (Reading::Surplus, Reading::Surplus),
];

/// Refuses brackets that are nested too deeply or not balanced.
pub(super) fn check(source: &str, lexemes: &[Lexeme], most: usize) -> Result<(), ReadError> {
    let first = walk(lexemes, READINGS[0], most)?;
    if first.is_empty() {
        return Ok(());
    }
    // A reading under which the nesting grows too deep explains nothing.
    let others = READINGS[1..].iter().filter_map(|readings| walk(lexemes, *readings, most).ok());
    let fewest = others.fold(first, |fewest, faults| if faults.len() < fewest.len() { faults } else { fewest });
    Err(report(source, lexemes, &fewest))
}

/// True if nothing but closing brackets is missing.
pub(super) fn only_unclosed(lexemes: &[Lexeme]) -> bool {
    walk(lexemes, READINGS[0], MAX_NESTING)
        .is_ok_and(|faults| faults.iter().all(|fault| matches!(fault, Fault::Unclosed { .. })))
}

fn walk(
    lexemes: &[Lexeme],
    (if_fits_outside, if_fits_nowhere): Readings,
    most: usize,
) -> Result<Vec<Fault>, ReadError> {
    let mut open: Vec<(usize, Token)> = Vec::with_capacity(8);
    let mut faults = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        if let Some(closer) = lexeme.token.closer() {
            if open.len() == most {
                return Err(too_deep(lexeme.span, most));
            }
            open.push((at, closer));
            continue;
        }
        if !lexeme.token.is_closer() {
            continue;
        }
        let Some(&(innermost, needed)) = open.last() else {
            faults.push(Fault::Surplus { closer: at, inside: None });
            continue;
        };
        if needed == lexeme.token {
            open.pop();
            continue;
        }
        let fitting = open.iter().rposition(|(_, needed)| *needed == lexeme.token);
        match if fitting.is_some() { if_fits_outside } else { if_fits_nowhere } {
            Reading::InnerUnclosed => {
                let inner = open.drain(fitting.unwrap_or_default()..).skip(1).rev();
                faults.extend(inner.map(|(opener, _)| Fault::UnclosedBefore { opener, closer: at }));
            }
            Reading::WrongKind => {
                open.pop();
                faults.push(Fault::WrongCloser { opener: innermost, closer: at });
            }
            Reading::Surplus => faults.push(Fault::Surplus { closer: at, inside: Some(innermost) }),
        }
    }
    faults.extend(open.iter().map(|(opener, _)| Fault::Unclosed { opener: *opener }));
    Ok(faults)
}

/// The error for the bracket or prefix that goes one level too deep.
pub(super) fn too_deep(span: Span, most: usize) -> ReadError {
    let message = format!("forms are nested more than {most} deep");
    ReadError::new("NestingTooDeep", span, message).suggest("give the inner parts names with `def`, `let` or `defn`")
}
