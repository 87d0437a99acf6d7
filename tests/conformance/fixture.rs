//! The server that the conformance suite expects: tools, resources and prompts that answer as the scenarios'
//! descriptions specify. Messages are written in their wire format.
#![allow(deprecated, reason = "older revisions have levels of logs, and subscriptions one by one")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig, ServerNotification,
    ServerRequest, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::wanted::{self, Round};

/// The handler of one connection; its state is shared by all connections.
#[derive(Clone)]
pub struct Fixture {
    /// The states issued along with questions. A state that a client returns must be among them.
    states: Arc<Mutex<HashSet<String>>>,
    changes: broadcast::Sender<Changed>,
}

/// The lists that a tool can change.
#[derive(Clone, Copy)]
enum Changed {
    Tools,
    Prompts,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture { states: Arc::default(), changes: broadcast::channel(16).0 }
    }

    /// Returns the questions for the client that precede the result: the first round that it has not answered yet,
    /// restricted to the questions that its capabilities allow.
    ///
    /// # Errors
    /// Returns an error if the state was not issued here, or if the client supports none of the questions.
    fn question(
        &self,
        rounds: &[Round],
        responses: Option<&InputResponses>,
        state: Option<&str>,
        client: &ClientCapabilities,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let asked: usize = match state {
            Some(state) if !states.contains(state) => {
                return Err(ErrorData::invalid_params("this state was not given out here", None));
            }
            Some(state) => state.split('-').next().and_then(|round| round.parse().ok()).expect("a state of ours"),
            None => 0,
        };
        let is_answered = |round: &Round| {
            round.iter().all(|(key, _)| responses.and_then(|all| all.get(*key)).is_some_and(Value::is_object))
        };
        let next = match rounds.get(asked) {
            Some(round) if is_answered(round) => asked + 1,
            _ => asked,
        };
        let Some(round) = rounds.get(next) else { return Ok(None) };
        let client = json!(client);
        let capability = |request: &Value| match request["method"].as_str() {
            Some("sampling/createMessage") => "sampling",
            Some("roots/list") => "roots",
            _ => "elicitation",
        };
        let askable: serde_json::Map<String, Value> = round
            .iter()
            .filter(|(_, request)| client.get(capability(request)).is_some())
            .map(|(key, request)| ((*key).to_owned(), request.clone()))
            .collect();
        if askable.is_empty() {
            let missing = of(json!({(capability(&round[0].1)): {}}));
            return Err(ErrorData::missing_required_client_capability(missing));
        }
        let state = format!("{next}-{}", states.len());
        states.insert(state.clone());
        Ok(Some(of(json!({"resultType": "input_required", "inputRequests": askable, "requestState": state}))))
    }
}

/// Deserializes an MCP message from its wire format.
fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the fixture writes is MCP")
}

/// Deserializes a complete result. Its `resultType` is included; rmcp omits it for clients of revisions before
/// 2026-07-28.
fn complete<T: DeserializeOwned>(mut result: Value) -> T {
    result["resultType"] = json!("complete");
    of(result)
}

fn called(result: Value) -> CallToolResponse {
    complete::<CallToolResult>(result).into()
}

async fn notify(context: &RequestContext<RoleServer>, method: &str, params: Value) {
    let notification: ServerNotification = of(json!({"method": method, "params": params}));
    // The client may have disconnected.
    let _ = context.peer.send_notification(notification).await;
}

/// Sends a request to the client during a call, as revisions before 2026-07-28 do, and returns its answer.
async fn ask(context: &RequestContext<RoleServer>, request: &Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = of(request.clone());
    let answer = context.peer.send_request(request).await;
    answer.map(|answer| json!(answer)).map_err(|problem| ErrorData::internal_error(problem.to_string(), None))
}

fn client(context: &RequestContext<RoleServer>) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(of(json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"subscribe": true},
            "completions": {},
            "logging": {},
        })))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let changed = tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.recv() => changed,
            };
            // The sink rejects notifications to which the client has not subscribed.
            let _ = match changed {
                Ok(Changed::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Changed::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(wanted::tools().into_iter().map(of).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        wanted::tools().into_iter().find(|tool| tool["name"] == name).map(of)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        if let Some(result) = wanted::result(name) {
            return Ok(called(result));
        }
        let (responses, state) = (request.input_responses.as_ref(), request.request_state.as_deref());
        if let Some(rounds) = wanted::rounds(name) {
            return Ok(match self.question(&rounds, responses, state, &client(&context))? {
                Some(question) => question.into(),
                None => called(wanted::text(&format!("state-ok {}", json!(responses)))),
            });
        }
        let arguments = json!(request.arguments);
        if let Some(request) = wanted::request(name, &arguments) {
            let answer = ask(&context, &request).await?;
            return Ok(called(wanted::text(&format!("the client's answer: {answer}"))));
        }
        match name {
            "test_tool_with_logging" | "test_logging_tool" => {
                // From 2026-07-28 on, only clients that request logs receive them.
                let is_stateless = context.meta.protocol_version().is_some();
                if !is_stateless || context.meta.get("io.modelcontextprotocol/logLevel").is_some() {
                    for data in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                        notify(&context, "notifications/message", json!({"level": "info", "data": data})).await;
                    }
                }
            }
            "test_tool_with_progress" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for progress in [0, 50, 100] {
                        let params = json!({"progressToken": token, "progress": progress, "total": 100});
                        notify(&context, "notifications/progress", params).await;
                    }
                }
            }
            // There may be no listeners.
            "test_trigger_tool_change" => drop(self.changes.send(Changed::Tools)),
            "test_trigger_prompt_change" => drop(self.changes.send(Changed::Prompts)),
            other => return Err(ErrorData::invalid_params(format!("there is no tool `{other}`"), None)),
        }
        Ok(called(wanted::text("done")))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(wanted::resources().into_iter().map(of).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template =
            json!({"uriTemplate": "test://template/{id}/data", "name": "template", "description": "By number"});
        Ok(ListResourceTemplatesResult::with_all_items(vec![of(template)]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match wanted::contents(&request.uri) {
            Some(contents) => Ok(complete::<ReadResourceResult>(json!({"contents": [contents]})).into()),
            None => Err(ErrorData::resource_not_found("Resource not found", Some(json!({"uri": request.uri})))),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(wanted::prompts().into_iter().map(of).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (responses, state) = (request.input_responses.as_ref(), request.request_state.as_deref());
        if let Some(rounds) = wanted::rounds(&request.name)
            && let Some(question) = self.question(&rounds, responses, state, &client(&context))?
        {
            return Ok(question.into());
        }
        match wanted::messages(&request.name, &json!(request.arguments)) {
            Some(messages) => Ok(complete::<GetPromptResult>(json!({"messages": messages})).into()),
            None => Err(ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None)),
        }
    }
}
