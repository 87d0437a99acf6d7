//! A disk cache of tool lists, by server and configuration, so that resolving a bare name or searching need not start
//! every server.
//!
//! The result shapes that the [`LOCAL`] principal has seen are stored with the lists, in a file that only its owner
//! can read. A list is rewritten whenever the server lists its tools anew, and when new result shapes are learned. The
//! parameters with which a server runs (its arguments, its environment) enter the key only as a hash.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lang::{Tool, ToolHints};
use crate::server::config::{Endpoint, ServerConfig};
use crate::server::identity::LOCAL;
use crate::server::system::folders::{make_private, replace};
use crate::server::transport::envelope::Envelope;
use crate::server::transport::lines::MOST_MARKS;

use super::arguments::CheckedTool;

/// Maximum size of a stored list, in bytes; a larger one is not worth reading at every start.
const LARGEST: u64 = 8 << 20;

/// The location of one server's list; `file` is `None` if nothing is stored.
pub(super) struct Shelf {
    file: Option<PathBuf>,
    writing: Mutex<()>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    name: String,
    description: String,
    input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(default)]
    hints: ToolHints,
    /// Stored under a new name: under the former name files may contain keys that are data, and those must not be
    /// read.
    #[serde(rename = "shape", default, skip_serializing_if = "Option::is_none")]
    seen: Option<Value>,
}

impl Shelf {
    pub(super) fn new(folder: Option<&Path>, config: &ServerConfig) -> Shelf {
        let file = folder.zip(config.endpoint.as_ref().ok()).and_then(|(folder, endpoint)| {
            let mut hasher = DefaultHasher::new();
            config.name.hash(&mut hasher);
            match endpoint {
                Endpoint::Process { command, arguments, environment, folder } => {
                    (command, arguments, environment, folder, &config.inherit).hash(&mut hasher);
                }
                Endpoint::Http { url, headers, .. } => (url, headers).hash(&mut hasher),
                // Local tools need no cache.
                Endpoint::Local(_) | Endpoint::Functions(_) => return None,
            }
            let readable: String =
                config.name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').take(40).collect();
            Some(folder.join("tools").join(format!("{readable}-{:016x}.json", hasher.finish())))
        });
        Shelf { file, writing: Mutex::default() }
    }

    /// Reads the stored list; `None` if there is none that can be used.
    pub(super) fn read(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        let file = self.file.as_ref()?;
        if !std::fs::metadata(file).ok()?.is_file() {
            return None;
        }
        if let Err(problem) = make_private(file) {
            tracing::warn!(%problem, server, "the list of tools on disk is not used: other users may change it");
            return None;
        }
        let mut text = Vec::new();
        std::fs::File::open(file).ok()?.take(LARGEST + 1).read_to_end(&mut text).ok()?;
        let scan = Envelope::of(&text);
        if text.len() as u64 > LARGEST || scan.marks() > MOST_MARKS {
            return None;
        }
        let kept: Vec<Kept> = serde_json::from_slice(&text).ok()?;
        let tool = |kept: Kept| Tool {
            server: server.to_owned(),
            name: kept.name,
            description: kept.description,
            input_schema: kept.input_schema,
            output_schema: kept.output_schema,
            hints: kept.hints,
            seen: kept.seen,
        };
        Some(kept.into_iter().map(|kept| Arc::new(tool(kept))).collect())
    }

    /// Stores the list that `tools` returns. `tools` is called under the lock, so that the last list written is the
    /// latest. If the list cannot be stored, it is fetched anew next time.
    pub(super) fn write(&self, tools: impl FnOnce() -> Vec<Arc<CheckedTool>>) {
        let Some(file) = &self.file else { return };
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: Vec<Kept> = tools()
            .iter()
            .map(|checked| checked.shown(LOCAL))
            .map(|tool| Kept {
                name: tool.name.clone(),
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
                output_schema: tool.output_schema.clone(),
                hints: tool.hints,
                seen: tool.seen.clone(),
            })
            .collect();
        let outcome = serde_json::to_vec(&kept).map_err(std::io::Error::from).and_then(|text| replace(file, &text));
        if let Err(problem) = outcome {
            tracing::debug!(%problem, "the list of tools was not stored");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::checked;
    use super::*;
    use crate::server::config::HttpTransport;

    #[test]
    fn a_list_comes_back_for_the_same_configuration_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = |url: &str| ServerConfig {
            name: "mail".into(),
            description: String::new(),
            endpoint: Ok(Endpoint::Http {
                url: url.into(),
                transport: HttpTransport::Streamable,
                headers: Default::default(),
            }),
            policy: Default::default(),
            timeout: None,
            tool_timeouts: Default::default(),
            start_timeout: None,
            idle: None,
            inherit: Default::default(),
            secrets: Default::default(),
            file: String::new(),
        };
        let shelf = Shelf::new(Some(folder.path()), &config("http://a"));
        assert!(shelf.read("mail").is_none());
        let tool = Tool {
            server: "mail".into(),
            name: "search".into(),
            description: "finds".into(),
            input_schema: serde_json::json!({"type": "object"}),
            hints: ToolHints { read_only: Some(true), ..ToolHints::default() },
            seen: Some(serde_json::json!({"type": "string"})),
            ..Tool::default()
        };
        shelf.write(|| checked(vec![Arc::new(tool)]));
        let back = shelf.read("mail").expect("kept");
        assert_eq!((back[0].name.as_str(), back[0].description.as_str()), ("search", "finds"));
        assert_eq!(
            (back[0].hints.read_only, &back[0].seen),
            (Some(true), &Some(serde_json::json!({"type": "string"})))
        );
        assert!(Shelf::new(Some(folder.path()), &config("http://b")).read("mail").is_none());
        assert!(Shelf::new(None, &config("http://a")).read("mail").is_none());
    }
}
