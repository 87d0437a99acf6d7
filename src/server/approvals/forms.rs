//! A run as a person sees it who decides: its program, its calls with all their arguments, and the forms that decide on
//! them. The approvals page and the card of MCP Apps show the same.

use maud::{Markup, html};
use serde_json::Value;

use crate::server::runs::stored::{OpenCall, StoredRun};
use crate::server::runs::summary::RunState;
use crate::store::Key;

use super::decisions::decisions;
use super::shown::{Room, kind_of, marked, marked_line, moment, size, text_of};
use super::terms::choice;

/// A form that could not be used, which is shown again with the reason.
pub(in crate::server) struct Returned {
    /// The number of the call.
    pub(in crate::server) call: String,
    /// The result that was sent.
    pub(in crate::server) result: String,
    /// The problem with it.
    pub(in crate::server) problem: String,
}

/// The surface on which a run is shown.
pub(in crate::server) enum Place<'p> {
    /// On a page of a web site, with its path below which the forms and the parts of long texts are, and the secret
    /// that its forms repeat.
    Page { path: &'p str, form_key: &'p str },
    /// On a card in a client, whose script sends the forms.
    Card,
}

/// Shows a run with the forms that decide on it.
pub(in crate::server) fn show(place: &Place, key: &Key, run: &StoredRun, returned: Option<&Returned>) -> Markup {
    let open = run.open();
    let mut room = Room::new();
    let frame = Frame { place, run: &key.handle };
    let asked: Vec<&OpenCall> = open.iter().filter(|call| !call.is_unknown).collect();
    let mut is_whole = true;
    html! {
        h1 { (state(run.state())) }
        dl.facts {
            @if let Place::Page { .. } = place {
                dt { "Principal" } dd { (marked_line(&key.principal)) }
                dt { "Asked first" } dd { (moment(run.since())) }
            }
            @if run.state() == RunState::Ended { dt { "Kept until" } } @else { dt { "Expires" } }
            dd { (moment(run.expires())) }
            @if let Place::Page { .. } = place {
                dt { "Run" } dd { code { (key.handle) } }
            }
        }
        p { (explanation(run, open.len())) }
        @if let Some(failure) = run.reply().and_then(|reply| reply.failure.as_ref()) {
            p.note { (marked_line(&failure.message)) }
        }
        @for call in open.iter().chain(&run.covered()) {
            (frame.call(call, &mut room, &mut is_whole, returned))
        }
        @if asked.len() > 1 { (frame.all(&asked, is_whole)) }
        (decisions(run))
        section aria-labelledby="program" {
            h2 id="program" { "Program" }
            (frame.text(run.run().program().trim_end(), "program", "The program", &mut room).markup)
        }
        @if !open.is_empty() { (frame.cancel(&open)) }
    }
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

/// Returns the state of a run in words.
pub(in crate::server) fn state(state: RunState) -> &'static str {
    match state {
        RunState::Waiting => "Waiting for a decision",
        RunState::Decided => "Decided",
        RunState::Running => "Running",
        RunState::Begun => "Interrupted",
        RunState::Failed => "Failed",
        RunState::Ended => "Ended",
    }
}

/// The parts that all forms of a run share.
struct Frame<'r> {
    place: &'r Place<'r>,
    run: &'r str,
}

impl Frame<'_> {
    /// Lays out a form with these fields.
    fn form(&self, fields: &Markup) -> Markup {
        html! {
            @match self.place {
                Place::Page { path, form_key } => form method="post" action={ (path) "/decide" } {
                    input type="hidden" name="key" value=(form_key);
                    (fields)
                },
                Place::Card => form { (fields) },
            }
        }
    }

    fn call(&self, call: &OpenCall, room: &mut Room, is_whole: &mut bool, returned: Option<&Returned>) -> Markup {
        let OpenCall { number, question, .. } = call;
        let tool = format!("{}/{}", question.server, question.tool);
        let arguments = self.arguments(call, room);
        // On a page, the rest of a long text is one link away.
        let is_shown = arguments.is_whole || matches!(self.place, Place::Page { .. });
        *is_whole &= is_shown;
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
                (arguments.markup)
                @if call.is_unknown { (self.settle(number, returned)) } @else { (self.decide(number, &tool, question.planned.is_some(), is_shown)) }
            }
        }
    }

    fn arguments(&self, call: &OpenCall, room: &mut Room) -> Shown {
        let number = &call.number;
        if let Some(planned) = &call.question.planned {
            let markup = html! { p { "The program plans " strong { (planned) } ", with any arguments." } };
            return Shown { markup, is_whole: true };
        }
        match &call.question.arguments {
            Value::Object(fields) if fields.is_empty() => {
                Shown { markup: html! { p { "It has no arguments." } }, is_whole: true }
            }
            Value::Object(fields) => {
                let texts: Vec<(&String, &Value, Shown)> = fields
                    .iter()
                    .enumerate()
                    .map(|(at, (name, value))| {
                        (name, value, self.text(&text_of(value), &format!("{number}.{at}"), name, room))
                    })
                    .collect();
                let is_whole = texts.iter().all(|(_, _, text)| text.is_whole);
                let markup = html! {
                    dl.arguments {
                        @for (name, value, text) in &texts {
                            dt { code { (marked_line(name)) } span.kind { (kind_of(value)) } }
                            dd { (text.markup) }
                        }
                    }
                };
                Shown { markup, is_whole }
            }
            other => self.text(&text_of(other), &format!("{number}.0"), "arguments", room),
        }
    }

    /// Shows a text in a box that scrolls, or the beginning of it with the way to the whole.
    fn text(&self, text: &str, address: &str, name: &str, room: &mut Room) -> Shown {
        let shown = room.take(text);
        let is_whole = shown.len() == text.len();
        let markup = html! {
            pre.text tabindex="0" role="group" aria-label=(name) { (marked(shown)) }
            @if !is_whole {
                p.cut {
                    "This is the beginning, " (size(shown.len())) " of " (size(text.len())) ". "
                    @match self.place {
                        Place::Page { path, .. } => a href={ (path) "/text/" (address) "?part=1" } { "Read all of it" },
                        Place::Card => { "All of it: " code { "lispbox approvals show " (self.run) } },
                    }
                }
            }
        };
        Shown { markup, is_whole }
    }

    fn decide(&self, number: &str, tool: &str, is_planned: bool, is_shown: bool) -> Markup {
        let approve = html! {
            input type="hidden" name="calls" value=(number);
            @if !is_planned { (choice(number)) }
            button.primary type="submit" name="action" value="approve" aria-label={ "Approve call " (number) " of " (tool) } {
                "Approve"
            }
            p.hint {
                @if is_planned { "The program may make these calls, and is stopped before any other." }
                @else { "The call is made once, with exactly these arguments." }
            }
        };
        let deny = html! {
            input type="hidden" name="calls" value=(number);
            (reason(number))
            button.danger type="submit" name="action" value="deny" aria-label={ "Deny call " (number) " of " (tool) } {
                "Deny"
            }
        };
        html! {
            div.decide {
                @if is_shown { (self.form(&approve)) } @else { p.note { (TOO_LONG) } }
                (self.form(&deny))
            }
        }
    }

    fn settle(&self, number: &str, returned: Option<&Returned>) -> Markup {
        let returned = returned.filter(|returned| returned.call == number);
        let happened = html! {
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
        };
        let did_not = html! {
            input type="hidden" name="calls" value=(number);
            p.hint { "The call is made when the program continues." }
            button.danger type="submit" name="action" value="did-not-happen" aria-label={ "Call " (number) " did not happen" } {
                "It did not happen"
            }
        };
        html! {
            p { "Its process died while the call was sent. Find out at the server of the tool whether it happened." }
            div.decide { (self.form(&happened)) (self.form(&did_not)) }
        }
    }

    fn all(&self, asked: &[&OpenCall], is_whole: bool) -> Markup {
        let calls = html! { input type="hidden" name="calls" value=(numbers(asked.iter().copied())); };
        let approve = html! {
            (calls)
            button.primary type="submit" name="action" value="approve-all" { "Approve all " (asked.len()) " calls" }
        };
        let deny = html! {
            (calls)
            (reason("all"))
            button.danger type="submit" name="action" value="deny-all" { "Deny all " (asked.len()) " calls" }
        };
        html! {
            section.card aria-labelledby="all" {
                h2 id="all" { "All calls" }
                @if asked.iter().all(|call| call.question.planned.is_some()) {
                    p { "The program may make the calls above, and is stopped before any other." }
                } @else {
                    p { "Each of the " (asked.len()) " calls above is made once, with exactly the arguments shown." }
                }
                div.decide {
                    @if is_whole { (self.form(&approve)) } @else { p.note { (TOO_LONG) } }
                    (self.form(&deny))
                }
            }
        }
    }

    fn cancel(&self, open: &[OpenCall]) -> Markup {
        let cancel = html! {
            input type="hidden" name="calls" value=(numbers(open.iter()));
            button.danger type="submit" name="action" value="cancel" { "Cancel the program" }
        };
        html! {
            details.cancel {
                summary { "Cancel the program" }
                p { "The program ends. Its open calls are never made, and its client is told so." }
                (self.form(&cancel))
            }
        }
    }
}

/// A text, and whether all of it is shown.
struct Shown {
    markup: Markup,
    is_whole: bool,
}

/// Why a card does not approve.
const TOO_LONG: &str = "Not all of it fits on this card, so it cannot be approved here.";

/// The field of a form with the reason of a denial.
fn reason(number: &str) -> Markup {
    html! {
        label for={ "reason-" (number) } { "Reason, which the program is told (optional)" }
        input id={ "reason-" (number) } name="reason" type="text" maxlength="1000" autocomplete="off";
    }
}

/// Returns the numbers of calls as a form holds them.
fn numbers<'c>(calls: impl Iterator<Item = &'c OpenCall>) -> String {
    calls.map(|call| call.number.as_str()).collect::<Vec<_>>().join(",")
}
