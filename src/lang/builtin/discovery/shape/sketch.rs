//! A shape that has been read, and how it is written to a given width.

use super::{CHOICES, DEEPEST, KEYS, cut, literal};
use serde_json::Value as Json;

/// Maximum length of an enumeration that is written behind a key where only mixed types are, in characters.
const ENUMERATION: usize = 32;

/// The numbers of keys of an object that are tried until a shape fits, in decreasing order.
const FEWER: [usize; 8] = [KEYS, 12, 8, 6, 4, 3, 2, 1];

/// The level of detail at which a field is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The key and the type: `{:id string :size? integer|nil}`.
    Types,
    /// The key, and the type only if it is not one scalar type; `?` marks a key that may be absent or nil:
    /// `{:id :size? :amount number|string}`.
    Keys,
}

/// The alternatives of a value, without duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    of: Vec<Part>,
    /// True if nil is among the values.
    pub(super) has_nil: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// A type with the values that it is restricted to.
    Type {
        text: String,
        note: String,
    },
    Literal(String),
    List {
        items: Vec<Sketch>,
        note: String,
    },
    /// An object: its fields, whether there are more, and the shape of the values of all other keys.
    Map {
        fields: Vec<Field>,
        is_cut: bool,
        values: Option<Box<Sketch>>,
    },
    /// More than is shown.
    Beyond,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// The key as it is written.
    pub(super) name: String,
    pub(super) is_optional: bool,
    pub(super) sketch: Sketch,
}

impl Part {
    pub(super) fn any() -> Part {
        Part::Type { text: "any".to_string(), note: String::new() }
    }

    /// True for one type without parts.
    fn is_scalar(&self) -> bool {
        matches!(self, Part::Type { text, .. } if text != "object")
    }
}

impl Sketch {
    pub(super) fn any() -> Sketch {
        Sketch { of: vec![Part::any()], has_nil: false }
    }

    pub(super) fn add(&mut self, part: Part) {
        if !self.of.contains(&part) {
            self.of.push(part);
        }
    }

    pub(super) fn add_literal(&mut self, value: &Json) {
        match value {
            Json::Null => self.has_nil = true,
            value => self.add(Part::Literal(literal(value))),
        }
    }

    /// True if the shape says nothing about the parts of a value: any value, an object, or a list of such.
    pub fn is_bare(&self) -> bool {
        match self.of.as_slice() {
            [] => !self.has_nil,
            [Part::Type { text, .. }] => matches!(text.as_str(), "any" | "object"),
            [Part::List { items, .. }] => {
                matches!(items.as_slice(), [item] if item.is_bare() && !matches!(item.of.as_slice(), [Part::List { .. }]))
            }
            _ => false,
        }
    }

    /// Writes the shape in at most `width` characters; nil as an alternative to the whole value is left out. If the
    /// shape is too long, keys are left out of its objects and the deepest objects are left open, so that brackets stay
    /// balanced. Only a shape that is too long even then is truncated.
    pub fn written(&self, detail: Detail, width: usize) -> String {
        if let Some(whole) = self.within(width, detail, KEYS, DEEPEST) {
            return whole;
        }
        let narrower = FEWER.into_iter().flat_map(|keys| (0..=DEEPEST).map(move |depth| (keys, depth)));
        let fitting = narrower.filter_map(|(keys, depth)| self.within(width, detail, keys, depth));
        let longest = fitting.max_by_key(|text| text.chars().count());
        longest.unwrap_or_else(|| cut(self.pen(width, detail, 1, 0).out, width))
    }

    /// Returns the shape with that many keys for each object and that many levels of objects, if it fits.
    fn within(&self, width: usize, detail: Detail, keys: usize, depth: usize) -> Option<String> {
        let pen = self.pen(width, detail, keys, depth);
        pen.out.chars().nth(width).is_none().then_some(pen.out)
    }

    fn pen(&self, width: usize, detail: Detail, keys: usize, depth: usize) -> Pen {
        let mut pen = Pen { out: String::new(), detail, keys, limit: 4 * width };
        pen.alternatives(self, depth, false);
        pen
    }
}

/// Writes a shape with a limited number of keys for each object.
struct Pen {
    out: String,
    detail: Detail,
    keys: usize,
    /// Nothing is added to a text that is longer, in bytes: it does not fit.
    limit: usize,
}

impl Pen {
    /// Writes the alternatives of a value, at most `depth` objects deep.
    fn alternatives(&mut self, sketch: &Sketch, depth: usize, with_nil: bool) {
        if self.out.len() > self.limit {
            return;
        }
        for (at, part) in sketch.of.iter().take(CHOICES + 1).enumerate() {
            if at > 0 {
                self.out.push('|');
            }
            self.part(part, depth);
        }
        match sketch.of.is_empty() {
            true => self.out.push_str(if sketch.has_nil { "nil" } else { "any" }),
            false if sketch.has_nil && with_nil => self.out.push_str("|nil"),
            false => {}
        }
    }

    fn part(&mut self, part: &Part, depth: usize) {
        match part {
            Part::Type { text, note } => {
                self.out.push_str(text);
                self.note(note);
            }
            Part::Literal(text) => self.out.push_str(text),
            Part::Beyond => self.out.push('…'),
            Part::List { items, note } => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(' ');
                    }
                    self.alternatives(item, depth, true);
                }
                self.out.push(']');
                self.note(note);
            }
            Part::Map { .. } if depth == 0 => self.out.push_str("{…}"),
            Part::Map { fields, is_cut, values } => self.map(fields, *is_cut, values.as_deref(), depth - 1),
        }
    }

    fn map(&mut self, fields: &[Field], is_cut: bool, values: Option<&Sketch>, depth: usize) {
        let opening = self.out.len();
        for field in fields.iter().take(self.keys) {
            self.out.push(' ');
            self.field(field, depth);
        }
        if is_cut || fields.len() > self.keys {
            self.out.push_str(" …");
        }
        if let Some(values) = values {
            self.out.push_str(" _ ");
            self.alternatives(values, depth, true);
        }
        // The first space makes room for the bracket.
        self.out.replace_range(opening..opening + 1, "{");
        self.out.push('}');
    }

    fn field(&mut self, field: &Field, depth: usize) {
        self.out.push_str(&field.name);
        let Field { sketch, is_optional, .. } = field;
        if self.detail == Detail::Types {
            self.out.push_str(if *is_optional { "? " } else { " " });
            return self.alternatives(sketch, depth, true);
        }
        if *is_optional || sketch.has_nil {
            self.out.push('?');
        }
        if matches!(sketch.of.as_slice(), [] | [_]) && sketch.of.iter().all(Part::is_scalar) {
            return;
        }
        let before = self.out.len();
        self.out.push(' ');
        self.alternatives(sketch, depth, false);
        let is_enumeration = sketch.of.iter().all(|part| matches!(part, Part::Literal(_) | Part::Beyond));
        if is_enumeration && self.out[before..].chars().count() > ENUMERATION {
            self.out.truncate(before);
        }
    }

    fn note(&mut self, note: &str) {
        if self.detail == Detail::Types && !note.is_empty() {
            self.out.push('(');
            self.out.push_str(note);
            self.out.push(')');
        }
    }
}
