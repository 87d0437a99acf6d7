//! Parses JSON text (RFC 8259) into values. Objects become records that share their shapes.

use crate::error::{Error, Outcome};
use crate::json::Unclosed;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::decimal::{read, read_integer};
use crate::value::map::{Map, record_key};
use crate::value::shape::Shape;
use crate::value::time::Time;
use std::sync::Arc;

/// Maximum nesting of JSON.
const NESTING: usize = 1_000;

/// Maximum number of shapes remembered while parsing.
const SHAPES: usize = 64;

/// Parses JSON text.
///
/// # Errors
/// Returns `InvalidJson` with its position, or an exceeded limit.
pub fn parse(machine: &mut Machine, text: &str) -> Outcome<Value> {
    Parser::new(machine, text).document()
}

/// Parses JSON text; numbers with a fraction or an exponent become exact decimals.
///
/// # Errors
/// As [`parse`].
pub fn parse_exactly(machine: &mut Machine, text: &str) -> Outcome<Value> {
    Parser { is_exact: true, ..Parser::new(machine, text) }.document()
}

/// Parses text that [`to_text`](crate::convert) has written: JSON, with marks for data that JSON lacks. A mark stands
/// before a string (`#d"1.50"`, a decimal) or an array (`#s[1, 2]`, a set).
///
/// # Errors
/// As [`parse`].
pub fn parse_marked(machine: &mut Machine, text: &str) -> Outcome<Value> {
    Parser { is_marked: true, ..Parser::new(machine, text) }.document()
}

struct Parser<'a> {
    machine: &'a mut Machine,
    text: &'a [u8],
    source: &'a str,
    at: usize,
    /// The shapes seen so far, the latest last.
    shapes: Vec<Arc<Shape>>,
    /// Whether numbers with a fraction become decimals instead of doubles.
    is_exact: bool,
    /// Whether marks are allowed.
    is_marked: bool,
}

/// The collection that an array stands for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Vector,
    List,
    Set,
    /// A map, as keys and values; keys that are text name fields, as in an object.
    Entries,
    /// A map, as keys and values that are kept as they are.
    Pairs,
}

/// An open array or object.
enum Open {
    Array(Vec<Value>, Kind),
    Object { shape: Matching, values: Vec<Value> },
}

/// The keys of an object so far: a known shape and the number of its keys matched, as long as the object follows one;
/// else the keys themselves.
enum Matching {
    Known(Arc<Shape>, usize),
    New(Vec<Value>),
}

impl<'a> Parser<'a> {
    fn new(machine: &'a mut Machine, text: &'a str) -> Parser<'a> {
        // A byte order mark is no part of the text.
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Parser {
            machine,
            text: text.as_bytes(),
            source: text,
            at,
            shapes: Vec::new(),
            is_exact: false,
            is_marked: false,
        }
    }

    fn document(&mut self) -> Outcome<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.machine.charge(1)?;
            self.skip_space();
            let kind = if self.is_marked { self.kind() } else { Kind::Vector };
            // A value begins here, or the array or object just opened ends.
            let mut value = match self.peek() {
                Some(b'[') => {
                    self.at += 1;
                    self.open(&mut open, Open::Array(Vec::new(), kind))?;
                    self.skip_space();
                    if self.peek() != Some(b']') {
                        continue;
                    }
                    self.at += 1;
                    self.close(&mut open)?
                }
                Some(b'{') => {
                    self.at += 1;
                    let shape = match self.shapes.last() {
                        Some(latest) => Matching::Known(latest.clone(), 0),
                        None => Matching::New(Vec::new()),
                    };
                    let room = match &shape {
                        Matching::Known(shape, _) => shape.keys().len(),
                        Matching::New(_) => 0,
                    };
                    self.open(&mut open, Open::Object { shape, values: Vec::with_capacity(room) })?;
                    self.skip_space();
                    if self.peek() != Some(b'}') {
                        self.key(&mut open)?;
                        continue;
                    }
                    self.at += 1;
                    self.close(&mut open)?
                }
                _ => self.scalar()?,
            };
            // The value is complete; it may complete the enclosing array or object.
            loop {
                match open.last_mut() {
                    None => {
                        self.skip_space();
                        if self.at < self.text.len() {
                            return Err(self.fail("nothing more after the value"));
                        }
                        return Ok(value);
                    }
                    Some(Open::Array(items, _)) => {
                        items.push(value);
                        let len = items.len();
                        self.machine.grown(len)?;
                        self.skip_space();
                        match self.next() {
                            Some(b',') => break,
                            Some(b']') => value = self.close(&mut open)?,
                            came => return Err(self.fail_after(came, "`,` or `]`")),
                        }
                    }
                    Some(Open::Object { values, .. }) => {
                        values.push(value);
                        self.skip_space();
                        match self.next() {
                            Some(b',') => {
                                self.skip_space();
                                self.key(&mut open)?;
                                break;
                            }
                            Some(b'}') => value = self.close(&mut open)?,
                            came => return Err(self.fail_after(came, "`,` or `}`")),
                        }
                    }
                }
            }
        }
    }

    fn open(&mut self, open: &mut Vec<Open>, new: Open) -> Outcome<()> {
        if open.len() >= NESTING {
            return Err(Error::new("NestingTooDeep", format!("JSON nests more than {NESTING} deep")).into());
        }
        open.push(new);
        Ok(())
    }

    fn close(&mut self, open: &mut Vec<Open>) -> Outcome<Value> {
        match open.pop() {
            Some(Open::Array(items, Kind::Vector)) => Ok(Value::vector(items)),
            Some(Open::Array(items, kind)) => self.collection(items, kind),
            Some(Open::Object { shape, values }) => self.record(shape, values),
            None => Ok(Value::Nil),
        }
    }

    /// Skips the mark of an array, if there is one here.
    fn kind(&mut self) -> Kind {
        let kind = match self.text.get(self.at..self.at + 3) {
            Some(b"#l[") => Kind::List,
            Some(b"#s[") => Kind::Set,
            Some(b"#m[") => Kind::Entries,
            Some(b"#M[") => Kind::Pairs,
            _ => return Kind::Vector,
        };
        self.at += 2;
        kind
    }

    /// Creates the collection that a marked array stands for.
    fn collection(&mut self, items: Vec<Value>, kind: Kind) -> Outcome<Value> {
        self.machine.charge(items.len() as u64)?;
        match kind {
            Kind::Vector => Ok(Value::vector(items)),
            Kind::List => Ok(Value::list(items)),
            Kind::Set => Ok(Value::Set(Arc::new(items.into_iter().collect()))),
            Kind::Entries | Kind::Pairs => {
                let (mut map, mut items) = (Map::default(), items.into_iter());
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    let key = match key.as_str().filter(|_| kind == Kind::Entries) {
                        Some(name) => record_key(name),
                        None => key,
                    };
                    map.insert(key, value);
                }
                Ok(Value::Map(Arc::new(map)))
            }
        }
    }

    /// Parses a marked string.
    fn marked(&mut self) -> Outcome<Value> {
        let start = self.at;
        let mark = self.text.get(start + 1).copied();
        self.at += 2;
        let text = if self.peek() == Some(b'"') { self.string()? } else { String::new() };
        if mark == Some(b'd') {
            self.pay_for_digits(&text)?;
        }
        let read = match mark {
            Some(b'd') => read(&text).map(|number| Value::Decimal(Arc::new(number))),
            Some(b'f') => text.parse().ok().map(Value::Float),
            Some(b'c') => text.chars().next().map(Value::Char),
            Some(b'k') => Some(Value::keyword(&text)),
            Some(b'y') => Some(Value::symbol(&text)),
            Some(b't') => text
                .split_once(' ')
                .and_then(|(tag, text)| Time::read(tag, text)?.ok())
                .map(|time| Value::Time(Arc::new(time))),
            _ => None,
        };
        read.ok_or_else(|| {
            self.at = start;
            self.fail("a value")
        })
    }

    /// Parses a key and its colon.
    fn key(&mut self, open: &mut [Open]) -> Outcome<()> {
        if self.peek() != Some(b'"') {
            return Err(self.fail("a key in double quotes"));
        }
        let start = self.at + 1;
        let plain_end = self.plain_string_end();
        let key = match plain_end {
            Some(end) => {
                self.at = end + 1;
                std::borrow::Cow::Borrowed(&self.source[start..end])
            }
            None => std::borrow::Cow::Owned(self.string()?),
        };
        self.skip_space();
        let came = self.next();
        if came != Some(b':') {
            return Err(self.fail_after(came, "`:`"));
        }
        let Some(Open::Object { shape, values }) = open.last_mut() else { return Ok(()) };
        if let Matching::Known(known, matched) = shape {
            let same = known.keys().get(*matched).is_some_and(|expected| spells(expected, &key));
            if same {
                *matched += 1;
                return Ok(());
            }
            // Another shape with the same first keys may match.
            let matched = *matched;
            let other = self.shapes.iter().rev().find(|other| {
                other.keys().len() > matched
                    && other.keys()[..matched] == known.keys()[..matched]
                    && spells(&other.keys()[matched], &key)
            });
            *shape = match other {
                Some(other) => Matching::Known(other.clone(), matched + 1),
                None => {
                    let mut keys = known.keys()[..matched].to_vec();
                    keys.push(record_key(&key));
                    Matching::New(keys)
                }
            };
            debug_assert_eq!(values.len(), matched);
            return Ok(());
        }
        if let Matching::New(keys) = shape {
            keys.push(record_key(&key));
            let len = keys.len();
            self.machine.grown(len)?;
        }
        Ok(())
    }

    fn record(&mut self, shape: Matching, values: Vec<Value>) -> Outcome<Value> {
        let keys = match shape {
            Matching::Known(shape, matched) if matched == shape.keys().len() => {
                return Ok(Value::Map(Arc::new(Map::with_shape(shape, values))));
            }
            Matching::Known(shape, matched) => shape.keys()[..matched].to_vec(),
            Matching::New(keys) => keys,
        };
        let small = keys.len() <= 32 && keys.iter().enumerate().all(|(at, key)| !keys[..at].contains(key));
        if small {
            let shape = Shape::of_records(keys);
            if self.shapes.len() < SHAPES {
                self.shapes.push(shape.clone());
            }
            return Ok(Value::Map(Arc::new(Map::with_shape(shape, values))));
        }
        // Large objects, and those with a duplicate key; the last occurrence of a key counts.
        let mut map = Map::default();
        for (key, value) in keys.into_iter().zip(values) {
            self.machine.charge(1)?;
            map.insert(key, value);
        }
        Ok(Value::Map(Arc::new(map.into_record())))
    }

    fn scalar(&mut self) -> Outcome<Value> {
        match self.peek() {
            Some(b'"') => {
                let start = self.at + 1;
                if let Some(end) = self.plain_string_end() {
                    self.at = end + 1;
                    self.machine.charge((end - start) as u64 / 64)?;
                    return Ok(Value::string(&self.source[start..end]));
                }
                let text = self.string()?;
                Ok(Value::string(&text))
            }
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'#') if self.is_marked => self.marked(),
            _ => Err(self.fail("a value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Outcome<Value> {
        if self.text[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.fail("a value"))
    }

    fn number(&mut self) -> Outcome<Value> {
        let start = self.at;
        let mut float = false;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let leading_zero = self.text.get(digits) == Some(&b'0') && self.at - digits > 1;
        if self.at == digits || leading_zero {
            self.at = start;
            return Err(self.fail("a number"));
        }
        while let Some(byte @ (b'.' | b'e' | b'E' | b'+' | b'-' | b'0'..=b'9')) = self.peek() {
            float |= matches!(byte, b'.' | b'e' | b'E');
            self.at += 1;
        }
        let text = &self.source[start..self.at];
        if float {
            let valid = !text.ends_with(['.', 'e', 'E', '+', '-']) && !text.contains(".e") && !text.contains(".E");
            return match text.parse::<f64>() {
                Ok(number) if valid && number.is_finite() && !self.is_exact => Ok(Value::Float(number)),
                Ok(_) if valid => self.decimal(start, text),
                _ => {
                    self.at = start;
                    Err(self.fail("a number"))
                }
            };
        }
        if let Ok(small) = text.parse::<i64>() {
            return Ok(Value::Int(small));
        }
        self.pay_for_digits(text)?;
        match read_integer(text, 10) {
            Some(number) => Ok(Value::integer(number)),
            None => {
                self.at = start;
                Err(self.fail("a number"))
            }
        }
    }

    /// Charges for decoding digits to a big integer, which takes quadratic time.
    fn pay_for_digits(&mut self, digits: &str) -> Outcome<()> {
        let length = digits.len() as u64;
        self.machine.charge(length.saturating_mul(length) / 64)
    }

    /// Parses a number as an exact decimal, such as one beyond the range of doubles.
    fn decimal(&mut self, start: usize, text: &str) -> Outcome<Value> {
        self.pay_for_digits(text)?;
        match read(text) {
            Some(number) => Ok(Value::Decimal(Arc::new(number))),
            None => {
                self.at = start;
                Err(self.fail("a number with an exponent of at most a million"))
            }
        }
    }

    /// Returns the end of the string that begins here, if it has no escapes and no errors.
    fn plain_string_end(&self) -> Option<usize> {
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
        (rest[end] == b'"').then_some(self.at + 1 + end)
    }

    /// Parses a string with escapes.
    fn string(&mut self) -> Outcome<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= 0x20) {
                self.at += 1;
            }
            self.machine.charge((self.at - start) as u64 / 64 + 1)?;
            out.push_str(&self.source[start..self.at]);
            match self.next() {
                Some(b'"') => return Ok(out),
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    out.push(escaped);
                }
                came @ Some(_) => return Err(self.fail_after(came, "an escape such as `\\n` for a control character")),
                None => return Err(self.fail("the closing `\"` of a string")),
            }
        }
    }

    fn escape(&mut self) -> Outcome<char> {
        Ok(match self.next() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex()?;
                if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
                    let back = self.at;
                    self.at += 2;
                    let second = self.hex()?;
                    if (0xDC00..0xE000).contains(&second) {
                        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                        return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    self.at = back;
                }
                // A lone surrogate is not a scalar value.
                char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            came => return Err(self.fail_after(came, "a JSON escape")),
        })
    }

    fn hex(&mut self) -> Outcome<u32> {
        let digits =
            self.source.get(self.at..self.at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => Err(self.fail("four hexadecimal digits")),
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Builds the error for the byte consumed last, if any.
    fn fail_after(&mut self, came: Option<u8>, expected: &str) -> crate::error::Signal {
        self.at -= usize::from(came.is_some());
        self.fail(expected)
    }

    #[cold]
    fn fail(&self, expected: &str) -> crate::error::Signal {
        let at = self.source.floor_char_boundary(self.at);
        let before = &self.source[..at];
        let line = before.matches('\n').count() + 1;
        let column = before[before.rfind('\n').map_or(0, |newline| newline + 1)..].chars().count() + 1;
        let came: String = self.source[at..].chars().take(12).collect();
        let came = match Unclosed::in_json(self.source).filter(|_| came.is_empty()) {
            Some(open) => format!("the end of the text: {open}"),
            None if came.is_empty() => "the end of the text".to_string(),
            None => format!("`{}`", came.escape_debug()),
        };
        Error::unmet("InvalidJson", format!("{expected} at line {line}, column {column} of the JSON, got {came}"))
            .into()
    }
}

/// Returns whether the key has that text.
fn spells(key: &Value, text: &str) -> bool {
    match key {
        Value::Keyword(name) => name.as_str() == text,
        Value::Str(own) => own.as_str() == text,
        _ => false,
    }
}
