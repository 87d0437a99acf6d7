//! Names without a namespace that functions of namespaces have: `join` for `str/join`.
//!
//! A name that nothing else has is the function of the only namespace that has it, as a bare name is the tool of the only
//! server that has it ([`MEANT`] decides where several have it and one is meant). Every other meaning takes precedence,
//! except that a tool and a function of the same bare name make the name ambiguous: a tool may have effects, so none is
//! called by accident.

use super::Machine;
use crate::error::suggest::did_you_mean;
use crate::error::{Error, Outcome};
use crate::expand::{SPECIAL_FORMS, macro_names};
use crate::registry::Registry;
use crate::resolve::Meaning;
use crate::value::text::split_name;

/// Functions that are meant by a name that several namespaces have: relations are joined far less often than texts.
const MEANT: &[(&str, &[&str])] = &[("join", &["str/join"])];

impl Machine {
    /// Resolves a name outside all functions; returns `None` if it has no meaning.
    ///
    /// # Errors
    /// Returns `AmbiguousName` if several functions, or a function and a tool, have this name, and what the search for a
    /// tool of that name raises.
    pub(super) fn meaning_of(&mut self, name: &str) -> Outcome<Option<Meaning>> {
        let found = self.find_meaning(name)?;
        if !matches!(found, None | Some(Meaning::Tool(_))) {
            return Ok(found);
        }
        let registry = self.core.registry.clone();
        let functions = functions_named(&registry, name);
        match (found, functions) {
            (found, []) => Ok(found),
            // An alias of another name may mean something else to the one who writes it: `html/strip` for `strip`.
            (None, [alias]) if !registry.is_own_name(alias) => Ok(None),
            (Some(Meaning::Tool(tool)), functions) => {
                let all = functions.iter().map(|function| (*function).to_string()).chain([tool.qualified_name()]);
                Err(ambiguous(name, &all.collect::<Vec<_>>()).into())
            }
            (_, [only]) => match registry.find(only) {
                Some(builtin) => Ok(Some(Meaning::of(&registry, builtin))),
                None => registry.find_prelude(only).map(|function| self.prelude_meaning(function)).transpose(),
            },
            (_, several) => {
                Err(ambiguous(name, &several.iter().map(|name| (*name).to_string()).collect::<Vec<_>>()).into())
            }
        }
    }

    /// Returns the qualified names of the functions that a name without a meaning of its own may refer to. It is empty
    /// for a name that the session or the language has, with or without a namespace.
    ///
    /// # Errors
    /// Returns what the search for a tool of that name raises.
    pub(crate) fn functions_meant(&mut self, name: &str) -> Outcome<Vec<&'static str>> {
        let registry = self.core.registry.clone();
        let functions = functions_named(&registry, name);
        let is_alias = matches!(functions, [alias] if !registry.is_own_name(alias));
        let is_meant = !functions.is_empty() && !is_alias && self.find_meaning(name)?.is_none();
        Ok(if is_meant { functions.to_vec() } else { Vec::new() })
    }

    /// Returns the qualified name of the function of a namespace if the name means one.
    pub(super) fn qualified_if_bare<'n>(&self, name: &'n str) -> &'n str {
        let registry = &self.core.registry;
        if registry.find(name).is_some() || registry.find_prelude(name).is_some() {
            return name;
        }
        match functions_named(registry, name) {
            [first, ..] => first,
            [] => name,
        }
    }
}

/// Returns the qualified names of the functions of namespaces with this name, unless it is that of a form.
fn functions_named<'r>(registry: &'r Registry, name: &str) -> &'r [&'static str] {
    if SPECIAL_FORMS.contains(&name) || macro_names().any(|known| known == name) {
        return &[];
    }
    match MEANT.iter().find(|(known, _)| *known == name) {
        Some((_, meant)) => meant,
        None => registry.in_namespaces(name),
    }
}

#[cold]
fn ambiguous(name: &str, candidates: &[String]) -> Error {
    let listed: Vec<String> = candidates.iter().map(|name| format!("`{name}`")).collect();
    Error::new("AmbiguousName", format!("`{name}` may mean {}", listed.join(" or ")))
        .about(name)
        .suggest(format!("write the qualified name, such as `{}`", candidates.first().map_or(name, String::as_str)))
}

/// Suggests functions of the same name elsewhere for a qualified name that does not exist: `math/sqrt` for `str/sqrt`.
/// `meant` is the name with the alias of a `require` expanded.
pub(super) fn elsewhere(registry: &Registry, name: &str, meant: Option<&str>) -> Option<String> {
    let (Some(namespace), base) = split_name(meant.unwrap_or(name)) else {
        // A name without a namespace comes here if it is only an alias.
        return functions_named(registry, name).first().map(|alias| did_you_mean(alias));
    };
    let is_known = registry.namespace(namespace).is_some();
    let in_core = registry.find(base).is_some() || registry.find_prelude(base).is_some();
    let in_core = in_core.then_some(base).filter(|_| is_known);
    match (in_core, functions_named(registry, base)) {
        (Some(base), _) => Some(did_you_mean(base)),
        (None, [only]) => Some(did_you_mean(only)),
        (None, several @ [_, _, ..]) if is_known => Some(did_you_mean(&several.join(" or "))),
        _ => None,
    }
}
