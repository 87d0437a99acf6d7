//! Decisions on the tool calls of lispbox programs: which are made, which are denied, and about which a person is asked.
//!
//! `lispbox` re-exports this crate as `lispbox::policy`. Its MCP server is built on it. It needs no async runtime.
//!
//! # Layers
//! A room (a module of this crate) may use rooms of its own layer and of the layers below it; `tests/layers.rs` enforces
//! this. From the bottom:
//! 1. `fields`: JSON objects of configurations. `origins`: which texts the tools, the user and the programs of a session
//!    have given.
//! 2. `rules`: policies and their parts, from patterns of names to guards.
//! 3. `judgement`: the decision on one call, from all rules.
//! 4. `grants`: what a person has allowed beforehand. `rehearsal`: the calls that were not made.
//!
//! Items of `internal`, and those that are hidden from the documentation, are for the server, and may change in any version.

mod fields;
mod grants;
mod judgement;
mod origins;
mod rehearsal;
mod rules;

pub use grants::{Grant, GrantError, GrantTerms, LONGEST_GRANT};
pub use rehearsal::{CommittedCall, Rehearsal};
pub use rules::{Decision, Effect, Policy, PolicyError, ToolPattern, UnfitRule, Verdict};

/// Items that the server of the package `lispbox` shares. Not part of the public API: they may change in any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::fields::{Problem, Wrong, cut, given, kind, known_keys, scalar};
    pub use crate::grants::Grants;
    pub use crate::judgement::{Approval, JudgedCall, Judgement};
    pub use crate::origins::{Origins, shown};
    pub use crate::rehearsal::ChangeSet;
    pub use crate::rules::{
        Caller, Counts, Known, Listed, Name, NamePattern, Names, RepeatedCalls, Timeouts, ToolName, is_unreadable,
        name_of, unfit,
    };
}
