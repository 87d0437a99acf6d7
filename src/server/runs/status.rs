//! What a program is told of the runs of its principal.

use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use crate::server::text::cut;
use crate::store::Key;

use super::listing::StoredRuns;
use super::summary::RunSummary;
use super::{LONGEST_IDENTITY, Runs};

impl Runs {
    /// Describes the runs of a principal that have not ended well, or one run: the text of a JSON array or object. Blocks.
    ///
    /// # Errors
    /// Returns why it cannot, as a clause.
    pub(in crate::server) fn status(&self, principal: &str, run: Option<&str>) -> Result<String, String> {
        // The program has given it, and it is of any size.
        if let Some(run) = run.filter(|run| run.len() > LONGEST_IDENTITY) {
            return Err(no_run(run));
        }
        let waiting = self.waiting();
        let mine = waiting.iter().filter(|(_, run)| run.is_of(principal));
        let mut all: Vec<(String, RunSummary)> =
            mine.map(|(identity, run)| (identity.clone(), run.summary(identity))).collect();
        drop(waiting);
        all.extend(self.failures.of(principal));
        let stored = self.summaries(principal).map_err(|problem| problem.to_string())?;
        // One that goes on here may be a further attempt of one that is listed.
        let running = self.running.of(principal);
        all.extend(stored);
        all.retain(|(identity, _)| !running.iter().any(|(other, _)| other == identity));
        all.splice(..0, running);
        let Some(wanted) = run else {
            return Ok(Value::Array(all.iter().map(described).collect()).to_string());
        };
        if let Some(found) = all.iter().find(|(identity, _)| identity == wanted) {
            return Ok(described(found).to_string());
        }
        self.status_of_ended(principal, wanted).map(|found| described(&found).to_string())
    }

    fn status_of_ended(&self, principal: &str, run: &str) -> Result<(String, RunSummary), String> {
        let persistence = self.persistence.as_ref().ok_or_else(|| no_run(run))?;
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Key { principal: principal.to_owned(), handle: run.to_owned() };
        let stored = StoredRuns::new(Arc::clone(persistence.store())).read(&key).map_err(|_| no_run(run))?;
        Ok((run.to_owned(), stored.summary()))
    }
}

fn described((identity, summary): &(String, RunSummary)) -> Value {
    let RunSummary { state, calls, unknown, .. } = summary;
    let mut described = json!({
        "run": identity, "state": state.word(), "calls": calls, "unknown": unknown,
        "expires_in_seconds": summary.expires_in(),
    });
    let Some(fields) = described.as_object_mut() else { return described };
    if let Some(ended) = &summary.ended {
        fields.insert("ended".to_owned(), json!(ended));
    }
    if summary.ended.is_some() || !summary.made.is_empty() {
        fields.insert("made".to_owned(), json!(summary.made));
    }
    described
}

/// Says that there is no such run, as a clause.
fn no_run(run: &str) -> String {
    format!("there is no run `{}`: it has expired, or never existed", cut(run, LONGEST_IDENTITY))
}
