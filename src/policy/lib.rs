//! Decisions on the tool calls of lispbox programs: which are made, which are denied, and about which a person is asked.
//!
//! `lispbox` re-exports this crate as `lispbox::policy`. Its MCP server is built on it; a program that embeds the language
//! puts a [`Monitor`] around the tools of each session. It needs no async runtime.
//!
//! - A [`Policy`] has the rules: patterns of tool names, what becomes of declared effects, limits on the number of calls, and
//!   guards, which are conditions on arguments and on where their values come from. It is immutable, shared by all sessions,
//!   and read from the same text as that of the server.
//! - A [`Monitor`] applies it to the calls of one session. It records where values come from, holds the [`Grant`]s of a
//!   person, and is kept together with the session.
//! - A [`Rehearsal`] collects the calls that would change something; a person decides on them, and they are made once.
//!
//! ```
//! # #[global_allocator]
//! # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
//! use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
//! use lispbox::policy::{Monitor, Policy};
//! use std::sync::Arc;
//!
//! let policy = Arc::new(Policy::read(r#"{"allow": ["mail/count"], "ask": ["mail/*"]}"#).unwrap());
//! let mut tools = Tools::new();
//! tools.tool("mail/count", |_: NoArguments, _: &Call| Ok(3));
//! tools.tool("mail/archive", |_: NoArguments, _: &Call| Ok("done"));
//!
//! let (mut session, monitor) = (Engine::builder().build().unwrap().session(), Monitor::new(&policy));
//! let world = World::new(tools).layer(&monitor);
//! assert_eq!(session.run("(mail/count)").eval::<u64>(&world).unwrap().done(), Some(3));
//! let outcome = session.run("(mail/archive)").eval::<String>(&world).unwrap();
//! let Outcome::Suspended(run) = outcome else { panic!("a person is asked") };
//! assert_eq!(run.questions().next().unwrap().reason, "`policy.ask` has `mail/*`");
//! ```
//!
//! # Layers
//! A room (a module of this crate) may use rooms of its own layer and of the layers below it; `tests/layers.rs` enforces
//! this. From the bottom:
//! 1. `fields`: JSON objects of configurations. `origins`: which texts the tools, the user and the programs of a session
//!    have given.
//! 2. `rules`: policies and their parts, from patterns of names to guards.
//! 3. `judgement`: the decision on one call, from all rules.
//! 4. `grants`: what a person has allowed beforehand. `rehearsal`: the calls that were not made.
//! 5. `monitor`: all of it as a layer of the calls of a session.
//!
//! Items of `internal`, and those that are hidden from the documentation, are for the server, and may change in any version.

mod fields;
mod grants;
mod judgement;
mod monitor;
mod origins;
mod rehearsal;
mod rules;

pub use grants::{Grant, GrantError, GrantTerms, LONGEST_GRANT};
pub use monitor::{Monitor, MonitorError};
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
