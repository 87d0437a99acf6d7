//! The current activity of an evaluation, for progress notifications.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::lang::internal::foreign_text;

/// The current activity of an evaluation.
#[derive(Default)]
pub(in crate::server) struct Activity(Mutex<Stage>);

#[derive(Default)]
enum Stage {
    #[default]
    Waiting,
    Running,
    /// The number of tools called so far, and the last of them.
    Called(u64, String),
}

impl Activity {
    /// Records that its turn has come.
    pub(in crate::server) fn begins(&self) {
        *self.stage() = Stage::Running;
    }

    /// Records that it calls a tool.
    pub(in crate::server) fn calls(&self, server: &str, tool: &str) {
        let mut stage = self.stage();
        let before = if let Stage::Called(count, _) = &*stage { *count } else { 0 };
        *stage = Stage::Called(before + 1, foreign_text::qualified(server, tool));
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Describes the activity to the user of a client.
    pub(in crate::server) fn message(&self) -> String {
        match &*self.stage() {
            Stage::Waiting => "waiting for its turn".to_owned(),
            Stage::Running => "computing; no tool calls so far".to_owned(),
            Stage::Called(1, tool) => format!("1 tool call so far, to `{tool}`"),
            Stage::Called(count, tool) => format!("{count} tool calls so far, the last to `{tool}`"),
        }
    }
}
