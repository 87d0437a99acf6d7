//! Letting go of nested data, without recursing in proportion to its depth and without delay.
//!
//! Every boxed node hands its contents to [`release`] when it is dropped. Near the surface they are
//! dropped on the spot; below a fixed depth they are put aside, and the outermost drop takes them up
//! one after another. A million levels so need no more stack than sixty-four. `Value` itself has no
//! `Drop`, so values can still be moved out of.
//!
//! On a thread that evaluates, a program must be able to end in time whatever it lets go of: there only so many
//! nodes are dropped between two looks of the ledger ([`more`]), and what is over is put aside, too. What is aside
//! belongs to the evaluation's account and changes threads with it.

use super::Value;
use super::large::Large;
use super::map::Map;
use super::vector::Tree;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// How deep drops nest.
const NEAR: u32 = 64;

/// How many nodes a thread that evaluates drops between two looks: one to two milliseconds' work.
const SLICE: u64 = 1 << 15;

/// How many contents are put aside for want of time, at most: they take memory themselves.
const ASIDE: usize = 1 << 17;

/// Blocks of more items than this are taken apart piece by piece.
const PIECE: usize = 1 << 12;

/// The contents of a node that are dropped later.
pub(super) enum Debris {
    Value(#[expect(dead_code, reason = "held to be dropped")] Value),
    Values(Vec<Value>),
    Pair(#[expect(dead_code, reason = "held to be dropped")] Box<[Value; 2]>),
    Cons(#[expect(dead_code, reason = "held to be dropped")] ([Value; 2], Option<Arc<Map>>)),
    Tree(#[expect(dead_code, reason = "held to be dropped")] Box<Tree>),
    Metadata(#[expect(dead_code, reason = "held to be dropped")] Arc<Map>),
    Map(#[expect(dead_code, reason = "held to be dropped")] Box<Large<Value>>),
    Set(#[expect(dead_code, reason = "held to be dropped")] Box<Large<()>>),
    Scratch(#[expect(dead_code, reason = "held to be dropped")] Box<dyn Send>),
}

/// A block in which a builtin collects what may be much. If the program is stopped meanwhile, a long one is put
/// aside, so that nobody waits for its items to be dropped.
pub struct Scratch<T: Send + 'static>(Vec<T>);

impl<T: Send + 'static> From<Vec<T>> for Scratch<T> {
    fn from(items: Vec<T>) -> Self {
        Scratch(items)
    }
}

impl<T: Send + 'static> Scratch<T> {
    /// What was collected.
    pub fn into_vec(mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }
}

impl<T: Send + 'static> std::ops::Deref for Scratch<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Send + 'static> std::ops::DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Send + 'static> Drop for Scratch<T> {
    fn drop(&mut self) {
        if self.0.len() > PIECE {
            put_aside(Debris::Scratch(Box::new(std::mem::take(&mut self.0))));
        }
    }
}

/// What a thread has put aside, and how many nodes it may drop before the next look.
pub struct Aside {
    debris: Vec<Debris>,
    left: u64,
}

impl Default for Aside {
    /// Nothing, and no bound on what may be dropped: that of a thread that does not evaluate.
    fn default() -> Self {
        Aside { debris: Vec::new(), left: u64::MAX }
    }
}

impl Aside {
    /// The same for a thread that evaluates.
    pub fn in_slices(self) -> Aside {
        Aside { left: SLICE, ..self }
    }

    /// True when there is nothing.
    pub fn is_empty(&self) -> bool {
        self.debris.is_empty()
    }
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static WAITING: Cell<usize> = const { Cell::new(0) };
    static DEBRIS: RefCell<Vec<Debris>> = const { RefCell::new(Vec::new()) };
}

/// Drops `contents`, at once or, deep inside another drop or when enough has been dropped, later.
#[inline]
pub(super) fn release<T>(contents: T, aside: fn(T) -> Debris) {
    let (depth, left) = (DEPTH.get(), LEFT.get());
    if depth >= NEAR || (left == 0 && WAITING.get() < ASIDE) {
        put_aside(aside(contents));
        return;
    }
    DEPTH.set(depth + 1);
    LEFT.set(left.saturating_sub(1));
    drop(contents);
    DEPTH.set(depth);
    if depth == 0 && WAITING.get() > 0 {
        drain();
    }
}

/// Counts a node that leads to no other and is dropped where it is; false when so much has been dropped that it has
/// to be released as others are.
#[inline]
pub(super) fn release_leaf() -> bool {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(1));
    left > 0
}

/// Drops a block of values as [`release`] does; a long one piece by piece.
#[inline]
pub(super) fn release_block(values: Vec<Value>) {
    if values.len() <= PIECE {
        release(values, Debris::Values);
        return;
    }
    put_aside(Debris::Values(values));
    if DEPTH.get() == 0 {
        drain();
    }
}

#[cold]
fn put_aside(debris: Debris) {
    WAITING.set(WAITING.get() + 1);
    let debris = std::mem::ManuallyDrop::new(debris);
    // A thread that ends has nothing aside, unless it panicked: then its memory is lost.
    let _ = DEBRIS.try_with(|waiting| waiting.borrow_mut().push(std::mem::ManuallyDrop::into_inner(debris)));
}

/// Drops what was put aside, from the outermost drop, while as much may be dropped.
#[cold]
fn drain() {
    while LEFT.get() > 0 {
        let Some(debris) = DEBRIS.with_borrow_mut(Vec::pop) else { break };
        WAITING.set(WAITING.get() - 1);
        let now = match debris {
            Debris::Values(mut values) if values.len() > PIECE => {
                let piece = values.split_off(values.len() - PIECE);
                put_aside(Debris::Values(values));
                // Items without nodes of their own count as well.
                LEFT.set(LEFT.get().saturating_sub(PIECE as u64 / 8));
                Debris::Values(piece)
            }
            other => other,
        };
        LEFT.set(LEFT.get().saturating_sub(1));
        DEPTH.set(1);
        drop(now);
        DEPTH.set(0);
    }
    DEBRIS.with_borrow_mut(|waiting| {
        if waiting.is_empty() {
            *waiting = Vec::new();
        }
    });
}

/// Allows a thread that evaluates to drop so many nodes more, beginning with those that were put aside; true if
/// some still are.
#[inline]
pub fn more() -> bool {
    LEFT.set(SLICE);
    if WAITING.get() == 0 {
        return false;
    }
    drain();
    let some = WAITING.get() > 0;
    LEFT.set(SLICE);
    some
}

/// Puts aside from now on what a thread that evaluates lets go of: the program has been stopped.
pub fn hold() {
    LEFT.set(0);
}

/// Puts another state in place of that of this thread.
pub fn exchange(other: Aside) -> Aside {
    WAITING.set(other.debris.len());
    let debris = DEBRIS.replace(other.debris);
    Aside { debris, left: LEFT.replace(other.left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector that many levels deep, around a value.
    fn around(value: Value, levels: u64) -> Value {
        (0..levels).fold(value, |inner, _| Value::Vector(Arc::new(vec![inner].into())))
    }

    #[test]
    fn a_thread_that_evaluates_drops_so_much_between_two_looks() {
        let held = Arc::new(Map::default());
        let deep = || around(Value::Map(held.clone()), 2 * SLICE);
        let block = || Value::Vector(Arc::new(vec![Value::Map(held.clone()); 10 * SLICE as usize].into()));
        let before = exchange(Aside::default().in_slices());
        for value in [&deep as &dyn Fn() -> Value, &block] {
            let value = value();
            more();
            drop(value);
            assert!(Arc::strong_count(&held) > 1, "the innermost is dropped last");
            let mut looks = 1;
            while more() {
                looks += 1;
            }
            assert_eq!(Arc::strong_count(&held), 1, "all is gone");
            assert!((1..20).contains(&looks), "{looks} looks");
        }
        // What is over when the account is closed goes with it, and is dropped wherever that is.
        let value = [around(deep(), SLICE), block()];
        drop(value);
        let aside = exchange(before);
        assert!(!aside.is_empty() && Arc::strong_count(&held) > 1);
        drop(aside);
        assert_eq!(Arc::strong_count(&held), 1);
        drop(deep());
        assert_eq!(Arc::strong_count(&held), 1, "a thread that does not evaluate drops at once");
    }
}
