//! Sequences that read a collection instead of copying it: what `seq`, `rest`, `next`, `& more`, `keys`, `vals`, `rseq`
//! and `subseq` return.
//!
//! A view is one kind of [`List`], so it prints, compares, hashes and counts as every list does. Two representations
//! were considered:
//!
//! - **A variant `Seq` of [`Value`], with its kinds.** The value stays at sixteen bytes, but the evaluator's inlined
//!   paths and some fifty matches on `Value::List` and `Value::Lazy` in the library need another arm, and records,
//!   metadata and JSON a second notion of what a list is.
//! - **A kind of list whose source is the collection** (chosen). Only what takes a list apart knows about it: the
//!   cursor, the traversal of children, and the snapshot. Views are not longer than cons cells, so lists take as much
//!   memory as before. A view is never a block, even of a vector that is one: so the same steps are charged for it once
//!   a session has been moved and the vector has become a block. The meter needs no rule: a view costs a constant, and
//!   its source is counted where it is. A snapshot writes the source and the position, which keeps what is shared with
//!   the source shared.
//!
//! A view of a few items of a larger collection is a copy of them: it costs as little, and does not keep the rest.

use super::Value;
use super::list::List;
use super::map::Map;
use super::vector::Vector;
use std::sync::Arc;

/// Maximum number of items that are copied so that they do not keep a larger collection.
const FEW: u32 = 32;

/// The positions of a collection that are left to read. A view in a list is never empty.
#[derive(Clone)]
pub struct View {
    source: Value,
    part: Part,
    /// The first position that is left: an index, a position of a map or a set, or a byte offset.
    at: u32,
    /// The position after the last one.
    end: u32,
    /// The number of items left; of a text, the number of bytes.
    left: u32,
}

/// What a view reads of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The items in order; of a map its entries, of a text its characters.
    Items,
    /// The keys of a map.
    Keys,
    /// The values of a map.
    Values,
    /// The items from the last to the first, of a vector or a sorted collection.
    Reversed,
}

impl Part {
    /// All parts, each with its name in snapshots.
    pub const NAMES: [(Part, &str); 4] =
        [(Part::Items, "items"), (Part::Keys, "keys"), (Part::Values, "vals"), (Part::Reversed, "reversed")];
}

impl View {
    /// Creates a view of all items; `None` if the value has no such part, or more than four billion items.
    pub fn of(source: Value, part: Part) -> Option<View> {
        let (positions, left) = match &source {
            Value::Vector(vector) => (vector.len(), vector.len()),
            Value::Map(map) => (map.positions(), map.len()),
            Value::Set(set) => (set.positions(), set.len()),
            Value::Str(text) => (text.as_str().len(), text.as_str().len()),
            _ => return None,
        };
        let view = View { source, part, at: 0, end: u32::try_from(positions).ok()?, left: u32::try_from(left).ok()? };
        let is_part = match part {
            Part::Items => true,
            Part::Keys | Part::Values => matches!(view.source, Value::Map(_)),
            Part::Reversed => view.is_indexed(),
        };
        is_part.then_some(view)
    }

    /// Narrows a view of all items to those between two positions of a vector or a sorted collection, or from a byte
    /// offset of a text to its end; `None` if there are no such positions.
    pub fn between(self, at: usize, end: usize) -> Option<View> {
        let is_place = match &self.source {
            Value::Str(text) => end == self.end as usize && text.as_str().is_char_boundary(at),
            _ => self.is_indexed() && at <= end && end <= self.end as usize,
        };
        let (at, end) = (u32::try_from(at).ok()?, u32::try_from(end).ok()?);
        is_place.then(|| View { at, end, left: end - at, ..self })
    }

    /// Leaves out all but the last `left` items of a view of all items of a map or a set; `None` if it has fewer.
    pub fn ending(mut self, left: usize) -> Option<View> {
        let count = (self.left as usize).checked_sub(left)?;
        self.leave_out(count);
        Some(self)
    }

    /// The collection.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// What is read of the collection.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The first position that is left and the one after the last, if the items have fixed positions: all but those of
    /// unsorted maps and sets.
    pub fn bounds(&self) -> Option<(usize, usize)> {
        (self.is_indexed() || self.is_text()).then_some((self.at as usize, self.end as usize))
    }

    /// The number of items left; `None` for a text, whose characters would have to be counted.
    pub fn left(&self) -> Option<usize> {
        (!self.is_text()).then_some(self.left as usize)
    }

    fn is_text(&self) -> bool {
        matches!(self.source, Value::Str(_))
    }

    /// True if any item is found in constant or logarithmic time.
    pub fn is_indexed(&self) -> bool {
        match &self.source {
            Value::Vector(_) => true,
            Value::Map(map) => map.order().is_some(),
            Value::Set(set) => set.order().is_some(),
            _ => false,
        }
    }

    /// The item at an index, if the view is [indexed](View::is_indexed) and has so many.
    pub fn get(&self, index: usize) -> Option<Value> {
        if !self.is_indexed() || index >= self.left as usize {
            return None;
        }
        self.item(if self.part == Part::Reversed { self.end as usize - 1 - index } else { self.at as usize + index })
    }

    /// The vector of which items are left in their order, with the index of the first and the one after the last.
    pub fn of_vector(&self) -> Option<(&Arc<Vector>, usize, usize)> {
        match (&self.source, self.part) {
            (Value::Vector(vector), Part::Items) => Some((vector, self.at as usize, self.end as usize)),
            _ => None,
        }
    }

    /// The text from the first character that is left on.
    fn as_text(&self) -> Option<&str> {
        self.source.as_str()?.get(self.at as usize..self.end as usize)
    }

    /// Takes the next item.
    pub fn take_next(&mut self) -> Option<Value> {
        if let Some(text) = self.as_text() {
            let next = text.chars().next()?;
            self.at += next.len_utf8() as u32;
            self.left -= next.len_utf8() as u32;
            return Some(Value::Char(next));
        }
        let position = self.advance()?;
        self.item(position)
    }

    /// Passes the next position of a source that is not a text; returns it.
    fn advance(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        if self.part == Part::Reversed {
            self.end -= 1;
            return Some(self.end as usize);
        }
        let position = match &self.source {
            Value::Map(map) => map.occupied(self.at as usize),
            Value::Set(set) => set.occupied(self.at as usize),
            _ => self.at as usize,
        };
        self.at = position as u32 + 1;
        Some(position)
    }

    fn item(&self, position: usize) -> Option<Value> {
        match &self.source {
            Value::Vector(vector) => vector.get(position).cloned(),
            Value::Set(set) => set.member(position).cloned(),
            Value::Map(map) => {
                let (key, value) = map.entry(position)?;
                Some(match self.part {
                    Part::Keys => key.clone(),
                    Part::Values => value.clone(),
                    Part::Items | Part::Reversed => Value::pair(key.clone(), value.clone()),
                })
            }
            _ => None,
        }
    }

    /// Leaves out items, at most as many as there are: at once if they are [indexed](View::is_indexed), else one by
    /// one.
    pub fn leave_out(&mut self, count: usize) {
        if !self.is_indexed() {
            for _ in 0..count {
                let is_end = if self.is_text() { self.take_next().is_none() } else { self.advance().is_none() };
                if is_end {
                    break;
                }
            }
            return;
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(self.left);
        self.left -= count;
        match self.part {
            Part::Reversed => self.end -= count,
            _ => self.at += count,
        }
    }

    /// Converts the view to a list: a copy of the items if these are few of many.
    pub fn into_list(mut self) -> List {
        let all = match &self.source {
            Value::Vector(vector) => vector.len(),
            Value::Map(map) => map.len(),
            Value::Set(set) => set.len(),
            source => source.as_str().map_or(0, str::len),
        };
        if self.left > FEW || 4 * self.left as usize > all {
            return List::View(self);
        }
        let mut items = Vec::with_capacity(self.left as usize);
        items.extend(std::iter::from_fn(|| self.take_next()));
        List::from(items)
    }

    /// Converts the view to a sequence; nil if it is empty.
    pub fn into_seq(self) -> Value {
        if self.left == 0 { Value::Nil } else { Value::List(Arc::new(self.into_list())) }
    }
}

/// Returns the entries, the keys or the values of a map; nil if it is empty. Positions in a map are 32-bit numbers, so
/// that a view reaches all of them.
pub fn of_map(map: Arc<Map>, part: Part) -> Value {
    View::of(Value::Map(map), part).map_or(Value::Nil, View::into_seq)
}
