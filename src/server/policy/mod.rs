//! What programs may do with the tools behind us: allow, ask a person, or deny.
//!
//! A [`Policy`] is what the operator has written down, and decides on one tool by its names and by what its
//! server says of its [`Effect`]s. A [`ToolPattern`] is a tool in any spelling, or a pattern of tools, made of [`glob`]s and
//! compared with [`names`]; [`mod@unfit`] finds those that fit no tool. [`Consent`] is one evaluation's way through a policy:
//! it asks an [`Approver`] a [`Question`] where a person is to be asked, and counts calls against the [`quotas`]. `read`
//! makes policies of configurations.

mod client;
mod consent;
mod effect;
mod glob;
mod names;
mod pattern;
mod question;
mod quotas;
mod read;
mod timeouts;
mod unfit;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use crate::lang::ToolHints;

pub(super) use client::AskingClient;
pub use consent::{Answer, Approver, Nobody};
pub(super) use consent::{Consent, nobody};
pub use effect::Effect;
pub(super) use names::{Known, Name, Names, ToolName};
pub(super) use pattern::NamePattern;
pub use pattern::ToolPattern;
pub use question::Question;
pub(super) use quotas::Counts;
pub(super) use timeouts::Timeouts;
pub use unfit::UnfitRule;
pub(super) use unfit::{Listed, unfit};

use pattern::Fit;
use quotas::Quota;

/// What is done when a program calls a tool, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// A person is shown the call, and it is made if they agree.
    Ask,
    /// The call is refused.
    Deny,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Allow, Verdict::Ask, Verdict::Deny];

    /// As a configuration writes it.
    pub fn key(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

/// What is done with a tool, and which rule says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is done.
    pub verdict: Verdict,
    /// The rule, as a clause: "`policy.ask` of servers.yaml has `send-*`".
    pub rule: String,
}

impl Decision {
    /// True if the call is refused.
    pub fn denies(&self) -> bool {
        self.verdict == Verdict::Deny
    }
}

/// What the operator has written down about tools.
///
/// A tool that one of the `tools.block` matches, or none of a `tools.allow`, is denied. Of the lists `allow`, `ask` and
/// `deny` those of a command line go before those of files; then a name in full goes before a pattern, and of equals
/// the stricter before the milder. Where none of them names the tool, what it does by its own account decides, see
/// [`Effect`].
///
/// Names and patterns are compared as [`ToolPattern`] says. A rule that may mean this tool or another counts where it
/// forbids or asks, and not where it allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    lists: Vec<List>,
    /// By effect, with what said so.
    defaults: BTreeMap<Effect, (Verdict, String)>,
    quotas: Vec<Quota>,
}

/// What a list of patterns is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// `tools.allow`: what it does not have is denied.
    Only,
    /// `tools.block`: what it has is denied, whatever else is said.
    Block,
    /// One of a policy's.
    Rule(Verdict),
}

#[derive(Clone, Debug, PartialEq)]
struct List {
    purpose: Purpose,
    source: Source,
    patterns: Vec<ToolPattern>,
}

/// Where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    /// The path of keys, or the flag of a command line.
    key: String,
    /// The file with its path; empty for a command line.
    file: String,
}

impl Source {
    fn is_flag(&self) -> bool {
        self.file.is_empty()
    }

    /// For programs and models, which are told no paths of this machine: "`tools.allow` of servers.yaml".
    fn without_folder(&self) -> String {
        Source { key: self.key.clone(), file: name_of(&self.file).to_owned() }.to_string()
    }
}

/// For the operator: "`tools.allow` of /etc/lispbox/servers.yaml".
impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { key, file } = self;
        if self.is_flag() { write!(formatter, "`{key}`") } else { write!(formatter, "`{key}` of {file}") }
    }
}

/// The name of a file, without its folder.
fn name_of(file: &str) -> &str {
    Path::new(file).file_name().and_then(OsStr::to_str).unwrap_or(file)
}

/// A pattern of a list that fits a tool.
struct Hit<'a> {
    list: &'a List,
    pattern: &'a ToolPattern,
    fit: Fit,
    /// The name of the tool in full.
    is_exact: bool,
}

impl Policy {
    /// Adds what another file says: its lists to the lists, its defaults before the defaults.
    pub(super) fn merge(&mut self, other: Policy) {
        self.lists.extend(other.lists);
        self.defaults.extend(other.defaults);
        self.quotas.extend(other.quotas);
    }

    /// Without what does not stand in one of those files.
    pub(super) fn of_files(mut self, files: &[String]) -> Policy {
        self.lists.retain(|list| files.contains(&list.source.file));
        self.defaults.retain(|_, (_, file)| files.contains(file));
        self.quotas.retain(|quota| files.contains(&quota.source.file));
        self
    }

    /// Decides on a tool of a server, which says that of its effects. No other tool of the server is taken to have a name
    /// that differs only in spelling.
    pub fn decide(&self, server: &str, tool: &str, hints: &ToolHints) -> Decision {
        self.decide_on(&ToolName::alone(server, tool), hints)
    }

    /// True where a tool may not be called; see [`Policy::decide`].
    pub fn denies(&self, server: &str, tool: &str, hints: &ToolHints) -> bool {
        self.denies_it(&ToolName::alone(server, tool), hints)
    }

    /// Decides on a tool among the others.
    pub(super) fn decide_on(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Decision {
        self.rule(tool, hints).decision()
    }

    /// Decides on a call whose arguments cannot be checked: where no list names the tool, the stricter one of the verdicts
    /// on its effects and on unchecked arguments.
    pub(super) fn decide_unchecked(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Decision {
        let rule = self.rule(tool, hints);
        let unchecked = self.rule_of(Effect::Unchecked);
        let is_named = !matches!(rule, Rule::Effect(..));
        if is_named || rule.verdict() > unchecked.verdict() { rule.decision() } else { unchecked.decision() }
    }

    /// True where a tool among the others may not be called.
    pub(super) fn denies_it(&self, tool: &ToolName<'_>, hints: &ToolHints) -> bool {
        self.rule(tool, hints).verdict() == Verdict::Deny
    }

    /// The denial of a tool whatever its effects are and whatever other tools its server has, where that is sure.
    pub(super) fn denial_by_name(&self, tool: &ToolName<'_>) -> Option<Decision> {
        let hits = self.hits(tool);
        let counts: [fn(&Hit<'_>) -> bool; 3] = [is_certain, is_strict, |_| true];
        let mut rules = counts.map(|counts| self.rule_by_name(&hits, counts)).into_iter();
        let first = rules.next().flatten().filter(|rule| rule.verdict() == Verdict::Deny)?;
        let is_sure = rules.all(|rule| rule.is_some_and(|rule| rule.verdict() == Verdict::Deny));
        is_sure.then(|| first.decision())
    }

    /// The stricter of two rules: the one by what certainly fits, and the one by what may forbid besides.
    fn rule(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Rule<'_> {
        let hits = self.hits(tool);
        let rule = |counts| self.rule_by_name(&hits, counts).unwrap_or_else(|| self.rule_of(Effect::of(hints)));
        let certain = rule(is_certain);
        if hits.iter().all(is_certain) {
            return certain;
        }
        let strict = rule(is_strict);
        if strict.verdict() > certain.verdict() { strict } else { certain }
    }

    fn rule_of(&self, effect: Effect) -> Rule<'_> {
        match self.defaults.get(&effect) {
            Some((verdict, file)) => Rule::Effect(effect, *verdict, Some(file)),
            None => Rule::Effect(effect, effect.usual(), None),
        }
    }

    fn hits<'p>(&'p self, tool: &ToolName<'_>) -> Vec<Hit<'p>> {
        let patterns = self.lists.iter().flat_map(|list| list.patterns.iter().map(move |pattern| (list, pattern)));
        let hit = |(list, pattern): (_, &'p ToolPattern)| {
            pattern.fit(tool).map(|(fit, is_exact)| Hit { list, pattern, fit, is_exact })
        };
        patterns.filter_map(hit).collect()
    }

    /// The rule by the lists, of those hits that count.
    fn rule_by_name<'p>(&'p self, hits: &[Hit<'p>], counts: fn(&Hit<'_>) -> bool) -> Option<Rule<'p>> {
        let hits = hits.iter().filter(|hit| counts(hit));
        for list in &self.lists {
            let hit = hits.clone().find(|hit| std::ptr::eq(hit.list, list));
            match (list.purpose, hit) {
                (Purpose::Block, Some(hit)) => return Some(Rule::Pattern(list, hit.pattern, Verdict::Deny)),
                (Purpose::Only, None) => return Some(Rule::NotAmong(list)),
                _ => {}
            }
        }
        let rules = hits.filter_map(|hit| match hit.list.purpose {
            Purpose::Rule(verdict) => Some((hit, verdict)),
            Purpose::Only | Purpose::Block => None,
        });
        let best = rules.max_by_key(|(hit, verdict)| (hit.list.source.is_flag(), hit.is_exact, *verdict));
        best.map(|(hit, verdict)| Rule::Pattern(hit.list, hit.pattern, verdict))
    }

    /// The rules in words, a line each: "only search-*, get-* (`tools.allow` of servers.yaml)".
    pub fn lines(&self) -> Vec<String> {
        let line = |list: &List| {
            let word = match list.purpose {
                Purpose::Only => "only",
                Purpose::Block => "without",
                Purpose::Rule(verdict) => verdict.key(),
            };
            let patterns: Vec<&str> = list.patterns.iter().map(ToolPattern::text).collect();
            format!("{word} {} ({})", patterns.join(", "), list.source)
        };
        let default = |(effect, (verdict, file)): (&Effect, &(Verdict, String))| {
            format!("{} what is {} (`policy.defaults` of {file})", verdict.key(), effect.key())
        };
        let lists = self.lists.iter().map(line);
        lists.chain(self.defaults.iter().map(default)).chain(self.quotas.iter().map(Quota::line)).collect()
    }
}

fn is_certain(hit: &Hit<'_>) -> bool {
    hit.fit == Fit::Certain
}

/// What may forbid counts, and what allows only where it is certain.
fn is_strict(hit: &Hit<'_>) -> bool {
    is_certain(hit) || !matches!(hit.list.purpose, Purpose::Only | Purpose::Rule(Verdict::Allow))
}

/// What decides on a tool. Its words are made where they are wanted only: what may be called is asked of all tools of a
/// server whenever a program names one.
enum Rule<'a> {
    /// A pattern of a list.
    Pattern(&'a List, &'a ToolPattern, Verdict),
    /// A list of all that may be called does not have it.
    NotAmong(&'a List),
    /// What it does by its own account, as that file says, or as it is without any.
    Effect(Effect, Verdict, Option<&'a str>),
}

impl Rule<'_> {
    fn verdict(&self) -> Verdict {
        match *self {
            Rule::Pattern(_, _, verdict) | Rule::Effect(_, verdict, _) => verdict,
            Rule::NotAmong(_) => Verdict::Deny,
        }
    }

    fn decision(&self) -> Decision {
        let verdict = self.verdict();
        let rule = match self {
            Rule::Pattern(list, pattern, _) => format!("{} has `{}`", list.source.without_folder(), pattern.text()),
            Rule::NotAmong(list) => format!("{} does not have it", list.source.without_folder()),
            Rule::Effect(effect, _, file) => {
                let from = file.map_or(", which is the default".to_owned(), |file| format!(" of {}", name_of(file)));
                format!("it {effect}, and `policy.defaults` is {}: {}{from}", effect.key(), verdict.key())
            }
        };
        Decision { verdict, rule }
    }
}

#[cfg(test)]
mod tests;
