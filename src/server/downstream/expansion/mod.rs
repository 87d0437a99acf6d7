//! Bounds the work of validating arguments against a schema before the validation begins.
//!
//! The validator cannot be interrupted, and both the schema and the arguments are untrusted: forty definitions, each
//! of which refers to the one before it twice, expand to 2^40 visits. A [`Graph`] holds the parts of a schema once,
//! however often they are referred to. [`Graph::estimate`] visits each pair of a part and a value once and adds up the
//! visits that a validator without memoization would make, so it is cheap where the expansion is exponential.

mod part;

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use super::patterns::Patterns;
use part::Part;

/// Maximum number of schema parts that are compiled.
const MOST_PARTS: usize = 50_000;
/// Approximate memory of a compiled part, in bytes.
const PART_BYTES: u64 = 1 << 10;
/// Maximum number of memoized pairs of a part and a value in an estimate, of some 60 bytes each.
const MOST_PAIRS: usize = 500_000;
/// Maximum sum of the lengths of the JSON pointers of all parts, in bytes; the validator stores each pointer.
const LONGEST_POINTERS: usize = 16 << 20;
/// Maximum recursion depth of the validator; the threads of [`crate::server::system::offload`] have enough stack for it.
const DEEPEST: usize = 1_000;

/// Maximum number of parts that are compiled for the `unevaluated…` keywords of a schema, with repetitions.
const COMPILED: u64 = 200_000;

/// The budget of one call, in visits of a schema part, of 50 to 500 ns each.
pub(super) const WORK: u64 = 4_000_000;
/// Maximum number of visits during which errors are collected: each may produce an error of some 300 bytes.
pub(super) const COLLECTING: u64 = 200_000;

const CIRCULAR: &str = "refers to itself for the same value";

/// The reason why arguments are not validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unchecked {
    /// The schema cannot be understood, for the given reason.
    Unreadable(String),
    /// Validation exceeds the budget; the clause about the schema gives the reason.
    Beyond(String),
}

impl fmt::Display for Unchecked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unchecked::Unreadable(reason) => write!(formatter, "its schema cannot be understood: {reason}"),
            Unchecked::Beyond(clause) => write!(formatter, "its schema {clause}"),
        }
    }
}

impl Unchecked {
    fn foreign(what: &str, name: &str) -> Unchecked {
        Unchecked::Unreadable(format!("{what} `{}` is not followed", name.chars().take(100).collect::<String>()))
    }

    pub(super) fn beyond(clause: &str) -> Unchecked {
        Unchecked::Beyond(clause.to_owned())
    }
}

/// An upper bound on the visits of one validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Visits that decide whether the value is valid.
    pub(super) test: u64,
    /// Visits that collect all errors.
    pub(super) collect: u64,
    /// Visits that determine which members and items a part has evaluated, for the `unevaluated…` keywords.
    mark: u64,
}

impl Estimate {
    /// Adds a part that is applied once.
    fn add(&mut self, part: Estimate) {
        self.test = self.test.saturating_add(part.test);
        self.collect = self.collect.saturating_add(part.collect);
    }

    /// Adds a part that is tested before its errors are collected.
    fn add_tested(&mut self, part: Estimate) {
        self.add(part);
        self.collect = self.collect.saturating_add(part.test);
    }

    fn add_both(&mut self, visits: u64) {
        self.test = self.test.saturating_add(visits);
        self.collect = self.collect.saturating_add(visits);
    }
}

/// The parts of one schema and the values to which each applies.
#[derive(Debug)]
pub(super) struct Graph {
    parts: Vec<Part>,
}

impl Graph {
    /// Builds the graph of all parts that are reachable from the root of a schema; its patterns were measured before.
    ///
    /// # Errors
    /// Returns the reason if the schema is not compiled.
    pub(super) fn of<'s>(schema: &'s Value, patterns: &'s Patterns<'s>) -> Result<Graph, Unchecked> {
        let mut survey = Survey::of(schema, patterns)?;
        survey.index(schema, 0);
        while let Some((at, value, pointer)) = survey.waiting.pop() {
            let part = survey.part(value, pointer)?;
            survey.parts[at] = part;
        }
        let mut graph = Graph { parts: survey.parts };
        graph.find_shared();
        let mut compilation = Compilation::of(&graph);
        let mut compiled = 0_u64;
        for (at, _) in graph.parts.iter().enumerate().filter(|(_, part)| !part.unevaluated.is_empty()) {
            compiled = compiled.saturating_add(compilation.ways(at)?);
        }
        if compiled > COMPILED {
            return Err(Unchecked::beyond("expands to more parts than are supported"));
        }
        Ok(graph)
    }

    /// Marks the parts with several incoming edges. A part with one edge is visited once for each visit of its parent.
    fn find_shared(&mut self) {
        let mut ways = vec![0_u32; self.parts.len()];
        // Validation begins at the root.
        ways[0] = 1;
        for part in &self.parts {
            part.within().chain(&part.in_place.references).for_each(|inner| ways[*inner] += 1);
        }
        for (part, ways) in self.parts.iter_mut().zip(ways) {
            part.is_shared = ways > 1;
        }
    }

    /// The number of parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The approximate size of the compiled schema in bytes, without its patterns.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.len() as u64 * PART_BYTES
    }

    /// Returns an upper bound on the visits of validating `value`.
    ///
    /// # Errors
    /// Returns `Beyond` if that is more than [`WORK`], or if a part applies itself to the value that it is applied to.
    pub(super) fn estimate(&self, value: &Value) -> Result<Estimate, Unchecked> {
        let estimate = Walk { graph: self, known: HashMap::new(), visits: 0 }.of(0, Instance::Value(value), 0)?;
        match estimate.test <= WORK {
            true => Ok(estimate),
            false => Err(Unchecked::beyond("expands to more parts than are checked for one call")),
        }
    }
}

/// Builds a [`Graph`].
struct Survey<'s> {
    root: &'s Value,
    parts: Vec<Part>,
    /// The indexes of the parts, by address.
    known: HashMap<*const Value, usize>,
    /// Parts whose contents are not known yet, with the lengths of their pointers.
    waiting: Vec<(usize, &'s Value, usize)>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    pointers: usize,
    patterns: &'s Patterns<'s>,
}

impl<'s> Survey<'s> {
    fn of(root: &'s Value, patterns: &'s Patterns<'s>) -> Result<Survey<'s>, Unchecked> {
        let mut anchors = HashMap::new();
        let old = root.get("$schema").and_then(Value::as_str).is_some_and(|draft| draft.contains("draft-0"));
        let base = if old && root.get("$id").is_none() { "id" } else { "$id" };
        find_anchors(root, base, true, &mut anchors)?;
        Ok(Survey {
            root,
            anchors,
            parts: Vec::new(),
            known: HashMap::new(),
            waiting: Vec::new(),
            pointers: 0,
            patterns,
        })
    }

    /// Returns the index of a part, whose pointer has the given length; adds the part if it is new.
    fn index(&mut self, schema: &'s Value, pointer: usize) -> usize {
        *self.known.entry(schema).or_insert_with(|| {
            self.parts.push(Part::default());
            self.waiting.push((self.parts.len() - 1, schema, pointer));
            self.parts.len() - 1
        })
    }

    fn part(&mut self, schema: &'s Value, pointer: usize) -> Result<Part, Unchecked> {
        let mut part = Part { own: 1, ..Part::default() };
        let Value::Object(keywords) = schema else { return Ok(part) };
        self.pointers += pointer;
        for (keyword, value) in keywords {
            part.own += self.keyword(schema, &mut part, keyword, value, pointer)?;
        }
        if self.parts.len() > MOST_PARTS {
            return Err(Unchecked::beyond("has more parts than are supported"));
        }
        if self.pointers > LONGEST_POINTERS {
            return Err(Unchecked::beyond("has longer names than are supported"));
        }
        Ok(part)
    }

    /// Adds a keyword of a schema to its part; returns the cost of the keyword for each value.
    fn keyword(
        &mut self,
        schema: &'s Value,
        part: &mut Part,
        keyword: &'s str,
        value: &'s Value,
        pointer: usize,
    ) -> Result<u64, Unchecked> {
        let under = pointer + keyword.len() + 2;
        match (keyword, value) {
            ("allOf", Value::Array(schemas)) => part.in_place.always.extend(self.each(schemas, under)),
            ("anyOf" | "oneOf", Value::Array(schemas)) => part.in_place.tested.extend(self.each(schemas, under)),
            ("not" | "if" | "then" | "else", schema) => part.in_place.tested.push(self.index(schema, under)),
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                part.in_place.tested.extend(self.named(schemas, under).into_iter().map(|(_, schema)| schema));
                return Ok(1 + schemas.values().map(constants).sum::<u64>());
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                for target in self.targets(reference)? {
                    // The validator ignores a reference of a part to itself.
                    if keyword == "$recursiveRef" || !std::ptr::eq(target, schema) {
                        part.in_place.references.push(self.index(target, reference.len()));
                    }
                }
            }
            ("properties", Value::Object(schemas)) => {
                let named = self.named(schemas, under).into_iter();
                part.members.by_name = named.map(|(name, at)| (name.clone(), at)).collect();
                return Ok(1 + schemas.len() as u64);
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (pattern, schema) in self.named(schemas, under) {
                    part.members.pattern_states += self.patterns.states(pattern);
                    part.members.by_pattern.push(schema);
                }
            }
            ("additionalProperties", schema) => part.members.others.push(self.index(schema, under)),
            ("propertyNames", schema) => part.members.names.push(self.index(schema, under)),
            ("prefixItems" | "items", Value::Array(schemas)) => part.items.prefix.extend(self.each(schemas, under)),
            ("items" | "additionalItems", schema) => part.items.rest.push(self.index(schema, under)),
            ("contains", schema) => part.items.contains.push(self.index(schema, under)),
            ("unevaluatedProperties" | "unevaluatedItems", schema) => part.unevaluated.push(self.index(schema, under)),
            ("uniqueItems", _) => part.items.are_unique = true,
            ("pattern", Value::String(pattern)) => part.states += self.patterns.states(pattern),
            ("enum" | "const" | "required" | "dependentRequired", constant) => return Ok(constants(constant)),
            _ => {}
        }
        Ok(1)
    }

    fn each(&mut self, schemas: &'s [Value], pointer: usize) -> Vec<usize> {
        schemas.iter().map(|schema| self.index(schema, pointer + 8)).collect()
    }

    fn named(&mut self, schemas: &'s Map<String, Value>, pointer: usize) -> Vec<(&'s String, usize)> {
        let part = |(name, schema): (&'s String, &'s Value)| (name, self.index(schema, pointer + name.len() + 1));
        schemas.iter().map(part).collect()
    }

    /// Resolves a reference to the parts that it may denote. `$dynamicRef` denotes one of several of that name.
    fn targets(&self, reference: &str) -> Result<Vec<&'s Value>, Unchecked> {
        let foreign = || Unchecked::foreign("the reference", reference);
        let base = self.root.get("$id").or_else(|| self.root.get("id")).and_then(Value::as_str).unwrap_or_default();
        let fragment = match reference.strip_prefix('#') {
            Some(fragment) => fragment,
            None => {
                let rest = reference.strip_prefix(base.trim_end_matches('#')).ok_or_else(foreign)?;
                if rest.is_empty() { rest } else { rest.strip_prefix('#').ok_or_else(foreign)? }
            }
        };
        let fragment = decoded(fragment).ok_or_else(foreign)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(vec![self.root.pointer(&fragment).ok_or_else(foreign)?]);
        }
        self.anchors.get(fragment.as_str()).cloned().ok_or_else(foreign)
    }
}

/// Finds the parts that have anchors. `base` is the keyword that names a schema.
///
/// # Errors
/// Returns `Unreadable` for a named subschema: references within it have another base.
fn find_anchors<'s>(
    value: &'s Value,
    base: &str,
    is_root: bool,
    anchors: &mut HashMap<&'s str, Vec<&'s Value>>,
) -> Result<(), Unchecked> {
    match value {
        Value::Object(fields) => {
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = fields.get(keyword).and_then(Value::as_str) {
                    anchors.entry(name).or_default().push(value);
                }
            }
            for keyword in ["$id", "id"] {
                let Some(id) = fields.get(keyword).and_then(Value::as_str) else { continue };
                match id.strip_prefix('#') {
                    // Drafts up to 7 write an anchor this way.
                    Some(name) => anchors.entry(name).or_default().push(value),
                    None if is_root || keyword != base => {}
                    None => return Err(Unchecked::foreign("the schema within it named", id)),
                }
            }
            fields.values().try_for_each(|field| find_anchors(field, base, false, anchors))
        }
        Value::Array(items) => items.iter().try_for_each(|item| find_anchors(item, base, false, anchors)),
        _ => Ok(()),
    }
}

/// Decodes the percent-encoding of a fragment; `None` if the result is not UTF-8.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(encoded) => {
                bytes.push(encoded);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Counts the values of a constant, plus one for each 64 bytes of its texts.
fn constants(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(constants).sum(),
        Value::Object(fields) => fields.iter().map(|(name, field)| stretches(name) + constants(field)).sum(),
        Value::String(text) => stretches(text),
        _ => 0,
    }
}

fn stretches(text: &str) -> u64 {
    text.len() as u64 / 64
}

/// Bounds the number of parts that the validator compiles. It compiles each part once, except for an `unevaluated…`
/// keyword: there it compiles all parts that apply to the same value anew, once for each path to them.
struct Compilation<'g> {
    graph: &'g Graph,
    /// The number of parts within each part, itself included, without the parts that it refers to.
    sizes: Vec<Option<u64>>,
    /// The number of parts that are compiled for a keyword that evaluates a part.
    known: Vec<Memo>,
}

#[derive(Clone, Copy)]
enum Memo {
    New,
    Begun,
    Known(u64),
}

impl Compilation<'_> {
    fn of(graph: &Graph) -> Compilation<'_> {
        let parts = graph.parts.len();
        Compilation { graph, sizes: vec![None; parts], known: vec![Memo::New; parts] }
    }

    /// # Errors
    /// Returns `Beyond` for a part that leads back to itself.
    fn ways(&mut self, at: usize) -> Result<u64, Unchecked> {
        match self.known[at] {
            Memo::Known(ways) => return Ok(ways),
            Memo::Begun => return Err(Unchecked::beyond(CIRCULAR)),
            Memo::New => self.known[at] = Memo::Begun,
        }
        let part = &self.graph.parts[at];
        let mut ways = self.size(at);
        for inner in part.in_place.all() {
            // It is compiled both for itself and for the keyword.
            ways = ways.saturating_add(self.ways(*inner)?.saturating_mul(2));
        }
        self.known[at] = Memo::Known(ways);
        Ok(ways)
    }

    fn size(&mut self, at: usize) -> u64 {
        if let Some(size) = self.sizes[at] {
            return size;
        }
        let part = &self.graph.parts[at];
        let size = 1 + part.within().map(|inner| self.size(*inner)).sum::<u64>();
        self.sizes[at] = Some(size);
        size
    }
}

/// The instance to which a part is applied.
#[derive(Clone, Copy)]
enum Instance<'v> {
    Value(&'v Value),
    /// The name of a member.
    Name(&'v str),
}

impl<'v> Instance<'v> {
    fn address(self) -> *const u8 {
        match self {
            Instance::Value(value) => std::ptr::from_ref(value).cast(),
            Instance::Name(name) => name.as_ptr(),
        }
    }

    fn text(self) -> Option<&'v str> {
        match self {
            Instance::Value(value) => value.as_str(),
            Instance::Name(name) => Some(name),
        }
    }
}

/// Computes an [`Estimate`].
struct Walk<'g> {
    graph: &'g Graph,
    /// Memoized estimates of pairs of a shared part and a value; `None` while the pair is being visited.
    known: HashMap<(usize, *const u8), Option<Estimate>>,
    visits: u64,
}

impl Walk<'_> {
    fn of(&mut self, at: usize, instance: Instance<'_>, depth: usize) -> Result<Estimate, Unchecked> {
        self.visits += 1;
        if self.visits > WORK {
            return Err(Unchecked::beyond("is applied to more values than are checked for one call"));
        }
        if depth == DEEPEST {
            return Err(Unchecked::beyond("is nested more deeply than is supported"));
        }
        // Every cycle contains a shared part: one edge enters the cycle, another comes from within it.
        if !self.graph.parts[at].is_shared {
            return self.parts(at, instance, depth + 1);
        }
        let key = (at, instance.address());
        match self.known.get(&key) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err(Unchecked::beyond(CIRCULAR)),
            None if self.known.len() == MOST_PAIRS => {
                return Err(Unchecked::beyond("is applied to more values than are checked for one call"));
            }
            None => {}
        }
        self.known.insert(key, None);
        let estimate = self.parts(at, instance, depth + 1)?;
        self.known.insert(key, Some(estimate));
        Ok(estimate)
    }

    fn parts(&mut self, at: usize, instance: Instance<'_>, depth: usize) -> Result<Estimate, Unchecked> {
        let graph = self.graph;
        let part = &graph.parts[at];
        let mut sum = Estimate { test: part.own, collect: part.own, mark: 1 };
        if let Some(text) = instance.text() {
            let bytes = text.len() as u64;
            sum.add_both(bytes / 64 + (bytes / 16 + 1).saturating_mul(part.states) / 4);
        }
        for schema in part.in_place.always.iter().chain(&part.in_place.references) {
            let inner = self.of(*schema, instance, depth)?;
            sum.add(inner);
            sum.mark = sum.mark.saturating_add(inner.mark);
        }
        for schema in &part.in_place.tested {
            let inner = self.of(*schema, instance, depth)?;
            sum.add_tested(inner);
            sum.mark = sum.mark.saturating_add(inner.mark).saturating_add(inner.test);
        }
        let Instance::Value(value) = instance else { return Ok(sum) };
        match value {
            Value::Object(members) => {
                let parts = &part.members;
                for (name, member) in members {
                    let named = parts.by_name.get(name);
                    let unnamed = parts.others.iter().chain(&part.unevaluated).filter(|_| named.is_none());
                    let values = named.into_iter().chain(unnamed).chain(&parts.by_pattern);
                    let values = values.map(|schema| (*schema, Instance::Value(member)));
                    let names = parts.names.iter().map(|schema| (*schema, Instance::Name(name)));
                    for (schema, instance) in values.chain(names) {
                        let inner = self.of(schema, instance, depth)?;
                        sum.add(inner);
                        if !part.unevaluated.is_empty() {
                            sum.mark = sum.mark.saturating_add(inner.test);
                        }
                    }
                    let matching = (name.len() as u64 / 16 + 1).saturating_mul(parts.pattern_states) / 4 + 1;
                    sum.add_both(matching.saturating_mul(2));
                    sum.mark = sum.mark.saturating_add(matching);
                }
            }
            Value::Array(items) => {
                let parts = &part.items;
                for (position, item) in items.iter().enumerate() {
                    let several = parts.prefix.get(position).into_iter().chain(&parts.rest).chain(&part.unevaluated);
                    for schema in several.chain(&parts.contains) {
                        let inner = self.of(*schema, Instance::Value(item), depth)?;
                        sum.add_tested(inner);
                        sum.mark = sum.mark.saturating_add(inner.test);
                    }
                    sum.add_both(1);
                    sum.mark = sum.mark.saturating_add(1);
                }
                if parts.are_unique {
                    // Short arrays are compared pairwise, long ones are hashed.
                    let size = constants(value);
                    self.visits = self.visits.saturating_add(size);
                    sum.add_both(size.saturating_mul(16));
                }
            }
            _ => {}
        }
        if !part.unevaluated.is_empty() {
            sum.add_both(sum.mark);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests;
