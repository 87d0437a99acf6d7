//! The account of an evaluation: its live bytes, and what it has let go of but not dropped yet.
//!
//! A thread opens it to work for the evaluation, and closes it to give the work to another thread or to end it.

use super::allocator::{balance, set_balance};
use super::owed;
use crate::lang::value::release::{self, Aside};
use std::sync::{Arc, OnceLock};

/// An account that no thread has open.
#[derive(Default)]
pub struct Account {
    live: i64,
    aside: Aside,
    /// Steps that are not paid yet.
    owed: u64,
    /// The bytes that are being dropped, once they are.
    leaving: Option<Arc<OnceLock<i64>>>,
}

impl Account {
    /// Opens it on this thread; what stays behind is empty.
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

    /// Live bytes; what is still being dropped counts until it is.
    pub(crate) fn live(&self) -> i64 {
        self.live - self.leaving.as_ref().and_then(|leaving| leaving.get()).unwrap_or(&0)
    }

    /// Takes out what has been put aside, for the end of an evaluation: its caller need not wait until it is
    /// dropped. `None` where nothing has.
    pub(crate) fn leave(&mut self) -> Option<Leaving> {
        if self.aside.is_empty() {
            return None;
        }
        let bytes = Arc::<OnceLock<i64>>::default();
        self.leaving = Some(bytes.clone());
        Some(Leaving { aside: std::mem::take(&mut self.aside), bytes })
    }

    /// Waits until what an earlier evaluation let go of is dropped; true if there was something.
    pub(crate) fn settle(&mut self) -> bool {
        let Some(leaving) = self.leaving.take() else { return false };
        self.live -= leaving.wait();
        true
    }
}

/// What an evaluation has let go of, on its way out: to be dropped on a thread without an open account.
pub(crate) struct Leaving {
    aside: Aside,
    bytes: Arc<OnceLock<i64>>,
}

impl Drop for Leaving {
    /// Notes how many bytes it was, for whoever waits: also when a defect ends the dropping early.
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

/// Runs `work` without charging the account on this thread for what it allocates or releases.
pub(crate) fn outside<R>(work: impl FnOnce() -> R) -> R {
    let live = balance();
    let aside = release::exchange(Aside::default());
    let owed = owed::exchange(None);
    let result = work();
    owed::exchange(owed);
    release::exchange(aside);
    set_balance(live);
    result
}
