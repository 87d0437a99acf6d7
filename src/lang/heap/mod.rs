//! The session's heap: the content of whatever changes. Atoms, volatiles, delays and lazy sequences.
//!
//! A value refers to a cell by a [`Handle`], never the other way round, so values have no cycles and
//! letting go of the last handle frees the cell. What keeps itself alive through a cell (an atom that
//! holds itself) is found by [`sweep`](Heap::sweep). The first change of a cell within a top-level
//! form is journaled, so that a form that fails can be undone: that a delay or a lazy sequence was realised, or the
//! state of a transducer advanced, is a change like any other.

mod notes;
mod sweep;

use crate::lang::error::Error;
use crate::lang::value::Value;
pub use notes::Notes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// `(atom x)`
    Atom,
    /// `(volatile! x)`
    Volatile,
    /// `(transient coll)`
    Transient,
    /// `(delay …)`
    Delay,
    /// A name of `with-local-vars`
    Var,
    /// `(re-matcher regex s)`
    Matcher,
    /// `(lazy-seq …)` and what the lazy builtins make
    Lazy,
}

/// A reference to a cell. There is one for each cell, shared by all values that refer to it.
#[derive(Debug)]
pub struct Handle {
    index: u32,
    serial: u64,
    kind: CellKind,
    released: Arc<Released>,
}

impl Handle {
    /// A number that no other cell of the session has had.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What a person calls it, with its article.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            CellKind::Atom => "an atom",
            CellKind::Volatile => "a volatile",
            CellKind::Transient => "a transient",
            CellKind::Delay => "a delay",
            CellKind::Var => "a var",
            CellKind::Matcher => "a matcher",
            CellKind::Lazy => "a lazy sequence",
        }
    }

    /// Which kind of cell it refers to.
    pub fn cell_kind(&self) -> CellKind {
        self.kind
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.released.push(self.index);
    }
}

/// Cells whose handle is gone; the heap clears them when it next has the time. Handles may be let go
/// of on any thread.
#[derive(Debug, Default)]
struct Released {
    count: AtomicUsize,
    indices: Mutex<Vec<u32>>,
}

impl Released {
    fn push(&self, index: u32) {
        let mut indices = self.indices.lock().unwrap_or_else(PoisonError::into_inner);
        indices.push(index);
        self.count.store(indices.len(), Ordering::Relaxed);
    }

    fn take(&self) -> Vec<u32> {
        let mut indices = self.indices.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *indices)
    }
}

/// The state of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// What an atom or volatile holds; what a delay or lazy sequence has come to.
    Done(Value),
    /// The function of no arguments that a delay or lazy sequence will call.
    Waiting(Value),
    /// The function is being called, by the branch of that number.
    Running(u32),
    /// The exception that a delay's function raised.
    Failed(Value),
}

impl State {
    /// The value that the cell holds on to.
    pub fn held(&self) -> Option<&Value> {
        match self {
            State::Done(value) | State::Waiting(value) | State::Failed(value) => Some(value),
            State::Running(_) => None,
        }
    }
}

struct Cell {
    state: State,
    handle: Weak<Handle>,
    /// The form that journaled this cell last.
    journaled: u64,
}

/// The cells of a session.
pub struct Heap {
    /// In blocks of [`BLOCK`], so that a large heap grows without ever being copied.
    blocks: Vec<Vec<Option<Cell>>>,
    free: Vec<u32>,
    /// What stands beside the few cells that have more than their content.
    notes: HashMap<u32, Arc<Notes>>,
    /// What handles report to, once there is a cell.
    released: Option<Arc<Released>>,
    serial: u64,
    form: u64,
    journal: Vec<Before>,
    /// How often a cell that an earlier form made has changed.
    changes: u64,
    /// How many cells there may be before the end of a form looks for cycles.
    sweep_at: usize,
    /// How many cells there may be before a running program is interrupted for it.
    sweep_amid_at: usize,
}

/// A cell as it was before the running form changed it.
struct Before {
    handle: Arc<Handle>,
    state: State,
    notes: Option<Arc<Notes>>,
}

/// How many cells stand in one block.
const BLOCK: usize = 1_024;

/// How many cells a heap holds before it is first swept.
const FIRST_SWEEP: usize = 64;

/// How many cells a heap holds before it is first swept while a program runs.
const FIRST_SWEEP_AMID: usize = 4_096;

impl Default for Heap {
    fn default() -> Self {
        Heap {
            blocks: Vec::new(),
            free: Vec::new(),
            notes: HashMap::new(),
            released: None,
            serial: 0,
            form: 1,
            journal: Vec::new(),
            changes: 0,
            sweep_at: FIRST_SWEEP,
            sweep_amid_at: FIRST_SWEEP_AMID,
        }
    }
}

impl Heap {
    /// Makes a cell.
    pub fn allocate(&mut self, kind: CellKind, state: State) -> Arc<Handle> {
        self.reclaim();
        self.serial += 1;
        let index = self.free.pop().unwrap_or_else(|| self.another());
        let released = self.released.get_or_insert_default().clone();
        let handle = Arc::new(Handle { index, serial: self.serial, kind, released });
        // A cell that the running form made needs no journal: undoing the form lets go of it.
        let cell = Cell { state, handle: Arc::downgrade(&handle), journaled: self.form };
        *self.slot(index) = Some(cell);
        handle
    }

    /// The index of a new slot at the end.
    fn another(&mut self) -> u32 {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let last = self.blocks.len() - 1;
        self.blocks[last].push(None);
        (last * BLOCK + self.blocks[last].len() - 1) as u32
    }

    fn slot(&mut self, index: u32) -> &mut Option<Cell> {
        &mut self.blocks[index as usize / BLOCK][index as usize % BLOCK]
    }

    fn cell(&self, index: u32) -> Option<&Cell> {
        self.blocks.get(index as usize / BLOCK)?.get(index as usize % BLOCK)?.as_ref()
    }

    fn cell_mut(&mut self, index: u32) -> Option<&mut Cell> {
        self.blocks.get_mut(index as usize / BLOCK)?.get_mut(index as usize % BLOCK)?.as_mut()
    }

    /// Clears the cells whose handles are gone.
    #[inline]
    pub fn reclaim(&mut self) {
        if self.released.as_ref().is_some_and(|released| released.count.load(Ordering::Relaxed) > 0) {
            self.clear_released();
        }
    }

    fn clear_released(&mut self) {
        loop {
            let indices = self.released.as_ref().map(|released| released.take()).unwrap_or_default();
            if indices.is_empty() {
                return;
            }
            for index in indices {
                *self.slot(index) = None;
                if !self.notes.is_empty() {
                    self.notes.remove(&index);
                }
                self.free.push(index);
            }
        }
    }

    /// A number that is another one whenever a cell of an earlier form has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How many cells are in use.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum::<usize>() - self.free.len()
    }

    /// True when no cell is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state of a cell.
    ///
    /// # Errors
    /// `ForeignCell` if the handle belongs to another session.
    pub fn state(&self, handle: &Handle) -> Result<&State, Error> {
        self.own(handle)?;
        match self.cell(handle.index) {
            Some(cell) => Ok(&cell.state),
            None => Err(foreign()),
        }
    }

    /// Replaces the state of a cell; a change that the form may have to undo.
    ///
    /// # Errors
    /// As [`Heap::state`].
    pub fn change(&mut self, handle: &Arc<Handle>, state: State) -> Result<State, Error> {
        self.own(handle)?;
        let form = self.form;
        if self.cell(handle.index).is_none_or(|cell| cell.journaled != form) {
            self.journal(handle);
        }
        match self.cell_mut(handle.index) {
            Some(cell) => Ok(std::mem::replace(&mut cell.state, state)),
            None => Err(foreign()),
        }
    }

    /// Remembers what a cell was before the running form first changes it.
    #[cold]
    #[inline(never)]
    fn journal(&mut self, handle: &Arc<Handle>) {
        let form = self.form;
        let Some(cell) = self.cell_mut(handle.index) else { return };
        if cell.journaled != form {
            cell.journaled = form;
            let state = cell.state.clone();
            self.changes += 1;
            let notes = self.notes.get(&handle.index).cloned();
            self.journal.push(Before { handle: handle.clone(), state, notes });
        }
    }

    /// Ends a form, keeping its changes.
    pub fn commit(&mut self) {
        self.journal.clear();
        self.form += 1;
        self.reclaim();
        if self.free.len() > 2 * BLOCK && self.free.len() > self.len() {
            self.trim();
        }
    }

    /// Gives back the blocks at the end in which no cell is in use.
    fn trim(&mut self) {
        let used = self.blocks.iter().rposition(|block| block.iter().any(Option::is_some)).map_or(0, |last| last + 1);
        self.blocks.truncate(used);
        self.free.retain(|index| (*index as usize) < used * BLOCK);
        self.free.shrink_to_fit();
    }

    /// Ends a form, undoing its changes.
    pub fn undo(&mut self) {
        while let Some(Before { handle, state, notes }) = self.journal.pop() {
            if let Some(cell) = self.cell_mut(handle.index) {
                cell.state = state;
                self.put_notes(handle.index, notes);
            }
        }
        self.commit();
    }

    fn own(&self, handle: &Handle) -> Result<(), Error> {
        if self.released.as_ref().is_some_and(|own| Arc::ptr_eq(&handle.released, own)) {
            Ok(())
        } else {
            Err(foreign())
        }
    }
}

#[cold]
fn foreign() -> Error {
    Error::new("ForeignCell", "this atom or sequence belongs to another session")
}
