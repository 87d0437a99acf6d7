//! The list of the runs.

use maud::{Markup, html};

use crate::server::approvals::forms::state;
use crate::server::approvals::shown::{marked_line, moment};
use crate::server::runs::listing::ListedRun;
use crate::server::runs::stored::StoredRun;
use crate::server::runs::summary::RunState;
use crate::store::Key;

use super::pages::{page, path_of};
use super::sign_ins::SignedIn;

/// Maximum number of runs that a page lists of each state.
const MOST: usize = 200;

/// Maximum number of different tools that are named of a run.
const TOOLS: usize = 8;

/// Returns the list of the runs: those that wait first, the oldest of them first.
pub(super) fn list(signed_in: &SignedIn, listed: Vec<ListedRun>) -> Markup {
    let (mut waiting, mut decided, mut others, mut unreadable) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (key, run) in listed {
        match run {
            Ok(run) => match run.state() {
                RunState::Waiting => waiting.push((key, run)),
                RunState::Decided => decided.push((key, run)),
                RunState::Failed if !run.open().is_empty() => waiting.push((key, run)),
                RunState::Running | RunState::Begun | RunState::Failed | RunState::Ended => others.push((key, run)),
            },
            Err(problem) => unreadable.push((key, problem)),
        }
    }
    waiting.sort_by_key(|(_, run)| run.since());
    let content = html! {
        h1 { "Programs that wait" }
        @match waiting.len() {
            0 => p { "No program waits for a decision." },
            1 => p { "1 program waits for a decision." },
            count => p { (count) " programs wait for a decision, the oldest first." },
        }
        (cards(&waiting))
        p { a href="/approvals/grants" { "Grants" } ": decisions that cover later calls" }
        @if !decided.is_empty() {
            h2 { "Decided" }
            p { "These programs go on when their clients continue them." }
            (cards(&decided))
        }
        @if !others.is_empty() {
            details.others {
                summary { "Running and ended (" (others.len()) ")" }
                (cards(&others))
            }
        }
        @if !unreadable.is_empty() {
            h2 { "Unreadable" }
            ul {
                @for (key, problem) in unreadable.iter().take(MOST) {
                    li { code { (key.handle) } " of " (marked_line(&key.principal)) ": " (marked_line(problem)) }
                }
            }
        }
    };
    page("Programs that wait", Some(signed_in), &content)
}

fn cards(runs: &[(Key, StoredRun)]) -> Markup {
    html! {
        ul.runs {
            @for (key, run) in runs.iter().take(MOST) {
                li.card { (card(key, run)) }
            }
        }
        @if runs.len() > MOST {
            p.note { (runs.len() - MOST) " more are not listed; `lispbox approvals list` lists all." }
        }
    }
}

fn card(key: &Key, run: &StoredRun) -> Markup {
    let open = run.open();
    let unknown = open.iter().filter(|call| call.is_unknown).count();
    let called = open.iter().map(|call| format!("{}/{}", call.question.server, call.question.tool));
    let decided = run.decisions().iter().map(|record| record.tool.clone());
    let tools = distinct(called.chain(decided.filter(|_| open.is_empty())));
    html! {
        h3 {
            a href=(path_of(&key.handle)) {
                @match (open.len(), tools.is_empty()) {
                    (0, true) => (state(run.state())),
                    (0, false) => { (state(run.state())) ": " (marked_line(&tools.join(", "))) },
                    (1.., _) if run.is_planned() => { "A plan with " (marked_line(&tools.join(", "))) },
                    (count, _) => { (calls(count)) " of " (marked_line(&tools.join(", "))) },
                }
            }
        }
        @if unknown > 0 {
            p.badge { "It is not known whether " (calls(unknown)) " happened" }
        }
        dl.facts {
            dt { "Principal" } dd { (marked_line(&key.principal)) }
            dt { "Asked first" } dd { (moment(run.since())) }
            @if run.state() != RunState::Ended { dt { "Expires" } dd { (moment(run.expires())) } }
            dt { "Run" } dd { code { (key.handle) } }
        }
    }
}

/// Returns the first of the different names, with a mark if there are more.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut first: Vec<String> = Vec::new();
    for name in names {
        if first.contains(&name) {
            continue;
        }
        if first.len() == TOOLS {
            first.push("…".to_owned());
            break;
        }
        first.push(name);
    }
    first
}

/// `1 call`, `3 calls`
fn calls(count: usize) -> String {
    format!("{count} call{}", if count == 1 { "" } else { "s" })
}
