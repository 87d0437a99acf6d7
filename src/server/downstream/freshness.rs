//! When a server is asked for its tools once more: once its list is old, or there is reason to doubt it.
//!
//! Servers that are redeployed behind a stateless address, or reload themselves, do not say that their tools have
//! changed. A list is old after the time that the server gives (`ttlMs`), or else [`USUAL`]. It is doubted when the
//! server refuses a call as one of an unknown tool or with wrong arguments, and before a program is told that a tool or
//! an argument does not exist. Whatever the reason, it is renewed at most once per [`PAUSE`].

use std::time::{Duration, Instant};

/// Time after which a list is old, if its server does not say.
const USUAL: Duration = Duration::from_secs(300);
/// Minimum time between two renewals.
const PAUSE: Duration = Duration::from_secs(60);

/// The age of a list of tools.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    /// The time from which the list is old.
    old_from: Option<Instant>,
    is_doubted: bool,
    renewed: Option<Instant>,
}

impl Freshness {
    /// Records a list, with the time for which its server considers it fresh.
    pub(super) fn listed(&mut self, now: Instant, fresh: Option<Duration>) {
        self.old_from = now.checked_add(fresh.unwrap_or(USUAL));
        self.is_doubted = false;
    }

    /// Records an attempt to renew the list.
    pub(super) fn renewed(&mut self, now: Instant) {
        self.renewed = Some(now);
        self.is_doubted = false;
    }

    /// Doubts the list; returns whether it may be renewed now.
    pub(super) fn doubt(&mut self, now: Instant) -> bool {
        self.is_doubted = true;
        self.may_be_renewed(now)
    }

    /// Returns whether the list is to be renewed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        (self.is_doubted || self.old_from.is_some_and(|old| old <= now)) && self.may_be_renewed(now)
    }

    fn may_be_renewed(&self, now: Instant) -> bool {
        self.renewed.is_none_or(|renewed| now.saturating_duration_since(renewed) >= PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begun: Instant, seconds: u64) -> Instant {
        begun + Duration::from_secs(seconds)
    }

    #[test]
    fn a_list_is_old_after_the_time_that_its_server_gives() {
        let begun = Instant::now();
        for (fresh, seconds) in [(None, 300), (Some(20), 20), (Some(0), 0), (Some(3_600), 3_600)] {
            let mut list = Freshness::default();
            list.listed(begun, fresh.map(Duration::from_secs));
            assert!(seconds == 0 || !list.is_due(after(begun, seconds - 1)), "{fresh:?}");
            assert!(list.is_due(after(begun, seconds)), "{fresh:?}");
        }
        let mut endless = Freshness::default();
        endless.listed(begun, Some(Duration::MAX));
        assert!(!endless.is_due(after(begun, 1_000_000)));
    }

    #[test]
    fn a_list_is_renewed_once_a_minute_whatever_the_reason() {
        let begun = Instant::now();
        let mut list = Freshness::default();
        list.listed(begun, Some(Duration::ZERO));
        assert!(list.doubt(begun), "the first list of a connection is no renewal");
        list.renewed(begun);
        list.listed(begun, Some(Duration::ZERO));
        assert!(!list.is_due(after(begun, 59)) && !list.doubt(after(begun, 59)));
        assert!(list.is_due(after(begun, 60)), "it is still doubted");
        list.renewed(after(begun, 60));
        assert!(!list.is_due(after(begun, 119)), "an attempt that fails counts as well");
        assert!(list.is_due(after(begun, 120)));
    }
}
