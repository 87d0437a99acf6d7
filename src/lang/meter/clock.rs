//! The time of an evaluation: the time that passes, and the part of it in which the evaluation computes.
//!
//! An evaluation that has to wait for a busy machine does not compute. Where the host can measure the time for which a
//! processor has run the thread, no more than that counts. It is measured rarely: short evaluations, and those that are
//! far from their limit, need only the clock.

use std::thread::ThreadId;
use std::time::Duration;

/// Time that passes before the first measurement. It counts whether a processor ran the evaluation or not.
const UNMEASURED: Duration = Duration::from_millis(1);

/// Time that passes between two measurements, unless a limit seems to be exceeded before.
const INTERVAL: Duration = Duration::from_millis(50);

/// The clock of an evaluation.
pub(super) struct Clock {
    started: Duration,
    /// Time spent waiting for the host.
    waited: Duration,
    /// The time computed until the last measurement.
    computed: Duration,
    /// The time that had passed then, without that spent waiting for the host.
    at: Duration,
    /// The thread measured then, and its processor time.
    thread: Option<(ThreadId, Duration)>,
}

impl Clock {
    pub(super) fn new(now: Duration) -> Clock {
        let zero = Duration::ZERO;
        Clock { started: now, waited: zero, computed: zero, at: zero, thread: None }
    }

    pub(super) fn started(&self) -> Duration {
        self.started
    }

    /// The time since the start.
    pub(super) fn total(&self, now: Duration) -> Duration {
        now.saturating_sub(self.started)
    }

    /// Records time spent waiting for the host.
    pub(super) fn wait(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Returns the time computed, exactly if it exceeds `limit`. `measure` returns the processor time of this thread, if
    /// that is known.
    pub(super) fn computed(
        &mut self,
        now: Duration,
        limit: Duration,
        measure: impl FnOnce() -> Option<Duration>,
    ) -> Duration {
        let passed = self.total(now).saturating_sub(self.waited);
        let since = passed.saturating_sub(self.at);
        let interval = if self.thread.is_some() { INTERVAL } else { UNMEASURED };
        let seems = self.computed + since;
        if since < interval && seems <= limit {
            return seems;
        }
        let id = std::thread::current().id();
        let measured = measure();
        let ran = match (self.thread, measured) {
            (Some((of, before)), Some(time)) if of == id => since.min(time.saturating_sub(before)),
            _ => since,
        };
        self.thread = measured.map(|time| (id, time));
        self.computed += ran;
        self.at = passed;
        self.computed
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;
    use std::time::Duration;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn waiting_for_a_processor_is_not_computing() {
        let mut clock = Clock::new(ms(1_000));
        assert_eq!(clock.computed(ms(1_002), LIMIT, || Some(ms(70))), ms(2));
        assert_eq!(clock.computed(ms(9_000), LIMIT, || Some(ms(80))), ms(12));
        clock.wait(ms(500));
        assert_eq!(clock.computed(ms(9_600), LIMIT, || Some(ms(180))), ms(112));
        assert_eq!(clock.total(ms(9_600)), ms(8_600));
    }

    #[test]
    fn a_thread_that_runs_all_the_time_computes_all_the_time() {
        let mut clock = Clock::new(ms(0));
        for now in (10..5_010).step_by(10) {
            assert_eq!(clock.computed(ms(now), LIMIT, || Some(ms(now + 3))), ms(now));
        }
        assert!(clock.computed(ms(5_010), LIMIT, || Some(ms(5_013))) > LIMIT);
    }

    #[test]
    fn without_a_measurement_the_time_that_passes_counts() {
        let mut clock = Clock::new(ms(0));
        assert_eq!(clock.computed(ms(4_000), LIMIT, || None), ms(4_000));
        clock.wait(ms(1_000));
        assert_eq!(clock.computed(ms(7_000), LIMIT, || None), ms(6_000));
    }

    #[test]
    fn another_thread_is_measured_from_its_first_measurement_on() {
        let mut clock = Clock::new(ms(0));
        assert_eq!(clock.computed(ms(100), LIMIT, || Some(ms(9_000))), ms(100));
        let mut clock = std::thread::spawn(move || {
            assert_eq!(clock.computed(ms(200), LIMIT, || Some(ms(1))), ms(200));
            assert_eq!(clock.computed(ms(900), LIMIT, || Some(ms(2))), ms(201));
            clock
        })
        .join()
        .expect("the thread has not failed");
        assert_eq!(clock.computed(ms(1_000), LIMIT, || Some(ms(9_001))), ms(301));
    }
}
