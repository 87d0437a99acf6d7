//! Macros of the session: converts the forms of a call to data, applies the macro's function, and converts the result
//! back to forms.

use super::Machine;
use super::names::{form_of, value_of};
use crate::absent::libraries;
use crate::error::{Error, Outcome};
use crate::expand::{Expander, Macros, SPECIAL_FORMS, SPECIAL_SYMBOLS, macro_names};
use crate::form::Form;
use crate::registry::Registry;
use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::text::split_name;
use std::sync::Arc;

impl Macros for Machine {
    fn charge(&mut self, steps: u64) -> Outcome<()> {
        self.check_stack()?;
        Machine::charge(self, steps)
    }

    fn is_macro(&self, name: &str) -> bool {
        self.core.globals.find(name).is_some_and(|index| self.core.globals.get(index).is_macro)
    }

    fn is_defined(&self, name: &str) -> bool {
        self.core.globals.find(name).is_some()
    }

    fn call_macro(&mut self, name: &str, form: &Form, locals: &[String]) -> Outcome<Form> {
        let function = self.core.globals.find(name).and_then(|index| self.core.globals.get(index).value.clone());
        let Some(function) = function else {
            return Err(Error::new("UnboundVariable", format!("there is no macro `{name}`")).into());
        };
        self.charge(locals.len() as u64)?;
        let mut arguments = vec![value_of(self, form)?, environment(locals)];
        for argument in form.as_list().unwrap_or_default().iter().skip(1) {
            arguments.push(value_of(self, argument)?);
        }
        let expanded = self.call(&function, &mut arguments)?;
        form_of(self, &expanded, form.span)
    }

    fn library(&mut self, name: &str) -> Result<String, Error> {
        if let Some(namespace) = self.core.registry.namespace(name) {
            return Ok(namespace);
        }
        let servers = self.core.host.servers();
        if servers.iter().any(|server| server.name == name) {
            return Ok(name.to_string());
        }
        // `(ns app)` has made it a name of the session's namespace.
        if self.is_own_namespace(name) {
            return Ok("user".to_string());
        }
        Err(libraries::missing(name))
    }

    fn alias(&mut self, alias: &str, library: &str) {
        self.add_alias(alias, library);
    }

    fn has(&mut self, name: &str) -> Outcome<bool> {
        Ok(self.find_meaning(name)?.is_some())
    }

    fn is_dynamic(&self, name: &str) -> bool {
        self.core.registry.dynamic(name).is_some()
    }

    fn base_name(&self, name: &str) -> Option<String> {
        let name = self.unaliased(name).unwrap_or_else(|| name.to_string());
        let own = name.strip_prefix("user/").or_else(|| name.strip_prefix("session/"));
        own.or_else(|| self.core.registry.in_core(&name)).map(str::to_string)
    }

    fn in_template(&mut self, name: &str) -> String {
        if SPECIAL_SYMBOLS.contains(&name) || name.starts_with('%') || self.core.registry.type_name(name).is_some() {
            return name.to_string();
        }
        if let (Some(alias), base) = split_name(name) {
            return self.full_namespace(alias).map_or_else(|| name.to_string(), |full| format!("{full}/{base}"));
        }
        // Methods, constructors and classes.
        if name.contains('.') || self.core.registry.constant(name).is_some() {
            return name.to_string();
        }
        let is_own = self.core.globals.find(name).is_some() || self.is_shadowed(name);
        let registry = &self.core.registry;
        let is_core = || {
            registry.find(name).is_some()
                || registry.dynamic(name).is_some()
                || macro_names().any(|known| known == name)
                || SPECIAL_FORMS.contains(&name)
                || matches!(name, "unquote" | "unquote-splicing")
                || (!self.core.coming.contains(name) && registry.find_prelude(name).is_some())
        };
        format!("{}/{name}", if !is_own && is_core() { "clojure.core" } else { "user" })
    }

    fn names_in(&self, namespace: &str) -> Vec<String> {
        let registry = &self.core.registry;
        let means_nothing = |base: &&str| registry.find(base).is_none() && self.core.globals.find(base).is_none();
        registry.names_in(namespace).into_iter().filter(means_nothing).map(str::to_string).collect()
    }

    fn means_the_same(&self, name: &str, other: &str) -> bool {
        let registry = &self.core.registry;
        match (registry.find(name), registry.find(other)) {
            (Some(one), Some(two)) => std::ptr::eq(one, two) && self.core.globals.find(name).is_none(),
            _ => false,
        }
    }

    fn class(&mut self, name: &str) -> Result<(), Error> {
        let base = name.rsplit('.').next().unwrap_or(name);
        // A class within another one, as `Normalizer$Form`.
        let base = base.split('$').next().unwrap_or(base);
        let is_known = self.core.registry.type_name(name).is_some()
            || name.starts_with("java.time.")
            || name.starts_with("java.lang.")
            || self
                .core
                .registry
                .names()
                .any(|known| known.strip_prefix(base).is_some_and(|rest| rest.starts_with('/') || rest == "."));
        if is_known { Ok(()) } else { Err(libraries::missing_class(name)) }
    }
}

/// The value of `&env` in a macro: the names bound locally at the call, nil if there are none.
fn environment(locals: &[String]) -> Value {
    if locals.is_empty() {
        return Value::Nil;
    }
    let mut map = Map::default();
    for name in locals {
        map.insert(Value::symbol(name), Value::symbol(name));
    }
    Value::Map(Arc::new(map))
}

/// The extent of `macroexpand` and related functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// Expands one macro call.
    Once,
    /// Expands until the head is no macro.
    Head,
    /// Expands all subforms as well.
    All,
}

impl Machine {
    /// Expands data as code.
    ///
    /// # Errors
    /// Returns `SyntaxError` if the data is not code, what macros raise, or a halt if a limit is exceeded.
    pub(crate) fn expand_data(&mut self, value: &Value, expansion: Expansion) -> Outcome<Value> {
        // Data has no source location: errors are reported at the place of the expansion request.
        let source = Arc::new(Source::hidden("data"));
        let mut form = form_of(self, value, Span::default())?;
        let mut expander = Expander::new(self, &source);
        if expansion == Expansion::All {
            expander.expand(&mut form)?;
        }
        while expansion != Expansion::All
            && let Some(expanded) = expander.step(&form)?
        {
            form = expanded;
            if expansion == Expansion::Once {
                break;
            }
        }
        value_of(self, &form)
    }
}

impl Registry {
    /// Returns the names in a namespace of the language, without the namespace, sorted.
    pub fn names_in(&self, namespace: &str) -> Vec<&str> {
        let is_plain = |name: &&str| *name == "/" || !name.contains(['/', '.']);
        let mut names: Vec<&str> = if namespace == "core" {
            let macros = macro_names().map(|name| -> &str { name });
            self.names().filter(is_plain).chain(macros).collect()
        } else {
            let base = split_name;
            self.names().map(base).filter(|(space, _)| *space == Some(namespace)).map(|(_, name)| name).collect()
        };
        names.sort_unstable();
        names.dedup();
        names
    }
}
