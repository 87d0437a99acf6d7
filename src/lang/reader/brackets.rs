//! The pass over the brackets: checks their nesting, and finds unclosed, surplus and mismatched ones.
//!
//! A bracket that does not match has three possible interpretations: brackets inside were not closed, it is of the
//! wrong kind, or it is surplus. The pass runs under each interpretation, and reports the one with the fewest faults.

use super::report::report;
use super::{MAX_NESTING, ReadError};
use crate::lexer::{Lexeme, Token};
use crate::span::Span;
use smallvec::SmallVec;

/// A misplaced bracket. Numbers are indices of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// An opening bracket that nothing closes before the end of the program.
    Unclosed { opener: usize },
    /// An opening bracket that is open when an enclosing one is closed.
    UnclosedBefore { opener: usize, closer: usize },
    /// An opening bracket that is closed by a bracket of another kind.
    WrongCloser { opener: usize, closer: usize },
    /// A closing bracket that closes nothing.
    Surplus { closer: usize, inside: Option<usize> },
}

/// The interpretation of a closing bracket that does not match the innermost opening one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    InnerUnclosed,
    WrongKind,
    Surplus,
}

/// The interpretation of closing brackets that match an outer opening one, and of those that match none.
type Readings = (Reading, Reading);

const READINGS: [Readings; 4] = [
    (Reading::InnerUnclosed, Reading::WrongKind),
    (Reading::InnerUnclosed, Reading::Surplus),
    (Reading::WrongKind, Reading::WrongKind),
    (Reading::Surplus, Reading::Surplus),
];

/// Rejects brackets that are nested too deeply or not balanced.
pub(super) fn check(source: &str, lexemes: &[Lexeme], most: usize) -> Result<(), ReadError> {
    let first = walk(lexemes, READINGS[0], most)?;
    if first.is_empty() {
        return Ok(());
    }
    // Skip interpretations under which the nesting exceeds the maximum.
    let others = READINGS[1..].iter().filter_map(|readings| walk(lexemes, *readings, most).ok());
    let fewest = others.fold(first, |fewest, faults| if faults.len() < fewest.len() { faults } else { fewest });
    Err(report(source, lexemes, &fewest))
}

/// Returns whether only closing brackets at the end are missing.
pub(super) fn only_unclosed(lexemes: &[Lexeme]) -> bool {
    walk(lexemes, READINGS[0], MAX_NESTING)
        .is_ok_and(|faults| faults.iter().all(|fault| matches!(fault, Fault::Unclosed { .. })))
}

fn walk(
    lexemes: &[Lexeme],
    (if_fits_outside, if_fits_nowhere): Readings,
    most: usize,
) -> Result<Vec<Fault>, ReadError> {
    let mut open: SmallVec<[(usize, Token); 8]> = SmallVec::new();
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

/// Builds the error for a bracket or prefix that exceeds the maximum nesting.
pub(super) fn too_deep(span: Span, most: usize) -> ReadError {
    let message = format!("forms are nested more than {most} deep");
    ReadError::new("NestingTooDeep", span, message).suggest("give the inner parts names with `def`, `let` or `defn`")
}
