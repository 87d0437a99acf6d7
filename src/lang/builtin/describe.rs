//! `describe`: the shape of unknown data, so that a single call shows what a tool returns.
//!
//! The walk keeps a tree of paths, into which it merges all items of a collection. The number of values visited, the
//! depth and the number of paths are bounded.

use super::arguments::{count, option, options, take};
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::print::print_within;
use crate::value::walk::{Cursor, Free};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "describe",
    &["[x & options]"],
    "The shape of unknown data: a map from path to a summary (types, counts, ranges, samples, how many lack it), with \
     the items of a collection merged, limited to about 2,000 characters.\n\
     The result is a map, not printed, so `{:mails (describe a) :events (describe b)}` describes both at once. \
     Options: `:depth` (6), `:samples` (2).",
    &[
        (
            "(describe [{:id 1 :from {:email \"ann@x.org\"}} {:id 7 :from nil}])",
            "{\".\" \"vector of 2 maps\", \"[].id\" \"integer 1 to 7\", \"[].from\" \"map, 1 nil\", \"[].from.email\" \"string e.g. ann@x.org\"}",
        ),
        (
            "(describe {:n 1 :tags [\"a\" \"b\"]})",
            "{\".\" \"map of 2\", \"n\" \"integer 1\", \"tags\" \"vector of 2: string e.g. a, b\"}",
        ),
    ],
    describe,
)];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("shape", "describe"), ("schema", "describe"), ("infer-schema", "describe")];

/// Maximum number of values visited.
const LOOKED_AT: u64 = 100_000;
/// Maximum number of items visited in a lazy sequence, whose length is unknown.
const OF_A_LAZY_ONE: usize = 1_000;
/// Maximum number of paths.
const PATHS: usize = 400;
/// A map with more keys than this is treated as a dictionary: its values are merged.
const KEYS: usize = 32;
/// Maximum size of the answer, in bytes.
const ANSWER: usize = 2_000;
/// Maximum length of a sample, in characters.
const SAMPLE: usize = 28;
/// Maximum number of distinct samples that may be shown as an enumeration, if values repeat often enough.
const WORDS: usize = 6;

/// Statistics collected for one path.
#[derive(Default)]
struct PathStatistics {
    name: String,
    parent: usize,
    depth: usize,
    children: Vec<usize>,
    by_key: HashMap<Value, usize>,
    seen: u64,
    nils: u64,
    maps: u64,
    integers: Range<i64>,
    doubles: Range<f64>,
    strings: Range<usize>,
    /// Kinds of collection seen here, each with its range of sizes.
    collections: Vec<(&'static str, Range<u64>)>,
    /// All other kinds of value seen here, with their counts.
    others: Vec<(&'static str, u64)>,
    samples: Vec<String>,
    more_samples: bool,
    unfinished: bool,
}

/// The number of values seen, with their minimum and maximum.
#[derive(Default, Clone, Copy)]
struct Range<T> {
    count: u64,
    least: T,
    greatest: T,
}

impl<T: PartialOrd + Copy> Range<T> {
    fn add(&mut self, value: T) {
        if self.count == 0 || value < self.least {
            self.least = value;
        }
        if self.count == 0 || value > self.greatest {
            self.greatest = value;
        }
        self.count += 1;
    }
}

/// A collection being walked.
enum Open {
    Items(Cursor, usize, usize),
    Entries(Arc<Map>, usize, usize),
}

struct Survey {
    places: Vec<PathStatistics>,
    open: Vec<Open>,
    looked_at: u64,
    depth: usize,
    samples: usize,
    complete: bool,
}

fn describe(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = options("describe", &mut arguments[1..], &["depth", "samples"])?;
    let number = |name: &str, default: u64| option(&given, name).map_or(Ok(default), |value| count(&value));
    let mut survey = Survey {
        places: vec![PathStatistics::default()],
        open: Vec::new(),
        looked_at: 0,
        depth: number("depth", 6)?.min(100) as usize,
        samples: number("samples", 2)?.min(20) as usize,
        complete: true,
    };
    survey.look(machine, &take(arguments, 0), 0);
    survey.walk(machine)?;
    Ok(survey.answer())
}

impl Survey {
    fn walk(&mut self, machine: &mut Machine) -> Outcome<()> {
        while let Some(top) = self.open.last_mut() {
            machine.charge(2)?;
            let next = match top {
                Open::Items(cursor, at, left) => {
                    let end = *left == 0;
                    *left = left.saturating_sub(1);
                    let at = *at;
                    match if end { None } else { cursor.next(machine)? } {
                        Some(item) => Some((item, at, Value::Nil)),
                        None => {
                            let unfinished = end && cursor.next(machine)?.is_some();
                            self.places[at].unfinished |= unfinished;
                            None
                        }
                    }
                }
                Open::Entries(map, position, at) => {
                    let found =
                        (*position..map.positions()).find_map(|index| map.entry(index).map(|entry| (index, entry)));
                    found.map(|(index, (key, value))| {
                        *position = index + 1;
                        let key = if is_dictionary(map) { Value::Nil } else { key.clone() };
                        (value.clone(), *at, key)
                    })
                }
            };
            let Some((value, at, key)) = next else {
                self.open.pop();
                continue;
            };
            if self.looked_at >= LOOKED_AT {
                self.complete = false;
                self.open.clear();
                return Ok(());
            }
            self.looked_at += 1;
            if let Some(child) = self.child(at, key) {
                self.look(machine, &value, child);
            }
        }
        Ok(())
    }

    /// Returns the index of the path for `key` below another path, creating it if necessary. A nil key denotes the
    /// merged items of a collection. Returns `None` if the limit on paths or depth is reached.
    fn child(&mut self, at: usize, key: Value) -> Option<usize> {
        if let Some(known) = self.places[at].by_key.get(&key) {
            return Some(*known);
        }
        let depth = self.places[at].depth + 1;
        if self.places.len() >= PATHS || depth > self.depth {
            self.complete = false;
            return None;
        }
        let name = match &key {
            Value::Nil if self.places[at].maps > 0 => "*".to_string(),
            Value::Nil => "[]".to_string(),
            named if let Some(name) = named.as_name() => shortened(name.as_str()),
            Value::Str(text) if text.as_str().contains([' ', '.']) || text.as_str().is_empty() => {
                format!("\"{}\"", shortened(text.as_str()))
            }
            Value::Str(text) => shortened(text.as_str()),
            other => shown(other),
        };
        let child = self.places.len();
        self.places.push(PathStatistics { name, parent: at, depth, ..PathStatistics::default() });
        self.places[at].children.push(child);
        self.places[at].by_key.insert(key, child);
        Some(child)
    }

    /// Records a value at a path and schedules its children for the walk.
    fn look(&mut self, machine: &mut Machine, value: &Value, at: usize) {
        let most = self.samples.max(WORDS);
        let lazy = matches!(value, Value::Lazy(_) | Value::List(_)) && machine.is_lazy(value);
        let place = &mut self.places[at];
        place.seen += 1;
        match value {
            Value::Nil => place.nils += 1,
            Value::Int(number) => place.integers.add(*number),
            Value::Float(number) => place.doubles.add(*number),
            Value::Str(text) => {
                // Sizes are in bytes, which is accurate enough for a hint and needs no scan of the text.
                place.strings.add(text.as_str().len());
                place.sample(shortened(text.as_str()), most);
            }
            Value::Map(map) => {
                place.maps += 1;
                place.collection("map", map.len() as u64);
                self.open.push(Open::Entries(map.clone(), 0, at));
            }
            Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Lazy(_) => {
                let kind = match value {
                    Value::Vector(_) => "vector",
                    Value::Set(_) => "set",
                    _ => "list",
                };
                let cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
                let size = cursor.remaining().filter(|_| !lazy);
                place.collection(kind, size.unwrap_or(0));
                place.unfinished |= size.is_none();
                let left = if lazy { OF_A_LAZY_ONE } else { usize::MAX };
                self.open.push(Open::Items(cursor, at, left));
            }
            Value::Keyword(_) | Value::Symbol(_) | Value::Annotated(_) | Value::Char(_) => {
                place.other(value.kind());
                place.sample(shown(value), most);
            }
            other => {
                place.other(other.kind());
                if other.is_scalar() && !other.is_function() && !matches!(other, Value::Bool(_)) {
                    place.sample(shown(other), most);
                } else if let Value::Bool(held) = other {
                    place.sample(held.to_string(), most);
                }
            }
        }
    }

    /// Builds the answer from the paths that fit into it, shallowest first.
    fn answer(mut self) -> Value {
        let mut order = Vec::new();
        let mut waiting = vec![0];
        while let Some(at) = waiting.pop() {
            order.push(at);
            waiting.extend(self.places[at].children.iter().rev());
        }
        let lines: Vec<Option<(String, String)>> = (0..self.places.len()).map(|at| self.line(at)).collect();
        let mut by_depth: Vec<usize> = order.iter().copied().filter(|at| lines[*at].is_some()).collect();
        by_depth.sort_by_key(|at| self.places[*at].depth);
        let mut room = ANSWER;
        let mut left_out = 0;
        let mut chosen = vec![false; lines.len()];
        for at in by_depth {
            let length = lines[at].as_ref().map_or(0, |(path, text)| path.len() + text.len() + 8);
            if length <= room && left_out == 0 {
                room -= length;
                chosen[at] = true;
            } else {
                left_out += 1;
            }
        }
        let mut answer = Map::default();
        for at in order {
            if let (true, Some((path, text))) = (chosen[at], &lines[at]) {
                answer.insert(Value::string(path), Value::string(text));
            }
        }
        self.places.clear();
        if left_out > 0 || !self.complete {
            let mut note = String::new();
            if left_out > 0 {
                let _ = write!(note, "{left_out} more paths: describe a part of the data");
            }
            if !self.complete {
                note.push_str(if note.is_empty() { "" } else { "; " });
                let _ = write!(note, "only part was examined ({} values, :depth {})", self.looked_at, self.depth);
            }
            answer.insert(Value::string("…"), Value::string(&note));
        }
        Value::Map(Arc::new(answer))
    }

    /// Returns the path and description of a place; `None` if the parent's line already covers it.
    fn line(&self, at: usize) -> Option<(String, String)> {
        let place = &self.places[at];
        if at > 0 {
            let only_maps = place.maps == place.seen && !place.children.is_empty();
            let merged = place.name == "[]" && (only_maps || place.children.is_empty());
            let complete = place.seen >= self.expected(at);
            if merged || only_maps && complete && !place.children.is_empty() && place.name != "*" {
                return None;
            }
        }
        Some((self.path(at), self.text(at)))
    }

    /// Returns how many values this path would have if it were never missing.
    fn expected(&self, at: usize) -> u64 {
        let place = &self.places[at];
        match place.name.as_str() {
            "[]" | "*" => place.seen,
            _ => self.places[place.parent].maps,
        }
    }

    fn path(&self, at: usize) -> String {
        if at == 0 {
            return ".".to_string();
        }
        let mut names = Vec::new();
        let mut at = at;
        while at > 0 {
            names.push(self.places[at].name.as_str());
            at = self.places[at].parent;
        }
        let mut path = String::new();
        for name in names.into_iter().rev() {
            if !path.is_empty() && name != "[]" {
                path.push('.');
            }
            path.push_str(name);
        }
        path
    }

    fn text(&self, at: usize) -> String {
        let place = &self.places[at];
        let mut kinds = Vec::new();
        for (kind, sizes) in &place.collections {
            let mut text = (*kind).to_string();
            if *kind != "map" || place.children.is_empty() || at == 0 || self.is_dictionary(at) {
                let plus = if place.unfinished { " or more" } else { "" };
                if !(place.unfinished && sizes.greatest == 0) {
                    let _ = write!(text, " of {}{plus}", span(sizes.least, sizes.greatest));
                }
            }
            kinds.push(text);
        }
        if place.integers.count > 0 {
            kinds.push(format!("integer {}", span(place.integers.least, place.integers.greatest)));
        }
        if place.doubles.count > 0 {
            kinds.push(format!("double {}", span(place.doubles.least, place.doubles.greatest)));
        }
        kinds.extend(self.words(place));
        if kinds.is_empty() {
            kinds.push(if place.seen == 0 { "empty" } else { "nil" }.to_string());
        }
        let mut text = kinds.join(" or ");
        if let Some(items) = self.items(place) {
            text.push_str(&items);
        }
        if place.nils > 0 && place.nils < place.seen {
            let _ = write!(text, ", {} nil", place.nils);
        }
        let expected = self.expected(at);
        if at > 0 && place.seen < expected {
            let _ = write!(text, ", in {} of {expected}", place.seen);
        }
        text
    }

    /// Describes strings and other scalars, with samples.
    fn words(&self, place: &PathStatistics) -> Option<String> {
        let mut text = String::new();
        if place.strings.count > 0 {
            text.push_str("string");
            if place.strings.greatest > 60 {
                let _ = write!(text, " of {} characters", span(place.strings.least, place.strings.greatest));
            }
        }
        for (kind, _) in &place.others {
            text.push_str(if text.is_empty() { "" } else { " or " });
            text.push_str(kind.split_once(' ').map_or(kind, |(_, kind)| kind));
        }
        if text.is_empty() {
            return None;
        }
        let total = place.strings.count + place.others.iter().map(|(_, count)| count).sum::<u64>();
        let few = !place.more_samples && place.samples.len() <= WORDS && total >= 2 * place.samples.len() as u64;
        if place.samples.is_empty() || self.samples == 0 {
            return Some(text);
        }
        if few && total > 2 {
            let _ = write!(text, ": {}", place.samples.join(", "));
        } else {
            let _ = write!(text, " e.g. {}", place.samples[..self.samples.min(place.samples.len())].join(", "));
        }
        Some(text)
    }

    /// Describes the items of a collection, if the description fits into the collection's own line.
    fn items(&self, place: &PathStatistics) -> Option<String> {
        let child = *place.children.iter().find(|child| self.places[**child].name == "[]")?;
        let items = &self.places[child];
        if items.maps == items.seen {
            let one = place.collections.iter().any(|(_, sizes)| sizes.greatest == 1 && sizes.least == 1);
            return Some(if one { " map" } else { " maps" }.to_string());
        }
        items.children.is_empty().then(|| format!(": {}", self.text(child)))
    }

    fn is_dictionary(&self, at: usize) -> bool {
        self.places[at].children.iter().any(|child| self.places[*child].name == "*")
    }
}

impl PathStatistics {
    fn collection(&mut self, kind: &'static str, size: u64) {
        match self.collections.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sizes)) => sizes.add(size),
            None => self.collections.push((kind, Range { count: 1, least: size, greatest: size })),
        }
    }

    fn other(&mut self, kind: &'static str) {
        match self.others.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.others.push((kind, 1)),
        }
    }

    fn sample(&mut self, text: String, most: usize) {
        if self.more_samples || self.samples.contains(&text) {
            return;
        }
        if self.samples.len() < most { self.samples.push(text) } else { self.more_samples = true }
    }
}

/// True if the keys of a map are data rather than field names.
fn is_dictionary(map: &Map) -> bool {
    map.len() > KEYS
}

/// Formats a range as `3` or `3 to 7`.
fn span<T: PartialEq + std::fmt::Display>(least: T, greatest: T) -> String {
    if least == greatest { least.to_string() } else { format!("{least} to {greatest}") }
}

/// Shortens a text to [`SAMPLE`] characters on a single line.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SAMPLE {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

fn shown(value: &Value) -> String {
    let Ok(printed) = print_within(value, SAMPLE, true, &mut Free);
    shortened(&printed.text)
}
