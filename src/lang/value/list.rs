//! Lists and realised sequences.

use super::Value;
use super::map::Map;
use super::release::{Debris, release, release_block};
use std::sync::Arc;

/// A list. Every form of it is immutable; all but an endless range are finite.
pub enum List {
    /// A run of items, from `start` to the end: what `map`, `filter` and their kin make. Taking the
    /// rest shares the items.
    Items {
        /// All the items.
        items: Arc<Items>,
        /// How many of them are before the beginning; never more than there are.
        start: usize,
    },
    /// One item before a sequence: `(cons head tail)`.
    Cons(Cons),
    /// Integers at equal distances.
    Range {
        /// The first.
        start: i64,
        /// The distance.
        step: i64,
        /// How many; [`List::ENDLESS`] for `(range)`.
        count: u64,
    },
}

/// The items of a list, in one block.
pub struct Items(Contents);

/// Items and the metadata of the list that begins with the first of them.
#[derive(Default)]
struct Contents {
    items: Vec<Value>,
    metadata: Option<Arc<Map>>,
}

/// The first item of a list and the sequence behind it.
pub struct Cons {
    /// The first item.
    pub head: Value,
    /// A list, a lazy sequence, another collection, or nil.
    pub tail: Value,
    /// What `meta` gives of it.
    metadata: Option<Arc<Map>>,
}

impl List {
    /// The count of a range without an end.
    pub const ENDLESS: u64 = u64::MAX;

    /// Ranges of more items than this are walked as lazy sequences are, and repetitions are lazy: nobody
    /// means to hold what comes of so many.
    pub const LONG: u64 = 10_000_000;

    /// The list of no items.
    pub fn empty() -> List {
        List::from(Vec::new())
    }

    /// `head` before the sequence `tail`.
    pub fn cons(head: Value, tail: Value) -> List {
        List::annotated_cons(head, tail, None)
    }

    /// The same with metadata.
    pub fn annotated_cons(head: Value, tail: Value, metadata: Option<Arc<Map>>) -> List {
        List::Cons(Cons { head, tail, metadata })
    }

    /// The items from a place on, of which there are none where a walk has gone past the end.
    pub fn from_place(items: Arc<Items>, at: usize) -> List {
        let start = at.min(items.0.items.len());
        List::Items { items, start }
    }

    /// The items, when they stand in one block.
    pub fn as_slice(&self) -> Option<&[Value]> {
        match self {
            List::Items { items, start } => Some(&items.0.items[*start..]),
            _ => None,
        }
    }

    /// The items and where they begin, where they stand in one block that nobody else holds; else the list itself.
    ///
    /// # Errors
    /// The list.
    pub fn into_own(list: Arc<List>) -> Result<(Items, usize), Arc<List>> {
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

    /// These items with metadata.
    pub fn with_metadata(items: Vec<Value>, metadata: Option<Arc<Map>>) -> List {
        List::Items { items: Arc::new(Items(Contents { items, metadata })), start: 0 }
    }

    /// What `meta` gives.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        match self {
            List::Items { items, start: 0 } => items.0.metadata.as_ref(),
            List::Cons(cons) => cons.metadata.as_ref(),
            _ => None,
        }
    }

    /// True when there is no item.
    pub fn is_empty(&self) -> bool {
        match self {
            List::Items { items, start } => *start >= items.0.items.len(),
            List::Cons(_) => false,
            List::Range { count, .. } => *count == 0,
        }
    }

    /// True for a range without an end.
    pub fn is_endless(&self) -> bool {
        matches!(self, List::Range { count, .. } if *count == List::ENDLESS)
    }

    /// True for a range without an end, or of more than [`List::LONG`] items.
    pub fn is_long(&self) -> bool {
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
    /// Takes out the item at an index.
    #[inline]
    pub(super) fn take(&mut self, at: usize) -> Option<Value> {
        self.0.items.get_mut(at).map(std::mem::take)
    }

    /// The items.
    pub fn as_slice(&self) -> &[Value] {
        &self.0.items
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        let Contents { items, metadata } = std::mem::take(&mut self.0);
        release_block(items);
        if let Some(metadata) = metadata {
            release(metadata, Debris::Metadata);
        }
    }
}

impl Drop for Cons {
    fn drop(&mut self) {
        let pair = [std::mem::take(&mut self.head), std::mem::take(&mut self.tail)];
        release((pair, self.metadata.take()), Debris::Cons);
    }
}
