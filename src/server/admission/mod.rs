//! Limits the number of concurrent calls, and shares resources between principals.

pub(in crate::server) mod allowances;
pub(in crate::server) mod request;
pub(in crate::server) mod shutdown;

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allowances::Allowances;
use request::Refused;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits on the number and size of evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Maximum number of concurrent evaluations; by default twice the number of cores. If there are several principals,
    /// each has half of them, unless its [`Allowance`](super::Allowance) sets another number.
    pub running: usize,
    /// Maximum number of waiting evaluations in addition. Beyond it a call is refused as `Busy`; if there are several
    /// principals, so is a further call of a principal that would then hold more places than it leaves to the others.
    pub waiting: usize,
    /// Maximum total size of the programs and data of all these calls, in bytes. Beyond it a call is refused in the
    /// same way.
    pub texts: u64,
    /// Maximum memory that concurrent evaluations may allocate together, in bytes: the sum of their memory limits. An
    /// evaluation for which there is no room waits. If there are several principals, each has half.
    pub memory: u64,
}

impl Default for Admission {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Admission { running: 2 * cores, waiting: 64, texts: 128 << 20, memory: 2 << 30 }
    }
}

impl Admission {
    /// The maximum number of calls admitted at a time.
    pub(in crate::server) fn places(&self) -> usize {
        self.running + self.waiting
    }

    /// The maximum memory that one call may be promised.
    pub(in crate::server) fn most_memory(&self, are_several: bool) -> u64 {
        if are_several { self.memory / 2 } else { self.memory }
    }
}

/// The unit in which memory is promised.
const PIECE: u64 = 1 << 20;

/// Converts an amount of memory to units of [`PIECE`].
fn pieces(memory: u64) -> usize {
    usize::try_from(memory.div_ceil(PIECE)).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}

/// Admission control of calls.
pub(in crate::server) struct Gate {
    admission: Admission,
    allowances: Arc<Allowances>,
    admitted: Mutex<Admitted>,
    all: Share,
    /// The shares of the known principals that have made calls.
    shares: Mutex<HashMap<String, Arc<Share>>>,
}

/// The resources of one principal's concurrent evaluations.
struct Share {
    turns: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    pieces: usize,
    /// The turns and the memory with which this share was created.
    size: (usize, u64),
}

impl Share {
    fn new(turns: usize, memory: u64) -> Share {
        let pieces = pieces(memory);
        Share {
            size: (turns, memory),
            turns: Arc::new(Semaphore::new(turns.clamp(1, Semaphore::MAX_PERMITS))),
            memory: Arc::new(Semaphore::new(pieces)),
            pieces,
        }
    }

    async fn take(&self, memory: u64) -> [OwnedSemaphorePermit; 2] {
        let turn = Arc::clone(&self.turns).acquire_owned().await.expect("the turns are never closed");
        let pieces = u32::try_from(pieces(memory).min(self.pieces)).unwrap_or(u32::MAX);
        let memory = Arc::clone(&self.memory).acquire_many_owned(pieces).await.expect("the memory is never closed");
        [turn, memory]
    }
}

/// The calls that have been admitted and have not ended.
#[derive(Default)]
struct Admitted {
    all: Load,
    by_principal: HashMap<String, Load>,
}

#[derive(Clone, Copy, Default)]
struct Load {
    calls: usize,
    texts: u64,
}

/// The place of one admitted call; released when it is dropped.
pub(in crate::server) struct AdmissionSlot<'g> {
    gate: &'g Gate,
    principal: String,
    texts: u64,
}

impl Drop for AdmissionSlot<'_> {
    fn drop(&mut self) {
        let mut admitted = self.gate.admitted();
        admitted.all.calls -= 1;
        admitted.all.texts -= self.texts;
        if let Some(own) = admitted.by_principal.get_mut(&self.principal) {
            own.calls -= 1;
            own.texts -= self.texts;
            if own.calls == 0 {
                admitted.by_principal.remove(&self.principal);
            }
        }
    }
}

/// The room to run in; released when it is dropped.
pub(in crate::server) struct RunPermit {
    _own: Option<[OwnedSemaphorePermit; 2]>,
    _all: [OwnedSemaphorePermit; 2],
}

impl Gate {
    pub(in crate::server) fn new(admission: Admission, allowances: Arc<Allowances>) -> Gate {
        let all = Share::new(admission.running, admission.memory);
        Gate { admission, allowances, admitted: Mutex::default(), all, shares: Mutex::default() }
    }

    /// Returns the share of a known principal, with the size that the operator currently sets.
    fn share(&self, principal: &str) -> Option<Arc<Share>> {
        let allowance = self.allowances.find(principal)?;
        let several = self.allowances.are_of_several();
        let turns = match allowance.evaluations {
            Some(count) => count,
            None if several => self.admission.running / 2,
            None => self.admission.running,
        };
        let size = (turns, self.admission.most_memory(several));
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        match shares.get(principal).filter(|share| share.size == size) {
            Some(share) => Some(Arc::clone(share)),
            None => {
                let share = Arc::new(Share::new(size.0, size.1));
                shares.insert(principal.to_owned(), Arc::clone(&share));
                Some(share)
            }
        }
    }

    fn admitted(&self) -> MutexGuard<'_, Admitted> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers of running and of waiting calls.
    pub(in crate::server) fn load(&self) -> (usize, usize) {
        let all = self.admitted().all.calls;
        let running = self.admission.running.saturating_sub(self.all.turns.available_permits()).min(all);
        (running, all - running)
    }

    /// Admits a call with `texts` bytes of program and data.
    ///
    /// # Errors
    /// Refuses with `Busy`, naming the limit that was exceeded.
    pub(in crate::server) fn admit(&self, principal: &str, texts: u64) -> Result<AdmissionSlot<'_>, Refused> {
        let (places, most) = (self.admission.places(), self.admission.texts);
        let mut admitted = self.admitted();
        let all = admitted.all;
        let own = admitted.by_principal.get(principal).copied().unwrap_or_default();
        let busy = |what: String| Err(Refused::new("Busy", format!("{what}; try again in a moment")));
        if all.calls >= places {
            return busy(format!("{} evaluations are running or waiting, the maximum for this server", all.calls));
        }
        // A single call is bounded by the maximum message size.
        if all.calls > 0 && all.texts + texts > most {
            return busy(format!(
                "the programs and data of {} running or waiting evaluations have {} MiB, and this one would exceed \
                 the maximum for this server",
                all.calls,
                all.texts >> 20
            ));
        }
        if self.allowances.are_of_several() && own.calls > 0 {
            if own.calls + 1 > places - all.calls - 1 {
                return busy(format!(
                    "{} evaluations of `{principal}` are running or waiting, and it must leave as much room for others",
                    own.calls
                ));
            }
            if own.texts + texts > most - all.texts - texts {
                return busy(format!(
                    "the programs and data of the {} running or waiting evaluations of `{principal}` have {} MiB, and \
                     it must leave as much room for others",
                    own.calls,
                    own.texts >> 20
                ));
            }
        }
        let after = |load: Load| Load { calls: load.calls + 1, texts: load.texts + texts };
        admitted.all = after(all);
        admitted.by_principal.insert(principal.to_owned(), after(own));
        Ok(AdmissionSlot { gate: self, principal: principal.to_owned(), texts })
    }

    /// Waits for room to run an evaluation with that memory limit: first within the share of its principal, so that a
    /// principal's waiting calls do not block others, then among all.
    pub(in crate::server) async fn room(&self, principal: &str, memory: u64) -> RunPermit {
        let memory = memory.min(self.admission.most_memory(self.allowances.are_of_several()));
        let own = match self.share(principal) {
            Some(share) => Some(share.take(memory).await),
            None => None,
        };
        RunPermit { _own: own, _all: self.all.take(memory).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Allowance;
    use futures::FutureExt;

    fn gate(principals: &[(&str, Option<usize>)]) -> Gate {
        let mut allowances = Allowances::default();
        for (name, evaluations) in principals {
            allowances.insert(name, Allowance { evaluations: *evaluations, ..Allowance::default() });
        }
        Gate::new(Admission { running: 4, waiting: 16, texts: 1_000, memory: 64 << 20 }, Arc::new(allowances))
    }

    /// Fills the gate with calls of a principal, of `texts` bytes each. Returns their places and the refusal of the
    /// next call.
    fn filled<'g>(gate: &'g Gate, principal: &str, texts: u64) -> (Vec<AdmissionSlot<'g>>, String) {
        let mut places = Vec::new();
        loop {
            match gate.admit(principal, texts) {
                Ok(place) => places.push(place),
                Err(refused) => return (places, refused.message),
            }
        }
    }

    #[test]
    fn alone_a_principal_has_all_there_is() {
        let gate = gate(&[]);
        let (places, message) = filled(&gate, "one", 1);
        assert_eq!(places.len(), 20);
        assert_eq!(
            message,
            "20 evaluations are running or waiting, the maximum for this server; try again in a moment"
        );
        drop(places);
        let mut rooms = Vec::new();
        while let Some(room) = gate.room("one", 1 << 20).now_or_never() {
            rooms.push(room);
        }
        assert_eq!(rooms.len(), 4);
    }

    #[test]
    fn among_several_each_leaves_as_much_as_it_has() {
        let gate = gate(&[("one", None), ("two", None), ("three", None)]);
        let (one, message) = filled(&gate, "one", 1);
        assert_eq!(one.len(), 10);
        assert_eq!(
            message,
            "10 evaluations of `one` are running or waiting, and it must leave as much room for others; try again in \
             a moment"
        );
        let (two, _) = filled(&gate, "two", 1);
        assert_eq!(two.len(), 5);
        assert!(!filled(&gate, "three", 1).0.is_empty());
        drop(one);
        drop(two);
        let (large, message) = filled(&gate, "one", 200);
        assert_eq!(large.len(), 2);
        assert!(
            message.contains("the programs and data of the 2 running or waiting evaluations of `one`"),
            "{message}"
        );
        assert!(gate.admit("two", 500).is_ok());
        drop(large);
        assert_eq!(filled(&gate, "one", 1).0.len(), 10, "all was given back");
    }

    #[test]
    fn among_several_one_never_has_all_turns_nor_all_memory() {
        let gate = gate(&[("one", None), ("two", None), ("three", Some(1))]);
        let take = |principal, memory| gate.room(principal, memory).now_or_never();
        let one = [take("one", 1 << 20), take("one", 1 << 20)];
        assert!(one.iter().all(Option::is_some));
        assert!(take("one", 1 << 20).is_none(), "a half is what it has");
        let two = take("two", 1 << 30);
        assert!(two.is_some(), "it is promised no more than a half of the memory");
        assert!(take("two", 1 << 20).is_none());
        let three = take("three", 1 << 20);
        assert!(three.is_some() && take("three", 1 << 20).is_none(), "as many as the operator says");
        drop((one, two, three));
        assert!(take("three", 1 << 20).is_some());
    }
}
