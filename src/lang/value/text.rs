//! Strings, and the names of keywords and symbols.

use arcstr::ArcStr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

const SHORT: usize = 14;

/// Maximum number of bytes of a string without marks: its characters are found from its start.
const UNMARKED: usize = 1 << 10;

/// The number of characters from one mark to the next.
const APART: usize = 128;

/// A string value. Strings of up to fourteen bytes are stored inline; longer ones are shared. The characters of a string
/// of more than a KiB are found in constant time: it has marks, which are made on first use.
///
/// The tag has niche values, which allow a whole `Value` to be sixteen bytes.
#[derive(Clone)]
pub enum Text {
    /// At most fourteen bytes.
    Short(Short),
    /// Up to a KiB.
    Long(ArcStr),
    /// Anything longer.
    #[doc(hidden)]
    Marked(Arc<Marked>),
}

/// A string with marks.
#[doc(hidden)]
pub struct Marked {
    /// With room for more if it has been [extended](Text::into_own).
    text: String,
    marks: OnceLock<Marks>,
}

/// Where characters of a string start.
struct Marks {
    /// The number of characters.
    count: usize,
    /// The byte offset of each [`APART`]th character below four GiB; none if all characters are ASCII.
    starts: Box<[u32]>,
}

impl Marks {
    fn of(text: &str) -> Marks {
        if text.is_ascii() {
            return Marks { count: text.len(), starts: Box::default() };
        }
        let starts = text.char_indices().step_by(APART).map_while(|(at, _)| u32::try_from(at).ok());
        Marks { starts: starts.collect(), count: text.chars().count() }
    }
}

impl Marked {
    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    fn marks(&self) -> &Marks {
        self.marks.get_or_init(|| Marks::of(&self.text))
    }
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
            Text::Marked(text) => text.as_str(),
        }
    }

    /// Returns the number of characters.
    pub(crate) fn count(&self) -> usize {
        match self {
            Text::Marked(text) => text.marks().count,
            text => text.as_str().chars().count(),
        }
    }

    /// Returns the byte offset of the character at an index; the end of the text is a valid index.
    pub(crate) fn place_of(&self, index: usize) -> Option<usize> {
        let text = self.as_str();
        let (start, further) = match self {
            // As near as the characters of a short text: `(subs s 1)` needs no marks of its own.
            Text::Marked(marked) if index <= APART && marked.marks.get().is_none() => (0, index),
            Text::Marked(marked) => match &*marked.marks().starts {
                [] => return (index <= text.len()).then_some(index),
                starts => {
                    let mark = (index / APART).min(starts.len() - 1);
                    (starts[mark] as usize, index - mark * APART)
                }
            },
            _ => (0, index),
        };
        let behind = &text[start..];
        behind.char_indices().map(|(at, _)| start + at).chain([text.len()]).nth(further)
    }

    /// Returns the index of the character that starts at a byte offset.
    pub(crate) fn index_at(&self, place: usize) -> usize {
        let text = self.as_str();
        let (start, before) = match self {
            Text::Marked(marked) => match &*marked.marks().starts {
                [] => return place,
                starts => {
                    let mark = starts.partition_point(|start| *start as usize <= place).saturating_sub(1);
                    (starts[mark] as usize, mark * APART)
                }
            },
            _ => (0, 0),
        };
        before + text.get(start..place).map_or(0, |text| text.chars().count())
    }

    /// The number of steps for finding a character.
    pub(crate) fn finding_effort(&self) -> u64 {
        self.as_str().len().min(UNMARKED) as u64 / 64
    }
}

impl From<&str> for Text {
    #[inline]
    fn from(text: &str) -> Text {
        match text.len() {
            0..=SHORT => Text::Short(Short::copied(text)),
            bytes if bytes <= UNMARKED => Text::Long(text.into()),
            _ => Text::marked(text.into()),
        }
    }
}

impl Text {
    #[cold]
    fn marked(text: String) -> Text {
        Text::Marked(Arc::new(Marked { text, marks: OnceLock::new() }))
    }

    /// Returns a text of more than a KiB as a buffer that can be extended, if it has no other owner.
    ///
    /// # Errors
    /// Returns the text if it is short or has another owner.
    pub(crate) fn into_own(self) -> Result<String, Text> {
        match self {
            Text::Marked(text) => Arc::try_unwrap(text).map(|own| own.text).map_err(Text::Marked),
            text => Err(text),
        }
    }

    /// Creates a text from a buffer, whose room for more is kept if the text is of more than a KiB.
    pub(crate) fn with_room(text: String) -> Text {
        if text.len() > UNMARKED { Text::marked(text) } else { Text::from(text.as_str()) }
    }
}

impl From<String> for Text {
    fn from(mut text: String) -> Text {
        if text.len() <= UNMARKED {
            return Text::from(text.as_str());
        }
        text.shrink_to_fit();
        Text::marked(text)
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Text) -> bool {
        match (self, other) {
            (Text::Short(a), Text::Short(b)) => a.len == b.len && a.bytes == b.bytes,
            (Text::Long(a), Text::Long(b)) => a == b,
            (Text::Marked(a), Text::Marked(b)) => Arc::ptr_eq(a, b) || a.text == b.text,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_texts_of_any_length_are_found() {
        for (piece, most) in [("a", 3_000), ("é", 2_000), ("aé😀", 1_000), ("aaaaaaaaaaaaaaaaaaaa😀", 200)] {
            for times in [0, 1, 3, 7, 60, 128, 129, most] {
                let text = Text::from(piece.repeat(times));
                let places: Vec<usize> = text.as_str().char_indices().map(|(at, _)| at).collect();
                assert_eq!(text.count(), places.len());
                for (index, place) in places.iter().enumerate() {
                    assert_eq!((text.place_of(index), text.index_at(*place)), (Some(*place), index));
                }
                let end = text.as_str().len();
                assert_eq!((text.place_of(places.len()), text.index_at(end)), (Some(end), places.len()));
                assert_eq!(text.place_of(places.len() + 1), None);
            }
        }
    }
}
