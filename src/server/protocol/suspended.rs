//! The reply about a run that waits, for a client that cannot show its questions.

use crate::lang::{Failure, Reply};
use crate::server::approvals::asked::{AskedCall, AskedRun};
use crate::server::approvals::{Question, is_seen};
use crate::server::text::cut;

use super::doors::Offer;

/// Maximum number of calls that are listed, and maximum length of the arguments of each, in characters.
const LISTED: usize = 8;
const ARGUMENTS: usize = 300;

const DAY: u64 = 24 * 60 * 60;

/// Maximum length of the line of a call that `lisp_approve` takes, in bytes: a person has to read it in a prompt.
const LINE: usize = 2_000;

/// Maximum number of blanks in a row that are shown as they are in such a line.
const MOST_BLANKS: usize = 8;

/// Returns the line of a call as `lisp_approve` takes it: the tool and all arguments, on one line and with every character
/// visible. `None` for a plan, and for a call that is too long to be read in a prompt.
pub(super) fn line(question: &Question, given: &str) -> Option<String> {
    if question.planned.is_some() {
        return None;
    }
    let mut line = format!("{}/{} ", question.server, question.tool);
    let mut rest = given;
    while let Some(c) = rest.chars().next() {
        // Many blanks would move what follows out of sight.
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let (count, is_shown) = if blanks > 0 { (blanks, blanks <= MOST_BLANKS) } else { (c.len_utf8(), is_seen(c)) };
        let (piece, behind) = rest.split_at(count);
        match is_shown {
            true => line.push_str(piece),
            // Inside the text of a JSON value such characters can only be in a string.
            false => piece.encode_utf16().for_each(|unit| line.push_str(&format!("\\u{unit:04x}"))),
        }
        rest = behind;
    }
    (line.len() <= LINE).then_some(line)
}

/// Explains in a reply what its run waits for, how a person decides, and how it goes on.
///
/// Commands need no store if `is_usual_store`. For the prompt of the client, the calls are shown as `lisp_approve` takes
/// them.
pub(super) fn explain(asked: &AskedRun, reply: &mut Reply, is_usual_store: bool, offer: Option<Offer>) {
    let message = waits_for(asked);
    let by_prompt = offer == Some(Offer::Prompt);
    let mut rendered = format!("Suspended: {message}");
    rendered.push_str(&listed(asked, by_prompt));
    let advice = advice(asked, is_usual_store, offer);
    rendered.push_str(&format!("\n{advice}"));
    reply.failure = Some(Failure {
        error: "Suspended".to_owned(),
        message,
        suggestion: Some(advice),
        rendered,
        ..Failure::default()
    });
}

/// Says what a run waits for.
fn waits_for(asked: &AskedRun) -> String {
    let (count, unknown) = (asked.calls.len(), asked.unknown.len());
    let calls = |count: usize| if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
    match (count, unknown) {
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
    }
}

/// Returns a line for each call of a run that waits, the first [`LISTED`] of each kind; for the prompt of the client as
/// `lisp_approve` takes them.
fn listed(asked: &AskedRun, by_prompt: bool) -> String {
    let (count, unknown) = (asked.calls.len(), asked.unknown.len());
    let mut lines = String::new();
    for AskedCall { question, given, .. } in asked.calls.iter().take(LISTED) {
        let line = match (line(question, given).filter(|_| by_prompt), &question.planned) {
            (Some(line), _) => line,
            (None, Some(planned)) => format!("{}/{} {planned}", question.server, question.tool),
            (None, None) => format!("{}/{} {}", question.server, question.tool, cut(given, ARGUMENTS)),
        };
        lines.push_str(&format!("\n- {line}"));
    }
    if count > LISTED {
        lines.push_str(&format!("\n- and {} more", count - LISTED));
    }
    asked.unknown.iter().take(LISTED).for_each(|call| lines.push_str(&format!("\n- {call} (outcome unknown)")));
    if unknown > LISTED {
        lines.push_str(&format!("\n- and {} more of unknown outcome", unknown - LISTED));
    }
    lines
}

/// Says how a person decides on a run that waits, and how it goes on then.
fn advice(asked: &AskedRun, is_usual_store: bool, offer: Option<Offer>) -> String {
    let run = &asked.identity;
    let left = asked.expires.as_secs();
    let left = match left {
        _ if left >= 2 * DAY => format!("{} days", (left + DAY / 2) / DAY),
        _ => format!("{} hours", (left + 1_800) / 3_600),
    };
    let has_lines =
        asked.unknown.is_empty() && asked.calls.iter().all(|call| line(&call.question, &call.given).is_some());
    // The call that was answered so may have brought a corrected program, which is not kept.
    let program = match asked.unknown.is_empty() {
        true => " in place of `program`",
        false => ", or with a corrected `program` beside it",
    };
    let goes_on =
        format!("Then continue with {{\"run\": \"{run}\"}}{program}. Calls that were made are not made again.");
    match asked.is_stored {
        true if offer == Some(Offer::Card) => format!(
            "The user decides within {left}, on a card that `lisp_approve` with {{\"run\": \"{run}\"}} shows. {goes_on}"
        ),
        true if offer == Some(Offer::Prompt) && has_lines => format!(
            "The user decides within {left}, in the prompt for `lisp_approve`: call it with {{\"run\": \"{run}\", \
             \"calls\": […]}}, the lines above after `- `, verbatim. {goes_on}"
        ),
        true if is_usual_store => format!(
            "The user decides within {left}: `lispbox approvals open` shows it in a browser, and `lispbox approvals show \
             {run}` at a terminal; tell the user. {goes_on}"
        ),
        true => {
            format!("The operator decides within {left}, by `lispbox approvals show {run}`; tell the user. {goes_on}")
        }
        false => "Only a client that shows forms can continue it.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_every_character() {
        let question = crate::lang::Question {
            id: crate::lang::CallId::default(),
            server: "files".into(),
            tool: "write-file".into(),
            arguments: "{}".to_owned(),
            reason: String::new(),
            is_guarded: false,
        };
        let question = Question::of(&question, "");
        let given = "{\"path\":\"a\u{202E}b\u{200B}c\u{E0041}\",\"text\":\"\u{e9}\"}";
        assert_eq!(
            line(&question, given).as_deref(),
            Some("files/write-file {\"path\":\"a\\u202eb\\u200bc\\udb40\\udc41\",\"text\":\"\u{e9}\"}")
        );
        let given = "{\"to\":\"ann\u{A0}\u{3000}\u{2028}\u{E000}\"}";
        assert_eq!(
            line(&question, given).as_deref(),
            Some("files/write-file {\"to\":\"ann\\u00a0\\u3000\\u2028\\ue000\"}")
        );
        let given = format!("{{\"a\":\"{}x{}\"}}", " ".repeat(8), " ".repeat(9));
        let shown = format!("files/write-file {{\"a\":\"{}x{}\"}}", " ".repeat(8), "\\u0020".repeat(9));
        assert_eq!(line(&question, &given), Some(shown));
        assert_eq!(line(&question, &"x".repeat(LINE)), None);
        assert_eq!(line(&question, &" ".repeat(LINE / 6)), None);
    }
}
