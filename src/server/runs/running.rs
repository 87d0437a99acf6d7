//! The programs that go on after their call was answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::lang::MadeCalls;

use super::summary::{RunState, RunSummary};

/// Returns the calls so far of a program that is evaluated.
pub(in crate::server) type Made = Box<dyn Fn() -> Vec<MadeCalls> + Send>;

/// A program that goes on.
struct RunningProgram {
    identity: String,
    principal: String,
    made: Made,
}

/// The programs of this process that go on after their call was answered.
#[derive(Default)]
pub(super) struct Running(Mutex<Vec<RunningProgram>>);

impl Running {
    fn programs(&self) -> MutexGuard<'_, Vec<RunningProgram>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the states of the programs of a principal.
    pub(super) fn of(&self, principal: &str) -> Vec<(String, RunSummary)> {
        let programs = self.programs();
        let mine = programs.iter().filter(|program| program.principal == principal);
        let summary =
            |program: &RunningProgram| RunSummary { made: (program.made)(), ..RunSummary::of_state(RunState::Running) };
        mine.map(|program| (program.identity.clone(), summary(program))).collect()
    }
}

/// The time for which a program goes on: it is listed among the runs until this is dropped.
pub(in crate::server) struct Listed {
    running: Arc<Running>,
    identity: String,
}

impl Listed {
    /// Lists a program of a principal.
    pub(super) fn new(running: &Arc<Running>, identity: &str, principal: &str, made: Made) -> Listed {
        let (identity, principal) = (identity.to_owned(), principal.to_owned());
        running.programs().push(RunningProgram { identity: identity.clone(), principal, made });
        Listed { running: Arc::clone(running), identity }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.running.programs().retain(|program| program.identity != self.identity);
    }
}
