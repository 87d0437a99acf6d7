//! Cancellation from outside of an evaluation.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Cancels evaluations, and the tools that they wait for, from any thread. Clones cancel the same evaluations.
///
/// ```
/// use lispbox::lang::{CancelHandle, Engine, Outcome, World};
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
///
/// let cancel = CancelHandle::new();
/// let world = World::default().cancelled_by(&cancel);
/// let mut session = Engine::builder().build().unwrap().session();
/// let stopper = std::thread::spawn(move || cancel.cancel());
/// let outcome = session.run("(loop [] (recur))").eval::<()>(&world).unwrap();
/// assert!(matches!(outcome, Outcome::Cancelled));
/// # stopper.join().unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_cancelled: AtomicBool,
    /// The futures that wait, by number.
    waiting: Mutex<Vec<(u64, Waker)>>,
    futures: AtomicU64,
}

impl CancelHandle {
    /// Creates a handle that has not cancelled anything yet.
    ///
    /// ```
    /// use lispbox::lang::CancelHandle;
    ///
    /// assert!(!CancelHandle::new().is_cancelled());
    /// ```
    pub fn new() -> CancelHandle {
        CancelHandle::default()
    }

    /// Cancels the evaluations of all worlds with this handle, now and later.
    ///
    /// ```
    /// use lispbox::lang::CancelHandle;
    ///
    /// let cancel = CancelHandle::new();
    /// cancel.clone().cancel();
    /// assert!(cancel.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Returns whether the handle has been cancelled.
    ///
    /// ```
    /// use lispbox::lang::CancelHandle;
    ///
    /// assert!(!CancelHandle::new().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// Returns a guard that cancels the evaluations when it is dropped, for a request whose client may disconnect.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{CancelHandle, Engine, Outcome, World};
    ///
    /// let cancel = CancelHandle::new();
    /// let world = World::default().cancelled_by(&cancel);
    /// drop(cancel.cancel_on_drop());
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert!(matches!(session.run("(+ 1 1)").eval::<i64>(&world), Ok(Outcome::Cancelled)));
    /// ```
    pub fn cancel_on_drop(&self) -> CancelGuard {
        CancelGuard(self.clone())
    }

    /// Returns a future that completes once the handle has been cancelled.
    ///
    /// ```
    /// use lispbox::lang::CancelHandle;
    /// use std::future::Future;
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    ///
    /// let cancel = CancelHandle::new();
    /// let mut waits = pin!(cancel.cancelled());
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(waits.as_mut().poll(&mut context).is_pending());
    /// cancel.cancel();
    /// assert!(waits.as_mut().poll(&mut context).is_ready());
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        Cancelled { number: self.0.futures.fetch_add(1, Ordering::Relaxed), state: self.0.clone() }
    }
}

/// Cancels evaluations when it is dropped; see [`CancelHandle::cancel_on_drop`].
///
/// ```
/// use lispbox::lang::CancelHandle;
///
/// let cancel = CancelHandle::new();
/// let guard = cancel.cancel_on_drop();
/// assert!(!cancel.is_cancelled());
/// drop(guard);
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard cancels the evaluations"]
pub struct CancelGuard(CancelHandle);

impl CancelGuard {
    /// Ends the guard without cancelling anything.
    #[cfg(feature = "tokio")]
    pub(super) fn disarm(mut self) {
        self.0 = CancelHandle::new();
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

struct Cancelled {
    number: u64,
    state: Arc<State>,
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        let mut waiting = self.state.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(number, _)| *number != self.number);
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.state.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state.is_cancelled.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        waiting.retain(|(number, _)| *number != self.number);
        waiting.push((self.number, context.waker().clone()));
        Poll::Pending
    }
}
