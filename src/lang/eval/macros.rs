//! Macros of the session: forms become data, a function makes other data of it, that becomes forms.

use super::names::{ALIAS, form_of, value_of};
use super::{Global, Machine};
use crate::lang::builtin::absent::libraries;
use crate::lang::error::{Error, Outcome};
use crate::lang::expand::{Expander, Macros};
use crate::lang::form::Form;
use crate::lang::span::{Source, Span};
use crate::lang::value::Value;
use crate::lang::value::map::Map;
use std::sync::Arc;

impl Macros for Machine {
    fn charge(&mut self, steps: u64) -> Outcome<()> {
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
        let mut arguments = vec![value_of(form)?, environment(locals)];
        for argument in form.as_list().unwrap_or_default().iter().skip(1) {
            arguments.push(value_of(argument)?);
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
        Err(libraries::missing(name))
    }

    fn alias(&mut self, alias: &str, namespace: &str) {
        let key = format!("{ALIAS}{alias}");
        let is_known = self.core.globals.find_note(&key).is_some();
        let says_so_itself = alias == namespace || self.core.registry.namespace(alias).as_deref() == Some(namespace);
        if says_so_itself && !is_known {
            return;
        }
        let index = self.core.globals.index(&key);
        let value = Some(Value::symbol(namespace));
        self.core.globals.set(index, Global { value, ..Global::default() });
    }

    fn is_dynamic(&self, name: &str) -> bool {
        crate::lang::builtin::known_dynamic(name).is_some()
    }

    fn base_name(&self, name: &str) -> Option<String> {
        let name = self.unaliased(name).unwrap_or_else(|| name.to_string());
        let own = name.strip_prefix("user/").or_else(|| name.strip_prefix("session/"));
        own.or_else(|| self.core.registry.in_core(&name)).map(str::to_string)
    }

    fn names_in(&self, namespace: &str) -> Vec<String> {
        let registry = &self.core.registry;
        let prefix = format!("{namespace}/");
        let mut names: Vec<String> = registry
            .names()
            .filter_map(|name| name.strip_prefix(&prefix))
            .filter(|base| registry.find(base).is_none() && self.core.globals.find(base).is_none())
            .map(str::to_string)
            .collect();
        names.sort_unstable();
        names
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
        let is_known = crate::lang::builtin::types::constant(name).is_some()
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

/// What a macro sees as `&env`: the names that are bound around the call, nil where there are none.
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

/// How far `macroexpand` and its kin go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// One macro.
    Once,
    /// Until no macro is at the head.
    Head,
    /// All the way down.
    All,
}

impl Machine {
    /// Expands data as if it were code.
    ///
    /// # Errors
    /// `SyntaxError` for what is no code; what macros raise; limits.
    pub(crate) fn expand_data(&mut self, value: &Value, expansion: Expansion) -> Outcome<Value> {
        // Data has no place: errors are shown where the program asked for the expansion.
        let source = Arc::new(Source::hidden("data"));
        let mut form = form_of(self, value, Span::default())?;
        let mut expander = Expander::new(self, &source);
        if expansion == Expansion::All {
            form = expander.expand(&form)?;
        }
        while expansion != Expansion::All
            && let Some(expanded) = expander.step(&form)?
        {
            form = expanded;
            if expansion == Expansion::Once {
                break;
            }
        }
        value_of(&form)
    }
}
