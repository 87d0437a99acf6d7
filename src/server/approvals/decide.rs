//! Decisions that a form makes: on one call, on all calls that were shown, or on the whole run.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;

use lispbox_policy::GrantTerms;

use crate::server::runs::listing::StoredRuns;
use crate::server::runs::stored::StoredRun;

use super::forms::Returned;
use super::grants::{Grant, StoredGrants};
use super::terms;

/// The reason that a program is told if the operator gives none.
const NO_REASON: &str = "a person was asked and said no";

/// Maximum length of a reason, in characters.
const LONGEST_REASON: usize = 1_000;

/// A decision as a form sends it.
pub(in crate::server) struct FormDecision {
    action: Action,
    /// The numbers of the calls that the form was about.
    calls: Vec<String>,
}

enum Action {
    Approve { grant: Option<GrantTerms> },
    ApproveAll,
    Deny { reason: String },
    DenyAll { reason: String },
    Settle { happened: Option<String> },
    Cancel,
}

/// The outcome of a decision.
pub(in crate::server) enum Outcome {
    /// It was recorded.
    Recorded,
    /// It has to be corrected first.
    Returned(Returned),
    /// The run is not as it was when the form was shown.
    Conflict(Box<StoredRun>, String),
    /// The run has expired.
    Expired,
    /// There is no such run.
    Missing,
    /// The run cannot be read.
    Unreadable(String),
    /// The store cannot be used; the decision may have been recorded.
    Unavailable(String),
}

impl FormDecision {
    /// Reads the fields of a form; `field` returns the value of one.
    ///
    /// # Errors
    /// Returns a message if the page has no such form.
    pub(in crate::server) fn read(field: impl Fn(&str) -> Option<String>) -> Result<FormDecision, String> {
        let calls: Vec<String> = field("calls").unwrap_or_default().split(',').map(str::to_owned).collect();
        let action = match field("action").as_deref() {
            Some("approve") => Action::Approve { grant: terms::chosen(&field("grant").unwrap_or_default())? },
            Some("approve-all") => Action::ApproveAll,
            Some("deny") => Action::Deny { reason: reason(&field)? },
            Some("deny-all") => Action::DenyAll { reason: reason(&field)? },
            Some("happened") => Action::Settle { happened: Some(field("result").unwrap_or_default()) },
            Some("did-not-happen") => Action::Settle { happened: None },
            Some("cancel") => Action::Cancel,
            _ => return Err("the form has no such button".to_owned()),
        };
        let is_of_many = matches!(action, Action::ApproveAll | Action::DenyAll { .. } | Action::Cancel);
        match is_of_many || calls.len() == 1 {
            true => Ok(FormDecision { action, calls }),
            false => Err("expected one call".to_owned()),
        }
    }

    /// Returns the decision as a word, for the log.
    pub(in crate::server) fn word(&self) -> &'static str {
        match self.action {
            Action::Approve { .. } | Action::ApproveAll => "approved",
            Action::Deny { .. } | Action::DenyAll { .. } => "denied",
            Action::Settle { happened: Some(_) } => "happened",
            Action::Settle { happened: None } => "did not happen",
            Action::Cancel => "cancelled",
        }
    }

    /// True if the decision is about these calls or some of them.
    pub(in crate::server) fn is_about(&self, shown: &[String]) -> bool {
        self.calls.iter().all(|call| shown.contains(call))
    }

    /// Returns the numbers of the calls.
    pub(in crate::server) fn calls(&self) -> &[String] {
        &self.calls
    }

    /// Records the decision of a person, unless somebody has decided otherwise meanwhile; `by` is for the record. Blocks.
    pub(in crate::server) fn record(&self, runs: &StoredRuns, grants: &StoredGrants, run: &str, by: &str) -> Outcome {
        if let Action::Settle { happened: Some(result) } = &self.action
            && let Err(problem) = serde_json::from_str::<IgnoredAny>(result)
        {
            let problem = format!("expected the result of the call as JSON, such as {{\"id\": 1}}: {problem}");
            return Outcome::Returned(Returned { call: self.calls[0].clone(), result: result.clone(), problem });
        }
        let key = match runs.find(run) {
            Ok(Some((_, Ok(run)))) if run.is_expired() => return Outcome::Expired,
            Ok(Some((key, Ok(_)))) => key,
            Ok(Some((_, Err(problem)))) => return Outcome::Unreadable(problem),
            Ok(None) => return Outcome::Missing,
            Err(problem) => return Outcome::Unavailable(problem.to_string()),
        };
        let problem = match runs.change(&key, |run| self.apply(run, by)) {
            Ok(None) => return Outcome::Recorded,
            Ok(Some(grant)) => {
                return match grants.give(&key.principal, &grant) {
                    Ok(_) => Outcome::Recorded,
                    Err(problem) => Outcome::Unavailable(format!(
                        "The call is approved, but later ones may not be: the grant may not be stored: {problem}"
                    )),
                };
            }
            Err(problem) => problem,
        };
        match runs.find(run) {
            Ok(Some((_, Ok(run)))) if run.is_expired() => Outcome::Expired,
            Ok(Some((_, Ok(run)))) => Outcome::Conflict(Box::new(run), problem),
            Ok(Some((_, Err(problem)))) => Outcome::Unreadable(problem),
            Ok(None) => Outcome::Missing,
            Err(_) => Outcome::Unavailable(problem),
        }
    }

    /// Applies the decision, and returns the grant that comes with it.
    fn apply(&self, run: &mut StoredRun, by: &str) -> Result<Option<Grant>, String> {
        let applied = match &self.action {
            Action::Approve { grant } => {
                let call = run.decide(&self.calls[0], None, by)?;
                return grant.map(|terms| Grant::new(run, &call, terms, by)).transpose();
            }
            Action::Deny { reason } => run.decide(&self.calls[0], Some(reason), by).map(drop),
            Action::Settle { happened } => run.settle(&self.calls[0], happened.as_deref(), by).map(drop),
            Action::ApproveAll => {
                self.compare(run, false)?;
                self.calls.iter().try_for_each(|call| run.decide(call, None, by).map(drop))
            }
            Action::DenyAll { reason } => {
                self.compare(run, false)?;
                self.calls.iter().try_for_each(|call| run.decide(call, Some(reason), by).map(drop))
            }
            Action::Cancel => {
                self.compare(run, true)?;
                run.cancel(by)
            }
        };
        applied.map(|()| None)
    }

    /// Checks that the open calls are those that the form was about, counting those of which it is unknown whether they
    /// happened if `with_unknown` is true.
    fn compare(&self, run: &StoredRun, with_unknown: bool) -> Result<(), String> {
        let open = run.open();
        let open = open.iter().filter(|call| with_unknown || !call.is_unknown).map(|call| call.number.as_str());
        let shown: BTreeSet<&str> = self.calls.iter().map(String::as_str).collect();
        if open.collect::<BTreeSet<&str>>() == shown {
            return Ok(());
        }
        Err("the open calls of the run are no longer those that were shown".to_owned())
    }
}

/// Reads the reason of a denial.
fn reason(field: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let reason = field("reason").unwrap_or_default().trim().to_owned();
    if reason.chars().count() > LONGEST_REASON {
        return Err(format!("expected a reason of at most {LONGEST_REASON} characters"));
    }
    Ok(if reason.is_empty() { NO_REASON.to_owned() } else { reason })
}
