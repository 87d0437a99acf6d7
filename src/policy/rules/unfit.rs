//! Rules that match no tool: usually a misspelled name, which denies nothing.

use std::fmt;

use lispbox_lang::internal::closest;

use super::guards::Guard;
use super::{Fit, Known, Names, Policy, Purpose, Source, Timeouts, ToolName, ToolPattern, Verdict};

/// A rule that matches none of the known tools.
///
/// ```
/// use lispbox::policy::UnfitRule;
///
/// let rule = UnfitRule {
///     rule: "`policy.deny` has `mail/sned`".to_owned(),
///     nearest: Some("mail/send".to_owned()),
///     unknown: Vec::new(),
///     is_ambiguous: false,
/// };
/// assert_eq!(rule.to_string(), "`policy.deny` has `mail/sned`, which matches no known tool; did you mean `mail/send`?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnfitRule {
    /// The rule, as a clause: "`policy.deny` of servers.yaml has `mail/sned`".
    pub rule: String,
    /// The name that was probably meant.
    pub nearest: Option<String>,
    /// Servers whose tools are not known, to which the rule may apply.
    pub unknown: Vec<String>,
    /// True if the rule would allow a tool, but may mean another one as well.
    pub is_ambiguous: bool,
}

impl fmt::Display for UnfitRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ambiguous {
            return write!(
                formatter,
                "{}, which may mean several tools and so allows none; write `server/tool`",
                self.rule
            );
        }
        write!(formatter, "{}, which matches no known tool", self.rule)?;
        if let Some(nearest) = &self.nearest {
            write!(formatter, "; did you mean `{nearest}`?")?;
        }
        if !self.unknown.is_empty() {
            write!(formatter, " (the tools of {} are not known)", self.unknown.join(", "))?;
        }
        Ok(())
    }
}

/// A server and all of its tools, including denied ones; `None` if they are not known.
pub struct Listed<'a> {
    /// The server.
    pub server: &'a str,
    /// Its tools.
    pub tools: Option<&'a Names>,
}

impl Policy {
    /// Returns all names and patterns, each with the source of its rule and the minimum fit at which it counts.
    fn patterns(&self) -> impl Iterator<Item = (&Source, &ToolPattern, Fit)> {
        let lists = self.lists.iter().map(|list| match list.purpose {
            Purpose::Only | Purpose::Rule(Verdict::Allow) => (&list.source, &list.patterns, Fit::Certain),
            Purpose::Block | Purpose::Rule(_) => (&list.source, &list.patterns, Fit::Possible),
        });
        // A limit with several periods is a single rule.
        let limits = self.limits.iter().enumerate();
        let limits = limits.filter(|(at, limit)| *at == 0 || self.limits[at - 1].source != limit.source);
        let limits = limits.map(|(_, limit)| (&limit.source, &limit.patterns, Fit::Possible));
        let own = self.guards.iter().filter(|guard| !guard.is_of_preset);
        let guards = own.clone().map(|guard| (&guard.source, &guard.tools, Fit::Possible));
        let sources = own.flat_map(Guard::sources);
        let trusted = self.trusted.iter().map(|(source, pattern)| (source, pattern, Fit::Certain));
        lists
            .chain(limits)
            .chain(guards)
            .flat_map(|(source, patterns, fit)| patterns.iter().map(move |pattern| (source, pattern, fit)))
            .chain(sources)
            .chain(trusted)
    }
}

/// Returns the rules of a policy, and the timeouts of the file, that match no tool of these servers. `all` holds the
/// names of all servers.
pub fn unfit(
    policy: &Policy,
    timeouts: Option<(&Timeouts, &str)>,
    listed: &[Listed<'_>],
    all: &Names,
) -> Vec<UnfitRule> {
    let rules = policy.patterns();
    let rules = rules.map(|(source, pattern, least)| (format!("{source} has `{}`", pattern.text()), pattern, least));
    let timeouts = timeouts.into_iter().flat_map(|(timeouts, file)| {
        let rule = move |pattern: &ToolPattern| format!("`tool_timeout_seconds` of {file} has `{}`", pattern.text());
        timeouts.patterns().map(move |pattern| (rule(pattern), pattern, Fit::Possible))
    });
    let unfit = rules.chain(timeouts).filter_map(|(rule, pattern, least)| {
        let best = listed.iter().filter_map(|listed| best_fit(pattern, listed, all)).max();
        if best >= Some(least) {
            return None;
        }
        let is_unknown = |listed: &&Listed<'_>| listed.tools.is_none() && pattern.concerns(listed.server, all);
        let unknown = listed.iter().filter(is_unknown).map(|listed| listed.server.to_owned()).collect();
        Some(UnfitRule { rule, nearest: nearest(pattern.text(), listed), unknown, is_ambiguous: best.is_some() })
    });
    unfit.collect()
}

/// Returns the best fit of a pattern among the tools of a server.
fn best_fit(pattern: &ToolPattern, listed: &Listed<'_>, all: &Names) -> Option<Fit> {
    let tools = listed.tools.filter(|_| pattern.concerns(listed.server, all))?;
    let mut best = None;
    for tool in tools.all() {
        let name = ToolName::among(listed.server, tool, all, Known::Tools(tools));
        best = best.max(pattern.fit(&name).map(|(fit, _)| fit));
        if best == Some(Fit::Certain) {
            break;
        }
    }
    best
}

/// Returns the known name closest to `text`, in the same form as `text`.
fn nearest(text: &str, listed: &[Listed<'_>]) -> Option<String> {
    let names = |separator: Option<(&str, &str)>| -> Vec<String> {
        let tools = listed.iter().flat_map(|listed| {
            let tools = listed.tools.map(Names::all).unwrap_or_default();
            tools.iter().map(|tool| (listed.server, tool))
        });
        let name = |(server, tool): (&str, &String)| match separator {
            Some((start, middle)) => format!("{start}{server}{middle}{tool}"),
            None => tool.clone(),
        };
        tools.map(name).collect()
    };
    let names = match text {
        _ if text.starts_with("mcp__") => names(Some(("mcp__", "__"))),
        _ if text.contains('/') => names(Some(("", "/"))),
        _ => names(None),
    };
    closest(text, names.iter().map(String::as_str)).map(str::to_owned)
}
