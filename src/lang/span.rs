//! Places in source text.

use arcstr::ArcStr;
use std::fmt;

/// A range of bytes in a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` up to but not including `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// What errors call a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// That: a file name, or whatever the host calls it.
    Given(ArcStr),
    /// `program 3`, for the third of its session.
    Program(u32),
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceName::Given(name) => f.write_str(name),
            SourceName::Program(number) => write!(f, "program {number}"),
        }
    }
}

/// A program's text with the name it is shown under.
#[derive(Debug)]
pub struct Source {
    /// What errors call it.
    pub name: SourceName,
    /// The whole text.
    pub text: ArcStr,
    /// True for what belongs to the language: an error in it is shown where the program called it.
    pub is_hidden: bool,
}

impl Source {
    /// A source of that name and text.
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: SourceName::Given(name.into()), text: text.into(), is_hidden: false }
    }

    /// A source that no error shows: a file of the prelude.
    pub fn hidden(name: &str) -> Source {
        Source { name: SourceName::Given(name.into()), text: ArcStr::new(), is_hidden: true }
    }

    /// Line and column of a byte offset, both from 1, the column in characters.
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
