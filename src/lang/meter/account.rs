//! The account of an evaluation: its live bytes, and garbage whose drop is deferred.
//!
//! A thread opens the account to work for the evaluation, and closes it to hand the work to another thread or to end
//! it.

use super::allocator::{balance, mark, set_balance, set_highest};
use super::owed;
use crate::value::release::{self, Aside};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// An account that is not open on any thread.
#[derive(Default)]
pub struct Account {
    live: i64,
    aside: Aside,
    /// Steps that are owed but not charged yet.
    owed: u64,
    /// The number of bytes released by a drop on another thread, set once the drop has finished.
    leaving: Option<Arc<OnceLock<i64>>>,
}

impl Account {
    /// Creates an account that holds that many live bytes.
    pub(crate) fn of(live: i64) -> Account {
        Account { live, ..Account::default() }
    }

    /// Opens the account on this thread; leaves `self` empty.
    pub(crate) fn open(&mut self) {
        let account = std::mem::take(self);
        set_balance(account.live);
        owed::exchange(Some(account.owed));
        release::exchange(account.aside.in_slices());
    }

    /// Closes the account that is open on this thread.
    pub(crate) fn close() -> Account {
        let aside = release::exchange(Aside::default());
        let owed = owed::exchange(None).unwrap_or_default();
        Account { live: balance(), aside, owed, leaving: None }
    }

    /// The number of live bytes. Bytes whose drop is in progress count until it has finished.
    pub(crate) fn live(&self) -> i64 {
        self.live - self.leaving.as_ref().and_then(|leaving| leaving.get()).unwrap_or(&0)
    }

    /// Takes out the deferred garbage at the end of an evaluation, so that the caller need not wait for its drop.
    /// Returns `None` if there is none.
    pub(crate) fn leave(&mut self) -> Option<Leaving> {
        if self.aside.is_empty() {
            return None;
        }
        let bytes = Arc::<OnceLock<i64>>::default();
        self.leaving = Some(bytes.clone());
        Some(Leaving { aside: std::mem::take(&mut self.aside), bytes })
    }

    /// Waits until the deferred garbage of an earlier evaluation has been dropped. Returns false if there was none.
    pub(crate) fn settle(&mut self) -> bool {
        let Some(leaving) = self.leaving.take() else { return false };
        self.live -= leaving.wait();
        true
    }
}

/// The deferred garbage of an evaluation that has ended, to be dropped on a thread without an open account.
pub(crate) struct Leaving {
    aside: Aside,
    bytes: Arc<OnceLock<i64>>,
}

impl Drop for Leaving {
    /// Reports the number of bytes released to a waiting thread, even if a panic ends the drop early.
    fn drop(&mut self) {
        let before = balance();
        let aside = std::mem::take(&mut self.aside);
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(aside)));
        let _ = self.bytes.set(before - balance());
        if let Err(defect) = dropped {
            std::panic::resume_unwind(defect);
        }
    }
}

/// Runs `work` without charging the evaluation on this thread for the memory and the steps that it takes.
///
/// A function that the embedder adds to the language uses it for state that outlives the call, such as a cache or a
/// connection. The result must not be dropped by the evaluation, which would be credited for it. Outside of an
/// evaluation, this is a plain call.
pub fn outside<R>(work: impl FnOnce() -> R) -> R {
    /// Restores the account, also if `work` panics.
    struct Restore {
        live: i64,
        highest: i64,
        drops: release::Paused,
        owed: owed::Paused,
    }
    impl Drop for Restore {
        #[inline]
        fn drop(&mut self) {
            owed::resume(&self.owed);
            release::resume(&self.drops);
            set_balance(self.live);
            set_highest(self.highest);
        }
    }
    let restore = Restore { live: balance(), highest: mark(), drops: release::pause(), owed: owed::pause() };
    let result = work();
    drop(restore);
    result
}

/// A value of the host, created and dropped outside of the evaluation's account.
pub(crate) struct Outside<T>(Option<T>);

impl<T> Outside<T> {
    /// Computes a value outside of the account.
    pub(crate) fn of(work: impl FnOnce() -> T) -> Outside<T> {
        Outside(Some(outside(work)))
    }

    /// Returns the value, for use outside of the account.
    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("only its end takes it")
    }
}

impl<T> Deref for Outside<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("only its end takes it")
    }
}

impl<T> Drop for Outside<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            outside(|| drop(value));
        }
    }
}
