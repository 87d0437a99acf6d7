//! The ledger of an evaluation: steps, memory, depth, time, tool calls.
//!
//! Steps are counted down from a small grant, so that the evaluator pays one subtraction for each; when
//! the grant is used up the meter looks at everything else as well (memory, time, cancellation) and
//! hands out the next. All of it is one ledger for all branches of an evaluation.

mod account;
mod allocator;
mod limits;
mod owed;
mod residence;

pub use account::Account;
pub(crate) use account::outside;
pub(crate) use allocator::balance;
pub use allocator::{Metered, is_installed};
pub use limits::{Limits, parse_size};
pub(crate) use owed::owe;
pub use residence::Residence;
pub(crate) use residence::Watch;
use residence::Watched;

use crate::lang::error::Halt;
use crate::lang::host::Host;
use crate::lang::value::release;
use std::sync::Arc;
use std::time::Duration;

/// Steps between two looks at memory, time and cancellation.
const GRANT: u64 = 512;

/// The most steps that one operation may cost, which is what nobody looks at while it goes on: some 25 ms
/// of arithmetic on numbers of some 75,000 digits. Whoever raises `fuel` beyond it gets more operations.
const LARGEST: u64 = 50_000_000;

/// What has been spent of which limits.
pub struct Meter {
    /// The limits in force.
    pub limits: Limits,
    /// False where the process keeps no count of memory and said that it need not.
    pub memory_counted: bool,
    /// Steps left of the grant; below zero it is time to look.
    ticks: i64,
    /// Steps handed out.
    granted: u64,
    /// The most live bytes seen.
    pub peak_memory: u64,
    /// The deepest nesting of calls seen.
    pub peak_depth: u32,
    /// Tool calls made.
    pub calls: u32,
    started: Duration,
    /// Time spent waiting for the host.
    waited: Duration,
    /// What the process takes meanwhile, where that is known.
    watched: Option<Watched>,
}

impl Meter {
    /// A ledger with nothing spent, beginning now.
    pub fn new(limits: Limits, memory_counted: bool, now: Duration) -> Meter {
        let granted = GRANT.min(limits.fuel);
        Meter {
            limits,
            memory_counted,
            ticks: granted as i64,
            granted,
            peak_memory: 0,
            peak_depth: 0,
            calls: 0,
            started: now,
            waited: Duration::ZERO,
            watched: None,
        }
    }

    /// Looks from now on at what the process takes, too; the account holds `held` bytes now.
    pub(crate) fn watch(&mut self, watch: Arc<Watch>, held: i64) {
        self.watched = Some(Watched::new(watch, held, self.started));
    }

    /// Ends the evaluation whose ledger this is.
    pub(crate) fn close(&mut self) {
        self.watched = None;
    }

    /// Pays for steps; true when it is time to [`look`](Meter::look), or when much may be [owed](owe).
    #[inline]
    #[must_use]
    pub fn pay(&mut self, steps: u64) -> bool {
        self.ticks = self.ticks.saturating_sub_unsigned(steps);
        self.ticks < 0 || owed::is_due()
    }

    /// Pays what is owed; true when it is time to look.
    #[must_use]
    pub fn pay_debts(&mut self) -> bool {
        self.ticks = self.ticks.saturating_sub_unsigned(owed::collect());
        self.ticks < 0
    }

    /// Pays for one step, likewise.
    #[inline(always)]
    #[must_use]
    pub fn pay_one(&mut self) -> bool {
        self.ticks = self.ticks.wrapping_sub(1);
        self.ticks < 0
    }

    /// Steps spent.
    pub fn fuel_spent(&self) -> u64 {
        self.granted.saturating_add_signed(self.ticks.saturating_neg())
    }

    /// Looks at every limit and hands out the next grant.
    #[cold]
    #[inline(never)]
    pub fn look(&mut self, host: &dyn Host) -> Result<(), Halt> {
        let looked = self.look_at_all(host);
        if looked.is_ok() {
            release::more();
        } else {
            release::hold();
        }
        looked
    }

    fn look_at_all(&mut self, host: &dyn Host) -> Result<(), Halt> {
        // Far from where `pay_one` would go round.
        self.ticks = self.ticks.max(i64::MIN / 2);
        let spent = self.fuel_spent();
        let at_once = self.ticks.min(0).unsigned_abs();
        if at_once > LARGEST && spent <= self.limits.fuel {
            let allowed = format!("{LARGEST} steps in one operation");
            return Err(limit("fuel", allowed, format!("{at_once} steps")));
        }
        if spent > self.limits.fuel {
            // What was not granted was not worked off either: report the limit as spent.
            self.ticks = 0;
            self.granted = spent;
            return Err(limit("fuel", format!("{} steps", self.limits.fuel), format!("{spent} steps")));
        }
        let grant = GRANT.min(self.limits.fuel - spent);
        self.granted = spent + grant;
        self.ticks = grant as i64;
        self.check_memory(0, host)?;
        self.check_time(host)
    }

    /// True if so many bytes more are within the memory limit.
    pub fn has_room(&self, more: u64) -> bool {
        !self.memory_counted || live().saturating_add(more) <= self.limits.memory
    }

    /// Checks the memory limit as if `more` bytes were taken.
    pub fn check_memory(&mut self, more: u64, host: &dyn Host) -> Result<(), Halt> {
        let mut live = live();
        self.peak_memory = self.peak_memory.max(live.min(self.limits.memory));
        if !self.memory_counted || live.saturating_add(more) <= self.limits.memory {
            return Ok(());
        }
        // What was let go of and not dropped yet does not count.
        self.drop_aside(host)?;
        live = self::live();
        self.peak_memory = self.peak_memory.max(live);
        if live.saturating_add(more) > self.limits.memory {
            release::hold();
            return Err(limit("memory", bytes(self.limits.memory), bytes(live.saturating_add(more))));
        }
        Ok(())
    }

    /// Drops all that was let go of and put aside.
    pub fn drop_aside(&mut self, host: &dyn Host) -> Result<(), Halt> {
        while release::more() {
            self.check_time(host)?;
        }
        Ok(())
    }

    /// Checks the time limits and asks the host whether to go on.
    pub fn check_time(&mut self, host: &dyn Host) -> Result<(), Halt> {
        if host.cancelled() {
            return Err(Halt::Cancelled);
        }
        let now = host.monotonic();
        let total = now.saturating_sub(self.started);
        if total > self.limits.total {
            return Err(limit("total", time(self.limits.total), time(total)));
        }
        let compute = total.saturating_sub(self.waited);
        if compute > self.limits.compute {
            return Err(limit("compute", time(self.limits.compute), time(compute)));
        }
        match &mut self.watched {
            Some(watched) => watched.look(now, balance(), self.peak_memory, self.limits.memory),
            None => Ok(()),
        }
    }

    /// Time left of the total.
    pub fn remaining(&self, now: Duration) -> Duration {
        self.limits.total.saturating_sub(now.saturating_sub(self.started))
    }

    /// Notes time spent waiting for the host while no branch could run.
    pub fn wait(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Wall-clock time, and that less the waiting.
    pub fn times(&self, now: Duration) -> (Duration, Duration) {
        let total = now.saturating_sub(self.started);
        (total, total.saturating_sub(self.waited))
    }

    /// Notes one more tool call.
    pub fn call(&mut self) -> Result<(), Halt> {
        if self.calls >= self.limits.calls {
            let allowed = format!("{} tool calls", self.limits.calls);
            return Err(limit("calls", allowed, format!("{} tool calls", self.calls + 1)));
        }
        self.calls += 1;
        Ok(())
    }

    /// The halt of a program nested too deeply: as deep as the limit says, or deeper than the stack has room for.
    #[cold]
    pub fn too_deep(&self, depth: u32) -> Halt {
        let most = self.limits.depth;
        let room = if depth < most { ", and no more than the stack has room for" } else { "" };
        limit("depth", format!("{most} nested calls{room}"), format!("{depth} nested calls"))
    }
}

/// Live bytes of the account on this thread.
pub(crate) fn live() -> u64 {
    u64::try_from(balance()).unwrap_or(0)
}

/// The halt of that limit.
pub fn limit(name: &'static str, allowed: String, spent: String) -> Halt {
    Halt::Limit { name, allowed, spent }
}

/// A number of bytes as limits are written: `64 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| count >= *size) {
        Some((size, name)) if count.is_multiple_of(*size) => format!("{} {name}", count / size),
        Some((size, name)) => format!("{:.1} {name}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}

/// A time as limits are written: `5 s`, `250 ms`.
pub fn time(time: Duration) -> String {
    if time >= Duration::from_secs(1) {
        let seconds = format!("{:.1}", time.as_secs_f64());
        format!("{} s", seconds.trim_end_matches(".0"))
    } else {
        format!("{} ms", time.as_millis())
    }
}
