//! Which tools may be called.

use globset::{Glob, GlobMatcher};
use serde_json::Value;

use super::{Wrong, kind, unknown_key, wrong};

/// Which tools may be called: those that one of the `allow` matches, where there are any, and none of the `block`.
///
/// A pattern is a name in which `*` stands for any characters, `?` for one, `{a,b}` for one of several; with a `/` in
/// it, it is matched with `server/tool`, otherwise with the name of the tool. It looks at exact names only.
#[derive(Clone, Debug, Default)]
pub struct ToolRules {
    /// Each list has to let a tool through.
    allow: Vec<List>,
    block: Vec<List>,
}

#[derive(Clone, Debug)]
struct List {
    /// What a message calls it: `tools.allow` of a file.
    name: String,
    patterns: Vec<GlobMatcher>,
}

impl List {
    fn finds(&self, server: &str, tool: &str) -> Option<&GlobMatcher> {
        let qualified = format!("{server}/{tool}");
        self.patterns.iter().find(|pattern| {
            pattern.is_match(if pattern.glob().glob().contains('/') { qualified.as_str() } else { tool })
        })
    }
}

impl PartialEq for ToolRules {
    fn eq(&self, other: &ToolRules) -> bool {
        let texts = |lists: &[List]| -> Vec<(String, Vec<String>)> {
            let patterns = |list: &List| list.patterns.iter().map(|pattern| pattern.glob().glob().to_owned()).collect();
            lists.iter().map(|list| (list.name.clone(), patterns(list))).collect()
        };
        texts(&self.allow) == texts(&other.allow) && texts(&self.block) == texts(&other.block)
    }
}

impl ToolRules {
    /// Reads an object with `allow` or `block`, of which there may be one.
    pub(super) fn read(value: Option<&Value>, path: &str, file: &str) -> Result<ToolRules, Wrong> {
        let mut rules = ToolRules::default();
        let fields = match value {
            None | Some(Value::Null) => return Ok(rules),
            Some(Value::Object(fields)) => fields,
            // Other clients list the tools that may be used.
            Some(Value::Array(_)) => {
                rules.add(true, &texts(value, path)?, &format!("`tools` of {file}"), path)?;
                return Ok(rules);
            }
            Some(other) => return wrong(path, "an object with `allow` or `block`", other),
        };
        if let Some(slip) = unknown_key(fields.keys(), ["allow", "block"].into_iter()) {
            return Err(Wrong { path: format!("{path}.{}", slip.path), ..slip });
        }
        let given = |key: &str| fields.get(key).filter(|value| !value.is_null());
        if given("allow").is_some() && given("block").is_some() {
            let message = "expected either `allow` or `block`, got both".to_owned();
            return Err(Wrong { path: path.to_owned(), message });
        }
        for (key, allows) in [("allow", true), ("block", false)] {
            if given(key).is_some() {
                let path = format!("{path}.{key}");
                rules.add(allows, &texts(given(key), &path)?, &format!("`tools.{key}` of {file}"), &path)?;
            }
        }
        Ok(rules)
    }

    /// Adds a list of patterns.
    pub(super) fn add(&mut self, allows: bool, patterns: &[String], name: &str, path: &str) -> Result<(), Wrong> {
        let mut list = List { name: name.to_owned(), patterns: Vec::new() };
        for (index, pattern) in patterns.iter().enumerate() {
            let glob = Glob::new(pattern).map_err(|problem| Wrong {
                path: format!("{path}[{index}]"),
                message: format!("expected a pattern such as `search-*`, got {pattern:?}: {}", problem.kind()),
            })?;
            list.patterns.push(glob.compile_matcher());
        }
        if allows { &mut self.allow } else { &mut self.block }.push(list);
        Ok(())
    }

    /// Adds the rules of another file, all of which have to let a tool through.
    pub(in crate::server) fn merge(&mut self, other: ToolRules) {
        self.allow.extend(other.allow);
        self.block.extend(other.block);
    }

    /// The rules in words, a line each: `only search-*, get-* (\`tools.allow\` of servers.yaml)`.
    pub fn lines(&self) -> Vec<String> {
        let line = |word: &str, list: &List| {
            let patterns: Vec<&str> = list.patterns.iter().map(|pattern| pattern.glob().glob()).collect();
            format!("{word} {} ({})", patterns.join(", "), list.name)
        };
        let allow = self.allow.iter().map(|list| line("only", list));
        allow.chain(self.block.iter().map(|list| line("without", list))).collect()
    }

    /// Which rule keeps a tool from being called, in words.
    pub fn denies(&self, server: &str, tool: &str) -> Option<String> {
        for list in &self.block {
            if let Some(pattern) = list.finds(server, tool) {
                return Some(format!("{} has `{}`", list.name, pattern.glob().glob()));
            }
        }
        let missing = self.allow.iter().find(|list| list.finds(server, tool).is_none())?;
        Some(format!("{} does not have it", missing.name))
    }
}

fn texts(value: Option<&Value>, path: &str) -> Result<Vec<String>, Wrong> {
    let items = match value {
        Some(Value::Array(items)) => items,
        Some(other) => return wrong(path, "a list of tools", other),
        None => return Ok(Vec::new()),
    };
    let text = |(index, item): (usize, &Value)| match item {
        Value::String(text) => Ok(text.clone()),
        other => {
            Err(Wrong { path: format!("{path}[{index}]"), message: format!("expected text, got {}", kind(other)) })
        }
    };
    items.iter().enumerate().map(text).collect()
}
