//! Functions as data: a code and the values it captured.

use super::Value;
use super::release::{Debris, release};
use crate::lang::builtin::Builtin;
use crate::lang::host::Tool;
use crate::lang::node::Group;
use std::sync::{Arc, OnceLock};

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
    /// Of a function that is known by name alone: that of the tool, once its server has been asked.
    asked: Option<OnceLock<Arc<ToolFunction>>>,
}

impl ToolFunction {
    /// The function of a tool.
    pub fn new(tool: Arc<Tool>) -> ToolFunction {
        let own = |(name, is_required): (&str, bool)| (name.to_string(), is_required);
        let parameters = tool.parameters().into_iter().map(own).collect();
        let (server, name) = (tool.server.as_str().into(), tool.name.as_str().into());
        ToolFunction { server, name, parameters, tool, asked: None }
    }

    /// The function of a tool of which only the name is known: its server is asked when it is called.
    pub fn by_name(server: &str, name: &str) -> ToolFunction {
        let tool = Tool { server: server.to_string(), name: name.to_string(), ..Tool::default() };
        ToolFunction { asked: Some(OnceLock::new()), ..ToolFunction::new(Arc::new(tool)) }
    }

    /// Where the function goes that the server was asked for, if only the name of this one is known.
    pub(crate) fn asked(&self) -> Option<&OnceLock<Arc<ToolFunction>>> {
        self.asked.as_ref()
    }

    /// Its qualified name, `server/tool`.
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}
