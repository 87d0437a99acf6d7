//! The ledger of an evaluation: fuel, memory, depth, time, tool calls.
//!
//! Fuel is counted down from a small grant, so that the evaluator pays one subtraction per step. When the grant is
//! used up, the meter checks all other limits as well (memory, time, cancellation) and issues the next grant. All
//! branches of an evaluation share one ledger.

mod account;
mod allocator;
mod clock;
mod limits;
mod owed;
mod residence;

pub use account::Account;
pub(crate) use account::Outside;
pub use account::outside;
pub use allocator::{Metered, is_installed};
pub(crate) use allocator::{balance, highest_since, mark, set_balance};
use clock::Clock;
pub use limits::{Limits, parse_size};
pub(crate) use owed::{not_owed, owe};
pub use residence::Residence;
pub(crate) use residence::Watch;
use residence::Watched;

use crate::error::Halt;
use crate::host::HostAccess;
use crate::value::release;
use std::sync::Arc;
use std::time::Duration;

/// Steps between two checks of memory, time and cancellation.
const GRANT: u64 = 512;

/// Maximum number of steps that a single operation may cost. Limits are not checked during an operation: this bound
/// amounts to some 25 ms of arithmetic on numbers of some 75,000 digits. A higher `fuel` limit allows more
/// operations, not larger ones.
const LARGEST: u64 = 50_000_000;

/// The consumption of an evaluation, and its limits.
pub struct Meter {
    /// The limits in force.
    pub limits: Limits,
    /// False if the process does not count memory and has explicitly opted out of it.
    pub memory_counted: bool,
    /// Steps left of the grant; a negative number makes a check due.
    ticks: i64,
    /// Total number of steps granted.
    granted: u64,
    /// The number of bytes that the host kept for the evaluation at the last check.
    held: u64,
    /// The maximum number of live bytes observed.
    pub peak_memory: u64,
    /// The maximum nesting of calls observed.
    pub peak_depth: u32,
    /// The number of tool calls made.
    pub calls: u32,
    clock: Clock,
    /// The monitor of the memory that the process takes, if that is known.
    watched: Option<Watched>,
}

impl Meter {
    /// Creates a ledger with nothing spent; its time starts now.
    pub fn new(limits: Limits, memory_counted: bool, now: Duration) -> Meter {
        let granted = GRANT.min(limits.fuel);
        Meter {
            limits,
            memory_counted,
            ticks: granted as i64,
            granted,
            held: 0,
            peak_memory: 0,
            peak_depth: 0,
            calls: 0,
            clock: Clock::new(now),
            watched: None,
        }
    }

    /// Starts to monitor the memory of the process. The account holds `held` bytes now.
    pub(crate) fn watch(&mut self, watch: Arc<Watch>, held: i64) {
        self.watched = Some(Watched::new(watch, held, self.clock.started()));
    }

    /// Ends the evaluation of this ledger.
    pub(crate) fn close(&mut self) {
        self.watched = None;
    }

    /// Charges fuel for steps. Returns true if a [`look`](Meter::look) is due or if some thread may owe a
    /// large amount.
    #[inline]
    #[must_use]
    pub fn pay(&mut self, steps: u64) -> bool {
        self.ticks = self.ticks.saturating_sub_unsigned(steps);
        self.ticks < 0 || owed::is_due()
    }

    /// Charges the steps that this thread owes. Returns true if a check is due.
    #[must_use]
    pub fn pay_debts(&mut self) -> bool {
        self.ticks = self.ticks.saturating_sub_unsigned(owed::collect());
        self.ticks < 0
    }

    /// Charges fuel for one step. Returns true if a check is due; does not consider steps owed.
    #[inline(always)]
    #[must_use]
    pub fn pay_one(&mut self) -> bool {
        self.ticks = self.ticks.wrapping_sub(1);
        self.ticks < 0
    }

    /// The number of steps spent.
    pub fn fuel_spent(&self) -> u64 {
        self.granted.saturating_add_signed(self.ticks.saturating_neg())
    }

    /// Continues a run that has spent this much fuel and made so many calls.
    pub(crate) fn resume(&mut self, fuel: u64, calls: u32) {
        (self.granted, self.ticks, self.calls) = (fuel, 0, calls);
    }

    /// Checks all limits and issues the next grant.
    #[cold]
    #[inline(never)]
    pub fn look(&mut self, host: &HostAccess) -> Result<(), Halt> {
        let looked = self.look_at_all(host);
        if looked.is_ok() {
            release::more();
        } else {
            release::hold();
        }
        looked
    }

    fn look_at_all(&mut self, host: &HostAccess) -> Result<(), Halt> {
        // Keeps `pay_one` far from wrapping around.
        self.ticks = self.ticks.max(i64::MIN / 2);
        let spent = self.fuel_spent();
        let at_once = self.ticks.min(0).unsigned_abs();
        if at_once > LARGEST && spent <= self.limits.fuel {
            let allowed = format!("{LARGEST} steps in one operation");
            return Err(limit("fuel", allowed, format!("{at_once} steps")));
        }
        if spent > self.limits.fuel {
            // Steps that were not granted were not executed either, so report the limit as spent.
            self.ticks = 0;
            self.granted = spent;
            return Err(limit("fuel", format!("{} steps", self.limits.fuel), format!("{spent} steps")));
        }
        let grant = GRANT.min(self.limits.fuel - spent);
        self.granted = spent + grant;
        self.ticks = grant as i64;
        self.held = host.held();
        self.check_memory(0, host)?;
        self.check_time(host)
    }

    /// Returns whether `more` bytes fit within the memory limit.
    pub fn has_room(&self, more: u64) -> bool {
        !self.memory_counted || live().saturating_add(more).saturating_add(self.held) <= self.limits.memory
    }

    /// Checks the memory limit as if `more` additional bytes were allocated.
    pub fn check_memory(&mut self, more: u64, host: &HostAccess) -> Result<(), Halt> {
        let more = more.saturating_add(self.held);
        let mut live = live();
        self.peak_memory = self.peak_memory.max(live.min(self.limits.memory));
        if !self.memory_counted || live.saturating_add(more) <= self.limits.memory {
            return Ok(());
        }
        // Garbage whose drop is deferred does not count.
        self.drop_aside(host)?;
        live = self::live();
        self.peak_memory = self.peak_memory.max(live);
        if live.saturating_add(more) > self.limits.memory {
            release::hold();
            return Err(limit("memory", bytes(self.limits.memory), wanted(live.saturating_add(more))));
        }
        Ok(())
    }

    /// Drops all garbage whose drop was deferred.
    pub fn drop_aside(&mut self, host: &HostAccess) -> Result<(), Halt> {
        while release::more() {
            self.check_time(host)?;
        }
        Ok(())
    }

    /// Checks cancellation, the time limits and the memory of the process.
    pub fn check_time(&mut self, host: &HostAccess) -> Result<(), Halt> {
        if host.cancelled() {
            return Err(Halt::Cancelled);
        }
        let now = host.monotonic();
        let total = self.clock.total(now);
        if total > self.limits.total {
            return Err(limit("total", time(self.limits.total), time(total)));
        }
        let compute = self.clock.computed(now, self.limits.compute, || host.processor_time());
        if compute > self.limits.compute {
            return Err(limit("compute", time(self.limits.compute), time(compute)));
        }
        match &mut self.watched {
            Some(watched) => watched.look(now, balance(), self.peak_memory, self.limits.memory),
            None => Ok(()),
        }
    }

    /// The time left until the total deadline.
    pub fn remaining(&self, now: Duration) -> Duration {
        self.limits.total.saturating_sub(self.clock.total(now))
    }

    /// Records time spent waiting for the host while no branch could run.
    pub fn wait(&mut self, time: Duration) {
        self.clock.wait(time);
    }

    /// Returns the time that has passed, and the part of it in which the evaluation computed.
    pub fn times(&mut self, host: &HostAccess) -> (Duration, Duration) {
        let now = host.monotonic();
        (self.clock.total(now), self.clock.computed(now, Duration::MAX, || host.processor_time()))
    }

    /// Records a tool call, and checks the limit on their number.
    pub fn call(&mut self) -> Result<(), Halt> {
        if self.calls >= self.limits.calls {
            let allowed = format!("{} tool calls", self.limits.calls);
            return Err(limit("calls", allowed, format!("{} tool calls", self.calls + 1)));
        }
        self.calls += 1;
        Ok(())
    }

    /// Takes back a call that was not made after all.
    pub fn give_back_call(&mut self) {
        self.calls = self.calls.saturating_sub(1);
    }

    /// The halt for a program nested too deeply: beyond the limit, or beyond the capacity of the stack.
    #[cold]
    pub fn too_deep(&self, depth: u32) -> Halt {
        let most = self.limits.depth;
        let room = if depth < most { ", as far as the stack allows" } else { "" };
        limit("depth", format!("{most} nested calls{room}"), format!("{depth} nested calls"))
    }
}

/// Live bytes of the account that is open on this thread.
pub(crate) fn live() -> u64 {
    u64::try_from(balance()).unwrap_or(0)
}

/// Creates the halt for an exceeded limit.
pub fn limit(name: &'static str, allowed: String, spent: String) -> Halt {
    Halt::Limit { name, allowed, spent }
}

/// Formats the number of bytes that a program wants. Numbers beyond every machine only say how many items it asked for.
fn wanted(count: u64) -> String {
    const MOST: u64 = 1 << 50;
    if count > MOST { format!("more than {}", bytes(MOST)) } else { bytes(count) }
}

/// Formats a number of bytes: `64 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| count >= *size) {
        Some((size, name)) if count.is_multiple_of(*size) => format!("{} {name}", count / size),
        Some((size, name)) => format!("{:.1} {name}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}

/// Formats a duration: `5 s`, `250 ms`.
pub fn time(time: Duration) -> String {
    if time >= Duration::from_secs(1) {
        let seconds = format!("{:.1}", time.as_secs_f64());
        format!("{} s", seconds.trim_end_matches(".0"))
    } else {
        format!("{} ms", time.as_millis())
    }
}
