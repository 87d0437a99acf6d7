//! Programs outside of sessions that their clients have withdrawn, and that have not ended yet.
//!
//! Calls of one session run in order. Outside of sessions nothing else orders a program behind one that its client has
//! just cancelled, although it may repeat the calls of that one, which are known only at its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The time for which a program waits for the end of one that was withdrawn before it.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The note on a program that has not waited longer.
pub(super) const NOT_ENDED: &str = "a program that was cancelled before this one had not ended when this one began: look at \
                                    `(run/status)` before you repeat its calls";

/// The request of a client for an evaluation.
#[derive(Default)]
pub(in crate::server) struct ClientRequest {
    /// Cancelled when the client withdraws the request or disconnects, and once it is answered.
    token: CancellationToken,
    /// Cancelled when nobody can receive the reply any more, though the request goes on.
    lost: Option<ReplyLost>,
    is_answered: AtomicBool,
}

/// Cancelled when the connection on which a reply is expected has gone, without the request being withdrawn by that.
#[derive(Clone)]
pub(in crate::server) struct ReplyLost(pub(in crate::server) CancellationToken);

impl ClientRequest {
    pub(in crate::server) fn new(token: CancellationToken, lost: Option<ReplyLost>) -> ClientRequest {
        ClientRequest { token, lost, is_answered: AtomicBool::new(false) }
    }

    /// Records that it is answered; its program may go on.
    pub(in crate::server) fn answered(&self) {
        self.is_answered.store(true, Ordering::Release);
    }

    /// True if its client no longer waits for the answer.
    pub(super) fn is_withdrawn(&self) -> bool {
        let is_lost = self.lost.as_ref().is_some_and(|lost| lost.0.is_cancelled());
        (self.token.is_cancelled() || is_lost) && !self.is_answered.load(Ordering::Acquire)
    }
}

/// A program that is evaluated outside of sessions.
struct Unordered {
    principal: String,
    request: Arc<ClientRequest>,
    /// Cancelled at its end.
    ended: CancellationToken,
}

/// The programs that are evaluated outside of sessions.
#[derive(Default)]
pub(super) struct UnorderedPrograms(Mutex<Vec<Unordered>>);

impl UnorderedPrograms {
    fn programs(&self) -> MutexGuard<'_, Vec<Unordered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a program until the returned value is dropped, at its end.
    pub(super) fn enter(&self, principal: &str, request: &Arc<ClientRequest>) -> Entered<'_> {
        let (principal, request) = (principal.to_owned(), Arc::clone(request));
        self.programs().push(Unordered { principal, request: Arc::clone(&request), ended: CancellationToken::new() });
        Entered { programs: self, request }
    }

    /// Waits until the programs of a principal have ended that were withdrawn; returns false if one goes on for too long.
    pub(super) async fn until_withdrawn_end(&self, principal: &str, patience: Duration) -> bool {
        let withdrawn: Vec<CancellationToken> = {
            let programs = self.programs();
            let mine = programs.iter().filter(|program| program.principal == principal);
            mine.filter(|program| program.request.is_withdrawn()).map(|program| program.ended.clone()).collect()
        };
        if withdrawn.is_empty() {
            return true;
        }
        let all = async {
            for ended in withdrawn {
                ended.cancelled().await;
            }
        };
        tokio::time::timeout(patience, all).await.is_ok()
    }
}

/// The time for which a program is evaluated.
pub(super) struct Entered<'p> {
    programs: &'p UnorderedPrograms,
    request: Arc<ClientRequest>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut programs = self.programs.programs();
        if let Some(at) = programs.iter().position(|program| Arc::ptr_eq(&program.request, &self.request)) {
            programs.swap_remove(at).ended.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_waits_for_the_end_of_those_of_its_principal_that_were_withdrawn_and_for_no_others() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let (programs, soon, later) =
                (UnorderedPrograms::default(), Duration::from_millis(1), Duration::from_secs(60));
            let (withdrawn, answered, waited_for) =
                (Arc::<ClientRequest>::default(), Arc::<ClientRequest>::default(), Arc::<ClientRequest>::default());
            let entered = programs.enter("ann", &withdrawn);
            let _others = [programs.enter("ann", &answered), programs.enter("ann", &waited_for)];
            assert!(programs.until_withdrawn_end("ann", later).await, "none was withdrawn");
            answered.answered();
            // The token of a request that is answered is cancelled as well.
            answered.token.cancel();
            withdrawn.token.cancel();
            assert!(programs.until_withdrawn_end("bob", later).await, "it is of another principal");
            assert!(!programs.until_withdrawn_end("ann", soon).await, "it does not end");
            let (ends, ()) = tokio::join!(programs.until_withdrawn_end("ann", later), async { drop(entered) });
            assert!(ends);
            assert!(programs.until_withdrawn_end("ann", soon).await, "it has ended");
        });
    }
}
