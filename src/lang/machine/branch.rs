//! The branch that a machine runs, and the turns that it gets.

use super::{Core, Scheduler};
use crate::heap::Handle;
use crate::host::{CallId, Decision};
use crate::value::text::Text;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The branch that a machine runs, with its connection to the others.
#[derive(Default)]
pub struct Branch {
    pub(crate) path: Vec<u32>,
    pub(crate) form: u32,
    pub(crate) ordinal: u32,
    pub(crate) turns: Option<Turns>,
    /// The numbers of print captures and input texts that were active when the branch started. Those belong to its
    /// parent.
    pub(crate) outside: (usize, usize),
    /// The check counters of the enclosing `run-tests`.
    pub(crate) counts: Option<Arc<Handle>>,
    /// The placeholder of the core, while the branch has the core.
    pub(crate) spare: Option<Box<Core>>,
}

/// A capture of what is printed.
#[derive(Default)]
pub(crate) struct Capture {
    /// The text that has been printed, and is not in the string builder yet.
    pub(crate) text: String,
    /// The string builder into which it goes, if any.
    pub(crate) into: Option<Arc<Handle>>,
}

/// The print captures and input texts of a branch, removed from the core while it waits.
pub(crate) struct Streams {
    pub(crate) captured: Vec<Capture>,
    pub(crate) inputs: Vec<(Text, usize)>,
}

/// A branch's connection to its scheduler.
pub(crate) struct Turns {
    pub(crate) index: usize,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) turn: Receiver<Turn>,
}

/// The message with which a branch receives the core.
pub(crate) enum Turn {
    /// Resume the branch.
    Go(Box<Core>),
    /// Resume the branch with the decision on its call.
    Decided(Box<Core>, Decision),
    /// End the branch, because a sibling has failed.
    End(Box<Core>),
}

impl Branch {
    /// Returns the identity of the next host call of this branch.
    pub(crate) fn next_call(&mut self, form: u32) -> CallId {
        if self.form != form {
            self.form = form;
            self.ordinal = 0;
        }
        let id = CallId { form, branch: self.path.clone(), ordinal: self.ordinal };
        self.ordinal += 1;
        id
    }

    /// Returns the identity that the next host call of this branch will have.
    pub(crate) fn upcoming_call(&self, form: u32) -> CallId {
        let ordinal = if self.form == form { self.ordinal } else { 0 };
        CallId { form, branch: self.path.clone(), ordinal }
    }

    /// The number of this branch among its siblings, from 1; 0 for the main branch.
    pub(crate) fn number(&self) -> u32 {
        self.turns.as_ref().map_or(0, |turns| turns.index as u32 + 1)
    }

    /// Removes the print captures and input texts of this branch from the core, so that other branches do not see
    /// them.
    pub(crate) fn take_streams(&self, core: &mut Core) -> Streams {
        let (captured, inputs) = self.outside;
        Streams {
            captured: core.captured.drain(captured.min(core.captured.len())..).collect(),
            inputs: core.inputs.drain(inputs.min(core.inputs.len())..).collect(),
        }
    }
}

impl Streams {
    pub(crate) fn put_back(self, core: &mut Core) {
        core.captured.extend(self.captured);
        core.inputs.extend(self.inputs);
    }
}
