//! Objects that have their own row in a serialized session.

use crate::node::Group;
use crate::value::Value;
use crate::value::function::Captures;
use std::sync::Arc;

/// An object with its own row.
#[derive(Clone)]
pub enum Object {
    /// A value, or a cell with its content.
    Value(Value),
    /// The code of functions.
    Group(Arc<Group>),
    /// The captured values of functions.
    Captures(Arc<Captures>),
}

impl Object {
    /// The address of the object; `None` for a scalar.
    pub fn address(&self) -> Option<usize> {
        match self {
            Object::Value(value) => value.node().map(|(address, _)| address),
            Object::Group(group) => Some(Arc::as_ptr(group).addr()),
            Object::Captures(captures) => Some(Arc::as_ptr(captures).addr()),
        }
    }
}
