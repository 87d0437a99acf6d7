//! Guards: conditions on the arguments of tools, on where their values come from and on the values themselves.

mod bounds;
mod conditions;
mod declared;
mod path;
mod presets;
mod read;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::origins::{Origins, Part, Standing, UrlRules, is_name};
use lispbox_lang::internal::foreign_text;

use super::{Fit, Policy, Source, ToolName, ToolPattern, Verdict};

use conditions::Conditions;
use declared::Siblings;
use path::{ArgumentPath, Covered};

/// Longest value that a message shows.
const SHOWN: usize = 100;

/// A condition on the arguments of the tools that it names.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) tools: Vec<ToolPattern>,
    arguments: Vec<ArgumentPath>,
    /// Arguments that the schema of the tool need not declare.
    undeclared: Vec<String>,
    part: Part,
    /// The URLs that are accepted.
    urls: UrlRules,
    conditions: Conditions,
    /// The verdict on a call that does not meet the conditions.
    otherwise: Verdict,
    /// The name by which a configuration changes a guard of a preset.
    name: Option<String>,
    /// True for a guard of a preset, also a changed one: it names tools and arguments that may be absent.
    pub(super) is_of_preset: bool,
    pub(super) source: Source,
}

impl PartialEq for Guard {
    fn eq(&self, other: &Guard) -> bool {
        self.source == other.source && self.sentence() == other.sentence()
    }
}

/// The verdict of a guard on a call, and its reason as a clause.
pub struct Objection {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, as a clause.
    pub rule: String,
}

impl Policy {
    /// Returns whether there are guards, so that the origins of values are recorded.
    #[doc(hidden)]
    pub fn has_guards(&self) -> bool {
        !self.guards.is_empty()
    }

    /// Returns how the texts of a tool are treated.
    #[doc(hidden)]
    pub fn standing(&self, server: &str, tool: &str) -> Standing {
        let name = ToolName::alone(server, tool);
        let means = |pattern: &ToolPattern| pattern.fit(&name).is_some_and(|(fit, _)| fit == Fit::Certain);
        // Those of allow-lists count only if they certainly mean the tool.
        let mut sources = self.guards.iter().flat_map(Guard::sources).filter(|(_, _, least)| *least == Fit::Certain);
        let is_named = sources.any(|(_, pattern, _)| means(pattern));
        Standing { is_named, is_trusted: self.trusted.iter().any(|(_, pattern)| means(pattern)) }
    }

    /// Returns the guards of a tool.
    fn guards_on(&self, tool: &ToolName<'_>) -> impl Iterator<Item = &Guard> {
        self.guards.iter().filter(|guard| guard.tools.iter().any(|pattern| pattern.fit(tool).is_some()))
    }

    /// Returns the strictest objection of the guards to a call of a tool of that schema with these arguments, as they
    /// will be sent. Without `origins`, it is unknown where values come from.
    #[doc(hidden)]
    pub fn objection(
        &self,
        tool: &ToolName<'_>,
        schema: &Value,
        arguments: &Map<String, Value>,
        origins: Option<&Origins>,
    ) -> Option<Objection> {
        let guards: Vec<&Guard> = self.guards_on(tool).collect();
        let mut strictest: Option<Objection> = None;
        for guard in &guards {
            if strictest.as_ref().is_some_and(|before| before.verdict >= guard.otherwise) {
                continue;
            }
            let found = guard.objection(arguments, schema, origins).or_else(|| guard.stray(arguments, schema, &guards));
            strictest = found.or(strictest);
        }
        strictest
    }

    /// Describes each guard in a sentence.
    ///
    /// ```
    /// use lispbox::policy::Policy;
    ///
    /// let policy = Policy::read(r#"{"guards": [{"tool": "bank/pay", "argument": "amount", "at_most": 100}]}"#).unwrap();
    /// let line = "`amount` of bank/pay has to be a number of at most 100; otherwise a person is asked (`policy.guards[0]`)";
    /// assert_eq!(policy.guard_lines(), [line]);
    /// ```
    pub fn guard_lines(&self) -> Vec<String> {
        let trusted = (!self.trusted.is_empty()).then(|| {
            let patterns: Vec<&str> = self.trusted.iter().map(|(_, pattern)| pattern.text()).collect();
            format!("texts of {} are trusted", patterns.join(", "))
        });
        trusted.into_iter().chain(self.guards.iter().map(Guard::line)).collect()
    }

    /// Describes the guards of a tool, in a sentence each.
    #[doc(hidden)]
    pub fn guards_of(&self, server: &str, tool: &str) -> Vec<String> {
        self.guards_on(&ToolName::alone(server, tool)).map(Guard::line).collect()
    }

    /// Returns warnings about the arguments that guards name and that the schema of a tool does not have.
    #[doc(hidden)]
    pub fn unfit_arguments(&self, tool: &ToolName<'_>, schema: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        for guard in self.guards_on(tool).filter(|guard| !guard.is_of_preset) {
            for path in &guard.arguments {
                if let Some(missing) = path.missing_in(schema) {
                    let name = foreign_text::qualified(tool.server.text, tool.tool.text);
                    warnings
                        .push(format!("{} guards `{path}`, but the schema of `{name}` has {missing}", guard.source));
                }
            }
        }
        warnings
    }
}

impl Guard {
    /// Describes the guard in a sentence, with the place where it is written.
    fn line(&self) -> String {
        format!("{} ({}{})", self.sentence(), self.name_of(), self.source)
    }

    /// Returns the guard as messages name it.
    fn title(&self) -> String {
        format!("{}{}", self.name_of(), self.source.without_folder())
    }

    /// Returns the name of the guard before its place, if it has one: "guard `payments` of ".
    fn name_of(&self) -> String {
        self.name.as_ref().map_or(String::new(), |name| format!("guard `{name}` of "))
    }

    /// Returns the patterns of the tools from which values must or must not come, with the fit at which each counts.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&Source, &ToolPattern, Fit)> {
        self.conditions.tools().map(|(pattern, fit)| (&self.source, pattern, fit))
    }

    fn objection(
        &self,
        arguments: &Map<String, Value>,
        schema: &Value,
        origins: Option<&Origins>,
    ) -> Option<Objection> {
        let mut found = None;
        for path in &self.arguments {
            path.values(arguments, schema, &mut |covered| {
                let Covered { place, value, is_key } = covered;
                // The name of an amount is no amount.
                let is_label = is_key && self.conditions.are_only_bounds() && value.as_str().is_some_and(is_name);
                if found.is_none() && !is_label {
                    found = self.failed(value, origins).map(|why| (place.to_owned(), value.clone(), why));
                }
            });
        }
        let (place, value, why) = found?;
        let shown = match &value {
            Value::String(text) if text.chars().count() > SHOWN => {
                let start: String = text.chars().take(SHOWN).collect();
                format!("{}… ({} bytes)", Value::String(start), text.len())
            }
            value => foreign_text::json(value),
        };
        let argument = foreign_text::line(&place);
        let rule = format!("{} guards `{argument}`, and its value {shown} {why}", self.title());
        Some(Objection { verdict: self.otherwise, rule })
    }

    /// Returns the objection to an argument that the server may take in the place of a guarded one.
    fn stray(&self, arguments: &Map<String, Value>, schema: &Value, guards: &[&Guard]) -> Option<Objection> {
        let is_as_strict =
            |other: &&&Guard| other.otherwise >= self.otherwise && (self.is_of_preset || !other.is_of_preset);
        let as_strict: Vec<&&Guard> = guards.iter().filter(is_as_strict).collect();
        let others = as_strict.iter().flat_map(|other| &other.arguments).collect();
        let listed = as_strict.iter().flat_map(|other| &other.undeclared).map(String::as_str).collect();
        let siblings = Siblings { own: &self.arguments, others, listed, schema };
        // A preset names more tools than it is meant for.
        if self.is_of_preset && !siblings.has_guarded(arguments) {
            return None;
        }
        let why = siblings.stray(arguments)?;
        let rule = format!("{} guards arguments of this tool, and {why}", self.title());
        Some(Objection { verdict: self.otherwise, rule })
    }

    /// Returns why a scalar does not meet the conditions, as a clause without its subject.
    fn failed(&self, value: &Value, origins: Option<&Origins>) -> Option<String> {
        // The text that is sent, and the text in which a number is among those of sources.
        let sent = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let known = match value {
            Value::Number(number) => number.as_f64().filter(|_| number.is_f64()).map(|number| number.to_string()),
            _ => None,
        };
        let parts = match self.part.all_of(&sent, &self.urls) {
            Ok(parts) => parts,
            Err(why) => return Some(why),
        };
        parts.into_iter().find_map(|text| {
            let (conditions, part) = (&self.conditions, self.part);
            let from = known.as_deref().unwrap_or(&text);
            conditions.failed_value(&text, part, &self.urls).or_else(|| conditions.failed_origin(from, part, origins))
        })
    }

    /// Describes the guard: "`to` of `mail/send_email` has to come from contacts/*, user; otherwise a person is asked".
    fn sentence(&self) -> String {
        let mut sentence = String::new();
        let tools: Vec<&str> = self.tools.iter().map(ToolPattern::text).collect();
        let arguments: Vec<String> = self.arguments.iter().map(|path| format!("`{path}`")).collect();
        let part = match self.part {
            Part::Whole => "",
            Part::Host => "the host of ",
            Part::Domain => "the domain of ",
            Part::Links => "each link in ",
        };
        let _ = write!(sentence, "{part}{} of {}", arguments.join(", "), tools.join(", "));
        let otherwise = if self.otherwise == Verdict::Deny { "the call is denied" } else { "a person is asked" };
        let _ = write!(sentence, " {}; otherwise {otherwise}", self.conditions.clauses().join(" and "));
        sentence
    }
}
