//! Letting go of nested data without recursing in proportion to its depth.
//!
//! Every boxed node hands its contents to [`release`] when it is dropped. Near the surface they are
//! dropped on the spot; below a fixed depth they are put aside, and the outermost drop takes them up
//! one after another. A million levels so need no more stack than sixty-four. `Value` itself has no
//! `Drop`, so values can still be moved out of.

use super::Value;
use super::large::Large;
use super::list::Contents;
use super::map::Map;
use super::vector::Tree;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

const NEAR: u32 = 64;

/// The contents of a node that was dropped too deep inside another.
pub(super) enum Debris {
    Values(#[expect(dead_code, reason = "held to be dropped")] Vec<Value>),
    Pair(#[expect(dead_code, reason = "held to be dropped")] [Value; 2]),
    Cons(#[expect(dead_code, reason = "held to be dropped")] ([Value; 2], Option<Arc<Map>>)),
    Tree(#[expect(dead_code, reason = "held to be dropped")] Tree),
    Items(#[expect(dead_code, reason = "held to be dropped")] Contents),
    Metadata(#[expect(dead_code, reason = "held to be dropped")] Arc<Map>),
    Map(#[expect(dead_code, reason = "held to be dropped")] Large<Value>),
    Set(#[expect(dead_code, reason = "held to be dropped")] Large<()>),
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static ASIDE: RefCell<Vec<Debris>> = const { RefCell::new(Vec::new()) };
}

/// Drops `contents`, at once or, deep inside another drop, later.
#[inline]
pub(super) fn release<T>(contents: T, aside: fn(T) -> Debris) {
    let depth = DEPTH.get();
    if depth >= NEAR {
        ASIDE.with_borrow_mut(|waiting| waiting.push(aside(contents)));
        return;
    }
    DEPTH.set(depth + 1);
    drop(contents);
    DEPTH.set(depth);
    if depth == 0 {
        drain();
    }
}

/// Drops what was put aside, from the outermost drop.
fn drain() {
    while let Some(debris) = ASIDE.with_borrow_mut(Vec::pop) {
        DEPTH.set(1);
        drop(debris);
        DEPTH.set(0);
        ASIDE.with_borrow_mut(|waiting| {
            if waiting.is_empty() {
                *waiting = Vec::new();
            }
        });
    }
}
