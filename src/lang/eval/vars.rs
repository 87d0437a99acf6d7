//! Vars: definitions as values, and what they mean for a while.
//!
//! A var is a name. It is looked up in the session's definitions, else among what the language and the
//! servers name, each time it is used, so it follows redefinitions and can be part of no cycle.
//!
//! `binding` exchanges the value in the table of definitions and puts the old one back, so that reading
//! a definition costs the same inside and outside. What a branch has bound is exchanged back while the
//! branch waits: every branch sees its own bindings and nobody else's.

use super::core::{Global, unbound};
use super::{Core, Machine};
use crate::lang::builtin::entry::Entry;
use crate::lang::builtin::known_dynamic;
use crate::lang::error::{Error, Outcome};
use crate::lang::expand::{SPECIAL_FORMS, macro_names};
use crate::lang::reader;
use crate::lang::resolve::Meaning;
use crate::lang::value::Value;
use crate::lang::value::function::{Bound, Closure};
use crate::lang::value::map::Map;
use crate::lang::value::print::shown_name;
use crate::lang::value::text::{Name, split_name};
use std::sync::Arc;

/// A definition that means something else for a while.
pub struct Binding {
    index: u32,
    /// What it means outside, while the binding holds; what is bound, while its branch waits.
    other: Option<Value>,
}

/// The definitions that a branch has bound, the innermost last.
#[derive(Default)]
pub struct Bindings(Vec<Binding>);

impl Bindings {
    /// Takes the bindings out of the table of definitions: other branches do not see them.
    pub(super) fn suspend(&mut self, core: &mut Core) {
        for binding in self.0.iter_mut().rev() {
            core.globals.swap(binding.index, &mut binding.other);
        }
    }

    /// Puts them back.
    pub(super) fn resume(&mut self, core: &mut Core) {
        for binding in &mut self.0 {
            core.globals.swap(binding.index, &mut binding.other);
        }
    }

    fn outermost(&mut self, index: u32) -> Option<&mut Binding> {
        self.0.iter_mut().find(|binding| binding.index == index)
    }
}

/// What a declared name holds before it is defined.
fn nothing_yet(name: &str) -> Value {
    let builtin = &crate::lang::builtin::vars::UNBOUND;
    Value::Bound(Arc::new(Bound { builtin, arguments: vec![Value::symbol(name)] }))
}

/// True for what a declared name holds before it is defined.
pub(crate) fn is_unbound(value: &Value) -> bool {
    matches!(value, Value::Bound(bound) if bound.unbound_name().is_some())
}

impl Machine {
    /// The name under which a var refers to what a name means; `None` where it means nothing.
    ///
    /// # Errors
    /// What looking for a tool of that name raises.
    pub(crate) fn var_name(&mut self, name: &str) -> Outcome<Option<String>> {
        let plain = session_name(name);
        if self.core.globals.find(plain).is_some() || self.is_shadowed(plain) {
            return Ok(Some(plain.to_string()));
        }
        if let Some((known, _)) = known_dynamic(name) {
            return Ok(Some(known.to_string()));
        }
        if let Some(known) = language_name(name) {
            return Ok(Some(known));
        }
        Ok(match self.find_meaning(name)? {
            Some(Meaning::Global(index)) => Some(self.core.globals.name(index).to_string()),
            Some(Meaning::Builtin(builtin)) => Some(builtin.qualified()),
            Some(Meaning::Prelude(qualified, _)) => Some(qualified),
            Some(Meaning::Tool(tool)) => Some(tool.qualified_name()),
            Some(Meaning::Constant(_) | Meaning::Held(_)) => Some(name.to_string()),
            None => None,
        })
    }

    /// What a var stands for now.
    ///
    /// # Errors
    /// `UnboundVariable`; for the forms of the language, that they are no values.
    pub(crate) fn var_value(&mut self, name: &Name) -> Outcome<Value> {
        self.charge(1)?;
        let name = name.as_str();
        if let Some(index) = self.core.globals.find(name) {
            return Ok(self.core.globals.get(index).value.clone().unwrap_or_default());
        }
        if let Some((_, value)) = known_dynamic(name) {
            return Ok(value);
        }
        if language_name(name).is_some() {
            return Err(super::names::no_value(shown_name(name)).into());
        }
        match self.find_meaning(name)? {
            Some(Meaning::Builtin(builtin)) => Ok(Value::Builtin(builtin)),
            Some(Meaning::Prelude(_, closure)) => Ok(Value::Closure(closure)),
            Some(Meaning::Tool(tool)) => Ok(Value::Tool(tool)),
            Some(Meaning::Constant(value) | Meaning::Held(value)) => Ok(value),
            Some(Meaning::Global(_)) | None => Err(unbound(name).into()),
        }
    }

    /// The place of a definition of the session in the table.
    ///
    /// # Errors
    /// `UnboundVariable` for what the session does not define.
    pub(crate) fn definition(&mut self, name: &str) -> Result<u32, Error> {
        if let Some((known, _)) = known_dynamic(name) {
            return Ok(self.core.globals.index(known));
        }
        self.core.globals.find(name).ok_or_else(|| {
            let shown = shown_name(name);
            Error::new("UnboundVariable", format!("`{shown}` is not defined by the session")).about(shown).suggest(
                format!(
                    "define it first: `(def ^:dynamic {shown} nil)`; the language's own functions keep their meaning"
                ),
            )
        })
    }

    /// Binds definitions while `run` runs.
    ///
    /// # Errors
    /// What `run` raises.
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

    /// What this branch has bound: each definition once, with what it means now.
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

    /// True if this branch has bound the definition.
    pub(crate) fn is_bound_here(&self, index: u32) -> bool {
        self.bindings.0.iter().any(|binding| binding.index == index)
    }

    /// Changes what a definition is bound to here.
    pub(crate) fn rebind(&mut self, index: u32, value: Value) {
        self.core.globals.exchange(index, Some(value));
    }

    /// What a definition means outside of all bindings.
    pub(crate) fn root(&mut self, index: u32) -> Option<Value> {
        match self.bindings.outermost(index) {
            Some(binding) => binding.other.clone(),
            None => self.core.globals.get(index).value.clone(),
        }
    }

    /// Exchanges what a definition means outside of all bindings for a while; whoever does it puts the old
    /// value back.
    pub(crate) fn exchange_root(&mut self, index: u32, value: Option<Value>) -> Option<Value> {
        match self.bindings.outermost(index) {
            Some(binding) => std::mem::replace(&mut binding.other, value),
            None => self.core.globals.exchange(index, value),
        }
    }

    /// Defines: what is bound here stays bound until its end, the definition changes underneath.
    pub(crate) fn set_definition(&mut self, index: u32, mut global: Global) {
        if let Some(binding) = self.bindings.outermost(index) {
            let root = std::mem::replace(&mut binding.other, global.value.take());
            drop(root);
            global.value = self.core.globals.get(index).value.clone();
        }
        self.core.globals.set(index, global);
    }

    /// Takes a definition of the session away.
    pub(crate) fn undefine(&mut self, index: u32) {
        let name = self.core.globals.name(index).to_string();
        self.set_definition(index, Global::default());
        self.core.coming.remove(&name);
    }

    /// Makes a name known that has no value yet; one that has keeps it.
    pub(crate) fn declared_value(&mut self, index: u32) -> Value {
        match self.root(index) {
            Some(value) => value,
            None => nothing_yet(self.core.globals.name(index)),
        }
    }

    /// The metadata of a var: what its definition says, or what is known of a function of the language.
    ///
    /// # Errors
    /// Limits.
    pub(crate) fn var_metadata(&mut self, name: &Name) -> Outcome<Option<Arc<Map>>> {
        self.charge(1)?;
        let name = name.as_str();
        if let Some(index) = self.core.globals.find(name) {
            let global = self.core.globals.get(index).clone();
            return self.definition_metadata(name, &global).map(Some);
        }
        let registry = self.core.registry.clone();
        let Some(entry) = registry.entry(shown_name(name)) else { return Ok(None) };
        self.entry_metadata(name, &entry).map(Some)
    }

    fn entry_metadata(&mut self, name: &str, entry: &Entry<'_>) -> Outcome<Arc<Map>> {
        let mut map = Map::default();
        let lists = parameter_lists(self, &entry.arguments)?;
        map.insert(Value::keyword("arglists"), lists);
        map.insert(Value::keyword("doc"), Value::string(entry.doc));
        if language_name(name).is_some() {
            map.insert(Value::keyword("macro"), Value::Bool(true));
        }
        let (namespace, base) = split_name(name);
        map.insert(Value::keyword("name"), Value::symbol(base));
        let namespace = self.core.registry.library(namespace.unwrap_or("core"));
        map.insert(Value::keyword("ns"), Value::symbol(namespace));
        Ok(Arc::new(map))
    }

    /// The metadata of a definition: its own, else its doc string, parameters and name.
    pub(super) fn definition_metadata(&mut self, name: &str, global: &Global) -> Outcome<Arc<Map>> {
        if let Some(metadata) = &global.metadata {
            return Ok(metadata.clone());
        }
        let mut map = Map::default();
        self.describe_definition(&mut map, name, global)?;
        Ok(Arc::new(map))
    }

    /// Gives a definition the metadata that a program wrote, and what goes without saying.
    ///
    /// # Errors
    /// Limits.
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
    /// `UnboundVariable` for what the session does not define.
    pub(crate) fn replace_metadata(&mut self, name: &str, metadata: Arc<Map>) -> Outcome<()> {
        let index = self.definition(name)?;
        let mut global = self.core.globals.get(index).clone();
        set_metadata(&mut global, metadata);
        self.core.globals.set(index, global);
        Ok(())
    }

    /// Puts doc string, parameters, kind and name of a definition into its metadata, where the program has
    /// not said otherwise.
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

/// True for a function that `defn` or `defmacro` made.
fn is_defined_function(closure: &Closure) -> bool {
    let form = &closure.group.lambdas[closure.index as usize].form;
    form.as_list().and_then(|items| items.get(1)).is_some_and(crate::lang::resolve::is_display_name)
}

/// What the language itself reads from metadata goes where it looks for it.
fn set_metadata(global: &mut Global, metadata: Arc<Map>) {
    global.doc = metadata.get(&Value::keyword("doc")).and_then(Value::as_str).map(Arc::from);
    global.is_macro = metadata.get(&Value::keyword("macro")).is_some_and(Value::is_truthy);
    global.metadata = Some(metadata);
}

/// A name without what says that it is the session's.
pub(super) fn session_name(name: &str) -> &str {
    name.strip_prefix("session/").or_else(|| name.strip_prefix("user/")).unwrap_or(name)
}

/// The qualified name of a form or macro of the language.
fn language_name(name: &str) -> Option<String> {
    let base = name.strip_prefix("core/").or_else(|| name.strip_prefix("clojure.core/")).unwrap_or(name);
    let is_form = SPECIAL_FORMS.contains(&base) || macro_names().any(|known| known == base);
    is_form.then(|| format!("core/{base}"))
}

/// `([x] [x & more])` as data.
fn parameter_lists(machine: &mut Machine, lists: &[&str]) -> Outcome<Value> {
    let mut out = Vec::with_capacity(lists.len());
    for list in lists {
        machine.charge(1 + list.len() as u64 / 16)?;
        if let Ok([form]) = reader::read(list).as_deref() {
            out.push(super::value_of(machine, form)?);
        }
    }
    Ok(Value::list(out))
}
