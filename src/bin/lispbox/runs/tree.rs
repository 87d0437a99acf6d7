//! A run as a tree of forms and calls.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use lispbox::lang::{CallState, Decision, Entry, Reply, ToolReply, internal};
use lispbox::server::{RunState, StoredRun};

use crate::repl::forms;

/// One form of a program, with the calls that it made.
pub struct FormNode {
    /// Its number, from 1.
    pub number: u32,
    /// The line of the program in which it begins, from 1.
    pub line: usize,
    pub text: String,
    /// Its time, if times were recorded.
    pub time: Option<Span>,
    pub calls: Vec<CallNode>,
}

/// One call.
pub struct CallNode {
    /// Its place: `2.1`, or `2[0].1` in the first parallel branch of the second form.
    pub place: String,
    pub tool: String,
    pub arguments: String,
    /// What became of it, in words.
    pub outcome: String,
    pub is_well: bool,
    /// The size of its reply in bytes.
    pub bytes: Option<u64>,
    pub reply: Option<String>,
    pub time: Option<Span>,
}

/// A period, in milliseconds since 1970 and in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub at: i64,
    pub ms: u64,
}

/// Returns the forms of a run with their calls. A form that was not reached has neither time nor calls.
pub fn forms_of(run: &StoredRun) -> Vec<FormNode> {
    let program = run.run().program();
    let log = run.run().log();
    let texts = forms(program).unwrap_or_else(|_| vec![(0, program.to_owned())]);
    let end = end_of(run);
    let node = |(at, (offset, text)): (usize, (usize, String))| {
        let ordinal = u32::try_from(at).unwrap_or(u32::MAX);
        let begun = log.begun.get(&ordinal).copied();
        let next = log.begun.range(ordinal.saturating_add(1)..).next().map(|(_, next)| *next).or(end);
        let time = begun.map(|at| {
            let ms = next.map_or(0, |next| u64::try_from(next - at).unwrap_or(0));
            Span { at, ms }
        });
        let line = program[..offset].matches('\n').count() + 1;
        let calls = log.calls.iter().filter(|call| call.id.form == ordinal).map(call_node).collect();
        FormNode { number: ordinal + 1, line, text, time, calls }
    };
    texts.into_iter().enumerate().map(node).collect()
}

/// The time at which a run that was recorded ended.
fn end_of(run: &StoredRun) -> Option<i64> {
    let log = run.run().log();
    let last_call = log.calls.iter().filter_map(|call| call.timing).map(|timing| timing.at + as_i64(timing.ms)).max();
    let total = run.recorded().and_then(|recorded| recorded.reply.as_ref()).map(|reply| reply.spent.total_ms);
    let first = log.begun.values().next().copied();
    // A run that waited took longer than the evaluation that ended it.
    let spent = first.zip(total).map(|(first, total)| first + as_i64(total));
    last_call.max(spent).max(log.begun.values().last().copied())
}

fn as_i64(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn call_node(entry: &Entry) -> CallNode {
    let branch: String = entry.id.branch.iter().map(|branch| format!("[{branch}]")).collect();
    let (outcome, is_well, reply) = match &entry.state {
        CallState::Done(reply) => (reply.outcome().to_owned(), matches!(reply.outcome(), "ok"), text_of(reply)),
        CallState::Open if entry.question.is_some() && entry.decision.is_none() => {
            ("waits for approval".to_owned(), false, None)
        }
        CallState::Open => ("not made".to_owned(), false, None),
        CallState::Started => ("being made".to_owned(), false, None),
        CallState::Forgotten => ("made; its reply was too large to be recorded".to_owned(), true, None),
        CallState::Unknown => ("it is not known whether it happened".to_owned(), false, None),
    };
    let decided = match (&entry.question, &entry.decision) {
        (Some(_), Some(Decision::Approved)) => ", approved",
        (Some(_), Some(Decision::Denied(_))) => ", denied",
        _ => "",
    };
    let bytes = match &entry.state {
        CallState::Done(reply) => Some(reply.bytes()),
        _ => None,
    };
    CallNode {
        place: format!("{}{branch}.{}", entry.id.form + 1, entry.id.ordinal + 1),
        tool: format!("{}/{}", entry.server, entry.tool),
        arguments: entry.shown_arguments().to_owned(),
        outcome: format!("{outcome}{decided}"),
        is_well,
        bytes,
        reply,
        time: entry.timing.map(|timing| Span { at: timing.at, ms: timing.ms }),
    }
}

fn text_of(reply: &ToolReply) -> Option<String> {
    match reply {
        ToolReply::Json(text) | ToolReply::Text(text) | ToolReply::Marked(text) => Some(text.clone()),
        ToolReply::Error(error) => Some(error.message.clone()),
        ToolReply::Denied(why)
        | ToolReply::Unapproved(why)
        | ToolReply::Diverged(why)
        | ToolReply::Unplanned(why)
        | ToolReply::Repeated(why) => Some(why.clone()),
        _ => None,
    }
}

/// The state of a run, or the status of the reply of one that has ended.
pub fn outcome_of(run: &StoredRun) -> &'static str {
    match (run.state(), run.reply()) {
        (RunState::Ended | RunState::Failed, Some(reply)) => reply.status.as_str(),
        (state, _) => state.word(),
    }
}

/// The reply of a run as it was evaluated, or as it was given.
pub fn reply_of(run: &StoredRun) -> Option<&Reply> {
    run.recorded().and_then(|recorded| recorded.reply.as_deref()).or(run.reply())
}

/// `2026-11-26 01:20:03`, in UTC.
pub fn time_of(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let time = Timestamp::from_second(i64::try_from(since.as_secs()).unwrap_or(0)).unwrap_or_default();
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `12.3 KiB, 34 ms`: the size of a reply and the time that it took, as far as they are known.
pub fn figures(call: &CallNode) -> String {
    let bytes = call.bytes.map(internal::bytes);
    let time = call.time.map(|time| format!("{} ms", time.ms));
    bytes.into_iter().chain(time).collect::<Vec<_>>().join(", ")
}
