//! What a program wants done with its own session when it has ended: copies of it, or its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::lang::{Environment, Sandbox};

use super::keeper::{Keeper, undisturbed};
use super::sessions::Entry;

/// The most copies that one program may make.
const MOST_COPIES: usize = 16;

/// Taken down while a program runs.
#[derive(Default)]
pub(super) struct Wishes(Mutex<Wished>);

#[derive(Default)]
struct Wished {
    /// The handles of the copies.
    copies: Vec<String>,
    closes: bool,
}

impl Wishes {
    fn wished(&self) -> MutexGuard<'_, Wished> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Promises a copy, and gives its handle.
    ///
    /// # Errors
    /// When there are too many, or the system has no randomness for a handle.
    pub(super) fn fork(&self) -> Result<String, String> {
        let mut wished = self.wished();
        if wished.copies.len() >= MOST_COPIES {
            return Err(format!("a program may fork its session {MOST_COPIES} times"));
        }
        let handle = crate::store::handle()?;
        wished.copies.push(handle.clone());
        Ok(handle)
    }

    /// Promises the end of the session.
    pub(super) fn close(&self) {
        self.wished().closes = true;
    }

    /// True if the session is to end.
    pub(super) fn closes(&self) -> bool {
        self.wished().closes
    }

    /// Makes the copies that were promised: in the store, or as sessions that are to be kept here.
    ///
    /// # Errors
    /// Why the session cannot be copied.
    pub(super) fn copies(
        &self,
        entry: &Entry,
        session: &mut dyn Environment,
        sandbox: &Arc<dyn Sandbox>,
        keeper: Option<&Keeper>,
    ) -> Result<Vec<Arc<Entry>>, String> {
        let handles = std::mem::take(&mut self.wished().copies);
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        if session.bindings() == 0 {
            return Err("nothing is defined in it".to_owned());
        }
        let text = session.encode(undisturbed())?;
        let mut here = Vec::new();
        for handle in handles {
            match keeper {
                Some(keeper) => keeper.make(&entry.key_of(handle), &text, &session.names())?,
                None => {
                    let mut copy = Arc::clone(sandbox).environment();
                    copy.decode(&text, undisturbed())?;
                    here.push(entry.copied(handle, copy));
                }
            }
        }
        Ok(here)
    }
}
