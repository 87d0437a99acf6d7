//! An MCP server in a child process, with this process as its client.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Timeout for a reply.
const PATIENCE: Duration = Duration::from_secs(30);
/// Timeout for the process to exit after the connection is closed.
const FAREWELL: Duration = Duration::from_secs(4);

/// A running server. Its process is killed when this is dropped.
pub struct Peer {
    client: RunningService<RoleClient, ClientConfig>,
    process: Child,
}

/// The tools of a server.
pub struct ToolList {
    /// The names of the tools.
    pub names: Vec<String>,
    /// The description that a model receives, as JSON: names, descriptions, schemas and hints.
    pub text: String,
}

/// The answer of a tool.
pub struct Answer {
    /// The text.
    pub text: String,
    /// The structured content, as JSON; empty if there is none.
    pub record: String,
    /// True for an error.
    pub is_error: bool,
}

impl Peer {
    /// Starts a process and performs the MCP handshake.
    ///
    /// # Errors
    /// Returns an error if the process does not start or is not an MCP server.
    pub async fn start(program: &Path, arguments: &[&OsStr], variable: Option<(&str, &OsStr)>) -> Result<Peer, String> {
        let name = program.display();
        let mut process = Command::new(program)
            .args(arguments)
            .envs(variable)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|problem| format!("{name}: {problem}"))?;
        let (Some(output), Some(input)) = (process.stdout.take(), process.stdin.take()) else {
            return Err(format!("{name}: its standard input and output are not pipes"));
        };
        let information = Implementation::new("lispbox-demo", env!("CARGO_PKG_VERSION"));
        let ourselves = ClientConfig::new(ClientCapabilities::default(), information);
        let client = tokio::time::timeout(PATIENCE, ourselves.serve((output, input))).await;
        let client = client.map_err(|_| format!("{name} does not answer"))?;
        let client = client.map_err(|problem| format!("{name} does not speak MCP: {problem}"))?;
        Ok(Peer { client, process })
    }

    /// Lists the tools of the server.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub async fn tools(&self) -> Result<ToolList, String> {
        let tools = tokio::time::timeout(PATIENCE, self.client.list_all_tools()).await;
        let tools =
            tools.map_err(|_| "no answer to `tools/list`".to_owned())?.map_err(|problem| problem.to_string())?;
        // A client does not give titles, icons, annotations and `_meta` to the model.
        let given = |tool: &rmcp::model::Tool| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema});
        let text = Value::from(tools.iter().map(given).collect::<Vec<_>>()).to_string();
        Ok(ToolList { names: tools.into_iter().map(|tool| tool.name.into_owned()).collect(), text })
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// Returns an error if the server does not answer; an error returned by the tool is an [`Answer`].
    pub async fn call(&self, tool: &'static str, arguments: &Value) -> Result<Answer, String> {
        self.request(CallToolRequestParams::new(tool), arguments).await
    }

    /// Calls a tool, with the words of the user.
    ///
    /// # Errors
    /// Fails like [`Peer::call`].
    pub async fn call_saying(&self, tool: &'static str, arguments: &Value, words: &str) -> Result<Answer, String> {
        let mut request = CallToolRequestParams::new(tool);
        let meta = request.meta.get_or_insert_default();
        meta.0.insert("lispbox/user".to_owned(), words.into());
        self.request(request, arguments).await
    }

    async fn request(&self, request: CallToolRequestParams, arguments: &Value) -> Result<Answer, String> {
        let tool = request.name.clone();
        let request = request.with_arguments(arguments.as_object().cloned().unwrap_or_default());
        let result = tokio::time::timeout(PATIENCE, self.client.call_tool(request)).await;
        let result = result.map_err(|_| format!("no answer from `{tool}`"))?.map_err(|problem| problem.to_string())?;
        let texts: Vec<&str> =
            result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
        Ok(Answer {
            text: texts.join("\n"),
            record: result.structured_content.as_ref().map(|record| json!(record).to_string()).unwrap_or_default(),
            is_error: result.is_error == Some(true),
        })
    }

    /// Closes the connection and waits for the process to exit.
    pub async fn close(mut self) {
        let _ = tokio::time::timeout(FAREWELL, self.client.close()).await;
        if tokio::time::timeout(FAREWELL, self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
    }
}
