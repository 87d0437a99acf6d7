//! Resource usage of the processes over time, and whether it grows.

use std::time::Duration;

use super::processes::{Role, below, descriptors, process};

/// Resource usage at one point in time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Time since the start of the soak.
    pub at: Duration,
    /// Resident memory of the server, in bytes.
    pub server: u64,
    /// Resident memory of all workers, in bytes.
    pub workers: u64,
    /// The number of workers.
    pub worker_count: u64,
    /// Threads of the server.
    pub threads: u64,
    /// File descriptors of the server.
    pub descriptors: u64,
    /// Child processes that have ended and that the server has not reaped.
    pub zombies: u64,
}

/// The samples of a run.
#[derive(Default)]
pub struct Watch {
    samples: Vec<Sample>,
}

/// The course of a quantity over the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trend {
    /// The first sample.
    pub start: u64,
    /// The median of the second fifth.
    pub early: u64,
    /// The median of the last fifth.
    pub late: u64,
    /// The last sample.
    pub end: u64,
    /// The maximum.
    pub most: u64,
    /// The maximum permitted for the median of the last fifth.
    pub allowed: u64,
    /// False if the run was too short to distinguish growth from warm-up.
    pub is_judged: bool,
}

/// Permitted growth in addition to a tenth of the early median.
const BYTES: u64 = 16 << 20;
const COUNT: u64 = 16;

/// Minimum duration of a run whose growth is judged: caches of the server take some seconds to fill.
const JUDGED: Duration = Duration::from_secs(30);

impl Trend {
    /// False if the quantity grew by more than is allowed, in a run that is judged.
    pub fn is_flat(&self) -> bool {
        self.late <= self.allowed || !self.is_judged
    }
}

impl Watch {
    /// Takes a sample of the server and its child processes; `None` if the system does not provide the figures.
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

    /// The average memory of a worker.
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

    /// The file descriptors of the server, without the two of each worker.
    pub fn descriptors(&self) -> Option<Trend> {
        self.trend(COUNT, |sample| sample.descriptors.saturating_sub(2 * sample.worker_count))
    }

    /// Child processes that the server has not reaped.
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
