//! The calls of a rehearsal, as a run that waits for a person.

use crate::lang::Limits;
use crate::server::runs::stored::StoredRun;
use crate::server::runs::{RunKey, Runs};
use crate::server::sessions::Entry;
use crate::store;
use lispbox_policy::internal::ChangeSet;

impl Runs {
    /// Stores the calls of a rehearsal of a program in that session, as a run that waits for a person. Returns its
    /// identity; `None` if there is no store. Blocks.
    ///
    /// # Errors
    /// Returns why it is not kept, as a clause.
    pub(super) fn keep_rehearsal(
        &self,
        entry: &Entry,
        (program, limits): (&str, Limits),
        changes: ChangeSet,
        key: Option<RunKey>,
    ) -> Result<Option<String>, String> {
        if !self.are_stored() {
            return Ok(None);
        }
        let (identity, arguments) = match key {
            Some(RunKey { identity, arguments }) => (identity, Some(arguments)),
            None => (store::handle()?, None),
        };
        let run = StoredRun::rehearsed_by(program, &store::handle()?, limits, changes, arguments);
        self.put_waiting(entry, &identity, &run)?;
        Ok(Some(identity))
    }
}
