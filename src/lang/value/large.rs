//! The representation of maps and sets that are large or sorted, and of sets with metadata.

use super::Value;
use super::compare::natural;
use super::map::Map;
use super::sequence::Sequence;
use super::table::Table;
use std::cmp::Ordering;
use std::sync::Arc;

/// A hash table, with a sort order if it is sorted.
#[derive(Clone)]
pub struct Large<V: Clone> {
    table: Table<V>,
    order: Option<SortOrder>,
    /// The metadata.
    pub metadata: Option<Arc<Map>>,
}

/// The keys in sort order.
#[derive(Clone)]
pub struct SortOrder {
    /// A function of two keys; nil selects `compare`.
    pub comparator: Value,
    /// The keys, sorted.
    keys: Sequence<Key>,
}

/// A key of a sorted collection.
#[derive(Clone)]
struct Key {
    key: Value,
    /// The table position of its entry, so that iteration needs no lookup.
    slot: u32,
}

impl SortOrder {
    fn new(comparator: Value) -> SortOrder {
        SortOrder { comparator, keys: Sequence::new() }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the key at an index of the order.
    pub fn key(&self, index: usize) -> Option<&Value> {
        self.keys.get(index).map(|known| &known.key)
    }
}

impl<V: Clone> Default for Large<V> {
    fn default() -> Self {
        Large { table: Table::new(), order: None, metadata: None }
    }
}

impl<V: Clone> Large<V> {
    /// Creates an empty collection that is about to get so many entries by [`Large::add`].
    pub fn with_capacity(capacity: usize) -> Large<V> {
        Large { table: Table::with_capacity(capacity), ..Large::default() }
    }

    /// Creates an empty sorted collection. A comparator of nil selects `compare`.
    pub fn sorted(comparator: Value) -> Large<V> {
        Large { order: Some(SortOrder::new(comparator)), ..Large::default() }
    }

    /// Returns the keys in sort order, or `None` for an unsorted collection.
    pub fn order(&self) -> Option<&SortOrder> {
        self.order.as_ref()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the entry of `key`.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<(&Value, &V)> {
        self.table.position(key).and_then(|slot| self.table.entry(slot))
    }

    /// Returns the upper bound (exclusive) of the positions that [`Large::entry`] accepts.
    pub fn positions(&self) -> usize {
        match &self.order {
            Some(order) => order.keys.len(),
            None => self.table.positions(),
        }
    }

    /// Returns the entry at a position of the iteration order, or `None` for the gap that a removed entry left.
    #[inline]
    pub fn entry(&self, position: usize) -> Option<(&Value, &V)> {
        match &self.order {
            Some(order) => self.table.entry(order.keys.get(position)?.slot as usize),
            None => self.table.entry(position),
        }
    }

    /// Returns the position of the next entry at or after `position`, which is 0 or follows an entry.
    pub fn occupied(&self, position: usize) -> usize {
        if self.order.is_some() { position } else { self.table.occupied(position) }
    }

    /// Associates `key` with `value`. In a sorted collection the order of `compare` determines the position of a new
    /// key. For other comparators the caller finds the position and calls [`Large::insert_at`].
    pub fn insert(&mut self, key: Value, value: V) {
        if let Some(order) = &mut self.order
            && self.table.position(&key).is_none()
        {
            let before = |known: &Key| natural(&known.key, &key).unwrap_or(Ordering::Less);
            let place = order.keys.search(before).unwrap_or_else(|place| place);
            // The table appends a new entry at its end.
            order.keys.insert(place, Key { key: key.clone(), slot: self.table.positions() as u32 });
        }
        self.table.insert(key, value);
    }

    /// Does what [`Large::insert`] does, faster if the collection is not sorted and does not contain the key.
    pub fn add(&mut self, key: Value, value: V) {
        match &self.order {
            None => self.table.add(key, value),
            Some(_) => self.insert(key, value),
        }
    }

    /// Inserts a key that the collection does not contain, at index `place` of the sort order.
    pub fn insert_at(&mut self, place: usize, key: Value, value: V) {
        if let Some(order) = &mut self.order {
            let place = place.min(order.keys.len());
            order.keys.insert(place, Key { key: key.clone(), slot: self.table.positions() as u32 });
        }
        self.table.insert(key, value);
    }

    /// Removes the entry of `key`. Returns true if it existed.
    pub fn remove(&mut self, key: &Value) -> bool {
        let place = self.order.as_ref().and_then(|order| {
            let by_order = order.keys.search(|known| natural(&known.key, key).unwrap_or(Ordering::Less)).ok();
            // Under another comparator the binary search by `compare` can miss the key.
            by_order
                .filter(|place| order.key(*place) == Some(key))
                .or_else(|| order.keys.iter().position(|known| known.key == *key))
        });
        self.remove_both(place, key)
    }

    /// Removes the entry at index `place` of the sort order.
    pub fn remove_at(&mut self, place: usize) {
        if let Some(key) = self.order.as_ref().and_then(|order| order.key(place)).cloned() {
            self.remove_both(Some(place), &key);
        }
    }

    /// Removes the entry of `key`, and its place in the sort order.
    fn remove_both(&mut self, place: Option<usize>, key: &Value) -> bool {
        if let (Some(order), Some(place)) = (&mut self.order, place) {
            order.keys.remove(place);
        }
        let positions = self.table.positions();
        let removed = self.table.remove(key);
        if let Some(order) = &mut self.order
            && self.table.positions() < positions
        {
            // The table has been compacted, so all positions have changed.
            let keys = order.keys.iter().map(|known| &known.key);
            let placed = keys.filter_map(|key| Some(Key { key: key.clone(), slot: self.table.position(key)? as u32 }));
            order.keys = placed.collect();
        }
        removed
    }
}
