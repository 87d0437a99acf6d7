//! Runs in the store of the sessions, and the decisions on their calls.
//!
//! A run is a record beside the sessions, found by its own random handle. Its text has one line for what the server knows
//! of it and one for the run itself, with its log; while it is evaluated, a line for each change of the log follows. A process holds the lease of the record while it resumes the run, so that
//! a decision and a resumption never overlap.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::lang::{
    CallId, CallState, Decision, Failure, Limits, LogChange, Logged, MadeCalls, Mark, Reply, RunError, Status,
    Suspended, ToolReply,
};
use crate::server::approvals::Question;
use crate::server::approvals::asked::{AskedCall, AskedRun, WAITING, undecided_calls};
use crate::server::identity::sha256;
use crate::server::plans::terms::PlanTerms;
use crate::server::recordings::{FinishedRecording, RecordOptions, Recorded};
use crate::server::text::cut;

use super::attempts::Attempts;
use super::summary::{RunState, RunSummary, now};
use lispbox_policy::internal::ChangeSet;

/// The version of the first line.
const VERSION: u32 = 1;

/// Maximum length of the arguments of a call in a reply, in characters.
const ARGUMENTS: usize = 300;

/// Maximum number of tools in a summary.
const MADE: usize = 20;

/// A run in a store.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// What the server knows of it.
    pub(super) head: Head,
    pub(super) run: Suspended,
    /// The record of the whole run, if it is recorded.
    pub(super) recorded: Option<Box<Recorded>>,
    /// True if a process is evaluating it.
    pub(super) is_running: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head {
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
    pub(super) ended: Option<Box<Reply>>,
    #[serde(flatten)]
    pub(super) terms: Terms,
    /// The version of its session when it was resumed after it was suspended last; absent until then.
    #[serde(default)]
    pub(super) resumed_at: Option<u64>,
    /// True if the log was stored in the middle of an evaluation.
    #[serde(default)]
    pub(super) is_cut_off: bool,
    #[serde(flatten)]
    keeping: Keeping,
    /// The attempts, if one did not end well.
    #[serde(default)]
    pub(super) attempts: Attempts,
}

/// The terms on which a run is evaluated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Terms {
    /// The SHA-256 of the arguments of its call, if the run has a key.
    #[serde(default)]
    arguments: Option<String>,
    /// With what it is evaluated from its beginning; absent once it was suspended.
    #[serde(default)]
    pub(super) start: Option<Start>,
    /// The program that was rehearsed, if the run makes the calls of a rehearsal.
    #[serde(default)]
    pub(super) rehearsed: Option<String>,
    /// The plan to which the run is held.
    #[serde(default)]
    pub(super) plan: Option<PlanTerms>,
}

/// How the record of a run that has ended is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Keeping {
    /// The principal, for a record that is not among its sessions.
    #[serde(default)]
    principal: Option<String>,
    /// The time for which the run is kept once it has ended, in seconds, if it is recorded.
    #[serde(default)]
    keep: Option<u64>,
}

/// What a run begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::server) struct Start {
    /// The text of its data.
    pub(in crate::server) data: Option<String>,
    /// The version of its session in the store; 0 if it is not there.
    pub(in crate::server) session_version: u64,
}

/// The line of a record, and its beginning.
#[derive(Serialize, Deserialize)]
struct RecordLine {
    recorded: Box<Recorded>,
}

const RECORDED: &str = "{\"recorded\":";

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

/// A call on which a person has to decide.
#[derive(Clone, Debug)]
pub struct OpenCall {
    /// Its number in the run, such as `2.3`: the third call of the form at which the run was suspended for the second
    /// time. A further attempt counts as a suspension. A number is never used again.
    pub number: String,
    /// The identity of the call.
    pub id: CallId,
    /// The call as it is shown to a person.
    pub question: Question,
    /// The arguments as the program gave them: the text of a JSON object.
    pub given: String,
    /// True if the call was about to be sent when its process died: it may have happened, or not.
    pub is_unknown: bool,
    /// The grant that covered the call when the run was suspended, as a clause.
    pub covered: Option<String>,
    /// Its ordinal among the calls that are asked about.
    place: usize,
}

impl OpenCall {
    pub(in crate::server) fn asked(&self) -> AskedCall {
        AskedCall { place: self.place, question: self.question.clone(), given: self.given.clone() }
    }

    /// Describes the call in a reply.
    fn line(&self) -> String {
        format!("{}/{} {}", self.question.server, self.question.tool, cut(&self.given, ARGUMENTS))
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
            terms: Terms::default(),
            resumed_at: None,
            is_cut_off: false,
            keeping: Keeping::default(),
            attempts: Attempts::default(),
        };
        StoredRun { head, run, recorded: None, is_running: false }
    }

    /// Creates the record of a run before it is evaluated for the first time; `arguments` are those of its call, if it has
    /// a key.
    pub(super) fn begun(session: &str, run: Suspended, arguments: Option<String>, start: Start) -> StoredRun {
        let run = StoredRun::new(session, run);
        let terms = Terms { arguments, start: Some(start), ..Terms::default() };
        StoredRun { head: Head { round: 0, terms, ..run.head }, ..run }
    }

    /// Creates the record of a run that makes the calls of a rehearsal of that program once a person has approved them, in
    /// a session of its own; `arguments` are those of the call, if it has a key.
    pub(in crate::server) fn rehearsed_by(
        program: &str,
        session: &str,
        limits: Limits,
        changes: ChangeSet,
        arguments: Option<String>,
    ) -> StoredRun {
        let start = Start { data: Some(changes.data), session_version: 0 };
        let run = Suspended::of(&changes.program, limits, Mark::default(), changes.log);
        let run = StoredRun::new(session, run);
        let rehearsed = Some(program.to_owned());
        let terms = Terms { arguments, start: Some(start), rehearsed, ..Terms::default() };
        StoredRun { head: Head { terms, ..run.head }, ..run }
    }

    /// Creates the record of a run that begins in that session once a person has approved its plan; the log of `run` has
    /// the questions.
    pub(in crate::server) fn planned(session: &str, run: Suspended, start: Start, plan: PlanTerms) -> StoredRun {
        let run = StoredRun::new(session, run);
        let terms = Terms { start: Some(start), plan: Some(plan), ..Terms::default() };
        StoredRun { head: Head { terms, ..run.head }, ..run }
    }

    /// Returns the record after the run was suspended once more.
    pub(super) fn suspended_again(&self, run: Suspended) -> StoredRun {
        let round = self.head.round + 1;
        let mut head = Head { round, resumed_at: None, is_cut_off: false, ..self.head.clone() };
        head.terms.plan = self.plan();
        if let Some(Start { data, .. }) = head.terms.start.take() {
            head.attempts.data = data;
        }
        head.attempts.is_new = false;
        StoredRun { head, run, recorded: None, is_running: false }
    }

    /// Returns the run with the record of what it has done so far.
    pub(super) fn with_record(self, finished: FinishedRecording) -> StoredRun {
        StoredRun { recorded: Some(Box::new(finished.recorded)), ..self }
    }

    /// Returns the record after the run has ended with a reply. The reply is kept for those who ask again.
    pub(super) fn ended_with(&self, reply: &Reply) -> StoredRun {
        let (limits, mark, _) = self.run.clone().into_parts();
        let run = Suspended::of(self.run.program(), limits, mark, Default::default());
        let head = Head { ended: Some(Box::new(reply.clone())), is_cut_off: false, ..self.head.clone() };
        StoredRun { head, run, recorded: None, is_running: false }
    }

    /// Returns the record of a run that has ended, with its whole log; without them if they are too large.
    pub(super) fn recorded_as(self, finished: FinishedRecording, principal: &str) -> StoredRun {
        let FinishedRecording { options: RecordOptions { keep, largest }, recorded, log } = finished;
        let keeping = Keeping { principal: Some(principal.to_owned()), keep: Some(keep.as_secs()) };
        let head = Head { keeping, ..self.head };
        let (limits, _, _) = self.run.clone().into_parts();
        let run = Suspended::of(self.run.program(), limits, Mark::default(), log);
        let whole = StoredRun { head, run, recorded: Some(Box::new(recorded)), is_running: false };
        if whole.encode().len() <= largest {
            return whole;
        }
        let (limits, ..) = self.run.clone().into_parts();
        let run = Suspended::of(self.run.program(), limits, Mark::default(), Logged::default());
        StoredRun { head: whole.head, run, recorded: None, is_running: false }
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
        let (recorded, changes): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with(RECORDED));
        let changes: Vec<LogChange> =
            changes.into_iter().map(serde_json::from_str).collect::<Result<_, _>>().map_err(damaged)?;
        run.log_mut().apply(changes);
        let recorded = recorded.first().map(|line| serde_json::from_str::<RecordLine>(line));
        let recorded = recorded.transpose().map_err(damaged)?.map(|line| line.recorded);
        if head.is_cut_off {
            run.log_mut().cut_off();
        }
        Ok(StoredRun { head, run, recorded, is_running: false })
    }

    /// Returns its text.
    pub(super) fn encode(&self) -> String {
        let head = serde_json::to_string(&self.head).expect("it is data");
        let mut text = format!("{head}\n{}\n", self.run.encode());
        if let Some(recorded) = &self.recorded {
            let line = RecordLine { recorded: recorded.clone() };
            text.push_str(&serde_json::to_string(&line).expect("it is data"));
            text.push('\n');
        }
        text
    }

    /// Returns the run with that log.
    pub(super) fn with_log(&self, log: Logged) -> StoredRun {
        let mut run = self.clone();
        *run.run.log_mut() = log;
        run
    }

    /// Returns the record of an evaluation that is under way, as another process finds it if this one dies. Changes of
    /// its log follow its text.
    pub(super) fn cut_off(&self) -> StoredRun {
        StoredRun { head: Head { is_cut_off: true, ..self.head.clone() }, ..self.clone() }
    }

    /// Returns true if it was last stored in the middle of an evaluation, which may go on.
    pub(super) fn is_under_way(&self) -> bool {
        self.head.is_cut_off || self.open().iter().any(|open| open.is_unknown)
    }

    /// Returns the record of a run that is resumed while its session has that version in the store.
    ///
    /// # Errors
    /// Returns a message if it was resumed before, and the session has changed since.
    pub(super) fn resumed_at(&self, version: u64) -> Result<StoredRun, String> {
        if self.head.attempts.is_new {
            let mut begun = self.clone();
            begun.head.attempts.is_new = false;
            begun.head.terms.start.iter_mut().for_each(|start| start.session_version = version);
            return Ok(begun);
        }
        let before = self.head.terms.start.as_ref().map(|start| start.session_version).or(self.head.resumed_at);
        if before.is_some_and(|before| before != version) {
            if self.head.terms.plan.is_some() && self.head.resumed_at.is_none() {
                return Err("its session has changed since it was planned, so it may do something else".to_owned());
            }
            return Err("it was cut off, and its session has changed since, perhaps by the run itself".to_owned());
        }
        Ok(StoredRun { head: Head { resumed_at: Some(version), ..self.head.clone() }, ..self.clone() })
    }

    /// Returns the run, with whether a process is evaluating it.
    pub(super) fn running(self, is_running: bool) -> StoredRun {
        StoredRun { is_running, ..self }
    }

    /// Returns the run.
    pub fn run(&self) -> &Suspended {
        &self.run
    }

    /// Returns the principal of a recorded run that is not among the principal's sessions.
    pub fn principal(&self) -> Option<&str> {
        self.head.keeping.principal.as_deref()
    }

    /// Returns the record of the whole run, if it is recorded.
    pub fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_deref()
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
        self.head.terms.arguments.as_deref()
    }

    /// Returns with what the run is evaluated from its beginning, if it was not suspended.
    pub(super) fn start(&self) -> Option<&Start> {
        self.head.terms.start.as_ref()
    }

    /// Returns the program that was rehearsed, if the run makes the calls of a rehearsal.
    pub fn rehearsed(&self) -> Option<&str> {
        self.head.terms.rehearsed.as_deref()
    }

    /// Returns the plan to which the run is held, with the decisions on it.
    pub(super) fn plan(&self) -> Option<PlanTerms> {
        self.head.terms.plan.clone().map(|plan| plan.decided(self.run.log()))
    }

    /// Returns true if the run waits for decisions on its plan, and has not begun.
    pub fn is_planned(&self) -> bool {
        self.head.terms.plan.is_some() && self.head.terms.start.is_some() && self.head.resumed_at.is_none()
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
        let kept = self.head.keeping.keep.filter(|_| self.head.ended.is_some());
        self.since() + kept.map_or(WAITING, Duration::from_secs)
    }

    /// Returns true if it has waited too long.
    pub fn is_expired(&self) -> bool {
        SystemTime::now() >= self.expires()
    }

    /// Returns the calls on which a person has to decide, in order.
    pub fn open(&self) -> Vec<OpenCall> {
        self.undecided().into_iter().filter(|call| call.covered.is_none()).collect()
    }

    /// Returns the calls that wait because of others, and that a grant covered when the run was suspended, in order. The
    /// grants are looked up again when the run goes on, and when each call is about to be sent.
    pub fn covered(&self) -> Vec<OpenCall> {
        self.undecided().into_iter().filter(|call| call.covered.is_some()).collect()
    }

    /// Returns whether it has ended, and no further attempt is to be made.
    fn has_ended(&self) -> bool {
        self.head.ended.is_some() && !self.head.attempts.is_failed
    }

    fn undecided(&self) -> Vec<OpenCall> {
        if self.has_ended() || self.is_running {
            return Vec::new();
        }
        let program = sha256(self.run.program().as_bytes());
        let log = self.run.log();
        // Grows with each suspension and each attempt, so that no number is used again.
        let round = u64::from(self.head.round) + u64::from(log.attempt);
        let mut asked: HashMap<&CallId, AskedCall> =
            undecided_calls(log, &program).map(|(call, asked)| (&call.id, asked)).collect();
        let undecided = log.calls.iter().enumerate().filter_map(|(at, call)| {
            let (number, id) = (format!("{round}.{}", at + 1), call.id.clone());
            if let Some(AskedCall { place, question, given }) = asked.remove(&call.id) {
                let is_guarded = call.question.as_ref().is_some_and(|question| question.is_guarded);
                let (question, covered) = (question.offering_later(is_guarded), call.covered.clone());
                return Some(OpenCall { number, id, question, given, is_unknown: false, covered, place });
            }
            let question = crate::lang::Question {
                id: id.clone(),
                server: Arc::clone(&call.server),
                tool: Arc::clone(&call.tool),
                arguments: call.unknown_question().arguments,
                reason: "it is not known whether it happened".to_owned(),
                is_guarded: false,
            };
            let (question, given) = (Question::of(&question, &program), call.shown_arguments().to_owned());
            let open = OpenCall { number, id, question, given, is_unknown: true, covered: None, place: 0 };
            (call.state == CallState::Unknown).then_some(open)
        });
        undecided.collect()
    }

    /// Returns the questions of the run to a person.
    pub(super) fn asked(&self, identity: &str) -> AskedRun {
        let (unknown, open): (Vec<OpenCall>, Vec<OpenCall>) = self.open().into_iter().partition(|open| open.is_unknown);
        AskedRun {
            identity: identity.to_owned(),
            round: self.head.round,
            calls: open.iter().map(OpenCall::asked).collect(),
            expires: self.expires().duration_since(SystemTime::now()).unwrap_or_default(),
            is_stored: true,
            unknown: unknown.iter().map(OpenCall::line).collect(),
        }
    }

    /// Returns the state of the run with its open calls.
    pub(super) fn summary(&self) -> RunSummary {
        let (unknown, open): (Vec<OpenCall>, Vec<OpenCall>) = self.open().into_iter().partition(|open| open.is_unknown);
        let tool = |call: &OpenCall| format!("{}/{}", call.question.server, call.question.tool);
        let expires = self.expires().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (calls, unknown) = (open.iter().map(tool).collect(), unknown.len());
        let last = self.attempts().last().filter(|_| self.head.attempts.is_failed);
        let ended = last.map(|last| last.status.as_str().to_owned());
        let mut made = match last {
            Some(last) => last.made.clone(),
            None if self.head.is_cut_off => MadeCalls::of(self.run.log().changes()),
            None => Vec::new(),
        };
        made.truncate(MADE);
        RunSummary { state: self.state(), calls, unknown, expires, ended, made }
    }

    /// Returns the state of the run.
    pub fn state(&self) -> RunState {
        match &self.head.ended {
            _ if self.has_ended() => RunState::Ended,
            _ if self.is_running => RunState::Running,
            Some(_) => RunState::Failed,
            None if !self.open().is_empty() => RunState::Waiting,
            None if self.head.terms.start.is_some() && self.head.terms.rehearsed.is_none() && !self.is_planned() => {
                RunState::Begun
            }
            None => RunState::Decided,
        }
    }

    /// Finds an open call by its number.
    ///
    /// # Errors
    /// Returns a message that says what is open instead.
    fn find(&self, number: &str) -> Result<OpenCall, String> {
        if let Some(call) = self.undecided().into_iter().find(|call| call.number == number) {
            return Ok(call);
        }
        if self.has_ended() {
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
        if self.has_ended() {
            return Err("the run has ended".to_owned());
        }
        let message = format!("the program was cancelled while it waited ({by}); its open calls were not made");
        let rendered = format!("Cancelled: {message}");
        let failure = Failure { error: "Cancelled".to_owned(), message, rendered, ..Failure::default() };
        *self = self.ended_with(&Reply { status: Status::Cancelled, failure: Some(failure), ..Reply::default() });
        self.head.attempts.is_failed = false;
        Ok(())
    }

    fn note(&mut self, open: &OpenCall, by: &str, decision: String) {
        let tool = format!("{}/{}", open.question.server, open.question.tool);
        let record = DecisionRecord { call: open.id.clone(), tool, at: now(), by: by.to_owned(), decision };
        self.head.decisions.push(record);
    }
}

/// Adds a change of its log to the text of a run.
pub(super) fn push_change(text: &mut String, change: &LogChange) {
    text.push_str(&serde_json::to_string(change).expect("it is data"));
    text.push('\n');
}
