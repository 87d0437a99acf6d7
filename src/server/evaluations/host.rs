//! Implements the language's [`Host`] over the downstream servers, for one evaluation: the adapter between the language
//! and the [calls](crate::server::calls).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::lang::{
    Audience, CallId, Catalogue, Decision, Found, Host, Question, Recorder, RunLog, Server, Tool, ToolCall, ToolError,
    ToolReply,
};
use crate::lang::{NO_HANDLES, NO_RUNS};
use crate::server::approvals::{Approver, Consent, Grants, no_approver};
use crate::server::audit::{Kind, Record};
use crate::server::calls::activity::Activity;
use crate::server::calls::{Calls, Features, Parts};
use crate::server::downstream::Downstreams;
use crate::server::identity::LOCAL;
use crate::server::identity::{Identity, sha256};
use crate::server::sessions::requests::SessionRequests;

/// Describes all runs of a principal that have not ended, or one of them, as JSON text.
pub(in crate::server) type RunStatus = Arc<dyn Fn(Option<&str>) -> Result<String, String> + Send + Sync>;

/// The host of one evaluation. [`EvaluationHost::into_host`] completes it.
pub struct EvaluationHost {
    parts: Parts,
    /// The calls of the evaluation, from its first call on.
    calls: OnceLock<Calls>,
    begun: Instant,
    /// Describes the runs of the principal.
    run_status: Option<RunStatus>,
    /// The denied tools that the program has named, as server and tool.
    refused: Mutex<HashSet<(String, String)>>,
}

impl EvaluationHost {
    /// Creates a host whose tool calls, at most `slots` at once, run on `runtime` until `cancel` is cancelled. It must
    /// not be used from the runtime's async threads, which it would block.
    pub fn new(
        downstreams: Arc<Downstreams>,
        runtime: Handle,
        cancel: CancellationToken,
        slots: u32,
        evaluation: u64,
    ) -> EvaluationHost {
        let identity = Arc::new(Identity { evaluation, principal: LOCAL.to_owned(), ..Identity::default() });
        let parts = Parts {
            downstreams,
            runtime,
            cancel,
            slots,
            consent: Arc::new(Consent::new(Arc::clone(&identity), Arc::new(no_approver()))),
            identity,
            activity: Arc::default(),
            requests: None,
            features: Features::default(),
        };
        EvaluationHost {
            parts,
            calls: OnceLock::new(),
            begun: Instant::now(),
            run_status: None,
            refused: Mutex::default(),
        }
    }

    /// Replaces the parts that its calls need. Must be called before the first call.
    fn with(self, parts: impl FnOnce(Parts) -> Parts) -> EvaluationHost {
        EvaluationHost { parts: parts(self.parts), calls: OnceLock::new(), ..self }
    }

    /// Sets the program, and the approver that asks a person about calls for which the policy requires approval.
    pub fn asking(self, program: &str, approver: Arc<dyn Approver>) -> EvaluationHost {
        self.asking_in(program, approver, None)
    }

    /// Like [`EvaluationHost::asking`], with the grants of the session.
    pub(in crate::server) fn asking_in(
        self,
        program: &str,
        approver: Arc<dyn Approver>,
        grants: Option<Arc<dyn Grants>>,
    ) -> EvaluationHost {
        let identity = Identity { program: sha256(program.as_bytes()), ..Identity::clone(&self.parts.identity) };
        self.known_as(Arc::new(identity), approver, grants)
    }

    /// Returns the host of a run that is not suspended: a person decides at once, or not at all.
    pub fn into_host(self) -> Arc<dyn Host> {
        let log = RunLog::unkept();
        Arc::new(Recorder::new(Arc::new(self), Arc::new(log)))
    }

    /// Sets the identity of the evaluation, its approver, and the grants that apply to its calls.
    pub(in crate::server) fn known_as(
        self,
        identity: Arc<Identity>,
        approver: Arc<dyn Approver>,
        grants: Option<Arc<dyn Grants>>,
    ) -> EvaluationHost {
        let origins = self.parts.features.origins();
        let consent = Consent::new(Arc::clone(&identity), approver).with_grants(grants).with_origins(origins);
        self.with(|parts| Parts { identity, consent: Arc::new(consent), ..parts })
    }

    /// Switches on what its calls need. Must be called before [`EvaluationHost::known_as`].
    pub(in crate::server) fn with_features(self, switch_on: impl FnOnce(&mut Features)) -> EvaluationHost {
        self.with(|mut parts| {
            switch_on(&mut parts.features);
            parts
        })
    }

    /// Sets what describes the runs of the principal.
    pub(in crate::server) fn with_runs(self, run_status: Option<RunStatus>) -> EvaluationHost {
        EvaluationHost { run_status, ..self }
    }

    /// Sets where the activity of the evaluation and its requests for its session are recorded.
    pub(in crate::server) fn observed(self, activity: Arc<Activity>, requests: Arc<SessionRequests>) -> EvaluationHost {
        requests.stop_by(self.parts.cancel.clone());
        self.with(|parts| Parts { activity, requests: Some(requests), ..parts })
    }

    /// The calls of the evaluation.
    fn calls(&self) -> &Calls {
        self.calls.get_or_init(|| Calls::new(self.parts.clone()))
    }

    /// The requests of the program for its session, if it has one.
    fn requests(&self) -> Result<&SessionRequests, String> {
        self.parts.requests.as_deref().ok_or_else(|| NO_HANDLES.to_owned())
    }

    /// Lists all servers, with the reason why nothing is known about them.
    fn missing(&self) -> Vec<(String, String)> {
        let names = self.parts.downstreams.names().into_iter();
        names.map(|name| (name.clone(), stopped(&name).message)).collect()
    }

    /// Calls a tool outside of a program. No person is asked: a call that would require that is not made.
    pub(in crate::server) fn call_unasked(&self, call: &ToolCall) -> ToolReply {
        let question = match self.calls().make(call) {
            ToolReply::Ask(question) => question,
            reply => return reply,
        };
        match self.calls().decide(std::slice::from_ref(&*question)).pop() {
            Some(Decision::Unavailable(why) | Decision::Denied(why)) => ToolReply::Unapproved(why),
            _ => ToolReply::Unapproved(question.reason),
        }
    }
}

/// The error of work that has no outcome because its evaluation was stopped.
fn stopped(server: &str) -> ToolError {
    ToolError::unavailable(format!("the evaluation was stopped while it waited for server `{server}`"))
}

impl Host for EvaluationHost {
    fn audience(&self) -> Audience {
        Audience::User
    }

    fn servers(&self) -> Vec<Server> {
        self.parts.downstreams.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let listing = self.parts.downstreams.tools_for(&self.parts.identity.principal, server);
        self.calls().wait(listing).unwrap_or_else(|_| Err(stopped(server)))
    }

    fn tools_anew(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        let listing = self.parts.downstreams.tools_anew(&self.parts.identity.principal, server);
        self.calls().wait(listing).ok().flatten()
    }

    fn instructions(&self, server: &str) -> Option<String> {
        self.parts.downstreams.instructions(server)
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        self.parts.downstreams.denied(server)
    }

    fn refused(&self, server: &str, tool: &str) {
        let Some(audit) = self.parts.downstreams.audit() else { return };
        // Only we decide on the rule, and that the tool is denied: a worker may claim anything.
        let denied = self.parts.downstreams.denied(server);
        let Some((tool, rule)) = denied.into_iter().find(|(denied, _)| denied == tool) else { return };
        let is_new = {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.insert((server.to_owned(), tool.clone()))
        };
        // One record per tool, however often the program tries: an attempt does not count towards the limit of calls.
        if is_new {
            let outcome = ToolReply::Denied(String::new()).outcome().to_owned();
            let (server, rule) = (server.to_owned(), Some(rule));
            let record = Record { server, tool, rule, outcome, ..Record::of(Kind::Call, &self.parts.identity) };
            // A record that cannot be written waits, and is in the log of the process.
            let _ = audit.write(record, self.parts.downstreams.secrets());
        }
    }

    fn catalogue(&self) -> Catalogue {
        let catalogue = self.calls().wait(self.parts.downstreams.catalogue_for(&self.parts.identity.principal));
        catalogue.unwrap_or_else(|_| Catalogue { missing: self.missing(), ..Catalogue::default() })
    }

    fn search(&self, query: &str, most: usize) -> Found {
        let found = self.calls().wait(self.parts.downstreams.search_for(&self.parts.identity.principal, query, most));
        found.unwrap_or_else(|_| Found { missing: self.missing(), ..Found::default() })
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        self.calls().make(&call)
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        self.calls().decide(questions)
    }

    fn note(&self, call: &CallId) -> Option<String> {
        self.calls().note(call)
    }

    fn give_up(&self, call: &CallId) {
        self.calls().give_up(call);
    }

    fn fork_session(&self) -> Result<String, String> {
        self.parts.features.may_change_sessions("makes no sessions")?;
        self.requests()?.fork()
    }

    fn runs(&self, run: Option<&str>) -> Result<String, String> {
        self.run_status.as_ref().ok_or(NO_RUNS)?(run)
    }

    fn close_session(&self) -> Result<(), String> {
        self.parts.features.may_change_sessions("closes no session")?;
        self.requests()?.close();
        Ok(())
    }

    fn now_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> u64 {
        crate::server::system::random::bits()
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    #[cfg(target_os = "linux")]
    fn processor_time(&self) -> Option<Duration> {
        crate::worker::processor_time()
    }

    fn cancelled(&self) -> bool {
        self.parts.cancel.is_cancelled() || self.parts.requests.as_ref().is_some_and(|requests| requests.is_lost())
    }
}
