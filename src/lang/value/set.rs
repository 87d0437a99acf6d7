//! Sets, in the order of insertion.

use super::Value;
use super::large::{Large, Order};
use super::map::Map;
use super::release::{Debris, release};
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
    /// How many members there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Small(members) => members.len(),
            Repr::Large(large) => large.len(),
        }
    }

    /// True when there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the value is a member.
    pub fn contains(&self, value: &Value) -> bool {
        self.get(value).is_some()
    }

    /// The member that equals the value.
    pub fn get(&self, value: &Value) -> Option<&Value> {
        match &self.0 {
            Repr::Small(members) => {
                super::equal::owe_for_scan(value, members.len());
                members.iter().find(|member| *member == value)
            }
            Repr::Large(large) => large.get(value).map(|(member, ())| member),
        }
    }

    /// One past the last position that [`Set::member`] may be asked for.
    pub fn positions(&self) -> usize {
        match &self.0 {
            Repr::Small(members) => members.len(),
            Repr::Large(large) => large.positions(),
        }
    }

    /// The member at a position; removed members leave gaps.
    pub fn member(&self, position: usize) -> Option<&Value> {
        match &self.0 {
            Repr::Small(members) => members.get(position),
            Repr::Large(large) => large.entry(position).map(|(member, ())| member),
        }
    }

    /// The members in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        (0..self.positions()).filter_map(|position| self.member(position))
    }

    /// Adds a member; true if it was not there.
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

    /// Changes the set as a large one, which it becomes if it is not.
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

    /// An empty sorted set; nil as the comparator stands for `compare`.
    pub fn sorted(comparator: Value) -> Set {
        Set(Repr::Large(Box::new(Large::sorted(comparator))))
    }

    /// The members in order, if it is sorted.
    pub fn order(&self) -> Option<&Order> {
        match &self.0 {
            Repr::Small(_) => None,
            Repr::Large(large) => large.order(),
        }
    }

    /// Puts a value that is no member yet at a place of a sorted set's order.
    pub fn insert_at(&mut self, place: usize, value: Value) {
        self.enlarge(|large| large.insert_at(place, value, ()));
    }

    /// Adds a value that is no member yet behind all others, where it belongs in the order of a sorted set.
    pub fn append(&mut self, value: Value) {
        match self.order() {
            Some(_) => self.insert_at(usize::MAX, value),
            None => {
                self.insert(value);
            }
        }
    }

    /// What `meta` gives.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        match &self.0 {
            Repr::Small(_) => None,
            Repr::Large(large) => large.metadata.as_ref(),
        }
    }

    /// Replaces the metadata.
    pub fn set_metadata(&mut self, metadata: Option<Arc<Map>>) {
        if metadata.is_some() || self.metadata().is_some() {
            self.enlarge(|large| large.metadata = metadata);
        }
    }

    /// Takes a member away.
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
            set.insert(value);
        }
        set
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.0, Repr::Small(Vec::new())) {
            Repr::Small(members) => release(members, Debris::Values),
            Repr::Large(large) => release(large, Debris::Set),
        }
    }
}
