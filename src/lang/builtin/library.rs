//! The declaration of the library: every table with its aliases and steps, in the order of the reference.

use super::*;
use crate::prelude;
use crate::registry::{Area, Library};
use crate::value::Value;

/// The library of the language.
pub static LIBRARY: Library = Library {
    areas: AREAS,
    namespaces: &[NAMESPACES, time::NAMESPACES],
    constant,
    type_name: types::constant,
    method: dispatch::objects::method,
    dynamic: dynamic::known_dynamic,
    regex: regex::literal,
    prelude: prelude::index,
    compile: prelude::compile,
};

const AREAS: &[Area] = &[
    Area::pure("Making sequences", sequences::making::TABLE)
        .with_aliases(sequences::making::ALIASES)
        .with_steps(&[sequences::making::STEPS]),
    Area::new("Iteration", sequences::iteration::TABLE).with_steps(&[sequences::iteration::STEPS]),
    Area::new("All pages of a tool", pages::TABLE).with_steps(&[pages::STEPS]),
    Area::pure("Ends of sequences", sequences::ends::TABLE).with_aliases(sequences::ends::ALIASES),
    Area::pure("Mapping", sequences::mapping::TABLE)
        .with_aliases(sequences::mapping::ALIASES)
        .with_steps(&[sequences::mapping::STEPS]),
    Area::pure("Filtering", sequences::filtering::TABLE)
        .with_aliases(sequences::filtering::ALIASES)
        .with_steps(&[sequences::filtering::STEPS]),
    Area::pure("Cutting", sequences::cutting::TABLE)
        .with_aliases(sequences::cutting::ALIASES)
        .with_steps(&[sequences::cutting::STEPS]),
    Area::pure("Splitting into parts", sequences::parting::TABLE).with_steps(&[sequences::parting::STEPS]),
    Area::pure("Partial reads", sequences::partly::TABLE).with_steps(&[sequences::partly::STEPS]),
    Area::pure("Joining", sequences::joining::TABLE)
        .with_aliases(sequences::joining::ALIASES)
        .with_steps(&[sequences::joining::STEPS]),
    Area::pure("Reducing", sequences::reducing::TABLE)
        .with_aliases(sequences::reducing::ALIASES)
        .with_steps(&[sequences::reducing::STEPS]),
    Area::pure("Grouping", sequences::grouping::TABLE),
    Area::pure("Ordering", sequences::ordering::TABLE)
        .with_aliases(sequences::ordering::ALIASES)
        .with_steps(&[sequences::ordering::STEPS]),
    Area::pure("Predicates on sequences", sequences::questions::TABLE).with_aliases(sequences::questions::ALIASES),
    Area::new("Side effects", sequences::effects::TABLE).with_aliases(sequences::effects::ALIASES),
    Area::pure("Functions", functions::TABLE).with_aliases(functions::ALIASES).with_steps(&[functions::STEPS]),
    Area::pure("Transducers", transducers::TABLE).with_aliases(transducers::ALIASES).with_steps(&[
        transducers::STEPS,
        transducers::state::STEPS,
        transducers::steps::STEPS,
    ]),
    Area::pure("Maps", maps::TABLE).with_aliases(maps::ALIASES),
    Area::pure("Updating maps", updates::TABLE).with_aliases(updates::ALIASES),
    Area::pure("Sets", sets::TABLE),
    Area::pure("Sorted maps and sets", ordered::TABLE),
    Area::pure("Relations", relations::TABLE),
    Area::pure("Ends and parts of collections", ends::TABLE),
    Area::new("Transients", transients::TABLE),
    Area::pure("Walking through nested data", walking::TABLE).with_aliases(walking::ALIASES),
    Area::new("Atoms and delays", cells::TABLE).with_aliases(cells::ALIASES),
    Area::new("Exceptions", exceptions::TABLE).with_aliases(exceptions::ALIASES),
    Area::pure("Equality and truth", equality::TABLE).with_aliases(equality::ALIASES),
    Area::pure("Predicates on scalars", scalars::TABLE).with_aliases(scalars::ALIASES),
    Area::pure("Predicates on collections and functions", kinds::TABLE).with_aliases(kinds::ALIASES),
    Area::new("Multimethods", dispatch::methods::TABLE)
        .with_steps(&[dispatch::methods::STEPS, dispatch::objects::STEPS]),
    Area::new("Hierarchies", dispatch::hierarchy::TABLE),
    Area::new("Protocols and records", dispatch::protocols::TABLE),
    Area::pure("Calls of methods", dispatch::objects::TABLE),
    Area::pure("Types", types::TABLE).with_aliases(types::ALIASES),
    Area::new("Metadata", metadata::TABLE).with_steps(&[metadata::STEPS]),
    Area::new("Tagged literals", literals::TABLE),
    Area::pure("Keywords and symbols", names::TABLE).with_aliases(names::ALIASES),
    Area::pure("Destructuring", map_patterns::TABLE),
    Area::pure("Arithmetic", numbers::TABLE).with_aliases(numbers::ALIASES),
    Area::pure("Comparing numbers", comparison::TABLE).with_aliases(comparison::ALIASES),
    Area::pure("Conversions", conversions::TABLE).with_aliases(conversions::ALIASES),
    Area::pure("Java's number types", primitives::TABLE).with_aliases(primitives::ALIASES),
    Area::pure("Fractions", fractions::TABLE),
    Area::pure("Exact decimals", decimals::TABLE).with_aliases(decimals::ALIASES),
    Area::pure("Mathematics", math::TABLE).with_aliases(math::ALIASES),
    Area::pure("Further mathematics", reals::TABLE).with_aliases(reals::ALIASES),
    Area::pure("Bits", bits::TABLE).with_aliases(bits::ALIASES),
    Area::pure("64-bit integers: wrapping and exact", wrapping::TABLE).with_aliases(wrapping::ALIASES),
    Area::new("Random numbers and the clock", chance::TABLE).with_aliases(chance::ALIASES),
    Area::new("Parsing and formatting of times", time::parsing::TABLE).with_aliases(time::parsing::ALIASES),
    Area::new("Types of times", time::kinds::TABLE).with_aliases(time::kinds::ALIASES),
    Area::new("Arithmetic on times", time::moving::TABLE).with_aliases(time::moving::ALIASES),
    Area::new("Durations and periods", time::lengths::TABLE).with_aliases(time::lengths::ALIASES),
    Area::new("Predicates on times", time::questions::TABLE).with_aliases(time::questions::ALIASES),
    Area::new("Fields of times", time::fields::TABLE).with_aliases(time::fields::ALIASES),
    Area::new("Java's time classes", time::classes::TABLE).with_aliases(time::classes::ALIASES),
    Area::new("Java's time formatters", time::formatters::TABLE).with_aliases(time::formatters::ALIASES),
    Area::new("Java's time methods", time::methods::TABLE),
    Area::new("Java's date adjusters", time::adjusters::TABLE),
    Area::pure("Strings", strings::TABLE).with_aliases(strings::ALIASES),
    Area::pure("Searching and replacing", search::TABLE).with_aliases(search::ALIASES),
    Area::pure("Characters", characters::TABLE).with_aliases(characters::ALIASES),
    Area::pure("Regular expressions", regex::TABLE).with_aliases(regex::ALIASES),
    Area::new("Matchers", matchers::TABLE),
    Area::pure("Format strings", format::TABLE),
    Area::new("Format directives", directives::TABLE).with_aliases(directives::ALIASES),
    Area::pure("Java's methods", methods::TABLE).with_aliases(methods::ALIASES),
    Area::new("String builders and writers", builders::TABLE).with_aliases(builders::ALIASES),
    Area::new("Printing", printing::TABLE).with_aliases(printing::ALIASES),
    Area::pure("EDN", edn::TABLE).with_aliases(edn::ALIASES),
    Area::new("Reading input", input::TABLE),
    Area::pure("JSON", json::TABLE).with_aliases(json::ALIASES),
    Area::new("CSV", formats::csv::TABLE).with_aliases(formats::csv::ALIASES),
    Area::new("HTML", formats::html::TABLE).with_aliases(formats::html::ALIASES),
    Area::pure("Base64", formats::base64::TABLE).with_aliases(formats::base64::ALIASES),
    Area::pure("URLs", formats::url::TABLE).with_aliases(formats::url::ALIASES),
    Area::pure("Digests", formats::sha256::TABLE).with_aliases(formats::sha256::ALIASES),
    Area::new("The shape of data", describe::TABLE).with_aliases(describe::ALIASES),
    Area::aliases(dialects::ALIASES),
    Area::pure("Other Lisps: lists", dialects::lists::TABLE).with_aliases(dialects::lists::ALIASES),
    Area::new("Other Lisps: association lists", dialects::alists::TABLE).with_aliases(dialects::alists::ALIASES),
    Area::new("Other Lisps: hash tables", dialects::tables::TABLE).with_aliases(dialects::tables::ALIASES),
    Area::new("Other Lisps: values, numbers, strings", dialects::other::TABLE).with_aliases(dialects::other::ALIASES),
    Area::new("The session", session::TABLE),
    Area::new("Parallel calls", parallel::TABLE).with_steps(&[parallel::STEPS]),
    Area::new("Many effects", settling::TABLE).with_steps(&[settling::STEPS]),
    Area::new("Discovery", discovery::TABLE),
    Area::new("Tests", checks::TABLE).with_steps(&[checks::STEPS]),
    Area::new("Namespaces", namespaces::TABLE),
    Area::new("Macros", expansion::TABLE).with_aliases(expansion::ALIASES),
    Area::pure("Internals of the prelude", selectors::TABLE).with_steps(&[selectors::STEPS]),
    Area::new("Vars", vars::TABLE).with_aliases(vars::ALIASES).with_steps(&[vars::STEPS]),
    Area::new("Dynamic variables", dynamic::TABLE),
];

/// Aliases of namespaces, as pairs of alias and namespace.
const NAMESPACES: &[(&str, &str)] = &[
    ("clojure.core", "core"),
    ("clojure.string", "str"),
    ("string", "str"),
    ("clojure.set", "set"),
    ("clojure.walk", "walk"),
    ("clojure.math", "math"),
    ("clojure.edn", "edn"),
    ("clojure.data", "data"),
    ("clojure.zip", "zip"),
    ("clojure.template", "core"),
    ("clojure.core.protocols", "core"),
    ("clojure.test", "core"),
    ("clojure.repl", "core"),
    ("Math", "math"),
    ("java.lang.Math", "math"),
    ("clojure.data.json", "json"),
    ("cheshire.core", "json"),
    ("cheshire", "json"),
    ("JSON", "json"),
    ("clojure.data.csv", "csv"),
    ("charred.api", "json"),
    ("jsonista.core", "json"),
];

/// Returns the value of a constant: `*ns*`, `*in*`, a constant of a Java class or of `math/`; `None` for any other
/// name.
fn constant(name: &str) -> Option<Value> {
    let here = namespaces::constant(name).or_else(|| decimals::constant(name)).or_else(|| input::constant(name));
    let here = here.or_else(|| (name == formats::csv::OUT).then(|| Value::symbol(name)));
    here.or_else(|| strings::form_of_normalization(name))
        .or_else(|| ends::constant(name))
        .or_else(|| math::constant(name))
        .or_else(|| time::constants::constant(name))
}
