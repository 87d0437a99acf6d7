//! A stranger's words in a reply: text that reads like instructions to the model is looked for before the model
//! reads it, and announced as what it is.
//!
//! The value itself stays as it is. Patterns are matched with [`views`] of a text without what hides them: invisible
//! characters, markup, character references, letters that look like others, and line ends, which printed strings have as
//! `\n`. That finds the usual phrases of some languages and no others: it is a smoke detector, not a wall.

mod rules;
mod views;

use std::sync::{Arc, LazyLock};

use regex::Regex;

pub(super) use crate::lang::foreign_text::shows_nothing;

/// What texts are held against.
#[derive(Clone, Debug, Default)]
pub struct Quarantine {
    rules: Rules,
}

#[derive(Clone, Debug, Default)]
enum Rules {
    /// Those that are built in.
    #[default]
    Usual,
    Own(Arc<[Rule]>),
}

/// The rules that are built in, compiled when a text is first held against them: a program that serves nobody does not
/// pay for them.
static USUAL: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rule = |(name, pattern): &(&str, &str)| Rule::new(name, &rules::plain(pattern));
    rules::USUAL.iter().map(rule).collect::<Result<_, _>>().expect("the usual patterns are right")
});

#[derive(Debug)]
struct Rule {
    name: String,
    pattern: Regex,
    /// Whether the pattern has a group named [`UNLESS`].
    has_exceptions: bool,
}

/// The longest file of rules.
const LARGEST: usize = 64 << 10;

impl Rule {
    fn new(name: &str, pattern: &str) -> Result<Rule, String> {
        let pattern = regex::RegexBuilder::new(pattern).case_insensitive(true).size_limit(4 << 20).build();
        let pattern = pattern.map_err(|problem| format!("the pattern of `{name}`: {problem}"))?;
        let has_exceptions = pattern.capture_names().flatten().any(|group| group == UNLESS);
        Ok(Rule { name: name.to_owned(), pattern, has_exceptions })
    }

    /// Whether the pattern matches anywhere without its exception.
    fn finds(&self, view: &str) -> bool {
        self.pattern.is_match(view)
            && (!self.has_exceptions || self.pattern.captures_iter(view).any(|found| found.name(UNLESS).is_none()))
    }
}

/// The group of a pattern that makes a match none.
const UNLESS: &str = "unless";

impl Quarantine {
    /// No rules: nothing is looked for.
    pub fn none() -> Quarantine {
        Quarantine { rules: Rules::Own(Arc::new([])) }
    }

    /// Reads rules that take the place of the usual ones: one a line, a name, a blank, and a regular expression; empty
    /// lines and those that begin with `#` are passed over. A match in which a group named `unless` takes part is none.
    ///
    /// # Errors
    /// A sentence that says which line is wrong.
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

    /// The names of the rules that find something in a text, each once.
    pub(super) fn hits(&self, text: &str) -> Vec<&str> {
        let mut hits: Vec<&str> = Vec::new();
        let rules: &[Rule] = match &self.rules {
            Rules::Usual => &USUAL,
            Rules::Own(rules) => rules,
        };
        if rules.is_empty() {
            return hits;
        }
        let views = views::views(text);
        for rule in rules {
            let finds = || views.iter().any(|view| rule.finds(view));
            if !hits.contains(&rule.name.as_str()) && finds() {
                hits.push(&rule.name);
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests;
