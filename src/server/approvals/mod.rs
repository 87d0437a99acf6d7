//! Approvals: the calls on which a person decides.
//!
//! [`Consent`] applies the policy to the calls of one evaluation, in the [`layers`] of each call. It asks an [`Approver`] a
//! [`Question`] if a person must decide, unless a [grant](grants) or the approved plan of the [run](run_grants) covers the
//! call. If no answer is available at once, the run is suspended with its [questions](asked), and the [`answers`] of the
//! client's user are recorded when it is resumed.
//!
//! [`decide`], [`forms`], [`decisions`] and [`shown`] present waiting runs to a person, and record the decisions. The
//! approvals page and the card that clients show use them; they know neither HTTP nor MCP.

pub(in crate::server) mod answers;
pub(in crate::server) mod asked;
mod consent;
pub(in crate::server) mod decide;
pub(in crate::server) mod decisions;
pub(in crate::server) mod forms;
pub(in crate::server) mod grants;
pub(in crate::server) mod layers;
mod question;
pub(in crate::server) mod run_grants;
pub(in crate::server) mod shown;
mod terms;

pub use consent::{Answer, Approver, NoApprover};
pub(in crate::server) use consent::{Consent, Grants, IntendedCall, Ruling, Take, TakenCall, no_approver};
pub use question::{LaterCalls, Question};
pub(in crate::server) use question::{PLANNED, is_seen};

/// The style sheet.
pub(in crate::server) const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests;
