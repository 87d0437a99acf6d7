//! The reply about a run that waits, for a client that cannot show its questions.

use crate::lang::{Failure, Reply};
use crate::server::runs::{AskedCall, AskedRun};
use crate::server::text::cut;

/// Maximum number of calls that are listed, and maximum length of the arguments of each, in characters.
const LISTED: usize = 8;
const ARGUMENTS: usize = 300;

const DAY: u64 = 24 * 60 * 60;

/// Explains in a reply what its run waits for, how a person decides, and how it goes on.
pub(super) fn explain(asked: &AskedRun, reply: &mut Reply) {
    let run = &asked.identity;
    let (count, unknown) = (asked.calls.len(), asked.unknown);
    let calls = |count: usize| if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
    let message = match (count, unknown) {
        (1.., 0) if asked.calls.iter().all(|call| call.question.planned.is_some()) => {
            "the program waits until a person has decided on its plan".to_owned()
        }
        (0, _) => format!("the program waits until a person has found out whether {} happened", calls(unknown)),
        (_, 0) => format!("the program waits until a person has decided on {}", calls(count)),
        _ => format!(
            "the program waits until a person has decided on {}, and has found out whether {} happened",
            calls(count),
            calls(unknown)
        ),
    };
    let mut rendered = format!("Suspended: {message}");
    for AskedCall { question, given, .. } in asked.calls.iter().take(LISTED) {
        let arguments = question.planned.as_ref().map_or_else(|| cut(given, ARGUMENTS), String::clone);
        rendered.push_str(&format!("\n- {}/{} {arguments}", question.server, question.tool));
    }
    if count > LISTED {
        rendered.push_str(&format!("\n- and {} more", count - LISTED));
    }
    let left = asked.expires.as_secs();
    let left = match left {
        _ if left >= 2 * DAY => format!("{} days", (left + DAY / 2) / DAY),
        _ => format!("{} hours", (left + 1_800) / 3_600),
    };
    let advice = match asked.is_stored {
        true => format!(
            "The operator decides within {left}, by `lispbox approvals show {run}`; tell the user. Then continue with \
             {{\"run\": \"{run}\"}} in place of `program`. Calls that were made are not made again."
        ),
        false => "Only a client that shows forms can continue it.".to_owned(),
    };
    rendered.push_str(&format!("\n{advice}"));
    reply.failure = Some(Failure {
        error: "Suspended".to_owned(),
        message,
        suggestion: Some(advice),
        rendered,
        ..Failure::default()
    });
}
