//! What has a row of its own in the text of a session.

use crate::lang::node::Group;
use crate::lang::value::Value;
use crate::lang::value::function::Captures;
use std::sync::Arc;

/// What a row is about.
#[derive(Clone)]
pub enum Object {
    /// A value, or a cell with its content.
    Value(Value),
    /// The code of functions.
    Group(Arc<Group>),
    /// What functions have captured.
    Captures(Arc<Captures>),
}

impl Object {
    /// Where it is in memory; a scalar is nowhere.
    pub fn address(&self) -> Option<usize> {
        match self {
            Object::Value(value) => value.node().map(|(address, _)| address),
            Object::Group(group) => Some(Arc::as_ptr(group).addr()),
            Object::Captures(captures) => Some(Arc::as_ptr(captures).addr()),
        }
    }
}
