//! Translates the entries of other clients' files into ours.
//!
//! [`keys`] is the table of their keys. Each is taken over, has no effect on calls, or is refused: a server is never
//! used without its credentials, outside of its sandbox or with a tool that its client has disabled. [`Dialect`] is the
//! client that a file belongs to, which decides where one key has several meanings.

mod keys;
mod references;

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::server::fields::{Wrong, given, kind, wrong};
use keys::{KEYS, Means};

/// The client whose format a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// VS Code.
    VsCode,
    /// Any other client.
    Other,
}

/// The parts that several keys contribute to.
#[derive(Default)]
struct Parts {
    headers: Map<String, Value>,
    only: Option<Value>,
    block: Vec<Value>,
    ask: Vec<Value>,
    inherit: Vec<Value>,
}

impl Dialect {
    /// Returns the client of the servers under this key of a file: by the place of the file, or by keys that only one
    /// client has.
    pub(super) fn of(file: &str, key: &str, root: &Map<String, Value>) -> Dialect {
        let folder = Path::new(file).parent().and_then(Path::file_name).unwrap_or_default();
        let name = Path::new(file).file_name().unwrap_or_default();
        match (key, folder.to_str(), name.to_str()) {
            ("mcp_servers", ..) => Dialect::Codex,
            (_, Some(".gemini"), _) => Dialect::Gemini,
            (_, Some(".cursor"), _) => Dialect::Cursor,
            (_, Some(".vscode"), _) => Dialect::VsCode,
            (_, _, Some(".mcp.json" | ".claude.json")) => Dialect::ClaudeCode,
            _ if is_of_gemini(root, key) => Dialect::Gemini,
            _ => Dialect::Other,
        }
    }

    /// Returns the client with this name on the command line.
    pub fn named(name: &str) -> Dialect {
        match name {
            "claude-code" => Dialect::ClaudeCode,
            "codex" => Dialect::Codex,
            "cursor" => Dialect::Cursor,
            "gemini-cli" => Dialect::Gemini,
            "vscode" => Dialect::VsCode,
            _ => Dialect::Other,
        }
    }

    /// Translates an entry. Keys that are not the client's stay as they are.
    ///
    /// # Errors
    /// Returns a sentence that names a key which cannot be taken over.
    pub fn translate(self, fields: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        self.translated(fields).map_err(|Wrong { path, message }| match path.as_str() {
            "" => message,
            path => format!("`{}`: {message}", path.trim_start_matches('.')),
        })
    }

    pub(super) fn translated(self, fields: &Map<String, Value>) -> Result<Map<String, Value>, Wrong> {
        let (mut ours, mut parts) = (Map::new(), Parts::default());
        for (key, value) in fields {
            let means = KEYS.iter().find(|known| known.key == key && known.is_of(self)).map(|known| known.means);
            match means {
                Some(means) if !value.is_null() => self.take(key, value, means, fields, &mut ours, &mut parts)?,
                _ => drop(ours.insert(key.clone(), value.clone())),
            }
        }
        parts.join(&mut ours)?;
        if self == Dialect::Gemini {
            // It prefers `httpUrl`, which is never of the older transport.
            if let Some(url) = ours.shift_remove("httpUrl").filter(|url| !url.is_null()) {
                ours.insert("url".to_owned(), url);
                ours.insert("type".to_owned(), json!("http"));
            }
            ours.values_mut().for_each(references::rewrite);
        }
        Ok(ours)
    }

    fn take(
        self,
        key: &str,
        value: &Value,
        means: Means,
        fields: &Map<String, Value>,
        ours: &mut Map<String, Value>,
        parts: &mut Parts,
    ) -> Result<(), Wrong> {
        let path = format!(".{key}");
        match means {
            Means::Nothing => {}
            Means::Seconds(name) => {
                if given(fields, name).is_none() {
                    ours.insert(name.to_owned(), value.clone());
                }
            }
            Means::Millis(name) => {
                let Some(millis) = value.as_f64() else { return wrong(path, "a number of milliseconds", value) };
                if given(fields, name).is_none() && !ours.contains_key(name) {
                    ours.insert(name.to_owned(), json!(millis / 1000.0));
                }
            }
            Means::Headers => parts.headers.extend(object(&path, value)?.clone()),
            Means::VariableHeaders => {
                for (header, variable) in object(&path, value)? {
                    let variable = name_of_variable(&format!("{path}.{header}"), variable)?;
                    parts.headers.insert(header.clone(), json!(format!("${{{variable}}}")));
                }
            }
            Means::Bearer => {
                let variable = name_of_variable(&path, value)?;
                parts.headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{{variable}}}")));
            }
            Means::Variables => {
                for (index, item) in list(&path, value)?.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let name = item.get("name").filter(|_| item.is_object()).unwrap_or(item);
                    if let Some(source) = item.get("source").filter(|source| *source != "local") {
                        return wrong(format!("{path}.source"), "`local`", source);
                    }
                    parts.inherit.push(json!(name_of_variable(&path, name)?));
                }
            }
            Means::Only => {
                list(&path, value)?;
                parts.only = Some(value.clone());
            }
            Means::Block => parts.block.extend(list(&path, value)?.iter().cloned()),
            Means::Approval => {
                if is_asked(&path, value)? {
                    parts.ask.push(json!("*"));
                }
            }
            Means::Approvals => {
                let tools = object(&path, value)?;
                // The same key is ours as well, with lists of tools.
                if tools.values().all(Value::is_array) {
                    ours.insert(key.to_owned(), value.clone());
                    return Ok(());
                }
                for (tool, settings) in tools {
                    let path = format!("{path}.{tool}");
                    let settings = object(&path, settings)?;
                    if let Some(other) = settings.keys().find(|name| *name != "approval_mode") {
                        return Err(refused(&format!("{path}.{other}"), ""));
                    }
                    if let Some(mode) = given(settings, "approval_mode")
                        && is_asked(&format!("{path}.approval_mode"), mode)?
                    {
                        parts.ask.push(json!(tool));
                    }
                }
            }
            Means::Unless(harmless, why) => {
                let shown = value.to_string();
                let is_harmless = harmless.iter().any(|text| value == text || shown == *text);
                let is_empty =
                    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
                let is_off = value.as_object().is_some_and(|fields| fields.get("enabled") == Some(&json!(false)));
                if !(is_harmless || is_empty || is_off) {
                    return Err(refused(&path, why));
                }
            }
        }
        Ok(())
    }

    /// Returns why a client does not use a server of its file: the key that excludes it; `None` if it does.
    pub fn excludes(self, root: &Map<String, Value>, name: &str) -> Option<&'static str> {
        if self != Dialect::Gemini {
            return None;
        }
        let mcp = root.get("mcp").and_then(Value::as_object);
        let lists = [
            ("mcp.excluded", mcp.and_then(|mcp| mcp.get("excluded")), true),
            ("excludeMCPServers", root.get("excludeMCPServers"), true),
            ("mcp.allowed", mcp.and_then(|mcp| mcp.get("allowed")), false),
            ("allowMCPServers", root.get("allowMCPServers"), false),
        ];
        let excludes = |list: Option<&Value>, excluding: bool| {
            list.and_then(Value::as_array).is_some_and(|names| names.iter().any(|other| other == name) == excluding)
        };
        lists.into_iter().find(|(_, list, excluding)| excludes(*list, *excluding)).map(|(key, ..)| key)
    }
}

impl Parts {
    /// Adds the parts to an entry. A header of the entry itself takes precedence.
    fn join(self, ours: &mut Map<String, Value>) -> Result<(), Wrong> {
        let Parts { mut headers, only, block, ask, inherit } = self;
        if !headers.is_empty() {
            if let Some(own) = given(ours, "headers") {
                headers.extend(object(".headers", own)?.clone());
            }
            ours.insert("headers".to_owned(), Value::Object(headers));
        }
        if let Some(only) = only {
            ours.insert("includeTools".to_owned(), only);
        }
        let mut append = |key: &str, items: Vec<Value>| {
            if !items.is_empty() {
                let list = ours.entry(key).or_insert_with(|| json!([]));
                match list {
                    Value::Array(list) => list.extend(items),
                    other => *other = Value::Array(items),
                }
            }
        };
        append("excludeTools", block);
        append("inherit", inherit);
        if !ask.is_empty() {
            let policy = ours.entry("policy").or_insert_with(|| json!({}));
            if let Some(Value::Array(list)) =
                policy.as_object_mut().map(|policy| policy.entry("ask").or_insert(json!([])))
            {
                list.extend(ask);
            }
        }
        Ok(())
    }
}

/// True for a file with keys that only Gemini CLI has.
fn is_of_gemini(root: &Map<String, Value>, key: &str) -> bool {
    let has = |value: Option<&Value>, keys: &[&str]| {
        value.and_then(Value::as_object).is_some_and(|fields| keys.iter().any(|key| fields.contains_key(*key)))
    };
    let mut servers = root.get(key).and_then(Value::as_object).into_iter().flat_map(Map::values);
    has(root.get("mcp"), &["excluded", "allowed"])
        || ["allowMCPServers", "excludeMCPServers"].iter().any(|key| root.contains_key(*key))
        || servers.any(|server| has(Some(server), &["httpUrl", "trust", "authProviderType"]))
}

/// Returns whether an approval mode of Codex means that a person is asked. Modes that ask less are not taken over.
fn is_asked(path: &str, mode: &Value) -> Result<bool, Wrong> {
    match mode.as_str() {
        Some("prompt") => Ok(true),
        Some("auto" | "approve") => Ok(false),
        _ => wrong(path, "`auto`, `prompt` or `approve`", mode),
    }
}

fn refused(path: &str, why: &str) -> Wrong {
    let message = format!("this key of its client cannot be taken over{why}; the server is not used without it");
    Wrong { path: path.to_owned(), message }
}

fn object<'v>(path: &str, value: &'v Value) -> Result<&'v Map<String, Value>, Wrong> {
    value
        .as_object()
        .ok_or_else(|| Wrong { path: path.to_owned(), message: format!("expected an object, got {}", kind(value)) })
}

fn list<'v>(path: &str, value: &'v Value) -> Result<&'v Vec<Value>, Wrong> {
    value
        .as_array()
        .ok_or_else(|| Wrong { path: path.to_owned(), message: format!("expected a list, got {}", kind(value)) })
}

/// Returns the name of an environment variable, which is used in `${…}`.
fn name_of_variable<'v>(path: &str, value: &'v Value) -> Result<&'v str, Wrong> {
    let name = value.as_str().filter(|name| !name.is_empty() && !name.contains(['}', ':', '=', '$', '\0']));
    name.map_or_else(
        // It may be the credential itself, in the wrong place.
        || Err(Wrong { path: path.to_owned(), message: "expected the name of an environment variable".to_owned() }),
        Ok,
    )
}

#[cfg(test)]
mod tests;
