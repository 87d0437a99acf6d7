//! Calls that have changed something, or may have, while somebody counts them.

/// A place in the order of calls: the form, the branch, and the ordinal in it.
pub type Place<'b> = (u32, &'b [u32], u32);

/// The calls that have changed something, or may have.
#[derive(Default)]
pub struct CountedCalls {
    /// The number of those who count.
    counters: u32,
    /// The form, the branch and the ordinal of each, and whether its outcome is known.
    calls: Vec<(u32, Vec<u32>, u32, bool)>,
}

impl CountedCalls {
    /// Begins to count, or goes on for one more counter.
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

    /// Adds a call that was answered, or of which it is not known whether it was carried out.
    pub(crate) fn add(&mut self, (form, branch, ordinal): Place<'_>, is_known: bool) {
        self.calls.push((form, branch.to_vec(), ordinal, is_known));
    }

    /// Returns the numbers of changes and of calls with an unknown outcome, from a call of a branch on, in that branch and
    /// in those that it has begun since.
    pub(crate) fn since(&self, (form, branch, ordinal): Place<'_>) -> (u64, u64) {
        let (mut made, mut unknown) = (0, 0);
        for (of, path, own, is_known) in &self.calls {
            // The branches that a branch begins take an ordinal of it.
            let at = path.get(branch.len()).unwrap_or(own);
            if *of == form && path.starts_with(branch) && *at >= ordinal {
                *(if *is_known { &mut made } else { &mut unknown }) += 1;
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
        let calls: [(&[u32], u32, bool); 5] =
            [(&[], 0, true), (&[1, 0], 0, true), (&[1, 1], 0, false), (&[], 2, true), (&[7, 1], 0, true)];
        calls.into_iter().for_each(|(branch, ordinal, is_known)| counted.add((1, branch, ordinal), is_known));
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
