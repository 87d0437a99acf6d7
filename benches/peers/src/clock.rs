//! How long a piece of work takes: on the clock, and of the processors.

use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Begins when work does.
pub struct Stopwatch {
    started: Instant,
    worked: Duration,
}

/// How long work took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// On the clock.
    pub wall: Duration,
    /// Of all the processors together, by all threads of this process.
    pub cpu: Duration,
}

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Stopwatch {
        Stopwatch { started: Instant::now(), worked: worked() }
    }

    /// What has been taken since.
    pub fn taken(&self) -> Taken {
        Taken { wall: self.started.elapsed(), cpu: worked().saturating_sub(self.worked) }
    }
}

impl Taken {
    /// What each of so many pieces took.
    pub fn each(self, pieces: u32) -> Taken {
        Taken { wall: self.wall / pieces, cpu: self.cpu / pieces }
    }

    /// As the first entries of a child's record.
    pub fn record(self) -> Map<String, Value> {
        let mut record = Map::new();
        record.insert("seconds".to_string(), json!(self.wall.as_secs_f64()));
        record.insert("cpu".to_string(), json!(self.cpu.as_secs_f64()));
        record
    }
}

/// What this process has had of the processors.
fn worked() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the time that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
