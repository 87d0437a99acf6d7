//! Optional properties of cells: metadata, a validator, watches. They are stored in a side table, so that cells
//! without them have no overhead.

use super::{Handle, Heap, foreign};
use crate::error::Error;
use crate::value::Value;
use crate::value::map::Map;
use std::sync::Arc;

/// The optional properties of a cell.
#[derive(Clone, Default)]
pub struct Notes {
    /// The metadata that `meta` returns.
    pub metadata: Option<Arc<Map>>,
    /// The function that validates every new content of an atom; nil if there is none.
    pub validator: Value,
    /// The functions called after each change, keyed, in the order in which they were added.
    pub watches: Arc<Map>,
}

impl Notes {
    /// True if all properties are absent.
    pub fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.validator.is_nil() && self.watches.is_empty()
    }

    /// The values that the notes reference.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        let maps = self.metadata.iter().chain((!self.watches.is_empty()).then_some(&self.watches));
        maps.map(|map| Value::Map(map.clone())).chain((!self.validator.is_nil()).then(|| self.validator.clone()))
    }
}

impl Heap {
    /// Returns the notes of a cell; `None` for most.
    pub fn notes(&self, handle: &Handle) -> Option<&Arc<Notes>> {
        if self.notes.is_empty() || self.own(handle).is_err() { None } else { self.notes.get(&handle.index) }
    }

    /// Replaces the notes of a cell. The change can be undone with the form.
    ///
    /// # Errors
    /// As [`Heap::state`].
    pub fn annotate(&mut self, handle: &Arc<Handle>, notes: Notes) -> Result<(), Error> {
        self.own(handle)?;
        if self.cell(handle.index).is_none() {
            return Err(foreign());
        }
        self.journal(handle);
        self.put_notes(handle.index, (!notes.is_empty()).then(|| Arc::new(notes)));
        Ok(())
    }

    pub(super) fn put_notes(&mut self, index: u32, notes: Option<Arc<Notes>>) {
        match notes {
            Some(notes) => self.notes.insert(index, notes),
            None => self.notes.remove(&index),
        };
    }
}
