//! What becomes of a call that a program before this one has made, which did not end well.

use serde_json::Value;

use crate::fields::{Wrong, wrong};

/// The treatment of a call that a program before this one has made, which did not end well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatedCalls {
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

    /// Reads `repeats`.
    pub(super) fn read(value: &Value, path: String) -> Result<RepeatedCalls, Wrong> {
        let repeats = RepeatedCalls::ALL.into_iter().find(|repeats| value.as_str() == Some(repeats.key()));
        repeats.map_or_else(|| wrong(path, "`ask`, `keep` or `make`", value), Ok)
    }

    /// Returns what becomes of such a call, as a participle.
    pub(super) fn done(self) -> &'static str {
        match self {
            RepeatedCalls::Ask => "stopped once",
            RepeatedCalls::Keep => "answered by their earlier replies",
            RepeatedCalls::Make => "made again",
        }
    }

    /// Returns the value in configurations.
    fn key(self) -> &'static str {
        match self {
            RepeatedCalls::Ask => "ask",
            RepeatedCalls::Keep => "keep",
            RepeatedCalls::Make => "make",
        }
    }
}
