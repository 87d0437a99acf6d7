//! Calls that have changed something, or may have, while somebody counts them.

use crate::host::{CallId, ToolErrorKind, ToolHints, ToolReply};

/// Whether a call has changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Made,
    Unknown,
}

/// The calls that have changed something, or may have.
#[derive(Default)]
pub struct CountedCalls {
    /// The number of those who count.
    counters: u32,
    calls: Vec<(CallId, Change)>,
}

impl CountedCalls {
    /// Begins to count, if nobody counts yet.
    pub(crate) fn begin(&mut self) {
        self.counters += 1;
    }

    /// Ends what [`begin`](CountedCalls::begin) has begun.
    pub(crate) fn end(&mut self) {
        self.counters = self.counters.saturating_sub(1);
        if self.counters == 0 {
            self.calls = Vec::new();
        }
    }

    /// True while somebody counts.
    pub(crate) fn are_counted(&self) -> bool {
        self.counters > 0
    }

    /// Adds a call that was answered. One that does no harm if it is made again changes nothing that has to be known.
    pub(crate) fn add(&mut self, id: &CallId, hints: &ToolHints, reply: &ToolReply, was_sent: bool) {
        if hints.read_only == Some(true) || hints.idempotent == Some(true) {
            return;
        }
        let change = match reply {
            ToolReply::Json(_) | ToolReply::Text(_) | ToolReply::Marked(_) => Change::Made,
            ToolReply::Error(error) => match error.kind {
                ToolErrorKind::TooLarge => Change::Made,
                ToolErrorKind::Timeout | ToolErrorKind::Unavailable | ToolErrorKind::Panicked if was_sent => {
                    Change::Unknown
                }
                _ => return,
            },
            _ => return,
        };
        self.calls.push((id.clone(), change));
    }

    /// Returns the numbers of changes and of calls with an unknown outcome, from a call of a branch on, in that branch and
    /// in those that it has begun since.
    pub(crate) fn since(&self, from: &CallId) -> (u64, u64) {
        let depth = from.branch.len();
        let (mut made, mut unknown) = (0, 0);
        for (id, change) in &self.calls {
            let is_in = id.form == from.form && id.branch.starts_with(&from.branch);
            let at = id.branch.get(depth).copied().unwrap_or(id.ordinal);
            if is_in && at >= from.ordinal {
                match change {
                    Change::Made => made += 1,
                    Change::Unknown => unknown += 1,
                }
            }
        }
        (made, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ToolError;

    fn id(branch: &[u32], ordinal: u32) -> CallId {
        CallId { form: 1, branch: branch.to_vec(), ordinal }
    }

    #[test]
    fn calls_are_counted_in_their_branch_and_in_those_behind_it() {
        let mut counted = CountedCalls::default();
        counted.begin();
        let made = ToolReply::Text("ok".to_owned());
        let lost = ToolReply::Error(ToolError::new(ToolErrorKind::Timeout, "no answer"));
        let refused = ToolReply::Error(ToolError::new(ToolErrorKind::Failed, "no"));
        let hints = ToolHints::default();
        for (call, reply) in [
            (id(&[], 0), &made),
            (id(&[1, 0], 0), &made),
            (id(&[1, 1], 0), &lost),
            (id(&[1, 1], 1), &refused),
            (id(&[], 2), &made),
            (id(&[7, 1], 0), &made),
        ] {
            counted.add(&call, &hints, reply, true);
        }
        assert_eq!(counted.since(&id(&[], 0)), (4, 1));
        assert_eq!(counted.since(&id(&[], 1)), (3, 1));
        assert_eq!(counted.since(&id(&[1, 1], 0)), (0, 1));
        assert_eq!(counted.since(&id(&[1, 1], 1)), (0, 0));
        let reads = ToolHints { read_only: Some(true), ..ToolHints::default() };
        counted.add(&id(&[], 9), &reads, &made, true);
        counted.add(&id(&[], 10), &hints, &lost, false);
        assert_eq!(counted.since(&id(&[], 9)), (0, 0));
        counted.end();
        assert!(!counted.are_counted());
        assert_eq!(counted.since(&id(&[], 0)), (0, 0));
    }
}
