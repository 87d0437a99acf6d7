//! Building text under the meter, and the places of characters in it.

use super::arguments;
use super::dispatch::objects::own_text;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// Text that is being put together: its growth is paid for, and memory is asked for before it is taken.
#[derive(Default)]
pub struct Builder {
    text: String,
}

impl Builder {
    /// Adds text.
    ///
    /// # Errors
    /// Limits.
    #[inline]
    pub fn push(&mut self, machine: &mut Machine, text: &str) -> Outcome<()> {
        self.make_room(machine, text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds a value as `str` prints it.
    ///
    /// # Errors
    /// What realising lazy parts raises; limits.
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
            // Inside of collections they print as the reader reads them, alone as Java writes them.
            Value::Float(number) if number.is_nan() => self.push(machine, "NaN"),
            Value::Float(number) if number.is_infinite() => {
                self.push(machine, if *number > 0.0 { "Infinity" } else { "-Infinity" })
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

    /// Adds a text many times over.
    ///
    /// # Errors
    /// Limits.
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
            // Old and new block are there at the same time, and the value is a copy of the text.
            machine.reserve((needed as u64).saturating_mul(3))?;
        }
        Ok(())
    }

    /// The text so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text as a value.
    pub fn finish(self) -> Value {
        Value::string(&self.text)
    }
}

/// A value as a string, as `str` makes it.
///
/// # Errors
/// What realising lazy parts raises; limits.
pub fn text_of(machine: &mut Machine, value: &Value) -> Outcome<Value> {
    if let Value::Str(_) = value {
        return Ok(value.clone());
    }
    let mut builder = Builder::default();
    builder.push_value(machine, value)?;
    Ok(builder.finish())
}

/// A string argument; what names a thing or is a character or number counts as its text, as for
/// Clojure's string functions. Paid for by its length.
///
/// # Errors
/// `TypeError` for nil and collections; limits.
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
            .suggest("nil is what a missing key gives: `(or s \"\")` puts a string in its place, `(str s)` makes one")
            .into()),
        Value::List(items) if matches!(items.as_slice(), Some([Value::Char(_), ..])) => Err(Error::expected("a string", value)
            .suggest("`concat` of strings gives their characters: `(str a b)` joins strings, `(apply str chars)` makes one of characters")
            .into()),
        Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_) => Err(Error::expected("a string", value)
            .suggest("for the items of a collection use `map`; `str/join` makes one string of them")
            .into()),
        other => Err(Error::expected("a string", other).into()),
    }
}

/// The text of any value but nil: for the functions that ask whatever they get for its text, as Clojure's do.
///
/// # Errors
/// `TypeError` for nil; limits.
pub fn spelled<'v>(machine: &mut Machine, value: &'v Value) -> Outcome<Cow<'v, str>> {
    match value {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::List(_) | Value::Bool(_) => {
            arguments::text(machine, value).map(Cow::Owned)
        }
        value => textual(machine, value),
    }
}

/// Pays for one walk through a text.
///
/// # Errors
/// Limits.
#[inline]
pub fn pay(machine: &mut Machine, text: &str) -> Outcome<()> {
    if text.len() >= 64 { machine.charge(text.len() as u64 / 64) } else { Ok(()) }
}

/// Asks for the memory of a copy of a text that may be `times` as long.
///
/// # Errors
/// A halt when the memory limit does not allow it.
pub fn ask_for_copy(machine: &mut Machine, text: &str, times: u64) -> Outcome<()> {
    if text.len() >= 4_096 { machine.reserve((text.len() as u64).saturating_mul(times + 1)) } else { Ok(()) }
}

/// The text in pieces, so that long work on it can be paid for, and stopped, piece by piece.
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

/// A text as messages show it: its beginning.
pub fn excerpt(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// The byte where the character of that index begins; the end of the text counts as a place too.
pub fn byte_of(text: &str, index: u64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

/// The index of the character that begins at that byte.
pub fn index_of_byte(text: &str, at: usize) -> i64 {
    let before = &text[..at];
    (if before.is_ascii() { at } else { before.chars().count() }) as i64
}

/// The number that Java makes of a string.
///
/// # Errors
/// Limits.
pub fn java_hash(machine: &mut Machine, text: &str) -> Outcome<i32> {
    machine.charge(text.len() as u64 / 16)?;
    Ok(text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit))))
}
