//! Sets, in the order of insertion.

use super::Value;
use super::release::{Debris, release};
use super::table::Table;

const SMALL: usize = 16;

/// A set of values.
#[derive(Clone)]
pub struct Set(Repr);

#[derive(Clone)]
enum Repr {
    Small(Vec<Value>),
    Large(Box<Table<()>>),
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
            Repr::Large(table) => table.len(),
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
            Repr::Small(members) => members.iter().find(|member| *member == value),
            Repr::Large(table) => table.position(value).and_then(|at| table.entry(at)).map(|(member, ())| member),
        }
    }

    /// One past the last position that [`Set::member`] may be asked for.
    pub fn positions(&self) -> usize {
        match &self.0 {
            Repr::Small(members) => members.len(),
            Repr::Large(table) => table.positions(),
        }
    }

    /// The member at a position; removed members leave gaps.
    pub fn member(&self, position: usize) -> Option<&Value> {
        match &self.0 {
            Repr::Small(members) => members.get(position),
            Repr::Large(table) => table.entry(position).map(|(member, ())| member),
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
            Repr::Small(members) => {
                let mut table = Table::new();
                for member in members.drain(..) {
                    table.insert(member, ());
                }
                table.insert(value, ());
                self.0 = Repr::Large(Box::new(table));
            }
            Repr::Large(table) => table.insert(value, ()),
        }
        true
    }

    /// Takes a member away.
    pub fn remove(&mut self, value: &Value) {
        match &mut self.0 {
            Repr::Small(members) => members.retain(|member| member != value),
            Repr::Large(table) => {
                table.remove(value);
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
        match &mut self.0 {
            Repr::Small(members) => release(std::mem::take(members), Debris::Values),
            Repr::Large(table) => release(std::mem::take(&mut **table), Debris::Set),
        }
    }
}
