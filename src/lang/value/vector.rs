//! Vectors: a plain block of items, or a persistent tree once a large one is changed while shared; a pair
//! is a vector of two items of which `cdr` gives the second, as of an entry of a map.

use super::Value;
use super::map::Map;
use super::release::{Debris, release, release_block};
use std::sync::Arc;

/// Up to this many items a changed copy is a copy of the block.
const SMALL: usize = 32;

/// A vector.
#[derive(Clone)]
pub struct Vector(Repr);

#[derive(Clone)]
enum Repr {
    Flat(Vec<Value>),
    /// An entry of a map, or a pair of other Lisps: what is made of it by a change is none.
    Pair(Box<[Value; 2]>),
    /// Boxed, so that the many plain blocks are small.
    Tree(Box<Tree>),
}

/// A persistent tree of items, and metadata, which only trees carry.
#[derive(Clone, Default)]
pub(super) struct Tree {
    items: im::Vector<Value>,
    metadata: Option<Arc<Map>>,
}

impl Vector {
    /// How many items there are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(items) => items.len(),
            Repr::Pair(_) => 2,
            Repr::Tree(tree) => tree.items.len(),
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
            Repr::Pair(items) => items.get(index),
            Repr::Tree(tree) => tree.items.get(index),
        }
    }

    /// The items, when they stand in one block.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.0 {
            Repr::Flat(items) => Some(items),
            Repr::Pair(items) => Some(&items[..]),
            Repr::Tree(_) => None,
        }
    }

    /// Adds the items to a block, moved there where nobody else has them.
    pub fn append_to(vector: Arc<Vector>, block: &mut Vec<Value>) {
        match Arc::try_unwrap(vector) {
            Ok(mut own) => match &mut own.0 {
                Repr::Flat(items) => block.append(items),
                _ => block.extend(own.iter().cloned()),
            },
            Err(shared) => block.extend(shared.iter().cloned()),
        }
    }

    /// Takes the items out, where they stand in one block that nobody else holds.
    pub(super) fn take_own(vector: &mut Arc<Vector>) -> Option<Vec<Value>> {
        match &mut Arc::get_mut(vector)?.0 {
            Repr::Flat(items) => Some(std::mem::take(items)),
            Repr::Pair(_) | Repr::Tree(_) => None,
        }
    }

    /// The items in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.0 {
            Repr::Flat(items) => Box::new(items.iter()),
            Repr::Pair(items) => Box::new(items.iter()),
            Repr::Tree(tree) => Box::new(tree.items.iter()),
        }
    }

    /// A copy that may be changed without touching this one: shares structure when it is large.
    pub fn changeable(&self) -> Vector {
        match &self.0 {
            Repr::Flat(items) if items.len() > SMALL => Vector(Repr::Tree(Box::new(Tree::of(items)))),
            Repr::Pair(items) => Vector(Repr::Flat(items.to_vec())),
            other => Vector(other.clone()),
        }
    }

    /// How many items [`Vector::changeable`] copies.
    pub fn change_cost(&self) -> u64 {
        match &self.0 {
            Repr::Flat(items) => items.len() as u64,
            Repr::Pair(_) => 2,
            Repr::Tree(_) => 1,
        }
    }

    /// A pair.
    pub fn pair(key: Value, value: Value) -> Vector {
        Vector(Repr::Pair(Box::new([key, value])))
    }

    /// The second item of a pair; nothing of all other vectors.
    pub fn second_of_pair(&self) -> Option<&Value> {
        match &self.0 {
            Repr::Pair(items) => Some(&items[1]),
            Repr::Flat(_) | Repr::Tree(_) => None,
        }
    }

    /// Makes a plain block of a pair, before it is changed.
    fn flatten(&mut self) {
        if let Repr::Pair(items) = &mut self.0 {
            let items = items.iter_mut().map(std::mem::take).collect();
            self.0 = Repr::Flat(items);
        }
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: Value) {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items.push(item),
            Repr::Pair(_) => {}
            Repr::Tree(tree) => tree.items.push_back(item),
        }
    }

    /// Takes the last item away.
    pub fn pop(&mut self) -> Option<Value> {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items.pop(),
            Repr::Pair(_) => None,
            Repr::Tree(tree) => tree.items.pop_back(),
        }
    }

    /// Replaces the item at an index that exists.
    pub fn set(&mut self, index: usize, item: Value) {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items[index] = item,
            Repr::Pair(_) => {}
            Repr::Tree(tree) => {
                tree.items.set(index, item);
            }
        }
    }
}

impl Tree {
    fn of(items: &[Value]) -> Tree {
        Tree { items: items.iter().cloned().collect(), metadata: None }
    }
}

impl Vector {
    /// What `meta` gives.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        match &self.0 {
            Repr::Flat(_) | Repr::Pair(_) => None,
            Repr::Tree(tree) => tree.metadata.as_ref(),
        }
    }

    /// Replaces the metadata.
    pub fn set_metadata(&mut self, metadata: Option<Arc<Map>>) {
        if metadata.is_some() {
            self.flatten();
        }
        if let (Repr::Flat(items), true) = (&self.0, metadata.is_some()) {
            self.0 = Repr::Tree(Box::new(Tree::of(items)));
        }
        if let Repr::Tree(tree) = &mut self.0 {
            tree.metadata = metadata;
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
        match std::mem::replace(&mut self.0, Repr::Flat(Vec::new())) {
            Repr::Flat(items) => release_block(items),
            Repr::Pair(items) => release(items, Debris::Pair),
            Repr::Tree(tree) => release(tree, Debris::Tree),
        }
    }
}
