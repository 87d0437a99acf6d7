//! Errors for a wrong number of arguments, which name a related function that takes that many.

use super::Machine;
use crate::error::Error;
use crate::native::{ArityRange, Builtin, call_shape};
use crate::node::Code;
use crate::registry::Function;
use crate::value::text::split_name;

/// The endings by which functions differ from those that they vary: `sort` and `sort-by`.
const VARIANTS: [&str; 8] = ["-by", "-in", "-with", "-key", "-kv", "-to", "-all", "*"];

impl Machine {
    #[cold]
    pub(super) fn builtin_arity(&self, builtin: &Builtin, count: usize) -> Error {
        let error = arity_error(builtin.name, builtin.arguments, builtin.arity, count);
        let is_short = count < builtin.arity.least();
        self.with_relative(error, (builtin.name, builtin.doc), count, is_short)
    }

    #[cold]
    pub(super) fn prelude_arity(&self, function: &Function, count: usize) -> Error {
        let declaration = function.declaration();
        let lists: Vec<&str> = declaration.arguments.iter().map(String::as_str).collect();
        let arity = ArityRange::read(&lists);
        let error = arity_error(function.name, &lists, arity, count);
        self.with_relative(error, (function.name, &declaration.doc), count, count < arity.least())
    }

    /// Adds a suggestion of a function that takes that many arguments: one of the same name in another namespace, a
    /// variant such as `sort-by` for `sort`, or the function that the documentation compares it with. If there are too few
    /// for this function, one was most likely forgotten, and only a simpler variant is meant: `sort` for `sort-by`.
    fn with_relative(&self, error: Error, (name, doc): (&str, &str), count: usize, is_short: bool) -> Error {
        let registry = &self.core.registry;
        let (namespace, base) = split_name(name);
        let beside = |base: &str| namespace.map_or_else(|| base.to_string(), |namespace| format!("{namespace}/{base}"));
        let elsewhere = registry.in_namespaces(base).iter().map(|name| (*name).to_string());
        let in_core = namespace.map(|_| base.to_string());
        let longer = VARIANTS.iter().map(|ending| beside(&format!("{base}{ending}")));
        let shorter = VARIANTS.iter().filter_map(|ending| base.strip_suffix(ending)).map(beside);
        let compared = doc.strip_prefix("Like `").and_then(|rest| rest.split('`').next()).map(str::to_string);
        let others = elsewhere.chain(in_core).chain(longer).chain(compared).filter(|_| !is_short);
        match shorter.chain(others).find_map(|relative| self.call_with(&relative, name, count)) {
            Some(call) => error.suggest(call),
            None => error,
        }
    }

    /// Describes the call of a function with that many arguments, if it takes exactly that many and is not `other`.
    fn call_with(&self, name: &str, other: &str, count: usize) -> Option<String> {
        let registry = &self.core.registry;
        let (own, lists, doc): (&str, Vec<&str>, &str) = match (registry.find(name), registry.find_prelude(name)) {
            (Some(builtin), _) if !builtin.is_internal() => (builtin.name, builtin.arguments.to_vec(), builtin.doc),
            (None, Some(function)) => {
                let declaration = function.declaration();
                (function.name, declaration.arguments.iter().map(String::as_str).collect(), &declaration.doc)
            }
            _ => return None,
        };
        let list = lists.into_iter().find(|list| ArityRange::read(&[list]).takes_only(count))?;
        let summary = doc.lines().next().unwrap_or_default();
        (own != other).then(|| format!("`{}` takes {count}: {summary}", call_shape(own, list)))
    }
}

fn arity_error(name: &str, lists: &[&str], arity: ArityRange, count: usize) -> Error {
    let shapes: Vec<String> = lists.iter().map(|list| format!("`{}`", call_shape(name, list))).collect();
    Error::new(
        "ArityError",
        format!(
            "`{name}` takes {} {}, got {count}: {}",
            arity.describe(),
            arguments_word(&arity.describe()),
            shapes.join(" or ")
        ),
    )
    .about(name)
}

/// The singular or plural form of "argument".
fn arguments_word(count: &str) -> &'static str {
    if count == "1" { "argument" } else { "arguments" }
}

#[cold]
pub(super) fn closure_arity(code: &Code, count: usize) -> Error {
    let name = code.name.as_deref().unwrap_or("fn");
    let count = count.saturating_sub(code.arities.first().map_or(0, |arity| arity.implicit as usize));
    let shapes: Vec<String> =
        code.arities.iter().map(|arity| format!("`{}`", call_shape(name, &arity.parameters))).collect();
    let expected: Vec<String> = code
        .arities
        .iter()
        .map(|arity| {
            let required = arity.required - arity.implicit;
            if arity.variadic { format!("at least {required}") } else { required.to_string() }
        })
        .collect();
    let expected = expected.join(" or ");
    let word = arguments_word(&expected);
    let error =
        Error::new("ArityError", format!("`{name}` takes {expected} {word}, got {count}: {}", shapes.join(" or ")));
    if code.name.is_none() && count == 1 {
        return error.suggest(
            "a function given to `map` or `filter` gets one item, `(fn [x] …)`; `(fn [[k v]] …)` destructures a pair, `(reduce (fn [acc x] …) start xs)` accumulates a value",
        );
    }
    error.about(name)
}
