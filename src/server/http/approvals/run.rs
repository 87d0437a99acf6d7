//! The page of one run: its program, its calls with all their arguments, and the forms that decide on them.

use maud::{Markup, html};
use serde_json::Value;

use crate::server::runs::stored::{OpenCall, StoredRun};
use crate::server::runs::summary::RunState;
use crate::store::Key;

use super::grants::choice;
use super::list::state;
use super::pages::{decisions, page, path_of};
use super::shown::{PIECE, Room, kind_of, marked, marked_line, moment, size, text_of};
use super::sign_ins::SignedIn;

/// A form that could not be used, which is shown again with the reason.
pub(super) struct Returned {
    /// The number of the call.
    pub(super) call: String,
    /// The result that was sent.
    pub(super) result: String,
    /// What is wrong with it.
    pub(super) problem: String,
}

/// Returns the page of a run.
pub(super) fn run(signed_in: &SignedIn, key: &Key, run: &StoredRun, returned: Option<&Returned>) -> Markup {
    let open = run.open();
    let mut room = Room::new();
    let frame = Frame { signed_in, action: format!("{}/decide", path_of(&key.handle)), run: &key.handle };
    let asked: Vec<&OpenCall> = open.iter().filter(|call| !call.is_unknown).collect();
    let content = html! {
        h1 { (state(run.state())) }
        dl.facts {
            dt { "Principal" } dd { (marked_line(&key.principal)) }
            dt { "Asked first" } dd { (moment(run.since())) }
            @if run.state() == RunState::Ended { dt { "Kept until" } } @else { dt { "Expires" } }
            dd { (moment(run.expires())) }
            dt { "Run" } dd { code { (key.handle) } }
        }
        p { (explanation(run, open.len())) }
        @if let Some(failure) = run.reply().and_then(|reply| reply.failure.as_ref()) {
            p.note { (marked_line(&failure.message)) }
        }
        @for call in open.iter().chain(&run.covered()) {
            (frame.call(call, &mut room, returned))
        }
        @if asked.len() > 1 { (frame.all(&asked)) }
        (decisions(run))
        section aria-labelledby="program" {
            h2 id="program" { "Program" }
            (frame.text(run.run().program().trim_end(), "program", "The program", &mut room))
        }
        @if !open.is_empty() { (frame.cancel(&open)) }
    };
    page(state(run.state()), Some(signed_in), &content)
}

fn explanation(run: &StoredRun, open: usize) -> String {
    match (run.state(), open) {
        (RunState::Waiting, _) if run.is_planned() => {
            "The program has not begun: it waits for a decision on its plan, to which it is held.".to_owned()
        }
        (RunState::Waiting, 1) => "The program waits for a decision on 1 call.".to_owned(),
        (RunState::Waiting, open) => format!("The program waits for decisions on {open} calls."),
        (RunState::Decided, _) => "No call is open: the program goes on when its client continues it.".to_owned(),
        (RunState::Running, _) => "A server process evaluates the program.".to_owned(),
        (RunState::Begun, _) => {
            "Its process died. The program goes on with the next call that names the run or has its run key.".to_owned()
        }
        (RunState::Failed, 0) => {
            "The program failed after it has made changes. A corrected one that names the run repeats none of them."
                .to_owned()
        }
        (RunState::Failed, _) => {
            "The program failed while it made a call. Before a corrected one goes on, a person has to say whether that \
             happened."
                .to_owned()
        }
        (RunState::Ended, _) => "The program has ended, and nothing more can be decided.".to_owned(),
    }
}

/// Returns the page of a text, in parts.
pub(super) fn text(signed_in: &SignedIn, run: &str, name: &str, text: &str, address: &str, part: usize) -> Markup {
    let parts = text.len().div_ceil(PIECE).max(1);
    let part = part.clamp(1, parts);
    let (begin, end) = ((part - 1) * PIECE, part * PIECE);
    let shown = &text[text.floor_char_boundary(begin)..text.floor_char_boundary(end)];
    let other = |part: usize| format!("{}/text/{address}?part={part}", path_of(run));
    let links = html! {
        nav.parts aria-label="Parts" {
            @if part > 1 { a.button href=(other(part - 1)) { "Previous part" } }
            @if part < parts { a.button href=(other(part + 1)) { "Next part" } }
        }
    };
    let content = html! {
        h1 { (marked_line(name)) }
        p { "Part " (part) " of " (parts) ", " (size(text.len())) " in all. " a href=(path_of(run)) { "Back to the run" } }
        (links)
        pre.text.whole { (marked(shown)) }
        (links)
    };
    page("A long text", Some(signed_in), &content)
}

/// Finds a text of a run by its address: `program`, or the number of a call and the place of the argument, as in
/// `1.2.3`. Returns its name and the text.
pub(super) fn find_text(run: &StoredRun, address: &str) -> Option<(String, String)> {
    if address == "program" {
        return Some(("The program".to_owned(), run.run().program().trim_end().to_owned()));
    }
    let (number, place) = address.rsplit_once('.')?;
    let call = run.open().into_iter().chain(run.covered()).find(|call| call.number == number)?;
    match &call.question.arguments {
        Value::Object(fields) => {
            let (name, value) = fields.iter().nth(place.parse().ok()?)?;
            Some((format!("{name} of call {number}"), text_of(value)))
        }
        other => Some((format!("The arguments of call {number}"), text_of(other))),
    }
}

/// What all forms of a page share.
struct Frame<'r> {
    signed_in: &'r SignedIn,
    action: String,
    run: &'r str,
}

impl Frame<'_> {
    fn key(&self) -> Markup {
        html! { input type="hidden" name="key" value=(self.signed_in.form_key); }
    }

    fn call(&self, call: &OpenCall, room: &mut Room, returned: Option<&Returned>) -> Markup {
        let OpenCall { number, question, .. } = call;
        let tool = format!("{}/{}", question.server, question.tool);
        html! {
            section.card.call aria-labelledby={ "call-" (number) } {
                h2 id={ "call-" (number) } {
                    @if question.planned.is_some() { "Plan " } @else { "Call " }
                    span.number { (number) } ": " (marked_line(&tool))
                }
                @if call.is_unknown {
                    p.badge { "It is not known whether this call happened" }
                } @else if let Some(by) = &call.covered {
                    p.badge { "No decision is needed: " (marked_line(by)) }
                    p.note { "The grant is looked up again when the call is about to be made." }
                } @else {
                    p.note { "Asked because " (marked_line(&question.rule)) "." }
                }
                (self.arguments(call, room))
                @if call.is_unknown { (self.settle(number, returned)) } @else { (self.decide(number, &tool, question.planned.is_some())) }
            }
        }
    }

    fn arguments(&self, call: &OpenCall, room: &mut Room) -> Markup {
        let number = &call.number;
        if let Some(planned) = &call.question.planned {
            return html! { p { "The program plans " strong { (planned) } ", with any arguments." } };
        }
        html! {
            @match &call.question.arguments {
                Value::Object(fields) if fields.is_empty() => p { "It has no arguments." },
                Value::Object(fields) => dl.arguments {
                    @for (at, (name, value)) in fields.iter().enumerate() {
                        dt { code { (marked_line(name)) } span.kind { (kind_of(value)) } }
                        dd { (self.text(&text_of(value), &format!("{number}.{at}"), name, room)) }
                    }
                },
                other => (self.text(&text_of(other), &format!("{number}.0"), "arguments", room)),
            }
        }
    }

    /// Shows a text in a box that scrolls, or the beginning of it with a link to the whole.
    fn text(&self, text: &str, address: &str, name: &str, room: &mut Room) -> Markup {
        let shown = room.take(text);
        html! {
            pre.text tabindex="0" role="group" aria-label=(name) { (marked(shown)) }
            @if shown.len() < text.len() {
                p.cut {
                    "This is the beginning, " (size(shown.len())) " of " (size(text.len())) ". "
                    a href={ (path_of(self.run)) "/text/" (address) "?part=1" } { "Read all of it" }
                }
            }
        }
    }

    fn decide(&self, number: &str, tool: &str, is_planned: bool) -> Markup {
        html! {
            div.decide {
                form method="post" action=(self.action) {
                    (self.key())
                    input type="hidden" name="calls" value=(number);
                    @if !is_planned { (choice(number)) }
                    button.primary type="submit" name="action" value="approve" aria-label={ "Approve call " (number) " of " (tool) } {
                        "Approve"
                    }
                    p.hint {
                        @if is_planned { "The program may make these calls, and is stopped before any other." }
                        @else { "The call is made once, with exactly these arguments." }
                    }
                }
                form method="post" action=(self.action) {
                    (self.key())
                    input type="hidden" name="calls" value=(number);
                    label for={ "reason-" (number) } { "Reason, which the program is told (optional)" }
                    input id={ "reason-" (number) } name="reason" type="text" maxlength="1000" autocomplete="off";
                    button.danger type="submit" name="action" value="deny" aria-label={ "Deny call " (number) " of " (tool) } {
                        "Deny"
                    }
                }
            }
        }
    }

    fn settle(&self, number: &str, returned: Option<&Returned>) -> Markup {
        let returned = returned.filter(|returned| returned.call == number);
        html! {
            p { "Its process died while the call was sent. Find out at the server of the tool whether it happened." }
            div.decide {
                form method="post" action=(self.action) {
                    (self.key())
                    input type="hidden" name="calls" value=(number);
                    @if let Some(returned) = returned {
                        p.problem role="alert" { (marked_line(&returned.problem)) }
                    }
                    label for={ "result-" (number) } { "Result that the program receives, as JSON" }
                    textarea id={ "result-" (number) } name="result" rows="3" required spellcheck="false" {
                        (returned.map_or("", |returned| &returned.result))
                    }
                    button.primary type="submit" name="action" value="happened" aria-label={ "Call " (number) " happened" } {
                        "It happened"
                    }
                }
                form method="post" action=(self.action) {
                    (self.key())
                    input type="hidden" name="calls" value=(number);
                    p.hint { "The call is made when the program continues." }
                    button.danger type="submit" name="action" value="did-not-happen" aria-label={ "Call " (number) " did not happen" } {
                        "It did not happen"
                    }
                }
            }
        }
    }

    fn all(&self, asked: &[&OpenCall]) -> Markup {
        html! {
            section.card aria-labelledby="all" {
                h2 id="all" { "All calls" }
                @if asked.iter().all(|call| call.question.planned.is_some()) {
                    p { "The program may make the calls above, and is stopped before any other." }
                } @else {
                    p { "Each of the " (asked.len()) " calls above is made once, with exactly the arguments shown." }
                }
                form method="post" action=(self.action) {
                    (self.key())
                    input type="hidden" name="calls" value=(numbers(asked.iter().copied()));
                    button.primary type="submit" name="action" value="approve-all" {
                        "Approve all " (asked.len()) " calls"
                    }
                }
            }
        }
    }

    fn cancel(&self, open: &[OpenCall]) -> Markup {
        html! {
            details.cancel {
                summary { "Cancel the program" }
                p { "The program ends. Its open calls are never made, and its client is told so." }
                form method="post" action=(self.action) {
                    (self.key())
                    input type="hidden" name="calls" value=(numbers(open.iter()));
                    button.danger type="submit" name="action" value="cancel" { "Cancel the program" }
                }
            }
        }
    }
}

/// Returns the numbers of calls as a form holds them.
fn numbers<'c>(calls: impl Iterator<Item = &'c OpenCall>) -> String {
    calls.map(|call| call.number.as_str()).collect::<Vec<_>>().join(",")
}
