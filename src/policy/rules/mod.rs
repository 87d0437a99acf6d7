//! Rules that decide which tools programs may call: allow, ask a person, or deny.
//!
//! A [`Policy`] holds the rules of the operator, and decides on a tool by its name and by the [`Effect`]s that its
//! server declares. A [`ToolPattern`] is a tool in any spelling, or a pattern of tools, made of [`glob`]s and compared
//! with [`names`]; [`mod@unfit`] finds those that match no tool. [`call_limits`] bound the number of calls, and [`guards`] are
//! conditions on arguments. `read` parses policies from configurations.

mod call_limits;
mod effect;
mod glob;
mod guards;
mod names;
mod pattern;
mod read;
mod repeats;
mod timeouts;
mod unfit;
mod verbs;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use lispbox_lang::ToolHints;

use call_limits::CallLimit;
use guards::Guard;
use pattern::Fit;

pub use call_limits::{Caller, Counted, Counts};
pub use effect::Effect;
pub use guards::Objection;
pub use names::{Known, Name, Names, ToolName, is_unreadable};
pub use pattern::{NamePattern, ToolPattern};
pub use read::PolicyError;
pub use repeats::RepeatedCalls;
pub use timeouts::Timeouts;
pub use unfit::{Listed, UnfitRule, unfit};

/// The action taken when a program calls a tool, from the mildest to the strictest.
///
/// ```
/// use lispbox::policy::Verdict;
///
/// assert!(Verdict::Allow < Verdict::Ask && Verdict::Ask < Verdict::Deny);
/// ```
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

    /// Returns the key in configurations.
    ///
    /// ```
    /// use lispbox::policy::Verdict;
    ///
    /// assert_eq!(Verdict::Deny.key(), "deny");
    /// ```
    pub fn key(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

/// The verdict on a tool and the rule behind it.
///
/// ```
/// use lispbox::lang::ToolHints;
/// use lispbox::policy::{Policy, Verdict};
///
/// let policy = Policy::read(r#"{"deny": ["mail/delete-*"]}"#).unwrap();
/// let decision = policy.decide("mail", "deleteAll", &ToolHints::default());
/// assert_eq!((decision.verdict, &*decision.rule), (Verdict::Deny, "`policy.deny` has `mail/delete-*`"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The action to take.
    pub verdict: Verdict,
    /// The rule, as a clause: "`policy.ask` of servers.yaml has `send-*`".
    pub rule: String,
}

impl Decision {
    /// True if the call is refused.
    ///
    /// ```
    /// use lispbox::lang::ToolHints;
    /// use lispbox::policy::Policy;
    ///
    /// assert!(!Policy::default().decide("mail", "send", &ToolHints::default()).denies());
    /// ```
    pub fn denies(&self) -> bool {
        self.verdict == Verdict::Deny
    }
}

/// The rules of the operator about tools.
///
/// A tool that matches a `tools.block`, or that a `tools.allow` does not match, is denied. Among the lists `allow`,
/// `ask` and `deny`, those of the command line or the environment take precedence over those of files; then a full name
/// over a pattern, and among equals the stricter over the milder. If none of them matches the tool, its declared effect
/// decides, see [`Effect`].
///
/// Names and patterns are compared as described at [`ToolPattern`]. A rule that may mean this tool or another applies
/// if it denies or asks, and not if it allows.
///
/// ```
/// use lispbox::policy::Policy;
///
/// let policy = Policy::read(r#"{"ask": ["mail/send"], "trusted": ["contacts/*"]}"#).unwrap();
/// assert_eq!(policy.lines(), ["ask mail/send (`policy.ask`)", "texts of contacts/* are trusted"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    lists: Vec<List>,
    /// The verdicts by effect, each with the file that sets it.
    defaults: BTreeMap<Effect, (Usual, String)>,
    limits: Vec<CallLimit>,
    /// Conditions on arguments.
    guards: Vec<Guard>,
    /// The tools whose texts are trusted.
    trusted: Vec<(Source, ToolPattern)>,
    /// What becomes of calls that an earlier program has made, with the file that says so.
    repeats: Option<(RepeatedCalls, String)>,
}

/// The verdict on an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usual {
    Fixed(Verdict),
    /// A person is asked about tools whose names have a verb of more than reading; others are allowed.
    ByName,
}

impl Usual {
    /// The value in configurations.
    const BY_NAME: &str = "by_name";

    fn key(self) -> &'static str {
        match self {
            Usual::Fixed(verdict) => verdict.key(),
            Usual::ByName => Usual::BY_NAME,
        }
    }
}

/// The purpose of a list of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// `tools.allow`: tools that it does not match are denied.
    Only,
    /// `tools.block`: tools that it matches are denied, regardless of other rules.
    Block,
    /// One of the lists of a policy.
    Rule(Verdict),
}

#[derive(Clone, Debug, PartialEq)]
struct List {
    purpose: Purpose,
    source: Source,
    patterns: Vec<ToolPattern>,
}

/// The source of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Source {
    /// The path of keys, the flag of a command line, or the name of an environment variable.
    key: String,
    /// The file with its path; empty for a flag or variable.
    file: String,
}

impl Source {
    fn is_flag(&self) -> bool {
        self.file.is_empty()
    }

    /// Formats the source without the folder, for programs and models, which must not learn paths of this machine:
    /// "`tools.allow` of servers.yaml".
    fn without_folder(&self) -> String {
        Source { key: self.key.clone(), file: name_of(&self.file).to_owned() }.to_string()
    }
}

/// Formats the source for the operator: "`tools.allow` of /etc/lispbox/servers.yaml".
impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { key, file } = self;
        write!(formatter, "`{key}`{}", of(file))
    }
}

/// Names the file of a rule behind its key, if the rule is in a file: " of servers.yaml".
fn of(file: &str) -> String {
    if file.is_empty() { String::new() } else { format!(" of {file}") }
}

/// Returns the name of a file, without its folder.
pub fn name_of(file: &str) -> &str {
    Path::new(file).file_name().and_then(OsStr::to_str).unwrap_or(file)
}

/// A match of a list's pattern with a tool.
struct Hit<'a> {
    list: &'a List,
    pattern: &'a ToolPattern,
    fit: Fit,
    /// True if the pattern is the full name of the tool.
    is_exact: bool,
}

impl Policy {
    /// Adds the policy of another file: appends its lists and limits, and overrides defaults.
    #[doc(hidden)]
    pub fn merge(&mut self, other: Policy) {
        let Policy { lists, defaults, limits, guards, trusted, repeats } = other;
        self.lists.extend(lists);
        self.defaults.extend(defaults);
        self.limits.extend(limits);
        self.guards.extend(guards);
        self.trusted.extend(trusted);
        self.repeats = repeats.or(self.repeats.take());
    }

    /// Keeps only the rules from one of those files.
    #[doc(hidden)]
    pub fn of_files(self, files: &[String]) -> Policy {
        let Policy { mut lists, mut defaults, mut limits, mut guards, mut trusted, repeats } = self;
        lists.retain(|list| files.contains(&list.source.file));
        defaults.retain(|_, (_, file)| files.contains(file));
        limits.retain(|limit| files.contains(&limit.source.file));
        guards.retain(|guard| files.contains(&guard.source.file));
        trusted.retain(|(source, _)| files.contains(&source.file));
        let repeats = repeats.filter(|(_, file)| files.contains(file));
        Policy { lists, defaults, limits, guards, trusted, repeats }
    }

    /// Returns what becomes of a call that an earlier program has made.
    #[doc(hidden)]
    pub fn repeated_calls(&self) -> RepeatedCalls {
        self.repeats.as_ref().map(|(repeats, _)| *repeats).unwrap_or_default()
    }

    /// Decides on a tool of a server, which declares its effects in `hints`. Assumes that no other tool of the server
    /// has a name that differs only in spelling.
    ///
    /// ```
    /// use lispbox::lang::ToolHints;
    /// use lispbox::policy::{Policy, Verdict};
    ///
    /// let destructive = ToolHints { destructive: Some(true), ..ToolHints::default() };
    /// assert_eq!(Policy::default().decide("mail", "purge", &destructive).verdict, Verdict::Ask);
    /// ```
    pub fn decide(&self, server: &str, tool: &str, hints: &ToolHints) -> Decision {
        self.decide_on(&ToolName::alone(server, tool), hints)
    }

    /// True if a tool must not be called; see [`Policy::decide`].
    ///
    /// ```
    /// use lispbox::lang::ToolHints;
    /// use lispbox::policy::Policy;
    ///
    /// let policy = Policy::read(r#"{"deny": ["mail/*"]}"#).unwrap();
    /// assert!(policy.denies("mail", "send", &ToolHints::default()));
    /// ```
    pub fn denies(&self, server: &str, tool: &str, hints: &ToolHints) -> bool {
        self.denies_it(&ToolName::alone(server, tool), hints)
    }

    /// Decides on a tool, given the names of the other tools.
    #[doc(hidden)]
    pub fn decide_on(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Decision {
        self.rule(tool, hints).decision()
    }

    /// Decides on a call whose arguments cannot be checked: if no list matches the tool, the stricter of the verdicts
    /// on its declared effect and on unchecked arguments.
    #[doc(hidden)]
    pub fn decide_unchecked(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Decision {
        let rule = self.rule(tool, hints);
        let unchecked = self.rule_of(Effect::Unchecked, tool);
        let is_named = !matches!(rule, Rule::Effect(..) | Rule::Verb(..));
        if is_named || rule.verdict() > unchecked.verdict() { rule.decision() } else { unchecked.decision() }
    }

    /// True if a tool must not be called, given the names of the other tools.
    #[doc(hidden)]
    pub fn denies_it(&self, tool: &ToolName<'_>, hints: &ToolHints) -> bool {
        self.rule(tool, hints).verdict() == Verdict::Deny
    }

    /// Returns the denial of a tool if it is certain regardless of the tool's effects and of the server's other tools.
    #[doc(hidden)]
    pub fn denial_by_name(&self, tool: &ToolName<'_>) -> Option<Decision> {
        let hits = self.hits(tool);
        let counts: [fn(&Hit<'_>) -> bool; 3] = [is_certain, is_strict, |_| true];
        let mut rules = counts.map(|counts| self.rule_by_name(&hits, counts)).into_iter();
        let first = rules.next().flatten().filter(|rule| rule.verdict() == Verdict::Deny)?;
        let is_sure = rules.all(|rule| rule.is_some_and(|rule| rule.verdict() == Verdict::Deny));
        is_sure.then(|| first.decision())
    }

    /// Returns the stricter of two rules: the one based on certain matches only, and the one that also includes
    /// possible matches of rules that deny or ask.
    fn rule(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Rule<'_> {
        let hits = self.hits(tool);
        let rule = |counts| self.rule_by_name(&hits, counts).unwrap_or_else(|| self.rule_of(Effect::of(hints), tool));
        let certain = rule(is_certain);
        if hits.iter().all(is_certain) {
            return certain;
        }
        let strict = rule(is_strict);
        if strict.verdict() > certain.verdict() { strict } else { certain }
    }

    fn rule_of(&self, effect: Effect, tool: &ToolName<'_>) -> Rule<'_> {
        match self.defaults.get(&effect) {
            Some((Usual::Fixed(verdict), file)) => Rule::Effect(effect, *verdict, Some(file)),
            Some((Usual::ByName, file)) => match verbs::risky(tool.tool.text) {
                Some(verb) => Rule::Verb(verb, file),
                None => Rule::Effect(effect, Verdict::Allow, Some(file)),
            },
            None => Rule::Effect(effect, effect.usual(), None),
        }
    }

    /// Returns the verb in the name of a tool by which it seems to do more than read, although nobody has said what it
    /// does and no rule names it: with `policy.defaults.unannotated: by_name`, a person is asked about it.
    #[doc(hidden)]
    pub fn unasked(&self, tool: &ToolName<'_>, hints: &ToolHints) -> Option<&'static str> {
        match self.rule(tool, hints) {
            Rule::Effect(Effect::Unannotated, Verdict::Allow, _) => verbs::risky(tool.tool.text),
            _ => None,
        }
    }

    fn hits<'p>(&'p self, tool: &ToolName<'_>) -> Vec<Hit<'p>> {
        let patterns = self.lists.iter().flat_map(|list| list.patterns.iter().map(move |pattern| (list, pattern)));
        let hit = |(list, pattern): (_, &'p ToolPattern)| {
            pattern.fit(tool).map(|(fit, is_exact)| Hit { list, pattern, fit, is_exact })
        };
        patterns.filter_map(hit).collect()
    }

    /// Returns the rule that the lists give for the hits that count.
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

    /// Describes the rules, one line each: "only search-*, get-* (`tools.allow` of servers.yaml)".
    ///
    /// ```
    /// use lispbox::policy::Policy;
    ///
    /// let policy = Policy::read(r#"{"defaults": {"writes": "ask"}}"#).unwrap();
    /// assert_eq!(policy.lines(), ["ask what is writes (`policy.defaults`)"]);
    /// ```
    pub fn lines(&self) -> Vec<String> {
        // The lines of guards have the tools whose texts are trusted.
        let Policy { lists, defaults, limits, guards: _, trusted: _, repeats } = self;
        let line = |list: &List| {
            let word = match list.purpose {
                Purpose::Only => "only",
                Purpose::Block => "without",
                Purpose::Rule(verdict) => verdict.key(),
            };
            let patterns: Vec<&str> = list.patterns.iter().map(ToolPattern::text).collect();
            format!("{word} {} ({})", patterns.join(", "), list.source)
        };
        let default = |(effect, (usual, file)): (&Effect, &(Usual, String))| match usual {
            Usual::Fixed(verdict) => {
                format!("{} what is {} (`policy.defaults`{})", verdict.key(), effect.key(), of(file))
            }
            Usual::ByName => {
                format!("ask about what is {}, by its name (`policy.defaults`{})", effect.key(), of(file))
            }
        };
        let rules =
            lists.iter().map(line).chain(defaults.iter().map(default)).chain(limits.iter().map(CallLimit::line));
        let repeats = repeats.iter().map(|(repeats, file)| {
            format!("calls that repeat those of a failed program are {} (`policy.repeats`{})", repeats.done(), of(file))
        });
        rules.chain(repeats).chain(self.guard_lines()).collect()
    }
}

fn is_certain(hit: &Hit<'_>) -> bool {
    hit.fit == Fit::Certain
}

/// A rule that denies or asks counts in any case, one that allows only if its match is certain.
fn is_strict(hit: &Hit<'_>) -> bool {
    is_certain(hit) || !matches!(hit.list.purpose, Purpose::Only | Purpose::Rule(Verdict::Allow))
}

/// The rule that decides on a tool. It is formatted only on demand, since all tools of a server are checked whenever a
/// program names one.
enum Rule<'a> {
    /// A pattern of a list.
    Pattern(&'a List, &'a ToolPattern, Verdict),
    /// An exhaustive list of allowed tools does not match it.
    NotAmong(&'a List),
    /// The verdict on its declared effect, from that file or by default.
    Effect(Effect, Verdict, Option<&'a str>),
    /// The tool declares no effect, but its name has that verb; the file says that this matters.
    Verb(&'static str, &'a str),
}

impl Rule<'_> {
    fn verdict(&self) -> Verdict {
        match *self {
            Rule::Pattern(_, _, verdict) | Rule::Effect(_, verdict, _) => verdict,
            Rule::NotAmong(_) => Verdict::Deny,
            Rule::Verb(..) => Verdict::Ask,
        }
    }

    fn decision(&self) -> Decision {
        let verdict = self.verdict();
        let rule = match self {
            Rule::Pattern(list, pattern, _) => format!("{} has `{}`", list.source.without_folder(), pattern.text()),
            Rule::NotAmong(list) => format!("{} does not have it", list.source.without_folder()),
            Rule::Effect(effect, _, file) => {
                let from = file.map_or(", which is the default".to_owned(), |file| of(name_of(file)));
                format!("it {effect}, and `policy.defaults` is {}: {}{from}", effect.key(), verdict.key())
            }
            Rule::Verb(verb, file) => {
                let (effect, from) = (Effect::Unannotated, of(name_of(file)));
                format!(
                    "it {effect}, its name has `{verb}`, and `policy.defaults` is {}: {}{from}",
                    effect.key(),
                    Usual::BY_NAME
                )
            }
        };
        Decision { verdict, rule }
    }
}

#[cfg(test)]
mod tests;
