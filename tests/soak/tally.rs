//! The outcomes of the requests, summed over all sessions.

use std::time::Duration;

/// Maximum number of wrong answers that are reported in full.
const TOLD: usize = 10;

/// The counts and the times.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Replies with a value.
    pub values: u64,
    /// Replies that report the limit that stopped the program.
    pub limits: u64,
    /// Replies that report an error in the program or the failure of a tool.
    pub errors: u64,
    /// Requests that were refused before anything ran.
    pub refused: u64,
    /// Replies that report the loss of the worker that ran the program.
    pub lost: u64,
    /// Replies that report that a downstream server was unavailable, or that no worker was free.
    pub unavailable: u64,
    /// Lines that have no reply.
    pub unanswerable: u64,
    /// The number of times that all contents of a session were read and were correct.
    pub looks: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// The total number of wrong answers.
    pub wrong: u64,
    /// The first wrong answers.
    pub told: Vec<Mistake>,
    latencies: Vec<f32>,
    lateness: Vec<f32>,
    freed: Vec<f32>,
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The program or message.
    pub program: String,
    /// The expected outcome.
    pub expected: String,
    /// The actual outcome.
    pub got: String,
}

/// The distribution of a set of times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The median.
    pub p50: f32,
    /// The 99th percentile.
    pub p99: f32,
    /// The maximum.
    pub max: f32,
    /// The number of times.
    pub count: usize,
}

impl Tally {
    /// The numbers of the kinds of outcomes that every soak has to see: values, limits, errors, refusals, sessions,
    /// looks.
    pub fn kinds(&self) -> [u64; 6] {
        [self.values, self.limits, self.errors, self.refused, self.sessions, self.looks]
    }

    /// Counts the outcome of a reply.
    pub fn count(&mut self, outcome: &str) {
        let place = match outcome {
            "error: WorkerLost" => &mut self.lost,
            "error: ServerUnavailable" | "error: Busy" => &mut self.unavailable,
            "error: InvalidArguments" | "error: UnknownSession" => &mut self.refused,
            other if other.starts_with("protocol: ") => &mut self.refused,
            other if other.starts_with("limit: ") => &mut self.limits,
            other if other.starts_with("error: ") => &mut self.errors,
            _ => &mut self.values,
        };
        *place += 1;
    }

    /// Records a wrong answer.
    pub fn mistake(&mut self, mistake: Mistake) {
        self.wrong += 1;
        if self.told.len() < TOLD {
            self.told.push(mistake);
        }
    }

    /// Records the latency of a good program.
    pub fn took(&mut self, time: Duration) {
        self.latencies.push(time.as_secs_f32() * 1e3);
    }

    /// Records how long after its time limit a program was stopped, in milliseconds.
    pub fn late(&mut self, milliseconds: f32) {
        self.lateness.push(milliseconds);
    }

    /// Records the time from a cancellation until the session was free.
    pub fn freed(&mut self, time: Duration) {
        self.freed.push(time.as_secs_f32() * 1e3);
    }

    /// The latency of good programs.
    pub fn latency(&self) -> Spread {
        Spread::of(&self.latencies)
    }

    /// The lateness with which programs were stopped.
    pub fn lateness(&self) -> Spread {
        Spread::of(&self.lateness)
    }

    /// The time from cancellations until the sessions were free.
    pub fn freeing(&self) -> Spread {
        Spread::of(&self.freed)
    }
}

impl Spread {
    fn of(times: &[f32]) -> Spread {
        let mut sorted = times.to_vec();
        sorted.sort_by(f32::total_cmp);
        let at = |share: f64| {
            let place = (sorted.len() as f64 * share).ceil() as usize;
            sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
        };
        Spread { p50: at(0.5), p99: at(0.99), max: at(1.0), count: sorted.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spread() {
        let times: Vec<f32> = (1..=200).rev().map(|time| time as f32).collect();
        assert_eq!(Spread::of(&times), Spread { p50: 100.0, p99: 198.0, max: 200.0, count: 200 });
        assert_eq!(Spread::of(&[]), Spread::default());
    }

    #[test]
    fn replies_are_counted_by_kind() {
        let mut tally = Tally::default();
        for outcome in ["3", "nil", "limit: fuel", "error: TypeError", "error: WorkerLost", "protocol: -32601"] {
            tally.count(outcome);
        }
        assert_eq!((tally.values, tally.limits, tally.errors, tally.lost, tally.refused), (2, 1, 1, 1, 1));
    }
}
