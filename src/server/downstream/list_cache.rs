//! A disk cache of tool lists, by server and configuration, so that resolving a bare name or searching need not start
//! every server. A list is rewritten whenever the server lists its tools anew.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lang::{Tool, ToolHints};
use crate::server::config::{Endpoint, ServerConfig};
use crate::server::pins::{Standing, Vetted};

use super::arguments::CheckedTool;
use super::cache::Cache;

/// Maximum size of a stored list, in bytes; a larger one is not worth reading at every start.
const LARGEST: u64 = 8 << 20;

/// The location of one server's list; `file` is `None` if nothing is stored.
pub(super) struct ListCache {
    cache: Arc<Cache>,
    file: Option<PathBuf>,
    writing: Mutex<()>,
}

/// A list of tools, and the version of the server that has listed them.
pub(super) struct KnownList<T> {
    pub(super) version: String,
    pub(super) tools: Vec<T>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    version: String,
    tools: Vec<KeptTool>,
}

#[derive(Serialize, Deserialize)]
struct KeptTool {
    name: String,
    description: String,
    input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(default)]
    hints: ToolHints,
    #[serde(default)]
    standing: Standing,
}

impl ListCache {
    pub(super) fn new(cache: &Arc<Cache>, config: &ServerConfig) -> ListCache {
        // Local tools are known without a list.
        let is_local = matches!(config.endpoint, Ok(Endpoint::Local(_)));
        let place = cache.place("tools", config).filter(|_| !is_local);
        let file = place.map(|place| place.with_extension("json"));
        ListCache { cache: Arc::clone(cache), file, writing: Mutex::default() }
    }

    /// Reads the stored list; `None` if there is none that can be used.
    pub(super) fn read(&self, server: &str) -> Option<KnownList<Vetted>> {
        let kept: Kept = self.cache.read(self.file.as_ref()?, LARGEST, server)?;
        let vetted = |kept: KeptTool| {
            let tool = Tool {
                server: server.to_owned(),
                name: kept.name,
                description: kept.description,
                input_schema: kept.input_schema,
                output_schema: kept.output_schema,
                hints: kept.hints,
                seen: None,
            };
            Vetted { tool: Arc::new(tool), standing: kept.standing }
        };
        let tools = kept.tools.into_iter().map(vetted).collect();
        Some(KnownList { version: kept.version, tools })
    }

    /// Stores the list that `known` returns. `known` is called under the lock, so that the last list written is the
    /// latest. If the list cannot be stored, it is fetched anew next time.
    pub(super) fn write(&self, known: impl FnOnce() -> KnownList<Arc<CheckedTool>>) {
        let Some(file) = &self.file else { return };
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownList { version, tools } = known();
        let kept = |checked: &Arc<CheckedTool>| {
            let tool = &checked.tool;
            KeptTool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
                output_schema: tool.output_schema.clone(),
                hints: tool.hints,
                standing: checked.standing.clone(),
            }
        };
        self.cache.write(file, &Kept { version, tools: tools.iter().map(kept).collect() });
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
            pinning: None,
            inherit: Default::default(),
            secrets: Default::default(),
            file: String::new(),
        };
        let cache = Arc::new(Cache::new(Some(folder.path().to_owned())));
        let list_cache = ListCache::new(&cache, &config("http://a"));
        assert!(list_cache.read("mail").is_none());
        let tool = Tool {
            server: "mail".into(),
            name: "search".into(),
            description: "finds".into(),
            input_schema: serde_json::json!({"type": "object"}),
            hints: ToolHints { read_only: Some(true), ..ToolHints::default() },
            ..Tool::default()
        };
        list_cache.write(|| KnownList { version: "mail 1".into(), tools: checked(vec![Arc::new(tool)]) });
        let back = list_cache.read("mail").expect("kept");
        assert_eq!(back.version, "mail 1");
        let tool = &back.tools[0].tool;
        assert_eq!((tool.name.as_str(), tool.description.as_str()), ("search", "finds"));
        assert_eq!(tool.hints.read_only, Some(true));
        assert!(ListCache::new(&cache, &config("http://b")).read("mail").is_none());
        assert!(ListCache::new(&Arc::new(Cache::new(None)), &config("http://a")).read("mail").is_none());
    }
}
