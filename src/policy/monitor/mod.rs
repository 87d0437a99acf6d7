//! Monitors: what stands between the programs of one session and the tools of an embedder.

mod arguments;
mod stored;

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lispbox_lang::internal::foreign_text;
use lispbox_lang::{CallRequest, Layer, Next, Question, Reply, SystemClock, ToolReply};

use crate::grants::{Grant, GrantError, GrantTerms, Grants};
use crate::judgement::{Approval, JudgedCall, Judgement};
use crate::origins::{Origins, shown};
use crate::rehearsal::Rehearsal;
use crate::rules::{Caller, Counts, Effect, Policy, ToolName};

pub use stored::MonitorError;

/// The reference monitor of one session: it decides on each call by a [`Policy`], knows which values the tools, the user
/// and the programs of the session have given, and holds what a person has allowed in it.
///
/// It is a [`Layer`] of the world in which the programs of the session run. A session has one monitor, and a monitor one
/// session: what a tool has returned to one user, or a person has allowed to them, must not count for another. Both are
/// kept as one text; see [`Monitor::encode`].
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
/// use lispbox::policy::{Monitor, Policy};
/// use serde::Deserialize;
/// use std::sync::Arc;
///
/// #[derive(Deserialize)]
/// struct Mail { to: String }
///
/// let policy = Arc::new(Policy::read(r#"{
///     "trusted": ["contacts/*"],
///     "guards": [{"tool": "mail/send", "argument": "to", "from": ["contacts/*", "user"], "otherwise": "deny"}]
/// }"#).unwrap());
/// let mut tools = Tools::new();
/// tools.tool("contacts/list", |_: NoArguments, _: &Call| Ok(["ann@example.org"])).read_only();
/// tools.tool("mail/send", |mail: Mail, _: &Call| Ok(format!("sent to {}", mail.to))).writes();
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let monitor = Monitor::new(&policy);
/// monitor.said("Write to bob@example.org");
/// let world = World::new(tools).layer(&monitor);
/// let sent = session.run("(mail/send {:to (first (contacts/list))})").eval::<String>(&world).unwrap();
/// assert_eq!(sent.done().as_deref(), Some("sent to ann@example.org"));
/// let sent = session.run("(mail/send {:to \"bob@example.org\"})").eval::<String>(&world).unwrap();
/// assert_eq!(sent.done().as_deref(), Some("sent to bob@example.org"));
/// let denied = session.run("(mail/send {:to \"eve@example.com\"})").eval::<String>(&world).unwrap();
/// assert_eq!(denied.into_result().unwrap_err().error, "ToolDenied");
/// ```
pub struct Monitor {
    policy: Arc<Policy>,
    origins: Arc<Origins>,
    grants: Mutex<Grants>,
    /// The calls that limits count over a time.
    counts: Counts,
    /// Those of the current program.
    program: Mutex<Counts>,
    /// The number of changes of grants and counts.
    changes: AtomicU64,
}

impl Monitor {
    /// Creates the monitor of a new session.
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// let policy = Arc::new(Policy::read(r#"{"ask": ["mail/send"]}"#).unwrap());
    /// let (of_ann, of_bob) = (Monitor::new(&policy), Monitor::new(&policy));
    /// of_ann.said("Write to carl@example.org");
    /// assert!(of_ann.changes() > of_bob.changes());
    /// ```
    pub fn new(policy: &Arc<Policy>) -> Monitor {
        Monitor {
            policy: Arc::clone(policy),
            origins: Arc::new(Origins::default()),
            grants: Mutex::default(),
            counts: Counts::default(),
            program: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// Creates the monitor of a [fork](lispbox_lang::Session::fork) of the session. It knows what this one knows, and has no
    /// grants: each would cover its calls twice.
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// assert!(monitor.fork().granted().is_empty());
    /// ```
    pub fn fork(&self) -> Monitor {
        let fork = Monitor { origins: Arc::new(self.origins.copied()), ..Monitor::new(&self.policy) };
        fork.counts.restore(self.counts.stored());
        fork
    }

    /// Adds words of the user, as they wrote them: a guard accepts what they contain `from` the `user`. Words that others
    /// have written, such as a mail that the user forwards, are not theirs. The last 64 KiB count.
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// monitor.said("Move my meeting with ann@example.org to 3 pm");
    /// ```
    pub fn said(&self, words: &str) {
        self.origins.add_words(words);
    }

    /// Notes that the model has been shown data of the session that tools may have returned, other than by a
    /// [reply](lispbox_lang::Run::reply): what it writes from then on is not the `program`'s own.
    ///
    /// The result of [`eval`](lispbox_lang::Run::eval) counts as shown once a tool that is not trusted has returned something,
    /// or a run was given data.
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// monitor.shown(); // the model gets the text of an attachment
    /// ```
    pub fn shown(&self) {
        self.origins.read_elsewhere();
    }

    /// Returns a number that grows with each change, so that you know when to store it. See also
    /// [`Session::changes`](lispbox_lang::Session::changes).
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// let before = monitor.changes();
    /// monitor.said("Write to bob@example.org");
    /// assert!(monitor.changes() > before);
    /// ```
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed) + self.origins.changes()
    }

    /// Allows later calls like the one of a question: what a person decides beside that call itself. `by` says who it was.
    ///
    /// # Errors
    /// Returns an error if the terms are out of range, or if a guard objects to the values of this call and the grant would
    /// be for others as well.
    ///
    /// ```
    /// # use lispbox::lang::{CallId, Question};
    /// # use lispbox::policy::{GrantTerms, Monitor, Policy};
    /// # use std::{sync::Arc, time::Duration};
    /// # let question = Question {
    /// #     id: CallId::default(),
    /// #     server: "mail".into(),
    /// #     tool: "send".into(),
    /// #     arguments: r#"{"to":"ann"}"#.to_owned(),
    /// #     reason: "it may send mail".to_owned(),
    /// #     is_guarded: false,
    /// # };
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// let terms = GrantTerms { period: Duration::from_secs(60), count: Some(1), is_for_these_arguments: true };
    /// monitor.grant(&question, terms, "bob").unwrap();
    /// assert_eq!(monitor.granted()[0].left, Some(1));
    /// ```
    pub fn grant(&self, asked: &Question, terms: GrantTerms, by: &str) -> Result<Grant, GrantError> {
        self.grant_at(asked, terms, by, SystemClock.now_millis())
    }

    /// Allows later calls as [`Monitor::grant`] does, at a time in milliseconds since 1970, for a world with a clock of its
    /// own.
    ///
    /// # Errors
    /// As [`Monitor::grant`].
    ///
    /// ```
    /// # use lispbox::lang::{CallId, Question};
    /// # use lispbox::policy::{GrantTerms, Monitor, Policy};
    /// # use std::{sync::Arc, time::Duration};
    /// # let question = Question {
    /// #     id: CallId::default(),
    /// #     server: "mail".into(),
    /// #     tool: "send".into(),
    /// #     arguments: r#"{"to":"ann"}"#.to_owned(),
    /// #     reason: "it may send mail".to_owned(),
    /// #     is_guarded: false,
    /// # };
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// let terms = GrantTerms { period: Duration::from_secs(60), count: Some(1), is_for_these_arguments: true };
    /// monitor.grant_at(&question, terms, "bob", 1_000).unwrap();
    /// assert_eq!(monitor.granted_at(60_999).len(), 1);
    /// assert_eq!(monitor.granted_at(61_000).len(), 0);
    /// ```
    pub fn grant_at(&self, asked: &Question, terms: GrantTerms, by: &str, now: i64) -> Result<Grant, GrantError> {
        terms.check()?;
        let until = now.saturating_add(i64::try_from(terms.period.as_millis()).unwrap_or(i64::MAX));
        self.changed();
        self.grants().give(asked, (now, until), (terms.count, terms.is_for_these_arguments), by)
    }

    /// Returns the grants that have not ended, in the order in which they were given.
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// assert!(Monitor::new(&Arc::new(Policy::default())).granted().is_empty());
    /// ```
    pub fn granted(&self) -> Vec<Grant> {
        self.granted_at(SystemClock.now_millis())
    }

    /// Returns the grants that have not ended at a time, in milliseconds since 1970.
    ///
    /// ```
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// assert!(Monitor::new(&Arc::new(Policy::default())).granted_at(0).is_empty());
    /// ```
    pub fn granted_at(&self, now: i64) -> Vec<Grant> {
        self.grants().list(now)
    }

    /// Ends a grant; returns false if there is none of that number.
    ///
    /// ```
    /// # use lispbox::lang::{CallId, Question};
    /// # use lispbox::policy::{GrantTerms, Monitor, Policy};
    /// # use std::{sync::Arc, time::Duration};
    /// # let question = Question {
    /// #     id: CallId::default(),
    /// #     server: "mail".into(),
    /// #     tool: "send".into(),
    /// #     arguments: r#"{"to":"ann"}"#.to_owned(),
    /// #     reason: "it may send mail".to_owned(),
    /// #     is_guarded: false,
    /// # };
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// let terms = GrantTerms { period: Duration::from_secs(60), count: Some(1), is_for_these_arguments: true };
    /// let grant = monitor.grant(&question, terms, "bob").unwrap();
    /// assert!(monitor.revoke(grant.id) && monitor.granted().is_empty());
    /// ```
    pub fn revoke(&self, grant: u32) -> bool {
        self.changed();
        self.grants().revoke(grant)
    }

    /// Returns a layer for a program that is rehearsed: calls of tools that only read are made, and all others that the policy
    /// does not deny are collected instead. Their results are values that the program can pass on, but not look into.
    /// Evaluate it in a [fork](lispbox_lang::Session::fork) of the session, whose definitions are then dropped. Both are
    /// references, or `Arc`s for a world that borrows nothing.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, Outcome, Tools, World};
    /// use lispbox::policy::{CommittedCall, Monitor, Policy, Rehearsal};
    /// use serde::Deserialize;
    /// use std::sync::Arc;
    ///
    /// #[derive(Deserialize)]
    /// struct Mail { to: String }
    ///
    /// let tools = || {
    ///     let mut tools = Tools::new();
    ///     tools.tool("mail/send", |mail: Mail, _: &Call| Ok(format!("sent to {}", mail.to))).writes();
    ///     tools
    /// };
    /// let monitor = Monitor::new(&Arc::new(Policy::default()));
    /// let mut session = Engine::builder().build().unwrap().session();
    ///
    /// let rehearsal = Rehearsal::default();
    /// let world = World::new(tools()).layer(Monitor::rehearsing(&monitor, &rehearsal));
    /// let program = "(run! (fn [to] (mail/send {:to to})) [\"ann\" \"bob\"])";
    /// session.fork().run(program).eval::<()>(&world).unwrap().done().unwrap();
    ///
    /// let mut changes = rehearsal.propose(&mut session).unwrap().expect("there are two calls");
    /// for question in changes.questions().cloned().collect::<Vec<_>>() {
    ///     changes.approve(&question.id).unwrap(); // a person has seen it
    /// }
    /// let world = World::new(tools()).layer(&monitor);
    /// let made = session.resume(changes).eval::<Vec<CommittedCall<String>>>(&world).unwrap().done().unwrap();
    /// assert_eq!(made[1], CommittedCall::Result("sent to bob".to_owned()));
    /// ```
    pub fn rehearsing<M, R>(monitor: M, rehearsal: R) -> impl Layer
    where
        M: Deref<Target = Monitor> + Send + Sync,
        R: Deref<Target = Rehearsal> + Send + Sync,
    {
        Rehearsing { monitor, rehearsal }
    }

    fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether origins are recorded. Without guards they cost nothing.
    fn records(&self) -> bool {
        self.policy.has_guards()
    }

    /// Decides on a call by the policy.
    fn judge(&self, request: &CallRequest<'_>) -> Judgement {
        let tool = request.declared;
        let name = ToolName::alone(request.server, request.tool);
        let arguments = match arguments::compared(request.arguments, &tool.input_schema) {
            Ok(arguments) => arguments,
            Err(why) => return Judgement::Denied(why),
        };
        let approval = match &request.call.approved {
            None => Approval::None,
            Some(_) if request.is_approved => Approval::These,
            Some(_) => Approval::Others,
        };
        let judged = JudgedCall {
            name: &name,
            hints: &tool.hints,
            schema: &tool.input_schema,
            arguments: &arguments,
            is_checked: true,
            approval,
        };
        let count = || {
            let caller = Caller { tool: &name, principal: "" };
            let now = Duration::from_millis(u64::try_from(request.now_millis).unwrap_or(0));
            self.program.lock().unwrap_or_else(PoisonError::into_inner).take(&self.policy, true, caller, now)?;
            self.changed();
            self.counts.take(&self.policy, false, caller, now)
        };
        self.policy.judge(&judged, self.records().then_some(&*self.origins), count)
    }

    /// Makes a call that is allowed, and learns from its reply.
    fn make(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
        if !self.records() {
            return next.call(request);
        }
        // What is sent does not come from the tools that repeat it.
        self.origins.add_sent(request.arguments);
        let reply = next.call(request);
        let (server, tool) = (&request.call.server, &request.call.tool);
        if !matches!(reply, ToolReply::Ask(_)) {
            self.origins.add_reply(server, tool, &reply, self.policy.standing(server, tool));
        }
        reply
    }

    fn begun(&self, program: &str, has_data: bool) {
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = Counts::default();
        match self.records() {
            true => {
                self.origins.add_program(program, None, true);
                // Whoever wrote the data may have written anything.
                if has_data {
                    self.origins.add_untrusted();
                }
            }
            // Guards may be added later, when it is unknown what the model has read.
            false => self.origins.unwatched(),
        }
    }
}

impl Layer for Monitor {
    fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
        let (rule, is_guarded) = match self.judge(request) {
            Judgement::Denied(rule) => return ToolReply::Denied(rule),
            Judgement::Allowed(_) => return self.make(request, next),
            Judgement::Asked { rule, is_guarded } => (rule, is_guarded),
        };
        let question = request.question(rule, is_guarded);
        let is_granted = self.grants().take(&question, request.now_millis);
        if !is_granted {
            return ToolReply::Ask(Box::new(question));
        }
        self.changed();
        self.make(request, next)
    }

    fn begins(&self, program: &str, has_data: bool) {
        self.begun(program, has_data);
    }

    fn ended(&self, program: &str, reply: Option<&Reply>) {
        match reply {
            Some(reply) => {
                let (program, shown) = shown(program, reply);
                self.origins.add_reading(program, &shown);
            }
            // It is not known how much of a value the model sees.
            None => self.origins.add_reading("", "a value"),
        }
    }
}

/// The layer of a program that is rehearsed.
struct Rehearsing<M, R> {
    monitor: M,
    rehearsal: R,
}

impl<M, R: Deref<Target = Rehearsal>> Rehearsing<M, R> {
    fn withhold(&self, request: &CallRequest<'_>, objection: Option<String>) -> ToolReply {
        self.rehearsal.withhold(request.call.clone(), request.arguments.to_owned(), objection);
        ToolReply::Rehearsed
    }
}

impl<M, R> Layer for Rehearsing<M, R>
where
    M: Deref<Target = Monitor> + Send + Sync,
    R: Deref<Target = Rehearsal> + Send + Sync,
{
    fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
        match self.monitor.judge(request) {
            Judgement::Denied(rule) => ToolReply::Denied(rule),
            Judgement::Asked { rule, is_guarded } => self.withhold(request, is_guarded.then_some(rule)),
            Judgement::Allowed(_) if Effect::of(&request.declared.hints) != Effect::ReadOnly => {
                self.withhold(request, None)
            }
            Judgement::Allowed(_) => match self.monitor.make(request, next) {
                // A layer behind this one, or the tool itself, asks about it.
                ToolReply::Ask(_) => self.withhold(request, None),
                reply => reply,
            },
        }
    }

    fn begins(&self, program: &str, has_data: bool) {
        self.monitor.begun(program, has_data);
    }

    fn ended(&self, _: &str, _: Option<&Reply>) {
        // Questions about the calls show arguments.
        self.monitor.origins.add_reading("", "arguments");
    }
}

impl Policy {
    /// Returns what is wrong with the policy for these tools, a clause each: rules that match none of them, which are usually
    /// misspelt, and guarded arguments that a tool does not have. Log them, or refuse to start.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    /// use lispbox::policy::Policy;
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/send", |_: NoArguments, _: &Call| Ok(1));
    /// let policy = Policy::read(r#"{"deny": ["mail/sned"]}"#).unwrap();
    /// let problems = policy.problems(&tools);
    /// assert_eq!(problems, ["`policy.deny` has `mail/sned`, which matches no known tool; did you mean `mail/send`?"]);
    /// ```
    pub fn problems(&self, tools: &lispbox_lang::Tools<'_>) -> Vec<String> {
        use crate::rules::{Listed, Names, unfit};
        let mut servers: Vec<&str> = tools.declared().map(|tool| tool.server.as_str()).collect();
        servers.dedup();
        let names: Vec<(&str, Names)> = servers
            .iter()
            .map(|server| {
                let of_server = tools.declared().filter(|tool| tool.server == *server);
                (*server, Names::of(of_server.map(|tool| tool.name.as_str())))
            })
            .collect();
        let all = Names::of(servers.iter().copied());
        let listed: Vec<Listed<'_>> =
            names.iter().map(|(server, tools)| Listed { server, tools: Some(tools) }).collect();
        let unfit = unfit(self, None, &listed, &all).into_iter().map(|rule| rule.to_string());
        let missing = tools
            .declared()
            .flat_map(|tool| self.unfit_arguments(&ToolName::alone(&tool.server, &tool.name), &tool.input_schema));
        unfit.chain(missing).map(|problem| foreign_text::line(&problem)).collect()
    }
}
