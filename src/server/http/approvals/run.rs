//! The page of one run, and the pages of its long texts.

use maud::{Markup, html};
use serde_json::Value;

use crate::server::approvals::forms::{Place, Returned, show, state};
use crate::server::approvals::shown::{PIECE, marked, marked_line, size, text_of};
use crate::server::runs::stored::StoredRun;
use crate::store::Key;

use super::pages::{page, path_of};
use super::sign_ins::SignedIn;

/// Returns the page of a run.
pub(super) fn run(signed_in: &SignedIn, key: &Key, run: &StoredRun, returned: Option<&Returned>) -> Markup {
    let place = Place::Page { path: &path_of(&key.handle), form_key: &signed_in.form_key };
    page(state(run.state()), Some(signed_in), &show(&place, key, run, returned))
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
