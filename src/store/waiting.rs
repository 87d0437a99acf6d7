//! Waiting for a lease that another holder has.

use std::time::{Duration, Instant};

use super::{Key, Lease, Problem, Store, boot, handle};

/// Polling interval.
const LOOK: Duration = Duration::from_millis(20);

/// A lease, and the time since the machine was started at which it was requested.
pub(crate) struct TakenLease {
    pub(crate) lease: Lease,
    pub(crate) asked: Duration,
}

/// Takes the lease of a record. If another holder has it, waits for at most `patience`, or until `is_stopped`.
///
/// # Errors
/// Returns [`Problem::Leased`] if the other holder still has it, and otherwise the problem of the store.
pub(crate) fn wait_for_lease(
    store: &dyn Store,
    key: &Key,
    patience: Duration,
    is_stopped: impl Fn() -> bool,
) -> Result<TakenLease, Problem> {
    let holder = handle().map_err(Problem::Unusable)?;
    let begun = Instant::now();
    loop {
        let asked = boot::elapsed();
        match store.lease(key, &holder) {
            Err(Problem::Leased) if !is_stopped() && begun.elapsed() < patience => std::thread::park_timeout(LOOK),
            taken => return taken.map(|lease| TakenLease { lease, asked }),
        }
    }
}
