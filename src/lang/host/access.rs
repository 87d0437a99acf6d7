//! The evaluation's access to its host. Work of the host is charged to no account, and a host is only borrowed for the
//! time of an evaluation.

use super::{
    Audience, CallId, Catalogue, Decision, Found, Host, Question, Server, Tool, ToolCall, ToolError, ToolReply,
};
use crate::meter::{Outside, outside};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A reference to the host of an evaluation, shared by its branches; `None` is [`NoHost`].
pub struct HostAccess(Option<NonNull<Lent>>);

/// A borrowed host with its lifetime erased. It is on the stack of [`HostAccess::lend`], which waits until there are no
/// references.
struct Lent {
    host: NonNull<dyn Host>,
    references: AtomicUsize,
}

// SAFETY: the lent host is only used as `&dyn Host`, and a `Host` is `Sync`; the count of references is atomic.
unsafe impl Send for HostAccess {}
// SAFETY: as above.
unsafe impl Sync for HostAccess {}

impl Clone for HostAccess {
    fn clone(&self) -> HostAccess {
        if let Some(lent) = self.lent() {
            lent.references.fetch_add(1, Ordering::Relaxed);
        }
        HostAccess(self.0)
    }
}

impl Drop for HostAccess {
    fn drop(&mut self) {
        if let Some(lent) = self.lent() {
            lent.references.fetch_sub(1, Ordering::Release);
        }
    }
}

/// A host without tools, for work on a session that makes no calls.
pub struct NoHost;

impl Host for NoHost {}

/// Waits until there are no references to a lent host.
struct Returned<'l>(&'l Lent);

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        // Branches end before their evaluation does; only the last instructions of their threads may be outstanding.
        while self.0.references.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }
}

impl HostAccess {
    /// Returns the access to a host without tools, between two evaluations.
    pub(crate) fn none() -> HostAccess {
        HostAccess(None)
    }

    /// Lends a host to `work`. Returns when no reference to the host is left, which `work` must ensure.
    pub(crate) fn lend<R>(host: &dyn Host, work: impl FnOnce(HostAccess) -> R) -> R {
        let host = NonNull::from(host);
        // SAFETY: only the lifetime changes. `Returned` keeps this function from returning or unwinding before the last
        // clone of the access is dropped, so the host outlives every use of the pointer.
        let host = unsafe { std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host + 'static>>(host) };
        let lent = Lent { host, references: AtomicUsize::new(1) };
        let _returned = Returned(&lent);
        work(HostAccess(Some(NonNull::from(&lent))))
    }

    fn lent(&self) -> Option<&Lent> {
        // SAFETY: `lend` does not return while this access exists.
        self.0.map(|lent| unsafe { lent.as_ref() })
    }

    fn host(&self) -> &dyn Host {
        match self.lent() {
            // SAFETY: as in `lent`.
            Some(lent) => unsafe { lent.host.as_ref() },
            None => &NoHost,
        }
    }

    pub(crate) fn audience(&self) -> Audience {
        outside(|| self.host().audience())
    }

    pub(crate) fn takes_values(&self) -> bool {
        outside(|| self.host().takes_values())
    }

    pub(crate) fn servers(&self) -> Outside<Vec<Server>> {
        Outside::of(|| self.host().servers())
    }

    pub(crate) fn tools(&self, server: &str) -> Outside<Result<Vec<Arc<Tool>>, ToolError>> {
        Outside::of(|| self.host().tools(server))
    }

    pub(crate) fn tools_anew(&self, server: &str) -> Outside<Option<Vec<Arc<Tool>>>> {
        Outside::of(|| self.host().tools_anew(server))
    }

    pub(crate) fn instructions(&self, server: &str) -> Outside<Option<String>> {
        Outside::of(|| self.host().instructions(server))
    }

    pub(crate) fn denied(&self, server: &str) -> Outside<Vec<(String, String)>> {
        Outside::of(|| self.host().denied(server))
    }

    pub(crate) fn refused(&self, server: &str, tool: &str) {
        outside(|| self.host().refused(server, tool));
    }

    pub(crate) fn catalogue(&self) -> Outside<Catalogue> {
        Outside::of(|| self.host().catalogue())
    }

    pub(crate) fn search(&self, query: &str, most: usize) -> Outside<Found> {
        Outside::of(|| self.host().search(query, most))
    }

    /// Calls a tool. A panic is the error `ToolPanic` of this call.
    pub(crate) fn call(&self, call: Outside<ToolCall>) -> Outside<ToolReply> {
        Outside::of(|| {
            let call = call.into_inner();
            let (server, tool) = (call.server.clone(), call.tool.clone());
            catch_unwind(AssertUnwindSafe(|| self.host().call(call)))
                .unwrap_or_else(|payload| ToolReply::Error(ToolError::panicked(&server, &tool, &*payload)))
        })
    }

    /// Returns a decision on each question; a missing one is unavailable. A panic of the host denies all.
    pub(crate) fn decide(&self, questions: &[Question]) -> Outside<Vec<Decision>> {
        Outside::of(|| {
            let decided = catch_unwind(AssertUnwindSafe(|| self.host().decide(questions)));
            let mut decisions = decided.unwrap_or_default();
            decisions.resize(questions.len(), Decision::Unavailable("the host gave no decision".to_owned()));
            decisions
        })
    }

    pub(crate) fn begin_form(&self, form: u32) {
        outside(|| self.host().begin_form(form));
    }

    pub(crate) fn was_sent(&self, call: &CallId) -> bool {
        outside(|| self.host().was_sent(call))
    }

    pub(crate) fn was_made_before(&self, call: &CallId) -> bool {
        outside(|| self.host().was_made_before(call))
    }

    pub(crate) fn note(&self, call: &CallId) -> Outside<Option<String>> {
        Outside::of(|| self.host().note(call))
    }

    pub(crate) fn give_up(&self, call: &CallId) {
        outside(|| self.host().give_up(call));
    }

    pub(crate) fn print(&self, text: &str) {
        outside(|| self.host().print(text));
    }

    pub(crate) fn now_millis(&self) -> i64 {
        outside(|| self.host().now_millis())
    }

    pub(crate) fn fork_session(&self) -> Outside<Result<String, String>> {
        Outside::of(|| self.host().fork_session())
    }

    pub(crate) fn runs(&self, run: Option<&str>) -> Outside<Result<String, String>> {
        Outside::of(|| self.host().runs(run))
    }

    pub(crate) fn close_session(&self) -> Outside<Result<(), String>> {
        Outside::of(|| self.host().close_session())
    }

    pub(crate) fn held(&self) -> u64 {
        outside(|| self.host().held())
    }

    pub(crate) fn random(&self) -> u64 {
        outside(|| self.host().random())
    }

    pub(crate) fn monotonic(&self) -> Duration {
        outside(|| self.host().monotonic())
    }

    pub(crate) fn processor_time(&self) -> Option<Duration> {
        outside(|| self.host().processor_time())
    }

    pub(crate) fn cancelled(&self) -> bool {
        outside(|| self.host().cancelled())
    }
}
