//! Lines and columns, for messages that name several positions.

use std::fmt;

/// The offsets of the lines of a text.
pub(super) struct Lines<'s> {
    source: &'s str,
    starts: Vec<u32>,
}

impl<'s> Lines<'s> {
    /// Finds the lines of a text.
    pub(super) fn new(source: &'s str) -> Lines<'s> {
        let breaks = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        Lines { source, starts }
    }

    /// Returns the number of the line that contains an offset, from 1.
    pub(super) fn line(&self, offset: u32) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// Returns the number of bytes before an offset on its line.
    pub(super) fn indent(&self, offset: u32) -> u32 {
        let start = self.starts.get(self.line(offset) - 1).copied().unwrap_or_default();
        offset - start
    }

    /// Returns the line and column of an offset, for messages.
    pub(super) fn place(&self, offset: u32) -> LineColumn {
        let start = offset - self.indent(offset);
        let before = self.source.get(start as usize..offset as usize).unwrap_or_default();
        LineColumn { line: self.line(offset), column: before.chars().count() + 1 }
    }
}

/// A line and a column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineColumn {
    line: usize,
    column: usize,
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
