//! Grants on the page: the choices with which a call is approved, and the list in which grants are revoked.

use std::time::Duration;

use maud::{Markup, html};

use crate::server::runs::grants::{Grant, GrantTerms, ListedGrant};
use crate::store::Key;

use super::pages::page;
use super::shown::{marked, marked_line, moment};
use super::sign_ins::SignedIn;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The grants that a form offers, each with its value and its words.
const CHOICES: [(&str, &str, GrantTerms); 3] = [
    (
        "session",
        "Do not ask again about this call in this session, for 7 days",
        GrantTerms { period: Duration::from_secs(7 * 24 * 60 * 60), count: None, is_for_these_arguments: true },
    ),
    (
        "five",
        "Allow the next 5 calls of this tool, for 1 day",
        GrantTerms { period: DAY, count: Some(5), is_for_these_arguments: false },
    ),
    (
        "hour",
        "Allow all calls of this tool, for 1 hour",
        GrantTerms { period: HOUR, count: None, is_for_these_arguments: false },
    ),
];

/// The field of a form with which a call is approved.
pub(super) fn choice(number: &str) -> Markup {
    let id = format!("grant-{number}");
    html! {
        label for=(id) { "Later calls" }
        select id=(id) name="grant" {
            option value="" selected { "Ask again about each call" }
            @for (value, words, _) in CHOICES { option value=(value) { (words) } }
        }
    }
}

/// Returns the terms of the chosen grant, if any.
///
/// # Errors
/// Returns a message if the page has no such choice.
pub(super) fn chosen(value: &str) -> Result<Option<GrantTerms>, String> {
    if value.is_empty() {
        return Ok(None);
    }
    let choice = CHOICES.iter().find(|(known, ..)| *known == value);
    choice.map(|(.., terms)| Some(*terms)).ok_or_else(|| "the form has no such choice of later calls".to_owned())
}

/// Returns the list of the grants.
pub(super) fn list(signed_in: &SignedIn, listed: &[ListedGrant]) -> Markup {
    let content = html! {
        h1 { "Grants" }
        p { "Calls that a grant covers are made without asking anyone. " a href="/approvals" { "Back to the programs" } }
        @if listed.is_empty() { p { "There are no grants." } }
        ul.runs {
            @for (key, grant) in listed {
                li.card { (card(signed_in, key, grant.as_ref())) }
            }
        }
    };
    page("Grants", Some(signed_in), &content)
}

fn card(signed_in: &SignedIn, key: &Key, grant: Result<&Grant, &String>) -> Markup {
    html! {
        @match grant {
            Ok(grant) => {
                h2 { (marked_line(&format!("{}/{}", grant.server, grant.tool))) }
                dl.facts {
                    dt { "Principal" } dd { (marked_line(&key.principal)) }
                    dt { "Calls left" } dd { @match grant.left { Some(left) => (left), None => "any number" } }
                    dt { "Ends" } dd { (moment(grant.end())) }
                    dt { "Given by" } dd { (marked_line(&grant.by)) }
                }
                @if let Some(call) = &grant.call {
                    p { "In one session, with these arguments:" }
                    pre.text tabindex="0" role="group" aria-label="arguments" { (marked(&call.arguments)) }
                }
            }
            Err(problem) => p.problem { "The grant cannot be read: " (marked_line(problem)) },
        }
        form method="post" action="/approvals/grants" {
            input type="hidden" name="key" value=(signed_in.form_key);
            input type="hidden" name="grant" value=(key.handle);
            button.danger type="submit" { "Revoke" }
        }
    }
}
