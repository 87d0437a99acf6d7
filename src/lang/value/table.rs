//! Large hash tables that keep the order of insertion: the base of large maps and sets.
//!
//! A persistent index from key to position, under a secret of its own so that no program can aim for
//! collisions, and a persistent vector of entries in the order in which they came. A removed entry
//! leaves a gap; when gaps outnumber entries the table is packed anew.

use super::Value;
use foldhash::quality::RandomState;

/// A table from keys to `V`.
#[derive(Clone)]
pub struct Table<V: Clone> {
    index: im::GenericHashMap<Value, u32, RandomState, im::shared_ptr::DefaultSharedPtr>,
    slots: im::Vector<Option<(Value, V)>>,
}

impl<V: Clone> Table<V> {
    /// A table of no entries.
    pub fn new() -> Self {
        Table { index: im::GenericHashMap::with_hasher(RandomState::default()), slots: im::Vector::new() }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// What the key stands for.
    pub fn get(&self, key: &Value) -> Option<&V> {
        self.position(key).and_then(|at| self.entry(at)).map(|(_, value)| value)
    }

    /// Where the key's entry is.
    pub fn position(&self, key: &Value) -> Option<usize> {
        self.index.get(key).map(|at| *at as usize)
    }

    /// The entry at a position; gaps have none.
    pub fn entry(&self, position: usize) -> Option<(&Value, &V)> {
        self.slots.get(position)?.as_ref().map(|(key, value)| (key, value))
    }

    /// One past the last position.
    pub fn positions(&self) -> usize {
        self.slots.len()
    }

    /// Makes `key` stand for `value`; the key that was there first stays.
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

    /// Takes an entry away; true if it was there.
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
