//! What becomes of a call that a program before this one has made, which did not end well.

use serde_json::Value;

use crate::server::fields::{Wrong, wrong};

use super::Policy;

/// The treatment of a call that a program before this one has made, which did not end well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::server) enum RepeatedCalls {
    /// The program is stopped once before it.
    #[default]
    Ask,
    /// It is answered by the reply of the earlier call, as often as that was made.
    Keep,
    /// It is made.
    Make,
}

impl RepeatedCalls {
    const ALL: [RepeatedCalls; 3] = [RepeatedCalls::Ask, RepeatedCalls::Keep, RepeatedCalls::Make];

    /// Returns the value in configurations.
    fn key(self) -> &'static str {
        match self {
            RepeatedCalls::Ask => "ask",
            RepeatedCalls::Keep => "keep",
            RepeatedCalls::Make => "make",
        }
    }
}

impl Policy {
    /// Reads `repeats`.
    pub(super) fn read_repeats(&mut self, value: &Value, path: String, file: &str) -> Result<(), Wrong> {
        let repeats = RepeatedCalls::ALL.into_iter().find(|repeats| value.as_str() == Some(repeats.key()));
        match repeats {
            Some(repeats) => self.repeats = Some((repeats, file.to_owned())),
            None => return wrong(path, "`ask`, `keep` or `make`", value),
        }
        Ok(())
    }

    /// Returns what becomes of a call that an earlier program has made.
    pub(in crate::server) fn repeated_calls(&self) -> RepeatedCalls {
        self.repeats.as_ref().map(|(repeats, _)| *repeats).unwrap_or_default()
    }
}
