//! The session's heap: the contents of mutable cells, such as atoms, volatiles, transients, delays and lazy
//! sequences.
//!
//! Values refer to cells by a [`Handle`], never the other way round. Values therefore contain no cycles, and dropping
//! the last handle frees the cell. Garbage that keeps itself alive through a cell, such as an atom that holds itself,
//! is found by [`sweep`](Heap::sweep). The first change of a cell within a top-level form is recorded in an undo log,
//! so that a form that fails can be undone. Realising a delay or a lazy sequence, and advancing the state of a
//! transducer, are changes like any other.

mod notes;
mod sweep;

use crate::error::Error;
use crate::value::Value;
pub use notes::Notes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The kind of a cell.
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
    /// `(StringBuilder.)`
    Text,
    /// `(lazy-seq …)` and the results of the lazy builtins
    Lazy,
    /// The result of a call that a rehearsal did not make; the content is the name of the tool.
    Unknown,
}

/// A reference to a cell. Each cell has a single handle, shared by all values that refer to it.
#[derive(Debug)]
pub struct Handle {
    index: u32,
    serial: u64,
    kind: CellKind,
    released: Arc<Released>,
}

impl Handle {
    /// The serial number of the cell, unique within the session.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The user-visible name of its kind, with an article: for texts and errors, which depend on what the value is.
    pub(crate) fn kind(&self) -> &'static str {
        self.touch();
        match self.kind {
            CellKind::Atom => "an atom",
            CellKind::Volatile => "a volatile",
            CellKind::Transient => "a transient",
            CellKind::Delay => "a delay",
            CellKind::Var => "a var",
            CellKind::Matcher => "a matcher",
            CellKind::Text => "a string builder",
            CellKind::Lazy => "a lazy sequence",
            CellKind::Unknown => "an unknown result",
        }
    }

    /// Returns true for a result that a rehearsal does not know.
    pub(crate) fn is_unknown(&self) -> bool {
        self.kind == CellKind::Unknown
    }

    /// Records that something depends on the content, if that is unknown.
    #[inline]
    pub(crate) fn touch(&self) {
        if self.is_unknown() {
            self.released.touch(self.index);
        }
    }

    /// The kind of the cell.
    pub(crate) fn cell_kind(&self) -> CellKind {
        self.kind
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.released.push(self.index, self.serial);
    }
}

/// Cells whose handle has been dropped; the heap clears them later. Handles may be dropped on any thread.
#[derive(Debug, Default)]
struct Released {
    count: AtomicUsize,
    indices: Mutex<Vec<u32>>,
    /// The lists of heaps that were forked from this one, each with the serial number of the last handle that they
    /// share.
    forks: Mutex<Vec<(Weak<Released>, u64)>>,
    /// The first unknown result on which something depends: its index + 1, 0 if there is none, or [`UNWATCHED`].
    touched: AtomicU32,
}

/// The mark of a heap that does not record the use of unknown results.
const UNWATCHED: u32 = u32::MAX;

impl Released {
    #[cold]
    fn touch(&self, index: u32) {
        // The first use counts.
        let _ = self.touched.compare_exchange(0, index.saturating_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    fn push(&self, index: u32, serial: u64) {
        for (fork, last) in self.forks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if serial <= *last
                && let Some(fork) = fork.upgrade()
            {
                fork.note(index);
            }
        }
        self.note(index);
    }

    fn note(&self, index: u32) {
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
    /// The content of an atom or volatile, or the value of a realised delay or lazy sequence.
    Done(Value),
    /// The function of no arguments that computes a delay or lazy sequence.
    Waiting(Value),
    /// The function is running, in the branch of this number.
    Running(u32),
    /// The exception raised by a delay's function.
    Failed(Value),
}

impl State {
    /// Returns the value that the cell references.
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
    /// The last form that recorded this cell in the undo log.
    journaled: u64,
}

/// The cells of a session.
pub struct Heap {
    /// Stored in blocks of [`BLOCK`] cells, so that a large heap grows without being copied.
    blocks: Vec<Vec<Option<Cell>>>,
    free: Vec<u32>,
    /// The notes of the few cells that have metadata, a validator or watches.
    notes: HashMap<u32, Arc<Notes>>,
    /// The list to which dropped handles are reported; `None` before the first cell.
    released: Option<Arc<Released>>,
    /// The lists to which the handles that this heap shares with those it was forked from are reported.
    inherited: Vec<(Arc<Released>, u64)>,
    serial: u64,
    form: u64,
    journal: Vec<Before>,
    /// Counts the changes to cells of earlier forms, each cell once per form.
    changes: u64,
    /// Counts all changes to cells.
    writes: u64,
    /// The number of cells at which the end of a form triggers a sweep.
    sweep_at: usize,
    /// The number of cells at which a running program is interrupted for a sweep.
    sweep_amid_at: usize,
    /// True once it has had an unknown result.
    has_unknown: bool,
}

/// An undo record: a cell before the running form changed it.
struct Before {
    handle: Arc<Handle>,
    state: State,
    notes: Option<Arc<Notes>>,
}

/// The number of cells per block.
const BLOCK: usize = 1_024;

/// The number of cells at which the first sweep at the end of a form is due.
const FIRST_SWEEP: usize = 64;

/// The number of cells at which the first sweep within a running program is due.
const FIRST_SWEEP_AMID: usize = 4_096;

impl Default for Heap {
    fn default() -> Self {
        Heap {
            blocks: Vec::new(),
            free: Vec::new(),
            notes: HashMap::new(),
            released: None,
            inherited: Vec::new(),
            serial: 0,
            form: 1,
            journal: Vec::new(),
            changes: 0,
            writes: 0,
            sweep_at: FIRST_SWEEP,
            sweep_amid_at: FIRST_SWEEP_AMID,
            has_unknown: false,
        }
    }
}

impl Heap {
    /// Allocates a cell.
    pub fn allocate(&mut self, kind: CellKind, state: State) -> Arc<Handle> {
        self.reclaim();
        self.has_unknown |= kind == CellKind::Unknown;
        self.serial += 1;
        let index = self.free.pop().unwrap_or_else(|| self.another());
        let released = self.released.get_or_insert_default().clone();
        let handle = Arc::new(Handle { index, serial: self.serial, kind, released });
        // A cell created by the running form needs no undo record: undoing the form drops it.
        let cell = Cell { state, handle: Arc::downgrade(&handle), journaled: self.form };
        *self.slot(index) = Some(cell);
        handle
    }

    /// Returns true once the heap has had a result that a rehearsal does not know.
    #[inline(always)]
    pub fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Returns the content of the unknown result on which something has come to depend since the last call, if there is
    /// one.
    pub fn take_touched(&self) -> Option<&Value> {
        let touched = &self.released.as_ref()?.touched;
        let index = touched.load(Ordering::Relaxed);
        let index = index.checked_sub(1).filter(|_| index != UNWATCHED)? as usize;
        touched.store(0, Ordering::Relaxed);
        self.blocks.get(index / BLOCK)?.get(index % BLOCK)?.as_ref()?.state.held()
    }

    /// Records from now on whether something depends on an unknown result, or stops to; returns what
    /// [`rewatch`](Heap::rewatch) takes to go back.
    pub fn watch(&self, is_on: bool) -> u32 {
        let next = if is_on { 0 } else { UNWATCHED };
        self.released.as_ref().map_or(0, |released| released.touched.swap(next, Ordering::Relaxed))
    }

    /// Goes back to the state before [`watch`](Heap::watch).
    pub fn rewatch(&self, before: u32) {
        if let Some(released) = &self.released {
            released.touched.store(before, Ordering::Relaxed);
        }
    }

    /// Appends a slot; returns its index.
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

    /// Clears the cells whose handles have been dropped.
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
                // A list shared by forks also reports handles of cells that are not in this heap.
                match self.cell_mut(index) {
                    Some(cell) if cell.handle.strong_count() == 0 => *self.slot(index) = None,
                    _ => continue,
                }
                if !self.notes.is_empty() {
                    self.notes.remove(&index);
                }
                self.free.push(index);
            }
        }
    }

    /// Clears the cells whose handles have been dropped, and gives back the memory of cells that are not in use.
    pub fn reclaim_all(&mut self) {
        self.reclaim();
        if !self.free.is_empty() {
            self.trim();
        }
    }

    /// A revision number. It changes whenever a form changes a cell of an earlier form.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A number that differs after any cell has been created or changed.
    pub fn writes(&self) -> u64 {
        self.serial + self.writes
    }

    /// The number of cells in use.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum::<usize>() - self.free.len()
    }

    /// True if no cell is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the state of a cell.
    ///
    /// # Errors
    /// Returns `ForeignCell` if the handle belongs to another session.
    pub fn state(&self, handle: &Handle) -> Result<&State, Error> {
        self.own(handle)?;
        match self.cell(handle.index) {
            Some(cell) => Ok(&cell.state),
            None => Err(foreign()),
        }
    }

    /// Replaces the state of a cell; returns the old one. The change can be undone with the form.
    ///
    /// # Errors
    /// As [`Heap::state`].
    pub fn change(&mut self, handle: &Arc<Handle>, state: State) -> Result<State, Error> {
        self.own(handle)?;
        self.writes += 1;
        let form = self.form;
        if self.cell(handle.index).is_none_or(|cell| cell.journaled != form) {
            self.journal(handle);
        }
        match self.cell_mut(handle.index) {
            Some(cell) => Ok(std::mem::replace(&mut cell.state, state)),
            None => Err(foreign()),
        }
    }

    /// Records a cell in the undo log before the running form first changes it.
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

    /// Ends a form and keeps its changes.
    pub fn commit(&mut self) {
        self.journal.clear();
        self.form += 1;
        self.reclaim();
        if self.free.len() > 2 * BLOCK && self.free.len() > self.len() {
            self.trim();
        }
    }

    /// Releases trailing blocks that contain no cell in use.
    fn trim(&mut self) {
        let used = self.blocks.iter().rposition(|block| block.iter().any(Option::is_some)).map_or(0, |last| last + 1);
        self.blocks.truncate(used);
        self.free.retain(|index| (*index as usize) < used * BLOCK);
        self.free.shrink_to_fit();
    }

    /// Ends a form and undoes its changes. Returns the cells that have their former state again.
    pub fn undo(&mut self) -> Vec<Arc<Handle>> {
        let mut undone = Vec::new();
        while let Some(Before { handle, state, notes }) = self.journal.pop() {
            if let Some(cell) = self.cell_mut(handle.index) {
                cell.state = state;
                self.put_notes(handle.index, notes);
                undone.push(handle);
            }
        }
        self.commit();
        undone
    }

    fn own(&self, handle: &Handle) -> Result<(), Error> {
        if self.released.as_ref().is_some_and(|own| Arc::ptr_eq(&handle.released, own)) || self.shares(handle) {
            Ok(())
        } else {
            Err(foreign())
        }
    }

    /// Returns whether a handle of another heap refers to a cell that this heap got when it was forked.
    #[cold]
    fn shares(&self, handle: &Handle) -> bool {
        !self.inherited.is_empty()
            && self.cell(handle.index).is_some_and(|cell| std::ptr::eq(cell.handle.as_ptr(), handle))
    }

    /// Copies the heap: the handles in values refer to the cells of both, which change independently. The time is
    /// proportional to the number of cells; their contents are shared.
    pub fn fork(&mut self) -> Heap {
        self.reclaim();
        let own = Arc::<Released>::default();
        // A list without handles reports nothing any more.
        self.inherited.retain(|(list, _)| Arc::strong_count(list) > 1);
        let mut inherited = self.inherited.clone();
        inherited.extend(self.released.clone().map(|list| (list, self.serial)));
        for (list, last) in &inherited {
            let mut forks = list.forks.lock().unwrap_or_else(PoisonError::into_inner);
            forks.retain(|(fork, _)| fork.strong_count() > 0);
            forks.push((Arc::downgrade(&own), *last));
        }
        let copy = |cell: &Option<Cell>| {
            let cell = cell.as_ref()?;
            Some(Cell { state: cell.state.clone(), handle: cell.handle.clone(), journaled: cell.journaled })
        };
        let blocks = self.blocks.iter().map(|block| {
            let mut cells = Vec::with_capacity(BLOCK);
            cells.extend(block.iter().map(copy));
            cells
        });
        let mut fork = Heap {
            has_unknown: self.has_unknown,
            blocks: blocks.collect(),
            free: self.free.clone(),
            notes: self.notes.clone(),
            released: Some(own),
            inherited,
            journal: Vec::new(),
            serial: self.serial,
            form: self.form,
            changes: self.changes,
            writes: self.writes,
            sweep_at: self.sweep_at,
            sweep_amid_at: self.sweep_amid_at,
        };
        // Handles that were dropped while their list did not know of this heap.
        for index in 0..fork.blocks.iter().map(Vec::len).sum::<usize>() as u32 {
            if fork.cell(index).is_some_and(|cell| cell.handle.strong_count() == 0) {
                *fork.slot(index) = None;
                fork.notes.remove(&index);
                fork.free.push(index);
            }
        }
        fork
    }
}

#[cold]
fn foreign() -> Error {
    Error::new("ForeignCell", "this atom or sequence belongs to another session")
}
