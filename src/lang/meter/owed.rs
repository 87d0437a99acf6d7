//! Deferred charges for work that has no access to the meter: a table hashes and compares its keys internally,
//! whatever their length.
//!
//! The steps are recorded for the thread whose account is open, and the evaluation charges them at its next
//! opportunity. Once a large amount is owed, the next charge also checks the limits.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The threshold of a large amount: the steps of one grant.
const MUCH: i64 = super::GRANT as i64;

/// The sentinel for a thread without an open account: steps owed there are charged to no account.
const NOBODY: i64 = i64::MIN;

thread_local! {
    static OWED: Cell<i64> = const { Cell::new(NOBODY) };
}

/// The number of threads that owe a large amount. Reading it is cheaper than reading the thread-local amount.
static DUE: AtomicUsize = AtomicUsize::new(0);

/// Adds steps to the amount that the evaluation on this thread owes.
pub(crate) fn owe(steps: u64) {
    let owed = OWED.get();
    if owed != NOBODY {
        exchange(Some(owed.unsigned_abs().saturating_add(steps)));
    }
}

/// Does work whose steps are not owed, and returns how many they are: part of it may have to be done twice.
#[inline]
pub(crate) fn not_owed<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let before = OWED.get();
    let result = work();
    let after = OWED.get();
    if after != before {
        replace(before);
    }
    (result, after.abs_diff(before))
}

/// True if any evaluation owes a large amount.
#[inline(always)]
pub(super) fn is_due() -> bool {
    DUE.load(Ordering::Relaxed) > 0
}

/// Takes the amount that the evaluation on this thread owes, in order to charge it.
pub(super) fn collect() -> u64 {
    match OWED.get() {
        NOBODY | 0 => 0,
        _ => exchange(Some(0)).unwrap_or_default(),
    }
}

/// Replaces the amount that this thread owes and returns the old one; `None` means that no account is open.
pub(super) fn exchange(other: Option<u64>) -> Option<u64> {
    let owed = replace(other.map_or(NOBODY, |steps| i64::try_from(steps).unwrap_or(i64::MAX)));
    (owed != NOBODY).then(|| owed.unsigned_abs())
}

/// The debt of a thread, while it works for no account.
pub(super) struct Paused(i64);

/// Lets this thread owe nothing until [`resume`].
#[inline]
pub(super) fn pause() -> Paused {
    Paused(replace(NOBODY))
}

/// Restores what this thread owes.
#[inline]
pub(super) fn resume(paused: &Paused) {
    replace(paused.0);
}

#[inline]
fn replace(other: i64) -> i64 {
    let owed = OWED.replace(other);
    match (owed >= MUCH, other >= MUCH) {
        (false, true) => _ = DUE.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = DUE.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
    owed
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
        assert_eq!(not_owed(|| owe(5)).1, 5);
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
