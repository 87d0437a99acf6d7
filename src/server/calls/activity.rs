//! The current activity of an evaluation, for progress notifications and for those who ask about a program that goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::lang::internal::foreign_text;
use crate::lang::{CallState, MadeCalls, RunLog};
use crate::server::runs::Promise;

/// Maximum number of tools whose calls are counted separately.
const MOST_TOOLS: usize = 8;

/// Maximum number of tools that are named.
const NAMED: usize = 3;

/// The current activity of an evaluation.
#[derive(Default)]
pub(in crate::server) struct Activity {
    stage: Mutex<Stage>,
    /// The identity of its run, once somebody needs it.
    run: OnceLock<String>,
    /// The log of its run, once it has begun.
    log: OnceLock<Arc<RunLog>>,
    /// Keeps the run for other processes, if there is a store.
    promise: OnceLock<Promise>,
    /// True once the client was told to ask for its reply.
    is_promised: AtomicBool,
}

#[derive(Default)]
struct Stage {
    is_running: bool,
    /// The number of calls so far.
    calls: u64,
    tools: Vec<Called>,
    /// The position of the tool that was called last.
    last: usize,
    /// The calls that are under way, the oldest first.
    under_way: Vec<UnderWay>,
}

/// A call that is under way.
struct UnderWay {
    number: u64,
    /// The position of its tool, or its name if the position is that of several tools.
    tool: Result<usize, String>,
    since: Instant,
}

/// A tool that was called.
struct Called {
    server: String,
    tool: String,
    count: u64,
}

impl Called {
    fn name(&self) -> String {
        foreign_text::qualified(&self.server, &self.tool)
    }
}

impl Activity {
    /// Records that its turn has come.
    pub(in crate::server) fn begins(&self) {
        *self.stage() = Stage { is_running: true, ..Stage::default() };
    }

    /// Records that it calls a tool. Returns the number of the call, with which its [end](Activity::called) is recorded.
    pub(in crate::server) fn calls(&self, server: &str, tool: &str) -> u64 {
        let mut stage = self.stage();
        stage.calls += 1;
        let known = stage.tools.iter().position(|called| called.tool == tool && called.server == server);
        stage.last = match known {
            Some(known) => known,
            None => {
                // The last place is for all further tools, each in turn.
                stage.tools.truncate(MOST_TOOLS - 1);
                stage.tools.push(Called { server: server.to_owned(), tool: tool.to_owned(), count: 0 });
                stage.tools.len() - 1
            }
        };
        let (number, last) = (stage.calls, stage.last);
        stage.tools[last].count += 1;
        let tool = if last + 1 < MOST_TOOLS { Ok(last) } else { Err(stage.tools[last].name()) };
        stage.under_way.push(UnderWay { number, tool, since: Instant::now() });
        number
    }

    /// Records that a call has ended.
    pub(in crate::server) fn called(&self, number: u64) {
        self.stage().under_way.retain(|call| call.number != number);
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names its run.
    pub(in crate::server) fn is_run(&self, identity: &str) {
        // A run keeps its identity.
        self.run.get_or_init(|| identity.to_owned());
    }

    /// Returns the identity of its run, which it gets by this if it has none.
    ///
    /// # Errors
    /// Returns a message if the system has no randomness.
    pub(in crate::server) fn run(&self) -> Result<String, String> {
        if let Some(run) = self.run.get() {
            return Ok(run.clone());
        }
        let new = crate::store::handle()?;
        Ok(self.run.get_or_init(|| new).clone())
    }

    /// Records the log of its run.
    pub(in crate::server) fn logs_in(&self, log: &Arc<RunLog>) {
        self.log.get_or_init(|| Arc::clone(log));
    }

    /// Records what keeps the run for other processes. Blocks if the client was told already to ask for its reply.
    pub(in crate::server) fn is_stored_by(&self, promise: Promise) {
        let promise = self.promise.get_or_init(|| promise);
        if self.is_promised.load(Ordering::SeqCst) {
            promise.keep();
        }
    }

    /// Keeps the run for other processes of a store: its client is about to be told to ask for its reply. Returns false if
    /// its evaluation has ended. Blocks.
    pub(in crate::server) fn promise(&self) -> bool {
        self.is_promised.store(true, Ordering::SeqCst);
        self.promise.get().is_none_or(Promise::keep)
    }

    /// True if its client was told to ask for its reply.
    pub(in crate::server) fn is_promised(&self) -> bool {
        self.is_promised.load(Ordering::SeqCst)
    }

    /// Returns the calls so far that have changed something, or may have, but those that are under way.
    pub(in crate::server) fn made(&self) -> Vec<MadeCalls> {
        let Some(log) = self.log.get() else { return Vec::new() };
        log.among_changes(|changes| MadeCalls::of(changes.filter(|call| call.state != CallState::Started)))
    }

    /// Describes the activity to the user of a client.
    pub(in crate::server) fn message(&self) -> String {
        let stage = self.stage();
        match (stage.calls, stage.tools.get(stage.last)) {
            (1, Some(last)) => format!("1 tool call so far, to `{}`", last.name()),
            (count @ 1.., Some(last)) => format!("{count} tool calls so far, the last to `{}`", last.name()),
            _ if stage.is_running => "computing; no tool calls so far".to_owned(),
            _ => "waiting for its turn".to_owned(),
        }
    }

    /// Describes the activity to a model, as `31 tool calls so far: mail/export 30, crm/find 1; under way: crm/find for 3 s`.
    pub(in crate::server) fn summary(&self) -> String {
        let stage = self.stage();
        if stage.calls == 0 {
            let message = if stage.is_running { "no tool calls so far" } else { "waiting for its turn" };
            return message.to_owned();
        }
        let mut tools: Vec<&Called> = stage.tools.iter().collect();
        tools.sort_by_key(|called| std::cmp::Reverse(called.count));
        let named: Vec<String> =
            tools.iter().take(NAMED).map(|called| format!("{} {}", called.name(), called.count)).collect();
        let more = if tools.len() > NAMED { ", …" } else { "" };
        let calls = if stage.calls == 1 { "1 tool call".to_owned() } else { format!("{} tool calls", stage.calls) };
        let under_way = match &*stage.under_way {
            [] => String::new(),
            [oldest, others @ ..] => {
                let name = match &oldest.tool {
                    Ok(tool) => stage.tools.get(*tool).map(Called::name).unwrap_or_default(),
                    Err(name) => name.clone(),
                };
                let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
                format!("; under way: {name} for {} s{others}", oldest.since.elapsed().as_secs())
            }
        };
        format!("{calls} so far: {}{more}{under_way}", named.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_tool_and_the_most_frequent_are_named() {
        let activity = Activity::default();
        assert_eq!(activity.summary(), "waiting for its turn");
        activity.begins();
        assert_eq!(activity.summary(), "no tool calls so far");
        let found = activity.calls("crm", "find");
        assert_eq!(activity.summary(), "1 tool call so far: crm/find 1; under way: crm/find for 0 s");
        activity.called(found);
        assert_eq!(activity.summary(), "1 tool call so far: crm/find 1");
        let exports: Vec<u64> = (0..3).map(|_| activity.calls("mail", "export")).collect();
        let summary = activity.summary();
        assert!(summary.ends_with("; under way: mail/export for 0 s and 2 more"), "{summary}");
        exports.into_iter().for_each(|export| activity.called(export));
        assert_eq!(activity.summary(), "4 tool calls so far: mail/export 3, crm/find 1");
        assert_eq!(activity.message(), "4 tool calls so far, the last to `mail/export`");
        (0..20).for_each(|at| activity.called(activity.calls("files", &format!("read{at}"))));
        let summary = activity.summary();
        assert!(summary.starts_with("24 tool calls so far: mail/export 3, ") && summary.ends_with(", …"), "{summary}");
        assert_eq!(activity.message(), "24 tool calls so far, the last to `files/read19`");
    }

    #[test]
    fn a_run_keeps_the_identity_that_it_was_given_first() {
        let (named, unnamed) = (Activity::default(), Activity::default());
        named.is_run("h3k");
        assert_eq!((named.run(), named.run()), (Ok("h3k".to_owned()), Ok("h3k".to_owned())));
        let run = unnamed.run().expect("there is randomness");
        unnamed.is_run("h3k");
        assert_eq!(unnamed.run(), Ok(run));
    }
}
