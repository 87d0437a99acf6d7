//! The outcome of a comparison of tools with their pins.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lang::Tool;
use crate::lang::internal::foreign_text;

/// What a tool's pin says about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::server) struct Standing {
    /// True if its description may be quoted in instructions: it is pinned, and its text is clean.
    #[serde(default)]
    pub(in crate::server) is_quotable: bool,
    /// True if its name and those of its arguments may be quoted there.
    #[serde(default)]
    pub(in crate::server) is_nameable: bool,
    /// The quarantine rules that match in its declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::server) suspicions: Vec<String>,
    /// The schema of its arguments that is pinned, and shown until a person has accepted the one that its server sends, if
    /// calls may use that one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server) pinned_schema: Option<Value>,
    /// Why it may not be called, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server) held: Option<Held>,
}

impl Standing {
    /// The standing of a tool that is part of the configuration or of this program.
    pub(in crate::server) fn own() -> Standing {
        Standing { is_quotable: true, is_nameable: true, ..Standing::default() }
    }
}

/// The reason why a tool may not be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::server) struct Held {
    /// The digest of the declaration that is not accepted.
    pub(super) digest: String,
    /// The parts that differ; empty if `problem` is the reason.
    pub(super) parts: Vec<String>,
    /// Why the tool could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// A tool with its standing. A held tool has the declaration that was pinned, not the one that its server sends.
pub(in crate::server) struct Vetted {
    pub(in crate::server) tool: Arc<Tool>,
    pub(in crate::server) standing: Standing,
}

/// What a comparison of a server's tools with their pins has found: names of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinReport {
    /// The number of tools that were pinned just now, at first sight of the server.
    pub pinned: usize,
    /// Tools that the server did not have when it was first seen, and that no person has reviewed.
    pub new: Vec<String>,
    /// Tools that were changed and are held.
    pub held: Vec<String>,
    /// Tools that were changed in a way that does not hold them.
    pub passed: Vec<String>,
    /// Tools whose names or texts read like instructions to the assistant, with the rules that match.
    pub suspicious: Vec<(String, Vec<String>)>,
    /// Why the pins could not be read or written.
    pub problem: Option<String>,
}

impl PinReport {
    /// Logs what a person should look at.
    pub(super) fn log(&self, server: &str) {
        let PinReport { pinned, new, held, passed, .. } = self;
        if *pinned > 0 {
            tracing::info!(server, tools = pinned, "tools are pinned at first sight");
        }
        for (tools, event) in [
            (new, "new tools of a known server; `lispbox config review` shows them"),
            (held, "tools were changed and are held; `lispbox config review` shows the difference"),
            (passed, "tools were changed and are not held; `lispbox config review` shows the difference"),
        ] {
            if !tools.is_empty() {
                let tools = tools.iter().map(|tool| foreign_text::name(tool)).collect::<Vec<_>>().join(", ");
                tracing::warn!(server, tools, "{event}");
            }
        }
    }
}
