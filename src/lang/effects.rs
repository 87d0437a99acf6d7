//! What a reply says about the calls that have changed something.

use super::foreign_text;
use super::host::{CallRecord, Happened};
use super::reply::{Reply, Status};
use super::runs::{Entry, RunLog};
use serde::{Deserialize, Serialize};

/// Maximum length of a line about calls, in bytes.
const LINE: usize = 200;

/// Maximum length of a call that is named with its arguments, in characters.
const CALL: usize = 80;

/// Maximum number of calls of unknown outcome that are kept for a reply.
const UNKNOWN: usize = 20;

/// Maximum number of failed calls that are named.
const FAILED: usize = 3;

/// The calls of one tool that have changed something, or may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCalls {
    /// The name of the tool, with that of its server.
    pub tool: String,
    /// The number of calls.
    pub count: u64,
    /// The number of those that were sent, and of which it is not known whether they were carried out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl MadeCalls {
    /// Counts calls by tool, in the order of their first calls.
    #[doc(hidden)]
    pub fn of<'e>(calls: impl IntoIterator<Item = &'e Entry>) -> Vec<MadeCalls> {
        let mut made: Vec<MadeCalls> = Vec::new();
        for call in calls {
            let unknown = u64::from(call.happened() == Happened::Unknown);
            let tool = foreign_text::qualified(&call.server, &call.tool);
            match made.iter_mut().find(|made| made.tool == tool) {
                Some(made) => (made.count, made.unknown) = (made.count + 1, made.unknown + unknown),
                None => made.push(MadeCalls { tool, count: 1, unknown }),
            }
        }
        made
    }
}

impl std::fmt::Display for MadeCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            1 => write!(f, "{} once", self.tool)?,
            count => write!(f, "{} {count} times", self.tool)?,
        }
        match self.unknown {
            0 => Ok(()),
            unknown if unknown == self.count => f.write_str(" (outcome unknown)"),
            unknown => write!(f, " ({unknown} of them with unknown outcome)"),
        }
    }
}

/// The relation of an attempt of a run to the earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number, from 2.
    pub number: u32,
    /// The number of its calls that were answered by those of earlier attempts.
    pub answered: u64,
    /// The calls of earlier attempts that have changed something, or may have, and that this one has not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<MadeCalls>,
}

impl Attempt {
    /// Returns how an attempt with that log, which has ended with that status, relates to the earlier ones, if there were
    /// any.
    #[doc(hidden)]
    pub fn of(log: &RunLog, status: Status) -> Option<Attempt> {
        if log.attempt() == 0 {
            return None;
        }
        let log = log.logged();
        let left = if status == Status::Ok { MadeCalls::of(log.left()) } else { Vec::new() };
        Some(Attempt { number: log.attempt.saturating_add(1), answered: log.taken().count() as u64, left })
    }
}

/// A program that was cut off without a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutOff {
    /// The identity of its run.
    pub run: String,
    /// The calls that it has made.
    pub made: Vec<MadeCalls>,
}

/// The program that goes on with a run, as the line about it names it.
#[derive(Clone, Copy)]
enum Further {
    /// One without the mistake.
    Corrected,
    /// The same program: calls that were made before take no time and do not count towards limits.
    Same,
}

/// What a further attempt can expect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[doc(hidden)]
pub struct Again {
    /// True if the replies to the reads of this attempt are logged, so that it can reuse them.
    pub has_reads: bool,
    /// True if it sees other times and random numbers, so that calls with them are other calls.
    pub has_new_draws: bool,
}

/// Writes `made before the error: t/mark 4 times; {"run": …} goes on and repeats none of them`, within [`LINE`] bytes.
///
/// It offers the logged replies of reads: models whose programs choose records by a state that they change took the value
/// of a further attempt, which saw the changes, for that of the whole.
fn made_line(before: &str, made: &[MadeCalls], run: Option<&str>, further: Further, again: Again) -> String {
    let begin = format!("[made before {before}: ");
    let reads = if again.has_reads { ", \"reads\": \"logged\"" } else { "" };
    let (program, goes_on) = match further {
        Further::Corrected => ("whole, corrected", "goes on and repeats none of them"),
        Further::Same => ("the same", "goes on behind them"),
    };
    let goes_on =
        if again.has_new_draws { "goes on; calls with a time or random number are made again" } else { goes_on };
    let end = run.map_or("]".to_owned(), |run| {
        format!("; {{\"run\": \"{run}\", \"program\": \"{program}\"{reads}}} {goes_on}]")
    });
    let room = LINE.saturating_sub(begin.len() + end.len());
    format!("{begin}{}{end}", listed(made, room))
}

/// Writes the line about calls of which it is not known whether they were carried out, within [`LINE`] bytes.
fn unknown_line((unknown, count): (&[String], u64), run: Option<&str>) -> Option<String> {
    let call = foreign_text::begun(unknown.first()?, CALL);
    // A reply that was kept has no count.
    let more = match count.max(unknown.len() as u64) {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let end = match run {
        Some(_) => "; look whether it was: the run stops there, `\"repeat\": true` makes it again]",
        None => "; look whether it was before you make it again]",
    };
    Some(format!("[not known whether made: {call}{more}{end}"))
}

/// Returns the first calls of which it is not known whether they were carried out, each with the beginning of its
/// arguments, and the number of all.
#[doc(hidden)]
pub fn unknown_calls<'e>(calls: impl IntoIterator<Item = &'e Entry>) -> (Vec<String>, u64) {
    let (mut shown, mut count) = (Vec::new(), 0);
    for call in calls.into_iter().filter(|call| call.happened() == Happened::Unknown) {
        count += 1;
        if shown.len() < UNKNOWN {
            let arguments = foreign_text::begun(call.shown_arguments(), CALL);
            shown.push(format!("{} {arguments}", foreign_text::qualified(&call.server, &call.tool)));
        }
    }
    (shown, count)
}

/// Lists calls by tool, as many as there is room for.
fn listed(made: &[MadeCalls], room: usize) -> String {
    const MORE: usize = 16;
    let mut out = String::new();
    for (at, calls) in made.iter().enumerate() {
        let calls = calls.to_string();
        let (separator, left) = (if at == 0 { "" } else { ", " }, made.len() - at);
        let reserved = if left > 1 { MORE } else { 0 };
        if out.len() + separator.len() + calls.len() + reserved > room {
            if at == 0 {
                // One tool at least is named.
                let most = room.saturating_sub(reserved + "…".len());
                out = format!("{}…", &calls[..calls.floor_char_boundary(most)]);
                continue;
            }
            let tools = if left == 1 { "tool" } else { "tools" };
            return format!("{out}{separator}{left} more {tools}");
        }
        out.push_str(separator);
        out.push_str(&calls);
    }
    out
}

impl Reply {
    /// Renders the lines about calls that were made before the program ended badly, and by earlier attempts.
    pub(super) fn effects(&self) -> String {
        let mut lines = Vec::new();
        if let Some(Attempt { answered, left, .. }) = &self.attempt {
            lines.extend(match answered {
                0 => None,
                1 => Some("[1 call answered from an earlier attempt]".to_owned()),
                count => Some(format!("[{count} calls answered from earlier attempts]")),
            });
            if !left.is_empty() {
                let (begin, end) = ("[made before and not asked for now: ", "; the value may lack them]");
                lines.push(format!("{begin}{}{end}", listed(left, LINE - begin.len() - end.len())));
            }
            if self.failure.as_ref().is_some_and(|failure| failure.error == "UnboundVariable") {
                lines.push(
                    "[a further attempt has no definitions of the earlier ones: send the program whole]".to_owned(),
                );
            }
        }
        // The failure of a program that goes on has them.
        if !self.made.is_empty() && self.status != Status::Running {
            let before = match self.status {
                Status::Limit => "the limit",
                Status::Cancelled => "it was cancelled",
                Status::Ok | Status::Error | Status::Suspended | Status::Running => "the error",
            };
            // Calls that were made take no time and do not count again.
            let limit = self.failure.as_ref().and_then(|failure| failure.limit.as_deref());
            let is_same = self.status == Status::Cancelled || matches!(limit, Some("calls" | "total"));
            let further = if is_same { Further::Same } else { Further::Corrected };
            lines.push(made_line(before, &self.made, self.run.as_deref(), further, self.again));
        }
        let unknown = (&self.unknown[..], self.unknown_count);
        lines.extend(unknown_line(unknown, self.run.as_deref().filter(|_| !self.made.is_empty())));
        lines.into_iter().map(|line| format!("\n{line}")).collect()
    }

    /// Renders the line about a program that was cut off without a reply, in front of a later reply.
    pub(super) fn cut_off_line(&self) -> Option<String> {
        let CutOff { run, made } = self.cut_off.as_deref()?;
        Some(made_line("a program was cut off", made, Some(run), Further::Same, Again::default()))
    }
}

/// Names the first failed calls, with what tells them apart, as `: shop/send :to "ann" (busy), …`. That with the error of
/// the reply itself is left out, if it has no arguments by which the error could be told apart from others.
pub(super) fn failed_calls(calls: &[CallRecord], error: Option<&str>) -> String {
    let mut failed: Vec<&CallRecord> = calls.iter().filter(|call| call.failed.is_some()).collect();
    let is_told = |last: &&&CallRecord| {
        error == Some(&*last.outcome) && last.failed.as_ref().is_some_and(|failed| failed.starts_with('('))
    };
    if failed.last().filter(is_told).is_some() {
        failed.pop();
    }
    let mut out = String::new();
    for (at, call) in failed.iter().enumerate() {
        let what = format!(
            "{} {}",
            foreign_text::qualified(&call.server, &call.tool),
            foreign_text::line(call.failed.as_deref().unwrap_or_default())
        );
        if at == FAILED || at > 0 && out.len() + what.len() > LINE {
            return format!("{out}, …");
        }
        out.push_str(if at == 0 { ": " } else { ", " });
        out.push_str(&what);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn made(tool: &str, count: u64, unknown: u64) -> MadeCalls {
        MadeCalls { tool: tool.to_owned(), count, unknown }
    }

    #[test]
    fn the_line_on_what_was_made_has_at_most_200_bytes() {
        let run = "h3kqgcs4ofnkzgajjiwcrgi45z";
        let reply =
            |made: Vec<MadeCalls>| Reply { status: Status::Error, made, run: Some(run.to_owned()), ..Reply::default() };
        let line = |reads: &str| {
            format!(
                "\n[made before the error: t/mark 4 times; {{\"run\": \"{run}\", \"program\": \"whole, corrected\"{reads}}} \
                 goes on and repeats none of them]"
            )
        };
        let marked = reply(vec![made("t/mark", 4, 0)]);
        assert_eq!(marked.effects(), line(""));
        assert_eq!(
            Reply { again: Again { has_reads: true, ..Again::default() }, ..marked }.effects(),
            line(", \"reads\": \"logged\"")
        );
        let tools = (0..50).map(|at| made(&format!("{}/{at}", "s".repeat(60)), 1_000_000, 1)).collect();
        let line = reply(tools).effects();
        assert!(line.trim().len() <= LINE, "{line}");
        assert!(line.contains(": ssss") && line.contains("…, 49 more tools; {\"run\""), "{line}");
        let tools = (0..9).map(|at| made(&format!("t/{at}"), 2, 0)).collect();
        let line = reply(tools).effects();
        assert!(line.trim().len() <= LINE, "{line}");
        assert!(line.contains("t/0 2 times, t/1 2 times, ") && line.contains(" more tools; "), "{line}");
    }

    #[test]
    fn two_tools_are_named_beside_the_logged_reads() {
        let made = vec![made("shop/mark_shipped", 7, 0), made("shop/send_mail", 6, 0)];
        let run = Some("h3kqgcs4ofnkzgajjiwcrgi45z".to_owned());
        let again = Again { has_reads: true, ..Again::default() };
        let reply = Reply { status: Status::Error, made, run, again, ..Reply::default() };
        let line = reply.effects();
        assert!(line.contains(": shop/mark_shipped 7 times, shop/send_mail 6 times; {") && line.trim().len() <= LINE);
    }

    #[test]
    fn a_call_of_unknown_outcome_is_named() {
        let run = "h3kqgcs4ofnkzgajjiwcrgi45z".to_owned();
        let unknown = vec!["shop/charge {\"order_id\":\"O-1186\"}".to_owned(), format!("t/mark {}", "x".repeat(900))];
        let made = vec![made("shop/charge", 4, 2)];
        let reply = Reply { status: Status::Error, made, unknown, run: Some(run), ..Reply::default() };
        let lines = reply.effects();
        assert!(
            lines.ends_with(
                "\n[not known whether made: shop/charge {\"order_id\":\"O-1186\"} and 1 more; look whether it was: the run \
                 stops there, `\"repeat\": true` makes it again]"
            ),
            "{lines}"
        );
        let mut long = Reply { unknown: vec![format!("{}/t {}", "s".repeat(99), "x".repeat(900)); 20], ..reply };
        assert!(long.effects().lines().all(|line| line.len() <= LINE), "{}", long.effects());
        long.run = None;
        assert!(long.effects().ends_with("; look whether it was before you make it again]"), "{}", long.effects());
    }

    #[test]
    fn calls_with_other_times_are_not_promised_to_be_the_same() {
        let (made, run) = (vec![made("t/mark", 4, 0)], Some("r".to_owned()));
        let again = Again { has_new_draws: true, ..Again::default() };
        let line = Reply { status: Status::Error, made, run, again, ..Reply::default() }.effects();
        assert!(line.ends_with("} goes on; calls with a time or random number are made again]"), "{line}");
    }

    #[test]
    fn a_limit_of_calls_or_time_offers_the_same_program() {
        for (limit, program) in [("calls", "the same"), ("total", "the same"), ("fuel", "whole, corrected")] {
            let failure = Some(Failure { limit: Some(limit.to_owned()), ..Failure::default() });
            let (made, run) = (vec![made("t/mark", 4, 0)], Some("r".to_owned()));
            let line = Reply { status: Status::Limit, made, run, failure, ..Reply::default() }.effects();
            assert!(line.starts_with("\n[made before the limit: t/mark 4 times; {\"run\": \"r\", "), "{line}");
            assert!(line.contains(&format!("\"program\": \"{program}\"")), "{line}");
        }
    }

    #[test]
    fn an_unknown_outcome_is_said() {
        assert_eq!(made("t/mark", 4, 1).to_string(), "t/mark 4 times (1 of them with unknown outcome)");
        assert_eq!(made("t/mark", 1, 1).to_string(), "t/mark once (outcome unknown)");
    }
}
