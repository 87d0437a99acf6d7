//! Extracts the identity of a JSON-RPC message that is too large or too malformed to be decoded, so that its waiting
//! sender or caller can be notified at once.

use rmcp::model::RequestId;

/// An incremental scan over the bytes of one message, in pieces of any size. It keeps a few hundred bytes.
#[derive(Debug, Default)]
pub(in crate::server) struct Envelope {
    depth: u32,
    deepest: u32,
    bytes: u64,
    marks: u64,
    string: StringState,
    key: Vec<u8>,
    /// The position at the top level of the object.
    place: Position,
    id: Vec<u8>,
    has_id: bool,
    batch: bool,
    has_method: bool,
}

#[derive(Debug, Default, PartialEq)]
enum StringState {
    #[default]
    Outside,
    Inside,
    Escaped,
}

#[derive(Debug, Default, PartialEq)]
enum Position {
    #[default]
    Key,
    Colon,
    Value,
}

/// Maximum length of an identity; no peer of ours uses a longer one.
pub(in crate::server) const LONGEST_ID: usize = 256;
const LONGEST_KEY: usize = 16;

impl Envelope {
    /// Scans a whole message.
    pub(in crate::server) fn of(line: &[u8]) -> Envelope {
        let mut envelope = Envelope::default();
        envelope.feed(line);
        envelope
    }

    /// Scans the next piece.
    pub(in crate::server) fn feed(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        for byte in piece {
            self.step(*byte);
        }
    }

    /// The number of bytes scanned.
    pub(in crate::server) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The maximum nesting depth of objects and arrays.
    pub(in crate::server) fn deepest(&self) -> u32 {
        self.deepest
    }

    /// The approximate number of values and keys: commas, colons and opening brackets.
    pub(in crate::server) fn marks(&self) -> u64 {
        self.marks
    }

    /// True if an object, an array or a text has not ended.
    pub(in crate::server) fn is_open(&self) -> bool {
        self.depth > 0 || self.string != StringState::Outside
    }

    /// True for an array of messages, a batch of older protocol revisions.
    pub(in crate::server) fn is_batch(&self) -> bool {
        self.batch
    }

    /// True if there is an identity, even an unreadable one.
    pub(in crate::server) fn has_id(&self) -> bool {
        self.has_id
    }

    /// Returns the identity, if there is a readable one.
    pub(in crate::server) fn id(&self) -> Option<RequestId> {
        serde_json::from_slice(&self.id).ok()
    }

    /// True for a request or a notification, false for a response.
    pub(in crate::server) fn has_method(&self) -> bool {
        self.has_method
    }

    fn step(&mut self, byte: u8) {
        let top = self.depth == 1;
        match self.string {
            StringState::Escaped => {
                self.string = StringState::Inside;
                self.keep(byte, top);
            }
            StringState::Inside => {
                match byte {
                    b'\\' => self.string = StringState::Escaped,
                    b'"' => self.string = StringState::Outside,
                    _ => {}
                }
                if byte == b'"' && top && self.place == Position::Key {
                    self.place = Position::Colon;
                    self.has_method |= self.key == b"method";
                } else {
                    self.keep(byte, top);
                }
            }
            StringState::Outside => self.outside(byte, top),
        }
    }

    fn outside(&mut self, byte: u8, top: bool) {
        self.marks += u64::from(matches!(byte, b',' | b':' | b'{' | b'['));
        match byte {
            b'"' => {
                self.string = StringState::Inside;
                if top && self.place == Position::Key {
                    self.key.clear();
                } else {
                    self.keep(byte, top);
                }
            }
            b'{' | b'[' => {
                self.batch |= self.marks == 1 && byte == b'[';
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if top && self.place == Position::Colon => {
                self.place = Position::Value;
                if self.key == b"id" {
                    self.has_id = true;
                    self.id.clear();
                }
            }
            b',' if top => self.place = Position::Key,
            _ => self.keep(byte, top),
        }
    }

    /// Keeps a byte of a top-level key, or of the value of `id`.
    fn keep(&mut self, byte: u8, top: bool) {
        if !top {
            return;
        }
        if self.place == Position::Key && self.string != StringState::Outside && self.key.len() < LONGEST_KEY {
            self.key.push(byte);
        } else if self.place == Position::Value && self.key == b"id" && self.id.len() < LONGEST_ID {
            self.id.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_found_wherever_it_stands() {
        let cases: [(&str, Option<RequestId>, bool); 7] = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":9}}"#, Some(RequestId::Number(7)), false),
            (r#"{"result":{"id":9,"method":"x"},"id" : "a\"b"}"#, Some(RequestId::String(r#"a"b"#.into())), false),
            (r#"{"method":"tools/call","id":1,"params":{"#, Some(RequestId::Number(1)), true),
            (r#"{"result":"\"id\":3,{[","id":4}"#, Some(RequestId::Number(4)), false),
            (r#"{"result":[[[{"id":5}]]]}"#, None, false),
            ("not json, \"id\": 5", None, false),
            ("", None, false),
        ];
        for (text, id, has_method) in cases {
            let whole = Envelope::of(text.as_bytes());
            let mut piecewise = Envelope::default();
            text.as_bytes().iter().for_each(|byte| piecewise.feed(&[*byte]));
            for envelope in [whole, piecewise] {
                assert_eq!((envelope.id(), envelope.has_method()), (id.clone(), has_method), "{text}");
                assert_eq!(envelope.bytes(), text.len() as u64);
            }
        }
        let small = Envelope::of(b"{\"a,b\":[[], 1]}");
        assert_eq!((small.deepest(), small.marks()), (3, 5));
    }
}
