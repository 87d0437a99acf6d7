//! Strings, and the names of keywords and symbols.

use arcstr::ArcStr;
use std::fmt;
use std::hash::{Hash, Hasher};

const SHORT: usize = 14;

/// A string value. Strings of up to fourteen bytes are stored inline; longer ones are shared.
///
/// The tag has niche values, which allow a whole `Value` to be sixteen bytes.
#[derive(Clone)]
pub enum Text {
    /// At most fourteen bytes.
    Short(Short),
    /// Anything longer.
    Long(ArcStr),
}

/// A short inline string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Number of used bytes.
    len: u8,
    /// The bytes, padded with zeros.
    bytes: [u8; SHORT],
}

impl Short {
    /// Copies a text of at most fourteen bytes.
    #[inline]
    fn copied(text: &str) -> Short {
        let mut bytes = [0; SHORT];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Short { len: text.len() as u8, bytes }
    }

    /// Returns the text.
    #[inline]
    fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.len)];
        // SAFETY: `copied` is the only constructor. It copies a whole `str`, so the first `len` bytes are valid UTF-8.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

impl Text {
    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Short(text) => text.as_str(),
            Text::Long(text) => text,
        }
    }
}

impl From<&str> for Text {
    #[inline]
    fn from(text: &str) -> Text {
        if text.len() > SHORT {
            return Text::Long(text.into());
        }
        Text::Short(Short::copied(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::from(text.as_str())
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Text) -> bool {
        match (self, other) {
            (Text::Short(a), Text::Short(b)) => a.len == b.len && a.bytes == b.bytes,
            (Text::Long(a), Text::Long(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Maximum length in bytes of the name of a keyword or a symbol. Longer texts remain strings.
pub const LONGEST_NAME: usize = 64 << 10;

/// The name of a keyword (without its colon) or of a symbol: `a`, `mail/search`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(ArcStr);

impl Name {
    /// Returns the whole name.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address of the name in memory: names of one address are equal, and equal names may have several.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Returns the part before the slash, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        split_name(&self.0).0
    }

    /// Returns the part after the slash, or the whole name if there is none.
    pub fn base(&self) -> &str {
        split_name(&self.0).1
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

/// Splits `a/b` into `a` and `b`. The name `/` has no namespace.
pub fn split_name(name: &str) -> (Option<&str>, &str) {
    match name.find('/') {
        Some(at) if at > 0 && at + 1 < name.len() => (Some(&name[..at]), &name[at + 1..]),
        _ => (None, name),
    }
}
