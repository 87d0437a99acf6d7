//! Printing values as text that the reader can read back.
//!
//! The printer uses an explicit stack of open brackets, so nesting consumes no machine stack. It stops as soon as its
//! byte budget is exhausted.

use super::Value;
use super::list::List;
use super::map::{CONDITIONAL, Map, TAGGED};
use super::metadata::metadata;
use super::spelling::{write_character, write_keyword, write_regex, write_symbol};
use super::text::Name;
use super::walk::{Cursor, Free, Pace};
use crate::foreign_text::qualified;
use std::convert::Infallible;
use std::fmt::{self, Write};
use std::sync::Arc;

/// A printer: its output buffer, its byte budget and its settings.
pub struct Printer {
    out: String,
    budget: usize,
    readable: bool,
    plain: bool,
    settings: Settings,
    /// Number of open collections.
    depth: i64,
    shown: usize,
    complete_until: usize,
}

/// Settings from `*print-length*` and the related dynamic variables.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum number of items shown per collection.
    pub length: Option<i64>,
    /// Maximum number of nested collections shown.
    pub level: Option<i64>,
    /// True to print metadata.
    pub metadata: bool,
    /// True to print a common namespace of a map's keys once, in front of the map.
    pub namespace_maps: bool,
    /// True to quote strings and characters if the printing function quotes them.
    pub readable: bool,
    /// True to print everything so that it reads back, without limits on length and level.
    pub duplicable: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            length: None,
            level: None,
            metadata: false,
            namespace_maps: false,
            readable: true,
            duplicable: false,
        }
    }
}

/// The result of printing within a budget.
#[derive(Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text. If it did not fit, it is cut, after a whole item where possible.
    pub text: String,
    /// A description of the truncation, such as `50 of 347 items`; `None` if everything fitted.
    pub truncated: Option<String>,
}

/// An open bracket and its pending content.
enum Open {
    Sequence { cursor: Cursor, first: bool, close: &'static str, left: Option<i64> },
    Entries { map: Arc<Map>, position: usize, first: bool, left: Option<i64>, lifted: bool },
    Bare(Value),
    ValueOf(Value),
    Close(&'static str),
}

impl Printer {
    /// Creates a printer of up to `budget` bytes. Readable output quotes strings and characters, like `pr-str`.
    /// Otherwise those at the top level are not quoted, like `str`.
    pub fn new(budget: usize, readable: bool) -> Printer {
        let settings = Settings::default();
        Printer { out: String::new(), budget, readable, plain: false, settings, depth: 0, shown: 0, complete_until: 0 }
    }

    /// Creates a printer that quotes no strings and no characters, like `println`.
    pub fn plain(budget: usize) -> Printer {
        Printer { plain: true, ..Printer::new(budget, false) }
    }

    /// Replaces the settings.
    pub fn with(mut self, settings: Settings) -> Printer {
        self.plain |= !settings.readable && !self.readable;
        if settings.duplicable {
            self.settings = Settings { length: None, level: None, metadata: true, ..settings };
        } else {
            self.settings = settings;
        }
        self
    }

    /// Prints one value. Returns false once the budget is exhausted.
    pub fn print<P: Pace>(&mut self, value: &Value, pace: &mut P) -> Result<bool, P::Stop> {
        let mut open = Vec::new();
        let mut in_cell = false;
        self.begin(value, &mut open, &mut in_cell, pace)?;
        while let Some(top) = open.last_mut() {
            if self.out.len() > self.budget {
                return Ok(false);
            }
            match top {
                Open::Close(close) => {
                    self.out.push_str(close);
                    open.pop();
                }
                Open::ValueOf(value) => {
                    let value = std::mem::take(value);
                    open.pop();
                    self.begin(&value, &mut open, &mut in_cell, pace)?;
                }
                Open::Bare(value) => {
                    let value = std::mem::take(value);
                    open.pop();
                    self.begin_bare(&value, &mut open, &mut in_cell, pace)?;
                }
                Open::Sequence { cursor, first, close, left } => match cursor.next(pace)? {
                    Some(item) => {
                        if !std::mem::take(first) {
                            self.out.push(' ');
                        }
                        if is_cut(left) {
                            self.out.push_str("...");
                            self.out.push_str(close);
                            self.depth -= 1;
                            open.pop();
                            continue;
                        }
                        self.begin(&item, &mut open, &mut in_cell, pace)?;
                    }
                    None => {
                        self.out.push_str(close);
                        self.depth -= 1;
                        open.pop();
                    }
                },
                Open::Entries { map, position, first, left, lifted } => {
                    pace.step(1)?;
                    if *position >= map.positions() {
                        self.out.push('}');
                        self.depth -= 1;
                        open.pop();
                    } else {
                        let at = *position;
                        *position += 1;
                        let map = map.clone();
                        if let Some((key, value)) = map.entry(at) {
                            if !std::mem::take(first) {
                                self.out.push_str(", ");
                            }
                            if is_cut(left) {
                                self.out.push_str("...}");
                                self.depth -= 1;
                                open.pop();
                                continue;
                            }
                            let lifted = *lifted;
                            open.push(Open::ValueOf(value.clone()));
                            open.push(Open::Close(" "));
                            match key {
                                Value::Keyword(name) if lifted => write_keyword(&mut self.out, name.base()),
                                key if let (true, Some(name)) = (lifted, key.as_symbol()) => {
                                    write_symbol(&mut self.out, name.base());
                                }
                                key => self.begin(key, &mut open, &mut in_cell, pace)?,
                            }
                        }
                    }
                }
            }
            if open.len() == 1 && self.out.len() <= self.budget {
                self.complete_until = self.out.len();
            }
        }
        Ok(self.out.len() <= self.budget)
    }

    /// Begins a value, preceded by its metadata if the settings ask for it.
    fn begin<P: Pace>(
        &mut self,
        value: &Value,
        open: &mut Vec<Open>,
        in_cell: &mut bool,
        pace: &mut P,
    ) -> Result<(), P::Stop> {
        if self.settings.metadata
            && !self.plain
            && let Some(metadata) = metadata(value).filter(|m| !m.is_empty())
        {
            self.out.push('^');
            open.push(Open::Bare(value.clone()));
            open.push(Open::Close(" "));
            let shown = match metadata.get(&Value::keyword("tag")) {
                Some(tag) if metadata.len() == 1 => tag.clone(),
                _ => Value::Map(metadata),
            };
            open.push(Open::ValueOf(shown));
            return Ok(());
        }
        self.begin_bare(value, open, in_cell, pace)
    }

    fn begin_bare<P: Pace>(
        &mut self,
        value: &Value,
        open: &mut Vec<Open>,
        in_cell: &mut bool,
        pace: &mut P,
    ) -> Result<(), P::Stop> {
        let nested = !open.is_empty();
        if open.len() == 1 {
            self.shown += 1;
        }
        let is_collection =
            matches!(value, Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_));
        if is_collection && self.settings.level.is_some_and(|most| self.depth >= most) {
            self.out.push('#');
            return Ok(());
        }
        match value {
            Value::List(list) if list.is_empty() => self.out.push_str("()"),
            Value::List(_) | Value::Lazy(_) => self.open(value, "(", ")", open),
            Value::Vector(_) => self.open(value, "[", "]", open),
            Value::Set(_) => self.open(value, "#{", "}", open),
            Value::Map(map) if self.open_literal(map, open) => {}
            Value::Map(map) => {
                let is_plain = map.type_name().is_none();
                let namespace = if is_plain && self.settings.namespace_maps { shared_namespace(map) } else { None };
                if let Some(Value::Symbol(name)) = map.type_name() {
                    let _ = write!(self.out, "#{}", name.as_str());
                } else if let Some(namespace) = namespace {
                    let _ = write!(self.out, "#:{namespace}");
                }
                self.out.push('{');
                self.depth += 1;
                let (left, lifted) = (self.settings.length, namespace.is_some());
                open.push(Open::Entries { map: map.clone(), position: 0, first: true, left, lifted });
            }
            Value::Reduced(inner) => {
                self.out.push_str("#<reduced ");
                open.push(Open::Close(">"));
                open.push(Open::ValueOf(inner.0.clone()));
            }
            Value::Cell(handle) => {
                let _ = write!(self.out, "#<{}", handle.kind().trim_start_matches("an ").trim_start_matches("a "));
                match pace.content(handle).filter(|_| !*in_cell) {
                    Some(content) => {
                        *in_cell = true;
                        self.out.push(' ');
                        open.push(Open::Close(">"));
                        open.push(Open::ValueOf(content));
                    }
                    None => self.out.push('>'),
                }
            }
            Value::Str(text) => {
                pace.step(text.as_str().len() as u64 / 64)?;
                self.print_text(text.as_str(), (nested || self.readable) && !self.plain);
            }
            Value::Char(character) if self.plain => self.out.push(*character),
            Value::Keyword(name) if self.readable => self.print_name(name.as_str(), write_keyword),
            Value::Symbol(_) | Value::Annotated(_) if self.readable => {
                self.print_name(value.as_symbol().map_or("", Name::as_str), write_symbol);
            }
            Value::Var(name) => {
                self.out.push_str("#'");
                self.print_name(shown_name(name.as_str()), write_symbol);
            }
            Value::BigInt(_) | Value::Decimal(_) if self.stands_for_digits(value) => {}
            Value::Exception(error) => {
                let _ = write!(self.out, "#<exception {} ", error.code);
                self.print_text(&error.message, true);
                self.out.push('>');
            }
            scalar => {
                pace.step(super::equal::digits_effort(scalar))?;
                write_scalar(&mut self.out, scalar, nested || self.readable || self.plain);
            }
        }
        Ok(())
    }

    /// Begins a value created by `tagged-literal` or `reader-conditional`. Returns false for all other maps.
    fn open_literal(&mut self, map: &Map, open: &mut Vec<Open>) -> bool {
        let Some(Value::Symbol(kind)) = map.type_name() else { return false };
        let part = |name: &str| map.get(&Value::keyword(name));
        match (kind.as_str(), part("tag").and_then(Value::as_symbol), part("splicing?"), part("form")) {
            (TAGGED, Some(tag), _, Some(form)) => {
                let _ = write!(self.out, "#{} ", tag.as_str());
                open.push(Open::ValueOf(form.clone()));
            }
            (CONDITIONAL, _, Some(splicing), Some(form)) => {
                self.out.push_str(if splicing.is_truthy() { "#?@" } else { "#?" });
                open.push(Open::ValueOf(form.clone()));
            }
            _ => return false,
        }
        true
    }

    fn open(&mut self, value: &Value, bracket: &str, close: &'static str, open: &mut Vec<Open>) {
        self.out.push_str(bracket);
        let cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
        self.depth += 1;
        open.push(Open::Sequence { cursor, first: true, close, left: self.settings.length });
    }

    /// Prints a name, or the prefix of it that fits into the remaining budget.
    fn print_name(&mut self, name: &str, write: fn(&mut String, &str)) {
        let room = (self.budget + 1).saturating_sub(self.out.len());
        write(&mut self.out, &name[..name.floor_char_boundary(room)]);
    }

    /// Prints the approximate length of a long number instead of its digits if the budget is that of a message or a
    /// preview, and returns whether it did. Computing the digits takes time quadratic in their number, and messages are
    /// not charged.
    fn stands_for_digits(&mut self, number: &Value) -> bool {
        const MESSAGE: usize = 1_024;
        const SHORT: u64 = 1 << 13;
        let bits = super::equal::bits(number);
        if self.budget >= MESSAGE || bits < SHORT {
            return false;
        }
        let digits = (bits as f64 * std::f64::consts::LOG10_2) as u64;
        let _ = write!(self.out, "#<about {digits} digits>");
        true
    }

    fn print_text(&mut self, text: &str, quoted: bool) {
        let room = (self.budget + 1).saturating_sub(self.out.len());
        let cut = text.floor_char_boundary(room);
        if quoted {
            write_quoted(&mut self.out, &text[..cut]);
        } else {
            self.out.push_str(&text[..cut]);
        }
        if cut < text.len() {
            // Exceed the budget, so that the next check of the length detects the truncation.
            self.out.push_str("....");
        }
    }

    /// Returns the text printed so far.
    pub fn into_text(self) -> String {
        self.out
    }
}

/// Decrements the number of items that may still be shown. True if it was already zero.
fn is_cut(left: &mut Option<i64>) -> bool {
    match left {
        Some(left) => {
            *left -= 1;
            *left < 0
        }
        None => false,
    }
}

/// Returns the namespace that all keys of a map share.
fn shared_namespace(map: &Map) -> Option<&str> {
    let mut shared = None;
    for (key, _) in map.iter() {
        let own = key.as_name()?.namespace()?;
        if shared.is_some_and(|shared| shared != own) {
            return None;
        }
        shared = Some(own);
    }
    shared
}

/// Prints within `budget` bytes. A collection that does not fit is cut after a whole item and closed. If its whole
/// items fill less than half of the budget, and for other values, the text is cut at the budget instead. The result
/// describes what was cut.
pub fn print_within<P: Pace>(value: &Value, budget: usize, readable: bool, pace: &mut P) -> Result<Printed, P::Stop> {
    let mut printer = Printer::new(budget, readable);
    if printer.print(value, pace)? {
        return Ok(Printed { text: printer.out, truncated: None });
    }
    let close = match value {
        Value::List(_) | Value::Lazy(_) => ")",
        Value::Vector(_) => "]",
        Value::Map(_) | Value::Set(_) => "}",
        _ => "",
    };
    let whole_items = printer.shown.saturating_sub(1);
    let mut text = printer.out;
    if close.is_empty() || printer.complete_until < budget / 2 {
        text.truncate(text.floor_char_boundary(budget));
        let cut = match value {
            Value::Str(all) => {
                format!("{} of {} characters", text.chars().count(), all.as_str().chars().count())
            }
            _ => format!("the first {} bytes", text.len()),
        };
        text.push('…');
        return Ok(Printed { text, truncated: Some(cut) });
    }
    text.truncate(printer.complete_until);
    text.push_str(" …");
    text.push_str(close);
    let shown = match value {
        Value::Map(map) => format!("{whole_items} of {} entries", map.len()),
        other => match Cursor::over(other.clone()).and_then(|cursor| cursor.remaining()) {
            Some(List::ENDLESS) | None => format!("the first {whole_items} items"),
            Some(count) => format!("{whole_items} of {count} items"),
        },
    };
    Ok(Printed { text, truncated: Some(shown) })
}

fn write_scalar(out: &mut String, value: &Value, quoted: bool) {
    let _ = match value {
        Value::Nil if !quoted => Ok(()),
        Value::Nil => out.write_str("nil"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => out.write_str(itoa::Buffer::new().format(*value)),
        Value::BigInt(value) if quoted => write!(out, "{value}N"),
        Value::BigInt(value) => write!(out, "{value}"),
        Value::Decimal(value) => {
            super::decimal::write(out, value);
            if quoted { out.write_char('M') } else { Ok(()) }
        }
        Value::Time(time) if quoted => write!(out, "#{} \"{}\"", time.tag(), time.readable()),
        Value::Time(time) => write!(out, "{time}"),
        Value::Float(value) => {
            write_float(out, *value);
            Ok(())
        }
        Value::Char(value) if quoted => {
            write_character(out, *value);
            Ok(())
        }
        Value::Char(value) => write!(out, "{value}"),
        Value::Keyword(name) => write!(out, ":{}", name.as_str()),
        Value::Symbol(name) => out.write_str(name.as_str()),
        Value::Annotated(symbol) => out.write_str(symbol.name.as_str()),
        Value::Regex(regex) if quoted => {
            write_regex(out, regex.as_str());
            Ok(())
        }
        Value::Regex(regex) => out.write_str(regex.as_str()),
        Value::Builtin(builtin) => write!(out, "#<function {}>", builtin.name),
        Value::Native(native) => write!(out, "#<function {}>", native.about.name),
        Value::Closure(closure) => match closure.group.lambdas[closure.index as usize].name.as_deref() {
            Some(name) => write!(out, "#<function {name}>"),
            None => out.write_str("#<function>"),
        },
        Value::Bound(bound) => match bound.multimethod_name() {
            Some(name) => write!(out, "#<multimethod {name}>"),
            None => match bound.unbound_name() {
                Some(name) => write!(out, "#<Unbound: {name}>"),
                None => write!(out, "#<function {}>", bound.builtin.name),
            },
        },
        Value::Tool(tool) => write!(out, "#<tool {}>", qualified(&tool.server, &tool.name)),
        _ => Ok(()),
    };
}

/// Returns the name of a definition as written in programs: names of the language lose their namespace.
pub fn shown_name(name: &str) -> &str {
    name.strip_prefix("core/").filter(|base| !base.is_empty()).unwrap_or(name)
}

/// Writes a double as Java and Clojure print it: `3.5`, `1.0E10`, `##Inf`.
pub fn write_float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("##NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "##Inf" } else { "##-Inf" });
    } else if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        let _ = write!(out, "{value:?}");
    } else {
        let mut text = format!("{value:e}");
        if !text.contains('.') {
            // Use at least two digits, correctly rounded: the smallest double is 4.9E-324.
            text = format!("{value:.1e}");
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        out.push_str(mantissa);
        out.push('E');
        out.push_str(exponent);
    }
}

/// Writes a quoted string that the reader reads back.
pub fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    // Characters that need an escape are one byte, or two bytes of which the first is 0xC2.
    let is_suspect = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7F | 0xC2);
    while let Some(at) = rest.bytes().position(is_suspect) {
        out.push_str(&rest[..at]);
        let mut behind = rest[at..].chars();
        match behind.next().unwrap_or_default() {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
        rest = behind.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Prints data as the reader reads it back.
pub fn readable(value: &Value) -> String {
    let mut printer = Printer::new(usize::MAX / 2, true);
    let Ok(_): Result<bool, Infallible> = printer.print(value, &mut Free);
    printer.out
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(usize::MAX / 2, false);
        let Ok(_): Result<bool, Infallible> = printer.print(self, &mut Free);
        f.write_str(&printer.out)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(4_096, true);
        let Ok(_): Result<bool, Infallible> = printer.print(self, &mut Free);
        f.write_str(&printer.out)
    }
}
