//! Functions as data: a code and the values it captured.

use super::Value;
use super::release::{Debris, release};
use crate::lang::builtin::Builtin;
use crate::lang::host::Tool;
use crate::lang::node::Group;
use std::sync::Arc;

/// A function made by `fn`.
///
/// Functions that refer to each other by name (`letfn`, inner `define`) are one [`Group`] over the same
/// captured values: a sibling is made anew from the two when it is needed, and a function reaches
/// itself the same way, so that no function ever holds itself.
pub struct Closure {
    /// The codes of the group.
    pub group: Arc<Group>,
    /// Which of them this function runs.
    pub index: u32,
    /// What the group captured.
    pub captures: Arc<Captures>,
}

/// The values that a group of functions captured.
#[derive(Default)]
pub struct Captures(Vec<Value>);

impl Captures {
    /// These values.
    pub fn new(values: Vec<Value>) -> Captures {
        Captures(values)
    }

    /// The values, in the order of the group's list of captured names.
    pub fn as_slice(&self) -> &[Value] {
        &self.0
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.0), Debris::Values);
    }
}

/// A builtin whose first arguments are filled in.
pub struct Bound {
    /// The builtin.
    pub builtin: &'static Builtin,
    /// Its first arguments.
    pub arguments: Vec<Value>,
}

impl Bound {
    /// The name that this value stands for, if it is what a declared name holds before it is defined.
    pub fn unbound_name(&self) -> Option<&str> {
        match self.arguments.first() {
            Some(Value::Symbol(name)) if self.builtin.name == "unbound*" => Some(name.as_str()),
            _ => None,
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.arguments), Debris::Values);
    }
}

/// A downstream tool as a function.
pub struct ToolFunction {
    /// What its server says of it.
    pub tool: Arc<Tool>,
    /// The server's name, as every call and its record have it.
    pub server: Arc<str>,
    /// The tool's name, likewise.
    pub name: Arc<str>,
    /// The names of its parameters in the order of [`Tool::parameters`], each with whether it is required.
    pub parameters: Box<[(String, bool)]>,
}

impl ToolFunction {
    /// The function of a tool.
    pub fn new(tool: Arc<Tool>) -> ToolFunction {
        let own = |(name, is_required): (&str, bool)| (name.to_string(), is_required);
        let parameters = tool.parameters().into_iter().map(own).collect();
        ToolFunction { server: tool.server.as_str().into(), name: tool.name.as_str().into(), parameters, tool }
    }

    /// Its qualified name, `server/tool`.
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}
