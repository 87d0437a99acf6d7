//! Uses the indentation as evidence for unbalanced brackets.
//!
//! In conventionally indented Lisp code, the lines of a form are indented further than its opening bracket. So a line
//! that begins further left shows where the author took a form to end, and a line that begins further right than a form
//! that has just ended shows that this form ended too early. Evidence is used only if the program would be balanced by
//! its implication, and only for advice.

use super::place::Lines;
use crate::lexer::Lexeme;

/// The presumed end of a form. Numbers are indices of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// The form's opening bracket.
    pub(super) opener: usize,
    /// Its closing bracket, or the last token that can be inside it.
    pub(super) closer: usize,
    /// The token at the start of the line that is the evidence.
    pub(super) before: usize,
}

/// The lines that count as evidence for the end of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// Every line that begins no further right than the form itself.
    EveryLine,
    /// A bracket opened in the first column.
    TopLevel,
}

/// Returns the forms that lack their closing bracket, in the order of their ends according to the indentation, inner
/// before outer. Returns `None` if closing them there would not balance the program.
pub(super) fn endings(lexemes: &[Lexeme], lines: &Lines<'_>) -> Option<Vec<Ending>> {
    [Evidence::EveryLine, Evidence::TopLevel]
        .into_iter()
        .find_map(|evidence| endings_by(lexemes, lines, evidence))
        .filter(|endings| !endings.is_empty())
}

fn endings_by(lexemes: &[Lexeme], lines: &Lines<'_>, evidence: Evidence) -> Option<Vec<Ending>> {
    let mut open: Vec<(usize, u32)> = Vec::new();
    let mut endings = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        let opens = lexeme.token.closer().is_some();
        if begins_line(lexemes, lines, at) && !lexeme.token.is_closer() {
            let indent = lines.indent(lexeme.span.start);
            while let Some((opener, _)) = open
                .pop_if(|(_, column)| *column >= indent && (evidence == Evidence::EveryLine || (opens && indent == 0)))
            {
                endings.push(Ending { opener, closer: at - 1, before: at });
            }
        }
        if opens {
            open.push((at, column(lexemes, lines, at)));
        } else if lexeme.token.is_closer() {
            let (opener, _) = open.pop()?;
            if lexemes[opener].token.closer() != Some(lexeme.token) {
                return None;
            }
        }
    }
    if endings.is_empty() {
        return None;
    }
    let last = lexemes.len().checked_sub(1)?;
    endings.extend(open.iter().rev().map(|(opener, _)| Ending {
        opener: *opener,
        closer: last,
        before: lexemes.len(),
    }));
    Some(endings)
}

/// Returns the first bracket opened in the first column while a form is open, and that form.
pub(super) fn restart(lexemes: &[Lexeme], lines: &Lines<'_>) -> Option<(usize, usize)> {
    let mut open: Vec<usize> = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        if lexeme.token.closer().is_some() {
            match open.first() {
                Some(outermost) if lines.indent(lexeme.span.start) == 0 => return Some((at, *outermost)),
                _ => open.push(at),
            }
        } else if lexeme.token.is_closer() {
            open.pop();
        }
    }
    None
}

/// Finds the form before a surplus closing bracket that seems to have ended too early: a complete top-level form that
/// the indentation of the next line contradicts, else the last inner form with such evidence, else a top-level form
/// that another one follows on its line.
pub(super) fn ended_early(lexemes: &[Lexeme], lines: &Lines<'_>, surplus: usize) -> Option<Ending> {
    let mut open: Vec<usize> = Vec::new();
    // The forms that ended since the last token that is not a closing bracket, the outermost last.
    let mut ended: Vec<Ending> = Vec::new();
    let (mut inner, mut same_line) = (None, None);
    for (at, lexeme) in lexemes.iter().enumerate().take(surplus) {
        if lexeme.token.is_closer() {
            let opener = open.pop()?;
            ended.push(Ending { opener, closer: at, before: at + 1 });
            continue;
        }
        let is_top_level = open.is_empty();
        if begins_line(lexemes, lines, at) {
            let indent = lines.indent(lexeme.span.start);
            let is_left = |ending: &&Ending| lines.indent(lexemes[ending.opener].span.start) < indent;
            let early = ended.iter().rev().find(is_left).copied();
            if is_top_level && early.is_some() {
                return early;
            } else if is_top_level {
                (inner, same_line) = (None, None);
            } else {
                inner = early.or(inner);
            }
        } else if is_top_level {
            same_line = same_line.or(ended.last().copied());
        }
        ended.clear();
        if lexeme.token.closer().is_some() {
            open.push(at);
        }
    }
    inner.or(same_line)
}

/// Returns the column of a form, including the prefixes attached to its opening bracket.
fn column(lexemes: &[Lexeme], lines: &Lines<'_>, opener: usize) -> u32 {
    let mut start = lexemes[opener].span.start;
    let prefixes = lexemes[..opener].iter().rev().take_while(|lexeme| lexeme.token.is_prefix());
    for prefix in prefixes {
        if prefix.span.end != start {
            break;
        }
        start = prefix.span.start;
    }
    lines.indent(start)
}

fn begins_line(lexemes: &[Lexeme], lines: &Lines<'_>, at: usize) -> bool {
    match at.checked_sub(1) {
        Some(previous) => lines.line(lexemes[previous].span.end) < lines.line(lexemes[at].span.start),
        None => true,
    }
}
