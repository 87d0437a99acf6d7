//! The effects of a tool, as declared by its server.

use std::fmt;

use lispbox_lang::ToolHints;

use super::Verdict;

/// The declared effect of a tool, from MCP tool annotations.
///
/// ```
/// use lispbox::policy::Effect;
///
/// assert_eq!(Effect::Destructive.to_string(), "is destructive, by its own account");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// `readOnlyHint` is true: it changes nothing.
    ReadOnly,
    /// `destructiveHint` is false: it changes something, but only additively.
    Writes,
    /// `destructiveHint` is true, or `readOnlyHint` is false without a `destructiveHint`, which then defaults to true
    /// in MCP.
    Destructive,
    /// The server declares neither `readOnlyHint` nor `destructiveHint`. `idempotentHint`, `openWorldHint` and `title`
    /// are not evidence. MCP assumes that such a tool is destructive; most servers have no annotations at all.
    Unannotated,
    /// The arguments cannot be checked, because validation against the schema exceeds the work limit of one call. Calls
    /// of such a tool have this effect in addition to the declared one.
    Unchecked,
}

impl Effect {
    pub(super) const ALL: [Effect; 5] =
        [Effect::ReadOnly, Effect::Writes, Effect::Destructive, Effect::Unannotated, Effect::Unchecked];

    /// Returns the effect that the hints declare. If they contradict each other, the worse one applies.
    ///
    /// ```
    /// use lispbox::lang::ToolHints;
    /// use lispbox::policy::Effect;
    ///
    /// assert_eq!(Effect::of(&ToolHints::default()), Effect::Unannotated);
    /// ```
    pub fn of(hints: &ToolHints) -> Effect {
        match (hints.read_only, hints.destructive) {
            (_, Some(true)) | (Some(false), None) => Effect::Destructive,
            (Some(true), _) => Effect::ReadOnly,
            (_, Some(false)) => Effect::Writes,
            (None, None) => Effect::Unannotated,
        }
    }

    /// Returns true if a second call with the same arguments does no harm: the tool changes nothing, or is idempotent.
    #[doc(hidden)]
    pub fn is_harmless(hints: &ToolHints) -> bool {
        Effect::of(hints) == Effect::ReadOnly || hints.idempotent == Some(true)
    }

    /// Returns the key in configurations.
    ///
    /// ```
    /// use lispbox::policy::Effect;
    ///
    /// assert_eq!(Effect::ReadOnly.key(), "read_only");
    /// ```
    pub fn key(self) -> &'static str {
        match self {
            Effect::ReadOnly => "read_only",
            Effect::Writes => "writes",
            Effect::Destructive => "destructive",
            Effect::Unannotated => "unannotated",
            Effect::Unchecked => "unchecked",
        }
    }

    /// Returns the default verdict, if no rule names the tool and no configuration sets another.
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
