//! Compiles functions of the prelude from forms to code, resolves their names, and charges no account for it.

use crate::error::{Error, Outcome};
use crate::eval::{Constants, internal_error, value_of};
use crate::expand::{Expander, Macros};
use crate::form::{Form, FormKind};
use crate::meter;
use crate::registry::{Function, Registry};
use crate::resolve::{Meaning, Names, Resolver, is_display_name};
use crate::value::Value;
use crate::value::function::{Captures, Closure};
use crate::value::pattern::Pattern;
use std::sync::Arc;

/// Compiles a function, outside of the account of the evaluation that first uses it. Returns `None` only if the text of
/// the prelude is wrong, which a test detects.
pub fn compile(registry: &Registry, function: &Function) -> Option<Arc<Closure>> {
    compiled(registry, function).ok()
}

fn compiled(registry: &Registry, function: &Function) -> Outcome<Arc<Closure>> {
    meter::outside(|| {
        let source = &registry.prelude().files[function.file].source;
        let mut declaration = function.declaration().form.clone();
        Expander::new(&mut NoMacros, source).expand(&mut declaration)?;
        // `(def name doc? (fn* name …))`: take only the function.
        let mut code = declaration.as_list().and_then(<[Form]>::last).ok_or_else(internal_error)?.clone();
        // No definition of the session exists through which the function could call itself, so it refers to itself by
        // name.
        if let FormKind::List(items) = &mut code.kind
            && items.get(1).is_some_and(is_display_name)
        {
            items[1] = Form::symbol(function.name, items[1].span);
        }
        let mut names = Before { registry, place: function.place, defines: false };
        let functions = [(Some(function.name.to_string()), Arc::new(code))];
        let group = Resolver::new(&mut names, source).function(&functions, &[])?;
        if names.defines {
            return Err(internal_error().into());
        }
        Ok(Arc::new(Closure { group, index: 0, captures: Arc::new(Captures::default()) }))
    })
}

/// The macro environment of the prelude: it has no macros of its own, and no session's definitions hide the language's.
struct NoMacros;

impl Macros for NoMacros {
    fn charge(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }

    fn is_macro(&self, _: &str) -> bool {
        false
    }

    fn is_defined(&self, _: &str) -> bool {
        false
    }

    fn call_macro(&mut self, _: &str, _: &Form, _: &[String]) -> Outcome<Form> {
        Err(internal_error().into())
    }

    fn library(&mut self, _: &str) -> Result<String, Error> {
        Err(internal_error())
    }

    fn alias(&mut self, _: &str, _: &str) {}

    fn has(&mut self, _: &str) -> Outcome<bool> {
        Ok(false)
    }

    fn is_dynamic(&self, _: &str) -> bool {
        false
    }

    fn base_name(&self, name: &str) -> Option<String> {
        name.strip_prefix("core/").map(str::to_string)
    }

    fn in_template(&mut self, name: &str) -> String {
        name.to_string()
    }

    fn names_in(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn means_the_same(&self, name: &str, other: &str) -> bool {
        name == other
    }

    fn class(&mut self, _: &str) -> Result<(), Error> {
        Err(internal_error())
    }
}

/// The names visible to a function of the prelude: builtins, and the functions that precede it.
struct Before<'a> {
    registry: &'a Registry,
    place: usize,
    /// True if the function contains a definition, which is not allowed: it would belong to a session.
    defines: bool,
}

impl Names for Before<'_> {
    fn charge(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }

    fn takes_shortcuts(&self) -> bool {
        self.registry.takes_shortcuts()
    }

    fn meaning(&mut self, name: &str, _: &dyn Fn() -> Vec<String>) -> Outcome<Meaning> {
        if let Some(builtin) = self.registry.find_any(name) {
            return Ok(Meaning::Builtin(builtin));
        }
        let base = name.strip_prefix("core/").unwrap_or(name);
        if let Some(function) = self.registry.prelude().find(base).filter(|function| function.place < self.place) {
            let closure = self.registry.compiled(function).ok_or_else(internal_error)?;
            return Ok(Meaning::Prelude(function.qualified(), closure));
        }
        match self.registry.constant(name) {
            Some(constant) => Ok(Meaning::Constant(constant)),
            None => Err(Error::new("UnboundVariable", format!("the prelude has no `{name}` before its use")).into()),
        }
    }

    fn var(&mut self, _: &str, _: &dyn Fn() -> Vec<String>) -> Outcome<String> {
        Err(internal_error().into())
    }

    fn shadow(&mut self, _: &str) {}

    fn define(&mut self, _: &str) -> u32 {
        self.defines = true;
        0
    }

    fn name_of(&self, _: u32) -> String {
        String::new()
    }

    fn constant(&mut self, form: &Form) -> Outcome<Value> {
        value_of(self, form)
    }
}

/// The language's own code is charged to no account.
impl Constants for Before<'_> {
    fn pay(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }

    fn regex(&mut self, pattern: &str) -> Outcome<Arc<Pattern>> {
        Ok(crate::builtin::regex::compile_own(pattern)?)
    }
}
