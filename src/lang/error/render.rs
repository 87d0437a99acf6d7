//! Renders errors for people and models: the message, the source line with a caret, the suggestion, and the calls that
//! led there.

use super::{Fault, Halt, TraceEntry};
use crate::foreign_text;
use crate::span::{Source, Span};
use ariadne::{CharSet, Config, IndexType, Label, Report, ReportKind};
use std::borrow::Cow;
use std::fmt::Write;

/// Maximum length of a source line in the output; of a longer one only the position is shown.
const LONGEST_LINE: usize = 400;

/// Maximum length of a message in bytes; the rest is omitted.
const LONGEST_MESSAGE: usize = 64 << 10;

/// The input of the renderer.
pub struct Diagnosis<'a> {
    /// The stable code.
    pub code: &'a str,
    /// The message.
    pub message: &'a str,
    /// The source that the error concerns.
    pub source: &'a Source,
    /// The position in the source.
    pub span: Span,
    /// Other positions, each with an explanation.
    pub related: &'a [(Span, String)],
    /// A suggested correction.
    pub suggestion: Option<&'a str>,
    /// The calls that led to the error.
    pub trace: &'a [TraceEntry],
}

impl<'a> Diagnosis<'a> {
    /// Creates the diagnosis of a fault.
    pub fn of(fault: &'a Fault) -> Diagnosis<'a> {
        Diagnosis {
            code: &fault.error.code,
            message: shown(&fault.error.message),
            source: &fault.source,
            span: fault.span,
            related: &fault.related,
            suggestion: fault.error.suggestion.as_deref(),
            trace: &fault.trace,
        }
    }

    /// Renders the diagnosis, in colour for a terminal or plain otherwise.
    pub fn render(&self, colour: bool) -> String {
        let mut out = format!("{}: {}\n", foreign_text::line(self.code), foreign_text::message(self.message));
        let (line, column) = self.source.line_column(self.span.start);
        if self.shows_line() {
            out.push_str(&self.excerpt(colour));
        } else {
            let _ = writeln!(out, "  at {}:{line}:{column}", self.source.name);
        }
        if let Some(suggestion) = self.suggestion {
            let _ = writeln!(out, "{}", foreign_text::message(suggestion));
        }
        for entry in self.trace {
            let _ = writeln!(out, "  in {}", foreign_text::line(&trace_line(entry)));
        }
        out.truncate(out.trim_end().len());
        out
    }

    fn shows_line(&self) -> bool {
        let text = &self.source.text;
        let spans = self.related.iter().map(|(span, _)| *span).chain([self.span]);
        spans.into_iter().all(|span| {
            let start = (span.start as usize).min(text.len());
            let from = text[..text.floor_char_boundary(start)].rfind('\n').map_or(0, |at| at + 1);
            let to = text[text.floor_char_boundary(start)..].find('\n').map_or(text.len(), |at| start + at);
            to - from <= LONGEST_LINE
        })
    }

    fn excerpt(&self, colour: bool) -> String {
        let name = self.source.name.to_string();
        let name = name.as_str();
        let config = Config::default()
            .with_index_type(IndexType::Byte)
            .with_color(colour)
            .with_char_set(if colour { CharSet::Unicode } else { CharSet::Ascii })
            .with_compact(true);
        let range = |span: Span| {
            let start = (span.start as usize).min(self.source.text.len());
            // For a long form, a caret under its first line suffices.
            let line_end = self.source.text[self.source.text.floor_char_boundary(start)..]
                .find('\n')
                .map_or(self.source.text.len(), |at| start + at);
            start..(span.end as usize).clamp(start, line_end.max(start))
        };
        let mut report = Report::build(ReportKind::Error, (name, range(self.span)))
            .with_config(config)
            .with_label(Label::new((name, range(self.span))).with_message("here"));
        for (span, what) in self.related {
            report = report.with_label(Label::new((name, range(*span))).with_message(what));
        }
        let mut bytes = Vec::new();
        let text = without_controls(&self.source.text);
        let written = report.finish().write((name, ariadne::Source::from(&*text)), &mut bytes);
        if written.is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        // The first line is ariadne's own title; ours precedes it already.
        text.lines().skip(1).map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// Replaces each byte of a terminal control character by `?`, so that all offsets stay valid.
fn without_controls(text: &str) -> Cow<'_, str> {
    let steers = |c: char| foreign_text::is_unprintable(c) && c != '\n' && c != '\r';
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if steers(c) { "?".repeat(c.len_utf8()) } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Formats a call in a trace: `total (program 2:3:5)`.
pub fn trace_line(entry: &TraceEntry) -> String {
    let (line, column) = entry.source.line_column(entry.span.start);
    format!("{} (called at {}:{line}:{column})", entry.function, entry.source.name)
}

/// Truncates a message to the maximum length shown in a reply.
pub fn shown(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST_MESSAGE)]
}

/// Formats the message of a halt; for a limit: its name, its value, and the amount spent. How to raise the limit is
/// known to the operator.
pub fn halt_message(halt: &Halt) -> String {
    match halt {
        Halt::Limit { name: "program", allowed, spent } => {
            format!("the program is too long: {spent}; the limit `program` allows {allowed}")
        }
        Halt::Limit { name, allowed, spent } => {
            format!("limit `{name}` exceeded: {spent}, allowed {allowed}; reduce the work")
        }
        Halt::Cancelled => "the evaluation was cancelled".to_string(),
        Halt::Suspended => "the run waits for the decision of a person".to_string(),
        Halt::Diverged(how) | Halt::Unplanned(how) | Halt::Repeated(how) => how.clone(),
        Halt::Rehearsed(tool) => format!(
            "the result of `{tool}` is not known in a rehearsal, because the call was not made; the program may pass it \
             on, store it and return it, but not depend on it"
        ),
    }
}
