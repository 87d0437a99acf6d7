//! How often a tool may be called.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Policy, Source, ToolName, ToolPattern};

/// The most calls that a quota may count, since each is remembered by its time.
pub(super) const LARGEST: u32 = 100_000;

/// So many calls, of each tool that it fits and for each principal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quota {
    pub(super) patterns: Vec<ToolPattern>,
    pub(super) per: Per,
    pub(super) count: u32,
    pub(super) source: Source,
}

/// What calls are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Evaluation,
    Minute,
    Hour,
    Day,
}

impl Per {
    pub(super) const ALL: [Per; 4] = [Per::Evaluation, Per::Minute, Per::Hour, Per::Day];

    /// As a configuration writes it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Per::Evaluation => "per_evaluation",
            Per::Minute => "per_minute",
            Per::Hour => "per_hour",
            Per::Day => "per_day",
        }
    }

    /// How long it lasts, if it is a time.
    fn time(self) -> Option<Duration> {
        match self {
            Per::Evaluation => None,
            Per::Minute => Some(Duration::from_secs(60)),
            Per::Hour => Some(Duration::from_secs(60 * 60)),
            Per::Day => Some(Duration::from_secs(24 * 60 * 60)),
        }
    }
}

impl Quota {
    /// The quota in words.
    pub(super) fn line(&self) -> String {
        let patterns: Vec<&str> = self.patterns.iter().map(ToolPattern::text).collect();
        format!("at most {} {} of {} ({})", self.count, self.per.key(), patterns.join(", "), self.source)
    }
}

/// When calls were made that quotas count: those of a principal, or of an evaluation. Any window of a quota's length
/// has at most as many calls as it allows.
#[derive(Default)]
pub(in crate::server) struct Counts(Mutex<HashMap<Counted, VecDeque<Instant>>>);

/// What is counted apart.
#[derive(PartialEq, Eq, Hash)]
struct Counted {
    quota: Source,
    per: &'static str,
    server: String,
    /// Its exact name: spellings in programs and rules do not count.
    tool: String,
    principal: String,
}

/// Somebody's calls of a tool.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) tool: &'a ToolName<'a>,
    pub(super) principal: &'a str,
}

impl Counts {
    /// Counts a call against the quotas of a policy that are by evaluation, or against the others.
    ///
    /// # Errors
    /// Which quota is used up, and when there is room again; the call is not counted then.
    pub(super) fn take(
        &self,
        policy: &Policy,
        by_evaluation: bool,
        caller: Caller<'_>,
        now: Instant,
    ) -> Result<(), String> {
        let Caller { tool, principal } = caller;
        let fits = |quota: &&Quota| {
            (quota.per == Per::Evaluation) == by_evaluation
                && quota.patterns.iter().any(|pattern| pattern.fit(tool).is_some())
        };
        let counted = |quota: &Quota| Counted {
            quota: quota.source.clone(),
            per: quota.per.key(),
            server: tool.server.text.to_owned(),
            tool: tool.tool.text.to_owned(),
            principal: principal.to_owned(),
        };
        let quotas: Vec<&Quota> = policy.quotas.iter().filter(fits).collect();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for quota in &quotas {
            let calls = counts.entry(counted(quota)).or_default();
            if let Some(time) = quota.per.time() {
                while calls.front().is_some_and(|call| now.saturating_duration_since(*call) >= time) {
                    calls.pop_front();
                }
            }
            if calls.len() >= quota.count as usize {
                let again = match (quota.per.time(), calls.front()) {
                    (Some(time), Some(first)) => {
                        let wait = time.saturating_sub(now.saturating_duration_since(*first));
                        format!("; the next is free in {} s", wait.as_secs() + 1)
                    }
                    _ => String::new(),
                };
                let (source, count, per) =
                    (quota.source.without_folder(), quota.count, quota.per.key().replace('_', " "));
                return Err(format!("{source} allows {count} {per}{again}"));
            }
        }
        for quota in quotas {
            counts.entry(counted(quota)).or_default().push_back(now);
        }
        Ok(())
    }
}
