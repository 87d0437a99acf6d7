//! Namespaces as values: symbols that name them. All definitions of a session are in the namespace `user`.

use super::arguments::take;
use crate::absent::libraries;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::text::split_name;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "ns-name",
        &["[ns]"],
        "The name of a namespace; namespaces are represented by names.",
        &[("(ns-name *ns*)", "user")],
        the,
    ),
    Builtin::new(
        "the-ns",
        &["[ns]"],
        "The namespace of that name; an error if none exists.",
        &[("(the-ns 'clojure.string)", "clojure.string")],
        the,
    ),
    Builtin::new(
        "find-ns",
        &["[name]"],
        "The namespace of that name; nil if none exists.",
        &[("(find-ns 'clojure.set)", "clojure.set"), ("(find-ns 'no.such)", "nil")],
        |machine, arguments| {
            let name = name(&arguments[0])?;
            Ok(if exists(machine, &name) { take(arguments, 0) } else { Value::Nil })
        },
    ),
    Builtin::new(
        "all-ns",
        &["[]"],
        "All namespaces; `(dir name)` lists one.",
        &[("(contains? (set (all-ns)) 'str)", "true")],
        |machine, _| {
            let registry = machine.core.registry.clone();
            let names = registry.namespaces();
            machine.reserve_values(names.len() as u64)?;
            Ok(Value::list(names.into_iter().chain([SESSION]).map(Value::symbol).collect()))
        },
    ),
    Builtin::new(
        "create-ns",
        &["[name]"],
        "Returns the name: a session has a single namespace.",
        &[("(create-ns 'app)", "app")],
        |_, arguments| name(&arguments[0]).map(|_| take(arguments, 0)),
    ),
    Builtin::new(
        "ns-publics",
        &["[ns]"],
        "The public definitions of a namespace: a map from name to var.",
        &[
            ("((get (ns-publics 'clojure.string) 'join) \"-\" [1 2])", "\"1-2\""),
            ("(def a 1) (def ^:private b 2) (ns-publics 'user)", "{a #'a}"),
        ],
        |machine, arguments| names_of(machine, &arguments[0], Kind::Public),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "ns-interns",
        &["[ns]"],
        "The definitions of a namespace: a map from name to var.",
        &[("(def ^:private b 2) (ns-interns *ns*)", "{b #'b}")],
        |machine, arguments| names_of(machine, &arguments[0], Kind::Own),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "ns-refers",
        &["[ns]"],
        "The core names in a namespace: a map from name to var.",
        &[("(get (ns-refers 'user) 'inc)", "#'inc")],
        |machine, arguments| names_of(machine, &arguments[0], Kind::Referred),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "ns-map",
        &["[ns]"],
        "All names visible in a namespace: a map from name to var.",
        &[("(def a 1) (map (ns-map *ns*) ['a 'inc])", "(#'a #'inc)")],
        |machine, arguments| names_of(machine, &arguments[0], Kind::Known),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "ns-unmap",
        &["[ns name]"],
        "Removes a definition of the session.",
        &[("(def a 1) (ns-unmap *ns* 'a) (resolve 'a)", "nil")],
        ns_unmap,
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "ns-aliases",
        &["[ns]"],
        "The aliases of namespaces: a map from alias to name.",
        &[("(require '[clojure.set :as sets]) (get (ns-aliases *ns*) 'sets)", "clojure.set")],
        ns_aliases,
    ),
    Builtin::new(
        "ns-unalias",
        &["[ns alias]"],
        "Removes an alias defined in the session.",
        &[("(alias 'sets 'clojure.set) (ns-unalias *ns* 'sets) (get (ns-aliases *ns*) 'sets)", "nil")],
        |machine, arguments| {
            the(machine, &mut arguments[..1])?;
            let alias = name(&arguments[1])?;
            machine.remove_alias(&alias);
            Ok(Value::Nil)
        },
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "missing-name*",
        &["[name]"],
        "The error for a name missing in a library.",
        &[],
        |machine, arguments| {
            let name = name(&arguments[0])?;
            let (namespace, base) = split_name(&name);
            let library = machine.core.registry.full_name(namespace.unwrap_or_default()).to_string();
            let mut error = machine.unknown(&name, &[]);
            error.message = format!("`{base}` does not exist in `{library}`");
            Err(error.into())
        },
    ),
    Builtin::new("missing-library*", &["[name]"], "The error for a missing library.", &[], |_, arguments| {
        Err(libraries::missing(&name(&arguments[0])?).into())
    }),
];

/// The namespace of a session's definitions.
const SESSION: &str = "user";

/// Returns the value of `*ns*`; `None` for any other name.
pub fn constant(name: &str) -> Option<Value> {
    (name == "*ns*").then(|| Value::symbol(SESSION))
}

fn name(value: &Value) -> Outcome<String> {
    match value.as_symbol() {
        Some(name) => Ok(name.as_str().to_string()),
        None => Err(Error::expected("the name of a namespace, as a quoted symbol", value).into()),
    }
}

fn exists(machine: &Machine, name: &str) -> bool {
    name == SESSION || machine.core.registry.namespace(name).is_some()
}

fn the(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let name = name(&arguments[0])?;
    if exists(machine, &name) { Ok(take(arguments, 0)) } else { Err(libraries::missing(&name).into()) }
}

/// A selection of the names of a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its public definitions.
    Public,
    /// All its definitions.
    Own,
    /// The names it refers to from core.
    Referred,
    /// All names that resolve in it.
    Known,
}

/// Returns a map from the selected names of a namespace to their vars.
fn names_of(machine: &mut Machine, namespace: &Value, kind: Kind) -> Outcome<Value> {
    let namespace = name(namespace)?;
    let registry = machine.core.registry.clone();
    let meant = if namespace == SESSION { None } else { registry.namespace(&namespace) };
    if meant.is_none() && namespace != SESSION {
        return Err(libraries::missing(&namespace).into());
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    let looks_at_core = matches!(kind, Kind::Referred | Kind::Known) && meant.as_deref() != Some("core");
    machine.charge(NAMES)?;
    machine.reserve_values(NAMES)?;
    for space in meant.as_deref().filter(|_| kind != Kind::Referred).into_iter().chain(looks_at_core.then_some("core"))
    {
        pairs.extend(registry.names_in(space).into_iter().map(|base| (base.to_string(), format!("{space}/{base}"))));
    }
    if meant.is_none() && kind != Kind::Referred {
        let is_private = |metadata: &Map| metadata.get(&Value::keyword("private")).is_some_and(Value::is_truthy);
        let own = machine.core.globals.iter();
        let shown = own.filter(|global| kind != Kind::Public || !global.metadata.is_some_and(|map| is_private(map)));
        pairs.extend(shown.map(|global| (global.name.to_string(), global.name.to_string())));
    }
    machine.charge(pairs.len() as u64)?;
    machine.reserve_values(4 * pairs.len() as u64)?;
    // A definition of the session comes later in the list and so shadows a core name.
    let vars: Map = pairs.iter().map(|(base, var)| (Value::symbol(base), Value::Var(var.as_str().into()))).collect();
    Ok(Value::Map(Arc::new(vars)))
}

/// Fuel charged, and values reserved, for scanning the names of the language.
const NAMES: u64 = 4_096;

fn ns_unmap(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    the(machine, &mut arguments[..1])?;
    let Some(base) = arguments[1].as_symbol().map(|name| name.as_str().to_string()) else {
        return Err(Error::expected("a quoted name", &arguments[1]).into());
    };
    if let Some(index) = machine.core.globals.find(&base) {
        machine.undefine(index);
    }
    Ok(Value::Nil)
}

fn ns_aliases(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    the(machine, &mut arguments[..1])?;
    machine.charge(NAMES)?;
    let registry = machine.core.registry.clone();
    let known = registry.namespaces().into_iter().map(|name| (name, registry.full_name(name)));
    let known = known.filter(|(name, library)| name != library && *name != "core");
    let mut aliases: Map = known.map(|(name, library)| (Value::symbol(name), Value::symbol(library))).collect();
    for (alias, library) in machine.aliases() {
        aliases.insert(Value::symbol(alias), library.clone());
    }
    Ok(Value::Map(Arc::new(aliases)))
}
