//! Large hash tables that preserve insertion order: the base of large maps and sets.
//!
//! A table consists of a persistent index from key to position and a persistent vector of entries in insertion order.
//! The index uses a random seed per table, so that programs cannot provoke collisions. A removed entry leaves a gap;
//! when gaps outnumber entries by more than a constant, the table is compacted.

use super::Value;
use foldhash::quality::RandomState;

/// A table from keys to `V`.
#[derive(Clone)]
pub struct Table<V: Clone> {
    index: im::GenericHashMap<Value, u32, RandomState, im::shared_ptr::DefaultSharedPtr>,
    slots: im::Vector<Option<(Value, V)>>,
}

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
        self.slots.get(position)?.as_ref().map(|(key, value)| (key, value))
    }

    /// Returns the upper bound (exclusive) of the positions.
    pub fn positions(&self) -> usize {
        self.slots.len()
    }

    /// Associates `key` with `value`. An existing entry keeps its original key.
    pub fn insert(&mut self, key: Value, value: V) {
        match self.position(&key) {
            Some(at) => {
                if let Some(Some((_, old))) = self.slots.get_mut(at) {
                    *old = value;
                }
            }
            None => {
                self.index.insert(key.clone(), self.slots.len() as u32);
                self.slots.push_back(Some((key, value)));
            }
        }
    }

    /// Removes the entry of `key`. Returns true if it existed.
    pub fn remove(&mut self, key: &Value) -> bool {
        let Some(at) = self.index.remove(key) else { return false };
        self.slots.set(at as usize, None);
        if self.slots.len() > 2 * self.index.len() + 32 {
            self.pack();
        }
        true
    }

    fn pack(&mut self) {
        let mut packed = Table::new();
        for (key, value) in self.slots.iter().flatten() {
            packed.insert(key.clone(), value.clone());
        }
        *self = packed;
    }
}

impl<V: Clone> Default for Table<V> {
    fn default() -> Self {
        Table::new()
    }
}
