//! Tools without a server: configured commands and endpoints, and Rust functions of the embedding application.
//!
//! All of them are a [`Function`]. To programs, rules and records they look like the tools of a server, in a separate
//! namespace; no server is started.

mod command;
mod endpoint;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::lang::internal::foreign_text;
use crate::lang::{Tool, ToolError, ToolErrorKind, ToolReply};
use crate::server::config::{Action, Commands, Endpoint, Function, LocalTool, ServerConfig};
use crate::server::secrets::Secrets;
use crate::server::system::platform::Lifeline;

use super::result::late;
use command::Command;
use endpoint::Request;

/// The tools of one namespace.
pub(in crate::server) struct Local {
    functions: Vec<(Arc<Tool>, Arc<dyn Function>)>,
}

impl Local {
    /// Creates the local tools of a configuration; `None` if it has none. `children` starts their commands, and `largest`
    /// bounds the results of tools for which no limit is configured.
    pub(super) fn of(
        config: &ServerConfig,
        children: &(Arc<Lifeline>, Arc<Commands>),
        largest: usize,
        secrets: &Secrets,
    ) -> Option<Local> {
        let functions: Vec<Arc<dyn Function>> = match &config.endpoint {
            Ok(Endpoint::Functions(functions)) => functions.0.clone(),
            Ok(Endpoint::Local(tools)) => {
                let function = |tool: &LocalTool| -> Arc<dyn Function> {
                    let most = tool.most_output.unwrap_or(largest);
                    match &tool.action {
                        Action::Command { .. } => {
                            let inherit = config.inherit.clone();
                            Arc::new(Command::new(tool.clone(), inherit, children.clone(), most, secrets.clone()))
                        }
                        Action::Request { .. } => Arc::new(Request::new(tool.clone(), most, secrets.clone())),
                    }
                };
                tools.iter().map(function).collect()
            }
            _ => return None,
        };
        let described = |function: Arc<dyn Function>| {
            let tool = Tool { server: config.name.clone(), ..function.describe() };
            secrets.redact_tool(tool).map(|tool| (Arc::new(tool), function))
        };
        Some(Local { functions: functions.into_iter().filter_map(described).collect() })
    }

    /// Returns the tools.
    pub(super) fn tools(&self) -> Vec<Arc<Tool>> {
        self.functions.iter().map(|(tool, _)| Arc::clone(tool)).collect()
    }

    /// Calls a tool with arguments that its schema allows, and drops the call after `timeout`.
    pub(super) async fn call(
        &self,
        tool: &Tool,
        mut arguments: Map<String, Value>,
        timeout: Duration,
    ) -> Result<ToolReply, ToolError> {
        let what = foreign_text::qualified(&tool.server, &tool.name);
        let Some((tool, function)) = self.functions.iter().find(|(known, _)| known.name == tool.name) else {
            return Err(ToolError::failed(format!("there is no tool `{what}`")));
        };
        add_defaults(&mut arguments, tool);
        match tokio::time::timeout(timeout, Arc::clone(function).call(arguments, timeout)).await {
            Ok(outcome) => outcome.map_err(|error| {
                let said = match error.kind {
                    ToolErrorKind::Failed | ToolErrorKind::Uncertain => " failed:",
                    ToolErrorKind::Panicked => "",
                    _ => ":",
                };
                ToolError { message: format!("`{what}`{said} {}", error.message), ..error }
            }),
            Err(_) => Err(late(&what, timeout)),
        }
    }
}

/// Fills in the schema's defaults for arguments that are not given; a server would do so itself.
fn add_defaults(arguments: &mut Map<String, Value>, tool: &Tool) {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(default) = schema.get("default").filter(|_| !arguments.contains_key(name)) {
            arguments.insert(name.clone(), default.clone());
        }
    }
}

/// Returns the arguments that no template places.
fn others(arguments: &Map<String, Value>, placed: &[&str]) -> Value {
    let others = arguments.iter().filter(|(name, _)| !placed.contains(&name.as_str()));
    Value::Object(others.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The error for a result that exceeds the size limit.
fn too_large(most: usize) -> ToolError {
    let message = format!("its output exceeds {most} bytes (`max_output_bytes`)");
    ToolError::new(ToolErrorKind::TooLarge, message)
}

/// The error for an argument that cannot be used in its place.
fn unfit(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::Arguments, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::{Call, Tools};
    use crate::server::config::Sources;
    use crate::server::downstream::{DownstreamOptions, Downstreams};

    /// A tool that returns its arguments.
    fn echo() -> Tools<'static> {
        let schema = serde_json::json!({"type": "object", "properties": {"a": {}, "b": {"default": 2}}});
        let mut tools = Tools::new();
        tools.tool("ours/echo", |arguments: Map<String, Value>, _: &Call| Ok(arguments)).schema(schema);
        tools
    }

    #[tokio::test]
    async fn functions_stay_when_files_are_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut configuration = Sources::new(vec![folder.path().to_owned()]).read().expect("an empty folder");
        configuration.add_tools(echo()).expect("a name of its own");
        assert!(configuration.add_tools(echo()).is_err());
        let options = DownstreamOptions { cache: None, ..DownstreamOptions::default() };
        let downstreams = Downstreams::new(configuration, options);
        let text = serde_json::json!({"mcpServers": {"mail": {"command": "mail"}}}).to_string();
        std::fs::write(folder.path().join("mail.json"), text).expect("written");
        downstreams.refresh();
        let mut names = downstreams.names();
        names.sort_unstable();
        assert_eq!(names, ["mail", "ours"]);
    }
}
