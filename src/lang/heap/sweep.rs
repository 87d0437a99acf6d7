//! The cycle collector: finds cells that are referenced only from garbage cycles.
//!
//! It needs no list of roots; it is a form of trial deletion. It counts every reference that starts in a cell. A node
//! whose reference count exceeds that number is also held from outside (by a global or by the running program), and
//! everything reachable from it is alive. The rest is cyclic garbage, and its cells are cleared. Owners inside large
//! persistent collections cannot be counted, so their contents count as alive here. Only a sweep from known roots, at
//! the end of a form, can collect those.

use super::{CellKind, Heap, State};
use crate::value::Value;
use crate::value::children::Hold;
use crate::value::list::List;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The number of nodes visited between two checks whether to stop.
const STRETCH: usize = 4_096;

/// The number of nodes that a sweep may visit per cell allocated since the last sweep, for amortization.
const LOOKS: usize = 8;

/// Peak memory, in bytes, per node in a table and per value in a list. Includes growth, during which the old storage
/// and the new one of twice the size coexist.
const IN_TABLE: usize = 3 * (size_of::<(usize, Reached)>() + 1) * 8 / 7;
const IN_SET: usize = 3 * (size_of::<usize>() + 1) * 8 / 7;
const IN_LIST: usize = 3 * size_of::<Value>();

/// A node reached from a cell, with the number of references counted.
struct Reached {
    edges: usize,
    value: Value,
}

impl Heap {
    /// True if enough cells have been allocated since the last sweep to amortize another one.
    pub fn wants_sweep(&self) -> bool {
        self.blocks.len() * super::BLOCK >= self.sweep_amid_at && self.len() >= self.sweep_amid_at
    }

    /// Clears cells in garbage cycles, at any point of a program. Clears none if the sweep needs more than `most`
    /// bytes of memory, or if `stop`, polled every few thousand nodes, returns true. Returns the number of nodes
    /// visited, which is the cost of the sweep.
    pub fn sweep(&mut self, most: usize, stop: &mut dyn FnMut() -> bool) -> u64 {
        let looked_at = self.sweep_within(most, stop);
        self.sweep_amid_at = self.next_sweep(looked_at).max(super::FIRST_SWEEP_AMID);
        looked_at
    }

    fn sweep_within(&mut self, most: usize, stop: &mut dyn FnMut() -> bool) -> u64 {
        self.reclaim();
        let mut reached: HashMap<usize, Reached> = HashMap::new();
        let mut alive: Vec<Value> = Vec::new();
        let mut waiting: Vec<Value> = Vec::new();
        let contents = self.blocks.iter().flatten().flatten().filter_map(|cell| cell.state.held().cloned());
        for held in contents.chain(self.notes.values().flat_map(|notes| notes.values())) {
            waiting.push(held);
            while let Some(value) = waiting.pop() {
                let Some((address, _)) = value.node() else { continue };
                if let Some(known) = reached.get_mut(&address) {
                    known.edges += 1;
                    continue;
                }
                let listed = alive.len() + waiting.len() + most_children(&value);
                let taken = (reached.len() * IN_TABLE).saturating_add(listed.saturating_mul(IN_LIST));
                if taken <= most {
                    children(&value, &mut waiting, &mut alive);
                }
                reached.insert(address, Reached { edges: 1, value });
                if taken > most || reached.len().is_multiple_of(STRETCH) && stop() {
                    return reached.len() as u64;
                }
            }
        }
        // One owner is the copy in `reached`. Copies in `alive` are owners as well, but they can only make more nodes
        // count as alive.
        let looked_at = reached.len() as u64;
        for (place, node) in reached.values().enumerate() {
            if place.is_multiple_of(STRETCH) && stop() {
                return looked_at;
            }
            if node.value.node().is_some_and(|(_, owners)| owners - 1 > node.edges) {
                alive.push(node.value.clone());
            }
        }
        // A cell without references from cells is held from outside; otherwise its handle would have been dropped.
        for (place, cell) in self.blocks.iter().flatten().flatten().enumerate() {
            if place.is_multiple_of(STRETCH) && stop() {
                return looked_at;
            }
            if let Some(handle) = cell.handle.upgrade()
                && !reached.contains_key(&Arc::as_ptr(&handle).addr())
            {
                alive.push(of_handle(handle));
            }
        }
        drop(reached);
        looked_at + self.keep_only(alive, most, stop)
    }

    /// Clears every cell that is unreachable from `roots`, if enough cells exist to amortize it; clears none if
    /// stopped. Used at the end of a form, when all roots are known.
    pub fn sweep_from(&mut self, roots: impl FnOnce() -> Vec<Value>, stop: &mut dyn FnMut() -> bool) {
        self.reclaim();
        if self.len() >= self.sweep_at {
            let looked_at = self.keep_only(roots(), usize::MAX, stop);
            self.sweep_at = self.next_sweep(looked_at).max(super::FIRST_SWEEP);
        }
    }

    /// The number of cells at which the next sweep is due, after one that visited `looked_at` nodes: twice the
    /// current number, or one more cell per [`LOOKS`] nodes if that is larger. Each allocated cell thus pays for a
    /// few visits at most.
    fn next_sweep(&self, looked_at: u64) -> usize {
        let looks = usize::try_from(looked_at).unwrap_or(usize::MAX);
        (2 * self.len()).max(self.len().saturating_add(looks / LOOKS))
    }

    /// Clears every cell that is unreachable from `alive`, except those being realised. Clears none if that needs
    /// more than `most` bytes or is stopped. Returns the number of nodes visited.
    fn keep_only(&mut self, alive: Vec<Value>, most: usize, stop: &mut dyn FnMut() -> bool) -> u64 {
        let mut seen: HashSet<usize> = HashSet::new();
        let mut kept: HashSet<u32> = HashSet::new();
        let mut waiting = alive;
        let mut within = Vec::new();
        while let Some(value) = waiting.pop() {
            let Some((address, _)) = value.node() else { continue };
            if !seen.insert(address) {
                continue;
            }
            let listed = waiting.len() + most_children(&value);
            let taken = (seen.len() * IN_SET).saturating_add(listed.saturating_mul(IN_LIST));
            if taken > most || seen.len().is_multiple_of(STRETCH) && stop() {
                return seen.len() as u64;
            }
            if let Value::Cell(handle) | Value::Lazy(handle) = &value {
                kept.insert(handle.index);
                waiting.extend(self.cell(handle.index).and_then(|cell| cell.state.held()).cloned());
                waiting.extend(self.notes.get(&handle.index).into_iter().flat_map(|notes| notes.values()));
            }
            children(&value, &mut waiting, &mut within);
            waiting.append(&mut within);
        }
        for (index, cell) in self.blocks.iter_mut().flatten().enumerate() {
            if let Some(cell) = cell
                && !kept.contains(&(index as u32))
                && !matches!(cell.state, State::Running(_))
            {
                cell.state = State::Done(Value::Nil);
            }
        }
        self.notes.retain(|index, _| kept.contains(index));
        self.reclaim();
        seen.len() as u64
    }
}

fn of_handle(handle: Arc<super::Handle>) -> Value {
    match handle.kind {
        CellKind::Lazy => Value::Lazy(handle),
        _ => Value::Cell(handle),
    }
}

/// True for values that may reference cells.
fn leads(value: &Value) -> bool {
    !value.is_scalar() || matches!(value, Value::Cell(_))
}

/// An upper bound on the number of values that [`children`] lists, give or take a few.
fn most_children(value: &Value) -> usize {
    const FEW: usize = 1_024;
    fn leading<'v>(len: usize, values: impl Iterator<Item = &'v Value>) -> usize {
        if len <= FEW { len } else { values.filter(|value| leads(value)).count() }
    }
    match value {
        Value::List(list) => match &**list {
            List::Items { .. } => list.as_slice().map_or(0, |items| leading(items.len(), items.iter())),
            List::Cons(_) | List::Range { .. } | List::View(_) => 2,
        },
        Value::Vector(vector) => leading(vector.len(), vector.iter()),
        Value::Map(map) => leading(2 * map.len(), map.iter().flat_map(|(key, value)| [key, value])),
        Value::Set(set) => leading(set.len(), set.iter()),
        _ => 0,
    }
}

/// Lists the children of a node: in `counted` those with one reference owned by this node alone, in `shared` those
/// that other nodes may own jointly with it, so that their references cannot be counted.
fn children(value: &Value, counted: &mut Vec<Value>, shared: &mut Vec<Value>) {
    value.for_each_child(&mut |child, hold| {
        if leads(child) {
            match hold {
                Hold::Counted => counted.push(child.clone()),
                Hold::Shared => shared.push(child.clone()),
            }
        }
    });
}
