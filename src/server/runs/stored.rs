//! Runs in the store of the sessions, and the decisions on their calls.
//!
//! A run is a record beside the sessions, found by its own random handle. Its text has one line for what the server knows
//! of it and one for the run itself, with its log. A process holds the lease of the record while it resumes the run, so that
//! a decision and a resumption never overlap.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::lang::{CallId, CallState, Decision, Failure, Logged, Reply, RunError, Status, Suspended, ToolReply};
use crate::server::identity::sha256;
use crate::server::policy::Question;
use crate::store::{Key, LEASE, Lease, Problem, Store, Summary, wait_for_lease};

use super::{AskedCall, WAITING, asked_calls};

/// The name by which the record of a run is told from those of sessions. No session defines it: it is qualified.
pub(crate) const RUN: &str = "lispbox/run";

/// The version of the first line.
const VERSION: u32 = 1;

/// The time for which a process waits for another one that holds a run: it outlasts the lease of a dead one.
pub(super) const PATIENCE: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// A run in a store.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// What the server knows of it.
    head: Head,
    run: Suspended,
    /// True if a process is evaluating it.
    is_running: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    #[serde(rename = "lispbox-stored-run")]
    version: u32,
    /// The handle of its session.
    session: String,
    /// The number of times that it was suspended.
    round: u32,
    /// The time at which it was suspended first, in seconds since 1970.
    since: u64,
    /// The decisions so far, in order.
    #[serde(default)]
    decisions: Vec<DecisionRecord>,
    /// The reply, once the run has ended.
    #[serde(default)]
    ended: Option<Box<Reply>>,
    /// The SHA-256 of the arguments of its call, if the run has a key.
    #[serde(default)]
    arguments: Option<String>,
    /// With what it is evaluated from its beginning; absent once it was suspended.
    #[serde(default)]
    start: Option<Start>,
    /// The version of its session when it was resumed after it was suspended last; absent until then.
    #[serde(default)]
    resumed_at: Option<u64>,
    /// True if the log was stored in the middle of an evaluation.
    #[serde(default)]
    is_cut_off: bool,
}

/// What a run begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::server) struct Start {
    /// The text of its data.
    pub(in crate::server) data: Option<String>,
    /// The version of its session in the store; 0 if it is not there.
    pub(in crate::server) session_version: u64,
}

/// A decision that a person made about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The call.
    pub call: CallId,
    /// The name of its tool, with that of its server.
    pub tool: String,
    /// The time of the decision, in seconds since 1970.
    pub at: u64,
    /// The way in which it was made, and by whom, as far as that is known.
    pub by: String,
    /// The decision, as a word or clause.
    pub decision: String,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Calls wait for a decision, or for a person who says whether they happened.
    Waiting,
    /// All decisions are made: the run can be resumed.
    Decided,
    /// A process is evaluating it, or was a moment ago.
    Running,
    /// Its process died while it was evaluated for the first time: the next call with its key continues it.
    Begun,
    /// It has ended.
    Ended,
}

/// A call on which a person has to decide.
#[derive(Clone, Debug)]
pub struct OpenCall {
    /// Its number in the run, such as `2.3`: the third call of the form at which the run was suspended for the second
    /// time. A number is never used again.
    pub number: String,
    /// The identity of the call.
    pub id: CallId,
    /// The call as it is shown to a person.
    pub question: Question,
    /// The arguments as the program gave them: the text of a JSON object.
    pub given: String,
    /// True if the call was about to be sent when its process died: it may have happened, or not.
    pub is_unknown: bool,
    /// Its ordinal among the calls that are asked about.
    place: usize,
}

impl OpenCall {
    pub(super) fn asked(&self) -> AskedCall {
        AskedCall { place: self.place, question: self.question.clone(), given: self.given.clone() }
    }
}

impl StoredRun {
    /// Creates the record of a run that was suspended in that session for the first time.
    pub(super) fn new(session: &str, run: Suspended) -> StoredRun {
        let head = Head {
            version: VERSION,
            session: session.to_owned(),
            round: 1,
            since: now(),
            decisions: Vec::new(),
            ended: None,
            arguments: None,
            start: None,
            resumed_at: None,
            is_cut_off: false,
        };
        StoredRun { head, run, is_running: false }
    }

    /// Creates the record of a run with a key, before it is evaluated.
    pub(super) fn begun(session: &str, run: Suspended, arguments: String, start: Start) -> StoredRun {
        let run = StoredRun::new(session, run);
        StoredRun { head: Head { round: 0, arguments: Some(arguments), start: Some(start), ..run.head }, ..run }
    }

    /// Returns the record after the run was suspended once more.
    pub(super) fn suspended_again(&self, run: Suspended) -> StoredRun {
        let round = self.head.round + 1;
        let head = Head { round, start: None, resumed_at: None, is_cut_off: false, ..self.head.clone() };
        StoredRun { head, run, is_running: false }
    }

    /// Returns the record after the run has ended with a reply. The reply is kept for those who ask again.
    pub(super) fn ended_with(&self, reply: &Reply) -> StoredRun {
        let (limits, mark, _) = self.run.clone().into_parts();
        let run = Suspended::of(self.run.program(), limits, mark, Default::default());
        let head = Head { ended: Some(Box::new(reply.clone())), is_cut_off: false, ..self.head.clone() };
        StoredRun { head, run, is_running: false }
    }

    /// Reads the text of a run.
    ///
    /// # Errors
    /// Returns an error if it is not that of a run, or if this version of lispbox cannot resume it.
    pub fn decode(text: &str) -> Result<StoredRun, RunError> {
        let damaged = |problem: serde_json::Error| RunError::NotARun(problem.to_string());
        let mut lines = text.lines();
        let head: Head = serde_json::from_str(lines.next().unwrap_or_default()).map_err(damaged)?;
        if head.version != VERSION {
            return Err(RunError::Version(head.version));
        }
        let mut run = Suspended::decode(lines.next().unwrap_or_default())?;
        if head.is_cut_off {
            run.log_mut().cut_off();
        }
        Ok(StoredRun { head, run, is_running: false })
    }

    /// Returns its text.
    pub(super) fn encode(&self) -> String {
        let head = serde_json::to_string(&self.head).expect("it is data");
        format!("{head}\n{}\n", self.run.encode())
    }

    /// Returns the record with the log of an evaluation that is under way.
    pub(super) fn under_way(&self, log: Logged) -> StoredRun {
        let mut run = StoredRun { head: Head { is_cut_off: true, ..self.head.clone() }, ..self.clone() };
        *run.run.log_mut() = log;
        run
    }

    /// Returns the record of a run that is resumed while its session has that version in the store.
    ///
    /// # Errors
    /// Returns a message if it was resumed before, and the session has changed since.
    pub(super) fn resumed_at(&self, version: u64) -> Result<StoredRun, String> {
        let before = self.head.start.as_ref().map(|start| start.session_version).or(self.head.resumed_at);
        if before.is_some_and(|before| before != version) {
            return Err("it was cut off, and its session has changed since, perhaps by the run itself".to_owned());
        }
        Ok(StoredRun { head: Head { resumed_at: Some(version), ..self.head.clone() }, ..self.clone() })
    }

    /// Returns the run.
    pub fn run(&self) -> &Suspended {
        &self.run
    }

    /// Returns the handle of the session in which the run goes on.
    pub fn session(&self) -> &str {
        &self.head.session
    }

    /// Returns the reply of a run that has ended.
    pub fn reply(&self) -> Option<&Reply> {
        self.head.ended.as_deref()
    }

    /// Returns the SHA-256 of the arguments of its call, if the run has a key.
    pub(super) fn arguments(&self) -> Option<&str> {
        self.head.arguments.as_deref()
    }

    /// Returns with what the run is evaluated from its beginning, if it was not suspended.
    pub(super) fn start(&self) -> Option<&Start> {
        self.head.start.as_ref()
    }

    /// Returns the decisions so far.
    pub fn decisions(&self) -> &[DecisionRecord] {
        &self.head.decisions
    }

    /// Returns how often the run was suspended.
    pub(super) fn round(&self) -> u32 {
        self.head.round
    }

    /// Returns the time at which the run was suspended first.
    pub fn since(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.head.since)
    }

    /// Returns the time at which it expires.
    pub fn expires(&self) -> SystemTime {
        self.since() + WAITING
    }

    /// Returns true if it has waited too long.
    pub fn is_expired(&self) -> bool {
        SystemTime::now() >= self.expires()
    }

    /// Returns the calls on which a person has to decide, in order.
    pub fn open(&self) -> Vec<OpenCall> {
        if self.head.ended.is_some() || self.is_running {
            return Vec::new();
        }
        let program = sha256(self.run.program().as_bytes());
        let log = self.run.log();
        let mut asked: HashMap<&CallId, AskedCall> =
            asked_calls(log, &program).map(|(call, asked)| (&call.id, asked)).collect();
        let open = log.calls.iter().enumerate().filter_map(|(at, call)| {
            let number = format!("{}.{}", self.head.round, at + 1);
            let id = call.id.clone();
            if let Some(AskedCall { place, question, given }) = asked.remove(&call.id) {
                return Some(OpenCall { number, id, question, given, is_unknown: false, place });
            }
            let question = crate::lang::Question {
                id: id.clone(),
                server: Arc::clone(&call.server),
                tool: Arc::clone(&call.tool),
                arguments: call.question.as_ref().map_or(&call.arguments, |question| &question.arguments).clone(),
                reason: "it is not known whether it happened".to_owned(),
            };
            let question = Question::of(&question, &program);
            let given = call.arguments.clone();
            (call.state == CallState::Unknown).then_some(OpenCall {
                number,
                id,
                question,
                given,
                is_unknown: true,
                place: 0,
            })
        });
        open.collect()
    }

    /// Returns the state of the run.
    pub fn state(&self) -> RunState {
        match &self.head.ended {
            Some(_) => RunState::Ended,
            None if self.is_running => RunState::Running,
            None if !self.open().is_empty() => RunState::Waiting,
            None if self.head.start.is_some() => RunState::Begun,
            None => RunState::Decided,
        }
    }

    /// Finds an open call by its number.
    ///
    /// # Errors
    /// Returns a message that says what is open instead.
    fn find(&self, number: &str) -> Result<OpenCall, String> {
        if let Some(open) = self.open().into_iter().find(|open| open.number == number) {
            return Ok(open);
        }
        if self.head.ended.is_some() {
            return Err("the run has ended, and nothing more can be decided".to_owned());
        }
        let open: Vec<String> = self.open().into_iter().map(|open| open.number).collect();
        Err(match open.is_empty() {
            true => format!("call {number} has been decided on already; no call of the run is open"),
            false => format!("the run has no open call {number}; open are: {}", open.join(", ")),
        })
    }

    /// Records the decision on an open call: that it is made, or why it is not.
    ///
    /// # Errors
    /// Returns a message if that call is not open, or if it is unknown whether it happened.
    pub fn decide(&mut self, number: &str, denied: Option<&str>, by: &str) -> Result<OpenCall, String> {
        let open = self.find(number)?;
        if open.is_unknown {
            return Err(format!(
                "call {number} may have happened already: its process died while it was sent; say what happened by \
                 `lispbox approvals settle`"
            ));
        }
        let decision = denied.map_or(Decision::Approved, |reason| Decision::Denied(reason.to_owned()));
        let said = denied.map_or("approved".to_owned(), |reason| format!("denied: {reason}"));
        let calls = &mut self.run.log_mut().calls;
        calls.iter_mut().filter(|call| call.id == open.id).for_each(|call| call.decision = Some(decision.clone()));
        self.note(&open, by, said);
        Ok(open)
    }

    /// Records what a person found out about a call of which it is unknown whether it happened: that it did, with its
    /// result, the text of a JSON value; or that it did not, so that it is made when the run is resumed.
    ///
    /// # Errors
    /// Returns a message if that call is not unknown, or if the result is not JSON.
    pub fn settle(&mut self, number: &str, happened: Option<&str>, by: &str) -> Result<OpenCall, String> {
        let open = self.find(number)?;
        if !open.is_unknown {
            return Err(format!("call {number} was not sent yet: approve or deny it"));
        }
        if let Some(result) = happened {
            serde_json::from_str::<serde::de::IgnoredAny>(result).map_err(|problem| {
                format!("expected the result of the call as JSON, such as `{{\"id\": 1}}`: {problem}")
            })?;
        }
        let reply = happened.map(|result| ToolReply::Json(result.to_owned()));
        self.run.log_mut().settle(&open.id, reply);
        let said = if happened.is_some() { "it happened" } else { "it did not happen" };
        self.note(&open, by, said.to_owned());
        Ok(open)
    }

    /// Ends the run: its open calls are never made.
    ///
    /// # Errors
    /// Returns a message if it has ended.
    pub fn cancel(&mut self, by: &str) -> Result<(), String> {
        if self.head.ended.is_some() {
            return Err("the run has ended".to_owned());
        }
        let message = format!("the program was cancelled while it waited ({by}); its open calls were not made");
        let rendered = format!("Cancelled: {message}");
        let failure = Failure { error: "Cancelled".to_owned(), message, rendered, ..Failure::default() };
        *self = self.ended_with(&Reply { status: Status::Cancelled, failure: Some(failure), ..Reply::default() });
        Ok(())
    }

    fn note(&mut self, open: &OpenCall, by: &str, decision: String) {
        let tool = format!("{}/{}", open.question.server, open.question.tool);
        let record = DecisionRecord { call: open.id.clone(), tool, at: now(), by: by.to_owned(), decision };
        self.head.decisions.push(record);
    }
}

/// A run with its key, or the reason why it cannot be read.
pub type ListedRun = (Key, Result<StoredRun, String>);

/// The runs of a store, for the people who decide on their calls.
///
/// ```no_run
/// use lispbox::server::StoredRuns;
///
/// let store = lispbox::store::open_existing("sqlite:/var/lib/lispbox/sessions.db").unwrap();
/// let runs = StoredRuns::new(store);
/// for (key, run) in runs.list().unwrap() {
///     println!("{}: {} open calls", key.handle, run.map_or(0, |run| run.open().len()));
/// }
/// ```
pub struct StoredRuns(Arc<dyn Store>);

impl StoredRuns {
    /// Creates the view of a store.
    pub fn new(store: Arc<dyn Store>) -> StoredRuns {
        StoredRuns(store)
    }

    /// Returns true if a record of a store is a run, not a session.
    pub fn has(summary: &Summary) -> bool {
        summary.names.iter().any(|name| name == RUN)
    }

    /// Returns all runs that have not expired, the most recently changed first. A run that cannot be read is listed with
    /// the reason.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn list(&self) -> Result<Vec<ListedRun>, Problem> {
        let mut runs = Vec::new();
        for summary in self.0.list()?.into_iter().filter(StoredRuns::has) {
            let is_running = summary.is_leased;
            let run = self.read(&summary.key).map(|run| StoredRun { is_running, ..run });
            if !run.as_ref().is_ok_and(StoredRun::is_expired) {
                runs.push((summary.key, run));
            }
        }
        Ok(runs)
    }

    /// Finds a run by its identity, also one that has expired; `None` if there is none.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn find(&self, identity: &str) -> Result<Option<ListedRun>, Problem> {
        let found =
            self.0.list()?.into_iter().find(|summary| summary.key.handle == identity && StoredRuns::has(summary));
        Ok(found.map(|Summary { key, is_leased: is_running, .. }| {
            let run = self.read(&key).map(|run| StoredRun { is_running, ..run });
            (key, run)
        }))
    }

    /// Reads a run.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn read(&self, key: &Key) -> Result<StoredRun, String> {
        let stored = self.0.read(key, 0).map_err(|problem| missing(&problem))?;
        let text = stored.map(|stored| stored.text).unwrap_or_default();
        StoredRun::decode(&text).map_err(|problem| problem.to_string())
    }

    /// Changes a run that no process is resuming, and returns what `change` returns. Of two changes at the same time, the
    /// second sees the first.
    ///
    /// # Errors
    /// Returns why nothing was changed.
    pub fn change<R>(&self, key: &Key, change: impl FnOnce(&mut StoredRun) -> Result<R, String>) -> Result<R, String> {
        let taken = wait_for_lease(&*self.0, key, PATIENCE, || false);
        let lease = taken.map_err(|problem| missing(&problem))?.lease;
        let changed = self.change_under(key, &lease, change);
        // Without it the lease expires.
        let _ = self.0.release(key, &lease);
        changed
    }

    fn change_under<R>(
        &self,
        key: &Key,
        lease: &Lease,
        change: impl FnOnce(&mut StoredRun) -> Result<R, String>,
    ) -> Result<R, String> {
        let stored = self.0.read(key, 0).map_err(|problem| missing(&problem))?;
        let stored = stored.ok_or_else(|| "the run cannot be read".to_owned())?;
        let mut run = StoredRun::decode(&stored.text).map_err(|problem| problem.to_string())?;
        if run.is_expired() {
            return Err("the run has expired: it waited too long".to_owned());
        }
        let outcome = change(&mut run)?;
        let written = self.0.write(key, lease, stored.version, &run.encode(), &[RUN.to_owned()]);
        written.map_err(|problem| format!("the decision may not be recorded: {}", missing(&problem)))?;
        Ok(outcome)
    }

    /// Ends a run that no process is resuming: its open calls are never made. Its record remains, so that a client that
    /// repeats the call does not begin it again.
    ///
    /// # Errors
    /// Returns why it was not ended.
    pub fn cancel(&self, key: &Key, by: &str) -> Result<(), String> {
        self.change(key, |run| run.cancel(by))
    }
}

/// Describes a problem of the store with a run.
pub(super) fn missing(problem: &Problem) -> String {
    match problem {
        Problem::Unknown => "there is no such run: it was cancelled, or never existed".to_owned(),
        Problem::Expired => "the run has expired: it waited too long".to_owned(),
        Problem::Leased => "the run is being resumed, or another person decides on it at this moment".to_owned(),
        Problem::Lost | Problem::Changed => "another process has taken the run meanwhile".to_owned(),
        Problem::Damaged(what) => format!("the run is damaged: {what}"),
        Problem::Unavailable(reason) | Problem::Unusable(reason) => format!("the store cannot be used: {reason}"),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
