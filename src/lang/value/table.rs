//! Large hash tables that preserve insertion order: the base of large maps and sets.
//!
//! A table consists of a persistent index from key to position and a persistent vector of entries in insertion order.
//! The index uses a random seed per table, so that programs cannot provoke collisions. A removed entry leaves a gap;
//! when gaps outnumber entries by more than a constant, the table is compacted. Until then a walk passes all gaps in a
//! row at once, so that taking the first entry away again and again costs as much as it does elsewhere.

use super::Value;
use foldhash::quality::RandomState;

/// A table from keys to `V`.
#[derive(Clone)]
pub struct Table<V: Clone> {
    index: im::GenericHashMap<Value, u32, RandomState, im::shared_ptr::DefaultSharedPtr>,
    slots: im::Vector<Slot<V>>,
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
        Table { index: im::GenericHashMap::with_hasher(RandomState::default()), slots: im::Vector::new() }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the position of the entry of `key`.
    pub fn position(&self, key: &Value) -> Option<usize> {
        self.index.get(key).map(|at| *at as usize)
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
            Some(at) => {
                if let Some(Slot::Entry(_, old)) = self.slots.get_mut(at) {
                    *old = value;
                }
            }
            None => {
                self.index.insert(key.clone(), self.slots.len() as u32);
                self.slots.push_back(Slot::Entry(key, value));
            }
        }
    }

    /// Does what [`Table::insert`] does, faster if the table does not contain the key.
    pub fn add(&mut self, key: Value, value: V) {
        let Some(at) = self.index.insert(key.clone(), self.slots.len() as u32) else {
            self.slots.push_back(Slot::Entry(key, value));
            return;
        };
        self.index.insert(key, at);
        if let Some(Slot::Entry(_, old)) = self.slots.get_mut(at as usize) {
            *old = value;
        }
    }

    /// Removes the entry of `key`. Returns true if it existed.
    pub fn remove(&mut self, key: &Value) -> bool {
        let Some(at) = self.index.remove(key) else { return false };
        self.leave_gap(at);
        if self.slots.len() > 2 * self.index.len() + 32 {
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

impl<V: Clone> Default for Table<V> {
    fn default() -> Self {
        Table::new()
    }
}
