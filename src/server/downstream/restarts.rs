//! When a server that fails may be started again: at once after its first two ends, then later and later.

use std::time::{Duration, Instant};

/// A server that ran for so long is sound: its end is like a first one.
const SOUND: Duration = Duration::from_secs(60);
/// How often it may die and is started again at once: as often as a call is made again.
const AT_ONCE: u32 = 2;
/// It is never left alone for longer.
const LONGEST: Duration = Duration::from_secs(60);

/// The bad ends of a server, one after the other.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    bad_ends: u32,
    not_before: Option<Instant>,
}

impl Restarts {
    /// It did not start.
    pub(super) fn failed(&mut self, now: Instant) {
        self.not_before = Some(now + pause(self.bad_ends));
        self.bad_ends += 1;
    }

    /// It ended by itself after so long.
    pub(super) fn died(&mut self, now: Instant, lived: Duration) {
        if lived >= SOUND {
            self.bad_ends = 0;
        }
        self.not_before = self.bad_ends.checked_sub(AT_ONCE).map(|before| now + pause(before));
        self.bad_ends += 1;
    }

    /// How often it failed or died since it was last sound.
    pub(super) fn bad_ends(&self) -> u32 {
        self.bad_ends
    }

    /// How long it is still to be left alone.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        self.not_before.and_then(|until| until.checked_duration_since(now)).filter(|pause| !pause.is_zero())
    }
}

/// 1 s, 2 s, 4 s and so on.
fn pause(before: u32) -> Duration {
    Duration::from_secs(2u64.saturating_pow(before)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_start_is_left_alone_for_longer_and_longer() {
        let (mut restarts, mut now) = (Restarts::default(), Instant::now());
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(restarts.pause(now), None);
            restarts.failed(now);
            assert_eq!(restarts.pause(now), Some(Duration::from_secs(seconds)));
            now += Duration::from_secs(seconds);
        }
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
