//! The leases that this process holds: renewed beside each other while programs run, and looked at before each tool call.
//!
//! A lease holds for so long from when it was taken, or its last renewal asked for that the store has confirmed. A process
//! that was stopped, or that the store did not answer for so long, knows by its own clock that somebody else may have the
//! session now: the program is cancelled, and nothing of it is written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::{Key, LEASE, Lease, Problem, Store, boot};

/// How long before its end a lease counts as over: clocks of two machines do not go alike, and a call takes its time to
/// be sent.
const MARGIN: Duration = Duration::from_millis(500);

/// How long after the last one a renewal is due, and how long after one that failed.
const RENEWAL: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(500);

/// How often it looks which are due, while there are leases and while there are none.
const LOOK: Duration = Duration::from_millis(250);
const REST: Duration = Duration::from_secs(1);

/// The leases of this process.
pub(super) struct Leases {
    held: Arc<Mutex<HashMap<String, Arc<Held>>>>,
    /// Dropped with this, which ends the thread that has them renewed.
    _end: Sender<()>,
}

/// A lease that was taken for a program.
pub(super) struct Held {
    pub(super) key: Key,
    pub(super) lease: Lease,
    /// Until when nobody else can have it, in milliseconds since the start of the machine.
    until: AtomicU64,
    /// When it is to be renewed next, alike.
    due: AtomicU64,
    is_being_renewed: AtomicBool,
    lost: OnceLock<&'static str>,
    /// Ends the program.
    stop: CancellationToken,
}

impl Held {
    /// A lease that was asked for when so much time had passed since the start of the machine.
    pub(super) fn new(key: Key, lease: Lease, asked: Duration, stop: CancellationToken) -> Held {
        let held = Held {
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

    /// Takes down that the store has confirmed what was asked for then.
    fn confirm(&self, asked: Duration) {
        self.until.store(millis(asked + LEASE - MARGIN), Ordering::Release);
        self.due.store(millis(asked + RENEWAL), Ordering::Release);
    }

    /// Why it may be somebody else's by now, if it may; it stays so.
    pub(super) fn lost(&self) -> Option<&'static str> {
        if self.lost.get().is_none() && millis(boot::elapsed()) >= self.until.load(Ordering::Acquire) {
            self.lose("this process was stopped, or the store did not answer it, for longer than a lease holds");
        }
        self.lost.get().copied()
    }

    fn lose(&self, why: &'static str) {
        // The reason that came first stays.
        let _ = self.lost.set(why);
        self.stop.cancel();
    }

    /// Has the store renew it.
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

    /// True if it has to be renewed now, and nobody does so yet: then the caller has to.
    fn is_due(&self) -> bool {
        self.lost().is_none()
            && millis(boot::elapsed()) >= self.due.load(Ordering::Acquire)
            && !self.is_being_renewed.swap(true, Ordering::AcqRel)
    }
}

impl Leases {
    /// Has leases of that store renewed. Each renewal has a thread of its own, so that none waits for another whose row is
    /// locked.
    pub(super) fn new(store: Arc<dyn Store>) -> Leases {
        let held = Arc::<Mutex<HashMap<String, Arc<Held>>>>::default();
        let (end, ended) = channel::<()>();
        let looked_at = Arc::clone(&held);
        let look = move || {
            let mut pause = REST;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let all: Vec<Arc<Held>> = lock(&looked_at).values().cloned().collect();
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
        // Without the thread leases hold for as long as one does.
        if let Err(problem) = std::thread::Builder::new().name("leases".to_owned()).spawn(look) {
            tracing::error!(%problem, "leases cannot be renewed");
        }
        Leases { held, _end: end }
    }

    /// Has a lease renewed from now on.
    pub(super) fn add(&self, held: &Arc<Held>) {
        lock(&self.held).insert(held.lease.holder.clone(), Arc::clone(held));
    }

    /// Has it renewed no more.
    pub(super) fn remove(&self, held: &Held) {
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
