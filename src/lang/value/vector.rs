//! Vectors: a plain block of items, a persistent tree, a pair, or a part of a block. A block becomes a tree when a large
//! one is changed while it is shared, or when it gets metadata. A pair is a two-item vector whose `cdr` is its second
//! item, such as a map entry. A long `subvec` is a tree that shares structure, or a part of a block that it holds.

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
    /// A part of another vector, which is a block.
    Slice(Box<Slice>),
}

/// The items of a block from `start` to `end`.
#[derive(Clone)]
struct Slice {
    block: Arc<Vector>,
    start: usize,
    end: usize,
}

impl Slice {
    fn items(&self) -> &[Value] {
        self.block.as_slice().and_then(|items| items.get(self.start..self.end)).unwrap_or_default()
    }
}

/// The key in the metadata of a vector that marks it as a queue. Programs do not see it.
pub(crate) const QUEUE: &str = "core/queue";

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
            Repr::Slice(slice) => slice.end - slice.start,
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
            Repr::Slice(slice) => slice.items().get(index),
        }
    }

    /// Returns the items if they are contiguous.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.0 {
            Repr::Flat(items) => Some(items),
            Repr::Pair(items) => Some(&items[..]),
            Repr::Slice(slice) => Some(slice.items()),
            Repr::Tree(_) => None,
        }
    }

    /// True if the vector is the only owner of its references to its items.
    pub(super) fn owns_items(&self) -> bool {
        matches!(self.0, Repr::Flat(_) | Repr::Pair(_))
    }

    /// True if a change of the vector copies its items even if it has no other owner.
    #[inline]
    pub(crate) fn is_part(&self) -> bool {
        matches!(self.0, Repr::Slice(_))
    }

    /// Returns the items between two indices, in constant or logarithmic time if they are many.
    pub(crate) fn part(vector: Arc<Vector>, start: usize, end: usize) -> Vector {
        let end = end.min(vector.len());
        let start = start.min(end);
        if end - start <= SMALL {
            return Vector(Repr::Flat((start..end).filter_map(|at| vector.get(at).cloned()).collect()));
        }
        Vector(match &vector.0 {
            Repr::Tree(tree) => {
                let items = tree.items.take(end).skip(start);
                Repr::Tree(Box::new(Tree { items, metadata: None }))
            }
            Repr::Slice(slice) => {
                let (start, end) = (slice.start + start, slice.start + end);
                Repr::Slice(Box::new(Slice { block: slice.block.clone(), start, end }))
            }
            Repr::Flat(_) | Repr::Pair(_) => Repr::Slice(Box::new(Slice { block: vector, start, end })),
        })
    }

    /// Returns a persistent tree of the items from index `start` on, to which items are added at both ends in constant
    /// time. Conversion of a block takes time proportional to its length.
    pub(crate) fn growing(vector: Arc<Vector>, start: usize) -> Vector {
        let tree = match Arc::try_unwrap(vector) {
            Ok(mut own) => match &mut own.0 {
                Repr::Tree(tree) => std::mem::take(&mut **tree),
                _ => Tree::of(own.as_slice().unwrap_or_default()),
            },
            Err(shared) => match &shared.0 {
                Repr::Tree(tree) => (**tree).clone(),
                _ => Tree::of(shared.as_slice().unwrap_or_default()),
            },
        };
        let items = if start == 0 { tree.items } else { tree.items.skip(start) };
        Vector(Repr::Tree(Box::new(Tree { items, metadata: None })))
    }

    /// True for a tree.
    pub(crate) fn is_tree(&self) -> bool {
        matches!(self.0, Repr::Tree(_))
    }

    /// Adds an item in front of those of a tree.
    pub(crate) fn push_front(&mut self, item: Value) {
        if let Repr::Tree(tree) = &mut self.0 {
            tree.items.push_front(item);
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
            Repr::Pair(_) | Repr::Tree(_) | Repr::Slice(_) => None,
        }
    }

    /// Iterates over the items in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.0 {
            Repr::Flat(items) => Box::new(items.iter()),
            Repr::Pair(items) => Box::new(items.iter()),
            Repr::Tree(tree) => Box::new(tree.items.iter()),
            Repr::Slice(slice) => Box::new(slice.items().iter()),
        }
    }

    /// Returns a copy for modification. A large vector is copied as a persistent tree, which shares structure on
    /// further copies; a pair becomes a plain block.
    pub(crate) fn changeable(&self) -> Vector {
        match &self.0 {
            Repr::Flat(items) if items.len() > SMALL => Vector(Repr::Tree(Box::new(Tree::of(items)))),
            Repr::Pair(items) => Vector(Repr::Flat(items.to_vec())),
            Repr::Slice(slice) => Vector(Repr::Tree(Box::new(Tree::of(slice.items())))),
            other => Vector(other.clone()),
        }
    }

    /// Returns the number of items that [`Vector::changeable`] copies.
    pub(crate) fn change_cost(&self) -> u64 {
        match &self.0 {
            Repr::Flat(_) | Repr::Slice(_) => self.len() as u64,
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
            Repr::Flat(_) | Repr::Tree(_) | Repr::Slice(_) => None,
        }
    }

    /// Converts a pair or a part of a block to a block of its own before a change.
    fn flatten(&mut self) {
        match &mut self.0 {
            Repr::Flat(_) | Repr::Tree(_) => {}
            Repr::Pair(items) => self.0 = Repr::Flat(items.iter_mut().map(std::mem::take).collect()),
            Repr::Slice(slice) => self.0 = Repr::Flat(slice.items().to_vec()),
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: Value) {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items.push(item),
            Repr::Pair(_) | Repr::Slice(_) => {}
            Repr::Tree(tree) => tree.items.push_back(item),
        }
    }

    /// Removes and returns the last item.
    pub(crate) fn pop(&mut self) -> Option<Value> {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items.pop(),
            Repr::Pair(_) | Repr::Slice(_) => None,
            Repr::Tree(tree) => tree.items.pop_back(),
        }
    }

    /// Replaces the item at an index, which must exist.
    pub(crate) fn set(&mut self, index: usize, item: Value) {
        self.flatten();
        match &mut self.0 {
            Repr::Flat(items) => items[index] = item,
            Repr::Pair(_) | Repr::Slice(_) => {}
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
            Repr::Flat(_) | Repr::Pair(_) | Repr::Slice(_) => None,
            Repr::Tree(tree) => tree.metadata.as_ref(),
        }
    }

    /// True for a queue, which is a vector that its metadata marks as one.
    #[inline]
    pub(crate) fn is_queue(&self) -> bool {
        self.metadata().is_some_and(|metadata| metadata.contains_key(&Value::keyword(QUEUE)))
    }

    /// Removes and returns the first item of a queue.
    pub(crate) fn pop_first(&mut self) -> Option<Value> {
        match &mut self.0 {
            Repr::Flat(_) | Repr::Pair(_) | Repr::Slice(_) => None,
            Repr::Tree(tree) => tree.items.pop_front(),
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
            Repr::Slice(slice) => release(Value::Vector(slice.block), DeferredDrop::Value),
        }
    }
}
