//! The lines of a byte stream, each read up to a maximum size.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::super::envelope::Envelope;
use super::pieces::{Kind, Piece, Pieces};
use super::reading::Unreadable;

/// Reads the lines of a peer. A line over the maximum size is scanned, not buffered.
pub(super) struct LineReader<Read> {
    read: BufReader<Read>,
    line: Vec<u8>,
    /// Towards a server: the scan of the line so far, and how many bytes of it were scanned.
    pub(super) scanned: (Envelope, usize),
    /// The scan of a line over the cap, until its end.
    oversized: Option<Envelope>,
    largest: usize,
    /// Towards a server: the beginning of a message that does not stand on a line.
    pieces: Pieces,
}

impl<Read: AsyncRead + Unpin> LineReader<Read> {
    /// Reads lines of up to `largest` bytes.
    pub(super) fn new(read: Read, largest: usize) -> LineReader<Read> {
        LineReader {
            read: BufReader::with_capacity(64 << 10, read),
            line: Vec::new(),
            scanned: Default::default(),
            oversized: None,
            largest,
            pieces: Pieces::default(),
        }
    }

    /// Reads up to the end of a line, for [`LineReader::take`]; `Some` for one over the cap, `None` at the end of the
    /// stream. Cancel-safe: data that was read stays in `self` when the future is dropped.
    pub(super) async fn next_line(&mut self, is_of_server: bool) -> Option<Option<Envelope>> {
        loop {
            let available = match self.read.fill_buf().await {
                Ok(available) if !available.is_empty() => available,
                Ok(_) => return None,
                Err(problem) => {
                    tracing::warn!(%problem, "a peer's stream broke");
                    return None;
                }
            };
            let (taken, is_end) = self.pieces.end_in(available);
            let piece = &available[..taken];
            if let Some(scan) = &mut self.oversized {
                scan.feed(piece);
            } else if self.line.len() + taken > self.largest {
                let mut scan = self.pieces.begun();
                scan.feed(&self.line);
                scan.feed(piece);
                self.oversized = Some(scan);
                self.line = Vec::new();
            } else {
                if self.line.is_empty() {
                    self.scanned = Default::default();
                }
                self.line.extend_from_slice(piece);
            }
            self.read.consume(taken);
            if self.ends(is_end, is_of_server) && !self.pieces.take_header(&mut self.line) {
                return Some(self.oversized.take());
            }
        }
    }

    /// Returns whether the line that was read so far is whole, whose end was found or not. Some servers end a message by
    /// nothing, and some announce its characters in place of its bytes. Each byte is scanned once at most.
    fn ends(&mut self, is_end: bool, is_of_server: bool) -> bool {
        let text = self.line.trim_ascii_end();
        let is_closed = text.ends_with(b"}");
        let is_doubtful = if is_end { !self.line.ends_with(b"\n") } else { is_closed };
        let is_kept = self.oversized.is_none();
        if is_of_server && is_kept && is_doubtful && text.trim_ascii_start().starts_with(b"{") {
            let (scan, bytes) = &mut self.scanned;
            scan.feed(&self.line[*bytes..]);
            *bytes = self.line.len();
            return !scan.is_open();
        }
        is_end
    }

    /// Takes the line that was read.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }

    /// Adds a line of that kind to the message that has begun, if there is one.
    pub(super) fn join(&mut self, line: Vec<u8>, kind: Kind) -> Piece {
        self.pieces.add(line, kind, self.largest)
    }

    /// Returns the problem of the message to which a line over the maximum size belongs; `None` if the message goes on.
    pub(super) fn end_of_large(&mut self, scan: Envelope) -> Option<(Envelope, Unreadable)> {
        self.pieces.go_on(scan).map(|envelope| self.large(envelope))
    }

    /// Returns the problem of a message over the maximum size.
    pub(super) fn large(&self, envelope: Envelope) -> (Envelope, Unreadable) {
        let bytes = envelope.bytes();
        (envelope, Unreadable::Large { bytes, most: self.largest })
    }
}
