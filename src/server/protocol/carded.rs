//! The calls of the tools of the [`card`](super::card): a model has it shown, and a person decides on it.

use std::sync::Arc;

use maud::{Markup, html};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, MetaObject};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use crate::server::approvals::decide::{FormDecision, Outcome};
use crate::server::approvals::forms::{Place, Returned, show};
use crate::server::approvals::grants::StoredGrants;
use crate::server::identity::LOCAL;
use crate::server::runs::listing::StoredRuns;
use crate::server::runs::summary::RunState;
use crate::store::Store;

use super::card::Issued;
use super::front::{Front, is_stateless};

/// The field of a reply's metadata with the content of the card.
const FIELD: &str = "lispbox/card";

/// The content of a card.
struct Content {
    html: String,
    state: Option<RunState>,
    /// The numbers of the calls that are open.
    calls: Vec<String>,
}

impl Content {
    /// Returns a card that takes no decision.
    fn message(title: &str, text: &str) -> Content {
        let html = html! { h1 { (title) } p.problem role="alert" { (text) } };
        Content { html: html.into_string(), state: None, calls: Vec::new() }
    }
}

/// The runs and grants of a store, as a principal may see them.
struct PrincipalRuns {
    runs: StoredRuns,
    grants: StoredGrants,
    principal: String,
}

impl PrincipalRuns {
    fn new(store: &Arc<dyn Store>, principal: &str) -> PrincipalRuns {
        let (runs, grants) = (StoredRuns::new(Arc::clone(store)), StoredGrants::new(Arc::clone(store)));
        PrincipalRuns { runs, grants, principal: principal.to_owned() }
    }

    /// Returns the card of a run, with something said before it. Blocks.
    ///
    /// # Errors
    /// Returns a message if the run cannot be shown.
    fn content(&self, run: &str, before: &Markup, returned: Option<&Returned>) -> Result<Content, String> {
        let found = self.runs.find(run).map_err(|problem| problem.to_string())?;
        let Some((key, found)) = found.filter(|(key, _)| key.principal == self.principal) else {
            return Err("there is no such run: it has expired, or never existed".to_owned());
        };
        let found = found.map_err(|problem| format!("the run cannot be read: {problem}"))?;
        if found.is_expired() {
            return Err("the run has expired; its open calls were not made, and never will be".to_owned());
        }
        let html = html! { (before) (show(&Place::Card, &key, &found, returned)) };
        let calls = found.open().into_iter().map(|call| call.number).collect();
        Ok(Content { html: html.into_string(), state: Some(found.state()), calls })
    }

    /// Records the decision of a form, and returns the card afterwards. Blocks.
    fn decide(&self, card: &Issued, form: &Map<String, Value>) -> Result<Content, String> {
        let nothing = html! {};
        let field = |name: &str| form.get(name).and_then(Value::as_str).map(str::to_owned);
        let decision = match FormDecision::read(field) {
            Ok(decision) if decision.is_about(&card.calls) => decision,
            Ok(_) => return self.content(&card.run, &unchanged("the card did not show that call"), None),
            Err(problem) => return self.content(&card.run, &unchanged(&problem), None),
        };
        let by = match self.principal.as_str() {
            LOCAL => "a card in the client".to_owned(),
            principal => format!("a card in the client of {principal}"),
        };
        match decision.record(&self.runs, &self.grants, &card.run, &by) {
            Outcome::Recorded => {
                let (run, calls) = (&card.run, decision.calls().join(", "));
                tracing::info!(run, calls, decision = decision.word(), "a person has decided on a card");
                self.content(&card.run, &nothing, None)
            }
            Outcome::Returned(returned) => self.content(&card.run, &nothing, Some(&returned)),
            Outcome::Conflict(_, problem) => self.content(&card.run, &unchanged(&problem), None),
            Outcome::Expired | Outcome::Missing => self.content(&card.run, &nothing, None),
            Outcome::Unreadable(problem) | Outcome::Unavailable(problem) => Err(problem),
        }
    }
}

fn unchanged(problem: &str) -> Markup {
    html! { p.problem role="alert" { "Nothing was changed: " (problem) "." } }
}

impl Front {
    /// Shows the card of a run.
    pub(super) async fn show_card(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let arguments = request.arguments.unwrap_or_default();
        let run = arguments.get("run").and_then(Value::as_str).unwrap_or_default().to_owned();
        // A request over HTTP that belongs to no connection has been shown nothing.
        let has_shown = (self.over_http && is_stateless(context)) || self.doors.has_offered(&run);
        if !has_shown {
            let text = format!("no reply on this connection says that a run `{run}` waits; `lisp_eval` with it does");
            return CallToolResult::error(vec![ContentBlock::text(text)]);
        }
        let named = run.clone();
        let shown = self.with_runs(context, move |runs| runs.content(&named, &html! {}, None)).await;
        let content = match shown {
            Ok(content) => content,
            Err(problem) => return CallToolResult::error(vec![ContentBlock::text(problem)]),
        };
        let text = match content.calls.len() {
            0 => format!("nothing waits for a decision; continue with {{\"run\": \"{run}\"}} in lisp_eval"),
            count => {
                let calls = if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
                format!(
                    "a card shows the user {calls} and takes the decision; end your turn, and continue with {{\"run\": \
                     \"{run}\"}} in lisp_eval when they have decided"
                )
            }
        };
        self.carded(context, &run, content, CallToolResult::success(vec![ContentBlock::text(text)]))
    }

    /// Takes a decision from a card.
    pub(super) async fn decide_on_card(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        let mut arguments = request.arguments.unwrap_or_default();
        let secret = arguments.get("secret").and_then(Value::as_str).unwrap_or_default().to_owned();
        let principal = self.principal(context).unwrap_or_default();
        let Some(card) = self.settings.cards.take(&principal, &secret) else {
            let problem = "nothing was decided: this card is out of date; ask for it again";
            tracing::warn!("a decision without the secret of a card was refused");
            let content = Content::message("Out of date", "Nothing was decided. Ask for the card again.");
            return self.carded(context, "", content, CallToolResult::error(vec![ContentBlock::text(problem)]));
        };
        let form = match arguments.remove("form") {
            Some(Value::Object(form)) => form,
            _ => Map::new(),
        };
        let run = card.run.clone();
        match self.with_runs(context, move |runs| runs.decide(&card, &form)).await {
            Ok(content) => {
                let result = CallToolResult::success(vec![ContentBlock::text("the card shows what was decided")]);
                self.carded(context, &run, content, result)
            }
            Err(problem) => {
                let content = Content::message("Not available", &problem);
                self.carded(context, &run, content, CallToolResult::error(vec![ContentBlock::text(problem)]))
            }
        }
    }

    /// Adds the content of a card to a reply, with a secret if it takes a decision.
    fn carded(
        &self,
        context: &RequestContext<RoleServer>,
        run: &str,
        content: Content,
        mut result: CallToolResult,
    ) -> CallToolResult {
        let principal = self.principal(context).unwrap_or_default();
        let is_decided = content.state == Some(RunState::Decided);
        let secret = match content.calls.is_empty() {
            true => None,
            false => match self.settings.cards.issue(&principal, run, content.calls) {
                Ok(secret) => Some(secret),
                Err(problem) => return CallToolResult::error(vec![ContentBlock::text(problem)]),
            },
        };
        let card = json!({"html": content.html, "secret": secret, "run": run, "decided": is_decided});
        result.meta = Some(MetaObject(Map::from_iter([(FIELD.to_owned(), card)])));
        result
    }

    /// Does work with the store, which blocks.
    async fn with_runs<R: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&PrincipalRuns) -> Result<R, String> + Send + 'static,
    ) -> Result<R, String> {
        let principal = self.principal(context).map_err(|refused| refused.message)?;
        let persistence = self.evaluations.runs().persistence().ok_or("there is no store")?;
        let runs = PrincipalRuns::new(persistence.store(), &principal);
        let worked = tokio::task::spawn_blocking(move || work(&runs)).await;
        worked.unwrap_or_else(|problem| Err(problem.to_string()))
    }
}
