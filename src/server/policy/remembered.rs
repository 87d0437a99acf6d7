//! The later calls that a person has allowed in a session without a store: at a terminal, or of an embedding program.

use std::sync::{Arc, Mutex, PoisonError};

use crate::lang::Question;

use super::{Grants, LaterCalls, Take, TakenCall};

/// The words for a call that was allowed together with an earlier one.
const ALLOWED: &str = "a person has allowed it for this session";

/// The later calls that a person has allowed in one session, in memory.
#[derive(Default)]
pub(in crate::server) struct Remembered(Mutex<Vec<Allowed>>);

/// The calls of a tool, or those with these arguments.
struct Allowed {
    server: Arc<str>,
    tool: Arc<str>,
    arguments: Option<String>,
}

impl Remembered {
    fn covers(&self, asked: &Question) -> bool {
        let allowed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_tool = |allowed: &&Allowed| allowed.server == asked.server && allowed.tool == asked.tool;
        allowed.iter().filter(is_of_tool).any(|allowed| match &allowed.arguments {
            Some(arguments) => *arguments == asked.arguments,
            // A decision about the tool in general was made without knowledge of these values.
            None => !asked.is_guarded,
        })
    }
}

impl Grants for Remembered {
    fn covering(&self, asked: &[Question]) -> Result<Vec<Option<String>>, String> {
        Ok(asked.iter().map(|asked| self.covers(asked).then(|| ALLOWED.to_owned())).collect())
    }

    fn take(&self, asked: &Question) -> Result<Take, String> {
        Ok(match self.covers(asked) {
            true => Take::Taken(TakenCall { by: ALLOWED.to_owned(), holds: Arc::new(|| Ok(true)) }),
            false => Take::Uncovered,
        })
    }

    fn give(&self, asked: &Question, later: LaterCalls) -> Result<(), String> {
        let arguments = (later == LaterCalls::SameArguments).then(|| asked.arguments.clone());
        let (server, tool) = (Arc::clone(&asked.server), Arc::clone(&asked.tool));
        let allowed = Allowed { server, tool, arguments };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(allowed);
        Ok(())
    }
}
