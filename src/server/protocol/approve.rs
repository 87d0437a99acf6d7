//! `lisp_approve`: the client's own prompt decides on calls that wait.
//!
//! It is for clients that ask a person before each call of a tool and have no better way. Its arguments are the calls
//! themselves, compared byte by byte with those that wait, so that the prompt shows what will happen. It is as safe as that
//! prompt: a client that always allows the tool does not ask.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ErrorData};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::server::runs::listing::StoredRuns;
use crate::server::runs::stored::StoredRun;

use super::doors::Offer;
use super::front::Front;
use super::suspended;

/// The way in which a decision was made, for its record.
const BY: &str = "`lisp_approve`, in a prompt of the client";

impl Front {
    /// Answers a call of a tool with which the user of a client is asked.
    ///
    /// # Errors
    /// Returns an error if the client does not have the tool.
    pub(super) async fn by_offer(
        &self,
        offer: Offer,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match (offer, request.name.as_ref()) {
            (Offer::Card, "lisp_decide") => Ok(self.decide_on_card(request, context).await),
            (Offer::Card, _) => Ok(self.show_card(request, context).await),
            (Offer::Prompt, "lisp_approve") => Ok(self.approve(request).await),
            (Offer::Prompt, other) => Err(ErrorData::invalid_params(format!("there is no tool `{other}`"), None)),
        }
    }

    /// Approves the calls that the arguments repeat, all of them or none.
    pub(super) async fn approve(&self, request: CallToolRequestParams) -> CallToolResult {
        let arguments = request.arguments.unwrap_or_default();
        let run = arguments.get("run").and_then(Value::as_str).unwrap_or_default().to_owned();
        let lines = arguments.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let lines: Option<Vec<String>> = lines.iter().map(|line| line.as_str().map(str::to_owned)).collect();
        let outcome = match lines {
            None => Err("expected `calls`, the lines of the waiting calls".to_owned()),
            Some(lines) if lines.is_empty() => Err("expected `calls`, the lines of the waiting calls".to_owned()),
            // Others may wait for a person who has never seen this conversation.
            Some(_) if !self.doors.has_offered(&run) => {
                Err(format!("no reply on this connection says that a run `{run}` waits; `lisp_eval` with it does"))
            }
            Some(lines) => self.approved(&run, lines).await,
        };
        match outcome {
            Ok(left) => {
                tracing::info!(run, "calls were approved in the prompt of the client");
                let left = if left == 0 { String::new() } else { format!(" ({left} more wait)") };
                let text = format!("approved{left}; continue with {{\"run\": \"{run}\"}} in lisp_eval");
                CallToolResult::success(vec![ContentBlock::text(text)])
            }
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(format!("nothing was approved: {problem}"))]),
        }
    }

    /// Records the approval of calls; returns the number of those that still wait.
    async fn approved(&self, run: &str, lines: Vec<String>) -> Result<usize, String> {
        let persistence = self.evaluations.runs().persistence().cloned();
        let store = persistence.ok_or("there is no store")?.store().clone();
        let run = run.to_owned();
        let recording = tokio::task::spawn_blocking(move || {
            let runs = StoredRuns::new(Arc::clone(&store));
            let (key, _) = runs.find(&run).map_err(|problem| problem.to_string())?.ok_or("there is no such run")?;
            runs.change(&key, |run| decide(run, &lines))
        });
        recording.await.unwrap_or_else(|problem| Err(problem.to_string()))
    }
}

/// Approves the open calls with these lines.
fn decide(run: &mut StoredRun, lines: &[String]) -> Result<usize, String> {
    for line in lines {
        let open = run.open();
        let call = open
            .iter()
            .find(|call| !call.is_unknown && suspended::line(&call.question, &call.given).as_ref() == Some(line));
        let call =
            call.ok_or_else(|| format!("no call that waits is `{line}`; repeat the lines of the reply verbatim"))?;
        run.decide(&call.number, None, BY)?;
    }
    Ok(run.open().len())
}
