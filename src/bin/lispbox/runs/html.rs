//! A run as a page with a timeline, in one file without scripts.

use lispbox::server::StoredRun;
use maud::{Markup, html};

use super::tree::{CallNode, FormNode, Span, figures, forms_of, outcome_of, reply_of, time_of};
use crate::page::self_contained;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #6a737d; --line: #d0d7de; --bar: #2f6feb; \
--bad: #c93c37; --form: #d8e4fd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #8b949e; --line: #30363d; \
--bar: #4184e4; --bad: #e5534b; --form: #1d2b45; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; \
max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 2rem 0 .3rem; }
pre, code { font: 13px/1.45 ui-monospace, monospace; } pre { overflow: auto; max-height: 24rem; padding: .6rem; \
border: 1px solid var(--line); border-radius: .4rem; margin: .3rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.soft { color: var(--soft); } .bad { color: var(--bad); }
.track { position: relative; height: .7rem; background: color-mix(in srgb, var(--line) 40%, transparent); \
border-radius: .2rem; margin: .2rem 0; }
.bar { position: absolute; top: 0; bottom: 0; min-width: 2px; background: var(--bar); border-radius: .2rem; }
.form > .track .bar { background: var(--form); outline: 1px solid var(--bar); } .bar.bad { background: var(--bad); }
details { margin: .2rem 0 .2rem 1rem; } summary { cursor: pointer; overflow-wrap: anywhere; }
";

/// Returns the page of a run.
pub fn page(identity: &str, run: &StoredRun) -> String {
    let forms = forms_of(run);
    let whole = whole(&forms);
    let body = html! {
        h1 { "Run " code { (identity) } }
        p {
            (outcome_of(run)) " · " (time_of(run.since())) " UTC"
            @if let Some(whole) = whole { " · " (whole.ms) " ms" }
            @if let Some(reply) = reply_of(run) { " · fuel " (reply.spent.fuel) }
        }
        @for form in &forms { (form_section(form, whole)) }
        (outcome(run))
    };
    self_contained(&format!("Run {identity}"), STYLE, &body)
}

/// The period of the whole run.
fn whole(forms: &[FormNode]) -> Option<Span> {
    let spans = || forms.iter().flat_map(|form| form.calls.iter().filter_map(|call| call.time).chain(form.time));
    let begin = spans().map(|span| span.at).min()?;
    let end = spans().map(|span| span.at + i64::try_from(span.ms).unwrap_or(0)).max()?;
    Some(Span { at: begin, ms: u64::try_from(end - begin).unwrap_or(0) })
}

fn form_section(form: &FormNode, whole: Option<Span>) -> Markup {
    let FormNode { number, line, text, time, calls } = form;
    html! {
        section.form {
            h2 {
                "Form " (number)
                span.soft { " line " (line) @if let Some(time) = time { ", " (time.ms) " ms" } }
            }
            (track(*time, whole, true))
            pre { (text) }
            @for call in calls { (call_details(call, whole)) }
        }
    }
}

fn call_details(call: &CallNode, whole: Option<Span>) -> Markup {
    let CallNode { place, tool, arguments, outcome, is_well, reply, time, .. } = call;
    html! {
        details {
            summary {
                code { (place) " " (tool) } " "
                span.bad[!is_well] { (outcome) }
                span.soft { " " (figures(call)) }
                (track(*time, whole, *is_well))
            }
            pre { (arguments) }
            @if let Some(reply) = reply { pre { (reply) } }
        }
    }
}

/// The place of a period in the whole.
fn track(time: Option<Span>, whole: Option<Span>, is_well: bool) -> Markup {
    let (Some(time), Some(whole)) = (time, whole) else { return html! {} };
    let share = |ms: f64| 100.0 * ms / (whole.ms.max(1) as f64);
    let (left, width) = (share((time.at - whole.at) as f64), share(time.ms as f64));
    html! {
        div.track { div.bar.bad[!is_well] style={ "left:" (format!("{left:.2}")) "%;width:" (format!("{width:.2}")) "%" } {} }
    }
}

fn outcome(run: &StoredRun) -> Markup {
    let reply = reply_of(run);
    html! {
        @if let Some(reply) = reply {
            @for earlier in &reply.earlier { h2 { "Earlier value" } pre { (earlier.value) } }
            @if let Some(value) = &reply.value { h2 { "Value" } pre { (value) } }
            @if !reply.prints.is_empty() { h2 { "Printed" } pre { (reply.prints) } }
            @if !reply.defined.is_empty() { h2 { "Defined" } pre { (reply.defined.join(" ")) } }
            @if let Some(failure) = &reply.failure { h2 { "Error" } pre { (failure.rendered) } }
        }
        @if !run.decisions().is_empty() {
            h2 { "Decisions" }
            ul {
                @for decision in run.decisions() {
                    li { (decision.tool) ": " (decision.decision) " (" (decision.by) ")" }
                }
            }
        }
    }
}
