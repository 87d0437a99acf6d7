//! Regular expressions: linear in time, bounded in size.
//!
//! Every search goes through [`Search`], which reserves the memory of its tables, charges for its work as it proceeds,
//! and can be interrupted at any point.

use super::arguments::{string, take};
use super::text::{excerpt, textual};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::matching::{Slots, Tables, Unfit};
use crate::value::pattern::{Draft, LONGEST, Pattern};
use regex_automata::util::primitives::NonMaxUsize;
use std::ops::Range;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "re-pattern",
        &["[s]"],
        "The regex compiled from a string.",
        &[("(re-find (re-pattern \"a+\") \"baa\")", "\"aa\"")],
        re_pattern,
    ),
    Builtin::new(
        "re-find",
        &["[matcher]", "[regex s]"],
        "The first match in the string, or nil; with groups, a vector of the match and its groups. With a matcher, its \
         next match.",
        &[
            ("(re-find #\"\\d+\" \"a12b3\")", "\"12\""),
            ("(re-find #\"(\\w)=(\\d)\" \"a=1\")", "[\"a=1\" \"a\" \"1\"]"),
            ("(re-find #\"x\" \"a\")", "nil"),
        ],
        re_find,
    ),
    Builtin::new(
        "re-matches",
        &["[regex s]"],
        "The match of the whole string, or nil; with groups, a vector of the match and its groups.",
        &[("(re-matches #\"\\d+\" \"12\")", "\"12\""), ("(re-matches #\"\\d+\" \"12b\")", "nil")],
        re_matches,
    ),
    Builtin::new(
        "re-seq",
        &["[regex s]"],
        "All matches in the string, each as returned by `re-find`; nil if none.",
        &[("(re-seq #\"\\d\" \"a1b2\")", "(\"1\" \"2\")"), ("(re-seq #\"x\" \"a\")", "nil")],
        re_seq,
    ),
    Builtin::new(
        "Pattern/quote",
        &["[s]"],
        "A regex, as a string, that matches the text literally.",
        &[("(re-find (re-pattern (Pattern/quote \"a.b\")) \"axb a.b\")", "\"a.b\"")],
        quote,
    ),
    Builtin::new("regex?", &["[x]"], "True for a regex.", &[("(regex? #\"a\")", "true")], |_, arguments| {
        Ok(Value::Bool(matches!(arguments[0], Value::Regex(_))))
    }),
];

/// Its fully qualified name.
pub const ALIASES: &[(&str, &str)] = &[("java.util.regex.Pattern/quote", "Pattern/quote")];

/// Base cost of compiling an expression, in addition to one step per unit of weight.
const COMPILING: u64 = 500;

/// Maximum number of expressions compiled at run time that an evaluation caches.
const REMEMBERED: usize = 16;

/// Maximum weight of an expression that is cached.
const REMEMBERED_WEIGHT: u64 = 2_000;

/// Parses an expression that is short enough to be compiled.
fn draft(pattern: &str) -> Result<Draft<'_>, Error> {
    Draft::new(pattern).ok_or_else(|| {
        let length = pattern.len();
        Error::new("InvalidRegex", format!("a regex may have at most {LONGEST} bytes, got {length}"))
            .suggest("look for a long text with `str/index-of` and `str/includes?`")
    })
}

fn compile(draft: Draft<'_>, pattern: &str) -> Result<Arc<Pattern>, Error> {
    draft.compile().map(Arc::new).map_err(|unfit| {
        let suggestion = match unfit {
            Unfit::Groups(..) => "write `(?:…)` where the text of a group is not needed",
            _ => "the syntax is that of Rust's regex crate: no look-around and no back-references",
        };
        Error::new("InvalidRegex", format!("the regex `{}` is not valid: {unfit}", excerpt(pattern)))
            .suggest(suggestion)
    })
}

/// Compiles an expression of the language's own code, without charging the program.
///
/// # Errors
/// Returns `InvalidRegex` with the message of the regex library.
pub fn compile_own(pattern: &str) -> Result<Arc<Pattern>, Error> {
    compile(draft(pattern)?, pattern)
}

/// Creates a value for a regex literal. No two such values are equal, but literals with the same pattern share one
/// compiled expression.
///
/// # Errors
/// See [`compile_running`].
pub fn literal(machine: &mut Machine, pattern: &str) -> Outcome<Arc<Pattern>> {
    machine.charge(1 + pattern.len() as u64 / 64)?;
    compile_running(machine, pattern).map(|compiled| Arc::new(Pattern::clone(&compiled)))
}

/// Compiles an expression at run time, through a small cache that is cleared when full.
///
/// # Errors
/// Returns `InvalidRegex`, or an error if a limit is exceeded.
pub fn compile_running(machine: &mut Machine, pattern: &str) -> Outcome<Arc<Pattern>> {
    if let Some(known) = machine.core.regexes.get(pattern) {
        return Ok(known.clone());
    }
    let draft = draft(pattern)?;
    let weight = draft.weight();
    machine.charge(COMPILING + weight)?;
    machine.reserve(draft.room())?;
    let regex = compile(draft, pattern)?;
    if weight <= REMEMBERED_WEIGHT {
        if machine.core.regexes.len() >= REMEMBERED {
            machine.core.regexes.clear();
        }
        machine.core.regexes.insert(pattern.to_string(), regex.clone());
    }
    Ok(regex)
}

/// Maximum number of search tables that an evaluation keeps, each for one expression.
const TABLES: usize = 4;

/// Takes the kept search tables of an expression, or allocates new ones.
fn tables(machine: &mut Machine, regex: &Pattern) -> Outcome<Box<Tables>> {
    let kept = &mut machine.core.tables;
    if let Some(at) = kept.iter().rposition(|(known, _)| Arc::ptr_eq(known, regex.compiled())) {
        return Ok(kept.swap_remove(at).1);
    }
    if kept.len() >= TABLES {
        kept.remove(0);
    }
    machine.reserve(regex.compiled().room())?;
    Ok(Box::new(regex.compiled().tables()))
}

/// An iterator over the matches in a text, with Java's semantics: an empty match may directly follow another match.
/// Every search of a program uses this type, which charges for the work actually done.
pub struct Search<'t> {
    regex: &'t Pattern,
    text: &'t str,
    next: Option<usize>,
    slots: Slots,
}

/// A match and its groups.
pub struct Found<'s, 't> {
    text: &'t str,
    slots: &'s Slots,
}

impl<'t> Found<'_, 't> {
    /// Returns the number of groups, including the whole match.
    pub fn group_count(&self) -> usize {
        self.slots.len() / 2
    }

    /// Returns the byte range of a group, if it took part in the match. Group 0 is the whole match.
    pub fn place(&self, group: usize) -> Option<Range<usize>> {
        let (start, end) = (self.slots.get(2 * group)?.as_ref()?, self.slots.get(2 * group + 1)?.as_ref()?);
        Some(start.get()..end.get())
    }

    /// Returns the byte range of the match.
    pub fn whole(&self) -> Range<usize> {
        self.place(0).unwrap_or_default()
    }

    /// Returns the text of a group, if it took part in the match.
    pub fn get(&self, group: usize) -> Option<&'t str> {
        self.place(group).map(|place| &self.text[place])
    }
}

impl<'t> Search<'t> {
    /// Creates a search that starts at the beginning of the text.
    pub fn new(regex: &'t Pattern, text: &'t str) -> Search<'t> {
        Search::from(regex, text, 0)
    }

    /// Creates a search that starts at a byte offset. It finds nothing if the offset is not a character boundary.
    pub fn from(regex: &'t Pattern, text: &'t str, at: usize) -> Search<'t> {
        Search { regex, text, next: Some(at).filter(|at| text.is_char_boundary(*at)), slots: Slots::new() }
    }

    /// Returns the byte offset at which the search continues, or `None` after the last match.
    pub fn place(&self) -> Option<usize> {
        self.next
    }

    /// Finds the next match, with its groups.
    ///
    /// # Errors
    /// Returns an error if a limit is exceeded.
    pub fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Found<'_, 't>>> {
        let found = self.find(machine, true)?;
        self.pass(found);
        Ok(self.next_found(found))
    }

    /// Finds the byte range of the next match.
    ///
    /// # Errors
    /// Returns an error if a limit is exceeded.
    pub fn next_place(&mut self, machine: &mut Machine) -> Outcome<Option<Range<usize>>> {
        let found = self.find(machine, false)?;
        self.pass(found);
        Ok(found.map(|(start, end)| start..end))
    }

    fn next_found(&self, found: Option<(usize, usize)>) -> Option<Found<'_, 't>> {
        found.map(|_| Found { text: self.text, slots: &self.slots })
    }

    /// Finds the bounds of the next match. With `with_groups`, also stores the bounds of the groups in the slots.
    #[inline]
    fn find(&mut self, machine: &mut Machine, with_groups: bool) -> Outcome<Option<(usize, usize)>> {
        let Some(at) = self.next else { return Ok(None) };
        if let Some(simple) = self.regex.simple() {
            let found = simple.find(self.text, at, machine)?;
            if with_groups {
                self.slots.clear();
                let places = found.iter().flat_map(|found| [found.start, found.end]);
                self.slots.extend(places.map(NonMaxUsize::new));
            }
            return Ok(found.map(|found| (found.start, found.end)));
        }
        self.find_compiled(machine, at, with_groups)
    }

    /// Finds the bounds of the next match with the automata.
    #[inline(never)]
    fn find_compiled(
        &mut self,
        machine: &mut Machine,
        at: usize,
        with_groups: bool,
    ) -> Outcome<Option<(usize, usize)>> {
        machine.charge(1)?;
        let mut tables = tables(machine, self.regex)?;
        let compiled = self.regex.compiled();
        let found = compiled.find(&mut tables, self.text, at, with_groups, &mut self.slots, machine)?;
        machine.core.tables.push((compiled.clone(), tables));
        let whole = Found { text: self.text, slots: &self.slots }.whole();
        Ok(found.then_some((whole.start, whole.end)))
    }

    /// Advances past a match, by one character if the match is empty.
    #[inline]
    fn pass(&mut self, found: Option<(usize, usize)>) {
        self.next = found.and_then(|(start, end)| match start == end {
            false => Some(end),
            true => self.text[end..].chars().next().map(|passed| end + passed.len_utf8()),
        });
    }
}

/// Converts a match to a value: its text, or a vector of the text and its groups.
///
/// # Errors
/// Returns an error if a limit is exceeded: the groups of a long match can add up to much text.
pub fn groups(machine: &mut Machine, found: &Found<'_, '_>) -> Outcome<Value> {
    const SHORT: usize = 1 << 12;
    let length: usize = (0..found.group_count()).filter_map(|at| found.place(at)).map(|place| place.len()).sum();
    if length >= SHORT {
        machine.charge(length as u64 / 64)?;
        machine.reserve(length as u64)?;
    }
    let group = |at: usize| found.get(at).map_or(Value::Nil, Value::string);
    Ok(match found.group_count() {
        1 => group(0),
        count => Value::vector((0..count).map(group).collect()),
    })
}

/// Takes the regex and the text of `(re-find regex s)`, in either order.
fn regex_and_text(arguments: &mut [Value]) -> Result<(Arc<Pattern>, Value), Error> {
    let (first, second) = (take(arguments, 0), take(arguments, 1));
    match (first, second) {
        (Value::Regex(regex), text) | (text @ Value::Str(_), Value::Regex(regex)) => Ok((regex, text)),
        (first, _) => Err(not_a_regex(&first)),
    }
}

#[cold]
fn not_a_regex(value: &Value) -> Error {
    let error = Error::expected("a regex", value);
    match value {
        Value::Str(_) => error.suggest("write a regex as `#\"…\"`, or make one with `(re-pattern s)`"),
        _ => error,
    }
}

fn quote(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = string(&arguments[0])?;
    super::text::ask_for_copy(machine, text, 3)?;
    Ok(Value::string(&format!("\\Q{}\\E", text.replace("\\E", "\\E\\\\E\\Q"))))
}

fn re_pattern(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        regex @ Value::Regex(_) => Ok(regex),
        pattern => Ok(Value::Regex(compile_running(machine, string(&pattern)?)?)),
    }
}

fn re_find(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [matcher] = arguments {
        return super::matchers::next(machine, matcher);
    }
    let (regex, text) = regex_and_text(arguments)?;
    let text = textual(machine, &text)?;
    match Search::new(&regex, &text).next(machine)? {
        Some(found) => groups(machine, &found),
        None => Ok(Value::Nil),
    }
}

fn re_matches(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (regex, text) = regex_and_text(arguments)?;
    let text = textual(machine, &text)?;
    matches(machine, &regex, &text)
}

/// Returns the match of the whole text, or nil.
///
/// # Errors
/// Returns an error if a limit is exceeded.
pub fn matches(machine: &mut Machine, regex: &Pattern, text: &str) -> Outcome<Value> {
    let mut search = Search::new(regex, text);
    match search.next(machine)? {
        None => return Ok(Value::Nil),
        Some(found) if found.whole() == (0..text.len()) => return groups(machine, &found),
        // The leftmost match is not the whole text, but another might be, as with `a|ab` and "ab".
        Some(_) => {}
    }
    let anchored = anchored(machine, regex)?;
    match Search::new(&anchored, text).next(machine)? {
        Some(found) => groups(machine, &found),
        None => Ok(Value::Nil),
    }
}

/// Returns the regex that matches only the whole text.
///
/// # Errors
/// Returns an error if a limit is exceeded.
pub fn anchored(machine: &mut Machine, regex: &Pattern) -> Outcome<Arc<Pattern>> {
    between(machine, regex, "\\z")
}

/// Returns the regex that matches only at the start of a text.
///
/// # Errors
/// Returns an error if a limit is exceeded.
pub fn at_start(machine: &mut Machine, regex: &Pattern) -> Outcome<Arc<Pattern>> {
    between(machine, regex, "")
}

/// Returns the regex that matches only from the start of a text to what `end` matches.
fn between(machine: &mut Machine, regex: &Pattern, end: &str) -> Outcome<Arc<Pattern>> {
    match compile_running(machine, &format!("\\A(?:{}){end}", regex.as_str())) {
        Ok(anchored) => Ok(anchored),
        // A trailing comment under the `x` flag swallows the closing parenthesis; a newline ends the comment.
        Err(_) => compile_running(machine, &format!("\\A(?:{}\n){end}", regex.as_str())),
    }
}

fn re_seq(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (regex, text) = regex_and_text(arguments)?;
    let text = textual(machine, &text)?;
    let mut search = Search::new(&regex, &text);
    let mut out = Vec::new();
    while let Some(found) = search.next(machine)? {
        machine.charge(found.whole().len() as u64 / 64)?;
        out.push(groups(machine, &found)?);
        machine.grown(out.len())?;
    }
    Ok(if out.is_empty() { Value::Nil } else { Value::list(out) })
}
