//! Metered construction of text, and conversion between character indices and byte offsets.

use super::arguments;
use super::dispatch::objects::own_text;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::value::Value;
use crate::value::list::List;
use crate::value::text::Text;
use std::borrow::Cow;
use std::fmt::Write;

/// A text under construction. Reserves memory with the meter before it allocates.
#[derive(Default)]
pub struct Builder {
    text: String,
    /// True if the room behind the text is kept, because it is likely to be extended again.
    keeps_room: bool,
}

impl Builder {
    /// Continues a text.
    pub fn extending(text: String) -> Builder {
        Builder { text, keeps_room: true }
    }

    /// Appends text.
    ///
    /// # Errors
    /// Returns an error if a limit is exceeded.
    #[inline]
    pub fn push(&mut self, machine: &mut Machine, text: &str) -> Outcome<()> {
        self.make_room(machine, text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Appends a value as `str` prints it.
    ///
    /// # Errors
    /// Returns any error raised while realising lazy parts, or an error if a limit is exceeded.
    pub fn push_value(&mut self, machine: &mut Machine, value: &Value) -> Outcome<()> {
        match value {
            Value::Nil => Ok(()),
            Value::Str(text) => self.push(machine, text.as_str()),
            Value::Char(character) => self.push(machine, character.encode_utf8(&mut [0; 4])),
            Value::Int(number) => {
                self.make_room(machine, 20)?;
                // Writing to a string never fails.
                let _ = write!(self.text, "{number}");
                Ok(())
            }
            // At top level these print as in Java; inside collections, in the reader's syntax.
            Value::Float(number) if number.is_nan() => self.push(machine, "NaN"),
            Value::Float(number) if number.is_infinite() => {
                self.push(machine, if *number > 0.0 { "Infinity" } else { "-Infinity" })
            }
            builder if let Some(cell) = super::builders::builder(builder) => {
                let text = super::builders::content(machine, cell)?;
                self.push(machine, text.as_str())
            }
            other => match own_text(machine, other)? {
                Some(Value::Str(text)) => self.push(machine, text.as_str()),
                Some(other) => Err(Error::expected("a string from `toString`", &other).into()),
                None => {
                    let text = arguments::text(machine, other)?;
                    self.push(machine, &text)
                }
            },
        }
    }

    /// Appends a text repeated `times` times.
    ///
    /// # Errors
    /// Returns an error if a limit is exceeded.
    pub fn push_times(&mut self, machine: &mut Machine, text: &str, times: usize) -> Outcome<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.make_room(machine, text.len().saturating_mul(times))?;
        self.text.push_str(&text.repeat(times));
        Ok(())
    }

    fn make_room(&mut self, machine: &mut Machine, more: usize) -> Outcome<()> {
        if more >= 64 {
            machine.charge(more as u64 / 64)?;
        }
        let needed = self.text.len().saturating_add(more);
        if needed > self.text.capacity() && needed >= 4_096 {
            // The old and the new buffer coexist while it grows, and the final value is another copy of the text.
            machine.reserve((needed as u64).saturating_mul(3))?;
            if self.keeps_room {
                // An eighth more each time keeps a loop linear, and wastes less of a text that stays than doubling.
                self.text.reserve_exact(more + self.text.len() / 8);
            }
        }
        Ok(())
    }

    /// Returns the text so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text as a value.
    pub fn finish(self) -> Value {
        Value::Str(if self.keeps_room { Text::with_room(self.text) } else { Text::from(self.text) })
    }
}

/// Converts a value to a string, as `str` does.
///
/// # Errors
/// Returns any error raised while realising lazy parts, or an error if a limit is exceeded.
pub fn text_of(machine: &mut Machine, value: &Value) -> Outcome<Value> {
    if let Value::Str(_) = value {
        return Ok(value.clone());
    }
    let mut builder = Builder::default();
    builder.push_value(machine, value)?;
    Ok(builder.finish())
}

/// Returns the text of a string argument. Like Clojure's string functions, it also accepts keywords, symbols,
/// characters and numbers. Charges by the length of a string.
///
/// # Errors
/// Returns `TypeError` for nil, collections and other values, or an error if a limit is exceeded.
pub fn textual<'v>(machine: &mut Machine, value: &'v Value) -> Outcome<Cow<'v, str>> {
    match value {
        Value::Str(text) => {
            pay(machine, text.as_str())?;
            Ok(Cow::Borrowed(text.as_str()))
        }
        Value::Char(character) => Ok(Cow::Owned(character.to_string())),
        Value::Keyword(_)
        | Value::Symbol(_)
        | Value::Annotated(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::BigInt(_)
        | Value::Decimal(_) => arguments::text(machine, value).map(Cow::Owned),
        Value::Nil => Err(Error::expected("a string", value)
            .suggest("nil comes from a missing key: `(or s \"\")` replaces it with a string, `(str s)` makes one")
            .into()),
        Value::List(items) if is_of_characters(items) => Err(Error::expected("a string", value)
            .suggest("`concat` of strings gives their characters: `(str a b)` joins strings, `(apply str chars)` makes one of characters")
            .into()),
        Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_) => Err(Error::expected("a string", value)
            .suggest("for the items of a collection use `map`; `str/join` makes one string of them")
            .into()),
        builder if let Some(cell) = super::builders::builder(builder) => {
            let text = super::builders::content(machine, cell)?;
            pay(machine, text.as_str())?;
            Ok(Cow::Owned(text.as_str().to_string()))
        }
        other => Err(Error::expected("a string", other).into()),
    }
}

fn is_of_characters(list: &List) -> bool {
    match list {
        List::View(view) => matches!(view.source(), Value::Str(_)),
        list => matches!(list.as_slice(), Some([Value::Char(_), ..])),
    }
}

/// Returns the text of any value except nil, for functions that convert any argument to text, as Clojure's do.
///
/// # Errors
/// Returns `TypeError` for nil and other values without such a text, or an error if a limit is exceeded.
pub fn spelled<'v>(machine: &mut Machine, value: &'v Value) -> Outcome<Cow<'v, str>> {
    match value {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::List(_) | Value::Bool(_) => {
            arguments::text(machine, value).map(Cow::Owned)
        }
        value => textual(machine, value),
    }
}

/// Charges for one pass over a text.
///
/// # Errors
/// Returns an error if a limit is exceeded.
#[inline]
pub fn pay(machine: &mut Machine, text: &str) -> Outcome<()> {
    if text.len() >= 64 { machine.charge(text.len() as u64 / 64) } else { Ok(()) }
}

/// Reserves memory for a copy of a text that may be `times` as long.
///
/// # Errors
/// Returns an error if the memory limit does not allow it.
pub fn ask_for_copy(machine: &mut Machine, text: &str, times: u64) -> Outcome<()> {
    if text.len() >= 4_096 { machine.reserve((text.len() as u64).saturating_mul(times + 1)) } else { Ok(()) }
}

/// Splits a text into pieces of at most 64 KiB, so that long work can be charged for, and interrupted, piece by piece.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    const PIECE: usize = 1 << 16;
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        rest = behind;
        Some(piece)
    })
}

/// Returns a text as shown in messages: its first 60 characters, followed by `…` if it is longer.
pub fn excerpt(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// Returns the byte offset of the character at an index; the end of the text is a valid index.
pub fn byte_of(text: &str, index: u64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

/// Returns the index of the character that starts at a byte offset.
pub fn index_of_byte(text: &str, at: usize) -> i64 {
    let before = &text[..at];
    (if before.is_ascii() { at } else { before.chars().count() }) as i64
}

/// Computes Java's `String.hashCode`.
///
/// # Errors
/// Returns an error if a limit is exceeded.
pub fn java_hash(machine: &mut Machine, text: &str) -> Outcome<i32> {
    machine.charge(text.len() as u64 / 16)?;
    Ok(text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit))))
}
