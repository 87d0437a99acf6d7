//! Detects untrusted text in replies that reads like instructions to the model, and marks it before the model reads it.
//!
//! The value itself is not changed. Patterns are matched against [`views`] of a text without common obfuscations:
//! invisible characters, markup, character references, look-alike letters, and line ends, which printed strings contain
//! as `\n`. This finds the usual phrases of some languages and no others: it is a heuristic warning, not a security
//! boundary.

mod declarations;
mod rules;
mod views;
mod words;

use std::sync::Arc;

use regex::Regex;

pub(in crate::server) use declarations::{DeclaredTexts, declaration_rules, declared};

/// The rules that texts are checked against.
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    rules: Rules,
}

#[derive(Clone, Debug, Default)]
enum Rules {
    /// The built-in rules.
    #[default]
    Usual,
    Own(Arc<[Rule]>),
}

#[derive(Debug)]
struct Rule {
    name: String,
    pattern: Regex,
    /// True if the pattern has a group named [`UNLESS`].
    has_exceptions: bool,
}

/// Maximum size of a file of rules.
const LARGEST: usize = 64 << 10;

impl Rule {
    fn new(name: &str, pattern: &str) -> Result<Rule, String> {
        let pattern = regex::RegexBuilder::new(pattern).case_insensitive(true).size_limit(4 << 20).build();
        let pattern = pattern.map_err(|problem| format!("the pattern of `{name}`: {problem}"))?;
        let has_exceptions = pattern.capture_names().flatten().any(|group| group == UNLESS);
        Ok(Rule { name: name.to_owned(), pattern, has_exceptions })
    }

    /// Returns whether the pattern matches anywhere without its exception.
    fn finds(&self, view: &str) -> bool {
        self.pattern.is_match(view)
            && (!self.has_exceptions || self.pattern.captures_iter(view).any(|found| found.name(UNLESS).is_none()))
    }
}

/// The name of a group that voids a match in which it takes part.
const UNLESS: &str = "unless";

impl Quarantine {
    /// No rules: no text is checked.
    pub fn none() -> Quarantine {
        Quarantine { rules: Rules::Own(Arc::new([])) }
    }

    /// Reads rules that replace the built-in ones: one per line, consisting of a name, a blank, and a regular
    /// expression. Empty lines and lines that begin with `#` are ignored. A match in which a group named `unless` takes
    /// part does not count.
    ///
    /// # Errors
    /// Returns a sentence that names the wrong line.
    pub fn read(text: &str) -> Result<Quarantine, String> {
        if text.len() > LARGEST {
            return Err(format!("expected at most {LARGEST} bytes of rules, got {}", text.len()));
        }
        let lines = (1..).zip(text.lines().map(str::trim));
        let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| {
            let (name, pattern) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| format!("line {number}: expected a name and a pattern, got `{line}`"))?;
            Rule::new(name, pattern.trim()).map_err(|problem| format!("line {number}: {problem}"))
        });
        Ok(Quarantine { rules: Rules::Own(rules.collect::<Result<_, _>>()?) })
    }

    /// Returns the names of the rules that match in a text, each once.
    pub(in crate::server) fn hits(&self, text: &str) -> Vec<&str> {
        if matches!(&self.rules, Rules::Own(rules) if rules.is_empty()) {
            return Vec::new();
        }
        let views = views::views(text);
        match &self.rules {
            Rules::Usual => matching(words::USUAL.candidates(&views, &[]), &views),
            Rules::Own(rules) => matching(rules.iter(), &views),
        }
    }
}

/// Returns the names of the rules that match in one of the views of a text, each once.
fn matching<'r>(rules: impl IntoIterator<Item = &'r Rule>, views: &[String]) -> Vec<&'r str> {
    let mut hits: Vec<&str> = Vec::new();
    for rule in rules {
        if !hits.contains(&rule.name.as_str()) && views.iter().any(|view| rule.finds(view)) {
            hits.push(&rule.name);
        }
    }
    hits
}

#[cfg(test)]
mod tests;
