//! The host of the measurements: tools that add `a` and `b`, ten per server.

use lispbox::lang::{Catalogue, Host, Server, Tool, ToolCall, ToolError, ToolErrorKind, ToolReply};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of tools of each server.
const TOOLS_OF_A_SERVER: usize = 10;

/// A host whose tools all add two numbers.
pub struct Tools {
    servers: Vec<Server>,
    tools: HashMap<String, Vec<Arc<Tool>>>,
    all: Vec<Arc<Tool>>,
    started: Instant,
}

impl Tools {
    /// Creates `count` tools, from `host-0/add-0` to [`Tools::last`].
    pub fn many(count: usize) -> Tools {
        Tools::named((0..count).map(Tools::name))
    }

    /// The name of the last of `count` tools, as a program calls it.
    pub fn last(count: usize) -> String {
        let (server, tool) = Tools::name(count.saturating_sub(1));
        format!("{server}/{tool}")
    }

    fn name(index: usize) -> (String, String) {
        (format!("host-{}", index / TOOLS_OF_A_SERVER), format!("add-{}", index % TOOLS_OF_A_SERVER))
    }

    fn named(names: impl IntoIterator<Item = (String, String)>) -> Tools {
        let mut host = Tools { servers: Vec::new(), tools: HashMap::new(), all: Vec::new(), started: Instant::now() };
        for (server, name) in names {
            if !host.tools.contains_key(&server) {
                host.servers.push(Server { name: server.clone(), description: String::new() });
            }
            let schema = json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            });
            let tool = Arc::new(Tool {
                server: server.clone(),
                name,
                description: "Adds two numbers".to_string(),
                input_schema: schema,
                ..Tool::default()
            });
            host.tools.entry(server).or_default().push(tool.clone());
            host.all.push(tool);
        }
        host
    }
}

impl Host for Tools {
    fn servers(&self) -> Vec<Server> {
        self.servers.clone()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.tools.get(server).cloned().ok_or_else(|| ToolError::unavailable(format!("there is no server `{server}`")))
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue { tools: self.all.clone(), missing: Vec::new() }
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
        let number = |name: &str| arguments.as_ref()?.get(name)?.as_i64();
        match (number("a"), number("b")) {
            (Some(a), Some(b)) => ToolReply::Json((a + b).to_string()),
            _ => ToolReply::Error(ToolError::new(
                ToolErrorKind::Arguments,
                format!("{}/{} takes two integers, a and b", call.server, call.tool),
            )),
        }
    }

    fn now_millis(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        4
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
