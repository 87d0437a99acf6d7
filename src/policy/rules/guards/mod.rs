//! Guards: conditions on the arguments of tools, on where their values come from and on the values themselves.

mod bounds;
mod declared;
mod path;
mod presets;
mod read;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use regex::Regex;
use serde_json::{Map, Value};

use crate::origins::{
    Origins, Part, Source as Gave, Standing, UrlRules, addresses, hosts, is_name, listed_hosts, may_be_list,
};
use lispbox_lang::internal::foreign_text;

use super::{Fit, Policy, Source, ToolName, ToolPattern, Verdict};

use bounds::Bound;
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
    /// The sources that the values must come from; `None` accepts any.
    from: Option<Vec<Origin>>,
    /// The sources that the values must not come from.
    not_from: Vec<Origin>,
    one_of: Option<Vec<String>>,
    matches: Option<Regex>,
    bounds: Vec<Bound>,
    domains: Option<Vec<String>>,
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

/// A source in a guard.
#[derive(Clone, Debug, PartialEq)]
enum Origin {
    User,
    Program,
    Model,
    /// Tools, in all of their results or at a path of fields only.
    Tools(ToolPattern, Option<String>),
}

impl Origin {
    /// Returns the text in configurations.
    fn text(&self) -> String {
        match self {
            Origin::User => "user".to_owned(),
            Origin::Program => "program".to_owned(),
            Origin::Model => "model".to_owned(),
            Origin::Tools(pattern, None) => pattern.text().to_owned(),
            Origin::Tools(pattern, Some(path)) => format!("{}#{path}", pattern.text()),
        }
    }

    /// Returns whether a value of that source counts. A source that the pattern only may mean counts at `least` if that
    /// is [`Fit::Possible`].
    fn includes(&self, gave: &Gave, least: Fit) -> bool {
        match (self, gave) {
            (Origin::User, Gave::User) | (Origin::Program, Gave::Program) => true,
            // A literal that could have been the program's own is one of the model as well.
            (Origin::Model, Gave::Model | Gave::Program) => true,
            (Origin::Tools(pattern, path), Gave::Tool { server, tool, .. }) => {
                pattern.fit(&ToolName::alone(server, tool)).is_some_and(|(fit, _)| fit >= least)
                    && path.as_ref().is_none_or(|path| gave.is_at(path))
            }
            _ => false,
        }
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
        let from = self.from.iter().flatten().map(|origin| (origin, Fit::Certain));
        let origins = from.chain(self.not_from.iter().map(|origin| (origin, Fit::Possible)));
        origins.filter_map(|(origin, fit)| match origin {
            Origin::Tools(pattern, _) => Some((&self.source, pattern, fit)),
            _ => None,
        })
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
                let is_label = is_key && self.has_only_bounds() && value.as_str().is_some_and(is_name);
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

    /// Returns whether all conditions are bounds of numbers.
    fn has_only_bounds(&self) -> bool {
        let has_others = self.from.is_some()
            || !self.not_from.is_empty()
            || self.one_of.is_some()
            || self.matches.is_some()
            || self.domains.is_some();
        !has_others
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
            self.failed_condition(&text).or_else(|| self.failed_origin(known.as_deref().unwrap_or(&text), origins))
        })
    }

    /// Returns why a part of a value does not meet the conditions on the value itself.
    fn failed_condition(&self, text: &str) -> Option<String> {
        let is_same = |allowed: &String| match self.part {
            Part::Whole => allowed == text,
            Part::Host | Part::Domain | Part::Links => allowed.eq_ignore_ascii_case(text),
        };
        if let Some(allowed) = &self.one_of
            && !allowed.iter().any(is_same)
        {
            return Some(format!("is not one of {}", allowed.join(", ")));
        }
        if let Some(pattern) = &self.matches
            && let Some(why) = self.unmatched(text, pattern)
        {
            return Some(why);
        }
        if let Some(why) = self.bounds.iter().find_map(|bound| bound.failed(text)) {
            return Some(why);
        }
        self.domains.as_ref().and_then(|domains| self.outside(text, domains))
    }

    /// Returns why a text does not match a pattern: as a whole, and as each address, URL or host of a list.
    fn unmatched(&self, text: &str, pattern: &Regex) -> Option<String> {
        let clause = || Some("does not match the pattern".to_owned());
        if !pattern.is_match(text) || !listed_hosts(text).into_iter().all(|item| pattern.is_match(item)) {
            return clause();
        }
        if self.part != Part::Whole || !may_be_list(text) {
            return None;
        }
        match addresses(text) {
            Ok(found) if found.iter().all(|address| pattern.is_match(address.text)) => None,
            Ok(_) => clause(),
            Err(why) => Some(format!("is not a plain list of e-mail addresses: {why}")),
        }
    }

    /// Returns why a host, or one of those of a value, is in none of the domains.
    fn outside(&self, text: &str, domains: &[String]) -> Option<String> {
        let found = match self.part {
            Part::Whole => hosts(text, &self.urls),
            Part::Host | Part::Domain | Part::Links => Ok(vec![text.to_owned()]),
        };
        let is_in = |host: &String| {
            domains.iter().any(|domain| match domain.strip_prefix("*.") {
                Some(parent) => host.strip_suffix(parent).is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
                None => host == domain,
            })
        };
        match found {
            Ok(hosts) if hosts.iter().all(is_in) => None,
            Ok(_) => Some(format!("is not in {}", domains.join(", "))),
            Err(why) => Some(why),
        }
    }

    /// Returns why a part of a value did not come from where it may.
    fn failed_origin(&self, text: &str, origins: Option<&Origins>) -> Option<String> {
        let from = self.from.as_ref().filter(|from| {
            let accepts = |gave: &Gave| from.iter().any(|origin| origin.includes(gave, Fit::Certain));
            !origins.is_some_and(|origins| looked_for(self.part, text).iter().any(|text| origins.gave(text, &accepts)))
        });
        if from.is_none() && self.not_from.is_empty() {
            return None;
        }
        let (mut resembling, mut is_partial) = (Vec::new(), origins.is_none());
        for text in looked_for(self.part, text) {
            let found = origins.map(|origins| origins.resembling(&text)).unwrap_or_default();
            resembling.extend(found.0);
            is_partial |= found.1;
        }
        if let Some(from) = from {
            let found = match &resembling[..] {
                [] if is_partial => "; its origin is not known".to_owned(),
                [] => "; no tool has returned it".to_owned(),
                [first, ..] => format!(" ({first})"),
            };
            return Some(format!("did not come from {}{found}", texts(from)));
        }
        let denied = |gave: &&Gave| self.not_from.iter().any(|origin| origin.includes(gave, Fit::Possible));
        match resembling.iter().find(denied) {
            Some(gave) => Some(format!("must not come from {} ({gave})", texts(&self.not_from))),
            None if is_partial => Some("may come from anywhere: the index of origins is full".to_owned()),
            None => None,
        }
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
        let mut conditions = Vec::new();
        if let Some(from) = &self.from {
            conditions.push(format!("has to come from {}", texts(from)));
        }
        if !self.not_from.is_empty() {
            conditions.push(format!("must not come from {}", texts(&self.not_from)));
        }
        if let Some(values) = &self.one_of {
            conditions.push(format!("has to be one of {}", values.join(", ")));
        }
        if let Some(pattern) = &self.matches {
            conditions.push(format!("has to match {}", pattern.as_str()));
        }
        conditions.extend(self.bounds.iter().map(|bound| format!("has to be a number {bound}")));
        if let Some(domains) = &self.domains {
            conditions.push(format!("has to be in {}", domains.join(", ")));
        }
        let otherwise = if self.otherwise == Verdict::Deny { "the call is denied" } else { "a person is asked" };
        let _ = write!(sentence, " {}; otherwise {otherwise}", conditions.join(" and "));
        sentence
    }
}

/// Returns the forms in which a part of a value occurs among the tokens of texts.
fn looked_for(part: Part, text: &str) -> Vec<String> {
    match part {
        Part::Domain => vec![format!("@{text}"), text.to_owned()],
        Part::Whole | Part::Host | Part::Links => vec![text.to_owned()],
    }
}

fn texts(origins: &[Origin]) -> String {
    origins.iter().map(Origin::text).collect::<Vec<_>>().join(", ")
}
