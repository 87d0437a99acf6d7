//! The answers of a person to the open questions of a run in a store, and the grants that come with them.

use std::sync::Arc;

use crate::lang::Decision;
use crate::server::runs::stored::{OpenCall, StoredRun};

use super::Answer;
use super::asked::AskedCall;
use super::grants::Grant;

/// Returns the answer to a question of a run; `None` leaves it open.
pub(in crate::server) type Answers = Arc<dyn Fn(&AskedCall) -> Option<Answer> + Send + Sync>;

/// Records the answers to the open questions of a run; returns the grants for the later calls that they allow, of those
/// that were offered.
///
/// # Errors
/// Returns why an answer cannot be recorded, as a clause.
pub(in crate::server) fn record(
    run: &mut StoredRun,
    open: Vec<OpenCall>,
    answers: &Answers,
) -> Result<Vec<Grant>, String> {
    const BY: &str = "the user of the client";
    let mut grants = Vec::new();
    for open in open {
        let asked = open.asked();
        let Some(answer) = answers(&asked) else { continue };
        match asked.decision(&answer) {
            Some(Decision::Approved) => run.decide(&open.number, None, BY)?,
            Some(Decision::Denied(reason)) => run.decide(&open.number, Some(&reason), BY)?,
            _ => continue,
        };
        if let Answer::YesAnd(later) = answer
            && asked.question.later.contains(&later)
        {
            grants.push(Grant::of_form(&asked.question, run.session(), later));
        }
    }
    Ok(grants)
}
