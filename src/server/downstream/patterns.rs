//! Measures the patterns of a schema before the validator compiles them.
//!
//! A pattern of a dozen bytes can compile to gigabytes: nested repetitions multiply, with or without parentheses. Its
//! automaton is therefore built once under a size limit, and its states are counted.

use std::collections::HashMap;

use regex_automata::nfa::thompson;
use serde_json::Value;

use super::expansion::Unchecked;

/// Maximum number of patterns in one schema: each has a separate cache.
const MOST: usize = 1_000;
/// Maximum length of a pattern, in bytes: translating one takes quadratic time in the worst case.
const LONGEST: usize = 8 << 10;
/// Maximum number of states of a pattern; larger ones are not compiled.
const MOST_STATES: u64 = 50_000;
/// Maximum total number of states of the patterns of one schema.
const MOST_STATES_TOGETHER: u64 = 200_000;
/// Maximum memory of the automaton of one pattern, in bytes: room for [`MOST_STATES`].
pub(super) const AUTOMATON: usize = 4 << 20;
/// Memory of a state in the several automata that the validator builds for a pattern, in bytes.
const STATE_BYTES: u64 = 200;

/// The sizes of all patterns of one schema.
#[derive(Debug, Default)]
pub(super) struct Patterns<'s> {
    /// The number of states of each pattern; `None` for one that the validator cannot match.
    sizes: HashMap<&'s str, Option<u64>>,
    together: u64,
}

impl<'s> Patterns<'s> {
    /// Measures the patterns of a schema.
    ///
    /// # Errors
    /// Returns `Beyond` if they are too many or too large.
    pub(super) fn of(schema: &'s Value) -> Result<Patterns<'s>, Unchecked> {
        let mut patterns = Patterns::default();
        patterns.add_all(schema)?;
        Ok(patterns)
    }

    /// The number of states of a pattern; 0 for one that is not matched.
    pub(super) fn states(&self, pattern: &str) -> u64 {
        self.sizes.get(pattern).copied().flatten().unwrap_or(0)
    }

    /// True if the validator cannot match the pattern: it uses look-around or back-references, or is invalid.
    pub(super) fn is_unsupported(&self, pattern: &str) -> bool {
        self.sizes.get(pattern) == Some(&None)
    }

    /// The approximate memory of all compiled patterns, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.together.saturating_mul(STATE_BYTES)
    }

    /// Returns the schema without the `pattern` keywords that the validator cannot match, and the removed patterns;
    /// `None` if there are none.
    pub(super) fn without_unsupported(&self, schema: &Value) -> Option<(Value, Vec<String>)> {
        if !self.sizes.values().any(Option::is_none) {
            return None;
        }
        let (mut schema, mut removed) = (schema.clone(), Vec::new());
        self.remove_unsupported(&mut schema, &mut removed);
        (!removed.is_empty()).then_some((schema, removed))
    }

    fn remove_unsupported(&self, schema: &mut Value, removed: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                let pattern = fields.get("pattern").and_then(Value::as_str);
                if let Some(pattern) = pattern.filter(|pattern| self.is_unsupported(pattern)).map(str::to_owned) {
                    fields.remove("pattern");
                    removed.push(pattern);
                }
                let inner = fields.iter_mut().filter(|(keyword, _)| !is_constant(keyword));
                inner.for_each(|(_, inner)| self.remove_unsupported(inner, removed));
            }
            Value::Array(items) => items.iter_mut().for_each(|inner| self.remove_unsupported(inner, removed)),
            _ => {}
        }
    }

    fn add_all(&mut self, schema: &'s Value) -> Result<(), Unchecked> {
        match schema {
            Value::Object(fields) => {
                if let Some(pattern) = fields.get("pattern").and_then(Value::as_str) {
                    self.add(pattern)?;
                }
                if let Some(Value::Object(members)) = fields.get("patternProperties") {
                    members.keys().try_for_each(|pattern| self.add(pattern))?;
                }
                let mut inner = fields.iter().filter(|(keyword, _)| !is_constant(keyword));
                inner.try_for_each(|(_, inner)| self.add_all(inner))
            }
            Value::Array(items) => items.iter().try_for_each(|inner| self.add_all(inner)),
            _ => Ok(()),
        }
    }

    fn add(&mut self, pattern: &'s str) -> Result<(), Unchecked> {
        if self.sizes.contains_key(pattern) {
            return Ok(());
        }
        let large = || Unchecked::beyond("has more or larger patterns than are supported");
        if self.sizes.len() == MOST || pattern.len() > LONGEST {
            return Err(large());
        }
        let states = states(pattern).ok_or_else(large)?;
        self.together += states.unwrap_or(0);
        if self.together > MOST_STATES_TOGETHER {
            return Err(large());
        }
        self.sizes.insert(pattern, states);
        Ok(())
    }
}

/// True for keywords whose value is data, in which `pattern` is an ordinary field.
fn is_constant(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "example" | "examples")
}

/// Counts the states of a pattern. `Some(None)` means that it cannot be matched, `None` that it is too large.
#[expect(clippy::option_option, reason = "too large and not matched are different outcomes")]
fn states(pattern: &str) -> Option<Option<u64>> {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return Some(None) };
    let limited = thompson::Config::new().nfa_size_limit(Some(AUTOMATON));
    match thompson::Compiler::new().configure(limited).build(&translated) {
        Ok(automaton) => Some(automaton.states().len() as u64).filter(|states| *states <= MOST_STATES).map(Some),
        Err(problem) if problem.size_limit().is_some() => None,
        Err(_) => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repetitions_of_repetitions_multiply() {
        for pattern in ["a{3}{3}{3}{3}{3}{3}{3}{3}{3}b|c", "(((((((((a{3}){3}){3}){3}){3}){3}){3}){3}){3})b|c"] {
            let states = states(pattern).flatten().expect("a pattern of usual size");
            assert!((19_683..40_000).contains(&states), "{states} states of {pattern}");
        }
        for pattern in ["a{30}{30}{30}{30}b", "(a{1,100}){1,100}{1,100}", r"[\p{L}\p{N}]{1000}{1000}"] {
            assert_eq!(states(pattern), None, "{pattern}");
            let schema = json!({"properties": {"x": {"pattern": pattern}}});
            assert!(matches!(Patterns::of(&schema), Err(Unchecked::Beyond(_))), "{pattern}");
        }
    }

    #[test]
    fn usual_patterns_are_small() {
        let usual = ["^[a-z_]{1,64}$", r"^\d{4}-\d{2}-\d{2}$", r"^[\w.+-]+@[\w-]+\.[\w.]+$", r"^[\p{L}\p{N}_-]{1,64}$"];
        for pattern in usual {
            assert!(matches!(states(pattern), Some(Some(1..=50_000))), "{pattern}: {:?}", states(pattern));
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_matched_leaves_the_rest_of_its_schema() {
        let schema = json!({
            "properties": {"a": {"type": "string", "pattern": "^(?=.*x).*$"}, "pattern": {"pattern": "^x$"}},
            "default": {"pattern": "(?=kept)"},
        });
        let patterns = Patterns::of(&schema).expect("small patterns");
        let (without, removed) = patterns.without_unsupported(&schema).expect("one to remove");
        assert_eq!(removed, ["^(?=.*x).*$"]);
        let expected = json!({
            "properties": {"a": {"type": "string"}, "pattern": {"pattern": "^x$"}},
            "default": {"pattern": "(?=kept)"},
        });
        assert_eq!(without, expected);
    }

    #[test]
    fn many_patterns_are_bounded_together() {
        let patterns: Vec<Value> =
            (0..900).map(|at| json!({"pattern": format!("[b-y]{{10}}{{10}}{{10}}{at}")})).collect();
        let schema = json!({"anyOf": patterns});
        assert!(matches!(Patterns::of(&schema), Err(Unchecked::Beyond(_))));
    }
}
