//! Vectors: a plain block of items, or a persistent tree once a large one is changed while shared.

use super::Value;
use super::release::{Debris, release};

/// Up to this many items a changed copy is a copy of the block.
const SMALL: usize = 32;

/// A vector.
#[derive(Clone)]
pub struct Vector(Repr);

#[derive(Clone)]
enum Repr {
    Flat(Vec<Value>),
    /// Boxed, so that the many plain blocks are small.
    Tree(Box<im::Vector<Value>>),
}

impl Vector {
    /// How many items there are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(items) => items.len(),
            Repr::Tree(items) => items.len(),
        }
    }

    /// True when there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at that index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Value> {
        match &self.0 {
            Repr::Flat(items) => items.get(index),
            Repr::Tree(items) => items.get(index),
        }
    }

    /// The items, when they stand in one block.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.0 {
            Repr::Flat(items) => Some(items),
            Repr::Tree(_) => None,
        }
    }

    /// The items in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.0 {
            Repr::Flat(items) => Box::new(items.iter()),
            Repr::Tree(items) => Box::new(items.iter()),
        }
    }

    /// A copy that may be changed without touching this one: shares structure when it is large.
    pub fn changeable(&self) -> Vector {
        match &self.0 {
            Repr::Flat(items) if items.len() > SMALL => Vector(Repr::Tree(Box::new(items.iter().cloned().collect()))),
            other => Vector(other.clone()),
        }
    }

    /// How many items [`Vector::changeable`] copies.
    pub fn change_cost(&self) -> u64 {
        match &self.0 {
            Repr::Flat(items) => items.len() as u64,
            Repr::Tree(_) => 1,
        }
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: Value) {
        match &mut self.0 {
            Repr::Flat(items) => items.push(item),
            Repr::Tree(items) => items.push_back(item),
        }
    }

    /// Takes the last item away.
    pub fn pop(&mut self) -> Option<Value> {
        match &mut self.0 {
            Repr::Flat(items) => items.pop(),
            Repr::Tree(items) => items.pop_back(),
        }
    }

    /// Replaces the item at an index that exists.
    pub fn set(&mut self, index: usize, item: Value) {
        match &mut self.0 {
            Repr::Flat(items) => items[index] = item,
            Repr::Tree(items) => {
                items.set(index, item);
            }
        }
    }
}

impl From<Vec<Value>> for Vector {
    fn from(items: Vec<Value>) -> Vector {
        Vector(Repr::Flat(items))
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        match &mut self.0 {
            Repr::Flat(items) => release(std::mem::take(items), Debris::Values),
            Repr::Tree(items) => release(std::mem::take(&mut **items), Debris::Tree),
        }
    }
}
