//! Limits on the number of calls of a tool.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Policy, Source, ToolName, ToolPattern};

/// Maximum count of a limit, since the time of each call is stored.
pub(super) const LARGEST: u32 = 100_000;

/// A maximum number of calls, counted separately for each matching tool and each principal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallLimit {
    pub(super) patterns: Vec<ToolPattern>,
    pub(super) per: Per,
    pub(super) count: u32,
    pub(super) source: Source,
}

/// The period over which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl CallLimit {
    /// Describes the limit on one line.
    pub(super) fn line(&self) -> String {
        let patterns: Vec<&str> = self.patterns.iter().map(ToolPattern::text).collect();
        format!("at most {} {} of {} ({})", self.count, self.per.key(), patterns.join(", "), self.source)
    }
}

/// The times of the calls that limits count: those of all principals, or of one evaluation. Any window of a limit's
/// length contains at most as many calls as it allows. A time is that since any fixed point, the same for all calls.
#[derive(Default)]
pub struct Counts(Mutex<HashMap<CountKey, VecDeque<Duration>>>);

/// The key of a separate count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct CountKey {
    /// The limit that counts. Stored texts may have it by its earlier name.
    #[serde(alias = "quota")]
    limit: Source,
    per: Per,
    server: String,
    /// The exact name of the tool, regardless of spellings in programs and rules.
    tool: String,
    principal: String,
}

/// A tool and the principal that calls it.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The tool.
    pub tool: &'a ToolName<'a>,
    /// The principal.
    pub principal: &'a str,
}

/// The times of the calls of a separate count, in milliseconds, to be stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    key: CountKey,
    times: Vec<u64>,
}

impl Counts {
    /// Returns all counts, in a fixed order.
    pub fn stored(&self) -> Vec<Counted> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let counted = |(key, times): (&CountKey, &VecDeque<Duration>)| Counted {
            key: key.clone(),
            times: times.iter().map(millis).collect(),
        };
        let mut stored: Vec<Counted> = counts.iter().map(counted).filter(|counted| !counted.times.is_empty()).collect();
        stored.sort_by_cached_key(|counted| format!("{:?}", counted.key));
        stored
    }

    /// Replaces all counts by stored ones.
    pub fn restore(&self, stored: Vec<Counted>) {
        let counts = stored
            .into_iter()
            .map(|Counted { key, times }| (key, times.into_iter().map(Duration::from_millis).collect::<VecDeque<_>>()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counts.collect();
    }

    /// Counts a call against the limits of a policy that are per evaluation, or against the others.
    ///
    /// # Errors
    /// Returns which limit is exhausted and when it has room again; the call is then not counted.
    pub fn take(&self, policy: &Policy, by_evaluation: bool, caller: Caller<'_>, now: Duration) -> Result<(), String> {
        let Caller { tool, principal } = caller;
        let fits = |limit: &&CallLimit| {
            (limit.per == Per::Evaluation) == by_evaluation
                && limit.patterns.iter().any(|pattern| pattern.fit(tool).is_some())
        };
        let counted = |limit: &CallLimit| CountKey {
            limit: limit.source.clone(),
            per: limit.per,
            server: tool.server.text.to_owned(),
            tool: tool.tool.text.to_owned(),
            principal: principal.to_owned(),
        };
        let limits: Vec<&CallLimit> = policy.limits.iter().filter(fits).collect();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for limit in &limits {
            let calls = counts.entry(counted(limit)).or_default();
            if let Some(time) = limit.per.time() {
                while calls.front().is_some_and(|call| now.saturating_sub(*call) >= time) {
                    calls.pop_front();
                }
            }
            if calls.len() >= limit.count as usize {
                let again = match (limit.per.time(), calls.front()) {
                    (Some(time), Some(first)) => {
                        let wait = time.saturating_sub(now.saturating_sub(*first));
                        format!("; the next is free in {} s", wait.as_millis().div_ceil(1000).max(1))
                    }
                    _ => String::new(),
                };
                let (source, count, per) =
                    (limit.source.without_folder(), limit.count, limit.per.key().replace('_', " "));
                return Err(format!("{source} allows {count} {per}{again}"));
            }
        }
        for limit in limits {
            counts.entry(counted(limit)).or_default().push_back(now);
        }
        Ok(())
    }
}
