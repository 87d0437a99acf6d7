//! What maps and sets become when they outgrow a plain block or are sorted, and sets with metadata.

use super::Value;
use super::compare::natural;
use super::map::Map;
use super::table::Table;
use std::cmp::Ordering;
use std::sync::Arc;

/// A hash table, with an order of its own where it is sorted.
#[derive(Clone)]
pub struct Large<V: Clone> {
    table: Table<V>,
    order: Option<Order>,
    /// What `meta` gives.
    pub metadata: Option<Arc<Map>>,
}

/// The keys in the order of a comparator.
#[derive(Clone)]
pub struct Order {
    /// A function of two keys; nil stands for `compare`.
    pub comparator: Value,
    /// The keys.
    pub keys: im::Vector<Value>,
    /// Where in the table the entry of each key is, so that a walk need not look for it.
    slots: im::Vector<u32>,
}

impl Order {
    fn new(comparator: Value) -> Order {
        Order { comparator, keys: im::Vector::new(), slots: im::Vector::new() }
    }
}

impl<V: Clone> Default for Large<V> {
    fn default() -> Self {
        Large { table: Table::new(), order: None, metadata: None }
    }
}

impl<V: Clone> Large<V> {
    /// An empty sorted collection; nil as the comparator stands for `compare`.
    pub fn sorted(comparator: Value) -> Large<V> {
        Large { order: Some(Order::new(comparator)), ..Large::default() }
    }

    /// The keys in order, if it is sorted.
    pub fn order(&self) -> Option<&Order> {
        self.order.as_ref()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The entry of that key.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<(&Value, &V)> {
        self.table.position(key).and_then(|slot| self.table.entry(slot))
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One past the last position that [`Large::entry`] may be asked for.
    pub fn positions(&self) -> usize {
        match &self.order {
            Some(order) => order.keys.len(),
            None => self.table.positions(),
        }
    }

    /// The entry at a position in the order of iteration; removed entries may leave gaps.
    #[inline]
    pub fn entry(&self, position: usize) -> Option<(&Value, &V)> {
        match &self.order {
            Some(order) => self.table.entry(*order.slots.get(position)? as usize),
            None => self.table.entry(position),
        }
    }

    /// Makes `key` stand for `value`. In a sorted collection a new key goes where `compare` puts it: for
    /// another comparator its place is found first and given to [`Large::insert_at`].
    pub fn insert(&mut self, key: Value, value: V) {
        if let Some(order) = &mut self.order
            && self.table.position(&key).is_none()
        {
            let before = |known: &Value| natural(known, &key).unwrap_or(Ordering::Less);
            let place = order.keys.binary_search_by(before).unwrap_or_else(|place| place);
            order.keys.insert(place, key.clone());
            // A new entry comes behind all others.
            order.slots.insert(place, self.table.positions() as u32);
        }
        self.table.insert(key, value);
    }

    /// Puts a key that is not there yet at a place of the order.
    pub fn insert_at(&mut self, place: usize, key: Value, value: V) {
        if let Some(order) = &mut self.order {
            let place = place.min(order.keys.len());
            order.keys.insert(place, key.clone());
            order.slots.insert(place, self.table.positions() as u32);
        }
        self.table.insert(key, value);
    }

    /// Takes an entry away; true if it was there.
    pub fn remove(&mut self, key: &Value) -> bool {
        if let Some(order) = &mut self.order {
            let by_order = order.keys.binary_search_by(|known| natural(known, key).unwrap_or(Ordering::Less)).ok();
            // Under another comparator the place is not where `compare` looks for it.
            let place = by_order
                .filter(|place| order.keys.get(*place) == Some(key))
                .or_else(|| order.keys.iter().position(|known| known == key));
            if let Some(place) = place {
                order.keys.remove(place);
                order.slots.remove(place);
            }
        }
        let positions = self.table.positions();
        let removed = self.table.remove(key);
        if let Some(order) = &mut self.order
            && self.table.positions() < positions
        {
            // The table was packed anew, and all entries are somewhere else.
            order.slots = order.keys.iter().filter_map(|key| self.table.position(key)).map(|at| at as u32).collect();
        }
        removed
    }
}
