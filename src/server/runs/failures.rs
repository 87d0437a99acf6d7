//! The runs that did not end well after they have made changes: those of this process, and those of earlier ones that it has
//! found in the store.
//!
//! Each is known here for an hour, so that a later program is told of it and does not repeat its changes by accident. A run
//! that is not in a store is kept here as a whole. Both are bounded: of one principal and in all, the oldest are forgotten
//! first.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::lang::internal::foreign_text;
use crate::lang::{CallState, CutOff, Happened, Logged, MadeCalls, Reply, Status, ToolReply, asked_for};
use crate::server::identity::sha256;
use crate::server::sessions::Entry;

use super::stored::StoredRun;
use super::summary::{RunState, RunSummary, now};

/// The time for which a run is known.
pub(super) const KNOWN: Duration = Duration::from_secs(60 * 60);

/// Maximum number of known runs of one principal, and in all.
const MOST_EACH: usize = 20;
const MOST: usize = 2_000;

/// The time after which clients begin to give up on a call, and the time after the end of such a program within which one
/// that is sent again as it is may be sent because nobody has received its reply.
const PATIENCE: Duration = Duration::from_secs(4);
const AGAIN: Duration = Duration::from_secs(60);

/// Maximum size of the runs that are kept here as a whole, in bytes: of one principal, and in all.
const MOST_BYTES_EACH: u64 = 32 << 20;
const MOST_BYTES: u64 = 128 << 20;

/// Maximum size of a reply that is kept for later programs, in bytes.
const LARGEST_REPLY: u64 = 64 << 10;

/// Maximum length of the arguments in a message, in characters.
const ARGUMENTS: usize = 80;

/// A run that did not end well.
pub(super) struct FailedRun {
    pub(super) identity: String,
    pub(super) principal: String,
    pub(super) session: FailedIn,
    pub(super) status: Status,
    pub(super) made: Vec<MadeCalls>,
    pub(super) changes: Changes,
    /// The run, if it is not in a store.
    pub(super) kept: Option<Box<StoredRun>>,
    /// True while a further attempt is evaluated.
    pub(super) is_taken: Arc<AtomicBool>,
    /// True until a later reply has told of it.
    pub(super) is_untold: bool,
    /// The SHA-256 of its program, if it has ended well: it concerns the same program, and those that make a call whose
    /// outcome it did not learn.
    pub(super) ended_well: Option<String>,
    /// The size of its reply in bytes, once a further attempt has ended well.
    pub(super) reply_bytes: u64,
    pub(super) since: Instant,
}

/// The changes that a run has made.
#[derive(Default)]
pub(super) struct Changes {
    /// The calls by what they asked for.
    calls: HashMap<String, ChangedBy>,
    /// The digests of the programs that were stopped before one of them: one that is sent again as it is means what it says.
    stopped: HashSet<String>,
}

/// True if a program has taken so long that its client may have given up on it.
pub(super) fn is_slow(reply: &Reply) -> bool {
    u128::from(reply.spent.total_ms) >= PATIENCE.as_millis()
}

/// The session of a run that did not end well.
pub(super) struct FailedIn {
    pub(super) handle: String,
    /// The session, for as long as it is in memory.
    pub(super) entry: Weak<Entry>,
    /// True if it may be in the memory of another process.
    pub(super) is_elsewhere: bool,
}

/// The calls of a run that asked for the same change.
#[derive(Default)]
struct ChangedBy {
    /// True once a later program was stopped before that call.
    was_stopped: bool,
    /// True if it is not known of one of them whether it was carried out.
    is_unknown: bool,
    /// The replies, in order.
    replies: VecDeque<ToolReply>,
}

impl Changes {
    /// Returns the changes in a log.
    pub(super) fn of(log: &Logged) -> Changes {
        let mut calls: HashMap<String, ChangedBy> = HashMap::new();
        for call in log.changes().filter(|call| call.is_sent) {
            let changed = calls.entry(key(&call.server, &call.tool, &call.arguments)).or_default();
            changed.is_unknown |= call.happened() == Happened::Unknown;
            if let CallState::Done(reply) = &call.state
                && call.happened() == Happened::Yes
                && reply.bytes() <= LARGEST_REPLY
            {
                changed.replies.push_back(reply.clone());
            }
        }
        Changes { calls, stopped: HashSet::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// True if it is not known of one of them whether it was carried out.
    pub(super) fn are_unknown(&self) -> bool {
        self.calls.values().any(|call| call.is_unknown)
    }
}

impl FailedRun {
    #[cfg(test)]
    pub(super) fn of_one_call(server: &str, tool: &str, arguments: &str) -> FailedRun {
        FailedRun {
            identity: "run".to_owned(),
            principal: String::new(),
            session: FailedIn { handle: String::new(), entry: Weak::new(), is_elsewhere: false },
            status: Status::Error,
            made: Vec::new(),
            changes: Changes {
                calls: [(key(server, tool, arguments), ChangedBy::default())].into(),
                stopped: HashSet::new(),
            },
            kept: None,
            is_taken: Arc::default(),
            is_untold: false,
            ended_well: None,
            reply_bytes: 0,
            since: Instant::now(),
        }
    }

    /// True if a call of that program is stopped before it repeats this one.
    fn stops(&self, program: &FollowingProgram, call: &ChangedBy, is_declared: bool) -> bool {
        match &self.ended_well {
            None => true,
            // Most tools that declare nothing only read.
            Some(digest) => call.is_unknown || is_declared && *digest == program.digest && self.since.elapsed() < AGAIN,
        }
    }

    /// Says what has become of a call that a later program repeats, and what to do, as a clause behind the call.
    fn advice(&self, call: &ChangedBy) -> String {
        let ago = ago(self.since.elapsed());
        let again = "`\"repeat\": true` beside `program` makes it";
        match &self.ended_well {
            Some(_) if call.is_unknown => format!(
                "was sent {ago} ago by a program that did not learn whether it was carried out, so nothing was sent: look at \
                 what it changes; {again}"
            ),
            Some(_) => format!(
                "was made {ago} ago by this same program, which has ended well, so nothing was sent: if its reply did not \
                 come, read what is there; {again} again"
            ),
            None => {
                let ended =
                    if matches!(self.status, Status::Cancelled | Status::Ok) { "was cut off" } else { "failed" };
                format!(
                    "was made {ago} ago by a program that {ended}, so nothing was sent; {{\"run\": \"{}\", \"program\": \
                     \"…\"}} keeps it and goes on behind it, {again} again",
                    self.identity
                )
            }
        }
    }

    fn weight(&self) -> u64 {
        let replies: u64 = self.changes.calls.values().flat_map(|call| &call.replies).map(ToolReply::bytes).sum();
        replies + self.reply_bytes + self.kept.as_ref().map_or(0, |run| run.weight())
    }

    fn summary(&self) -> RunSummary {
        let state = if self.is_taken.load(Ordering::Acquire) { RunState::Running } else { RunState::Failed };
        RunSummary {
            expires: now() + KNOWN.saturating_sub(self.since.elapsed()).as_secs(),
            ended: Some(self.status.as_str().to_owned()),
            unknown: self.made.iter().map(|made| usize::try_from(made.unknown).unwrap_or(usize::MAX)).sum(),
            made: self.made.clone(),
            ..RunSummary::of_state(state)
        }
    }

    /// True if programs of this session come after it: it is its session, or that of a caller whose session is gone.
    fn concerns(&self, principal: &str, session: &str) -> bool {
        let FailedIn { handle, entry, is_elsewhere } = &self.session;
        self.principal == principal && (handle == session || !is_elsewhere && entry.strong_count() == 0)
    }
}

/// A program that may repeat what programs before it have done.
#[derive(Default)]
pub(super) struct FollowingProgram {
    pub(super) principal: String,
    /// The handle of its session.
    pub(super) session: String,
    /// The SHA-256 of its text.
    pub(super) digest: String,
    /// The runs before whose calls it is not stopped: that of which it is a further attempt, and those before whose calls
    /// it was stopped already.
    pub(super) excused: Vec<String>,
}

impl FollowingProgram {
    /// True if it is stopped before the calls of a run.
    fn follows(&self, run: &FailedRun) -> bool {
        run.concerns(&self.principal, &self.session) && !self.excused.contains(&run.identity)
    }
}

/// The right to evaluate a further attempt of a run that is kept in memory.
pub(super) struct Claim(Arc<AtomicBool>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The runs that are still known, the oldest first.
type Known<'r> = std::iter::Filter<std::slice::IterMut<'r, FailedRun>, fn(&&mut FailedRun) -> bool>;

/// The known runs.
#[derive(Default)]
pub(super) struct Failures {
    runs: Mutex<Vec<FailedRun>>,
    /// The number of the runs: programs that follow none take no lock.
    count: AtomicUsize,
}

impl Failures {
    fn runs(&self) -> MutexGuard<'_, Vec<FailedRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if there are none, which is found without a lock.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Adds a run, in place of its earlier attempt, and forgets the oldest ones as the bounds require. One that has ended well
    /// keeps the reply that is here.
    pub(super) fn add(&self, mut run: FailedRun) {
        let mut runs = self.runs();
        if run.ended_well.is_some()
            && let Some(known) = runs.iter_mut().find(|known| known.identity == run.identity)
        {
            (run.kept, run.reply_bytes) = (known.kept.take(), known.reply_bytes);
        }
        runs.retain(|known| known.identity != run.identity && known.since.elapsed() < KNOWN);
        let principal = run.principal.clone();
        runs.push(run);
        while let Some(oldest) = surplus(&runs, &principal) {
            runs.remove(oldest);
        }
        self.count.store(runs.len(), Ordering::Release);
    }

    /// Adds a run of an earlier process, unless it is known by what it did in this one.
    pub(super) fn add_found(&self, run: FailedRun) {
        if !self.runs().iter().any(|known| known.identity == run.identity) {
            self.add(run);
        }
    }

    /// Forgets a run that has ended well.
    pub(super) fn remove(&self, identity: &str) {
        if self.is_empty() {
            return;
        }
        let mut runs = self.runs();
        runs.retain(|known| known.identity != identity);
        self.count.store(runs.len(), Ordering::Release);
    }

    /// Records that a further attempt of a run has ended well: nothing of it concerns later programs, and whoever asks for
    /// the run gets its reply. Without the record of its end the run is forgotten.
    pub(super) fn ended(&self, identity: &str, ended: Option<StoredRun>) {
        let Some(ended) = ended else { return self.remove(identity) };
        let bytes = ended.reply().and_then(|reply| serde_json::to_vec(reply).ok()).map_or(0, |text| text.len() as u64);
        let mut runs = self.runs();
        let Some(at) = runs.iter().position(|known| known.identity == identity) else { return };
        let mut run = runs.remove(at);
        (run.kept, run.reply_bytes) = (Some(Box::new(ended)), bytes);
        (run.changes.calls, run.is_untold, run.since) = (HashMap::new(), false, Instant::now());
        drop(runs);
        self.add(run);
    }

    /// Calls a function with the runs that are known.
    fn among<R>(&self, work: impl FnOnce(Known<'_>) -> Option<R>) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        let is_known: fn(&&mut FailedRun) -> bool = |run| run.since.elapsed() < KNOWN;
        work(self.runs().iter_mut().filter(is_known))
    }

    /// Finds a run of a principal that is kept here.
    pub(super) fn kept(&self, identity: &str, principal: &str) -> Option<Box<StoredRun>> {
        let is_it = |run: &&mut FailedRun| run.identity == identity && run.principal == principal;
        self.among(|mut runs| runs.find(is_it)?.kept.clone())
    }

    /// Takes a run that is kept here for a further attempt; `None` if it is not here.
    ///
    /// # Errors
    /// Fails if another attempt is being evaluated.
    pub(super) fn claim(&self, identity: &str, principal: &str) -> Option<Result<(Box<StoredRun>, Claim), ()>> {
        let is_it = |run: &&mut FailedRun| run.identity == identity && run.principal == principal;
        self.among(|mut runs| {
            let run = runs.find(is_it)?;
            let kept = run.kept.clone().filter(|kept| kept.may_be_retried())?;
            let is_free = !run.is_taken.swap(true, Ordering::AcqRel);
            Some(if is_free { Ok((kept, Claim(Arc::clone(&run.is_taken)))) } else { Err(()) })
        })
    }

    /// Returns the states of the runs of a principal that are kept here, the latest first.
    pub(super) fn of(&self, principal: &str) -> Vec<(String, RunSummary)> {
        let described = self.among(|runs| {
            let is_listed = |run: &StoredRun| run.may_be_retried();
            let mine = runs.filter(|run| run.principal == principal && run.kept.as_deref().is_some_and(is_listed));
            Some(mine.map(|run| (run.identity.clone(), run.summary())).collect::<Vec<_>>())
        });
        described.into_iter().flatten().rev().collect()
    }

    /// Returns the latest run that was cut off in a session without a reply, once.
    pub(super) fn untold(&self, principal: &str, session: &str) -> Option<CutOff> {
        self.among(|mut runs| {
            let is_of = |run: &FailedRun| run.principal == principal && run.session.is_elsewhere;
            let run = runs.rfind(|run| run.is_untold && (run.concerns(principal, session) || is_of(run)))?;
            run.is_untold = false;
            Some(CutOff { run: run.identity.clone(), made: run.made.clone() })
        })
    }

    /// True if a program was stopped before as one that had ended well, and is sent again and again since then: it means
    /// what it says.
    pub(super) fn is_meant(&self, principal: &str, session: &str, digest: &str) -> bool {
        let is_meant = |run: &&mut FailedRun| {
            run.concerns(principal, session)
                && run.ended_well.as_deref() == Some(digest)
                && run.changes.stopped.contains(digest)
        };
        let meant = self.among(|mut runs| {
            runs.find(is_meant)?.since = Instant::now();
            Some(())
        });
        meant.is_some()
    }

    /// Records that the end of a run was told.
    pub(super) fn told(&self, identity: &str) {
        self.among(|mut runs| {
            runs.find(|run| run.identity == identity)?.is_untold = false;
            Some(())
        });
    }

    /// Returns a program with the runs that did not end well before it; `None` if there are none.
    pub(super) fn followed_by(&self, mut program: FollowingProgram) -> Option<FollowingProgram> {
        self.among(|runs| {
            let mut followed = 0;
            for run in runs.filter(|run| run.concerns(&program.principal, &program.session)) {
                followed += 1;
                if run.changes.stopped.contains(&program.digest) {
                    program.excused.push(run.identity.clone());
                }
            }
            (followed > 0).then_some(program)
        })
    }

    /// Returns the next reply of such a run to a call that a program in that session repeats.
    pub(super) fn reply(
        &self,
        program: &FollowingProgram,
        (server, tool): (&str, &str),
        arguments: &str,
    ) -> Option<ToolReply> {
        let key = key(server, tool, arguments);
        self.among(|runs| {
            let following = runs.filter(|run| program.follows(run));
            let mut calls =
                following.filter(|run| run.changes.calls.get(&key).is_some_and(|call| run.stops(program, call, true)));
            calls.find_map(|run| run.changes.calls.get_mut(&key)?.replies.pop_front())
        })
    }

    /// Stops a program in that session before a call that such a run has made, once for each call; `is_declared` says
    /// whether its tool declares that it changes something. Returns why, as a sentence.
    pub(super) fn stop(
        &self,
        program: &FollowingProgram,
        (server, tool): (&str, &str),
        arguments: &str,
        is_declared: bool,
    ) -> Option<String> {
        let key = key(server, tool, arguments);
        self.among(|mut runs| {
            let stops = |run: &FailedRun| {
                let stops = |call: &ChangedBy| !call.was_stopped && run.stops(program, call, is_declared);
                program.follows(run) && run.changes.calls.get(&key).is_some_and(stops)
            };
            let found = runs.rfind(|run| stops(run))?;
            found.changes.stopped.insert(program.digest.clone());
            let advice = found.advice(found.changes.calls.get(&key)?);
            found.changes.calls.get_mut(&key)?.was_stopped = true;
            let call = foreign_text::begun(arguments, ARGUMENTS);
            Some(format!("{} {call} {advice}", foreign_text::qualified(server, tool)))
        })
    }
}

/// Returns the position of the run that is forgotten first because there are too many, if there are.
fn surplus(runs: &[FailedRun], principal: &str) -> Option<usize> {
    let of = |run: &&FailedRun| run.principal == principal;
    let own: u64 = runs.iter().filter(of).map(FailedRun::weight).sum();
    let all: u64 = runs.iter().map(FailedRun::weight).sum();
    let last = runs.len().checked_sub(1)?;
    if runs.iter().filter(of).count() > MOST_EACH || own > MOST_BYTES_EACH {
        return runs.iter().position(|run| of(&run)).filter(|oldest| *oldest < last || own > MOST_BYTES_EACH);
    }
    (runs.len() > MOST || all > MOST_BYTES).then_some(0)
}

/// Returns what a call asks for, as a digest: the tool, and the arguments with their keys in order.
fn key(server: &str, tool: &str, arguments: &str) -> String {
    sha256(format!("{server}\n{tool}\n{}", asked_for(arguments)).as_bytes())
}

/// `40 s`, `12 min`
fn ago(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::{Limits, Mark, Suspended};

    fn run(principal: &str, at: usize, program: &str) -> FailedRun {
        let run = Suspended::of(program, Limits::default(), Mark::default(), Logged::default());
        let start = super::super::stored::Start { data: None, session_version: 0 };
        FailedRun {
            identity: format!("{principal}-{at}"),
            principal: principal.to_owned(),
            session: FailedIn { handle: "s".to_owned(), entry: Weak::new(), is_elsewhere: false },
            kept: Some(Box::new(StoredRun::begun("s", run, None, start))),
            ..FailedRun::of_one_call("mail", "send", r#"{"a":1,"b":2}"#)
        }
    }

    fn program(principal: &str, digest: &str) -> FollowingProgram {
        let (principal, session) = (principal.to_owned(), "s".to_owned());
        FollowingProgram { principal, session, digest: digest.to_owned(), excused: Vec::new() }
    }

    #[test]
    fn of_a_flood_of_failing_programs_few_are_kept_and_none_of_other_principals_is_forgotten() {
        let failures = Failures::default();
        failures.add(run("ann", 0, ""));
        for at in 0..1_000 {
            failures.add(run("bob", at, ""));
        }
        assert_eq!(failures.of("bob").len(), MOST_EACH);
        assert_eq!(failures.of("bob")[0].0, "bob-999");
        assert_eq!(failures.of("ann").len(), 1);
        let large = "x".repeat(8 << 20);
        for at in 0..1_000 {
            failures.add(run(&format!("many-{at}"), at, &large));
        }
        let bytes: u64 = failures.runs().iter().map(FailedRun::weight).sum();
        assert!(bytes <= MOST_BYTES, "{bytes}");
        for at in 0..10 {
            failures.add(run("one", at, &large));
        }
        assert!(failures.of("one").len() <= 4);
    }

    #[test]
    fn a_call_is_stopped_once_whatever_the_order_of_its_arguments_and_no_other_is() {
        let failures = Failures::default();
        failures.add(run("ann", 0, ""));
        let stop = |who, tool, arguments| failures.stop(&program(who, "p"), ("mail", tool), arguments, true);
        assert_eq!(stop("bob", "send", r#"{"a":1,"b":2}"#), None);
        assert_eq!(stop("ann", "read", r#"{"a":1,"b":2}"#), None);
        assert_eq!(stop("ann", "send", r#"{"a":1,"b":3}"#), None);
        assert_eq!(
            stop("ann", "send", r#"{"b":2,"a":1}"#).as_deref(),
            Some(
                "mail/send {\"b\":2,\"a\":1} was made 0 s ago by a program that failed, so nothing was sent; \
                 {\"run\": \"ann-0\", \"program\": \"…\"} keeps it and goes on behind it, `\"repeat\": true` beside \
                 `program` makes it again"
            )
        );
        assert_eq!(stop("ann", "send", r#"{"b":2,"a":1}"#), None);
        // A program that is sent again as it was means what it says.
        let again = |digest| failures.followed_by(program("ann", digest)).expect("it follows").excused;
        assert_eq!((again("p"), again("q")), (vec!["ann-0".to_owned()], vec![]));
        assert!(failures.followed_by(program("bob", "p")).is_none());
    }

    #[test]
    fn one_attempt_takes_a_run_at_a_time() {
        let failures = Failures::default();
        failures.add(run("ann", 0, ""));
        assert!(failures.claim("ann-0", "bob").is_none());
        let claimed = failures.claim("ann-0", "ann").expect("it is there").ok();
        assert!(claimed.is_some() && failures.claim("ann-0", "ann").is_some_and(|claimed| claimed.is_err()));
        drop(claimed);
        assert!(failures.claim("ann-0", "ann").is_some_and(|claimed| claimed.is_ok()));
    }

    #[test]
    fn a_slow_further_attempt_that_ends_well_keeps_its_reply() {
        let failures = Failures::default();
        failures.add(run("ann", 0, ""));
        failures.add(FailedRun { ended_well: Some("digest".to_owned()), kept: None, ..run("ann", 0, "") });
        assert!(failures.kept("ann-0", "ann").is_some());
        failures.add(FailedRun { kept: None, ..run("ann", 0, "") });
        assert!(failures.kept("ann-0", "ann").is_none(), "it is in the store");
    }

    #[test]
    fn what_a_process_knows_of_a_run_is_not_replaced_by_what_it_finds() {
        let failures = Failures::default();
        failures.add(run("ann", 0, ""));
        let found = |at, is_elsewhere| {
            let session = FailedIn { handle: "t".to_owned(), entry: Weak::new(), is_elsewhere };
            FailedRun { session, kept: None, is_untold: true, ..run("ann", at, "") }
        };
        failures.add_found(found(0, false));
        assert!(failures.kept("ann-0", "ann").is_some() && failures.untold("ann", "s").is_none());
        // That of a dead process concerns all sessions; that of another one its own, but its end is told of in any.
        let stops = |session: &str, found: FailedRun| {
            let failures = Failures::default();
            failures.add_found(found);
            let program = FollowingProgram { session: session.to_owned(), ..program("ann", "d") };
            let stopped = failures.stop(&program, ("mail", "send"), r#"{"a":1,"b":2}"#, true).is_some();
            (stopped, failures.untold("ann", session).is_some())
        };
        assert_eq!(stops("s", found(1, false)), (true, true));
        assert_eq!(stops("s", found(1, true)), (false, true));
        assert_eq!(stops("t", found(1, true)), (true, true));
    }
}
