//! Vectors: a plain block of items, a persistent tree, or a pair. A block becomes a tree when a large one is changed
//! while it is shared, or when it gets metadata. A pair is a two-item vector whose `cdr` is its second item, such as a
//! map entry.

use super::Value;
use super::map::Map;
use super::release::{DeferredDrop, release, release_block};
use std::sync::Arc;

/// Maximum number of items for which a changed copy copies the block.
const SMALL: usize = 32;

/// A vector.
#[derive(Clone)]
pub struct Vector(Repr);

#[derive(Clone)]
enum Repr {
    Flat(Vec<Value>),
    /// A map entry, or a dotted pair as in other Lisps. A changed copy of it is a plain vector.
    Pair(Box<[Value; 2]>),
    /// Boxed to keep the size of plain blocks low.
    Tree(Box<Tree>),
}

/// A persistent tree of items, and metadata. Only trees carry metadata.
#[derive(Clone, Default)]
pub(super) struct Tree {
    items: im::Vector<Value>,
    metadata: Option<Arc<Map>>,
}

impl Vector {
    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(items) => items.len(),
            Repr::Pair(_) => 2,
            Repr::Tree(tree) => tree.items.len(),
        }
    }

    /// True if the vector has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at that index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Value> {
        match &self.0 {
            Repr::Flat(items) => items.get(index),
            Repr::Pair(items) => items.get(index),
            Repr::Tree(tree) => tree.items.get(index),
        }
    }

    /// Returns the items if they are contiguous.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.0 {
            Repr::Flat(items) => Some(items),
            Repr::Pair(items) => Some(&items[..]),
            Repr::Tree(_) => None,
        }
    }

    /// Appends the items of `vector` to a block. Moves them if they are a plain block without other owners, otherwise
    /// clones them.
    pub(crate) fn append_to(vector: Arc<Vector>, block: &mut Vec<Value>) {
        match Arc::try_unwrap(vector) {
            Ok(mut own) => match &mut own.0 {
                Repr::Flat(items) => block.append(items),
                _ => block.extend(own.iter().cloned()),
            },
            Err(shared) => block.extend(shared.iter().cloned()),
        }
    }

    /// Moves the items out if they are a plain block and the vector has no other owner.
    pub(super) fn take_own(vector: &mut Arc<Vector>) -> Option<Vec<Value>> {
        match &mut Arc::get_mut(vector)?.0 {
            Repr::Flat(items) => Some(std::mem::take(items)),
            Repr::Pair(_) | Repr::Tree(_) => None,
        }
    }

    /// Iterates over the items in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.0 {
            Repr::Flat(items) => Box::new(items.iter()),
            Repr::Pair(items) => Box::new(items.iter()),
            Repr::Tree(tree) => Box::new(tree.items.iter()),
        }
    }

    /// Returns a copy for modification. A large vector is copied as a persistent tree, which shares structure on
    /// further copies; a pair becomes a plain block.
    pub(crate) fn changeable(&self) -> Vector {
        match &self.0 {
            Repr::Flat(items) if items.len() > SMALL => Vector(Repr::Tree(Box::new(Tree::of(items)))),
            Repr::Pair(items) => Vector(Repr::Flat(items.to_vec())),
            other => Vector(other.clone()),
        }
    }

    /// Returns the number of items that [`Vector::changeable`] copies.
    pub(crate) fn change_cost(&self) -> u64 {
        match &self.0 {
            Repr::Flat(items) => items.len() as u64,
            Repr::Pair(_) => 2,
            Repr::Tree(_) => 1,
        }
    }

    /// Creates a pair.
    pub(crate) fn pair(key: Value, value: Value) -> Vector {
        Vector(Repr::Pair(Box::new([key, value])))
    }

    /// Returns the second item of a pair, or `None` for other vectors.
    pub(crate) fn second_of_pair(&self) -> Option<&Value> {
        match &self.0 {
            Repr::Pair(items) => Some(&items[1]),
            Repr::Flat(_) | Repr::Tree(_) => None,
        }
    }

    /// Converts a pair to a plain block before a change.
    fn flatten(&mut self) {
        if let Repr::Pair(items) = &mut self.0 {
            let items = items.iter_mut().map(std::mem::take).collect();
            self.0 = Repr::Flat(items);
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: Value) {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items.push(item),
            Repr::Pair(_) => {}
            Repr::Tree(tree) => tree.items.push_back(item),
        }
    }

    /// Removes and returns the last item.
    pub(crate) fn pop(&mut self) -> Option<Value> {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items.pop(),
            Repr::Pair(_) => None,
            Repr::Tree(tree) => tree.items.pop_back(),
        }
    }

    /// Replaces the item at an index, which must exist.
    pub(crate) fn set(&mut self, index: usize, item: Value) {
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
    /// Returns the metadata.
    pub(crate) fn metadata(&self) -> Option<&Arc<Map>> {
        match &self.0 {
            Repr::Flat(_) | Repr::Pair(_) => None,
            Repr::Tree(tree) => tree.metadata.as_ref(),
        }
    }

    /// Replaces the metadata. Converts a block or a pair to a tree if there is any.
    pub(crate) fn set_metadata(&mut self, metadata: Option<Arc<Map>>) {
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
            Repr::Pair(items) => release(items, DeferredDrop::Pair),
            Repr::Tree(tree) => release(tree, DeferredDrop::Tree),
        }
    }
}
