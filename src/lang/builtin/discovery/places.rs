//! The namespaces of the language: their purposes, and their functions by group.

use super::super::entry::Entry;
use super::shape;
use crate::native::call_shape;
use crate::registry::Registry;
use indexmap::IndexMap;
use std::fmt::Write;

/// Maximum length of the signatures of a namespace, in bytes; those of a larger one are listed by name.
const SIGNATURES: usize = 9_000;

/// Maximum number of functions whose summaries `doc` shows with their namespace.
const SUMMARIZED: usize = 25;

/// Maximum length of a summary, in characters.
const SUMMARY: usize = 100;

/// The purpose of each namespace of the library.
const PURPOSES: &[(&str, &str)] = &[
    ("core", "the functions that need no namespace, most of them Clojure's"),
    ("for", "Racket's loops"),
    ("set", "sets and relations: union, difference, joins, renamed keys (clojure.set)"),
    ("walk", "nested data changed from the leaves up or from the root down (clojure.walk)"),
    ("decimal", "exact decimals such as 1.50M: rounding, scale"),
    ("math", "mathematics on doubles (clojure.math); Java's `Math/` is the same"),
    ("time", "dates, times, durations and time zones: parsing, formatting, arithmetic"),
    ("str", "text: split, join, trim, search, replace (clojure.string)"),
    ("pprint", "formatted output (clojure.pprint)"),
    ("edn", "data in Clojure's notation, read from text (clojure.edn)"),
    ("json", "JSON text to data and back"),
    ("csv", "CSV text to records and back"),
    ("html", "the text and the links of HTML pages and mails"),
    ("base64", "base64 text of strings and bytes, and back"),
    ("url", "percent-encoding, query strings and the parts of URLs"),
    ("hash", "digests of strings and bytes"),
    ("session", "what a session holds: its definitions, forks and data"),
    ("run", "the run of this program"),
    ("data", "differences between values (clojure.data)"),
    ("stats", "statistics of numbers: mean, median, quantiles, variance"),
    ("zip", "movement and changes in trees (clojure.zip)"),
];

/// Returns the namespaces of the language, in the order of the reference.
pub fn namespaces(registry: &Registry) -> Vec<&str> {
    let mut out = vec!["core"];
    for entry in registry.entries() {
        let namespace = entry.namespace();
        if !out.contains(&namespace) && namespace.starts_with(char::is_lowercase) {
            out.push(namespace);
        }
    }
    out
}

/// Resolves the name of a namespace: `str` and `clojure.string` to `str`.
pub fn namespace_named<'r>(registry: &'r Registry, name: &str) -> Option<&'r str> {
    library_namespace(registry, name)
        .or_else(|| namespaces(registry).into_iter().find(|known| *known == registry.namespace_meant(name)))
}

/// As [`namespace_named`], for the namespaces of the library alone, without a search through all functions.
pub fn library_namespace(registry: &Registry, name: &str) -> Option<&'static str> {
    let meant = registry.namespace_meant(name);
    PURPOSES.iter().map(|(known, _)| *known).find(|known| *known == meant)
}

/// Returns whether the library has a namespace of exactly that name.
pub fn is_of_library(name: &str) -> bool {
    PURPOSES.iter().any(|(known, _)| *known == name)
}

fn purpose(namespace: &str) -> &str {
    PURPOSES.iter().find(|(name, _)| *name == namespace).map_or("functions of the host", |(_, purpose)| purpose)
}

/// Returns the functions and forms of a namespace by group, in the order of the reference.
fn groups<'r>(registry: &'r Registry, namespace: &str) -> IndexMap<&'r str, Vec<Entry<'r>>> {
    let mut out: IndexMap<&str, Vec<Entry<'_>>> = IndexMap::new();
    for entry in registry.entries().filter(|entry| entry.namespace() == namespace) {
        out.entry(entry.area).or_default().push(entry);
    }
    out
}

/// Formats all calls of a function as one: `(str/split s separator | s separator limit)`.
fn signature(entry: &Entry<'_>) -> String {
    let lists: Vec<&str> =
        entry.arguments.iter().map(|list| list.trim_start_matches('[').trim_end_matches(']')).collect();
    match entry.arguments.as_slice() {
        [] => entry.name.to_string(),
        [only] => call_shape(entry.name, only),
        [first, ..] if lists[0].is_empty() => {
            let first = call_shape(entry.name, first);
            format!("{first} {}", call_shape(entry.name, &lists[1..].join(" | ")))
        }
        _ => call_shape(entry.name, &lists.join(" | ")),
    }
}

/// Lists the functions of a namespace by group, each with its signature; by name if there are too many.
pub fn listing(registry: &Registry, namespace: &str) -> String {
    let groups = groups(registry, namespace);
    let lines =
        |entries: &[Entry<'_>]| entries.iter().map(|entry| format!("  {}\n", signature(entry))).collect::<String>();
    let mut out = String::new();
    for (title, entries) in &groups {
        if groups.len() > 1 {
            let _ = writeln!(out, "{title}:");
        }
        out.push_str(&lines(entries));
    }
    if out.len() <= SIGNATURES {
        return out;
    }
    out.clear();
    for (title, entries) in &groups {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        let _ = writeln!(out, "{title}:\n  {}", names.join(" "));
    }
    out
}

/// Returns the text by which `doc` describes a namespace.
pub fn description(registry: &Registry, namespace: &str) -> String {
    let groups = groups(registry, namespace);
    let mut out = format!("{namespace}/  {}\n", purpose(namespace));
    if groups.values().map(Vec::len).sum::<usize>() > SUMMARIZED {
        out.push_str(&listing(registry, namespace));
    } else {
        for entry in groups.values().flatten() {
            let _ = writeln!(out, "  {}  {}", signature(entry), shape::cut(entry.summary().to_string(), SUMMARY));
        }
    }
    let example = groups.values().flatten().next().map_or("NAME", |entry| entry.name);
    let _ = writeln!(out, "Read about one with (doc {example}).");
    out
}

/// Returns the line that ends the documentation of a function whose name is also that of a namespace.
pub fn note(namespace: &str) -> String {
    format!("  `{namespace}/` is also a namespace, {}: (dir '{namespace})\n", purpose(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::LIBRARY;

    #[test]
    fn each_namespace_has_a_purpose_and_each_purpose_a_namespace() {
        let registry = Registry::new(&LIBRARY).expect("the library is consistent");
        let mut named: Vec<&str> = PURPOSES.iter().map(|(name, _)| *name).collect();
        let mut known = namespaces(&registry);
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }
}
