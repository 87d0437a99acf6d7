//! Bounds how many server processes start at the same time.
//!
//! A start is work for the processor: an interpreter loads its packages, a compiler runs. Many at once delay each other
//! until all run into their timeouts. A start that goes on for longer waits for something else, such as a download or
//! a server that never answers, and gives its turn to the next.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::Semaphore;

/// Minimum number of concurrent starts.
const FEWEST: usize = 2;

/// Time after which a start no longer counts as work for the processor.
const BUSY: Duration = Duration::from_secs(10);

/// The turns of starts: as many at once as there are cores, though at least [`FEWEST`].
#[derive(Debug)]
pub(super) struct Starts {
    turns: Arc<Semaphore>,
    /// Maximum time for which a start keeps its turn.
    busy: Duration,
}

impl Default for Starts {
    fn default() -> Self {
        Starts::of(thread::available_parallelism().map_or(FEWEST, usize::from).max(FEWEST), BUSY)
    }
}

impl Starts {
    fn of(turns: usize, busy: Duration) -> Starts {
        Starts { turns: Arc::new(Semaphore::new(turns)), busy }
    }

    /// Runs a start once it is its turn; `begins` is called then.
    pub(super) async fn run<T>(&self, begins: impl FnOnce(), start: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        begins();
        let mut start = std::pin::pin!(start);
        if let Ok(outcome) = tokio::time::timeout(self.busy, &mut start).await {
            return outcome;
        }
        drop(turn);
        start.await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt;
    use futures::stream::{FuturesUnordered, StreamExt};
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn starts_take_turns() {
        let (starts, begun, done) = (Starts::of(2, Duration::MAX), Cell::new(0), Notify::new());
        let start = |_| starts.run(|| begun.set(begun.get() + 1), done.notified());
        let mut all: FuturesUnordered<_> = (0..5).map(start).collect();
        for expected in [2, 3, 4, 5, 5] {
            assert_eq!((all.next().now_or_never(), begun.get()), (None, expected));
            done.notify_one();
            assert_eq!(all.next().await, Some(()));
        }
        assert_eq!(all.next().await, None);
    }

    #[tokio::test]
    async fn a_start_that_takes_long_gives_up_its_turn() {
        let starts = Starts::of(1, Duration::ZERO);
        let silent = starts.run(|| (), std::future::pending::<()>());
        tokio::select! {
            () = silent => unreachable!("it never ends"),
            () = starts.run(|| (), async {}) => {}
        }
    }
}
