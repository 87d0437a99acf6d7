//! Timeouts of individual tools.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ToolName, ToolPattern};

/// The timeouts that the configuration of a server sets for its tools.
#[derive(Debug, Default)]
pub struct Timeouts(Vec<(ToolPattern, Duration)>);

impl Timeouts {
    /// Creates timeouts from names or patterns of tools. A text that is not a valid pattern is taken as the name of a
    /// tool.
    pub fn of(timeouts: &BTreeMap<String, Duration>) -> Timeouts {
        let pattern = |text: &String| ToolPattern::new(text).unwrap_or_else(|_| ToolPattern::of_tool(text));
        Timeouts(timeouts.iter().map(|(text, timeout)| (pattern(text), *timeout)).collect())
    }

    /// Returns the timeout of a call of a tool, if one is configured. A certain match takes precedence over one that
    /// may mean another tool, then a full name over a pattern; among equals the shortest timeout applies.
    pub fn get(&self, tool: &ToolName<'_>) -> Option<Duration> {
        let fits = self.0.iter().filter_map(|(pattern, timeout)| pattern.fit(tool).map(|fit| (fit, *timeout)));
        let best = fits.max_by_key(|((fit, is_exact), timeout)| (*fit, *is_exact, std::cmp::Reverse(*timeout)));
        best.map(|(_, timeout)| timeout)
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &ToolPattern> {
        self.0.iter().map(|(pattern, _)| pattern)
    }
}
