//! Charges and checks of the limits, and the garbage collections that they trigger.

use super::Machine;
use crate::error::{Halt, Outcome};
use crate::value::Value;

impl Machine {
    /// Charges fuel for steps.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded or the host requests one.
    #[inline]
    pub fn charge(&mut self, steps: u64) -> Outcome<()> {
        if self.core.meter.pay(steps) { self.look() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn look(&mut self) -> Outcome<()> {
        if !self.core.meter.pay_debts() {
            // The debt belongs to another thread's evaluation.
            return Ok(());
        }
        if self.core.heap.wants_sweep() {
            self.sweep();
        }
        self.or_sweep(|machine| machine.core.meter.look(&machine.core.host))
    }

    /// Checks that `bytes` of memory may be allocated. Bulk operations call this before they allocate.
    ///
    /// # Errors
    /// Returns a halt if the memory limit does not allow it.
    pub fn reserve(&mut self, bytes: u64) -> Outcome<()> {
        self.or_sweep(|machine| machine.core.meter.check_memory(bytes, &machine.core.host))
    }

    /// Returns whether `count` values fit into a quarter of the remaining memory, so that they may be reserved
    /// speculatively.
    pub fn has_room_for(&self, count: usize) -> bool {
        let bytes = (count as u64).saturating_mul(size_of::<Value>() as u64);
        self.core.meter.has_room(bytes.saturating_mul(4))
    }

    /// Checks the deadline only, for long work that charges no fuel.
    ///
    /// # Errors
    /// Returns a halt if the time limit is exceeded or the host requests one.
    pub fn check_time(&mut self) -> Outcome<()> {
        let core = &mut *self.core;
        Ok(core.meter.check_time(&core.host)?)
    }

    /// Checks that memory for `count` values may be allocated. Counts below 64 are not checked.
    pub fn reserve_values(&mut self, count: u64) -> Outcome<()> {
        if count < 64 { Ok(()) } else { self.reserve(count.saturating_mul(size_of::<Value>() as u64)) }
    }

    /// Runs a memory check. If memory is short, drops the row numbers of the last session text and what nothing holds
    /// any more, and repeats the check; then collects cyclic garbage and repeats it once more.
    fn or_sweep(&mut self, ask: impl Fn(&mut Self) -> Result<(), Halt>) -> Outcome<()> {
        match ask(self) {
            Err(Halt::Limit { name: "memory", .. }) if !self.core.heap.is_empty() || !self.core.rows.is_empty() => {
                self.core.rows = Vec::new();
                self.core.release_unheld()?;
                match ask(self) {
                    Err(Halt::Limit { name: "memory", .. }) => {
                        let looked_at = self.sweep();
                        let _ = self.core.meter.pay(looked_at);
                        self.core.release_unheld()?;
                        Ok(ask(self)?)
                    }
                    other => Ok(other?),
                }
            }
            other => Ok(other?),
        }
    }

    /// Collects cells that are reachable only from themselves; returns the number of nodes visited. Its working
    /// memory is bounded by a quarter of the memory limit.
    ///
    /// A collection that is triggered by the number of cells charges no fuel: its timing depends on what ran before,
    /// and the step count of a program must not. The heap schedules these collections so that their cost is
    /// amortized. A collection that is triggered by a memory shortage is charged, which bounds how often a program
    /// can cause one.
    fn sweep(&mut self) -> u64 {
        let most = usize::try_from(self.core.meter.limits.memory / 4).unwrap_or(usize::MAX);
        let core = &mut *self.core;
        // Only the time limit can be exceeded here; the program then ends at the next check.
        let (meter, host) = (&mut core.meter, &core.host);
        let mut stop = || meter.check_time(host).is_err();
        core.heap.sweep(most, &mut stop)
    }
}
