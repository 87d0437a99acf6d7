//! `describe`: the shape of unknown data, so that a single call shows what a tool returns.
//!
//! The walk keeps a tree of places, into which it merges all items of a collection. The number of values visited, the
//! depth and the number of places are bounded. The shape is data itself: maps and vectors like those described, with
//! literals, or symbols such as `int:1..250`, in place of the values.

use super::arguments::{count, take};
use super::options::COUNT;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::print::print_within;
use crate::value::walk::{Cursor, Free};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "describe",
    &["[x & options]"],
    "The shape of unknown data, as data of the same form, in at most about 2,000 characters. The items of a collection \
     are merged: `[{:id int:1..9} ×250]` is a vector of 250 maps.\n\
     A literal is the only value that was seen; `(or \"open\" \"done\")` lists all that were seen, and with `…` some. \
     `nil×12` and `absent×3` count the records in which a key is nil or missing; `… …` means that keys are left \
     out. Options: `:depth` (6), `:samples` (1).",
    &[
        (
            "(describe [{:id 1 :from {:email \"ann@x.org\"}} {:id 7 :from nil}])",
            "[{:id int:1..7, :from (or {:email \"ann@x.org\"} nil×1)} ×2]",
        ),
        ("(describe {:n 1 :tags [\"a\" \"b\"]})", "{:n 1, :tags [(or \"a\" \"b\") ×2]}"),
    ],
    describe,
)
.with_options(&DESCRIBE)];

static DESCRIBE: OptionSet = OptionSet {
    function: "describe",
    accepted: &[OptionSpec::new("depth", &COUNT), OptionSpec::new("samples", &COUNT)],
};

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("shape", "describe"), ("schema", "describe"), ("infer-schema", "describe")];

/// Maximum number of values visited.
const LOOKED_AT: u64 = 100_000;
/// Maximum number of items visited in a lazy sequence, whose length is unknown.
const OF_A_LAZY_ONE: usize = 1_000;
/// Maximum number of places.
const PLACES: usize = 400;
/// A map with more keys than this is treated as a dictionary: its values are merged.
const KEYS: usize = 32;
/// Maximum size of the answer, in bytes.
const ANSWER: usize = 2_000;
/// Maximum length of a sample, in characters.
const SAMPLE: usize = 28;
/// Maximum number of distinct samples that may be shown as an enumeration, if values repeat often enough.
const WORDS: usize = 6;
/// Maximum length of strings whose lengths are not shown, in bytes.
const SHORT: usize = 60;
/// Stands for what is left out.
const MARK: &str = "…";

/// A step of a path: a key of maps, or `None` for the items of a collection and the values of a dictionary.
type Part = Option<Value>;

/// Statistics collected for one place.
#[derive(Default)]
struct Place {
    part: Part,
    parent: usize,
    depth: usize,
    children: Vec<usize>,
    by_part: HashMap<Part, usize>,
    /// True if it has parts without a place.
    is_cut: bool,
    seen: u64,
    nils: u64,
    maps: u64,
    /// The kind of the keys of dictionaries, or `any` if there are several.
    dictionary: Option<&'static str>,
    integers: Range<i64>,
    doubles: Range<f64>,
    strings: Range<usize>,
    string_samples: Samples,
    /// Kinds of collection seen here, each with its range of sizes.
    collections: Vec<(Kind, Range<u64>)>,
    /// True if a lazy sequence was not walked to its end.
    is_unfinished: bool,
    /// Other kinds of value seen here that have no samples.
    kinds: Vec<&'static str>,
    samples: Samples,
}

/// The kinds of collection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Map,
    Vector,
    Set,
    List,
}

/// The distinct values seen, and their number.
#[derive(Default)]
struct Samples {
    values: Vec<Value>,
    has_more: bool,
    seen: u64,
}

impl Samples {
    fn add(&mut self, value: Value, most: usize) {
        self.seen += 1;
        if self.has_more || self.values.contains(&value) {
            return;
        }
        if self.values.len() < most { self.values.push(value) } else { self.has_more = true }
    }

    /// Returns whether the samples are all the values that there are.
    fn is_enumeration(&self) -> bool {
        let distinct = self.values.len() as u64;
        !self.has_more && (distinct == 1 || distinct <= WORDS as u64 && self.seen >= 2 * distinct || self.seen <= 2)
    }

    /// Returns all values, or the first `most` and a mark.
    fn shown(&self, most: usize) -> Vec<Value> {
        if self.is_enumeration() {
            return self.values.clone();
        }
        self.values.iter().take(most).cloned().chain([Value::symbol(MARK)]).collect()
    }
}

/// The number of values seen, with their minimum and maximum.
#[derive(Default, Clone, Copy)]
struct Range<T> {
    count: u64,
    least: T,
    greatest: T,
}

impl<T: PartialOrd + Copy + Display> Range<T> {
    fn add(&mut self, value: T) {
        if self.count == 0 || value < self.least {
            self.least = value;
        }
        if self.count == 0 || value > self.greatest {
            self.greatest = value;
        }
        self.count += 1;
    }

    /// Formats the range as `3` or `3..7`.
    fn span(&self) -> String {
        if self.least == self.greatest { self.least.to_string() } else { format!("{}..{}", self.least, self.greatest) }
    }
}

/// A collection being walked.
enum Open {
    /// The items that remain, their place, and how many may be visited. A lazy sequence also has the number visited,
    /// since its size is not known.
    Items {
        cursor: Cursor,
        at: usize,
        left: usize,
        counted: Option<u64>,
    },
    Entries(Arc<Map>, usize, usize),
}

struct Survey {
    places: Vec<Place>,
    open: Vec<Open>,
    looked_at: u64,
    depth: usize,
    samples: usize,
    is_complete: bool,
}

fn describe(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = DESCRIBE.read(&mut arguments[1..])?;
    let number = |name: &str, default: u64| given.get(name).map_or(Ok(default), count);
    let mut survey = Survey {
        places: vec![Place::default()],
        open: Vec::new(),
        looked_at: 0,
        depth: number("depth", 6)?.min(100) as usize,
        samples: number("samples", 1)?.min(20) as usize,
        is_complete: true,
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
                Open::Items { cursor, at, left, counted } => {
                    let (at, is_end) = (*at, *left == 0);
                    *left = left.saturating_sub(1);
                    match if is_end { None } else { cursor.next(machine)? } {
                        Some(item) => {
                            counted.iter_mut().for_each(|counted| *counted += 1);
                            Some((item, at, None))
                        }
                        None => {
                            let has_more = is_end && cursor.next(machine)?.is_some();
                            let counted = *counted;
                            self.end_lazy(at, counted, has_more);
                            None
                        }
                    }
                }
                Open::Entries(map, position, at) => {
                    let found =
                        (*position..map.positions()).find_map(|index| map.entry(index).map(|entry| (index, entry)));
                    found.map(|(index, (key, value))| {
                        *position = index + 1;
                        let part = if is_dictionary(map) {
                            self.places[*at].add_key_of_dictionary(key);
                            None
                        } else {
                            Some(key.clone())
                        };
                        (value.clone(), *at, part)
                    })
                }
            };
            let Some((value, at, part)) = next else {
                self.open.pop();
                continue;
            };
            if self.looked_at >= LOOKED_AT {
                self.is_complete = false;
                for open in std::mem::take(&mut self.open) {
                    if let Open::Items { at, counted, .. } = open {
                        self.end_lazy(at, counted, true);
                    }
                }
                return Ok(());
            }
            self.looked_at += 1;
            if let Some(child) = self.child(at, part) {
                self.look(machine, &value, child);
            }
        }
        Ok(())
    }

    /// Records the size of a lazy sequence at the end of its walk.
    fn end_lazy(&mut self, at: usize, counted: Option<u64>, has_more: bool) {
        if let Some(counted) = counted {
            self.places[at].collection(Kind::List, counted);
            self.places[at].is_unfinished |= has_more;
        }
    }

    /// Returns the index of the place of a part of another place, creating it if necessary. Returns `None` if the limit
    /// on places or depth is reached.
    fn child(&mut self, at: usize, part: Part) -> Option<usize> {
        if let Some(known) = self.places[at].by_part.get(&part) {
            return Some(*known);
        }
        let depth = self.places[at].depth + 1;
        if self.places.len() >= PLACES || depth > self.depth {
            self.places[at].is_cut = true;
            return None;
        }
        let child = self.places.len();
        self.places.push(Place { part: part.as_ref().map(sample), parent: at, depth, ..Place::default() });
        self.places[at].children.push(child);
        self.places[at].by_part.insert(part, child);
        Some(child)
    }

    /// Records a value at a place and schedules its children for the walk.
    fn look(&mut self, machine: &mut Machine, value: &Value, at: usize) {
        let most = self.samples.max(WORDS);
        let is_lazy = matches!(value, Value::Lazy(_) | Value::List(_)) && machine.is_lazy(value);
        let place = &mut self.places[at];
        place.seen += 1;
        match value {
            Value::Nil => place.nils += 1,
            Value::Int(number) => place.integers.add(*number),
            Value::Float(number) => place.doubles.add(*number),
            Value::Str(text) => {
                // Sizes are in bytes, which is accurate enough for a hint and needs no scan of the text.
                place.strings.add(text.as_str().len());
                place.string_samples.add(sample(value), most);
            }
            Value::Map(map) => {
                place.maps += 1;
                place.collection(Kind::Map, map.len() as u64);
                self.open.push(Open::Entries(map.clone(), 0, at));
            }
            Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Lazy(_) => {
                let kind = match value {
                    Value::Vector(_) => Kind::Vector,
                    Value::Set(_) => Kind::Set,
                    _ => Kind::List,
                };
                let cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
                let size = cursor.remaining().filter(|_| !is_lazy);
                let (left, counted) = match size {
                    Some(size) => {
                        place.collection(kind, size);
                        (usize::MAX, None)
                    }
                    None => (if is_lazy { OF_A_LAZY_ONE } else { usize::MAX }, Some(0)),
                };
                self.open.push(Open::Items { cursor, at, left, counted });
            }
            other if other.is_scalar() && !other.is_function() && !matches!(other, Value::Cell(_)) => {
                place.samples.add(sample(other), most)
            }
            other => {
                if !place.kinds.contains(&other.kind()) {
                    place.kinds.push(other.kind());
                }
            }
        }
    }

    /// Builds the answer from the places that fit into it, shallowest first.
    fn answer(mut self) -> Value {
        let mut by_depth: Vec<usize> = (0..self.places.len()).collect();
        by_depth.sort_by_key(|at| self.places[*at].depth);
        let mut room = ANSWER;
        let mut is_full = false;
        for at in by_depth {
            let place = &self.places[at];
            let key = place.part.as_ref().map_or(0, |key| printed(key).len() + 3);
            let parts: usize = self.scalars(at).iter().map(|part| printed(part).len() + 1).sum();
            let length = key + parts + 8 * place.collections.len();
            is_full |= length > room;
            if is_full {
                self.places[at].seen = 0;
            } else {
                room -= length;
            }
        }
        let shape = self.shape(0);
        if self.is_complete {
            return shape;
        }
        let note = format!("only {} values were examined", self.looked_at);
        Value::list(vec![Value::symbol("partial"), shape, Value::string(&note)])
    }

    /// Describes the values at a place.
    fn shape(&self, at: usize) -> Value {
        let place = &self.places[at];
        let mut all: Vec<Value> =
            place.collections.iter().map(|(kind, sizes)| self.collection(place, *kind, sizes)).collect();
        all.extend(self.scalars(at));
        match (all.len(), all.pop()) {
            (1, Some(only)) => only,
            (_, Some(last)) => Value::list([Value::symbol("or")].into_iter().chain(all).chain([last]).collect()),
            (_, None) => Value::symbol(MARK),
        }
    }

    fn collection(&self, place: &Place, kind: Kind, sizes: &Range<u64>) -> Value {
        if kind == Kind::Map {
            return self.map(place, sizes);
        }
        let mut items = Vec::new();
        if kind == Kind::Set {
            items.push(Value::symbol("set"));
        }
        if sizes.greatest > 0 {
            let child = place.by_part.get(&None).filter(|child| self.is_shown(**child));
            items.push(child.map_or_else(|| Value::symbol(MARK), |child| self.shape(*child)));
            let is_unfinished = place.is_unfinished && kind == Kind::List;
            if sizes.greatest > 1 || sizes.least == 0 || is_unfinished {
                let plus = if is_unfinished { "+" } else { "" };
                items.push(Value::symbol(&format!("×{}{plus}", sizes.span())));
            }
        }
        if kind == Kind::Vector { Value::vector(items) } else { Value::list(items) }
    }

    fn map(&self, place: &Place, sizes: &Range<u64>) -> Value {
        let mut map = Map::default();
        let mut is_cut = place.is_cut;
        for child in &place.children {
            let key = match (&self.places[*child].part, place.dictionary) {
                (Some(key), _) => key.clone(),
                (None, Some(kind)) => {
                    Value::list(vec![Value::symbol(kind), Value::symbol(&format!("×{}", sizes.span()))])
                }
                // The items of other collections at this place.
                (None, None) => continue,
            };
            if self.is_shown(*child) && !map.contains_key(&key) {
                map.insert(key, self.shape(*child));
            } else {
                is_cut = true;
            }
        }
        if is_cut {
            map.insert(Value::symbol(MARK), Value::symbol(MARK));
        }
        Value::Map(Arc::new(map))
    }

    fn is_shown(&self, at: usize) -> bool {
        self.places[at].seen > 0
    }

    /// Describes the values at a place that are no collections.
    fn scalars(&self, at: usize) -> Vec<Value> {
        let place = &self.places[at];
        let mut all = Vec::new();
        match &place.integers {
            Range { count: 0, .. } => {}
            Range { least, greatest, .. } if least == greatest => all.push(Value::Int(*least)),
            range => all.push(Value::symbol(&format!("int:{}", range.span()))),
        }
        match &place.doubles {
            Range { count: 0, .. } => {}
            Range { least, greatest, .. } if least.to_bits() == greatest.to_bits() => all.push(Value::Float(*least)),
            Range { least, greatest, .. } => {
                let (least, greatest) = (printed(&Value::Float(*least)), printed(&Value::Float(*greatest)));
                all.push(Value::symbol(&format!("double:{least}..{greatest}")));
            }
        }
        if place.strings.count > 0 {
            match (place.strings.greatest > SHORT, self.samples) {
                (true, _) => {
                    let mut parts = vec![Value::symbol("string")];
                    parts.extend(place.string_samples.values.first().filter(|_| self.samples > 0).cloned());
                    parts.push(Value::symbol(&format!("chars:{}", place.strings.span())));
                    all.push(Value::list(parts));
                }
                (false, 0) => all.push(Value::symbol("string")),
                (false, most) => all.extend(place.string_samples.shown(most)),
            }
        }
        if place.samples.seen > 0 {
            if self.samples > 0 {
                all.extend(place.samples.shown(self.samples));
            } else {
                let mut kinds: Vec<&'static str> = place.samples.values.iter().map(Value::kind).collect();
                kinds.dedup();
                all.extend(kinds.iter().map(named));
            }
        }
        all.extend(place.kinds.iter().map(named));
        let is_nil = place.nils > 0 && all.is_empty() && place.collections.is_empty();
        match place.nils {
            0 => {}
            _ if is_nil => all.push(Value::Nil),
            nils => all.push(Value::symbol(&format!("nil×{nils}"))),
        }
        let expected = if place.part.is_some() { self.places[place.parent].maps } else { 0 };
        let missing = expected.saturating_sub(place.seen);
        if missing > 0 {
            all.push(Value::symbol(&format!("absent×{missing}")));
        }
        all
    }
}

impl Place {
    fn collection(&mut self, kind: Kind, size: u64) {
        match self.collections.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sizes)) => sizes.add(size),
            None => {
                let mut sizes = Range::default();
                sizes.add(size);
                self.collections.push((kind, sizes));
            }
        }
    }

    fn add_key_of_dictionary(&mut self, key: &Value) {
        let kind = bare(key.kind());
        match self.dictionary {
            Some(known) if known != kind => self.dictionary = Some("any"),
            _ => self.dictionary = Some(kind),
        }
    }
}

/// True if the keys of a map are data rather than field names.
fn is_dictionary(map: &Map) -> bool {
    map.len() > KEYS
}

/// Returns a kind of value without its article.
fn bare(kind: &'static str) -> &'static str {
    kind.split_once(' ').map_or(kind, |(_, kind)| kind)
}

fn named(kind: &&'static str) -> Value {
    Value::symbol(&bare(kind).replace(' ', "-"))
}

/// Shortens a scalar to [`SAMPLE`] characters on a single line.
fn sample(value: &Value) -> Value {
    match value {
        Value::Str(text) => Value::string(&shortened(text.as_str())),
        Value::Keyword(name) => Value::keyword(&shortened(name.as_str())),
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Char(_) => value.clone(),
        other => {
            let Ok(printed) = print_within(other, SAMPLE, true, &mut Free);
            if printed.truncated.is_none() { other.clone() } else { Value::string(&shortened(&printed.text)) }
        }
    }
}

fn shortened(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SAMPLE {
            out.push_str(MARK);
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

fn printed(value: &Value) -> String {
    let Ok(printed) = print_within(value, 4 * SAMPLE, true, &mut Free);
    printed.text
}
