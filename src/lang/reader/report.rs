//! Reports unbalanced brackets: the main fault, the suggested correction, and the other faults.

use super::brackets::Fault;
use super::indentation::{self, Ending};
use super::place::Lines;
use super::{ReadError, excerpt, text_of};
use crate::lexer::{Lexeme, Token};
use crate::span::Span;

/// Maximum number of faults that a report lists besides the main one.
const MOST_RELATED: usize = 8;

/// Builds the error for these faults, which are in the order of the pass; there is at least one.
pub(super) fn report(source: &str, lexemes: &[Lexeme], faults: &[Fault]) -> ReadError {
    Report { source, lexemes, lines: Lines::new(source) }.of(faults)
}

/// The context for the wording of a report.
struct Report<'s> {
    source: &'s str,
    lexemes: &'s [Lexeme],
    lines: Lines<'s>,
}

impl Report<'_> {
    fn of(&self, faults: &[Fault]) -> ReadError {
        let unclosed = |fault: &Fault| matches!(fault, Fault::Unclosed { .. } | Fault::UnclosedBefore { .. });
        let mut error = match faults.first() {
            _ if faults.iter().all(unclosed) => self.missing(faults),
            Some(Fault::Surplus { closer, inside }) => self.surplus(faults, *closer, *inside),
            _ => self.one_and_others(faults),
        };
        error.incomplete = faults.iter().all(|fault| matches!(fault, Fault::Unclosed { .. }));
        error
    }

    /// Reports missing closing brackets: at the positions that the indentation suggests, or at the end of the program.
    fn missing(&self, faults: &[Fault]) -> ReadError {
        let endings = indentation::endings(self.lexemes, &self.lines).unwrap_or_default();
        let here = endings.iter().take_while(|ending| ending.before == endings[0].before).count();
        let (together, later) = endings.split_at(here);
        let openers: Vec<usize> = together.iter().map(|ending| ending.opener).collect();
        let (Some((outermost, inner)), Some(ending)) = (openers.split_last(), together.first()) else {
            return self.missing_at_end(faults);
        };
        let mut error = self.not_closed(*outermost, &openers, endings.len(), "");
        let others = inner.iter().rev().copied().chain(later.iter().map(|ending| ending.opener));
        error.related.extend(others.take(MOST_RELATED).map(|opener| self.also_unclosed(opener)));
        error.suggest(format!(
            "going by the indentation of line {}, `{}` {} at the end of line {}",
            self.lines.line(self.lexemes[ending.before].span.start),
            self.closers(&openers),
            if openers.len() == 1 { "belongs" } else { "belong" },
            self.lines.line(self.lexemes[ending.closer].span.end),
        ))
    }

    /// Reports missing closing brackets whose positions the indentation does not show.
    fn missing_at_end(&self, faults: &[Fault]) -> ReadError {
        let opener = |fault: &Fault| match fault {
            Fault::Unclosed { opener } => Some(*opener),
            _ => None,
        };
        let openers: Option<Vec<usize>> = faults.iter().rev().map(opener).collect();
        let openers = openers.unwrap_or_default();
        let Some((outermost, inner)) = openers.split_last() else {
            return self.one_and_others(faults);
        };
        let mut error = self.not_closed(*outermost, &openers, openers.len(), " at the end of the program");
        error.related.extend(inner.iter().rev().take(MOST_RELATED).map(|opener| self.also_unclosed(*opener)));
        match indentation::restart(self.lexemes, &self.lines) {
            Some((restart, open)) => error.suggest(format!(
                "{} at {} looks like a new top-level form, but {} at {} is still open there: look between the two",
                self.opening(restart),
                self.place(restart),
                self.opening(open),
                self.place(open),
            )),
            None => error,
        }
    }

    fn not_closed(&self, opener: usize, openers: &[usize], total: usize, place: &str) -> ReadError {
        let count = openers.len();
        let message = format!(
            "{} opened at {} is not closed: {count} closing bracket{} `{}` {} missing{place}{}",
            self.opening(opener),
            self.place(opener),
            if count == 1 { "" } else { "s" },
            self.closers(openers),
            if count == 1 { "is" } else { "are" },
            if total == count { String::new() } else { format!(", {total} in the whole program") },
        );
        ReadError::new("UnbalancedBrackets", self.opening_span(opener), message)
    }

    fn also_unclosed(&self, opener: usize) -> (Span, String) {
        let message = format!("{} opened at {} is not closed either", self.opening(opener), self.place(opener));
        (self.opening_span(opener), message)
    }

    /// Reports a surplus closing bracket as the first fault, together with those directly after it.
    fn surplus(&self, faults: &[Fault], first: usize, inside: Option<usize>) -> ReadError {
        let run = (0..)
            .zip(faults)
            .take_while(|(nth, fault)| **fault == Fault::Surplus { closer: first + nth, inside })
            .count();
        let last = self.lexemes[first + run - 1].span;
        let closers: String =
            self.lexemes[first..first + run].iter().map(|lexeme| text_of(self.source, lexeme.span)).collect();
        let place = match inside {
            None => "nothing is open there".to_string(),
            Some(opener) => format!("{} opened at {} is open there", self.opening(opener), self.place(opener)),
        };
        let message = format!(
            "{run} closing bracket{} `{}` too many at {}: {place}",
            if run == 1 { "" } else { "s" },
            excerpt(&closers),
            self.place(first),
        );
        let error = ReadError::new("UnbalancedBrackets", self.lexemes[first].span.to(last), message);
        let mut error = self.and_others(error, &faults[run..]);
        let early = indentation::ended_early(self.lexemes, &self.lines, first);
        if let Some(Ending { opener, closer, before }) = early.filter(|_| inside.is_none()) {
            let form = format!("{} opened at {}", self.opening(opener), self.place(opener));
            error.related.insert(0, (self.lexemes[closer].span, format!("{form} ends here")));
            let line = self.lines.line(self.lexemes[closer].span.start);
            let next = self.lines.line(self.lexemes[before].span.start);
            let why = match next == line {
                true => "more follows on its line".to_string(),
                false => format!("line {next} is indented as if it were inside"),
            };
            error.suggestion = Some(format!(
                "{form} already ends at {}, but {why}: perhaps there is a closing bracket too many",
                self.place(closer),
            ));
        }
        error
    }

    /// Reports the first fault, with the others as related positions.
    fn one_and_others(&self, faults: &[Fault]) -> ReadError {
        let Some((fault, others)) = faults.split_first() else {
            return ReadError::new("UnbalancedBrackets", Span::default(), "brackets are not balanced");
        };
        let (span, message) = self.describe(*fault);
        let mut error = ReadError::new("UnbalancedBrackets", span, message);
        match *fault {
            Fault::UnclosedBefore { closer, .. } => {
                error.related.push((self.lexemes[closer].span, "this bracket closes a form further out".to_string()));
            }
            Fault::WrongCloser { opener, .. } => {
                error.related.push((self.opening_span(opener), "opened here".to_string()));
            }
            Fault::Unclosed { .. } | Fault::Surplus { .. } => {}
        }
        self.and_others(error, others)
    }

    fn and_others(&self, mut error: ReadError, others: &[Fault]) -> ReadError {
        error.related.extend(others.iter().take(MOST_RELATED).map(|fault| self.describe(*fault)));
        match others.len() {
            0 => {}
            1 => error.message.push_str(" (and 1 more bracket is out of place)"),
            more => error.message.push_str(&format!(" (and {more} more brackets are out of place)")),
        }
        error
    }

    fn describe(&self, fault: Fault) -> (Span, String) {
        match fault {
            Fault::Unclosed { opener } => {
                let message = format!("{} opened at {} is not closed", self.opening(opener), self.place(opener));
                (self.opening_span(opener), message)
            }
            Fault::UnclosedBefore { opener, closer } => {
                let message = format!(
                    "{} opened at {} is not closed before {} at {}: `{}` is missing",
                    self.opening(opener),
                    self.place(opener),
                    self.shown(closer),
                    self.place(closer),
                    self.closers(&[opener]),
                );
                (self.opening_span(opener), message)
            }
            Fault::WrongCloser { opener, closer } => {
                let message = format!(
                    "{} opened at {} is closed by {} at {}; expected `{}`",
                    self.opening(opener),
                    self.place(opener),
                    self.shown(closer),
                    self.place(closer),
                    self.closers(&[opener]),
                );
                (self.lexemes[closer].span, message)
            }
            Fault::Surplus { closer, .. } => {
                let message = format!("{} at {} is too many", self.shown(closer), self.place(closer));
                (self.lexemes[closer].span, message)
            }
        }
    }

    fn place(&self, index: usize) -> impl std::fmt::Display {
        self.lines.place(self.lexemes[index].span.start)
    }

    fn shown(&self, index: usize) -> String {
        format!("`{}`", text_of(self.source, self.lexemes[index].span))
    }

    /// Returns the closing brackets that these opening brackets need, in order.
    fn closers(&self, openers: &[usize]) -> String {
        let closer = |opener: &usize| match self.lexemes[*opener].token.closer() {
            Some(Token::VectorClose) => ']',
            Some(Token::MapClose) => '}',
            _ => ')',
        };
        openers.iter().map(closer).collect()
    }

    /// Returns the span of an opening bracket with the text that identifies it: the head of a call, and the name after
    /// `def…`.
    fn opening_span(&self, opener: usize) -> Span {
        let span = self.lexemes[opener].span;
        let name =
            |at: usize| self.lexemes.get(at).filter(|lexeme| lexeme.token == Token::Name).map(|lexeme| lexeme.span);
        match name(opener + 1).filter(|head| head.start == span.end) {
            Some(head) if self.lexemes[opener].token.closer() == Some(Token::ListClose) => {
                let defines = text_of(self.source, head).starts_with("def");
                let defined = name(opener + 2).filter(|name| defines && name.start == head.end + 1);
                span.to(defined.unwrap_or(head))
            }
            _ => span,
        }
    }

    fn opening(&self, opener: usize) -> String {
        format!("`{}`", excerpt(text_of(self.source, self.opening_span(opener))))
    }
}
