//! Access to the content of transients.

use super::Machine;
use crate::error::Error;
use crate::heap::{CellKind, Handle, State};
use crate::value::Value;
use std::sync::Arc;

/// The state of a transient that can no longer be used.
pub(crate) const SPENT: State = State::Waiting(Value::Nil);

/// Returns the cell of a transient.
pub(crate) fn cell_of(value: &Value) -> Result<&Arc<Handle>, Error> {
    match value {
        Value::Cell(handle) if handle.cell_kind() == CellKind::Transient => Ok(handle),
        other => Err(Error::expected("a transient", other).suggest(
            "`(transient coll)` makes one; a collection itself takes `conj`, `assoc`, `dissoc`, `disj` and `pop`",
        )),
    }
}

#[cold]
pub(crate) fn spent() -> Error {
    Error::new("IllegalState", "this transient can no longer be used: `persistent!` or an error ended it")
        .suggest("use what `persistent!` returned")
}

/// Returns the content of a transient for reading, or `None` for any other value.
///
/// # Errors
/// Returns `IllegalState` after `persistent!` or after a failed change.
pub(crate) fn content(machine: &Machine, value: &Value) -> Result<Option<Value>, Error> {
    let Ok(cell) = cell_of(value) else { return Ok(None) };
    match machine.core.heap.state(cell)? {
        State::Done(content) => Ok(Some(content.clone())),
        _ => Err(spent()),
    }
}

/// Replaces a transient by its content; leaves any other value unchanged.
///
/// # Errors
/// See [`content`].
pub(crate) fn open(machine: &Machine, value: &mut Value) -> Result<(), Error> {
    if matches!(value, Value::Cell(_))
        && let Some(content) = content(machine, value)?
    {
        *value = content;
    }
    Ok(())
}
