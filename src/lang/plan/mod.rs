//! Plans: the tools that a program can call, computed from its resolved code without running it.
//!
//! [`prepare`] expands and resolves the forms of a program in a copy of the session. Only definitions of functions and
//! constants take effect there, since macros and later forms need them. [`count`] then walks the code in the order of
//! evaluation and counts the calls: calls of known functions are followed into their bodies with what is known of the
//! arguments ([`Known`](known::Known)), and builtins are taken at their declared [`Conduct`](crate::native::Conduct).
//!
//! A function or tool that leaves this flow, into a collection, a cell, or a builtin without a bound, *escapes*: from
//! then on any code may call it at any time, so [`reach`] adds everything in its code without a bound. A call of a value
//! that is not known needs no bound of its own, because each function that the value may be has escaped. This leaves
//! names that are looked up at run time, which are reported as unknown.

mod builtins;
mod calls;
mod count;
mod definitions;
mod known;
mod prepare;
mod reach;

pub(crate) use calls::Input;
pub use calls::{Plan, PlannedCall, UnknownCall};

use crate::error::Outcome;
use crate::form::Form;
use crate::machine::Machine;
use crate::span::Source;
use std::sync::Arc;

/// Computes the plan of a program in a session that may be changed; `inputs` are the names that the run binds.
///
/// # Errors
/// Returns what expansion and resolution raise.
pub(crate) fn plan(machine: &mut Machine, forms: Vec<Form>, source: &Arc<Source>, inputs: &[Input]) -> Outcome<Plan> {
    let before = prepare::Before::of(machine, inputs);
    let prepared = prepare::prepare(machine, forms, source, &before)?;
    count::count(machine, &prepared, before)
}
