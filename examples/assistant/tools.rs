//! The host of the assistant's programs: tools implemented as Rust functions, and the clocks of this machine.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lispbox::lang::{Host, Server, Tool, ToolCall, ToolError, ToolErrorKind, ToolReply};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The host of one program of one user.
pub struct Assistant {
    pub user: String,
    cancel: CancellationToken,
    runtime: Handle,
    begun: Instant,
}

impl Assistant {
    /// Creates the host of a program of this user, which stops when `cancel` is cancelled; must be called within a
    /// tokio runtime.
    pub fn new(user: String, cancel: CancellationToken) -> Assistant {
        Assistant { user, cancel, runtime: Handle::current(), begun: Instant::now() }
    }

    /// Runs a tool for the user.
    async fn answer(&self, call: &ToolCall) -> Result<Value, ToolError> {
        match &*call.server {
            "orders" => Ok(find_orders(&self.user, arguments(call)?)),
            _ => Ok(search_mail(&self.user, arguments(call)?).await),
        }
    }
}

impl Host for Assistant {
    fn servers(&self) -> Vec<Server> {
        let server = |name: &str, description: &str| Server { name: name.into(), description: description.into() };
        vec![server("orders", "the user's orders"), server("mail", "the user's mail")]
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let status = json!({"properties": {"status": {"enum": ["open", "paid"]}}});
        let query = json!({"properties": {"query": {"type": "string"}}, "required": ["query"]});
        Ok(match server {
            "orders" => tool("orders", "find", "Orders, all or those of a status", status),
            _ => tool("mail", "search", "Mails whose subject has this in it", query),
        })
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        self.runtime.block_on(async {
            tokio::select! {
                answer = self.answer(&call) => answer.map_or_else(ToolReply::Error, |it| ToolReply::Json(it.to_string())),
                () = self.cancel.cancelled() => ToolReply::Stopped,
                () = tokio::time::sleep(call.remaining) => ToolReply::Stopped,
                () = tokio::time::sleep(call.timeout) => {
                    ToolReply::Error(failed(ToolErrorKind::Timeout, &call, "took too long"))
                }
            }
        })
    }

    fn now_millis(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }

    // Sufficient for `rand`, but not for secrets.
    fn random(&self) -> u64 {
        RandomState::new().hash_one(self.begun)
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

fn arguments<A: DeserializeOwned>(call: &ToolCall) -> Result<A, ToolError> {
    let wrong = |problem| failed(ToolErrorKind::Arguments, call, &format!("does not take this: {problem}"));
    serde_json::from_str(&call.arguments).map_err(wrong)
}

fn failed(kind: ToolErrorKind, call: &ToolCall, problem: &str) -> ToolError {
    ToolError::new(kind, format!("`{}/{}` {problem}", call.server, call.tool))
}

fn tool(server: &str, name: &str, description: &str, input_schema: Value) -> Vec<Arc<Tool>> {
    let [server, name, description] = [server, name, description].map(str::to_owned);
    vec![Arc::new(Tool { server, name, description, input_schema, ..Tool::default() })]
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Open,
    Paid,
}

/// The arguments of `orders/find`, as in its schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindOrders {
    status: Option<Status>,
}

fn find_orders(user: &str, find: FindOrders) -> Value {
    let orders = [("ann", 1, Status::Paid, 20.0), ("ann", 2, Status::Open, 12.5), ("bob", 3, Status::Open, 30.0)];
    let is_meant = |status| find.status.is_none_or(|wanted| wanted == status);
    let found = orders.into_iter().filter(|(owner, _, status, _)| *owner == user && is_meant(*status));
    found.map(|(_, id, status, total)| json!({"id": id, "status": status, "total": total})).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchMail {
    query: String,
}

/// Stands in for a request to another service.
async fn search_mail(user: &str, search: SearchMail) -> Value {
    let mails = [("ann", "Invoice 1"), ("ann", "Lunch?"), ("bob", "Invoice 3")];
    let found = mails.into_iter().filter(|(owner, subject)| *owner == user && subject.contains(&search.query));
    found.map(|(_, subject)| json!({"subject": subject})).collect()
}
