//! Clocks and sources of random numbers for hosts: those of the operating system, and predictable ones for tests.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clocks of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this type is the clock that hosts hand to programs")]
impl SystemClock {
    /// Returns the time of day, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn now_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the time since the first call in this process.
    pub fn monotonic(&self) -> Duration {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        BEGUN.get_or_init(Instant::now).elapsed()
    }
}

/// Random numbers seeded by the operating system. They are sufficient for sampling and shuffling, but not for secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl OsRandom {
    /// Returns 64 random bits.
    pub fn bits(&self) -> u64 {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        RandomState::new().hash_one(CALLS.fetch_add(1, Ordering::Relaxed))
    }
}

/// Random numbers that are the same in each run with the same seed.
///
/// ```
/// use lispbox::lang::SeededRandom;
/// assert_eq!(SeededRandom::new(7).bits(), SeededRandom::new(7).bits());
/// ```
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, SeededRandom, World};
///
/// let drawn = || {
///     let world = World::default().random(SeededRandom::new(7));
///     let mut session = Engine::builder().build().unwrap().session();
///     session.run("(rand-int 1000)").eval::<u32>(&world).unwrap().done().unwrap()
/// };
/// assert_eq!(drawn(), drawn());
/// ```
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// Creates a source with that seed.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(AtomicU64::new(seed))
    }

    /// Returns the next 64 bits, by SplitMix64.
    pub fn bits(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// A clock that moves only when it is told to.
///
/// ```
/// use lispbox::lang::TestClock;
/// use std::time::Duration;
///
/// let clock = TestClock::at_millis(1_700_000_000_000);
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now_millis(), 1_700_000_060_000);
/// ```
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, TestClock, World};
/// use std::{sync::Arc, time::Duration};
///
/// let clock = Arc::new(TestClock::at_millis(0));
/// let world = World::default().clock(clock.clone());
/// let mut session = Engine::builder().build().unwrap().session();
/// clock.advance(Duration::from_secs(1));
/// let now = session.run("(System/currentTimeMillis)").eval::<i64>(&world).unwrap();
/// assert_eq!(now.done(), Some(1_000));
/// ```
#[derive(Debug)]
pub struct TestClock {
    begun_millis: i64,
    passed_nanos: AtomicU64,
}

impl TestClock {
    /// Creates a clock that shows this time of day, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn at_millis(millis: i64) -> TestClock {
        TestClock { begun_millis: millis, passed_nanos: AtomicU64::new(0) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.passed_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the time of day, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn now_millis(&self) -> i64 {
        let passed = i64::try_from(self.monotonic().as_millis()).unwrap_or(i64::MAX);
        self.begun_millis.saturating_add(passed)
    }

    /// Returns the time that has passed since the clock was created.
    pub fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.passed_nanos.load(Ordering::Relaxed))
    }
}
