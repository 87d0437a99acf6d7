//! Work that is done where nobody can pay for it: the keys of a table are hashed and compared inside of the table, at
//! whatever length they have.
//!
//! It is noted here, for the thread whose account is open, and paid by the evaluation at its next charge. Once much is
//! owed, the next charge looks at the clock.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many steps as are granted at once.
const MUCH: i64 = super::GRANT as i64;

/// Stands for a thread that has no account open: there nobody pays.
const NOBODY: i64 = i64::MIN;

thread_local! {
    static OWED: Cell<i64> = const { Cell::new(NOBODY) };
}

/// How many threads owe much. Looking at this costs less than looking at what one thread owes.
static DUE: AtomicUsize = AtomicUsize::new(0);

/// Notes steps that the evaluation on this thread owes.
pub(crate) fn owe(steps: u64) {
    let owed = OWED.get();
    if owed != NOBODY {
        exchange(Some(owed.unsigned_abs().saturating_add(steps)));
    }
}

/// True if some evaluation owes much.
#[inline(always)]
pub(super) fn is_due() -> bool {
    DUE.load(Ordering::Relaxed) > 0
}

/// Takes what the evaluation on this thread owes, to pay for it.
pub(super) fn collect() -> u64 {
    match OWED.get() {
        NOBODY | 0 => 0,
        _ => exchange(Some(0)).unwrap_or_default(),
    }
}

/// Puts what another account owes in place of what this thread's does; `None` where there is no account.
pub(super) fn exchange(other: Option<u64>) -> Option<u64> {
    let other = other.map_or(NOBODY, |steps| i64::try_from(steps).unwrap_or(i64::MAX));
    let owed = OWED.replace(other);
    match (owed >= MUCH, other >= MUCH) {
        (false, true) => _ = DUE.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = DUE.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
    (owed != NOBODY).then(|| owed.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_belongs_to_the_account_that_is_open() {
        owe(1_000);
        assert_eq!(collect(), 0, "no account is open");
        assert_eq!(exchange(Some(3)), None);
        owe(4);
        assert_eq!(collect(), 7);
        owe(MUCH as u64);
        assert!(is_due());
        let account = exchange(None);
        owe(1);
        assert_eq!(exchange(account), None);
        assert_eq!(collect(), MUCH as u64);
        owe(u64::MAX);
        owe(u64::MAX);
        assert_eq!(exchange(None), Some(i64::MAX as u64));
    }
}
