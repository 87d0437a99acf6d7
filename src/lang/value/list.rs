//! Lists and realised sequences.

use super::Value;
use super::map::Map;
use super::release::{DeferredDrop, release, release_block};
use super::view::View;
use std::sync::Arc;

/// A list. Every variant is immutable. All are finite, except an endless range and a `Cons` whose tail is infinite.
pub enum List {
    /// A run of items from `start` to the end, as created by `map`, `filter` and similar functions. Taking the rest
    /// shares the items.
    Items {
        /// The shared block of items.
        items: Arc<Items>,
        /// Index of the first item of this list; at most the length of the block.
        start: usize,
    },
    /// One item followed by a sequence: `(cons head tail)`.
    Cons(Cons),
    /// An arithmetic progression of integers.
    Range {
        /// The first integer.
        start: i64,
        /// The step.
        step: i64,
        /// The number of integers; [`List::ENDLESS`] for `(range)`.
        count: u64,
    },
    /// The items of a collection, which are not copied.
    #[doc(hidden)]
    View(View),
}

// A view is no longer than a cons cell.
const _: () = assert!(size_of::<List>() == size_of::<Cons>());

/// The contiguous items of a list.
pub struct Items(Contents);

/// Items, and the metadata of the list that begins with the first of them.
#[derive(Default)]
struct Contents {
    items: Vec<Value>,
    metadata: Option<Arc<Map>>,
}

/// A cons cell: the first item of a list and the sequence that follows it.
pub struct Cons {
    /// The first item.
    pub head: Value,
    /// A list, a lazy sequence, another collection, or nil.
    pub tail: Value,
    /// The metadata.
    metadata: Option<Arc<Map>>,
}

impl List {
    /// The count of an endless range.
    pub const ENDLESS: u64 = u64::MAX;

    /// Ranges with more items than this are processed as lazy sequences, and long repetitions are lazy, because
    /// programs do not mean to hold the results in memory.
    pub const LONG: u64 = 10_000_000;

    /// Creates an empty list.
    pub fn empty() -> List {
        List::from(Vec::new())
    }

    /// Creates a list of `head` followed by the sequence `tail`.
    pub fn cons(head: Value, tail: Value) -> List {
        List::annotated_cons(head, tail, None)
    }

    /// Creates a list of `head` followed by the sequence `tail`, with metadata.
    pub(crate) fn annotated_cons(head: Value, tail: Value, metadata: Option<Arc<Map>>) -> List {
        List::Cons(Cons { head, tail, metadata })
    }

    /// Creates the list of the items from index `at` on; empty if `at` is past the end.
    pub(crate) fn from_place(items: Arc<Items>, at: usize) -> List {
        let start = at.min(items.0.items.len());
        List::Items { items, start }
    }

    /// Returns the items if they are contiguous.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self {
            List::Items { items, start } => Some(&items.0.items[*start..]),
            _ => None,
        }
    }

    /// Unwraps the items and the start index of a list if its items are contiguous and have no other owner.
    ///
    /// # Errors
    /// Returns the list if it cannot be unwrapped.
    pub(crate) fn into_own(list: Arc<List>) -> Result<(Items, usize), Arc<List>> {
        let is_own = |items: &Arc<Items>| Arc::strong_count(items) == 1;
        if !matches!(&*list, List::Items { items, .. } if is_own(items)) {
            return Err(list);
        }
        match Arc::try_unwrap(list)? {
            List::Items { items, start } => match Arc::try_unwrap(items) {
                Ok(items) => Ok((items, start)),
                Err(items) => Err(Arc::new(List::Items { items, start })),
            },
            other => Err(Arc::new(other)),
        }
    }

    /// Creates a list of these items, with metadata.
    pub(crate) fn with_metadata(items: Vec<Value>, metadata: Option<Arc<Map>>) -> List {
        List::Items { items: Arc::new(Items(Contents { items, metadata })), start: 0 }
    }

    /// Returns the metadata.
    pub(crate) fn metadata(&self) -> Option<&Arc<Map>> {
        match self {
            List::Items { items, start: 0 } => items.0.metadata.as_ref(),
            List::Cons(cons) => cons.metadata.as_ref(),
            _ => None,
        }
    }

    /// True if the list has no items.
    pub fn is_empty(&self) -> bool {
        match self {
            List::Items { items, start } => *start >= items.0.items.len(),
            List::Cons(_) | List::View(_) => false,
            List::Range { count, .. } => *count == 0,
        }
    }

    /// True for an endless range.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, List::Range { count, .. } if *count == List::ENDLESS)
    }

    /// True for an endless range, or one of more than [`List::LONG`] items.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self, List::Range { count, .. } if *count > List::LONG)
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> List {
        List::Items { items: Arc::new(Items::from(items)), start: 0 }
    }
}

impl From<Vec<Value>> for Items {
    fn from(items: Vec<Value>) -> Items {
        Items(Contents { items, metadata: None })
    }
}

impl Items {
    /// Moves the item at an index out, leaving nil.
    #[inline]
    pub(super) fn take(&mut self, at: usize) -> Option<Value> {
        self.0.items.get_mut(at).map(std::mem::take)
    }

    /// Returns the items.
    pub fn as_slice(&self) -> &[Value] {
        &self.0.items
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        let Contents { items, metadata } = std::mem::take(&mut self.0);
        release_block(items);
        if let Some(metadata) = metadata {
            release(metadata, DeferredDrop::Metadata);
        }
    }
}

impl Drop for Cons {
    fn drop(&mut self) {
        let pair = [std::mem::take(&mut self.head), std::mem::take(&mut self.tail)];
        release((pair, self.metadata.take()), DeferredDrop::Cons);
    }
}
