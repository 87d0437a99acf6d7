//! Sets, in insertion order or sorted.

use super::Value;
use super::large::{Large, SortOrder};
use super::map::Map;
use super::release::{DeferredDrop, release};
use std::sync::Arc;

const SMALL: usize = 16;

/// A set of values.
#[derive(Clone)]
pub struct Set(Repr);

#[derive(Clone)]
enum Repr {
    Small(Vec<Value>),
    Large(Box<Large<()>>),
}

impl Default for Set {
    fn default() -> Self {
        Set(Repr::Small(Vec::new()))
    }
}

impl Set {
    /// Creates an empty set that is about to get so many members by [`Set::add`].
    pub(crate) fn with_capacity(capacity: usize) -> Set {
        if capacity <= SMALL {
            return Set::default();
        }
        Set(Repr::Large(Box::new(Large::with_capacity(capacity))))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Small(members) => members.len(),
            Repr::Large(large) => large.len(),
        }
    }

    /// True if the set has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the value is a member.
    pub fn contains(&self, value: &Value) -> bool {
        self.get(value).is_some()
    }

    /// Returns the member that equals `value`.
    pub(crate) fn get(&self, value: &Value) -> Option<&Value> {
        match &self.0 {
            Repr::Small(members) => {
                super::equal::owe_for_scan(value, members.len());
                members.iter().find(|member| *member == value)
            }
            Repr::Large(large) => large.get(value).map(|(member, ())| member),
        }
    }

    /// Returns the upper bound (exclusive) of the positions that [`Set::member`] accepts.
    pub(crate) fn positions(&self) -> usize {
        match &self.0 {
            Repr::Small(members) => members.len(),
            Repr::Large(large) => large.positions(),
        }
    }

    /// Returns the member at a position, or `None` for the gap that a removed member left.
    pub(crate) fn member(&self, position: usize) -> Option<&Value> {
        match &self.0 {
            Repr::Small(members) => members.get(position),
            Repr::Large(large) => large.entry(position).map(|(member, ())| member),
        }
    }

    /// Returns the position of the next member at or after `position`, which is 0 or follows a member.
    pub(crate) fn occupied(&self, position: usize) -> usize {
        match &self.0 {
            Repr::Small(_) => position,
            Repr::Large(large) => large.occupied(position),
        }
    }

    /// Iterates over the members in insertion order, or in sort order for a sorted set.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        (0..self.positions()).filter_map(|position| self.member(position))
    }

    /// Adds a member. Returns true if the set did not contain it.
    pub fn insert(&mut self, value: Value) -> bool {
        if self.contains(&value) {
            return false;
        }
        match &mut self.0 {
            Repr::Small(members) if members.len() < SMALL => members.push(value),
            _ => self.enlarge(|large| large.insert(value, ())),
        }
        true
    }

    /// Applies a change to the large representation, converting a small set first.
    fn enlarge(&mut self, change: impl FnOnce(&mut Large<()>)) {
        match &mut self.0 {
            Repr::Small(members) => {
                let mut large = Large::default();
                for member in members.drain(..) {
                    large.insert(member, ());
                }
                change(&mut large);
                self.0 = Repr::Large(Box::new(large));
            }
            Repr::Large(large) => change(large),
        }
    }

    /// Does what [`Set::insert`] does, faster if the set is large and does not contain the value.
    pub(crate) fn add(&mut self, value: Value) {
        match &mut self.0 {
            Repr::Small(_) => {
                self.insert(value);
            }
            Repr::Large(large) => large.add(value, ()),
        }
    }

    /// Creates an empty sorted set. A comparator of nil selects `compare`.
    pub(crate) fn sorted(comparator: Value) -> Set {
        Set(Repr::Large(Box::new(Large::sorted(comparator))))
    }

    /// Returns the members in sort order, or `None` for an unsorted set.
    pub(crate) fn order(&self) -> Option<&SortOrder> {
        match &self.0 {
            Repr::Small(_) => None,
            Repr::Large(large) => large.order(),
        }
    }

    /// Inserts a value that is not a member. In a sorted set it goes to index `place` of the order.
    pub(crate) fn insert_at(&mut self, place: usize, value: Value) {
        self.enlarge(|large| large.insert_at(place, value, ()));
    }

    /// Appends a value that is not a member. The caller guarantees that it sorts last in a sorted set.
    pub(crate) fn append(&mut self, value: Value) {
        match self.order() {
            Some(_) => self.insert_at(usize::MAX, value),
            None => {
                self.insert(value);
            }
        }
    }

    /// Returns the metadata.
    pub(crate) fn metadata(&self) -> Option<&Arc<Map>> {
        match &self.0 {
            Repr::Small(_) => None,
            Repr::Large(large) => large.metadata.as_ref(),
        }
    }

    /// Replaces the metadata.
    pub(crate) fn set_metadata(&mut self, metadata: Option<Arc<Map>>) {
        if metadata.is_some() || self.metadata().is_some() {
            self.enlarge(|large| large.metadata = metadata);
        }
    }

    /// Removes the member at index `place` of the order of a sorted set.
    pub(crate) fn remove_at(&mut self, place: usize) {
        self.enlarge(|large| large.remove_at(place));
    }

    /// Removes a member.
    pub fn remove(&mut self, value: &Value) {
        match &mut self.0 {
            Repr::Small(members) => members.retain(|member| member != value),
            Repr::Large(large) => {
                large.remove(value);
            }
        }
    }
}

impl FromIterator<Value> for Set {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Set {
        let mut set = Set::default();
        for value in values {
            set.add(value);
        }
        set
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.0, Repr::Small(Vec::new())) {
            Repr::Small(members) => release(members, DeferredDrop::Values),
            Repr::Large(large) => release(large, DeferredDrop::Set),
        }
    }
}
