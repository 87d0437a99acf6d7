//! Quotas on the number of calls of a tool.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Policy, Source, ToolName, ToolPattern};

/// Maximum count of a quota, since the time of each call is stored.
pub(super) const LARGEST: u32 = 100_000;

/// A maximum number of calls, counted separately for each matching tool and each principal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quota {
    pub(super) patterns: Vec<ToolPattern>,
    pub(super) per: Per,
    pub(super) count: u32,
    pub(super) source: Source,
}

/// The period over which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Evaluation,
    Minute,
    Hour,
    Day,
}

impl Per {
    pub(super) const ALL: [Per; 4] = [Per::Evaluation, Per::Minute, Per::Hour, Per::Day];

    /// Returns the key in configurations.
    pub(super) fn key(self) -> &'static str {
        match self {
            Per::Evaluation => "per_evaluation",
            Per::Minute => "per_minute",
            Per::Hour => "per_hour",
            Per::Day => "per_day",
        }
    }

    /// Returns the length of the period, if it is a time.
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
    /// Describes the quota on one line.
    pub(super) fn line(&self) -> String {
        let patterns: Vec<&str> = self.patterns.iter().map(ToolPattern::text).collect();
        format!("at most {} {} of {} ({})", self.count, self.per.key(), patterns.join(", "), self.source)
    }
}

/// The times of the calls that quotas count: those of all principals, or of one evaluation. Any window of a quota's
/// length contains at most as many calls as it allows.
#[derive(Default)]
pub(in crate::server) struct Counts(Mutex<HashMap<Counted, VecDeque<Instant>>>);

/// The key of a separate count.
#[derive(PartialEq, Eq, Hash)]
struct Counted {
    quota: Source,
    per: &'static str,
    server: String,
    /// The exact name of the tool, regardless of spellings in programs and rules.
    tool: String,
    principal: String,
}

/// A tool and the principal that calls it.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) tool: &'a ToolName<'a>,
    pub(super) principal: &'a str,
}

impl Counts {
    /// Counts a call against the quotas of a policy that are per evaluation, or against the others.
    ///
    /// # Errors
    /// Returns which quota is exhausted and when it has room again; the call is then not counted.
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
