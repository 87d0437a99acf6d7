//! Walking through sequences without recursion.

use super::Value;
use super::list::{Items, List};
use super::map::Map;
use super::prefetch;
use super::set::Set;
use super::text::Text;
use super::vector::Vector;
use crate::lang::heap::Handle;
use std::convert::Infallible;
use std::sync::Arc;

/// What a walk over values may need from whoever runs it: someone to pay for its steps, and the
/// content of what lives in the heap.
pub trait Pace {
    /// What can end the walk early.
    type Stop;

    /// Pays for steps.
    fn step(&mut self, steps: u64) -> Result<(), Self::Stop>;

    /// The sequence behind a lazy one; `None` where it cannot be looked into.
    fn force(&mut self, lazy: &Arc<Handle>) -> Result<Option<Value>, Self::Stop>;

    /// What an atom or its kin holds right now; `None` where it cannot be looked into.
    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value>;
}

/// A walk that nobody pays for and that sees lazy sequences and atoms from outside only. For values
/// whose size is bounded, and for tests.
pub struct Free;

impl Pace for Free {
    type Stop = Infallible;

    fn step(&mut self, _steps: u64) -> Result<(), Infallible> {
        Ok(())
    }

    fn force(&mut self, _lazy: &Arc<Handle>) -> Result<Option<Value>, Infallible> {
        Ok(None)
    }

    fn content(&mut self, _cell: &Arc<Handle>) -> Option<Value> {
        None
    }
}

/// A place in a sequence. It holds on to what is still to come and to nothing before it.
pub enum Cursor {
    /// Nothing is left.
    End,
    /// In the items of a list.
    Items(Arc<Items>, usize),
    /// In items that nobody else holds: they are taken out.
    Own(Items, usize),
    /// In a vector.
    Vector(Arc<Vector>, usize),
    /// In the entries of a map; each comes as a vector of key and value.
    Map(Arc<Map>, usize),
    /// In the members of a set.
    Set(Arc<Set>, usize),
    /// In the characters of a string, at a byte offset.
    Characters(Text, usize),
    /// In a range.
    Range {
        /// The next number.
        next: i64,
        /// The distance.
        step: i64,
        /// How many are left.
        left: u64,
    },
    /// Before a sequence that has not been looked at.
    Before(Value),
}

impl Cursor {
    /// A cursor before the first item; `None` if the value is no sequence and no collection.
    pub fn over(value: Value) -> Option<Cursor> {
        Some(match value {
            Value::Nil => Cursor::End,
            Value::List(list) => match &*list {
                List::Items { items, start } => Cursor::Items(items.clone(), *start),
                List::Range { start, step, count } => Cursor::Range { next: *start, step: *step, left: *count },
                List::Cons(_) => Cursor::Before(Value::List(list)),
            },
            Value::Vector(vector) => Cursor::Vector(vector, 0),
            Value::Map(map) => Cursor::Map(map, 0),
            Value::Set(set) => Cursor::Set(set, 0),
            Value::Str(text) => Cursor::Characters(text, 0),
            Value::Lazy(_) => Cursor::Before(value),
            _ => return None,
        })
    }

    /// The same for whoever goes on to the end: items that nobody else holds are not copied.
    pub fn through(value: Value) -> Option<Cursor> {
        let value = match value {
            Value::List(list) => match List::into_own(list) {
                Ok((items, start)) => return Some(Cursor::Own(items, start)),
                Err(list) => Value::List(list),
            },
            Value::Vector(mut vector) => match Vector::take_own(&mut vector) {
                Some(items) => return Some(Cursor::Own(Items::from(items), 0)),
                None => Value::Vector(vector),
            },
            value => value,
        };
        Cursor::over(value)
    }

    /// The next item.
    #[inline]
    pub fn next<P: Pace>(&mut self, pace: &mut P) -> Result<Option<Value>, P::Stop> {
        pace.step(1)?;
        loop {
            return Ok(match self {
                Cursor::End => None,
                Cursor::Items(items, at) => {
                    prefetch::ahead(items.as_slice(), *at);
                    let item = items.as_slice().get(*at).cloned();
                    *at += 1;
                    item
                }
                Cursor::Own(items, at) => {
                    prefetch::ahead(items.as_slice(), *at);
                    let item = items.take(*at);
                    *at += 1;
                    item
                }
                Cursor::Vector(vector, at) => {
                    if let Some(items) = vector.as_slice() {
                        prefetch::ahead(items, *at);
                    }
                    let item = vector.get(*at).cloned();
                    *at += 1;
                    item
                }
                Cursor::Range { left: 0, .. } => None,
                Cursor::Range { next, step, left } => {
                    let item = *next;
                    *next = next.wrapping_add(*step);
                    if *left != List::ENDLESS {
                        *left -= 1;
                    }
                    Some(Value::Int(item))
                }
                Cursor::Map(map, at) => {
                    let mut found = None;
                    while found.is_none() && *at < map.positions() {
                        found = map.entry(*at).map(|(key, value)| Value::pair(key.clone(), value.clone()));
                        *at += 1;
                    }
                    found
                }
                Cursor::Set(set, at) => {
                    let mut found = None;
                    while found.is_none() && *at < set.positions() {
                        found = set.member(*at).cloned();
                        *at += 1;
                    }
                    found
                }
                Cursor::Characters(text, at) => {
                    let next = text.as_str()[*at..].chars().next();
                    *at += next.map_or(0, char::len_utf8);
                    next.map(Value::Char)
                }
                Cursor::Before(_) => match self.enter(pace)? {
                    Some(item) => Some(item),
                    None => continue,
                },
            });
        }
    }

    /// Looks at the sequence that the cursor stands before: takes its first item if it is a cell of
    /// a chain, else moves into it.
    fn enter<P: Pace>(&mut self, pace: &mut P) -> Result<Option<Value>, P::Stop> {
        let Cursor::Before(value) = std::mem::replace(self, Cursor::End) else { return Ok(None) };
        match value {
            Value::List(list) => match &*list {
                List::Cons(cons) => {
                    *self = Cursor::Before(cons.tail.clone());
                    return Ok(Some(cons.head.clone()));
                }
                _ => *self = Cursor::over(Value::List(list)).unwrap_or(Cursor::End),
            },
            Value::Lazy(lazy) => {
                pace.step(1)?;
                *self = pace.force(&lazy)?.map_or(Cursor::End, Cursor::Before);
            }
            other => *self = Cursor::over(other).unwrap_or(Cursor::End),
        }
        Ok(None)
    }

    /// How many items are left, where that is known without walking; endless ranges have
    /// [`List::ENDLESS`].
    pub fn remaining(&self) -> Option<u64> {
        Some(match self {
            Cursor::End => 0,
            Cursor::Items(items, at) => (items.as_slice().len().saturating_sub(*at)) as u64,
            Cursor::Own(items, at) => (items.as_slice().len().saturating_sub(*at)) as u64,
            Cursor::Vector(vector, at) => (vector.len().saturating_sub(*at)) as u64,
            Cursor::Range { left, .. } => *left,
            Cursor::Map(map, 0) => map.len() as u64,
            Cursor::Set(set, 0) => set.len() as u64,
            _ => return None,
        })
    }

    /// The rest as a sequence value that shares what can be shared; nil at a known end.
    pub fn into_rest(self) -> Value {
        match self {
            Cursor::End => Value::Nil,
            Cursor::Items(items, at) => Value::List(Arc::new(List::from_place(items, at))),
            Cursor::Own(items, at) => Value::List(Arc::new(List::from_place(Arc::new(items), at))),
            Cursor::Range { next, step, left } => Value::List(Arc::new(List::Range { start: next, step, count: left })),
            Cursor::Before(value) => value,
            Cursor::Vector(vector, at) => rest_of(vector.len(), at, |index| vector.get(index).cloned()),
            Cursor::Map(map, at) => rest_of(map.positions(), at, |index| {
                map.entry(index).map(|(key, value)| Value::pair(key.clone(), value.clone()))
            }),
            Cursor::Set(set, at) => rest_of(set.positions(), at, |index| set.member(index).cloned()),
            Cursor::Characters(text, at) => {
                Value::list(text.as_str().get(at..).unwrap_or_default().chars().map(Value::Char).collect())
            }
        }
    }
}

fn rest_of(end: usize, at: usize, item: impl FnMut(usize) -> Option<Value>) -> Value {
    Value::list((at..end).filter_map(item).collect())
}
