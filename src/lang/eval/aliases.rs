//! Namespace aliases: created by `require`, resolved in qualified names, `::alias/name` and `#::alias{…}`.

use super::{Global, Machine};
use crate::error::Error;
use crate::form::{Form, FormKind};
use crate::span::Span;
use crate::value::Value;
use crate::value::text::split_name;

/// The prefix of an alias in the table of definitions. Aliases live there so that they are undone, kept and
/// serialized like definitions. No program can define a qualified name.
const ALIAS: &str = "alias/";

impl Machine {
    /// Adds an alias of a library.
    pub(super) fn add_alias(&mut self, alias: &str, library: &str) {
        let key = format!("{ALIAS}{alias}");
        let library = if self.is_own_namespace(library) { "user" } else { library };
        let is_known = self.core.globals.find_note(&key).is_some();
        let says_so_itself = alias == library
            || self.core.registry.namespace_meant(alias) == self.core.registry.namespace_meant(library);
        if says_so_itself && !is_known {
            return;
        }
        let index = self.core.globals.index(&key);
        let value = Some(Value::symbol(library));
        self.core.globals.set(index, Global { value, ..Global::default() });
    }

    /// Removes an alias.
    pub(crate) fn remove_alias(&mut self, alias: &str) {
        if let Some(index) = self.core.globals.find_note(&format!("{ALIAS}{alias}")) {
            self.core.globals.set(index, Global::default());
        }
    }

    /// Iterates over the session's aliases, each with the name of its library.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.core.globals.kept().filter_map(|global| Some((global.name.strip_prefix(ALIAS)?, global.value)))
    }

    /// Returns the name of the library that an alias refers to.
    fn aliased(&self, alias: &str) -> Option<&str> {
        let index = self.core.globals.find_note(&format!("{ALIAS}{alias}"))?;
        self.core.globals.get(index).value.as_ref()?.as_symbol().map(|library| library.as_str())
    }

    /// True for a name that `ns` has given to the session's namespace.
    pub(crate) fn is_own_namespace(&self, name: &str) -> bool {
        self.aliased(name) == Some("user")
    }

    /// Returns a qualified name with the alias in its namespace (`(require '[clojure.string :as s])`) expanded.
    pub(super) fn unaliased(&self, name: &str) -> Option<String> {
        let (namespace, base) = split_name(name);
        Some(format!("{}/{base}", self.core.registry.namespace_meant(self.aliased(namespace?)?)))
    }

    /// Returns the full name of the namespace that an alias refers to, including the language's own short names.
    pub(super) fn full_namespace(&self, name: &str) -> Option<String> {
        if let Some(library) = self.aliased(name) {
            return Some(library.to_string());
        }
        let is_server = || self.core.host.servers().iter().any(|server| server.name == name);
        match self.core.registry.namespace(name) {
            Some(meant) => (meant == name).then(|| self.core.registry.full_name(name).to_string()),
            None => is_server().then(|| name.to_string()),
        }
    }

    /// Expands the aliases in keywords `::alias/name` and in the keys of maps `#::alias{…}`.
    ///
    /// # Errors
    /// Returns the error and location of the first unknown alias.
    pub(crate) fn resolve_aliases(&self, form: &mut Form) -> Result<(), Box<(Error, Span)>> {
        if let Some(metadata) = &mut form.metadata {
            self.resolve_aliases(metadata)?;
        }
        match &mut form.kind {
            FormKind::Keyword(name) | FormKind::Symbol(name) => {
                let Some((Some(alias), base)) = name.strip_prefix(':').map(split_name) else { return Ok(()) };
                match self.full_namespace(alias) {
                    Some(namespace) => *name = format!("{namespace}/{base}"),
                    None => return Err(Box::new((unknown_alias(alias), form.span))),
                }
            }
            FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
                items.iter_mut().try_for_each(|item| self.resolve_aliases(item))?;
            }
            FormKind::Tagged(_, inner) => self.resolve_aliases(inner)?,
            _ => {}
        }
        Ok(())
    }
}

#[cold]
fn unknown_alias(alias: &str) -> Error {
    Error::new("InvalidKeyword", format!("`::{alias}/…`: there is no alias `{alias}`")).suggest(format!(
        "define it in an earlier form, `(require '[clojure.string :as {alias}])`, or write `:{alias}/…` with one colon"
    ))
}
