//! The policy of a server: the rules of `lispbox-policy`, and the consent of a person to the calls that they ask about.
//!
//! [`Consent`] applies a [`Policy`] to the calls of one evaluation: it asks an [`Approver`] a [`Question`] if a person must
//! decide, and consults the [`Grants`] of a store.

mod consent;
mod question;

pub use consent::{Answer, Approver, NoApprover};
pub(in crate::server) use consent::{Consent, Grants, IntendedCall, Ruling, Take, TakenCall, no_approver};
pub(in crate::server) use lispbox_policy::internal::{
    Counts, Known, Listed, Name, NamePattern, Names, RepeatedCalls, Timeouts, ToolName, is_unreadable, unfit,
};
pub use lispbox_policy::{Decision, Effect, Policy, ToolPattern, UnfitRule, Verdict};
pub use question::{LaterCalls, Question};
pub(in crate::server) use question::{PLANNED, is_seen};

#[cfg(test)]
mod tests;
