//! The effects of a tool, as its server declares them.

use std::fmt;

use super::Verdict;
use crate::lang::ToolHints;

/// The effects of a tool by its server's own account, as MCP's tool annotations give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// `readOnlyHint` is true: it changes nothing.
    ReadOnly,
    /// `destructiveHint` is false: it changes something, and nothing is lost by it.
    Writes,
    /// `destructiveHint` is true, or `readOnlyHint` is false without a `destructiveHint`, which MCP takes for true then.
    Destructive,
    /// Its server says neither whether it only reads nor whether it destroys. `idempotentHint`, `openWorldHint` and
    /// `title` do not tell. MCP takes such a tool for destructive; most servers have no annotations at all.
    Unannotated,
    /// Its arguments cannot be checked, because its schema takes more work than is done for one call. Calls of such a
    /// tool have this effect beside the one that the tool declares.
    Unchecked,
}

impl Effect {
    pub(super) const ALL: [Effect; 5] =
        [Effect::ReadOnly, Effect::Writes, Effect::Destructive, Effect::Unannotated, Effect::Unchecked];

    /// The effect that hints say. Where they contradict each other the worse is taken.
    pub fn of(hints: &ToolHints) -> Effect {
        match (hints.read_only, hints.destructive) {
            (_, Some(true)) | (Some(false), None) => Effect::Destructive,
            (Some(true), _) => Effect::ReadOnly,
            (_, Some(false)) => Effect::Writes,
            (None, None) => Effect::Unannotated,
        }
    }

    /// As a configuration writes it.
    pub fn key(self) -> &'static str {
        match self {
            Effect::ReadOnly => "read_only",
            Effect::Writes => "writes",
            Effect::Destructive => "destructive",
            Effect::Unannotated => "unannotated",
            Effect::Unchecked => "unchecked",
        }
    }

    /// The verdict where no rule names the tool and no configuration says otherwise.
    pub(super) fn usual(self) -> Verdict {
        match self {
            Effect::Destructive | Effect::Unchecked => Verdict::Ask,
            Effect::ReadOnly | Effect::Writes | Effect::Unannotated => Verdict::Allow,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Effect::ReadOnly => "only reads, by its own account",
            Effect::Writes => "writes, by its own account",
            Effect::Destructive => "is destructive, by its own account",
            Effect::Unannotated => "does not say what it does",
            Effect::Unchecked => "has arguments that cannot be checked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_hints_has_the_effect_that_the_specification_gives_it() {
        let (yes, no) = (Some(true), Some(false));
        for (read_only, destructive, effect) in [
            (yes, yes, Effect::Destructive),
            (yes, no, Effect::ReadOnly),
            (yes, None, Effect::ReadOnly),
            (no, yes, Effect::Destructive),
            (no, no, Effect::Writes),
            (no, None, Effect::Destructive),
            (None, yes, Effect::Destructive),
            (None, no, Effect::Writes),
            (None, None, Effect::Unannotated),
        ] {
            for idempotent in [yes, no, None] {
                let hints = ToolHints { read_only, destructive, idempotent };
                assert_eq!(Effect::of(&hints), effect, "{hints:?}");
            }
        }
    }
}
