//! The declaration of a tool by its server: the parts that are pinned, their digest, and how two of them differ.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::lang::{Tool, ToolHints};
use crate::server::identity::sha256_of_json;
use crate::server::quarantine::DeclaredTexts;
use crate::server::secrets::Secrets;

/// The declaration of a tool by its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::server) struct Declaration {
    pub(in crate::server) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server) description: Option<String>,
    pub(in crate::server) input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::server) output_schema: Option<Value>,
    /// The annotations as JSON; `null` if there are none.
    #[serde(default)]
    pub(in crate::server) annotations: Value,
}

/// The name under which a server's instructions are pinned.
pub(super) const INSTRUCTIONS: &str = "the instructions of the server";

/// The names of the hints in annotations.
const READ_ONLY: &str = "readOnlyHint";
const DESTRUCTIVE: &str = "destructiveHint";
const IDEMPOTENT: &str = "idempotentHint";
const OPEN_WORLD: &str = "openWorldHint";

/// Names of quarantine rules that match in a declaration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::server) struct Suspicions {
    /// In the names of the tool, of its arguments and of the fields of its result.
    pub(in crate::server) names: Vec<String>,
    /// In its title, descriptions, enumerations and other texts.
    pub(in crate::server) texts: Vec<String>,
}

impl Suspicions {
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.texts.is_empty()
    }

    /// Returns the names of the rules, each once.
    pub(super) fn all(&self) -> Vec<String> {
        let mut all: Vec<String> = self.names.iter().chain(&self.texts).cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Declaration {
    /// Returns the declaration without the secrets in it; `None` if its name contains one.
    pub(in crate::server) fn redacted(self, secrets: &Secrets) -> Option<Declaration> {
        let tool = Tool {
            name: self.name,
            description: self.description.clone().unwrap_or_default(),
            input_schema: self.input_schema,
            output_schema: self.output_schema,
            ..Tool::default()
        };
        let tool = secrets.redact_tool(tool)?;
        Some(Declaration {
            name: tool.name,
            title: self.title.map(|title| secrets.redact_own(title)),
            description: self.description.map(|_| tool.description),
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            annotations: secrets.redact_value(self.annotations),
        })
    }

    /// What a server says about its use, as a declaration that is pinned beside those of its tools.
    pub(in crate::server) fn of_instructions(said: String) -> Declaration {
        Declaration { description: Some(said), ..Declaration::unknown(INSTRUCTIONS) }
    }

    /// The declaration of a tool about which nothing is known but its name.
    pub(super) fn unknown(name: &str) -> Declaration {
        Declaration {
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: json!({"type": "object"}),
            output_schema: None,
            annotations: Value::Null,
        }
    }

    /// Returns the tool of a server. Without a description it has its title.
    pub(in crate::server) fn tool(&self, server: &str) -> Tool {
        Tool {
            server: server.to_owned(),
            name: self.name.clone(),
            description: self.description.clone().or_else(|| self.title.clone()).unwrap_or_default(),
            input_schema: self.input_schema.clone(),
            output_schema: self.output_schema.clone(),
            hints: self.hints(),
            seen: None,
        }
    }

    /// Returns the hints about its effects.
    pub(in crate::server) fn hints(&self) -> ToolHints {
        let hint = |name: &str| self.annotations.get(name).and_then(Value::as_bool);
        ToolHints { read_only: hint(READ_ONLY), destructive: hint(DESTRUCTIVE), idempotent: hint(IDEMPOTENT) }
    }

    /// Returns the SHA-256 of all parts, in hexadecimal. The order of keys and of required arguments does not matter.
    pub(super) fn digest(&self) -> String {
        let parts: Vec<Value> = self.parts().into_iter().map(|(_, part)| part).collect();
        // A JSON value can always be serialized.
        sha256_of_json(&parts).unwrap_or_default()
    }

    /// Returns the parts that may differ, in canonical form, each with the word for it.
    pub(super) fn parts(&self) -> [(&'static str, Value); 6] {
        [
            ("name", json!(self.name)),
            ("title", json!(self.title)),
            ("description", json!(self.description)),
            ("arguments", canonical(&self.input_schema, false)),
            ("result", canonical(&json!(self.output_schema), false)),
            ("annotations", canonical(&self.annotations, false)),
        ]
    }

    /// Returns the words for the parts in which another declaration differs.
    pub(super) fn differences(&self, other: &Declaration) -> Vec<&'static str> {
        let both = self.parts().into_iter().zip(other.parts());
        both.filter(|((_, one), (_, other))| one != other).map(|((word, _), _)| word).collect()
    }

    /// Returns whether a later declaration has annotations by which less is asked or more is repeated: any change that
    /// does not clearly claim more harm.
    pub(super) fn is_milder(&self, later: &Declaration) -> bool {
        let claims = [(READ_ONLY, false), (DESTRUCTIVE, true), (IDEMPOTENT, false), (OPEN_WORLD, true)];
        claims.into_iter().any(|(name, harmful)| {
            let hint = |declaration: &Declaration| declaration.annotations.get(name).and_then(Value::as_bool);
            let (before, after) = (hint(self), hint(later));
            before != after && after != Some(harmful)
        })
    }

    /// Returns whether a later declaration of a tool that only reads differs in nothing but further optional arguments.
    pub(super) fn is_widened_by(&self, later: &Declaration) -> bool {
        let reads = |declaration: &Declaration| declaration.hints().read_only == Some(true);
        let is_destructive = later.hints().destructive == Some(true);
        reads(self)
            && reads(later)
            && !is_destructive
            && self.differences(later) == ["arguments"]
            && gains_optional(&canonical(&self.input_schema, false), &canonical(&later.input_schema, false))
    }

    /// Returns the quarantine rules that match in its names and in its texts.
    pub(in crate::server) fn suspicions(&self, checked: &mut DeclaredTexts) -> Suspicions {
        let (mut names, mut texts) = (vec![self.name.as_str()], Vec::new());
        texts.extend(self.title.iter().chain(&self.description).map(String::as_str));
        texts.extend(self.annotations.get("title").and_then(Value::as_str));
        for schema in [Some(&self.input_schema), self.output_schema.as_ref()].into_iter().flatten() {
            collect(schema, false, &mut names, &mut texts);
        }
        let mut all = |texts: Vec<&str>| {
            let mut all: Vec<String> = Vec::new();
            for text in texts {
                let hits = checked.hits(text).iter().map(|hit| (*hit).to_owned());
                all.extend(hits);
            }
            all.sort_unstable();
            all.dedup();
            all
        };
        Suspicions { names: all(names), texts: all(texts) }
    }
}

/// Collects the names of properties in a schema, and all of its texts. `is_names` is true for an object whose keys are
/// names.
fn collect<'v>(value: &'v Value, is_names: bool, names: &mut Vec<&'v str>, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, false, names, texts)),
        Value::Object(fields) => {
            for (key, value) in fields {
                if is_names {
                    names.push(key);
                } else if key.contains(' ') {
                    texts.push(key);
                }
                collect(value, !is_names && NAMING.contains(&key.as_str()), names, texts);
            }
        }
        _ => {}
    }
}

/// The keywords of schemas whose keys are names.
pub(super) const NAMING: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentRequired"];

/// Returns a schema with its keys sorted, and with the names of required properties sorted.
fn canonical(value: &Value, is_names: bool) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| canonical(item, false)).collect(),
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_unstable();
            let sorted = keys.into_iter().map(|key| {
                let value = canonical(&fields[key], !is_names && NAMING.contains(&key.as_str()));
                (key.clone(), if key == "required" && !is_names { sorted_texts(value) } else { value })
            });
            Value::Object(sorted.collect())
        }
        other => other.clone(),
    }
}

fn sorted_texts(value: Value) -> Value {
    match value {
        Value::Array(mut items) if items.iter().all(Value::is_string) => {
            items.sort_unstable_by(|one, other| one.as_str().cmp(&other.as_str()));
            Value::Array(items)
        }
        other => other,
    }
}

/// Returns whether a schema differs from an earlier one only in properties that are not required, and in definitions.
fn gains_optional(before: &Value, after: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return false };
    let grows = |key: &str| ["properties", "$defs", "definitions"].contains(&key);
    let rest = |fields: &Map<String, Value>| -> Map<String, Value> {
        fields.iter().filter(|(key, _)| !grows(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let nothing = Map::new();
    let part = |fields: &'_ Map<String, Value>, key: &str| {
        fields.get(key).and_then(Value::as_object).cloned().unwrap_or_else(|| nothing.clone())
    };
    let keeps = |key: &str| {
        let (before, after) = (part(before, key), part(after, key));
        before.iter().all(|(name, schema)| after.get(name) == Some(schema))
    };
    // The names of required arguments are the same, so what was added is optional.
    rest(before) == rest(after)
        && ["properties", "$defs", "definitions"].into_iter().all(keeps)
        && !requires_new(after, &part(before, "properties"))
}

/// Returns whether a schema requires a property that an earlier one did not declare: one that was required before, but
/// not declared, changes its meaning.
fn requires_new(after: &Map<String, Value>, before: &Map<String, Value>) -> bool {
    let declared = after.get("properties").and_then(Value::as_object);
    let required = after.get("required").and_then(Value::as_array);
    let is_new = |name: &&Value| {
        let name = name.as_str().unwrap_or_default();
        declared.is_some_and(|declared| declared.contains_key(name)) && !before.contains_key(name)
    };
    required.is_some_and(|required| required.iter().any(|name| is_new(&name)))
}
