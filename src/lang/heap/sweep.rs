//! Finding the cells that only they themselves still refer to.
//!
//! No list of roots is needed. Every reference to a node that starts in a cell is counted; a node that
//! has more owners than that is also held from outside (by a global, by the running program), and
//! all that it leads to is alive. What remains is garbage in a cycle, and its cells are cleared.
//! Inside large persistent collections owners cannot be counted, so what they hold counts as alive
//! here; only a sweep from known roots, at the end of a form, sees through them.

use super::{CellKind, Heap, State};
use crate::lang::value::Value;
use crate::lang::value::children::Hold;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How many nodes are looked at between two questions whether to stop.
const STRETCH: usize = 4_096;

/// How many nodes a sweep may look at for each cell that was made since the last one.
const LOOKS: usize = 8;

/// The bytes that a node in a table takes, and a value in a list, while the table or list grows: the old one and one
/// of twice its size are there together.
const IN_TABLE: usize = 3 * (size_of::<(usize, Reached)>() + 1) * 8 / 7;
const IN_SET: usize = 3 * (size_of::<usize>() + 1) * 8 / 7;
const IN_LIST: usize = 3 * size_of::<Value>();

/// A node reached from a cell, and how often.
struct Reached {
    edges: usize,
    value: Value,
}

impl Heap {
    /// True when there are so many more cells than after the last sweep that another pays.
    pub fn wants_sweep(&self) -> bool {
        self.blocks.len() * super::BLOCK >= self.sweep_amid_at && self.len() >= self.sweep_amid_at
    }

    /// Clears cells that hold themselves alive, wherever the program is; leaves everything as it is
    /// when that takes more than `most` bytes meanwhile, or when `stop`, asked every few thousand nodes, says so.
    /// Returns how many nodes were looked at, which is what the sweep costs.
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
        // One owner is the copy in `reached`. Copies in `alive` are owners too: they only ever make
        // more nodes alive.
        let looked_at = reached.len() as u64;
        for (place, node) in reached.values().enumerate() {
            if place.is_multiple_of(STRETCH) && stop() {
                return looked_at;
            }
            if node.value.node().is_some_and(|(_, owners)| owners - 1 > node.edges) {
                alive.push(node.value.clone());
            }
        }
        // A cell that nothing in a cell refers to is held from outside, or its handle would be gone.
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

    /// Clears every cell that cannot be reached from `roots`, if there are so many cells that it
    /// pays, or none if it is stopped. For the end of a form, when all that is alive is known.
    pub fn sweep_from(&mut self, roots: impl FnOnce() -> Vec<Value>, stop: &mut dyn FnMut() -> bool) {
        self.reclaim();
        if self.len() >= self.sweep_at {
            let looked_at = self.keep_only(roots(), usize::MAX, stop);
            self.sweep_at = self.next_sweep(looked_at).max(super::FIRST_SWEEP);
        }
    }

    /// How many cells there must be until another sweep pays, after one that looked at so many nodes: twice as many, and
    /// one more for each [`LOOKS`] nodes, so that a cell pays for a few looks at most when it is made.
    fn next_sweep(&self, looked_at: u64) -> usize {
        let looks = usize::try_from(looked_at).unwrap_or(usize::MAX);
        (2 * self.len()).max(self.len().saturating_add(looks / LOOKS))
    }

    /// Clears every cell that cannot be reached from `alive`, or none if that takes more than `most` bytes or is
    /// stopped.
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

/// True for values that may lead to cells.
fn leads(value: &Value) -> bool {
    !value.is_scalar() || matches!(value, Value::Cell(_))
}

/// How many values [`children`] may list, beside a few.
fn most_children(value: &Value) -> usize {
    const FEW: usize = 1_024;
    fn leading<'v>(len: usize, values: impl Iterator<Item = &'v Value>) -> usize {
        if len <= FEW { len } else { values.filter(|value| leads(value)).count() }
    }
    match value {
        Value::List(list) => list.as_slice().map_or(0, |items| leading(items.len(), items.iter())),
        Value::Vector(vector) => leading(vector.len(), vector.iter()),
        Value::Map(map) => leading(2 * map.len(), map.iter().flat_map(|(key, value)| [key, value])),
        Value::Set(set) => leading(set.len(), set.iter()),
        _ => 0,
    }
}

/// What a node refers to: in `counted` what it owns once and alone, in `shared` what other nodes may
/// own together with it, of which no count is known.
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
