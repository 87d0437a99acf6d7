//! Back-off for restarts of a failing server: exponential after the second failed start and after the third unexpected
//! end in a row.

use std::time::{Duration, Instant};

/// A server that ran for at least this long is healthy: its end starts a new series.
const SOUND: Duration = Duration::from_secs(60);
/// Number of unexpected ends after which the server may be restarted at once; equal to the number of retries of a
/// call.
const AT_ONCE: u32 = 2;
/// Number of failed starts after which the server may be started at once: whoever asks again may have repaired it.
const FORGIVEN: u32 = 1;
/// Number of connections in a row on which no call was answered, each given up because a call broke, after which the next
/// one waits: another call may do better.
const BROKEN: u32 = 8;
/// Maximum back-off.
const LONGEST: Duration = Duration::from_secs(15);

/// The failures of a server since it was last healthy.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    bad_ends: u32,
    not_before: Option<Instant>,
    /// The connections in a row on which no call was answered.
    broken: u32,
}

impl Restarts {
    /// Records a failed start.
    pub(super) fn failed(&mut self, now: Instant) {
        self.not_before = self.bad_ends.checked_sub(FORGIVEN).map(|before| now + pause(before));
        self.bad_ends += 1;
    }

    /// Records that the server ended by itself after running for `lived`.
    pub(super) fn died(&mut self, now: Instant, lived: Duration) {
        if lived >= SOUND {
            self.bad_ends = 0;
        }
        self.not_before = self.bad_ends.checked_sub(AT_ONCE).map(|before| now + pause(before));
        self.bad_ends += 1;
    }

    /// Records that a connection was given up because a call on it broke, and whether one was answered before.
    pub(super) fn broke(&mut self, now: Instant, was_answered: bool) {
        self.broken = if was_answered { 0 } else { self.broken + 1 };
        if let Some(before) = self.broken.checked_sub(BROKEN) {
            self.not_before = Some(now + pause(before));
        }
    }

    /// The number of connections in a row that broke before a call was answered.
    pub(super) fn broken(&self) -> u32 {
        self.broken
    }

    /// The number of failed starts and unexpected ends since the server was last healthy.
    pub(super) fn bad_ends(&self) -> u32 {
        self.bad_ends
    }

    /// The remaining back-off; `None` if the server may be started now.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        self.not_before.and_then(|until| until.checked_duration_since(now)).filter(|pause| !pause.is_zero())
    }
}

/// Exponential back-off: 1 s, 2 s, 4 s and so on, up to [`LONGEST`].
fn pause(before: u32) -> Duration {
    Duration::from_secs(2u64.saturating_pow(before)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_start_is_left_alone_for_longer_and_longer() {
        let (mut restarts, mut now) = (Restarts::default(), Instant::now());
        for seconds in [0, 1, 2, 4, 8, 15, 15] {
            assert_eq!(restarts.pause(now), None);
            restarts.failed(now);
            assert_eq!(restarts.pause(now).unwrap_or_default(), Duration::from_secs(seconds));
            now += Duration::from_secs(seconds);
        }
    }

    #[test]
    fn a_server_whose_calls_all_break_is_left_alone_in_between() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        for _ in 1..BROKEN {
            restarts.broke(now, false);
            assert_eq!(restarts.pause(now), None);
        }
        restarts.broke(now, false);
        assert_eq!(restarts.pause(now), Some(Duration::from_secs(1)));
        restarts.broke(now, true);
        restarts.broke(now + Duration::from_secs(1), false);
        assert_eq!(restarts.pause(now + Duration::from_secs(1)), None);
    }

    #[test]
    fn a_server_that_dies_is_started_at_once_twice() {
        let (mut restarts, mut now) = (Restarts::default(), Instant::now());
        for seconds in [0, 0, 1, 2, 4] {
            restarts.died(now, Duration::from_secs(3));
            assert_eq!(restarts.pause(now).unwrap_or_default(), Duration::from_secs(seconds));
            now += Duration::from_secs(seconds);
        }
        restarts.died(now, SOUND);
        assert_eq!((restarts.pause(now), restarts.bad_ends()), (None, 1));
    }
}
