//! The record of an evaluation: the common source of agent replies, terminal output, log lines and `--json`.

use super::effects::{Again, Attempt, CutOff, MadeCalls, failed_calls};
use super::failure::Failure;
use super::host::CallRecord;
use super::meter;
use super::planned::DecidedPlan;
use serde::{Deserialize, Deserializer, Serialize};

use super::foreign_text::{self, reply_lines};

/// Maximum number of notes in the text of a reply.
const NOTES: usize = 3;

/// Maximum number of names of definitions in the text of a reply.
const NAMES: usize = 40;

/// The result of an evaluation. Serialized without empty fields.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, Status, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let reply = session.run("(def a [1 2]) (conj a 3)").reply(&World::default()).unwrap();
/// assert_eq!((reply.status, reply.value.as_deref()), (Status::Ok, Some("[1 2 3]")));
/// assert_eq!((reply.json, reply.defined), (Some(serde_json::json!([1, 2, 3])), vec!["a".to_owned()]));
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    /// The status at the end of the evaluation.
    pub status: Status,
    /// The values of the top-level forms before the last, in order, as far as they have been computed. Nil and what
    /// definitions return are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierValue>,
    /// The number of such values for which there was no room.
    #[serde(skip_serializing_if = "is_zero")]
    pub earlier_omitted: u64,
    /// True if the last form is a call that prints: its nil tells nothing.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_print: bool,
    /// The value of the last form, printed within the output limit; its [preview](crate::Limits::preview) if it is large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value as JSON, if it is shown in full and JSON can carry it exactly within the output limit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub json: Option<serde_json::Value>,
    /// The reason why a value that was printed in full has no `json`, with the place in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_error: Option<String>,
    /// The text that the program printed, within the output limit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prints: String,
    /// A description of the part of the value that is shown, such as `50 of 347 items`, if it is not shown in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// Ways to see more of a value that is not shown in full, such as `(describe *1)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// Names that this evaluation defined and kept, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub defined: Vec<String>,
    /// Tool calls made, in the order of their start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// Remarks on what the program did that it may not have meant, or on what it was given, such as pages that hold fewer
    /// items than they say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The handle of the session, if the server reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The identity of a run that is suspended or did not end well, if the server reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The calls that have changed something, or may have, by tool, if the program did not end well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeCalls>,
    /// The first of those calls of which it is not known whether they were carried out, with the beginnings of their
    /// arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The number of those calls.
    #[doc(hidden)]
    #[serde(skip)]
    pub unknown_count: u64,
    /// What a further attempt can expect.
    #[doc(hidden)]
    #[serde(skip)]
    pub again: Again,
    /// The relation of the evaluation to earlier attempts of its run, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// A program before this one that was cut off without a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<Box<CutOff>>,
    /// The calls that were not made, if the evaluation was a rehearsal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsed: Option<Rehearsed>,
    /// The plan of the program, if it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub plan: Option<DecidedPlan>,
    /// The resources spent.
    pub spent: Spent,
    /// The place at which a suspended run is resumed.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Box<Mark>>,
    /// The failure, if any; its fields are flattened into those of the reply.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// The value of a top-level form before the last.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let reply = session.run("(def a [1 2]) (count a) (conj a 3)").reply(&World::default()).unwrap();
/// assert_eq!((reply.earlier.len(), reply.earlier[0].value.as_str()), (1, "2"));
/// assert_eq!(reply.text(1_000), "2\n[1 2 3]\n[defined: a]");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierValue {
    /// The value, printed.
    pub value: String,
    /// A description of the part that is shown, if the value is not shown in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
}

/// The calls that a rehearsal did not make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rehearsed {
    /// The calls, in the order of the program.
    pub calls: Vec<RehearsedCall>,
    /// A sentence on how the calls are made.
    pub next: String,
}

/// A call that a rehearsal did not make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RehearsedCall {
    /// The name of the server.
    pub server: String,
    /// The exact name of the tool.
    pub tool: String,
    /// The arguments as they would be sent, an object.
    pub arguments: serde_json::Value,
}

impl std::fmt::Display for Rehearsed {
    /// Writes the numbered calls with all their arguments, and how they are made.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.calls.len() {
            0 => write!(f, "rehearsed: the program makes no call that may change something")?,
            1 => write!(f, "rehearsed: 1 call was not made")?,
            count => write!(f, "rehearsed: {count} calls were not made")?,
        }
        for (at, RehearsedCall { server, tool, arguments }) in self.calls.iter().enumerate() {
            let name = foreign_text::qualified(server, tool);
            write!(f, "\n\ncall {}: {name} with\n{}", at + 1, reply_lines(&format!("{arguments:#}")))?;
        }
        if !self.next.is_empty() {
            write!(f, "\n\n{}", self.next)?;
        }
        Ok(())
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Deserializes a value that is present, even if it is null.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(from).map(Some)
}

/// The place at which a suspended run is resumed: before a top-level form, with what the forms before it have spent and
/// printed.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// Ordinal of the form, from 0.
    pub form: u32,
    /// The number of the program in its session, from 1.
    pub program: u32,
    /// The steps spent.
    pub fuel: u64,
    /// The state of the random number generator, if it is seeded.
    pub random: Option<u64>,
    /// The number of names that `gensym` has generated.
    pub generated: u64,
    /// The printed text, within the output limit.
    pub prints: String,
    /// The number of printed bytes beyond the output limit.
    pub prints_cut: u64,
    /// The names that were defined.
    pub defined: Vec<String>,
    /// The values of the forms before it.
    pub earlier: Vec<EarlierValue>,
    /// The number of such values for which there was no room.
    pub earlier_omitted: u64,
    /// The tool calls that were made.
    pub calls: Vec<CallRecord>,
    /// The notes on the evaluation.
    pub notes: Vec<String>,
    /// The names of the data and the parameters, whose values the session keeps for the run.
    pub inputs: Vec<String>,
    /// The number of times that the run was suspended, if the session keeps count; 0 otherwise.
    pub turn: u32,
}

/// The final status of an evaluation.
///
/// ```
/// use lispbox::lang::Status;
///
/// assert_eq!(serde_json::to_string(&Status::Limit).unwrap(), "\"limit\"");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It returned a value.
    #[default]
    Ok,
    /// The program raised an error, or a tool failed, and nothing caught it.
    Error,
    /// A limit was exceeded.
    Limit,
    /// It was cancelled from outside.
    Cancelled,
    /// It waits for the decision of a person, and can be resumed.
    Suspended,
    /// It goes on: a server has answered before its end, and has its reply later.
    Running,
}

impl Status {
    /// Returns the name of the status in a serialized reply.
    ///
    /// ```
    /// assert_eq!(lispbox::lang::Status::Limit.as_str(), "limit");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::Limit => "limit",
            Status::Cancelled => "cancelled",
            Status::Suspended => "suspended",
            Status::Running => "running",
        }
    }
}

/// The resources spent by an evaluation.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// session.run("(reduce + (range 1000))").eval::<i64>(&World::default()).unwrap().done().unwrap();
/// assert!(session.report().spent.fuel >= 1000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The number of steps.
    pub fuel: u64,
    /// The maximum of live bytes observed.
    pub memory_bytes: u64,
    /// The deepest nesting of calls.
    pub depth: u32,
    /// Wall-clock time without the time spent waiting for the host.
    pub compute_ms: u64,
    /// Wall-clock time.
    pub total_ms: u64,
}

impl Reply {
    /// Replaces all that is charged to the evaluation by copies that are not: the reply leaves the evaluation. Empty
    /// parts, which most are, stay in place.
    pub(crate) fn leave(&mut self) {
        fn copy_by<T>(part: &mut T, copy: impl FnOnce(&T) -> T) {
            let copied = meter::outside(|| copy(part));
            drop(std::mem::replace(part, copied));
        }
        fn copy<T: Clone>(part: &mut T) {
            copy_by(part, T::clone);
        }
        fn apart(calls: &[CallRecord]) -> Vec<CallRecord> {
            calls.iter().map(CallRecord::apart).collect()
        }
        let Reply {
            status: _,
            earlier,
            earlier_omitted: _,
            unknown,
            unknown_count: _,
            again: _,
            is_print: _,
            value,
            json,
            json_error,
            prints,
            truncated,
            more,
            defined,
            calls,
            notes,
            session,
            run,
            made,
            attempt,
            cut_off,
            rehearsed,
            plan,
            spent: _,
            mark,
            failure,
        } = self;
        for text in [value, json_error, truncated, session, run].into_iter().flatten() {
            copy(text);
        }
        if prints.capacity() > 0 {
            copy(prints);
        }
        for texts in [defined, more, notes, unknown] {
            if texts.capacity() > 0 {
                copy(texts);
            }
        }
        if earlier.capacity() > 0 {
            copy(earlier);
        }
        if calls.capacity() > 0 {
            copy_by(calls, |calls| apart(calls));
        }
        if let Some(json) = json.as_mut().filter(|json| json.is_string() || json.is_array() || json.is_object()) {
            copy(json);
        }
        if let Some(mark) = mark {
            copy_by(mark, |mark| Box::new(Mark { calls: apart(&mark.calls), ..(**mark).clone() }));
        }
        if made.capacity() > 0 {
            copy(made);
        }
        attempt.iter_mut().for_each(copy);
        cut_off.iter_mut().for_each(copy);
        rehearsed.iter_mut().for_each(copy);
        plan.iter_mut().for_each(copy);
        failure.iter_mut().for_each(copy);
    }

    /// Serializes the reply as JSON without the rendering of the failure, for readers who get that apart or not at all.
    ///
    /// # Errors
    /// Returns the error of serde_json.
    #[doc(hidden)]
    pub fn record(&mut self) -> serde_json::Result<String> {
        let rendered = self.failure.as_mut().map(|failure| std::mem::take(&mut failure.rendered));
        let record = serde_json::to_string(self);
        if let (Some(failure), Some(rendered)) = (&mut self.failure, rendered) {
            failure.rendered = rendered;
        }
        record
    }

    /// Renders the reply for an agent, within `limit` bytes: the values or the error, the printed text, and one line on
    /// definitions and tool calls. Lines of the program's output that imitate ours are marked with a `\`
    /// ([`reply_lines`]).
    pub fn text(&self, limit: u64) -> String {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut out = match &self.failure {
            // It is one of our lines.
            Some(failure) if self.status == Status::Running => failure.rendered.clone(),
            Some(failure) => reply_lines(&failure.rendered).into_owned(),
            None if let Some(plan) = &self.plan => plan.to_string(),
            None => match (self.earlier_text(), self.value_text()) {
                (earlier, value) if earlier.is_empty() || value.is_empty() => earlier + &value,
                (earlier, value) => format!("{earlier}\n{value}"),
            },
        };
        if let Some(line) = self.cut_off_line() {
            out = if out.is_empty() { line } else { format!("{line}\n{out}") };
        }
        let closing = self.closing() + &self.effects();
        if !self.prints.is_empty() {
            let before = if out.is_empty() { "" } else { "\nprinted:\n" };
            let room = limit.saturating_sub(out.len() + before.len() + closing.len() + 40);
            out.push_str(before);
            push_within(&mut out, &reply_lines(self.prints.trim_end_matches('\n')), room);
        }
        if let Some(rehearsed) = &self.rehearsed {
            out.push_str(&format!("\n{rehearsed}"));
        }
        if out.len() + closing.len() > limit {
            let whole = std::mem::take(&mut out);
            push_within(&mut out, &whole, limit.saturating_sub(closing.len() + 40));
        }
        out.push_str(if out.is_empty() { closing.trim_start() } else { &closing });
        out
    }

    /// Renders the values before the last.
    fn earlier_text(&self) -> String {
        let mut lines = Vec::new();
        for EarlierValue { value, truncated } in &self.earlier {
            lines.push(reply_lines(value).into_owned());
            lines.extend(truncated.as_ref().map(|extent| format!("[elided: {}]", foreign_text::line(extent))));
        }
        match self.earlier_omitted {
            0 => {}
            1 => lines.push("[elided: 1 more value]".to_string()),
            count => lines.push(format!("[elided: {count} more values]")),
        }
        lines.join("\n")
    }

    /// Renders the last value, unless it is what a definition returned, which the last line reports.
    fn value_text(&self) -> String {
        let value = self.value.as_deref().unwrap_or("nil");
        let is_defined = |name| self.defined.iter().any(|defined| defined == name);
        let mut out = match value {
            value if value.strip_prefix("#'").is_some_and(is_defined) => String::new(),
            "nil" if self.is_print && !self.prints.is_empty() => String::new(),
            "nil" if self.prints.is_empty() && self.defined.is_empty() && self.earlier.is_empty() => {
                "nil (the program printed nothing)".to_string()
            }
            value => reply_lines(value).into_owned(),
        };
        if let Some(extent) = &self.truncated {
            let extent = foreign_text::line(extent);
            let more = self.more.iter().map(|more| foreign_text::line(more)).collect::<Vec<_>>();
            let more = match more.split_last() {
                None => String::new(),
                Some((last, [])) => format!("; more: {last}"),
                Some((last, others)) => format!("; more: {} or {last}", others.join(", ")),
            };
            out.push_str(&format!("\n[elided: {extent}{more}]"));
        }
        out
    }

    /// Renders `[defined: a, b; 2 tool calls]` on a separate line, or nothing if all parts are empty.
    fn closing(&self) -> String {
        let mut parts = Vec::new();
        if !self.defined.is_empty() {
            let names = self.defined.iter().take(NAMES).map(|name| foreign_text::symbol(name)).collect::<Vec<_>>();
            let more = match self.defined.len() - names.len() {
                0 => String::new(),
                count => format!(" and {count} more"),
            };
            parts.push(format!("defined: {}{more}", names.join(", ")));
        } else if self.failure.is_some() && !self.calls.is_empty() {
            parts.push("nothing was defined".to_string());
        }
        // Calls that wait for a decision, and those of a rehearsal, were not made.
        let made = self.calls.iter().filter(|call| !["asked", "rehearsed"].contains(&&*call.outcome)).count();
        if made > 0 {
            let failed =
                self.calls.iter().filter(|call| !["ok", "asked", "rehearsed"].contains(&&*call.outcome)).count();
            let plural = if made == 1 { "" } else { "s" };
            let failures = if failed > 0 {
                let error = self.failure.as_ref().map(|failure| failure.error.as_str());
                format!(", {failed} failed{}", failed_calls(&self.calls, error))
            } else {
                String::new()
            };
            parts.push(format!("{made} tool call{plural}{failures}"));
        }
        let mut notes = call_notes(&self.calls);
        notes.extend(self.notes.iter().map(|note| foreign_text::line(note)));
        let more = notes.len().saturating_sub(NOTES);
        parts.extend(notes.into_iter().take(NOTES).map(|note| format!("note: {note}")));
        if more > 0 {
            parts.push(format!("{more} more notes"));
        }
        if parts.is_empty() { String::new() } else { format!("\n[{}]", parts.join("; ")) }
    }
}

/// Returns the notes on calls, as `server/tool: note`, each once.
pub fn call_notes(calls: &[CallRecord]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for call in calls {
        let tool = || foreign_text::qualified(&call.server, &call.tool);
        let note = call.note.as_ref().map(|note| format!("{}: {}", tool(), foreign_text::line(note)));
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    notes
}

/// Appends text, truncated at a character boundary and with a note of the truncation if it exceeds the remaining room.
fn push_within(out: &mut String, text: &str, room: usize) {
    if text.len() <= room {
        out.push_str(text);
        return;
    }
    let cut = text.floor_char_boundary(room);
    out.push_str(&text[..cut]);
    out.push_str(&format!("\n[truncated: {cut} of {} bytes]", text.len()));
}
