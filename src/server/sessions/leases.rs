//! The leases that this process holds: renewed concurrently while programs run, and checked before each tool call.
//!
//! A lease is valid for a fixed time after the request that took it, or after the request of its last confirmed
//! renewal. A process that was suspended, or that got no answer from the store for that long, detects by its own clock
//! that another process may have the session: the program is cancelled, and none of its changes is written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{Key, LEASE, Lease, Problem, Store, TakenLease, boot};

/// Safety margin by which a lease counts as expired early: the clocks of two machines drift apart, and sending a call
/// takes time.
const MARGIN: Duration = Duration::from_millis(500);

/// Interval between renewals, and the delay of a retry after one that failed.
const RENEWAL: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(500);

/// Interval at which due renewals are looked for, with and without leases.
const LOOK: Duration = Duration::from_millis(250);
const REST: Duration = Duration::from_secs(1);

/// The leases of this process.
pub(in crate::server) struct Leases {
    held: Arc<Mutex<HashMap<String, Arc<HeldLease>>>>,
    /// Dropped with this, which ends the renewal thread.
    _end: Sender<()>,
}

/// A lease that was taken for a program.
pub(in crate::server) struct HeldLease {
    pub(in crate::server) key: Key,
    pub(in crate::server) lease: Lease,
    /// The time before which no other holder can take the lease, in milliseconds since the machine was started.
    until: AtomicU64,
    /// The time of the next renewal, in the same unit.
    due: AtomicU64,
    is_being_renewed: AtomicBool,
    lost: OnceLock<&'static str>,
    /// Cancels the program.
    stop: CancellationToken,
}

impl HeldLease {
    /// Creates the holder of a lease. Its loss cancels `stop`.
    pub(in crate::server) fn new(key: Key, taken: TakenLease, stop: CancellationToken) -> HeldLease {
        let TakenLease { lease, asked } = taken;
        let held = HeldLease {
            key,
            lease,
            until: AtomicU64::new(0),
            due: AtomicU64::new(0),
            is_being_renewed: AtomicBool::new(false),
            lost: OnceLock::new(),
            stop,
        };
        held.confirm(asked);
        held
    }

    /// Records that the store has confirmed a request made at the time `asked`.
    fn confirm(&self, asked: Duration) {
        self.until.store(millis(asked + LEASE - MARGIN), Ordering::Release);
        self.due.store(millis(asked + RENEWAL), Ordering::Release);
    }

    /// Returns why another holder may have the lease by now, if so. Once lost, it remains lost.
    pub(in crate::server) fn lost(&self) -> Option<&'static str> {
        if self.lost.get().is_none() && millis(boot::elapsed()) >= self.until.load(Ordering::Acquire) {
            self.lose("this process was stopped, or the store did not answer it, for longer than a lease lasts");
        }
        self.lost.get().copied()
    }

    fn lose(&self, why: &'static str) {
        // The first reason is kept.
        let _ = self.lost.set(why);
        self.stop.cancel();
    }

    /// Renews the lease in the store.
    fn renew(&self, store: &dyn Store) {
        let asked = boot::elapsed();
        match store.renew(&self.key, &self.lease) {
            Ok(()) => self.confirm(asked),
            Err(Problem::Lost | Problem::Unknown | Problem::Expired) => {
                self.lose("another process took the session, or removed it");
            }
            Err(problem) => {
                tracing::warn!(%problem, "a lease could not be renewed");
                self.due.store(millis(boot::elapsed() + RETRY), Ordering::Release);
            }
        }
        self.is_being_renewed.store(false, Ordering::Release);
    }

    /// True if a renewal is due and none is under way; the caller then has to renew.
    fn is_due(&self) -> bool {
        self.lost().is_none()
            && millis(boot::elapsed()) >= self.due.load(Ordering::Acquire)
            && !self.is_being_renewed.swap(true, Ordering::AcqRel)
    }
}

impl Leases {
    /// Starts the renewal of leases of that store. Each renewal has its own thread, so that none waits for another
    /// whose row is locked.
    pub(in crate::server) fn new(store: Arc<dyn Store>) -> Leases {
        let held = Arc::<Mutex<HashMap<String, Arc<HeldLease>>>>::default();
        let (end, ended) = channel::<()>();
        let looked_at = Arc::clone(&held);
        let look = move || {
            let mut pause = REST;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let all: Vec<Arc<HeldLease>> = lock(&looked_at).values().cloned().collect();
                pause = if all.is_empty() { REST } else { LOOK };
                for held in all.into_iter().filter(|held| held.is_due()) {
                    let (renewed, store) = (Arc::clone(&held), Arc::clone(&store));
                    let renew = move || renewed.renew(&*store);
                    if let Err(problem) = std::thread::Builder::new().name("renewal".to_owned()).spawn(renew) {
                        tracing::error!(%problem, "a lease cannot be renewed");
                        held.is_being_renewed.store(false, Ordering::Release);
                    }
                }
            }
        };
        // Without the thread each lease lasts only for its initial duration.
        if let Err(problem) = std::thread::Builder::new().name("leases".to_owned()).spawn(look) {
            tracing::error!(%problem, "leases cannot be renewed");
        }
        Leases { held, _end: end }
    }

    /// Starts renewing a lease.
    pub(in crate::server) fn add(&self, held: &Arc<HeldLease>) {
        lock(&self.held).insert(held.lease.holder.clone(), Arc::clone(held));
    }

    /// Stops renewing a lease.
    pub(in crate::server) fn remove(&self, held: &HeldLease) {
        lock(&self.held).remove(&held.lease.holder);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const _: () = assert!(RENEWAL.as_millis() * 2 < LEASE.as_millis() - MARGIN.as_millis());
