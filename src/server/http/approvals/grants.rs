//! The list in which grants are revoked.

use maud::{Markup, html};

use crate::server::approvals::grants::{Grant, ListedGrant};
use crate::server::approvals::shown::{marked, marked_line, moment};
use crate::store::Key;

use super::pages::page;
use super::sign_ins::SignedIn;

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
                @if grant.session.is_some() {
                    p { "In one session, with any arguments." }
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
