//! The names of tools and servers in the forms in which rules are compared with them.

use std::collections::HashMap;
use std::sync::OnceLock;

use lispbox_lang::internal::{canonical_tool, kebab, writable};

/// A name in the forms against which patterns are matched.
#[derive(Debug)]
pub struct Name<'a> {
    /// The name as its server, or the configuration, spells it.
    pub(super) text: &'a str,
    canonical: OnceLock<String>,
    kebab: OnceLock<String>,
}

impl<'a> Name<'a> {
    /// Takes a name. It is converted once a rule needs that.
    pub fn new(text: &'a str) -> Name<'a> {
        Name { text, canonical: OnceLock::new(), kebab: OnceLock::new() }
    }

    /// The name in canonical form.
    pub(super) fn canonical(&self) -> &str {
        self.canonical.get_or_init(|| canonical_tool(self.text))
    }

    /// The name in kebab case. Programs, and so rules, may write it without the characters that no name in a program has.
    pub(super) fn kebab(&self) -> &str {
        self.kebab.get_or_init(|| kebab(&writable(self.text)))
    }
}

/// The names of the tools of one server, or of all servers, with those that differ only in spelling.
///
/// If two do, such as `getEmail` and `get_email`, a rule that is exactly one of them matches only that one.
#[derive(Clone, Debug, Default)]
pub struct Names {
    all: Vec<String>,
    /// The names by canonical form, if several share it.
    twins: HashMap<String, Vec<String>>,
}

impl Names {
    /// Collects these names.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Names {
        let all: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut twins: HashMap<String, Vec<String>> = HashMap::new();
        for name in &all {
            twins.entry(canonical_tool(name)).or_default().push(name.clone());
        }
        twins.retain(|_, names| names.len() > 1);
        Names { all, twins }
    }

    pub(super) fn all(&self) -> &[String] {
        &self.all
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(String::as_str)
    }

    /// Returns the other names with the same canonical form.
    pub(super) fn twins<'n>(&'n self, name: &'n Name<'_>) -> impl Iterator<Item = &'n str> {
        // Few servers have names that differ only in spelling.
        let twins = (!self.twins.is_empty()).then(|| self.twins.get(name.canonical()));
        twins.flatten().into_iter().flatten().map(String::as_str).filter(|twin| *twin != name.text)
    }
}

/// A tool, with the other names that a rule could mean.
pub struct ToolName<'a> {
    pub(super) server: Name<'a>,
    pub(super) tool: Name<'a>,
    /// All configured servers; `None` if only this one is considered.
    pub(super) servers: Option<&'a Names>,
    pub(super) tools: Known<'a>,
}

/// The known tools of a server.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// Unknown: there may be others whose names differ only in spelling.
    Nothing,
    /// There are no others whose names differ only in spelling.
    Alone,
    /// The names of all tools of the server.
    Tools(&'a Names),
}

impl<'a> ToolName<'a> {
    /// A tool for which no other tool is assumed to have a similar name.
    pub fn alone(server: &'a str, tool: &'a str) -> ToolName<'a> {
        ToolName { server: Name::new(server), tool: Name::new(tool), servers: None, tools: Known::Alone }
    }

    /// A tool among those of its server, and the server among all servers.
    pub fn among(server: &'a str, tool: &'a str, servers: &'a Names, tools: Known<'a>) -> ToolName<'a> {
        ToolName { server: Name::new(server), tool: Name::new(tool), servers: Some(servers), tools }
    }
}

/// True for a character that a symbol cannot contain.
pub fn is_unreadable(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "()[]{}\"'`~@^;,/\\#".contains(c)
}
