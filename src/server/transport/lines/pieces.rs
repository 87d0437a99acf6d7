//! Messages of servers that do not stand on a line each: JSON that is printed over several lines, messages behind
//! `Content-Length` headers as in the Language Server Protocol, and several messages on one line.

use serde_json::value::RawValue;

use super::super::envelope::Envelope;

/// The header that precedes each message in the framing of the Language Server Protocol.
const HEADER: &[u8] = b"content-length:";

/// The beginning of a message, as far as it has arrived.
#[derive(Default)]
pub(super) struct Pieces {
    /// The lines of a message that is printed over several.
    text: Vec<u8>,
    scan: Envelope,
    /// True while a line over the maximum size is scanned that is not the first of its message.
    has_begun: bool,
    frame: Option<Frame>,
}

/// The position within a message behind headers.
#[derive(Clone, Copy)]
enum Frame {
    /// The headers, of which one has named the number of bytes that follow them.
    Headers(usize),
    /// The message, of which so many bytes are missing.
    Message(usize),
}

/// What a line is by itself.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Message,
    /// A message that cannot be read, such as one that was cut off: its sender waits for the error.
    Broken,
    Other,
}

/// What a line is.
pub(super) enum Piece {
    /// A message, or a line that belongs to none.
    Alone(Vec<u8>),
    /// A part of a message that goes on, or a header.
    Part,
    /// The last line of this message.
    Last(Vec<u8>),
    /// The last line of a message over the maximum size, which was not kept.
    Large(Envelope),
}

impl Pieces {
    /// Returns the number of bytes up to the end of the line or of the message that is read, and whether that end is
    /// among them.
    pub(super) fn end_in(&mut self, available: &[u8]) -> (usize, bool) {
        let Some(Frame::Message(missing)) = &mut self.frame else {
            let newline = available.iter().position(|byte| *byte == b'\n');
            return (newline.map_or(available.len(), |place| place + 1), newline.is_some());
        };
        let taken = available.len().min(*missing);
        *missing -= taken;
        let is_end = *missing == 0;
        if is_end {
            self.frame = None;
        }
        (taken, is_end)
    }

    /// Drops a line that is a further header, or the blank line behind the headers; returns whether it was one.
    pub(super) fn take_header(&mut self, line: &mut Vec<u8>) -> bool {
        let Some(Frame::Headers(length)) = self.frame else { return false };
        if line.trim_ascii().is_empty() {
            self.frame = (length > 0).then_some(Frame::Message(length));
        }
        line.clear();
        true
    }

    /// Returns the scan of the message to which a line over the maximum size belongs, whose text is not kept.
    pub(super) fn begun(&mut self) -> Envelope {
        self.has_begun = self.scan.bytes() > 0;
        self.text = Vec::new();
        std::mem::take(&mut self.scan)
    }

    /// Takes the scan back at the end of that line, or returns it if the message is over.
    pub(super) fn go_on(&mut self, scan: Envelope) -> Option<Envelope> {
        let goes_on = std::mem::take(&mut self.has_begun) && scan.is_open();
        if !goes_on {
            return Some(scan);
        }
        self.scan = scan;
        None
    }

    /// Takes a line in, which is a message by itself, has the identity of one, or neither.
    pub(super) fn add(&mut self, line: Vec<u8>, kind: Kind, largest: usize) -> Piece {
        if self.scan.bytes() == 0 {
            if kind != Kind::Other {
                return Piece::Alone(line);
            }
            if let Some(length) = length_in(&line) {
                self.frame = Some(Frame::Headers(length));
                return Piece::Part;
            }
            let scan = Envelope::of(&line);
            if !matches!(line.trim_ascii().first(), Some(b'{' | b'[')) || !scan.is_open() {
                return Piece::Alone(line);
            }
            (self.text, self.scan) = (line, scan);
            return Piece::Part;
        }
        // A whole message shows that the lines before it were no beginning of one.
        let is_new = kind == Kind::Message && memchr::memmem::find(&line, b"\"jsonrpc\"").is_some();
        if is_new {
            (self.text, self.scan) = (Vec::new(), Envelope::default());
            return Piece::Alone(line);
        }
        self.scan.feed(&line);
        match self.scan.bytes() > largest as u64 {
            true => self.text = Vec::new(),
            false => self.text.extend_from_slice(&line),
        }
        if self.scan.is_open() {
            return Piece::Part;
        }
        let scan = std::mem::take(&mut self.scan);
        match self.text.is_empty() {
            true => Piece::Large(scan),
            false => Piece::Last(std::mem::take(&mut self.text)),
        }
    }
}

/// Returns a message, given as a line, behind the header that announces its length.
pub(super) fn framed(line: &[u8]) -> Vec<u8> {
    let message = line.strip_suffix(b"\n").unwrap_or(line);
    [format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes(), message].concat()
}

/// Returns the number of bytes that a header announces.
fn length_in(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii();
    let (name, value) = line.split_at_checked(HEADER.len())?;
    let value = std::str::from_utf8(value).ok()?.trim();
    name.eq_ignore_ascii_case(HEADER).then(|| value.parse().ok()).flatten()
}

/// Returns the messages of a batch, or those that stand one behind the other on a line; `None` if the text is something
/// else.
pub(super) fn several(text: &[u8]) -> Option<Vec<Box<RawValue>>> {
    let text = text.trim_ascii();
    if text.starts_with(b"[") {
        return serde_json::from_slice(text).ok();
    }
    let values = serde_json::Deserializer::from_slice(text).into_iter::<Box<RawValue>>();
    let values: Vec<Box<RawValue>> = values.collect::<Result<_, _>>().ok()?;
    (values.len() > 1).then_some(values)
}
