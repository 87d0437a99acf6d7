//! Functions as data: code and captured values.

use super::Value;
use super::release::{DeferredDrop, release};
use crate::host::Tool;
use crate::native::{Builtin, Role};
use crate::node::Group;
use std::sync::{Arc, OnceLock};

/// A function made by `fn`.
///
/// Functions that refer to each other by name (`letfn`, inner `define`) form one `Group` over one set of captured
/// values. A reference to a sibling, or of a function to itself, creates the closure anew from these two. No closure
/// ever holds itself, so there are no reference cycles.
pub struct Closure {
    /// The group, which holds the code of all its functions.
    pub(crate) group: Arc<Group>,
    /// Index of the code of this function in the group.
    pub(crate) index: u32,
    /// The values that the group captured.
    pub(crate) captures: Arc<Captures>,
}

/// The values that a group of functions captured.
#[derive(Default)]
pub struct Captures(Vec<Value>);

impl Captures {
    /// Wraps captured values.
    pub fn new(values: Vec<Value>) -> Captures {
        Captures(values)
    }

    /// Returns the values, in the order of the group's list of captured names.
    pub fn as_slice(&self) -> &[Value] {
        &self.0
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.0), DeferredDrop::Values);
    }
}

/// A builtin with its first arguments bound.
pub struct Bound {
    /// The builtin.
    pub(crate) builtin: &'static Builtin,
    /// The bound arguments.
    pub(crate) arguments: Vec<Value>,
}

impl Bound {
    /// Returns the kind of function that this is.
    pub(crate) fn role(&self) -> Role {
        self.builtin.role
    }

    /// Returns the name if this is the placeholder value of a declared name that has not been defined yet.
    pub(crate) fn unbound_name(&self) -> Option<&str> {
        match (self.role(), self.arguments.first()) {
            (Role::Unbound, Some(Value::Symbol(name))) => Some(name.as_str()),
            _ => None,
        }
    }

    /// Returns the name of a multimethod; `None` for any other function.
    pub(crate) fn multimethod_name(&self) -> Option<&Value> {
        if self.role() == Role::Multimethod { self.arguments.get(1) } else { None }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.arguments), DeferredDrop::Values);
    }
}

/// The values that the description of a parameter names.
pub(crate) struct NamedValues {
    /// The name of the parameter, as in the schema.
    pub argument: String,
    /// The values, as text.
    pub values: Vec<String>,
    /// True if the description says that these are all.
    pub is_complete: bool,
}

/// A downstream tool as a function.
pub struct ToolFunction {
    /// The tool as its server describes it.
    pub(crate) tool: Arc<Tool>,
    /// The name of the server. Calls and their records share it.
    pub(crate) server: Arc<str>,
    /// The name of the tool, shared in the same way.
    pub(crate) name: Arc<str>,
    /// The names of its parameters in the order of [`Tool::parameters`], each with a flag that is true if it is
    /// required.
    pub(crate) parameters: Box<[(String, bool)]>,
    /// The parameters whose values their descriptions name, once a call has asked for them.
    pub(crate) named: OnceLock<Box<[NamedValues]>>,
    /// `Some` for a function known by name only: caches the resolved function once its server has been queried.
    asked: Option<OnceLock<Arc<ToolFunction>>>,
}

impl ToolFunction {
    /// Creates the function of a tool.
    pub(crate) fn new(tool: Arc<Tool>) -> ToolFunction {
        let own = |(name, is_required): (&str, bool)| (name.to_string(), is_required);
        let parameters = tool.parameters().into_iter().map(own).collect();
        let (server, name) = (tool.server.as_str().into(), tool.name.as_str().into());
        ToolFunction { server, name, parameters, tool, named: OnceLock::new(), asked: None }
    }

    /// Creates the function of a tool known by name only. Its server is queried on the first call.
    pub(crate) fn by_name(server: &str, name: &str) -> ToolFunction {
        let tool = Tool { server: server.to_string(), name: name.to_string(), ..Tool::default() };
        ToolFunction { asked: Some(OnceLock::new()), ..ToolFunction::new(Arc::new(tool)) }
    }

    /// Returns the cache of the resolved function if this function is known by name only.
    pub(crate) fn asked(&self) -> Option<&OnceLock<Arc<ToolFunction>>> {
        self.asked.as_ref()
    }

    /// Returns the qualified name, `server/tool`.
    pub(crate) fn qualified_name(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}
