//! Iteration over sequences without recursion.

use super::Value;
use super::list::{Items, List};
use super::prefetch;
use super::text::Text;
use super::vector::Vector;
use super::view::{Part, View};
use crate::heap::Handle;
use std::convert::Infallible;
use std::sync::Arc;

/// The services that a walk over values needs from its caller: charging for steps, and access to content in the heap.
pub trait Pace {
    /// The error that aborts the walk.
    type Stop;

    /// Charges for steps.
    fn step(&mut self, steps: u64) -> Result<(), Self::Stop>;

    /// Realises a lazy sequence; `None` if this walk cannot access it.
    fn force(&mut self, lazy: &Arc<Handle>) -> Result<Option<Value>, Self::Stop>;

    /// Returns the current content of an atom or another cell; `None` if this walk cannot access it.
    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value>;
}

/// A walk without charges and without access to the heap: lazy sequences and cells are opaque. For values of bounded
/// size, and for tests.
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

/// A position in a sequence. In a chain of cons cells and lazy sequences the cursor keeps only the remainder alive;
/// otherwise it holds the collection.
pub enum Cursor {
    /// At the end.
    End,
    /// In the items of a list.
    Items(Arc<Items>, usize),
    /// In items that the cursor owns: they are moved out.
    Own(Items, usize),
    /// In a vector.
    Vector(Arc<Vector>, usize),
    /// In a map, a set, or a part of a collection.
    View(View),
    /// In the characters of a string, at a byte offset.
    Characters(Text, usize),
    /// In a range.
    Range {
        /// The next number.
        next: i64,
        /// The step.
        step: i64,
        /// The number of items left, or [`List::ENDLESS`].
        left: u64,
    },
    /// Before a sequence that has not been examined yet.
    Before(Value),
}

impl Cursor {
    /// Creates a cursor before the first item; `None` if the value is neither a sequence nor a collection.
    pub fn over(value: Value) -> Option<Cursor> {
        Some(match value {
            Value::Nil => Cursor::End,
            Value::List(list) => match &*list {
                List::Items { items, start } => Cursor::Items(items.clone(), *start),
                List::Range { start, step, count } => Cursor::Range { next: *start, step: *step, left: *count },
                List::View(view) => Cursor::of_view(view.clone()),
                List::Cons(_) => Cursor::Before(Value::List(list)),
            },
            Value::Vector(vector) => Cursor::Vector(vector, 0),
            // Positions of maps and sets are 32-bit numbers: there is a view of each.
            Value::Map(_) | Value::Set(_) => View::of(value, Part::Items).map_or(Cursor::End, Cursor::View),
            Value::Str(text) => Cursor::Characters(text, 0),
            Value::Lazy(_) => Cursor::Before(value),
            _ => return None,
        })
    }

    /// Creates the cursor of a view that walks fastest.
    fn of_view(view: View) -> Cursor {
        match (view.source(), view.bounds()) {
            (Value::Vector(vector), Some((at, end))) if view.part() == Part::Items && end == vector.len() => {
                Cursor::Vector(vector.clone(), at)
            }
            (Value::Str(text), Some((at, _))) => Cursor::Characters(text.clone(), at),
            _ => Cursor::View(view),
        }
    }

    /// Like [`Cursor::over`], for a walk to the end: moves items out of a list or vector that has no other owner
    /// instead of cloning them.
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

    /// Returns the next item and advances the cursor.
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
                Cursor::View(view) => view.take_next(),
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

    /// Enters the sequence that the cursor is positioned before. Returns the head of a cons cell; otherwise replaces
    /// the cursor by one inside the sequence and returns `None`.
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

    /// Returns the number of remaining items if it is known without a walk; [`List::ENDLESS`] for an endless range.
    pub fn remaining(&self) -> Option<u64> {
        Some(match self {
            Cursor::End => 0,
            Cursor::Items(items, at) => (items.as_slice().len().saturating_sub(*at)) as u64,
            Cursor::Own(items, at) => (items.as_slice().len().saturating_sub(*at)) as u64,
            Cursor::Vector(vector, at) => (vector.len().saturating_sub(*at)) as u64,
            Cursor::Range { left, .. } => *left,
            Cursor::View(view) => view.left()? as u64,
            Cursor::Characters(text, at) if *at >= text.as_str().len() => 0,
            Cursor::Characters(..) | Cursor::Before(_) => return None,
        })
    }

    /// Converts the cursor to a sequence of the remaining items, sharing structure where possible; nil at a known end.
    pub fn into_rest(self) -> Value {
        match self {
            Cursor::End => Value::Nil,
            Cursor::Items(items, at) => Value::List(Arc::new(List::from_place(items, at))),
            Cursor::Own(items, at) => Value::List(Arc::new(List::from_place(Arc::new(items), at))),
            Cursor::Range { next, step, left } => Value::List(Arc::new(List::Range { start: next, step, count: left })),
            Cursor::Before(value) => value,
            Cursor::View(view) if view.left() == Some(0) => Value::list(Vec::new()),
            Cursor::View(view) => Value::List(Arc::new(view.into_list())),
            Cursor::Vector(vector, at) => {
                let (count, at) = (vector.len(), at.min(vector.len()));
                let items = || (at..count).filter_map(|at| vector.get(at).cloned()).collect();
                rest_of(Value::Vector(vector.clone()), at, count, items)
            }
            Cursor::Characters(text, at) => {
                let items = || text.as_str().get(at..).unwrap_or_default().chars().map(Value::Char).collect();
                rest_of(Value::Str(text.clone()), at, text.as_str().len(), items)
            }
        }
    }

    /// Returns the number of items that [`Cursor::into_rest`] copies.
    pub fn copied_rest(&self) -> usize {
        let (len, at) = match self {
            Cursor::Vector(vector, at) => (vector.len(), *at),
            Cursor::Characters(text, at) => (text.as_str().len(), *at),
            _ => return 0,
        };
        if u32::try_from(len).is_ok() { 0 } else { len.saturating_sub(at) }
    }
}

/// Creates the list of the items of a collection from a position on: a view, or a copy of what a view cannot reach.
fn rest_of(source: Value, at: usize, end: usize, items: impl FnOnce() -> Vec<Value>) -> Value {
    if at >= end {
        return Value::list(Vec::new());
    }
    match View::of(source, Part::Items).and_then(|view| view.between(at, end)) {
        Some(view) => Value::List(Arc::new(view.into_list())),
        None => Value::list(items()),
    }
}
