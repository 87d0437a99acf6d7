//! A run at a terminal.

use std::time::{Duration, SystemTime};

use lispbox::server::{EndedAttempt, StoredRun};

use crate::output::outln;
use crate::terminal::for_stdout;

use super::tree::{CallNode, FormNode, figures, forms_of, outcome_of, reply_of, time_of};

/// Maximum length of arguments, and of a form, in characters.
const ARGUMENTS: usize = 200;
const FORM: usize = 400;

/// Prints a run as a tree.
pub fn print(identity: &str, run: &StoredRun) {
    let (since, outcome) = (time_of(run.since()), outcome_of(run));
    outln!("run {identity}: {outcome}");
    outln!("{since} UTC, {}", if run.recorded().is_some() { "recorded" } else { "not recorded as a whole" });
    for FormNode { number, line, text, time, calls } in forms_of(run) {
        let took = time.map_or(String::new(), |time| format!(", {} ms", time.ms));
        outln!("\nform {number} (line {line}{took})");
        for line in for_stdout(&shortened(&text, FORM)).lines() {
            outln!("  {line}");
        }
        for call in calls {
            print_call(&call);
        }
    }
    if let Some(reply) = reply_of(run) {
        outln!("");
        for earlier in &reply.earlier {
            outln!("earlier value: {}", for_stdout(&earlier.value));
        }
        if let Some(value) = &reply.value {
            outln!("value: {}", for_stdout(value));
        }
        if !reply.prints.is_empty() {
            outln!("printed:\n{}", for_stdout(reply.prints.trim_end()));
        }
        if !reply.defined.is_empty() {
            outln!("defined: {}", for_stdout(&reply.defined.join(" ")));
        }
        if let Some(failure) = &reply.failure {
            outln!("{}", for_stdout(failure.rendered.trim_end()));
        }
        let spent = reply.spent;
        outln!("spent: fuel {}, {} ms, {} ms of them computing", spent.fuel, spent.total_ms, spent.compute_ms);
    }
    print_attempts(run);
    for decision in run.decisions() {
        outln!("{}", for_stdout(&format!("decision: {}: {} ({})", decision.tool, decision.decision, decision.by)));
    }
}

/// Prints the attempts of a run that did not end well, in order. The last one is the program above.
fn print_attempts(run: &StoredRun) {
    for (at, attempt) in run.attempts().iter().enumerate() {
        let EndedAttempt { program, at: ended, status, error, made, answered } = attempt;
        let ended = time_of(SystemTime::UNIX_EPOCH + Duration::from_secs(*ended));
        outln!(
            "\nattempt {}, until {ended} UTC: {}",
            at + 1,
            error.as_deref().map_or(status.as_str().into(), for_stdout)
        );
        for line in for_stdout(&shortened(program.trim_end(), FORM)).lines() {
            outln!("  {line}");
        }
        let made: Vec<String> = made.iter().map(ToString::to_string).collect();
        outln!("made so far: {}", for_stdout(&made.join(", ")));
        if *answered > 0 {
            outln!("calls answered from earlier attempts: {answered}");
        }
    }
}

fn print_call(call: &CallNode) {
    let CallNode { place, tool, arguments, outcome, .. } = call;
    let figures = figures(call);
    let figures = if figures.is_empty() { figures } else { format!(" ({figures})") };
    let line = format!("  {place:<8}  {tool} {}  {outcome}{figures}", shortened(arguments, ARGUMENTS));
    outln!("{}", for_stdout(&line));
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
    }
}
