//! What came of the requests, added up by all sessions.

use std::time::Duration;

/// How many wrong answers are told in full.
const TOLD: usize = 10;

/// The sums.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Replies with a value.
    pub values: u64,
    /// Replies that say which limit stopped the program.
    pub limits: u64,
    /// Replies that say what is wrong with the program, or which tool failed it.
    pub errors: u64,
    /// Requests that were refused before anything ran.
    pub refused: u64,
    /// Replies that say that the process was lost in which the program ran.
    pub lost: u64,
    /// Replies that say that a server behind the server was gone, or no worker could be had.
    pub unavailable: u64,
    /// Lines to which there is no reply.
    pub unanswerable: u64,
    /// Times that a session was looked at whole, and was as it should be.
    pub looks: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Wrong answers in all.
    pub wrong: u64,
    /// The first of these.
    pub told: Vec<Mistake>,
    latencies: Vec<f32>,
    lateness: Vec<f32>,
    freed: Vec<f32>,
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What was sent.
    pub program: String,
    /// What would have been right.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// How a set of times is spread, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Half of them are at most this.
    pub p50: f32,
    /// Of a hundred, one is longer.
    pub p99: f32,
    /// The longest.
    pub max: f32,
    /// How many there are.
    pub count: usize,
}

impl Tally {
    /// Takes note of what a reply was, as its outcome says.
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

    /// Takes note of a wrong answer.
    pub fn mistake(&mut self, mistake: Mistake) {
        self.wrong += 1;
        if self.told.len() < TOLD {
            self.told.push(mistake);
        }
    }

    /// Takes note of how long a good program took.
    pub fn took(&mut self, time: Duration) {
        self.latencies.push(time.as_secs_f32() * 1e3);
    }

    /// Takes note of how long after its time a program was stopped, in milliseconds.
    pub fn late(&mut self, milliseconds: f32) {
        self.lateness.push(milliseconds);
    }

    /// Takes note of how long after a withdrawal the session went on.
    pub fn freed(&mut self, time: Duration) {
        self.freed.push(time.as_secs_f32() * 1e3);
    }

    /// How long good programs took.
    pub fn latency(&self) -> Spread {
        Spread::of(&self.latencies)
    }

    /// How late programs were stopped.
    pub fn lateness(&self) -> Spread {
        Spread::of(&self.lateness)
    }

    /// How long after withdrawals the sessions went on.
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
