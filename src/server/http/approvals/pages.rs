//! The frame of all pages, and the pages without a run: sign-in and messages.

use maud::{DOCTYPE, Markup, html};

use crate::server::approvals::decisions::decisions;
use crate::server::approvals::shown::marked_line;
use crate::server::runs::stored::StoredRun;

use super::sign_ins::SignedIn;

/// The address of the page of a run.
pub(super) fn path_of(run: &str) -> String {
    format!("/approvals/runs/{run}")
}

/// Lays out a page.
pub(super) fn page(title: &str, signed_in: Option<&SignedIn>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · lispbox approvals" }
                link rel="stylesheet" href="/approvals/style.css";
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    a.home href="/approvals" { "lispbox approvals" }
                    @if let Some(SignedIn { operator, form_key }) = signed_in {
                        form method="post" action="/approvals/sign-out" {
                            input type="hidden" name="key" value=(form_key);
                            span.operator { (marked_line(operator)) }
                            button.quiet type="submit" { "Sign out" }
                        }
                    }
                }
                main id="content" { (content) }
            }
        }
    }
}

/// Returns the page on which an operator signs in. Afterwards the browser goes to the run `to`, if there is one.
pub(super) fn sign_in(to: Option<&str>, problem: Option<&str>, is_linked: bool) -> Markup {
    let content = html! {
        h1 { "Sign in" }
        p { "Programs that wait for the approval of a person are decided on here." }
        @if let Some(problem) = problem {
            p.problem role="alert" { (problem) }
        }
        @if is_linked {
            // A browser does not send the cookie with a link from another site.
            p.note {
                "If you have signed in already, "
                a href=(to.map_or("/approvals".to_owned(), path_of)) { "go on to the page" } "."
            }
        }
        form.card.narrow method="post" action="/approvals/sign-in" {
            @if let Some(run) = to {
                input type="hidden" name="run" value=(run);
            }
            label for="token" { "Operator token" }
            input id="token" name="token" type="password" autocomplete="current-password" required autofocus;
            button.primary type="submit" { "Sign in" }
        }
    };
    page("Sign in", None, &content)
}

/// Returns a page with a message, and a link that leads on.
pub(super) fn message(signed_in: Option<&SignedIn>, title: &str, text: &str, to: &str) -> Markup {
    let content = html! {
        h1 { (title) }
        p.problem role="alert" { (marked_line(text)) }
        p { a.button href=(to) { "Go on" } }
    };
    page(title, signed_in, &content)
}

/// Returns the page for a decision that came too late: what was decided meanwhile, by whom, and when.
pub(super) fn conflict(signed_in: &SignedIn, run: &str, found: &StoredRun, problem: &str) -> Markup {
    let cancelled = found.reply().and_then(|reply| reply.failure.as_ref());
    let content = html! {
        h1 { "Nothing was changed" }
        p.problem role="alert" { (marked_line(problem)) }
        @if let Some(failure) = cancelled {
            p { (marked_line(&failure.message)) }
        }
        (decisions(found))
        p { a.button href=(path_of(run)) { "Look at the run" } }
    };
    page("Nothing was changed", Some(signed_in), &content)
}
