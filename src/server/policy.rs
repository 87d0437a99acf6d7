//! The policy of a server: the rules of `lispbox-policy`. `approvals` applies them to calls.

pub(in crate::server) use lispbox_policy::internal::{
    Counts, Known, Listed, Name, NamePattern, Names, RepeatedCalls, Timeouts, ToolName, is_unreadable, unfit,
};
pub use lispbox_policy::{Decision, Effect, Policy, ToolPattern, UnfitRule, Verdict};
