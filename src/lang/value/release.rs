//! Dropping nested data with bounded recursion and bounded latency.
//!
//! Every boxed node passes its contents to [`release`] when it is dropped. Up to a fixed depth they are dropped
//! immediately. Deeper contents are queued, and the outermost drop drains the queue. A million levels therefore need no
//! more stack than sixty-four. `Value` itself has no `Drop`, so values can be moved out of.
//!
//! On an evaluating thread, no drop may delay the end of a program. Such a thread drops a limited number of nodes
//! between two calls of [`more`] by the meter, and queues further contents. Once [`ASIDE`] contents are queued it drops
//! immediately again, because the queue itself takes memory. The queue belongs to the evaluation and moves between
//! threads with it.

use super::Value;
use super::large::Large;
use super::map::Map;
use super::vector::Tree;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Maximum nesting depth of drops.
const NEAR: u32 = 64;

/// Number of nodes that an evaluating thread drops between two calls of [`more`]: one to two milliseconds of work.
const SLICE: u64 = 1 << 15;

/// Maximum number of contents queued because the drop limit is exhausted. The queue itself takes memory.
const ASIDE: usize = 1 << 17;

/// Blocks of more items than this are dropped piecewise.
const PIECE: usize = 1 << 12;

/// The contents of a node, queued to be dropped later.
pub(super) enum DeferredDrop {
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

/// A buffer in which a builtin collects a possibly large number of items. A long buffer that is dropped with its items
/// is queued, so that stopping a program does not wait for its items to be dropped.
pub struct Scratch<T: Send + 'static>(Vec<T>);

impl<T: Send + 'static> From<Vec<T>> for Scratch<T> {
    fn from(items: Vec<T>) -> Self {
        Scratch(items)
    }
}

impl<T: Send + 'static> Scratch<T> {
    /// Returns the collected items.
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
            put_aside(DeferredDrop::Scratch(Box::new(std::mem::take(&mut self.0))));
        }
    }
}

/// The drop queue of a thread, and the number of nodes that it may still drop before the next call of [`more`].
pub struct Aside {
    debris: Vec<DeferredDrop>,
    left: u64,
}

impl Default for Aside {
    /// An empty queue without a drop limit: the state of a thread that does not evaluate.
    fn default() -> Self {
        Aside { debris: Vec::new(), left: u64::MAX }
    }
}

impl Aside {
    /// Sets the drop limit of an evaluating thread.
    pub fn in_slices(self) -> Aside {
        Aside { left: SLICE, ..self }
    }

    /// True if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.debris.is_empty()
    }
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static WAITING: Cell<usize> = const { Cell::new(0) };
    static DEBRIS: RefCell<Vec<DeferredDrop>> = const { RefCell::new(Vec::new()) };
    /// The queues that [`pause`] has put away, the last one on top.
    static PAUSED: RefCell<Vec<Vec<DeferredDrop>>> = const { RefCell::new(Vec::new()) };
}

/// Drops `contents` immediately, or queues them if this drop is deeply nested, or if the drop limit is exhausted and
/// the queue has room.
#[inline]
pub(super) fn release<T>(contents: T, aside: fn(T) -> DeferredDrop) {
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

/// Counts a leaf node that the caller drops in place. Returns false if the drop limit is exhausted and the node must go
/// through [`release`].
#[inline]
pub(super) fn release_leaf() -> bool {
    let left = LEFT.get();
    LEFT.set(left.saturating_sub(1));
    left > 0
}

/// Drops a block of values as [`release`] does, and a long block piecewise.
#[inline]
pub(super) fn release_block(values: Vec<Value>) {
    if values.len() <= PIECE {
        release(values, DeferredDrop::Values);
        return;
    }
    put_aside(DeferredDrop::Values(values));
    if DEPTH.get() == 0 {
        drain();
    }
}

#[cold]
fn put_aside(debris: DeferredDrop) {
    WAITING.set(WAITING.get() + 1);
    let debris = std::mem::ManuallyDrop::new(debris);
    // The queue of a terminating thread is empty unless the thread panicked; in that case the contents leak.
    let _ = DEBRIS.try_with(|waiting| waiting.borrow_mut().push(std::mem::ManuallyDrop::into_inner(debris)));
}

/// Drains the queue, called from the outermost drop, until the drop limit is exhausted.
#[cold]
fn drain() {
    while LEFT.get() > 0 {
        let Some(debris) = DEBRIS.with_borrow_mut(Vec::pop) else { break };
        WAITING.set(WAITING.get() - 1);
        let now = match debris {
            DeferredDrop::Values(mut values) if values.len() > PIECE => {
                let piece = values.split_off(values.len() - PIECE);
                put_aside(DeferredDrop::Values(values));
                // Items that own no node count towards the limit as well.
                LEFT.set(LEFT.get().saturating_sub(PIECE as u64 / 8));
                DeferredDrop::Values(piece)
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

/// Grants an evaluating thread another slice of drops and drains the queue with it. Returns true if the queue is still
/// not empty; the thread then has a full slice again.
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

/// Exhausts the drop limit, so that this thread queues its further drops. Called when a program has been stopped.
pub fn hold() {
    LEFT.set(0);
}

/// Replaces the drop state of this thread and returns the previous one.
pub fn exchange(other: Aside) -> Aside {
    let left = LEFT.replace(other.left);
    // An empty queue holds no memory.
    if WAITING.get() == 0 && other.debris.is_empty() {
        return Aside { left, ..other };
    }
    WAITING.set(other.debris.len());
    Aside { debris: DEBRIS.replace(other.debris), left }
}

/// The drop state of a thread before [`pause`], apart from its queue.
pub struct Paused {
    left: u64,
    waiting: usize,
}

/// Lets this thread drop like one that does not evaluate, until [`resume`]. Pauses may be nested.
#[inline]
pub fn pause() -> Paused {
    let paused = Paused { left: LEFT.replace(u64::MAX), waiting: WAITING.replace(0) };
    if paused.waiting > 0 {
        put_queue_away();
    }
    paused
}

/// Ends the last pause.
#[inline]
pub fn resume(paused: &Paused) {
    if WAITING.get() > 0 || paused.waiting > 0 {
        bring_queue_back(paused.waiting > 0);
    }
    LEFT.set(paused.left);
    WAITING.set(paused.waiting);
}

#[cold]
fn put_queue_away() {
    let queue = DEBRIS.take();
    PAUSED.with_borrow_mut(|paused| paused.push(queue));
}

#[cold]
fn bring_queue_back(is_away: bool) {
    // What a pause within a drop has queued belongs to the pause.
    while WAITING.replace(0) > 0 {
        drop(DEBRIS.take());
    }
    if is_away && let Some(queue) = PAUSED.with_borrow_mut(Vec::pop) {
        DEBRIS.set(queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wraps a value in `levels` nested vectors.
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
        // Contents still queued when an evaluation ends leave with its state, and are dropped by the thread that drops
        // it.
        let value = [around(deep(), SLICE), block()];
        drop(value);
        let aside = exchange(before);
        assert!(!aside.is_empty() && Arc::strong_count(&held) > 1);
        drop(aside);
        assert_eq!(Arc::strong_count(&held), 1);
        drop(deep());
        assert_eq!(Arc::strong_count(&held), 1, "a thread that does not evaluate drops at once");
    }

    #[test]
    fn a_pause_drops_at_once_and_keeps_the_queue_for_later() {
        let held = Arc::new(Map::default());
        let before = exchange(Aside::default().in_slices());
        hold();
        drop(Value::Vector(Arc::new(vec![Value::Map(held.clone())].into())));
        assert_eq!(Arc::strong_count(&held), 2, "it is queued");
        let paused = pause();
        let inner = pause();
        let other = Arc::new(Map::default());
        drop(around(Value::Map(other.clone()), 2 * SLICE));
        assert_eq!(Arc::strong_count(&other), 1, "a paused thread drops at once");
        resume(&inner);
        resume(&paused);
        assert_eq!(Arc::strong_count(&held), 2, "it is still queued");
        while more() {}
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(exchange(before).is_empty());
    }
}
