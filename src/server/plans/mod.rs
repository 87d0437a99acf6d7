//! Plans: the tools that a program can call, and how often, which a person approves before it runs.
//!
//! The language computes a plan from the resolved program; here the policy [decides](decided) on its calls, and the program
//! is [kept](keep) as a run that has not begun, with a question for each tool. The questions are entries in the log of the
//! run, as those about calls, under an identity that no call has. So a plan is listed, shown, approved and denied as any
//! run that waits. Once the run begins, the answers are the [terms] to which it is [held], and the consent to its calls.

mod decided;
pub(in crate::server) mod dry_run;
mod held;
mod keep;
pub(in crate::server) mod terms;
