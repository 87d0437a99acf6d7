//! Reports rules that match no tool of the servers.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::server::policy::{self, Listed, Names, UnfitRule};

use super::Downstreams;

/// The rules that have been reported, and whether there may be others.
#[derive(Default)]
pub(super) struct Unfit {
    is_due: AtomicBool,
    reported: Mutex<HashSet<String>>,
}

impl Unfit {
    /// Records that a tool list, or the rules, have changed.
    pub(super) fn look_again(&self) {
        self.is_due.store(true, Ordering::Release);
    }
}

impl Downstreams {
    /// Returns the rules, including tool timeouts, that match no tool of the servers, as far as the servers have
    /// listed their tools.
    pub fn unfit_rules(&self) -> Vec<UnfitRule> {
        let servers = self.all();
        let names = Names::of(servers.iter().map(|server| server.name()));
        let tools: Vec<Option<Arc<Names>>> = servers.iter().map(|server| server.listed_names()).collect();
        let all = servers.iter().zip(&tools);
        let all: Vec<Listed<'_>> =
            all.map(|(server, tools)| Listed { server: server.name(), tools: tools.as_deref() }).collect();
        let policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut unfit = policy::unfit(&policy, None, &all, &names);
        unfit.extend(policy::unfit(&self.shared.options.policy, None, &all, &names));
        for (server, listed) in servers.iter().zip(&all) {
            let config = server.config();
            let timeouts = Some((server.timeouts(), config.file.as_str()));
            unfit.extend(policy::unfit(&config.policy, timeouts, std::slice::from_ref(listed), &names));
        }
        unfit
    }

    /// Logs the rules that match no tool, each once, as soon as the lists of all servers to which it may apply are
    /// known.
    pub(in crate::server) fn log_unfit_rules(&self) {
        if !self.shared.unfit.is_due.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut reported = self.shared.unfit.reported.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in self.unfit_rules().into_iter().filter(|rule| rule.unknown.is_empty()) {
            if reported.insert(rule.to_string()) {
                tracing::warn!("{rule}");
            }
        }
    }
}
