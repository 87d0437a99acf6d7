//! Waits for futures on a thread that may block, without the timers of the runtime.
//!
//! A timer of tokio that is due before all others wakes the thread that waits for events, and so does each call with a
//! timeout. A thread that blocks anyway can wait until its next time by itself.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::time::Sleep;

thread_local! {
    /// The waits of this thread, the innermost last.
    static WAITS: RefCell<Vec<Waiting>> = const { RefCell::new(Vec::new()) };
}

/// A thread that waits.
struct Waiting {
    waker: Waker,
    /// The time at which the future is to be polled next, if not woken before.
    next: Option<Instant>,
}

/// Wakes a thread.
struct Alarm {
    thread: Thread,
    rings: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rings.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

/// Ends a wait of this thread, by a panic too.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        WAITS.with_borrow_mut(Vec::pop);
    }
}

/// Runs a future to its end on this thread, which must not be an asynchronous thread of the runtime. What the future starts
/// runs there.
pub(in crate::server) fn block_on<T>(runtime: &Handle, work: impl Future<Output = T>) -> T {
    let _runtime = runtime.enter();
    let alarm = Arc::new(Alarm { thread: thread::current(), rings: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&alarm));
    WAITS.with_borrow_mut(|waits| waits.push(Waiting { waker: waker.clone(), next: None }));
    let _ended = Ended;
    let (mut work, mut context) = (pin!(work), Context::from_waker(&waker));
    loop {
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut context) {
            return outcome;
        }
        let next = WAITS.with_borrow_mut(|waits| waits.last_mut().and_then(|wait| wait.next.take()));
        while !alarm.rings.swap(false, Ordering::AcqRel) {
            match next.map(|next| next.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => break,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }
}

/// Waits until a time, or for ever.
pub(in crate::server) fn until(time: Option<Instant>) -> Until {
    Until { time, timer: None }
}

/// The future of [`until`]. In [`block_on`], the thread itself waits; elsewhere a timer of the runtime does.
pub(in crate::server) struct Until {
    time: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(time) = self.time else { return Poll::Pending };
        if Instant::now() >= time {
            return Poll::Ready(());
        }
        // What has a waker of its own polls its futures when that is called, not at each poll of its own.
        let is_waited_for = WAITS.with_borrow_mut(|waits| {
            let wait = waits.last_mut().filter(|wait| wait.waker.will_wake(context.waker()));
            wait.map(|wait| wait.next = Some(wait.next.map_or(time, |next| next.min(time)))).is_some()
        });
        if is_waited_for {
            return Poll::Pending;
        }
        self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(time.into()))).as_mut().poll(context)
    }
}

/// Runs a future for at most that long; `None` if it has not ended by then.
pub(in crate::server) async fn within<T>(duration: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        outcome = work => Some(outcome),
        () = until(Instant::now().checked_add(duration)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test on a thread that may block.
    fn on_a_thread(test: impl FnOnce(&Handle)) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        test(runtime.handle());
    }

    #[test]
    fn a_thread_waits_for_the_earliest_of_its_times() {
        on_a_thread(|runtime| {
            let begun = Instant::now();
            let at = |millis| Some(begun + Duration::from_millis(millis));
            let waited = block_on(runtime, async {
                tokio::select! {
                    () = until(at(60_000)) => "late",
                    () = async {
                        until(at(10)).await;
                        until(at(20)).await;
                    } => "early",
                }
            });
            assert_eq!(waited, "early");
            assert!(begun.elapsed() >= Duration::from_millis(20) && begun.elapsed() < Duration::from_secs(60));
        });
    }

    #[test]
    fn times_hold_inside_of_what_polls_by_its_own_wakers_and_in_other_waits() {
        on_a_thread(|runtime| {
            let soon = || Some(Instant::now() + Duration::from_millis(10));
            let all = futures::future::join_all((0..100).map(|_| until(soon())));
            assert_eq!(block_on(runtime, all).len(), 100);
            let inner = || block_on(runtime, until(soon()));
            block_on(runtime, async {
                inner();
                until(soon()).await;
                tokio::spawn(until(soon())).await.expect("it ends");
            });
        });
    }

    #[test]
    fn a_wake_up_ends_a_wait() {
        on_a_thread(|runtime| {
            let (send, receive) = tokio::sync::oneshot::channel();
            let far = Duration::from_secs(3_600);
            let waker = thread::spawn(move || send.send(7));
            assert_eq!(block_on(runtime, within(far, receive)), Some(Ok(7)));
            waker.join().expect("it ends").expect("somebody waits");
            assert_eq!(block_on(runtime, within(Duration::ZERO, std::future::pending::<()>())), None);
        });
    }
}
