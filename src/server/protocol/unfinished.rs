//! Programs that outlast the patience of their clients: they go on, and a later call gets the reply.
//!
//! They keep their place among the evaluations of their principal, and end with the server as other programs do. The
//! replies are kept in this process: the latest of each principal, for an hour.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rmcp::model::CallToolResult;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::lang::{Failure, Reply, Status};
use crate::server::approvals::asked::AskedRun;
use crate::server::audit::Record;
use crate::server::calls::activity::Activity;
use crate::server::sessions::Entry;
use crate::server::text::cut;

/// The time for which a reply is kept.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// Maximum number of programs of one principal that go on or have a reply, and in all. A program that goes on counts as an
/// evaluation of its principal too, which are fewer.
const MOST_EACH: usize = 20;
const MOST: usize = 1_000;

/// Maximum size of the replies of one principal, and of all, in bytes.
const MOST_BYTES_EACH: u64 = 32 << 20;
const MOST_BYTES: u64 = 128 << 20;

/// The outcome of a call of `lisp_eval`.
#[derive(Clone)]
pub(super) enum Answer {
    /// The result, which is recorded already.
    Result {
        result: CallToolResult,
        /// True if `run` alone means a further attempt of the program from now on.
        is_retriable: bool,
        /// True if the program was not evaluated.
        is_refused: bool,
    },
    /// The program waits for a person.
    Waits { asked: AskedRun, reply: Box<Reply>, record: Box<Record>, output: u64 },
}

impl Answer {
    /// Returns its approximate size in bytes.
    fn bytes(&self) -> u64 {
        let size = |value: serde_json::Result<Vec<u8>>| value.map_or(0, |text| text.len() as u64);
        match self {
            Answer::Result { result, .. } => size(serde_json::to_vec(result)),
            Answer::Waits { reply, .. } => size(serde_json::to_vec(reply)),
        }
    }
}

/// The end of a program that was answered before, for those who wait for its outcome.
pub(super) struct Ending {
    outcome: watch::Sender<Option<Answer>>,
    bytes: Arc<AtomicU64>,
}

impl Ending {
    /// Keeps the outcome, and forgets older ones of the principal as the bounds require.
    pub(super) fn keep(&self, answer: Answer, programs: &UnfinishedPrograms, principal: &str) {
        self.bytes.store(answer.bytes(), Ordering::Relaxed);
        self.outcome.send_replace(Some(answer));
        trim(&mut programs.programs(), principal);
    }
}

/// A program whose call was answered before its end.
pub(super) struct Unfinished {
    pub(super) identity: String,
    pub(super) principal: String,
    /// The session of the connection that began it.
    own: Option<Weak<Entry>>,
    /// The program as it was sent.
    sent: Sent,
    /// True once its outcome was returned to a client.
    is_read: AtomicBool,
    pub(super) activity: Arc<Activity>,
    /// Ends the program.
    pub(super) cancel: CancellationToken,
    /// Its outcome, once it has ended.
    answer: watch::Receiver<Option<Answer>>,
    /// The size of its outcome.
    bytes: Arc<AtomicU64>,
    since: Instant,
}

/// A program as its client has sent it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// The SHA-256 of its text, unless it has data or its calls are meant as new ones.
    pub(super) program: Option<String>,
    /// The session that the call has named.
    pub(super) session: Option<String>,
}

impl Unfinished {
    pub(super) fn new(
        identity: String,
        (principal, own): (String, Option<Weak<Entry>>),
        sent: Sent,
        (activity, cancel): (Arc<Activity>, CancellationToken),
    ) -> (Unfinished, Ending) {
        let (outcome, answer) = watch::channel(None);
        let bytes = Arc::<AtomicU64>::default();
        let ending = Ending { outcome, bytes: Arc::clone(&bytes) };
        let since = Instant::now();
        let is_read = AtomicBool::new(false);
        (Unfinished { identity, principal, own, sent, is_read, activity, cancel, answer, bytes, since }, ending)
    }

    /// True if the connection with that session has begun it.
    pub(super) fn is_of(&self, own: &Arc<Entry>) -> bool {
        self.own.as_ref().is_some_and(|known| known.as_ptr() == Arc::as_ptr(own))
    }

    /// True if it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.answer.borrow().is_some() || self.answer.has_changed().is_err()
    }

    /// True if a client sends the program once more, in the same session, though nobody has received its outcome.
    fn is_sent_again(&self, sent: &Sent, own: Option<&Arc<Entry>>) -> bool {
        let is_in_place = sent.session.is_some() || own.is_some_and(|own| self.is_of(own));
        is_in_place && sent.program.is_some() && self.sent == *sent && !self.is_read.load(Ordering::Acquire)
    }

    /// Records that its outcome is returned to a client.
    pub(super) fn is_returned(&self) {
        self.is_read.store(true, Ordering::Release);
    }

    /// True if it has ended in a way that a call with `run` alone is not answered with: it may go on, or be tried again.
    fn is_over(&self) -> bool {
        match &*self.answer.borrow() {
            Some(Answer::Waits { asked, .. }) => asked.is_stored,
            _ => false,
        }
    }

    /// Waits for its outcome. Returns `None` if its evaluation was given up.
    pub(super) async fn outcome(&self) -> Option<Answer> {
        let mut answer = self.answer.clone();
        let outcome = answer.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }
}

/// The programs whose calls were answered before their end.
#[derive(Default)]
pub(in crate::server) struct UnfinishedPrograms(Mutex<VecDeque<Arc<Unfinished>>>);

impl UnfinishedPrograms {
    fn programs(&self) -> MutexGuard<'_, VecDeque<Arc<Unfinished>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a program. The oldest replies are forgotten as the bounds require, but no program that goes on.
    pub(super) fn add(&self, program: Unfinished) {
        let mut programs = self.programs();
        programs
            .retain(|known| known.identity != program.identity && (known.since.elapsed() < KEPT || !known.has_ended()));
        let principal = program.principal.clone();
        programs.push_back(Arc::new(program));
        trim(&mut programs, &principal);
    }

    /// Finds a program of a principal that goes on, or whose reply is kept.
    pub(super) fn find(&self, identity: &str, principal: &str) -> Option<Arc<Unfinished>> {
        let programs = self.programs();
        let is_it = |known: &&Arc<Unfinished>| known.identity == identity && known.principal == principal;
        let found = programs.iter().find(is_it).filter(|known| known.since.elapsed() < KEPT || !known.has_ended());
        found.filter(|known| !known.is_over()).cloned()
    }

    /// Finds the program that a client sends once more, though nobody has received its outcome: it may have missed the reply
    /// that names the run.
    pub(super) fn sent_again(
        &self,
        principal: &str,
        sent: impl FnOnce() -> Sent,
        own: Option<&Arc<Entry>>,
    ) -> Option<Arc<Unfinished>> {
        let programs = self.programs();
        if programs.iter().all(|known| known.principal != principal) {
            return None;
        }
        let sent = sent();
        let is_it = |known: &&Arc<Unfinished>| known.principal == principal && known.is_sent_again(&sent, own);
        programs.iter().rfind(is_it).filter(|known| known.since.elapsed() < KEPT && !known.is_over()).cloned()
    }

    /// Forgets a program.
    pub(super) fn forget(&self, identity: &str) {
        self.programs().retain(|known| known.identity != identity);
    }
}

/// Forgets the oldest replies of a principal, and then of all, until they are within the bounds.
fn trim(programs: &mut VecDeque<Arc<Unfinished>>, principal: &str) {
    loop {
        let of = |known: &&Arc<Unfinished>| known.principal == principal;
        let bytes = |known: &Arc<Unfinished>| known.bytes.load(Ordering::Relaxed);
        let own: u64 = programs.iter().filter(of).map(bytes).sum();
        let is_crowded = programs.iter().filter(of).count() > MOST_EACH || own > MOST_BYTES_EACH;
        if !is_crowded && programs.len() <= MOST && programs.iter().map(bytes).sum::<u64>() <= MOST_BYTES {
            return;
        }
        let is_surplus = |known: &Arc<Unfinished>| known.has_ended() && (!is_crowded || of(&known));
        let Some(oldest) = programs.iter().position(is_surplus) else { return };
        programs.remove(oldest);
    }
}

/// Returns the reply to a call whose program goes on, with its activity, if it goes on here.
pub(super) fn running(run: &str, activity: Option<&Activity>) -> Reply {
    let summary =
        activity.map_or_else(|| "in another call or in another process of the server".to_owned(), Activity::summary);
    let made = activity.map(Activity::made).unwrap_or_default();
    let changes = match &*made.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ") {
        "" => String::new(),
        changes => format!("; made: {}", cut(changes, 200)),
    };
    let message = format!("{summary}{changes}");
    let cancel = if activity.is_some() { ", \"cancel\": true beside it ends it" } else { "" };
    let advice = format!("{{\"run\": \"{run}\"}} waits for its reply{cancel}");
    let failure = Failure {
        error: "Running".to_owned(),
        rendered: format!("[running: {message}; {advice}]"),
        message,
        suggestion: Some(advice),
        ..Failure::default()
    };
    Reply { status: Status::Running, run: Some(run.to_owned()), made, failure: Some(failure), ..Reply::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(principal: &str, at: usize) -> (Unfinished, Ending) {
        Unfinished::new(format!("{principal}-{at}"), (principal.to_owned(), None), Sent::default(), Default::default())
    }

    fn result(bytes: usize) -> Answer {
        let result = CallToolResult::success(vec![rmcp::model::ContentBlock::text("x".repeat(bytes))]);
        Answer::Result { result, is_retriable: false, is_refused: false }
    }

    #[test]
    fn replies_are_bounded_and_programs_that_go_on_are_never_forgotten() {
        let programs = UnfinishedPrograms::default();
        let (first, _going_on) = program("ann", 0);
        programs.add(first);
        for at in 1..100 {
            let (next, ending) = program("ann", at);
            programs.add(next);
            ending.keep(result(1), &programs, "ann");
        }
        assert!(programs.find("ann-0", "ann").is_some_and(|known| !known.has_ended()));
        assert!(programs.find("ann-99", "ann").is_some_and(|known| known.has_ended()));
        assert!(programs.find("ann-1", "ann").is_none() && programs.find("ann-0", "bob").is_none());
        assert_eq!(programs.programs().len(), MOST_EACH);
        for at in 0..10 {
            let (next, ending) = program("eve", at);
            programs.add(next);
            ending.keep(result(8 << 20), &programs, "eve");
        }
        assert!(programs.find("eve-9", "eve").is_some() && programs.find("eve-6", "eve").is_none());
        for at in 0..2 * MOST {
            let name = format!("p{at}");
            let (next, ending) = program(&name, at);
            programs.add(next);
            ending.keep(result(256 << 10), &programs, &name);
        }
        let bytes: u64 = programs.programs().iter().map(|known| known.bytes.load(Ordering::Relaxed)).sum();
        assert!(bytes <= MOST_BYTES && programs.programs().len() <= MOST, "{bytes}");
        assert!(programs.find("ann-0", "ann").is_some(), "it goes on");
    }

    #[test]
    fn the_reply_names_the_calls_and_both_ways_to_go_on() {
        let activity = Activity::default();
        activity.begins();
        activity.called(activity.calls("mail", "export"));
        let reply = running("h3k", Some(&activity));
        assert_eq!(
            reply.text(1_000),
            "[running: 1 tool call so far: mail/export 1; {\"run\": \"h3k\"} waits for its reply, \"cancel\": true beside it \
             ends it]"
        );
        assert_eq!((reply.status.as_str(), reply.run.as_deref()), ("running", Some("h3k")));
    }
}
