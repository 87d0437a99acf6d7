//! Large hash tables that preserve insertion order: the base of large maps and sets.
//!
//! A table consists of a persistent index from key to position and a persistent vector of entries in insertion order.
//! The index uses a random seed per table, so that programs cannot provoke collisions. A table whose size is known
//! beforehand has a flat index of the entries that it begins with, which is built several times as fast and shared by
//! all its versions. A removed entry leaves a gap; when gaps outnumber entries by more than a constant, the table is
//! compacted. Until then a walk passes all gaps in a row at once, so that taking the first entry away again and again
//! costs as much as it does elsewhere.

use super::Value;
use super::places::Places;
use crate::meter::{not_owed, owe};
use foldhash::quality::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A table from keys to `V`.
#[derive(Clone)]
pub struct Table<V: Clone> {
    /// The positions of the first entries. Some of them may be gaps by now, and their keys in `index`.
    first: Option<Arc<Places>>,
    /// The positions of all other entries.
    index: im::GenericHashMap<Value, u32, RandomState, im::shared_ptr::DefaultSharedPtr>,
    slots: im::Vector<Slot<V>>,
    /// The number of entries.
    len: usize,
}

/// A position of a table.
#[derive(Clone)]
enum Slot<V: Clone> {
    Entry(Value, V),
    /// One of the gaps from `start` to `end`. Only the numbers of the first and of the last gap in a row are valid.
    Gap {
        start: u32,
        end: u32,
    },
}

const _: () = assert!(size_of::<Slot<Value>>() == 2 * size_of::<Value>());

impl<V: Clone> Table<V> {
    /// Creates an empty table.
    pub fn new() -> Self {
        let index = im::GenericHashMap::with_hasher(RandomState::default());
        Table { first: None, index, slots: im::Vector::new(), len: 0 }
    }

    /// Creates an empty table that is about to get so many entries.
    pub fn with_capacity(capacity: usize) -> Self {
        Table { first: Some(Arc::new(Places::with_capacity(capacity))), ..Table::new() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the position of the entry of `key`.
    pub fn position(&self, key: &Value) -> Option<usize> {
        let at = self.by_first(key).unwrap_or_else(|| self.index.get(key).copied());
        at.map(|at| at as usize)
    }

    /// Returns the position of the entry of `key` as far as `first` settles it; `None` if `index` does. The key is paid for
    /// once, however often it is hashed: a program takes as many steps whether or not its tables have a flat index.
    #[inline]
    fn by_first(&self, key: &Value) -> Option<Option<u32>> {
        let first = self.first.as_ref()?;
        let (hash, hashing) = not_owed(|| self.index.hasher().hash_one(key));
        let at = first.find(hash, |at| holds(&self.slots, at, key)).ok();
        if at.is_none() && !self.index.is_empty() {
            return None;
        }
        owe(hashing);
        Some(at)
    }

    /// Returns the entry at a position, or `None` for a gap.
    pub fn entry(&self, position: usize) -> Option<(&Value, &V)> {
        match self.slots.get(position)? {
            Slot::Entry(key, value) => Some((key, value)),
            Slot::Gap { .. } => None,
        }
    }

    /// Returns the position of the next entry at or after `position`, which is 0 or follows an entry.
    pub fn occupied(&self, position: usize) -> usize {
        match self.slots.get(position) {
            Some(Slot::Gap { end, .. }) => *end as usize,
            _ => position,
        }
    }

    /// Returns the upper bound (exclusive) of the positions.
    pub fn positions(&self) -> usize {
        self.slots.len()
    }

    /// Associates `key` with `value`. An existing entry keeps its original key.
    pub fn insert(&mut self, key: Value, value: V) {
        match self.position(&key) {
            Some(at) => self.replace(at as u32, value),
            None => {
                self.index.insert(key.clone(), self.slots.len() as u32);
                self.append(key, value);
            }
        }
    }

    fn append(&mut self, key: Value, value: V) {
        self.slots.push_back(Slot::Entry(key, value));
        self.len += 1;
    }

    /// Does what [`Table::insert`] does, faster if the table does not contain the key.
    pub fn add(&mut self, key: Value, value: V) {
        if let Some(first) = &mut self.first {
            let first = Arc::get_mut(first).filter(|first| first.has_room() && self.index.is_empty());
            let Some(first) = first else { return self.insert(key, value) };
            let hash = self.index.hasher().hash_one(&key);
            match first.find(hash, |at| holds(&self.slots, at, &key)) {
                Ok(at) => self.replace(at, value),
                Err(cell) => {
                    first.add(cell, hash, self.slots.len() as u32);
                    self.append(key, value);
                }
            }
            return;
        }
        let Some(at) = self.index.insert(key.clone(), self.slots.len() as u32) else {
            return self.append(key, value);
        };
        self.index.insert(key, at);
        self.replace(at, value);
    }

    /// Replaces the value of the entry at a position.
    fn replace(&mut self, at: u32, value: V) {
        if let Some(Slot::Entry(_, old)) = self.slots.get_mut(at as usize) {
            *old = value;
        }
    }

    /// Removes the entry of `key`. Returns true if it existed.
    pub fn remove(&mut self, key: &Value) -> bool {
        let Some(at) = self.by_first(key).unwrap_or_else(|| self.index.remove(key)) else { return false };
        self.leave_gap(at);
        self.len -= 1;
        if self.slots.len() > 2 * self.len + 32 {
            self.pack();
        }
        true
    }

    /// Makes a gap of a position and joins it with the gaps beside it.
    fn leave_gap(&mut self, at: u32) {
        let beside = |at: Option<u32>| at.and_then(|at| self.slots.get(at as usize));
        let start = match beside(at.checked_sub(1)) {
            Some(Slot::Gap { start, .. }) => *start,
            _ => at,
        };
        let end = match beside(Some(at + 1)) {
            Some(Slot::Gap { end, .. }) => *end,
            _ => at + 1,
        };
        for at in [start, at, end - 1] {
            self.slots.set(at as usize, Slot::Gap { start, end });
        }
    }

    fn pack(&mut self) {
        let mut packed = Table::new();
        for slot in &self.slots {
            if let Slot::Entry(key, value) = slot {
                packed.add(key.clone(), value.clone());
            }
        }
        *self = packed;
    }
}

/// Returns whether the entry at a position is that of `key`.
fn holds<V: Clone>(slots: &im::Vector<Slot<V>>, at: u32, key: &Value) -> bool {
    matches!(slots.get(at as usize), Some(Slot::Entry(known, _)) if known == key)
}

impl<V: Clone> Default for Table<V> {
    fn default() -> Self {
        Table::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the entries with their positions.
    fn entries(table: &Table<i64>) -> Vec<(usize, Value, i64)> {
        let entry = |at| table.entry(at).map(|(key, value)| (at, key.clone(), *value));
        (0..table.positions()).filter_map(entry).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn a_table_of_a_known_size_is_like_one_that_has_grown(
            capacity in 0..40_usize,
            is_shared: bool,
            first in prop::collection::vec(0..30_i64, 0..40),
            changes in prop::collection::vec((0..4, 0..40_i64), 0..80),
        ) {
            let (mut known, mut grown) = (Table::with_capacity(capacity), Table::new());
            let add = |table: &mut Table<i64>| {
                first.iter().enumerate().for_each(|(at, key)| table.add(Value::Int(*key), at as i64));
            };
            add(&mut known);
            add(&mut grown);
            // Some tables share their first entries with another one, which keeps its own.
            let before = entries(&known);
            let copy = is_shared.then(|| known.clone());
            for (change, key) in changes {
                for table in [&mut known, &mut grown] {
                    match change {
                        0 => table.insert(Value::Int(key), -1),
                        1 => table.add(Value::Int(key), -2),
                        _ => {
                            table.remove(&Value::Int(key));
                        }
                    }
                }
                prop_assert_eq!(entries(&known), entries(&grown));
                prop_assert_eq!((known.len(), known.positions()), (grown.len(), grown.positions()));
                for key in 0..40 {
                    prop_assert_eq!(known.position(&Value::Int(key)), grown.position(&Value::Int(key)));
                }
            }
            prop_assert!(copy.is_none_or(|copy| entries(&copy) == before));
        }
    }
}
