//! The list of a server's tools, as it is received page by page: what is left out of it, and why.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lang::ToolHints;
use crate::lang::internal::foreign_text;
use crate::server::pins::Declaration;
use crate::server::secrets::Secrets;
use crate::server::transport::envelope::Envelope;
use crate::server::transport::lenient::TASK_ONLY;
use crate::server::transport::lines;

/// Maximum size of the tool list, in bytes of names, descriptions and schemas.
const LARGEST_LIST: u64 = 8 << 20;
/// Maximum number of reported reasons for leaving tools out.
const LEFT_OUT: usize = 20;
/// Maximum length of a tool name, in bytes.
const LONGEST_NAME: usize = 1024;

/// Why a server that says nothing of tools has none.
pub(super) const NO_TOOLS: &str = "it has no tools: it offers prompts or resources alone";

/// A tool list while it is being received.
#[derive(Default)]
pub(super) struct List {
    pub(super) tools: Vec<Declaration>,
    /// Why tools are left out, a clause each.
    pub(super) left_out: Vec<String>,
    /// The time for which the server considers the list fresh.
    pub(super) fresh: Option<Duration>,
    /// The hints of each tool by name, and the names that several tools with different hints share.
    names: HashMap<String, ToolHints>,
    twins: BTreeSet<String>,
    bytes: u64,
    marks: u64,
}

impl List {
    /// Returns the list of a server that says nothing of tools.
    pub(super) fn without_tools(server: &str) -> List {
        let mut list = List::default();
        list.leave_out(server, NO_TOOLS.to_owned());
        list
    }

    /// Takes the time for which the server considers a page fresh; the shortest one counts.
    pub(super) fn is_fresh_for(&mut self, milliseconds: Option<u64>) {
        let fresh = milliseconds.map(Duration::from_millis);
        self.fresh = [self.fresh, fresh].into_iter().flatten().min();
    }

    /// Adds a page of a server's tools; returns false if the list becomes too long.
    pub(super) fn add(&mut self, server: &str, page: Vec<rmcp::model::Tool>, secrets: &Secrets) -> bool {
        for tool in page {
            if is_for_apps_only(&tool) {
                let name = foreign_text::name(&tool.name);
                tracing::debug!(server, "the tool {name} is left out: its server offers it to apps only");
                continue;
            }
            if is_for_tasks_only(&tool) {
                let name = foreign_text::name(&tool.name);
                self.leave_out(
                    server,
                    format!("the tool {name} is left out: it runs as a task only, and programs cannot wait for tasks"),
                );
                continue;
            }
            let Some(tool) = declaration(tool).redacted(secrets) else {
                self.leave_out(server, "a tool is left out: its name contains a secret".to_owned());
                continue;
            };
            if !(1..=LONGEST_NAME).contains(&tool.name.len()) {
                let name = foreign_text::name(&tool.name);
                self.leave_out(server, format!("the tool {name} is left out: its name is empty or too long"));
                continue;
            }
            if let Some(hints) = self.names.insert(tool.name.clone(), tool.hints()) {
                if hints == tool.hints() {
                    let name = foreign_text::name(&tool.name);
                    self.leave_out(server, format!("a second tool {name} is left out: another one has its name"));
                } else {
                    self.twins.insert(tool.name);
                }
                continue;
            }
            let schemas = Envelope::of(json!([tool.input_schema, tool.output_schema]).to_string().as_bytes());
            let texts = [tool.title.as_deref(), tool.description.as_deref(), Some(&tool.name)];
            self.bytes += schemas.bytes() + texts.into_iter().flatten().map(str::len).sum::<usize>() as u64;
            self.marks += schemas.marks();
            if self.bytes > LARGEST_LIST || self.marks > lines::MOST_MARKS {
                return false;
            }
            self.tools.push(tool);
        }
        true
    }

    /// Removes tools that share a name but have different hints: no rule could tell them apart, and it is unknown
    /// which of them a call reaches.
    pub(super) fn without_twins(mut self, server: &str) -> List {
        let twins = std::mem::take(&mut self.twins);
        self.tools.retain(|tool| !twins.contains(&tool.name));
        for name in &twins {
            let name = foreign_text::name(name);
            self.leave_out(
                server,
                format!("the tools {name} are left out: several have this name, with different annotations"),
            );
        }
        self
    }

    pub(super) fn leave_out(&mut self, server: &str, message: String) {
        if self.left_out.len() < LEFT_OUT && !self.left_out.contains(&message) {
            tracing::warn!(server, "{message}");
            self.left_out.push(message);
        }
    }
}

/// True for a tool that its server offers to the pages of an MCP App, not to a model: its `_meta.ui.visibility` names
/// audiences, but not `model`. Without audiences a tool is for both.
fn is_for_apps_only(tool: &rmcp::model::Tool) -> bool {
    let visibility = tool.meta.as_ref().and_then(|meta| meta.get("ui")?.get("visibility")?.as_array());
    visibility.is_some_and(|audiences| !audiences.is_empty() && audiences.iter().all(|audience| audience != "model"))
}

/// True for a tool that runs as a task alone, for whose end programs cannot wait.
fn is_for_tasks_only(tool: &rmcp::model::Tool) -> bool {
    tool.meta.as_ref().and_then(|meta| meta.get(TASK_ONLY)) == Some(&Value::Bool(true))
}

fn declaration(tool: rmcp::model::Tool) -> Declaration {
    Declaration {
        input_schema: tool.schema_as_json_value(),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
        name: tool.name.into_owned(),
        title: tool.title,
        description: tool.description.map(|text| text.into_owned()),
        annotations: json!(tool.annotations),
    }
}
