//! Regular expressions: linear in time, bounded in size.
//!
//! A search is paid for by the length of the text and the size of the expression before it begins.

use super::Builtin;
use super::arguments::{string, take};
use super::text::{excerpt, textual};
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;
use crate::lang::value::pattern::{Draft, LONGEST, Pattern};
use regex::Captures;
use std::ops::Range;
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "re-pattern",
        &["[s]"],
        "The regex that the string spells.",
        &[("(re-find (re-pattern \"a+\") \"baa\")", "\"aa\"")],
        re_pattern,
    ),
    Builtin::new(
        "re-find",
        &["[matcher]", "[regex s]"],
        "The first match in the string, or nil; with groups, a vector of the match and the groups. Of a matcher, the next match.",
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
        "The match of the whole string, or nil; with groups, a vector of the match and the groups.",
        &[("(re-matches #\"\\d+\" \"12\")", "\"12\""), ("(re-matches #\"\\d+\" \"12b\")", "nil")],
        re_matches,
    ),
    Builtin::new(
        "re-seq",
        &["[regex s]"],
        "All matches in the string, each as `re-find` gives it; nil if there are none.",
        &[("(re-seq #\"\\d\" \"a1b2\")", "(\"1\" \"2\")"), ("(re-seq #\"x\" \"a\")", "nil")],
        re_seq,
    ),
    Builtin::new(
        "Pattern/quote",
        &["[s]"],
        "The regex, as a string, that matches just this text.",
        &[("(re-find (re-pattern (Pattern/quote \"a.b\")) \"axb a.b\")", "\"a.b\"")],
        quote,
    ),
    Builtin::new("regex?", &["[x]"], "True for a regex.", &[("(regex? #\"a\")", "true")], |_, arguments| {
        Ok(Value::Bool(matches!(arguments[0], Value::Regex(_))))
    }),
];

/// Its full name.
pub const ALIASES: &[(&str, &str)] = &[("java.util.regex.Pattern/quote", "Pattern/quote")];

/// What compiling costs, beside a step for each unit of weight.
const COMPILING: u64 = 500;

/// How many expressions an evaluation remembers that were compiled as it ran.
const REMEMBERED: usize = 16;

/// The heaviest expression that is remembered.
const REMEMBERED_WEIGHT: u64 = 2_000;

/// An expression that is short enough to be compiled.
fn draft(pattern: &str) -> Result<Draft<'_>, Error> {
    Draft::new(pattern).ok_or_else(|| {
        let length = pattern.len();
        Error::new("InvalidRegex", format!("a regex may have at most {LONGEST} bytes, got {length}"))
            .suggest("look for a long text with `str/index-of` and `str/includes?`")
    })
}

fn compile(draft: Draft<'_>, pattern: &str) -> Result<Arc<Pattern>, Error> {
    draft.compile().map(Arc::new).map_err(|error| {
        let said = error.to_string();
        let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        Error::new("InvalidRegex", format!("the regex `{}` is not valid: {last}", excerpt(pattern)))
            .suggest("the syntax is that of Rust's regex crate: no look-around and no back-references")
    })
}

/// Compiles an expression of the language's own code, for which no program pays.
///
/// # Errors
/// `InvalidRegex` with what the library says of it.
pub fn compile_own(pattern: &str) -> Result<Arc<Pattern>, Error> {
    compile(draft(pattern)?, pattern)
}

/// A literal as a value of its own: no two are equal, but those that are written alike are compiled once.
///
/// # Errors
/// As [`compile_running`].
pub fn literal(machine: &mut Machine, pattern: &str) -> Outcome<Arc<Pattern>> {
    machine.charge(1 + pattern.len() as u64 / 64)?;
    compile_running(machine, pattern).map(|compiled| Arc::new(Pattern::clone(&compiled)))
}

/// Compiles an expression as the program runs; the last few are remembered.
///
/// # Errors
/// `InvalidRegex`; limits.
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

/// Pays for one search through a text.
///
/// # Errors
/// Limits.
pub fn pay_for_search(machine: &mut Machine, regex: &Pattern, text: &str) -> Outcome<()> {
    machine.charge(1 + (text.len() as u64).saturating_mul(regex.weight()) / 64)
}

/// The matches in a text, one behind the other as Java finds them: an empty one may follow directly
/// upon another match.
pub struct Search<'t> {
    regex: &'t Pattern,
    text: &'t str,
    next: Option<usize>,
}

impl<'t> Search<'t> {
    /// A search from the beginning, paid for as if it were one.
    ///
    /// # Errors
    /// Limits.
    pub fn new(machine: &mut Machine, regex: &'t Pattern, text: &'t str) -> Outcome<Search<'t>> {
        pay_for_search(machine, regex, text)?;
        Ok(Search::from(regex, text, 0))
    }

    /// As [`Search::new`], from a byte of the text on, for whoever pays for what was passed afterwards.
    pub fn from(regex: &'t Pattern, text: &'t str, at: usize) -> Search<'t> {
        Search { regex, text, next: Some(at).filter(|at| text.is_char_boundary(*at)) }
    }

    /// The byte from which the search will go on; none behind the last match.
    pub fn place(&self) -> Option<usize> {
        self.next
    }

    /// The next match, with its groups.
    ///
    /// # Errors
    /// Limits.
    pub fn next(&mut self, machine: &mut Machine) -> Outcome<Option<Captures<'t>>> {
        let Some(at) = self.next else { return Ok(None) };
        self.look(machine, at)?;
        let found = self.regex.captures_at(self.text, at);
        self.pass(found.as_ref().and_then(|found| found.get(0)).map(|found| found.range()));
        Ok(found)
    }

    /// Where the next match stands.
    ///
    /// # Errors
    /// Limits.
    pub fn next_place(&mut self, machine: &mut Machine) -> Outcome<Option<Range<usize>>> {
        let Some(at) = self.next else { return Ok(None) };
        let found = match self.regex.simple() {
            Some(simple) => {
                machine.charge(1)?;
                simple.find(self.text, at)
            }
            None => {
                self.look(machine, at)?;
                self.regex.find_at(self.text, at).map(|found| found.range())
            }
        };
        self.pass(found.clone());
        Ok(found)
    }

    /// Each search may look at all the rest before it settles on a short match, which steps do not show: the clock
    /// has to.
    fn look(&self, machine: &mut Machine, at: usize) -> Outcome<()> {
        machine.charge(1)?;
        if self.text.len() - at > 1 << 14 { machine.check_time() } else { Ok(()) }
    }

    /// Goes on behind a match.
    fn pass(&mut self, found: Option<Range<usize>>) {
        self.next = found.and_then(|found| match found.is_empty() {
            false => Some(found.end),
            true => self.text[found.end..].chars().next().map(|passed| found.end + passed.len_utf8()),
        });
    }
}

/// A match as programs see it: the text, or the text and its groups.
pub fn groups(captures: &Captures<'_>) -> Value {
    let group = |at: usize| captures.get(at).map_or(Value::Nil, |group| Value::string(group.as_str()));
    match captures.len() {
        1 => group(0),
        count => Value::vector((0..count).map(group).collect()),
    }
}

/// The regex and the text of `(re-find regex s)`, in either order.
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
    pay_for_search(machine, &regex, &text)?;
    if regex.captures_len() == 1 {
        return Ok(regex.find(&text).map_or(Value::Nil, |found| Value::string(found.as_str())));
    }
    Ok(regex.captures(&text).map_or(Value::Nil, |found| groups(&found)))
}

fn re_matches(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (regex, text) = regex_and_text(arguments)?;
    let text = textual(machine, &text)?;
    matches(machine, &regex, &text)
}

/// The match of the whole text, or nil.
///
/// # Errors
/// Limits.
pub fn matches(machine: &mut Machine, regex: &Pattern, text: &str) -> Outcome<Value> {
    pay_for_search(machine, regex, text)?;
    match regex.captures(text) {
        None => Ok(Value::Nil),
        Some(found) if found.get(0).is_some_and(|found| found.len() == text.len()) => Ok(groups(&found)),
        // The leftmost match is not the whole text, but another might be, as with `a|ab` and "ab".
        Some(_) => {
            let anchored = match compile_running(machine, &format!("\\A(?:{})\\z", regex.as_str())) {
                Ok(anchored) => anchored,
                // A comment of the `x` flag at the end hides the closing bracket.
                Err(_) => compile_running(machine, &format!("\\A(?:{}\n)\\z", regex.as_str()))?,
            };
            pay_for_search(machine, &anchored, text)?;
            Ok(anchored.captures(text).map_or(Value::Nil, |found| groups(&found)))
        }
    }
}

fn re_seq(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (regex, text) = regex_and_text(arguments)?;
    let text = textual(machine, &text)?;
    let mut search = Search::new(machine, &regex, &text)?;
    let mut out = Vec::new();
    let has_groups = regex.captures_len() > 1;
    loop {
        let (len, found) = if has_groups {
            let Some(found) = search.next(machine)? else { break };
            (found.get(0).map_or(0, |whole| whole.len()), groups(&found))
        } else {
            let Some(place) = search.next_place(machine)? else { break };
            (place.len(), Value::string(&text[place]))
        };
        machine.charge(len as u64 / 64)?;
        out.push(found);
        machine.grown(out.len())?;
    }
    Ok(if out.is_empty() { Value::Nil } else { Value::list(out) })
}
