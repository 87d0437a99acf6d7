//! The grants with which a form approves a call.

use std::time::Duration;

use maud::{Markup, html};

use lispbox_policy::GrantTerms;

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
