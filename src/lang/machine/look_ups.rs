//! Keys that the lookups of an evaluation found and missed: the source of the notes on silent mistakes in its reply.
//!
//! # Keys that no record has
//! `(:sendr mail)` is nil if the key is `:sender`, and nothing fails. At the end of the evaluation there is a note on a
//! keyword for which all of this holds:
//! - It was looked up, without a default, in at least one *record*: a map whose keys are all keywords or short strings.
//! - It was in none of them, and was found in no other map either, in the whole evaluation.
//! - At least half of the records have a similar key ([`unlikeness`]). No similar key was itself looked up: a program
//!   that uses `:emails` knows the difference between it and `:email`.
//! - It is written in the program or in a function that it could call. Keywords that are data, as in `(get counts word)`,
//!   are no names of fields.
//!
//! # Cost
//! Looking up a key that is there must stay as fast as it is, so almost nothing is recorded then. That a key was found at
//! all is seen where its place is not yet known:
//! - A [`LookUp`](crate::node::LookUp) has an inline cache, which is empty until it finds its key for the first time.
//!   Filling it calls [`LookUps::hit`]. A miss empties the cache of its node, so that a later find is seen too, and a
//!   cache that is full then tells that the key was found before, in this evaluation or an earlier one.
//! - All other lookups check a small table for the address of the key.
//!
//! A miss adds one to a counter; the similar keys of small records are only searched for at the end. No fuel is charged.
//! At most [`MOST_KEYS`] missing keys, [`MOST_SHAPES`] layouts of each, and [`MOST_FOUND`] found keys are remembered. A
//! program that misses or finds more keys uses them as data: nothing is recorded any more, and there are no notes on keys.
//!
//! Nodes of the prelude record nothing, since programs share them.
//!
//! # Other notes
//! [`LookUps::mapped`] records a keyword that was mapped over a map, whose items are entries; [`LookUps::in_text`] one
//! that was looked up in a text, which has no keys; [`LookUps::unlike`] a number that was compared with the text of the same number, and [`LookUps::unnamed`] an argument
//! of a tool whose description names other values only.

use super::core::Globals;
use super::similar::{LONGEST, unlikeness};
use crate::node::{Group, Node};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::shape::Shape;
use crate::value::text::{Name, split_name};
use std::sync::Arc;

/// Maximum number of missing keys that are remembered.
const MOST_KEYS: usize = 64;

/// Maximum number of shapes that are remembered for each of them.
const MOST_SHAPES: usize = 8;

/// Maximum number of found keys that are remembered.
const MOST_FOUND: usize = 256;

/// Maximum number of keys of a large record that are compared with a missing one.
const WIDEST: usize = 256;

/// Maximum number of notes.
const MOST_NOTES: usize = 3;

/// Number of addresses of found keys that are recognised without a search.
const SLOTS: usize = 32;

/// The record of look-ups of an evaluation.
#[derive(Default)]
pub struct LookUps {
    /// Addresses of found keys, each at an index computed from it. All of them belong to names in `found`.
    slots: [usize; SLOTS],
    /// Names of found keys. A name occurs several times if keys of different addresses have it. Holding them keeps their
    /// addresses from being used again.
    found: Vec<Name>,
    /// True once a found or a missing key could not be remembered.
    has_more: bool,
    /// The keys that were missed, in the order of their first miss.
    missing: Vec<Missing>,
    /// The indices of the missing key and its shape that were counted last.
    counted: (usize, usize),
    /// Keywords that were mapped over a map.
    mapped: Vec<Name>,
    /// Keywords that were looked up in a text, each with whether a node named it.
    in_text: Vec<(Name, bool)>,
    /// Numbers that were compared with the text of the same number, as text.
    unlike: Vec<String>,
    /// Notes on arguments of tools whose values their descriptions do not name.
    unnamed: Vec<String>,
}

/// A key that was looked up in records that lack it.
struct Missing {
    name: Name,
    /// True if it was looked up by a node that names it.
    is_written: bool,
    /// The number of records.
    records: u64,
    /// Numbers of small records by their shape.
    shapes: Vec<(Arc<Shape>, u64)>,
    /// The similar keys of the first large record, and the numbers of large records that have them.
    wide: Option<Vec<(Name, u64)>>,
}

impl LookUps {
    /// Forgets the look-ups of an evaluation.
    pub fn clear(&mut self) {
        if !self.found.is_empty() || self.has_notes() {
            *self = LookUps::default();
        }
    }

    /// True if there may be notes.
    pub fn has_notes(&self) -> bool {
        !(self.missing.is_empty()
            && self.mapped.is_empty()
            && self.in_text.is_empty()
            && self.unlike.is_empty()
            && self.unnamed.is_empty())
    }

    /// Records that a key was found.
    #[inline(always)]
    pub fn hit(&mut self, name: &Name) {
        if self.slots[slot_of(name.address())] != name.address() {
            self.remember(name);
        }
    }

    /// Records that a key was found, if it is a keyword.
    pub fn hit_key(&mut self, key: &Value) {
        if let Value::Keyword(name) = key {
            self.hit(name);
        }
    }

    #[inline(never)]
    fn remember(&mut self, name: &Name) {
        let address = name.address();
        if name.as_str().len() > LONGEST || self.has_more {
            return;
        }
        let known = self.found.iter().find(|known| *known == name);
        if known.is_none_or(|known| known.address() != address) {
            let most = if known.is_some() { SLOTS } else { MOST_FOUND };
            if self.found.len() >= most {
                self.has_more = known.is_none();
                return;
            }
            self.found.push(name.clone());
        }
        self.slots[slot_of(address)] = address;
    }

    /// Records that a key was looked up, without a default, in a map that lacks it. `is_written` tells that the program
    /// names the key in this place.
    pub fn missed(&mut self, name: &Name, map: &Map, is_written: bool) {
        let shape = map.as_shaped().map(|(shape, _)| shape);
        let (at, nth) = self.counted;
        if let (Some(shape), Some(last)) = (shape, self.missing.get_mut(at))
            && last.name.address() == name.address()
            && let Some((known, count)) = last.shapes.get_mut(nth)
            && Arc::ptr_eq(known, shape)
        {
            last.is_written |= is_written;
            last.records += 1;
            *count += 1;
            return;
        }
        if self.has_more || map.is_empty() || name.as_str().len() > LONGEST {
            return;
        }
        let at = match self.missing.iter().position(|missing| missing.name == *name) {
            Some(at) => at,
            None if self.missing.len() >= MOST_KEYS => {
                self.has_more = true;
                return;
            }
            None => {
                let name = name.clone();
                self.missing.push(Missing { name, is_written, records: 0, shapes: Vec::new(), wide: None });
                self.missing.len() - 1
            }
        };
        let missing = &mut self.missing[at];
        missing.is_written |= is_written;
        missing.records += 1;
        match shape {
            Some(shape) => {
                if let Some(nth) = missing.count(shape) {
                    self.counted = (at, nth);
                }
            }
            None => missing.count_wide(map),
        }
    }

    /// Records a keyword that was mapped over the entries of a map.
    #[cold]
    pub fn mapped(&mut self, name: &Name) {
        if self.mapped.len() < MOST_NOTES && !self.mapped.contains(name) && name.as_str().len() <= LONGEST {
            self.mapped.push(name.clone());
        }
    }

    /// Records a keyword that was looked up in a text. `is_written` is as for [`LookUps::missed`].
    #[cold]
    pub fn in_text(&mut self, name: &Name, is_written: bool) {
        if let Some((_, known)) = self.in_text.iter_mut().find(|(known, _)| known == name) {
            *known |= is_written;
        } else if self.in_text.len() < MOST_KEYS && name.as_str().len() <= LONGEST {
            self.in_text.push((name.clone(), is_written));
        }
    }

    /// Records two unequal values that were compared, if one is a number and the other its text.
    #[cold]
    pub fn unlike(&mut self, left: &Value, right: &Value) {
        let (number, Value::Str(text)) = (if let Value::Str(_) = left { (right, left) } else { (left, right) }) else {
            return;
        };
        let text = text.as_str();
        if self.unlike.len() < MOST_NOTES
            && text.len() <= LONGEST
            && text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && matches!(number, Value::Int(_) | Value::Float(_))
            && number.to_string() == text
            && !self.unlike.iter().any(|known| known == text)
        {
            self.unlike.push(text.to_string());
        }
    }

    /// Records notes on the arguments of a call, which are only asked for while there is room.
    pub fn unnamed(&mut self, notes: impl FnOnce() -> Vec<String>) {
        if self.unnamed.len() < MOST_NOTES {
            for note in notes() {
                if self.unnamed.len() < MOST_NOTES && !self.unnamed.contains(&note) {
                    self.unnamed.push(note);
                }
            }
        }
    }

    /// Returns the notes on a program that has ended. `text` is its source, and `globals` are the session's definitions.
    /// If `is_whole` is false, only a part of the program has run, and there are no notes on missing keys.
    pub fn notes(&self, text: &str, globals: &Globals, is_whole: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let is_written = |name: &Name, kept: &[&Arc<Group>]| {
            names(text, name.as_str()) || kept.iter().any(|group| names(&group.source.text, name.as_str()))
        };
        if !self.in_text.is_empty() {
            let kept = functions(globals);
            let named = self.in_text.iter().filter(|(name, is_named)| *is_named || is_written(name, &kept));
            notes.extend(named.take(MOST_NOTES).map(|(name, _)| {
                let key = Value::Keyword(name.clone());
                format!(
                    "{key} was looked up in a text, in which it is never found: a text has no keys; (json/parse s) reads \
                     JSON in one"
                )
            }));
        }
        if is_whole && !self.has_more && !self.missing.is_empty() {
            let kept = functions(globals);
            let missing = self.missing.iter().filter_map(|missing| self.note_on(missing, text, &kept));
            notes.extend(missing.take(MOST_NOTES));
        }
        for name in &self.mapped {
            let key = Value::Keyword(name.clone());
            notes.push(format!(
                "{key} was looked up in each entry of a map; entries are pairs [key value], in which it is never found: \
                 use ({key} m) for the value of the key, or (vals m) for the values of the map"
            ));
        }
        for number in &self.unlike {
            // A comparison of two literals is meant.
            if text.contains(&format!("= {number} \"{number}\"")) || text.contains(&format!("= \"{number}\" {number}"))
            {
                continue;
            }
            notes.push(format!(
                "the number {number} was compared with the text \"{number}\", and the two are never equal: (parse-long \
                 s) converts a text to a number, (str n) a number to a text"
            ));
        }
        notes.extend(self.unnamed.iter().cloned());
        notes.truncate(MOST_NOTES);
        notes
    }

    fn note_on(&self, missing: &Missing, text: &str, kept: &[&Arc<Group>]) -> Option<String> {
        let name = &missing.name;
        if self.has_found(name, kept) {
            return None;
        }
        let mut meant: Option<(usize, u64, Name)> = None;
        for (other, count) in missing.similar() {
            let is_used = self.has_found(&other, kept) || self.missing.iter().any(|missing| missing.name == other);
            if is_used {
                return None;
            }
            let unlikeness = unlikeness(name.as_str(), other.as_str())?;
            if count.saturating_mul(2) >= missing.records
                && meant.as_ref().is_none_or(|(least, ..)| unlikeness < *least)
            {
                meant = Some((unlikeness, count, other));
            }
        }
        let (_, _, meant) = meant?;
        let is_written = missing.is_written
            || names(text, name.as_str())
            || kept.iter().any(|group| names(&group.source.text, name.as_str()));
        if !is_written {
            return None;
        }
        let (key, meant) = (Value::Keyword(name.clone()), Value::Keyword(meant));
        Some(match missing.records {
            1 => format!("{key} is not in the record; did you mean {meant}?"),
            records => format!("{key} is in none of {records} records; did you mean {meant}?"),
        })
    }

    /// True if the key was found, or may have been in a function of an earlier program.
    fn has_found(&self, name: &Name, kept: &[&Arc<Group>]) -> bool {
        self.found.contains(name) || kept.iter().any(|group| finds(group, name))
    }
}

fn slot_of(address: usize) -> usize {
    (address >> 4) % SLOTS
}

impl Missing {
    /// Counts a small record; returns the index of its shape if it is remembered.
    fn count(&mut self, shape: &Arc<Shape>) -> Option<usize> {
        if let Some(nth) = self.shapes.iter().position(|(known, _)| Arc::ptr_eq(known, shape)) {
            self.shapes[nth].1 += 1;
            return Some(nth);
        }
        if self.shapes.len() >= MOST_SHAPES || !shape.keys().iter().all(is_name) {
            return None;
        }
        self.shapes.push((shape.clone(), 1));
        Some(self.shapes.len() - 1)
    }

    /// Counts a large record.
    fn count_wide(&mut self, map: &Map) {
        let known = self.wide.get_or_insert_with(|| {
            if map.len() > WIDEST || !map.iter().all(|(key, _)| is_name(key)) {
                return Vec::new();
            }
            let names = map.iter().filter_map(|(key, _)| keyword(key));
            let similar = names.filter(|other| unlikeness(self.name.as_str(), other.as_str()).is_some());
            similar.take(MOST_SHAPES).map(|other| (other.clone(), 0)).collect()
        });
        for (name, count) in known {
            *count += u64::from(map.get_exact(&Value::Keyword(name.clone())).is_some());
        }
    }

    /// Returns the similar keys of the records, with the numbers of records that have them.
    fn similar(&self) -> Vec<(Name, u64)> {
        let mut similar: Vec<(Name, u64)> = Vec::new();
        let mut add = |name: &Name, count: u64| match similar.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known += count,
            None if unlikeness(self.name.as_str(), name.as_str()).is_some() => similar.push((name.clone(), count)),
            None => {}
        };
        for (shape, count) in &self.shapes {
            shape.keys().iter().filter_map(keyword).for_each(|name| add(name, *count));
        }
        self.wide.iter().flatten().for_each(|(name, count)| add(name, *count));
        similar
    }
}

fn keyword(key: &Value) -> Option<&Name> {
    if let Value::Keyword(name) = key { Some(name) } else { None }
}

/// True for the keys of records: keywords and strings, none of them long.
fn is_name(key: &Value) -> bool {
    match key {
        Value::Keyword(name) => name.as_str().len() <= LONGEST,
        Value::Str(text) => text.as_str().len() <= LONGEST,
        _ => false,
    }
}

/// True if a program contains the name as a whole word, with or without its colon, or without its namespace. A string of
/// that text is data.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_?!*+.$%&<>='/\"".contains(c);
    let base = split_name(name).1;
    memchr::memmem::find_iter(text.as_bytes(), base.as_bytes()).any(|at| {
        let before = text[..at].strip_suffix(&name[..name.len() - base.len()]).unwrap_or(&text[..at]);
        !before.ends_with(is_part) && !text[at + base.len()..].starts_with(is_part)
    })
}

/// Returns the code of the functions that the session defines.
fn functions(globals: &Globals) -> Vec<&Arc<Group>> {
    let mut functions = Vec::new();
    for global in globals.iter() {
        if let Value::Closure(closure) = global.value {
            functions.push(&closure.group);
        }
    }
    functions
}

/// True if a look-up in the code has ever found the key.
fn finds(group: &Arc<Group>, name: &Name) -> bool {
    let mut open: Vec<&Node> = group.lambdas.iter().flat_map(|code| &code.arities).map(|arity| &arity.body).collect();
    while let Some(node) = open.pop() {
        match node {
            Node::LookUp(look_up) if look_up.has_found(name) => return true,
            Node::Lambda(lambda) => {
                open.extend(lambda.group.lambdas.iter().flat_map(|code| &code.arities).map(|arity| &arity.body));
            }
            _ => {}
        }
        node.for_each_child(&mut |child| open.push(child));
    }
    false
}
