//! What programs may do with the tools behind us: allow, ask a person, or deny.
//!
//! A [`Policy`] is what the operator has written down, and decides on one tool by its exact names and by what its
//! server says of its effects. [`Consent`] is one evaluation's way through it: it asks an [`Approver`] where a person
//! is to be asked, and counts calls against the quotas. `read` makes policies of configurations.

mod client;
mod consent;
mod quotas;
mod read;

use std::collections::BTreeMap;
use std::fmt;

use globset::GlobMatcher;

use crate::lang::ToolHints;

pub(super) use client::AskingClient;
pub use consent::{Answer, Approver, Nobody, Question};
pub(super) use consent::{Consent, nobody};
pub(super) use quotas::Counts;

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

/// What a tool does to the world, by its server's own account, as MCP's tool annotations give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// `readOnlyHint` is true: it changes nothing.
    ReadOnly,
    /// It has annotations, and they say neither that it only reads nor that it destroys.
    Writes,
    /// `destructiveHint` is true: what it changes may be lost.
    Destructive,
    /// Its server says nothing. MCP would take that for destructive, and most servers in the world for that.
    Unannotated,
}

impl Effect {
    const ALL: [Effect; 4] = [Effect::ReadOnly, Effect::Writes, Effect::Destructive, Effect::Unannotated];

    /// What those hints say. Where they contradict each other the worse is taken.
    pub fn of(hints: &ToolHints) -> Effect {
        match hints {
            ToolHints { destructive: Some(true), .. } => Effect::Destructive,
            ToolHints { read_only: Some(true), .. } => Effect::ReadOnly,
            ToolHints { read_only: None, destructive: None, idempotent: None } => Effect::Unannotated,
            _ => Effect::Writes,
        }
    }

    /// As a configuration writes it.
    pub fn key(self) -> &'static str {
        match self {
            Effect::ReadOnly => "read_only",
            Effect::Writes => "writes",
            Effect::Destructive => "destructive",
            Effect::Unannotated => "unannotated",
        }
    }

    /// What is done where no rule names the tool and no configuration says otherwise.
    fn usual(self) -> Verdict {
        match self {
            Effect::Destructive => Verdict::Ask,
            Effect::ReadOnly | Effect::Writes | Effect::Unannotated => Verdict::Allow,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Effect::ReadOnly => "only reads, by its own account",
            Effect::Writes => "writes, by its own account",
            Effect::Destructive => "is destructive, by its own account",
            Effect::Unannotated => "does not say what it does",
        })
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
/// A pattern is a name in which `*` stands for any characters, `?` for one, `{a,b}` for one of several; with a `/` in
/// it, it is matched with `server/tool`, otherwise with the name of the tool. It looks at exact names only.
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
    /// What a message calls it: "`tools.allow` of servers.yaml".
    name: String,
    /// The file that it stands in; empty for a command line.
    file: String,
    patterns: Vec<Pattern>,
}

impl List {
    fn is_flag(&self) -> bool {
        self.file.is_empty()
    }

    fn finds(&self, tool: &Named<'_>) -> Option<&Pattern> {
        self.patterns.iter().find(|pattern| pattern.fits(tool))
    }

    /// The pattern that says most about a tool: its name in full, if that is there.
    fn names(&self, tool: &Named<'_>) -> Option<&Pattern> {
        self.patterns.iter().filter(|pattern| pattern.fits(tool)).max_by_key(|pattern| pattern.is_exact())
    }
}

/// The names of a tool that patterns are matched with.
struct Named<'a> {
    tool: &'a str,
    /// `server/tool`.
    qualified: String,
}

impl Named<'_> {
    fn new<'a>(server: &str, tool: &'a str) -> Named<'a> {
        Named { tool, qualified: format!("{server}/{tool}") }
    }
}

/// A name, or a pattern of names.
#[derive(Clone, Debug)]
struct Pattern(GlobMatcher);

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text() == other.text()
    }
}

impl Pattern {
    fn text(&self) -> &str {
        self.0.glob().glob()
    }

    fn fits(&self, tool: &Named<'_>) -> bool {
        self.0.is_match(if self.text().contains('/') { &tool.qualified } else { tool.tool })
    }

    fn is_exact(&self) -> bool {
        !self.text().contains(['*', '?', '[', '{', '\\'])
    }
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
        self.lists.retain(|list| files.contains(&list.file));
        self.defaults.retain(|_, (_, file)| files.contains(file));
        self.quotas.retain(|quota| files.contains(&quota.file));
        self
    }

    /// What is done with a tool of a server, which says that of its effects.
    pub fn decide(&self, server: &str, tool: &str, hints: &ToolHints) -> Decision {
        self.rule(&Named::new(server, tool), hints).decision()
    }

    /// What the lists say, where one names the tool.
    pub(super) fn decide_by_name(&self, server: &str, tool: &str) -> Option<Decision> {
        self.rule_by_name(&Named::new(server, tool)).map(|rule| rule.decision())
    }

    /// True where a tool may not be called.
    pub fn denies(&self, server: &str, tool: &str, hints: &ToolHints) -> bool {
        self.rule(&Named::new(server, tool), hints).verdict() == Verdict::Deny
    }

    fn rule(&self, tool: &Named<'_>, hints: &ToolHints) -> Rule<'_> {
        self.rule_by_name(tool).unwrap_or_else(|| {
            let effect = Effect::of(hints);
            match self.defaults.get(&effect) {
                Some((verdict, file)) => Rule::Effect(effect, *verdict, Some(file)),
                None => Rule::Effect(effect, effect.usual(), None),
            }
        })
    }

    fn rule_by_name(&self, tool: &Named<'_>) -> Option<Rule<'_>> {
        for list in &self.lists {
            match (list.purpose, list.finds(tool)) {
                (Purpose::Block, Some(pattern)) => return Some(Rule::Pattern(list, pattern, Verdict::Deny)),
                (Purpose::Only, None) => return Some(Rule::NotAmong(list)),
                _ => {}
            }
        }
        let rules = self.lists.iter().filter_map(|list| match list.purpose {
            Purpose::Rule(verdict) => list.names(tool).map(|pattern| (list, pattern, verdict)),
            Purpose::Only | Purpose::Block => None,
        });
        let rank =
            |(list, pattern, verdict): &(&List, &Pattern, Verdict)| (list.is_flag(), pattern.is_exact(), *verdict);
        rules.max_by_key(rank).map(|(list, pattern, verdict)| Rule::Pattern(list, pattern, verdict))
    }

    /// The rules in words, a line each: "only search-*, get-* (`tools.allow` of servers.yaml)".
    pub fn lines(&self) -> Vec<String> {
        let line = |list: &List| {
            let word = match list.purpose {
                Purpose::Only => "only",
                Purpose::Block => "without",
                Purpose::Rule(verdict) => verdict.key(),
            };
            let patterns: Vec<&str> = list.patterns.iter().map(Pattern::text).collect();
            format!("{word} {} ({})", patterns.join(", "), list.name)
        };
        let default = |(effect, (verdict, file)): (&Effect, &(Verdict, String))| {
            format!("{} what is {} (`policy.defaults` of {file})", verdict.key(), effect.key())
        };
        let lists = self.lists.iter().map(line);
        lists.chain(self.defaults.iter().map(default)).chain(self.quotas.iter().map(Quota::line)).collect()
    }
}

/// What decides on a tool. Its words are made where they are wanted only: what may be called is asked of all tools of a
/// server whenever a program names one.
enum Rule<'a> {
    /// A pattern of a list.
    Pattern(&'a List, &'a Pattern, Verdict),
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
            Rule::Pattern(list, pattern, _) => format!("{} has `{}`", list.name, pattern.text()),
            Rule::NotAmong(list) => format!("{} does not have it", list.name),
            Rule::Effect(effect, _, file) => {
                let from = file.map_or(", which is the default".to_owned(), |file| format!(" of {file}"));
                format!("it {effect}, and `policy.defaults` is {}: {}{from}", effect.key(), verdict.key())
            }
        };
        Decision { verdict, rule }
    }
}

#[cfg(test)]
mod tests;
