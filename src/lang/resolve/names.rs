//! The meanings of names outside of functions, and the services by which resolution finds them.

use crate::error::Outcome;
use crate::form::Form;
use crate::native::{Builtin, Native};
use crate::registry::Registry;
use crate::value::Value;
use crate::value::function::{Closure, ToolFunction};
use std::sync::Arc;

/// The meaning of a name outside all functions.
pub enum Meaning {
    /// A definition of the session, by index.
    Global(u32),
    /// A builtin.
    Builtin(&'static Builtin),
    /// A function that the embedder added.
    Native(Arc<Native>),
    /// A function of the prelude, with its qualified name.
    Prelude(String, Arc<Closure>),
    /// A tool.
    Tool(Arc<ToolFunction>),
    /// A constant of the language, embedded in the code. It must not reference a cell, because the cycle collector
    /// does not traverse code.
    Constant(Value),
    /// A value of the session under a name whose meaning changes later, such as `*1`. Functions capture the value.
    Held(Value),
}

impl Meaning {
    /// Returns the meaning of the name of a builtin, which may be the description of an embedder's function.
    pub(crate) fn of(registry: &Registry, builtin: &'static Builtin) -> Meaning {
        registry.native(builtin).map_or(Meaning::Builtin(builtin), Meaning::Native)
    }
}

/// The services of the session and the host that resolution needs.
pub trait Names {
    /// Charges fuel for resolution steps.
    fn charge(&mut self, steps: u64) -> Outcome<()>;

    /// Returns an error if the stack does not suffice for more levels of code.
    fn check_stack(&self) -> Outcome<()> {
        Ok(())
    }

    /// Returns the meaning of a name. For an unknown name, returns an error with a suggestion. `scope` returns the
    /// names bound locally.
    fn meaning(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<Meaning>;

    /// Returns the name under which a var refers to the meaning of `name`, or an error for an unknown name.
    fn var(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<String>;

    /// Returns the index of a definition; adds the name if it is new.
    fn define(&mut self, name: &str) -> u32;

    /// Returns the name of the definition at an index.
    fn name_of(&self, definition: u32) -> String;

    /// Shadows all other meanings of the name with the session's definition from here on.
    fn shadow(&mut self, name: &str);

    /// Returns whether calls of common functions may be compiled to inline fast paths of equal effect.
    fn takes_shortcuts(&self) -> bool;

    /// Converts a quoted form or a literal to a value.
    fn constant(&mut self, form: &Form) -> Outcome<Value>;
}

/// Encodes that a name, as written, refers to a definition of the session. `session/fork` is also the name of a
/// builtin, so the prefix is doubled if the name was written with a prefix.
pub(super) fn qualified(written: &str, definition: &str) -> String {
    if written == definition { format!("session/{definition}") } else { format!("session/session/{definition}") }
}

/// Decodes the result of `qualified`: returns the definition of the session that a written name refers to; `None` if
/// it refers to something else.
pub fn definition<'m>(written: &str, noted: &'m str) -> Option<&'m str> {
    let base = noted.strip_prefix("session/")?;
    base.strip_prefix("session/").or_else(|| (base == written).then_some(base))
}

/// Encodes that a name, as written, refers to a builtin or a tool. `fork` is a short name of the builtin `session/fork`,
/// which would read as a definition of the session, so it gets a leading slash.
pub(super) fn elsewhere(written: &str, meaning: String) -> String {
    if definition(written, &meaning).is_some() { format!("/{meaning}") } else { meaning }
}

/// Decodes the result of `elsewhere`: returns the name of the builtin or the tool.
pub fn name_elsewhere(noted: &str) -> &str {
    noted.strip_prefix('/').unwrap_or(noted)
}
