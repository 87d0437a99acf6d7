//! Last uses: where a name is read for the last time, its value is taken out of its slot instead of copied.
//!
//! Who is then given a collection holds it alone, and may change it in place: `(recur (conj items x))`, or a function of
//! `reduce` that adds to what it gets. Nobody can tell, since nothing reads the slot before it is set again.
//!
//! Code is gone through backwards, with the slots that are read later on. Where code may be left early (`and`, `or`,
//! `try`) or runs again (`loop`), everything that may be read then counts as read later. The first argument of a builtin
//! is taken when the others have been evaluated: in `(assoc m :n (inc (:n m)))` it is the last use of `m`.

use crate::lang::node::{Lambda, LambdaResult, Let, Node, Try};

/// The slots that are read later on, among the first 64; all others are.
#[derive(Clone, Copy, Default)]
struct Live(u64);

impl Live {
    /// Adds a slot; true if it was not there.
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

/// The bit of a slot; none of a slot beyond the first 64.
pub fn bit(slot: u32) -> u64 {
    1_u64.checked_shl(slot).unwrap_or(0)
}

/// Marks the last uses in the body of a function, or in a form of the top level.
pub fn mark(body: &mut Node) {
    pass(body, &mut Live::default(), Live::default());
}

/// Goes through a node. `live` is what is read behind it, and becomes what is read from its beginning on; `again` is
/// what is read where a `recur` leads, beside the slots that it sets.
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
            // Each of them may be the last.
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

/// Nodes that are evaluated one after another.
fn all(nodes: &mut [Node], live: &mut Live, again: Live) {
    for node in nodes.iter_mut().rev() {
        pass(node, live, again);
    }
}

/// A node whose value is only looked at: taking it would gain nothing.
fn read(node: &mut Node, live: &mut Live, again: Live) {
    match node {
        Node::Local(slot) => {
            live.add(*slot);
        }
        node => pass(node, live, again),
    }
}

/// The bindings of `let*` and `loop*`, of which each sets its slot.
fn values(binding: &mut Let, live: &mut Live, again: Live) {
    for (at, node) in binding.values.iter_mut().enumerate().rev() {
        live.remove(binding.slot + at as u32);
        pass(node, live, again);
    }
}

/// Functions share what they capture: it is copied.
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

/// What a handler or `finally` reads may be read from anywhere in the body on.
fn try_(parts: &mut Try, live: &mut Live, again: Live) {
    if let Some(finally) = &mut parts.finally {
        pass(finally, live, again);
    }
    let mut caught = *live;
    if let Some((slot, handler)) = &mut parts.catch {
        pass(handler, &mut caught, again);
        caught.remove(*slot);
    }
    *live = live.with(caught);
    pass(&mut parts.body, live, again);
}
