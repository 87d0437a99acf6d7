//! Wall-clock time and processor time of a piece of work.

use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// A running measurement.
pub struct Stopwatch {
    started: Instant,
    worked: Duration,
}

/// The duration of a piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Wall-clock time.
    pub wall: Duration,
    /// Processor time of all threads of this process.
    pub cpu: Duration,
}

impl Stopwatch {
    /// Starts a measurement.
    pub fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), worked: worked() }
    }

    /// The time since the start.
    pub fn taken(&self) -> Taken {
        Taken { wall: self.started.elapsed(), cpu: worked().saturating_sub(self.worked) }
    }
}

impl Taken {
    /// Divides the time by a number of pieces.
    pub fn each(self, pieces: u32) -> Taken {
        Taken { wall: self.wall / pieces, cpu: self.cpu / pieces }
    }

    /// The first entries of a child's record.
    pub fn record(self) -> Map<String, Value> {
        let mut record = Map::new();
        record.insert("seconds".to_string(), json!(self.wall.as_secs_f64()));
        record.insert("cpu".to_string(), json!(self.cpu.as_secs_f64()));
        record
    }
}

/// The processor time of this process.
fn worked() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to `time`, which outlives it.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
