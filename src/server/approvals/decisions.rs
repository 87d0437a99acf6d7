//! The decisions on a run so far.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::server::runs::stored::StoredRun;

use super::shown::{beginning, marked, marked_line, moment};

/// Lists the decisions on a run, the latest first.
pub(in crate::server) fn decisions(run: &StoredRun) -> Markup {
    html! {
        @if !run.decisions().is_empty() {
            section aria-labelledby="decisions" {
                h2 id="decisions" { "Decisions so far" }
                ol.decisions {
                    @for record in run.decisions().iter().rev() {
                        li {
                            p { strong { (marked_line(&record.tool)) } ": " (marked_line(&record.decision)) }
                            p.by { (marked_line(&record.by)) ", " (moment(SystemTime::UNIX_EPOCH + Duration::from_secs(record.at))) }
                            @if let Some(call) = run.run().log().calls.iter().find(|call| call.id == record.call) {
                                @let sent = call.question.as_ref().map_or(call.shown_arguments(), |asked| &asked.arguments);
                                details {
                                    summary { "Arguments" }
                                    pre.text tabindex="0" { (marked(&beginning(sent))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
