//! The account that pays for reading a value.

use super::ConvertError;
use crate::error::{Outcome, Signal};
use crate::heap::Handle;
use crate::machine::Machine;
use crate::meter;
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

/// The account that pays for a conversion.
pub(super) struct Payer<'m>(Account<'m>);

enum Account<'m> {
    /// The running evaluation.
    Evaluation(&'m mut Machine),
    /// The room that an evaluation has left, for a value without lazy parts that is read outside of it.
    Room(Room),
}

/// A bound on the bytes that this thread allocates.
#[derive(Clone, Copy)]
struct Room {
    before: i64,
    most: u64,
}

impl Room {
    fn has(self, more: u64) -> Outcome<()> {
        let taken = u64::try_from(meter::balance().saturating_sub(self.before)).unwrap_or(0);
        if taken.saturating_add(more) <= self.most { Ok(()) } else { Err(too_large()) }
    }
}

/// The signal that a value takes more than the room for it.
#[cold]
fn too_large() -> Signal {
    crate::error::Error::new("ToolArgumentError", "the value takes more memory than is left").into()
}

impl<'m> Payer<'m> {
    pub(super) fn of(machine: &'m mut Machine) -> Payer<'m> {
        Payer(Account::Evaluation(machine))
    }

    /// Lets a conversion take that many bytes of this thread.
    pub(super) fn within(most: u64) -> Payer<'m> {
        Payer(Account::Room(Room { before: meter::balance(), most }))
    }

    /// Returns whether structs refuse fields that they do not have: the arguments of a tool are read outside of the
    /// evaluation, and nothing that a program gives is dropped.
    pub(super) fn is_strict(&self) -> bool {
        matches!(self.0, Account::Room(_))
    }

    /// Borrows the account for a part of the value.
    pub(super) fn again(&mut self) -> Payer<'_> {
        Payer(match &mut self.0 {
            Account::Evaluation(machine) => Account::Evaluation(machine),
            Account::Room(room) => Account::Room(*room),
        })
    }

    #[inline]
    pub(super) fn charge(&mut self, steps: u64) -> Outcome<()> {
        match &mut self.0 {
            Account::Evaluation(machine) => machine.charge(steps),
            Account::Room(room) => room.has(0),
        }
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> Outcome<()> {
        match &mut self.0 {
            Account::Evaluation(machine) => machine.reserve(bytes),
            Account::Room(room) => room.has(bytes),
        }
    }
}

impl Pace for Payer<'_> {
    type Stop = Signal;

    #[inline]
    fn step(&mut self, steps: u64) -> Outcome<()> {
        self.charge(steps)
    }

    fn force(&mut self, lazy: &Arc<Handle>) -> Outcome<Option<Value>> {
        match &mut self.0 {
            Account::Evaluation(machine) => machine.force(lazy),
            Account::Room(_) => Ok(None),
        }
    }

    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value> {
        match &mut self.0 {
            Account::Evaluation(machine) => machine.content(cell),
            Account::Room(_) => None,
        }
    }
}
