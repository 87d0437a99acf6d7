//! What the processes take over time, and whether it grows.

use std::time::Duration;

use super::processes::{Role, below, descriptors, process};

/// What they take at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Since the beginning.
    pub at: Duration,
    /// Bytes that the server has in memory.
    pub server: u64,
    /// Bytes that all workers have in memory.
    pub workers: u64,
    /// How many workers there are.
    pub worker_count: u64,
    /// Threads of the server.
    pub threads: u64,
    /// File descriptors of the server.
    pub descriptors: u64,
    /// Processes that have ended and that the server has not taken note of.
    pub zombies: u64,
}

/// The samples of a run.
#[derive(Default)]
pub struct Watch {
    samples: Vec<Sample>,
}

/// A quantity over the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trend {
    /// The first that was seen.
    pub start: u64,
    /// The median of the second fifth.
    pub early: u64,
    /// The median of the last fifth.
    pub late: u64,
    /// The last that was seen.
    pub end: u64,
    /// The most that was seen.
    pub most: u64,
    /// The most that the median of the last fifth may be.
    pub allowed: u64,
    /// False for a run that was too short to tell what grows from what is only beginning.
    pub is_judged: bool,
}

/// How much more than a tenth a quantity may grow.
const BYTES: u64 = 16 << 20;
const COUNT: u64 = 16;

/// What a server keeps for later is there after some seconds; runs shorter than this are not judged by what grows.
const JUDGED: Duration = Duration::from_secs(30);

impl Trend {
    /// False if it grew.
    pub fn is_flat(&self) -> bool {
        self.late <= self.allowed || !self.is_judged
    }
}

impl Watch {
    /// Takes a sample of the server's process; nothing where the system does not tell.
    pub fn look(&mut self, server: u32, at: Duration) -> Option<Sample> {
        let own = process(server)?;
        let family = below(server);
        let workers: Vec<u64> = family
            .iter()
            .filter(|other| other.role == Role::Worker && !other.is_zombie)
            .map(|worker| worker.resident)
            .collect();
        let sample = Sample {
            at,
            server: own.resident,
            workers: workers.iter().sum(),
            worker_count: workers.len() as u64,
            threads: own.threads,
            descriptors: descriptors(server).unwrap_or_default(),
            zombies: family.iter().filter(|other| other.is_zombie).count() as u64,
        };
        self.samples.push(sample);
        Some(sample)
    }

    /// The memory of the server.
    pub fn server(&self) -> Option<Trend> {
        self.trend(BYTES, |sample| sample.server)
    }

    /// The memory of a worker, on the average of those that there are at a time.
    pub fn worker(&self) -> Option<Trend> {
        self.trend(BYTES, |sample| sample.workers.checked_div(sample.worker_count).unwrap_or_default())
    }

    /// The number of workers.
    pub fn workers(&self) -> Option<Trend> {
        self.trend(COUNT, |sample| sample.worker_count)
    }

    /// The threads of the server.
    pub fn threads(&self) -> Option<Trend> {
        self.trend(COUNT, |sample| sample.threads)
    }

    /// The file descriptors of the server, of which each worker takes two.
    pub fn descriptors(&self) -> Option<Trend> {
        self.trend(COUNT, |sample| sample.descriptors.saturating_sub(2 * sample.worker_count))
    }

    /// Processes that the server should have taken note of.
    pub fn zombies(&self) -> Option<Trend> {
        self.trend(COUNT, |sample| sample.zombies)
    }

    fn trend(&self, slack: u64, quantity: impl Fn(&Sample) -> u64) -> Option<Trend> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let fifth = last.at / 5;
        let early = self.median(fifth, 2 * fifth, &quantity)?;
        let late = self.median(4 * fifth, last.at, &quantity)?;
        Some(Trend {
            start: quantity(first),
            early,
            late,
            end: quantity(last),
            most: self.samples.iter().map(&quantity).max().unwrap_or_default(),
            allowed: early + early / 10 + slack,
            is_judged: last.at >= JUDGED,
        })
    }

    fn median(&self, from: Duration, to: Duration, quantity: &impl Fn(&Sample) -> u64) -> Option<u64> {
        let within = self.samples.iter().filter(|sample| (from..=to).contains(&sample.at));
        let mut sorted: Vec<u64> = within.map(quantity).collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(megabytes: impl Fn(u64) -> u64) -> Watch {
        let sample = |second| Sample {
            at: Duration::from_secs(second),
            server: megabytes(second) << 20,
            threads: 10 + second,
            ..Sample::default()
        };
        Watch { samples: (0..=100).map(sample).collect() }
    }

    #[test]
    fn memory_that_grows_is_noticed() {
        let grown = watch(|second| 50 + second).server().expect("samples");
        assert_eq!((grown.start >> 20, grown.early >> 20, grown.late >> 20, grown.most >> 20), (50, 80, 140, 150));
        assert!(!grown.is_flat());
        assert!(!watch(|_| 1).threads().expect("samples").is_flat());
    }

    #[test]
    fn short_runs_are_not_judged() {
        let mut grown = watch(|second| 50 + second);
        grown.samples.truncate(25);
        assert!(grown.server().is_some_and(|trend| trend.is_flat() && trend.late > trend.early && !trend.is_judged));
    }

    #[test]
    fn memory_that_rises_at_first_or_for_a_moment_is_flat() {
        assert!(watch(|second| 50 + (2 * second).min(40)).server().expect("samples").is_flat());
        assert!(watch(|second| if second % 3 == 0 { 500 } else { 100 }).server().expect("samples").is_flat());
        assert!(Watch::default().server().is_none());
    }
}
