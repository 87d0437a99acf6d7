//! Positions in source text.

use arcstr::ArcStr;
use std::fmt;

/// A range of bytes in a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset past the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the span from `start` up to but not including `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// Returns the smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// The name of a source in error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// A given name: a file name, or any name that the host chooses.
    Given(ArcStr),
    /// `program 3`, for the third program of its session.
    Program(u32),
    /// A given name, or that of a program, whose text is that of a stored session from which the source was restored.
    Stored(ArcStr),
}

impl SourceName {
    /// Returns the name that the source had when it was read.
    pub fn original(&self) -> String {
        match self {
            SourceName::Stored(name) => name.to_string(),
            name => name.to_string(),
        }
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceName::Given(name) => f.write_str(name),
            SourceName::Program(number) => write!(f, "program {number}"),
            SourceName::Stored(name) => write!(f, "stored {name}"),
        }
    }
}

/// A program's text and the name under which it is shown.
#[derive(Debug)]
pub struct Source {
    /// The name in error messages.
    pub name: SourceName,
    /// The whole text.
    pub text: ArcStr,
    /// True for the language's own sources: an error in one is reported at the program's call.
    pub is_hidden: bool,
}

impl Source {
    /// Creates a source with that name and text.
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: SourceName::Given(name.into()), text: text.into(), is_hidden: false }
    }

    /// Creates a source that no error shows: a file of the prelude.
    pub fn hidden(name: &str) -> Source {
        Source { name: SourceName::Given(name.into()), text: ArcStr::new(), is_hidden: true }
    }

    /// Returns the line and column of a byte offset, both from 1, the column in characters.
    ///
    /// ```
    /// use lispbox::lang::Source;
    /// assert_eq!(Source::new("p", "ab\ncde").line_column(4), (2, 2));
    /// ```
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let before = &self.text[..self.text.floor_char_boundary(offset as usize)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        (line as u32, column as u32)
    }
}
