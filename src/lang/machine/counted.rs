//! Calls that have changed something, or may have, while somebody counts them.

/// Whether a call has changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has.
    Made,
    /// It was sent, and its outcome is not known.
    Unknown,
}

/// A place in the order of calls: the form, the branch, and the ordinal in it.
pub type Place<'b> = (u32, &'b [u32], u32);

/// The calls that have changed something, or may have.
#[derive(Default)]
pub struct CountedCalls {
    /// The number of those who count.
    counters: u32,
    calls: Vec<(u32, Vec<u32>, u32, Change)>,
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

    /// Adds a call that was answered.
    pub(crate) fn add(&mut self, (form, branch, ordinal): Place<'_>, change: Change) {
        self.calls.push((form, branch.to_vec(), ordinal, change));
    }

    /// Returns the numbers of changes and of calls with an unknown outcome, from a call of a branch on, in that branch and
    /// in those that it has begun since.
    pub(crate) fn since(&self, (form, branch, ordinal): Place<'_>) -> (u64, u64) {
        let (mut made, mut unknown) = (0, 0);
        for (of, path, own, change) in &self.calls {
            // The branches that a branch begins take an ordinal of it.
            let at = path.get(branch.len()).unwrap_or(own);
            if *of == form && path.starts_with(branch) && *at >= ordinal {
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

    #[test]
    fn calls_are_counted_in_their_branch_and_in_those_behind_it() {
        let mut counted = CountedCalls::default();
        counted.begin();
        let calls: [(&[u32], u32, Change); 5] = [
            (&[], 0, Change::Made),
            (&[1, 0], 0, Change::Made),
            (&[1, 1], 0, Change::Unknown),
            (&[], 2, Change::Made),
            (&[7, 1], 0, Change::Made),
        ];
        calls.into_iter().for_each(|(branch, ordinal, change)| counted.add((1, branch, ordinal), change));
        assert_eq!(counted.since((1, &[], 0)), (4, 1));
        assert_eq!(counted.since((1, &[], 1)), (3, 1));
        assert_eq!(counted.since((1, &[1, 1], 0)), (0, 1));
        assert_eq!(counted.since((1, &[1, 1], 1)), (0, 0));
        assert_eq!(counted.since((2, &[], 0)), (0, 0));
        counted.end();
        assert!(!counted.are_counted());
        assert_eq!(counted.since((1, &[], 0)), (0, 0));
    }
}
