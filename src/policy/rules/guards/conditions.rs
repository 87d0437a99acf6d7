//! The conditions of a guard: on the values of arguments, and on the sources that they come from.

use regex::Regex;

use crate::origins::{Origins, Part, Source as Gave, UrlRules, addresses, hosts, listed_hosts, may_be_list};

use super::super::names::ToolName;
use super::super::pattern::{Fit, ToolPattern};
use super::bounds::Bound;

/// Conditions on a value; it has to meet all of them.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    /// The sources that the values must come from; `None` accepts any.
    pub(super) from: Option<Vec<Origin>>,
    /// The sources that the values must not come from.
    pub(super) not_from: Vec<Origin>,
    pub(super) one_of: Option<Vec<String>>,
    pub(super) matches: Option<Regex>,
    pub(super) bounds: Vec<Bound>,
    pub(super) domains: Option<Vec<String>>,
}

/// A source in a guard.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Origin {
    User,
    Program,
    Model,
    /// Tools, in all of their results or at a path of fields only.
    Tools(ToolPattern, Option<String>),
}

impl Origin {
    /// Returns the text in configurations.
    pub(super) fn text(&self) -> String {
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

impl Conditions {
    /// Returns whether there is no condition.
    pub(super) fn is_empty(&self) -> bool {
        self.bounds.is_empty() && self.are_only_bounds()
    }

    /// Returns whether all conditions are bounds of numbers.
    pub(super) fn are_only_bounds(&self) -> bool {
        let Conditions { from, not_from, one_of, matches, bounds: _, domains } = self;
        from.is_none() && not_from.is_empty() && one_of.is_none() && matches.is_none() && domains.is_none()
    }

    /// Returns the patterns of the tools from which values must or must not come, with the fit at which each counts.
    pub(super) fn tools(&self) -> impl Iterator<Item = (&ToolPattern, Fit)> {
        let from = self.from.iter().flatten().map(|origin| (origin, Fit::Certain));
        let origins = from.chain(self.not_from.iter().map(|origin| (origin, Fit::Possible)));
        origins.filter_map(|(origin, fit)| match origin {
            Origin::Tools(pattern, _) => Some((pattern, fit)),
            Origin::User | Origin::Program | Origin::Model => None,
        })
    }

    /// Returns why a part of a value does not meet the conditions on the value itself.
    pub(super) fn failed_value(&self, text: &str, part: Part, urls: &UrlRules) -> Option<String> {
        let is_same = |allowed: &String| match part {
            Part::Whole => allowed == text,
            Part::Host | Part::Domain | Part::Links => allowed.eq_ignore_ascii_case(text),
        };
        if let Some(allowed) = &self.one_of
            && !allowed.iter().any(is_same)
        {
            return Some(format!("is not one of {}", allowed.join(", ")));
        }
        if let Some(pattern) = &self.matches
            && let Some(why) = unmatched(text, pattern, part)
        {
            return Some(why);
        }
        if let Some(why) = self.bounds.iter().find_map(|bound| bound.failed(text)) {
            return Some(why);
        }
        self.domains.as_ref().and_then(|domains| outside(text, domains, part, urls))
    }

    /// Returns why a part of a value did not come from where it may.
    pub(super) fn failed_origin(&self, text: &str, part: Part, origins: Option<&Origins>) -> Option<String> {
        let from = self.from.as_ref().filter(|from| {
            let accepts = |gave: &Gave| from.iter().any(|origin| origin.includes(gave, Fit::Certain));
            !origins.is_some_and(|origins| looked_for(part, text).iter().any(|text| origins.gave(text, &accepts)))
        });
        if from.is_none() && self.not_from.is_empty() {
            return None;
        }
        let (mut resembling, mut is_partial) = (Vec::new(), origins.is_none());
        for text in looked_for(part, text) {
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

    /// Describes each condition in a clause: "has to come from contacts/*, user".
    pub(super) fn clauses(&self) -> Vec<String> {
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
        conditions
    }
}

/// Returns why a text does not match a pattern: as a whole, and as each address, URL or host of a list.
fn unmatched(text: &str, pattern: &Regex, part: Part) -> Option<String> {
    let clause = || Some("does not match the pattern".to_owned());
    if !pattern.is_match(text) || !listed_hosts(text).into_iter().all(|item| pattern.is_match(item)) {
        return clause();
    }
    if part != Part::Whole || !may_be_list(text) {
        return None;
    }
    match addresses(text) {
        Ok(found) if found.iter().all(|address| pattern.is_match(address.text)) => None,
        Ok(_) => clause(),
        Err(why) => Some(format!("is not a plain list of e-mail addresses: {why}")),
    }
}

/// Returns why a host, or one of those of a value, is in none of the domains.
fn outside(text: &str, domains: &[String], part: Part, urls: &UrlRules) -> Option<String> {
    let found = match part {
        Part::Whole => hosts(text, urls),
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
