//! Last-use analysis: the last read of a slot moves the value out instead of copying it.
//!
//! The receiver of a collection is then its only owner and may change it in place: `(recur (conj items x))`, or a
//! function of `reduce` that adds to its accumulator. The program cannot observe the change, since nothing reads the
//! slot before it is set again.
//!
//! The analysis walks the code backwards with the set of live slots. Where code may exit early (`and`, `or`, `try`)
//! or repeat (`loop`), everything that may be read afterwards counts as live. The first argument of a builtin is
//! taken after the others have been evaluated: in `(assoc m :n (inc (:n m)))` it is the last use of `m`.

use crate::node::{Lambda, LambdaResult, Let, Node, Try};

/// The set of live slots, as a bit mask of the first 64; slots beyond these always count as live.
#[derive(Clone, Copy, Default)]
struct Live(u64);

impl Live {
    /// Adds a slot; returns true if it was absent.
    fn add(&mut self, slot: u32) -> bool {
        let before = self.0;
        self.0 |= bit(slot);
        self.0 != before
    }

    fn remove(&mut self, slot: u32) {
        self.0 &= !bit(slot);
    }

    fn with(self, other: Live) -> Live {
        Live(self.0 | other.0)
    }
}

/// The bit of a slot; 0 for a slot beyond the first 64.
pub fn bit(slot: u32) -> u64 {
    1_u64.checked_shl(slot).unwrap_or(0)
}

/// Marks the last uses in the body of a function or in a top-level form.
pub fn mark(body: &mut Node) {
    pass(body, &mut Live::default(), Live::default());
}

/// Analyses a node. `live` is the set of slots live after the node on entry, and before it on return. `again` is the
/// set of slots live at the target of a `recur`, excluding those that it sets.
fn pass(node: &mut Node, live: &mut Live, again: Live) {
    match node {
        Node::Local(slot) => {
            let slot = *slot;
            if live.add(slot) {
                *node = Node::Take(slot);
            }
        }
        Node::Constant(_) | Node::Captured(_) | Node::Sibling(_) | Node::Global(..) | Node::Take(_) => {}
        Node::If(parts) => {
            let [test, then, otherwise] = &mut **parts;
            let mut other = *live;
            pass(otherwise, &mut other, again);
            pass(then, live, again);
            *live = live.with(other);
            read(test, live, again);
        }
        Node::Do(nodes) | Node::Vector(nodes) | Node::Record(_, nodes) | Node::Set(nodes, _) => all(nodes, live, again),
        Node::And(nodes) | Node::Or(nodes) => {
            // Any of them may be the last one evaluated.
            let after = *live;
            for node in nodes.iter_mut().rev() {
                *live = live.with(after);
                pass(node, live, again);
            }
        }
        Node::Let(binding) => {
            pass(&mut binding.body, live, again);
            values(binding, live, again);
        }
        Node::Loop(binding) => {
            let inside = !(bit(binding.slot).wrapping_sub(1));
            let around = Live((live.0 | binding.reads) & !inside);
            pass(&mut binding.body, live, around);
            *live = live.with(around);
            values(binding, live, again);
        }
        Node::Recur(recur) => {
            *live = again;
            all(&mut recur.values, live, again);
        }
        Node::Lambda(lambda) => functions(lambda, live, again),
        Node::CallBuiltin(call) => {
            let (first, others) = match call.arguments.split_first_mut() {
                Some((first @ Node::Local(_), others)) => (Some(first), others),
                _ => (None, &mut *call.arguments),
            };
            if let Some(first) = first {
                pass(first, live, again);
            }
            all(others, live, again);
        }
        Node::Operate(operation) => {
            read(&mut operation.right, live, again);
            read(&mut operation.left, live, again);
        }
        Node::LookUp(look_up) => {
            if let Some(default) = &mut look_up.default {
                pass(default, live, again);
            }
            read(&mut look_up.collection, live, again);
        }
        Node::Call(call) | Node::TailCall(call) => {
            all(&mut call.arguments, live, again);
            read(&mut call.callee, live, again);
        }
        Node::Define(define) => {
            for node in define.metadata.iter_mut().chain(&mut define.value) {
                pass(node, live, again);
            }
        }
        Node::Try(parts) => try_(parts, live, again),
        Node::Map(pairs, _) => {
            for (key, value) in pairs.iter_mut().rev() {
                pass(value, live, again);
                pass(key, live, again);
            }
        }
    }
}

/// Analyses nodes that are evaluated in order.
fn all(nodes: &mut [Node], live: &mut Live, again: Live) {
    for node in nodes.iter_mut().rev() {
        pass(node, live, again);
    }
}

/// Analyses a node whose value is only inspected, so that moving it out would gain nothing.
fn read(node: &mut Node, live: &mut Live, again: Live) {
    match node {
        Node::Local(slot) => {
            live.add(*slot);
        }
        node => pass(node, live, again),
    }
}

/// Analyses the bindings of `let*` and `loop*`; each sets its slot.
fn values(binding: &mut Let, live: &mut Live, again: Live) {
    for (at, node) in binding.values.iter_mut().enumerate().rev() {
        live.remove(binding.slot + at as u32);
        pass(node, live, again);
    }
}

/// Analyses the creation of functions. Captures are shared, so their values are copied.
fn functions(lambda: &mut Lambda, live: &mut Live, again: Live) {
    if let LambdaResult::Slots(slot, body) = &mut lambda.result {
        pass(body, live, again);
        for index in 0..lambda.group.lambdas.len() {
            live.remove(*slot + index as u32);
        }
    }
    for node in &mut lambda.captures {
        read(node, live, again);
    }
}

/// Analyses `try`. Slots that a handler or `finally` reads are live throughout the body.
fn try_(parts: &mut Try, live: &mut Live, again: Live) {
    if let Some(finally) = &mut parts.finally {
        pass(finally, live, again);
    }
    let after = *live;
    for catch in parts.catches.iter_mut() {
        let mut caught = after;
        pass(&mut catch.body, &mut caught, again);
        caught.remove(catch.slot);
        *live = live.with(caught);
    }
    pass(&mut parts.body, live, again);
}
