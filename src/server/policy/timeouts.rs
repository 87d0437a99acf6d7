//! Time-outs of single tools.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ToolName, ToolPattern};

/// The time-outs that a server's configuration has for its tools.
#[derive(Debug, Default)]
pub(in crate::server) struct Timeouts(Vec<(ToolPattern, Duration)>);

impl Timeouts {
    /// Time-outs by the names or patterns of tools. A text that is no pattern is the name of a tool.
    pub(in crate::server) fn of(timeouts: &BTreeMap<String, Duration>) -> Timeouts {
        let pattern = |text: &String| ToolPattern::new(text).unwrap_or_else(|_| ToolPattern::of_tool(text));
        Timeouts(timeouts.iter().map(|(text, timeout)| (pattern(text), *timeout)).collect())
    }

    /// How long a call of a tool may take, where something says so: a name in full goes before a pattern, a pattern that
    /// certainly fits before one that may mean another tool, and of equals the shortest counts.
    pub(in crate::server) fn get(&self, tool: &ToolName<'_>) -> Option<Duration> {
        let fits = self.0.iter().filter_map(|(pattern, timeout)| pattern.fit(tool).map(|fit| (fit, *timeout)));
        let best = fits.max_by_key(|((fit, is_exact), timeout)| (*fit, *is_exact, std::cmp::Reverse(*timeout)));
        best.map(|(_, timeout)| timeout)
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &ToolPattern> {
        self.0.iter().map(|(pattern, _)| pattern)
    }
}
