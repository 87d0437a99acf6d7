//! Vars: first-class references to definitions, and dynamic bindings.
//!
//! A var is a name. Each use looks it up among the session's definitions, then among the names of the language and of
//! the servers. It therefore follows redefinitions and cannot be part of a cycle.
//!
//! `binding` exchanges the value in the table of definitions and restores the old one afterwards, so reading a
//! definition costs the same inside and outside. While a branch waits, its bindings are swapped out of the table:
//! every branch sees only its own bindings.

use super::{Global, Machine};
use crate::error::{Error, Outcome};
use crate::expand::{SPECIAL_FORMS, macro_names};
use crate::machine::{Binding, unbound};
use crate::native::{Builtin, Role};
use crate::reader;
use crate::resolve::Meaning;
use crate::value::Value;
use crate::value::function::{Bound, Closure};
use crate::value::map::Map;
use crate::value::print::shown_name;
use crate::value::text::Name;
use std::sync::Arc;

/// The value of a declared name before its definition; its first argument is the name.
pub(crate) static UNBOUND: Builtin = Builtin::new(
    "unbound*",
    &["[name & args]"],
    "What a declared name holds before it is defined.",
    &[],
    |_, arguments| {
        let name = arguments[0].to_string();
        Err(Error::new("UnboundVariable", format!("`{name}` is declared, but has no value yet"))
            .about(&name)
            .suggest(format!("define it before it is used: `(defn {name} […] …)` or `(def {name} …)`"))
            .into())
    },
)
.with_role(Role::Unbound);

/// The placeholder value of a name that is declared but not defined.
fn nothing_yet(name: &str) -> Value {
    let builtin = &UNBOUND;
    Value::Bound(Arc::new(Bound { builtin, arguments: vec![Value::symbol(name)] }))
}

/// True for the placeholder value of a name that is declared but not defined.
pub(crate) fn is_unbound(value: &Value) -> bool {
    matches!(value, Value::Bound(bound) if bound.unbound_name().is_some())
}

impl Machine {
    /// Returns the name under which a var refers to the meaning of `name`; `None` if it has no meaning.
    ///
    /// # Errors
    /// Returns what the search for a tool of that name raises.
    pub(crate) fn var_name(&mut self, name: &str) -> Outcome<Option<String>> {
        let plain = session_name(name);
        if self.core.globals.find(plain).is_some() || self.is_shadowed(plain) {
            return Ok(Some(plain.to_string()));
        }
        if let Some((known, _)) = self.core.registry.dynamic(name) {
            return Ok(Some(known.to_string()));
        }
        if let Some(known) = language_name(name) {
            return Ok(Some(known));
        }
        Ok(match self.meaning_of(name)? {
            Some(Meaning::Global(index)) => Some(self.core.globals.name(index).to_string()),
            Some(Meaning::Builtin(builtin)) => Some(builtin.qualified()),
            Some(Meaning::Native(native)) => Some(native.about.qualified()),
            Some(Meaning::Prelude(qualified, _)) => Some(qualified),
            Some(Meaning::Tool(tool)) => Some(tool.qualified_name()),
            Some(Meaning::Constant(_) | Meaning::Held(_)) => Some(name.to_string()),
            None => None,
        })
    }

    /// Returns the current value of a var.
    ///
    /// # Errors
    /// Returns `UnboundVariable` if the name has no value, or an error if it names a special form or macro.
    pub(crate) fn var_value(&mut self, name: &Name) -> Outcome<Value> {
        self.charge(1)?;
        let name = name.as_str();
        if let Some(index) = self.core.globals.find(name) {
            return Ok(self.core.globals.get(index).value.clone().unwrap_or_default());
        }
        if let Some((_, value)) = self.core.registry.dynamic(name) {
            return Ok(value);
        }
        if language_name(name).is_some() {
            return Err(super::names::no_value(shown_name(name)).into());
        }
        match self.meaning_of(name)? {
            Some(Meaning::Builtin(builtin)) => Ok(Value::Builtin(builtin)),
            Some(Meaning::Native(native)) => Ok(Value::Native(native)),
            Some(Meaning::Prelude(_, closure)) => Ok(Value::Closure(closure)),
            Some(Meaning::Tool(tool)) => Ok(Value::Tool(tool)),
            Some(Meaning::Constant(value) | Meaning::Held(value)) => Ok(value),
            Some(Meaning::Global(_)) | None => Err(unbound(name).into()),
        }
    }

    /// Returns the index of a definition of the session.
    ///
    /// # Errors
    /// Returns `UnboundVariable` if the session does not define the name.
    pub(crate) fn definition(&mut self, name: &str) -> Result<u32, Error> {
        if let Some((known, _)) = self.core.registry.dynamic(name) {
            return Ok(self.core.globals.index(known));
        }
        self.core.globals.find(name).ok_or_else(|| {
            let shown = shown_name(name);
            if let Some(advice) = crate::absent::advice("flush").filter(|_| name == "*out*") {
                return Error::new("NotAvailable", "`*out*` cannot be bound here").about(name).suggest(advice);
            }
            Error::new("UnboundVariable", format!("`{shown}` is not defined by the session")).about(shown).suggest(
                format!(
                    "define it first: `(def ^:dynamic {shown} nil)`; the language's own functions keep their meaning"
                ),
            )
        })
    }

    /// Calls `run` with definitions bound dynamically.
    ///
    /// # Errors
    /// Returns what `run` raises.
    pub(crate) fn with_bindings(
        &mut self,
        pairs: Vec<(u32, Value)>,
        run: impl FnOnce(&mut Machine) -> Outcome<Value>,
    ) -> Outcome<Value> {
        let outside = self.bindings.0.len();
        for (index, value) in pairs {
            self.bind(index, value);
        }
        let result = run(self);
        while self.bindings.0.len() > outside
            && let Some(Binding { index, other }) = self.bindings.0.pop()
        {
            self.core.globals.exchange(index, other);
        }
        result
    }

    pub(super) fn bind(&mut self, index: u32, value: Value) {
        let other = self.core.globals.exchange(index, Some(value));
        self.bindings.0.push(Binding { index, other });
    }

    /// Returns the bindings of this branch: each bound definition once, with its current value.
    pub(crate) fn bound_now(&self) -> Vec<(u32, Value)> {
        let mut out: Vec<(u32, Value)> = Vec::new();
        for Binding { index, .. } in &self.bindings.0 {
            if !out.iter().any(|(known, _)| known == index)
                && let Some(value) = &self.core.globals.get(*index).value
            {
                out.push((*index, value.clone()));
            }
        }
        out
    }

    /// Returns whether this branch has bound the definition.
    pub(crate) fn is_bound_here(&self, index: u32) -> bool {
        self.bindings.0.iter().any(|binding| binding.index == index)
    }

    /// Sets the value of a definition that this branch has bound.
    pub(crate) fn rebind(&mut self, index: u32, value: Value) {
        self.core.globals.exchange(index, Some(value));
    }

    /// Returns the root value of a definition, ignoring all bindings of this branch.
    pub(crate) fn root(&mut self, index: u32) -> Option<Value> {
        match self.bindings.outermost(index) {
            Some(binding) => binding.other.clone(),
            None => self.core.globals.get(index).value.clone(),
        }
    }

    /// Replaces the root value of a definition temporarily and returns the old one. The caller restores it.
    pub(crate) fn exchange_root(&mut self, index: u32, value: Option<Value>) -> Option<Value> {
        match self.bindings.outermost(index) {
            Some(binding) => std::mem::replace(&mut binding.other, value),
            None => self.core.globals.exchange(index, value),
        }
    }

    /// Sets a definition. If this branch has bound it, the binding stays in effect and only the root value changes.
    pub(crate) fn set_definition(&mut self, index: u32, mut global: Global) {
        if let Some(binding) = self.bindings.outermost(index) {
            let root = std::mem::replace(&mut binding.other, global.value.take());
            drop(root);
            global.value = self.core.globals.get(index).value.clone();
        }
        self.core.globals.set(index, global);
    }

    /// Removes a definition of the session.
    pub(crate) fn undefine(&mut self, index: u32) {
        let name = self.core.globals.name(index).to_string();
        self.set_definition(index, Global::default());
        self.core.coming.remove(&name);
    }

    /// Returns the value for `(def name)` and `(declare name)`: the root value if the name has one, else the
    /// placeholder.
    pub(crate) fn declared_value(&mut self, index: u32) -> Value {
        match self.root(index) {
            Some(value) => value,
            None => nothing_yet(self.core.globals.name(index)),
        }
    }

    /// Returns the metadata of a definition: the explicit metadata, else its doc string, parameters and name.
    pub(crate) fn definition_metadata(&mut self, name: &str, global: &Global) -> Outcome<Arc<Map>> {
        if let Some(metadata) = &global.metadata {
            return Ok(metadata.clone());
        }
        let mut map = Map::default();
        self.describe_definition(&mut map, name, global)?;
        Ok(Arc::new(map))
    }

    /// Sets the metadata that a program wrote for a definition, completed by the implied entries.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub(crate) fn add_metadata(&mut self, name: &str, global: &mut Global, metadata: Arc<Map>) -> Outcome<()> {
        let mut map = metadata;
        let own = Arc::make_mut(&mut map);
        self.describe_definition(own, name, global)?;
        set_metadata(global, map);
        Ok(())
    }

    /// Replaces the metadata of a definition.
    ///
    /// # Errors
    /// Returns `UnboundVariable` if the session does not define the name.
    pub(crate) fn replace_metadata(&mut self, name: &str, metadata: Arc<Map>) -> Outcome<()> {
        let index = self.definition(name)?;
        let mut global = self.core.globals.get(index).clone();
        set_metadata(&mut global, metadata);
        self.core.globals.set(index, global);
        Ok(())
    }

    /// Adds the name and kind of a definition to its metadata, and its doc string and parameters unless the program
    /// has given them.
    pub(super) fn describe_definition(&mut self, map: &mut Map, name: &str, global: &Global) -> Outcome<()> {
        let missing = |map: &Map, key: &str| map.get(&Value::keyword(key)).is_none();
        if let Some(Value::Closure(closure)) = &global.value
            && is_defined_function(closure)
            && missing(map, "arglists")
        {
            let arities = &closure.group.lambdas[closure.index as usize].arities;
            let lists: Vec<&str> = arities.iter().map(|arity| arity.parameters.as_str()).collect();
            let lists = parameter_lists(self, &lists)?;
            map.insert(Value::keyword("arglists"), lists);
        }
        if let Some(doc) = &global.doc
            && missing(map, "doc")
        {
            self.reserve(doc.len() as u64)?;
            map.insert(Value::keyword("doc"), Value::string(doc));
        }
        if global.is_macro {
            map.insert(Value::keyword("macro"), Value::Bool(true));
        }
        map.insert(Value::keyword("name"), Value::symbol(name));
        Ok(())
    }
}

/// True for a function that `defn` or `defmacro` created.
fn is_defined_function(closure: &Closure) -> bool {
    let form = &closure.group.lambdas[closure.index as usize].form;
    form.as_list().and_then(|items| items.get(1)).is_some_and(crate::resolve::is_display_name)
}

/// Sets the metadata and updates the fields derived from it: the doc string and the macro flag.
fn set_metadata(global: &mut Global, metadata: Arc<Map>) {
    global.doc = metadata.get(&Value::keyword("doc")).and_then(Value::as_str).map(Arc::from);
    global.is_macro = metadata.get(&Value::keyword("macro")).is_some_and(Value::is_truthy);
    global.metadata = Some(metadata);
}

/// Strips the prefix `session/` or `user/` from a name.
pub(super) fn session_name(name: &str) -> &str {
    name.strip_prefix("session/").or_else(|| name.strip_prefix("user/")).unwrap_or(name)
}

/// The qualified name of a special form or macro of the language.
pub(crate) fn language_name(name: &str) -> Option<String> {
    let base = name.strip_prefix("core/").or_else(|| name.strip_prefix("clojure.core/")).unwrap_or(name);
    let is_form = SPECIAL_FORMS.contains(&base) || macro_names().any(|known| known == base);
    is_form.then(|| format!("core/{base}"))
}

/// Parameter lists, such as `([x] [x & more])`, as data.
pub(crate) fn parameter_lists(machine: &mut Machine, lists: &[&str]) -> Outcome<Value> {
    let mut out = Vec::with_capacity(lists.len());
    for list in lists {
        machine.charge(1 + list.len() as u64 / 16)?;
        if let Ok([form]) = reader::read(list).as_deref() {
            out.push(super::value_of(machine, form)?);
        }
    }
    Ok(Value::list(out))
}
