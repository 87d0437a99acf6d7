//! The account that pays for reading a value.

use super::ConvertError;
use crate::error::{Outcome, Signal};
use crate::heap::Handle;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::walk::Pace;
use std::sync::Arc;

/// Maximum nesting of a value that is converted.
pub(super) const NESTING: usize = 256;

/// Returns the depth of the parts of a value at that depth.
///
/// # Errors
/// Returns an error if they are nested too deep.
pub(super) fn deeper(depth: usize) -> Result<usize, ConvertError> {
    if depth < NESTING {
        Ok(depth + 1)
    } else {
        Err(ConvertError::new(format!("expected data that nests at most {NESTING} deep")))
    }
}

/// The evaluation that pays for a conversion. Nothing pays for one outside of the evaluation, whose value has no lazy
/// parts and was paid for when it was made.
pub(super) struct Payer<'m>(Option<&'m mut Machine>);

impl<'m> Payer<'m> {
    pub(super) fn of(machine: &'m mut Machine) -> Payer<'m> {
        Payer(Some(machine))
    }

    pub(super) fn none() -> Payer<'m> {
        Payer(None)
    }

    /// Returns whether structs refuse fields that they do not have: the arguments of a tool are read outside of the
    /// evaluation, and nothing that a program gives is dropped.
    pub(super) fn is_strict(&self) -> bool {
        self.0.is_none()
    }

    /// Borrows the account for a part of the value.
    pub(super) fn again(&mut self) -> Payer<'_> {
        Payer(self.0.as_deref_mut())
    }

    #[inline]
    pub(super) fn charge(&mut self, steps: u64) -> Outcome<()> {
        self.0.as_deref_mut().map_or(Ok(()), |machine| machine.charge(steps))
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> Outcome<()> {
        self.0.as_deref_mut().map_or(Ok(()), |machine| machine.reserve(bytes))
    }
}

impl Pace for Payer<'_> {
    type Stop = Signal;

    #[inline]
    fn step(&mut self, steps: u64) -> Outcome<()> {
        self.charge(steps)
    }

    fn force(&mut self, lazy: &Arc<Handle>) -> Outcome<Option<Value>> {
        self.0.as_deref_mut().map_or(Ok(None), |machine| machine.force(lazy))
    }

    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value> {
        self.0.as_deref_mut().and_then(|machine| machine.content(cell))
    }
}
