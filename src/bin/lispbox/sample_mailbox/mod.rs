//! The sample mailbox of the demo: an ordinary MCP server over standard input and output, with a thousand generated
//! messages.

pub mod mailbox;
pub mod schemas;

use std::process::ExitCode;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};

use crate::output::errln;

use mailbox::Mailbox;

/// Serves a sample mailbox to an MCP client, on standard input and output.
#[derive(Args)]
pub struct SampleMailbox {}

impl SampleMailbox {
    /// Serves until the client disconnects.
    pub fn run(self) -> ExitCode {
        let outcome = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
            let outcome = runtime.block_on(async {
                let running = Mailbox::new()
                    .serve(rmcp::transport::stdio_pipes())
                    .await
                    .map_err(|problem| problem.to_string())?;
                running.waiting().await.map_err(|problem| problem.to_string())
            });
            // A thread may still be blocked in a read of standard input.
            runtime.shutdown_background();
            outcome
        });
        match outcome {
            Ok(Ok(_)) => ExitCode::SUCCESS,
            Ok(Err(problem)) => complain(&problem),
            Err(problem) => complain(&problem.to_string()),
        }
    }
}

fn complain(problem: &str) -> ExitCode {
    errln!("lispbox: sample mailbox: {problem}");
    ExitCode::FAILURE
}

impl ServerHandler for Mailbox {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("sample-mailbox", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(schemas::tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match self.call(&request.name, &arguments) {
            Some(Ok(value)) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
            Some(Err(reason)) => CallToolResult::error(vec![ContentBlock::text(reason)]),
            None => return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None)),
        };
        Ok(result.into())
    }
}
