//! Answers a call of `lisp_eval`: at the end of its program, or before, if the client would give up.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData};
use rmcp::service::RequestContext;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::lang::{Reply, Status};
use crate::server::admission::request::{Refused, advise_on_limit};
use crate::server::admission::shutdown::SESSION_ENDS;
use crate::server::approvals::asked::AskedRun;
use crate::server::audit::{Kind, Record};
use crate::server::calls::activity::Activity;
use crate::server::evaluations::{CalledProgram, Conclusion, Evaluations, unwritten};
use crate::server::identity::sha256;
use crate::server::system::offload;

use super::begin::{self, Begun, Intended};
use super::doors::Door;
use super::front::{Front, ServerSettings, is_stateless};
use super::multi_round::{self, Binding};
use super::patience::ReplyWithin;
use super::progress::reporting;
use super::replies::{RenderedReply, warn, weight};
use super::suspended;
use super::unfinished::{Answer, Ending, Sent, Unfinished, running};

/// The time within which a program that goes on is stored, before its call is answered.
const LONGEST_PROMISE: Duration = Duration::from_secs(2);

impl Front {
    /// Answers a call of `lisp_eval`.
    pub(super) async fn eval(
        &self,
        mut call: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let deadline = self.deadline(context);
        let binding = match self.principal(context) {
            Ok(name) if is_stateless(context) => Binding::of(&name, &call, context.client_capabilities()),
            _ => None,
        };
        let arguments = call.arguments.take().unwrap_or_default();
        let program = arguments.get("program").and_then(|program| program.as_str().map(str::to_owned));
        let begun = self.begin(arguments, binding.as_ref(), call, deadline, context).await;
        let begun = match begun {
            Ok(Begun::Program(intended)) => self.evaluated(intended, program.as_deref(), deadline, context).await,
            // Rarer ways are in a place of their own, so that the usual one is moved without them.
            Ok(Begun::Unfinished(program, cancel)) => Box::pin(self.awaited(&program, cancel, deadline, context)).await,
            Ok(Begun::Again(program)) => {
                Box::pin(self.awaited(&program, false, deadline, context)).await.map(said_again)
            }
            Ok(Begun::Waits(asked)) => {
                let reply = Reply { status: Status::Suspended, run: Some(asked.identity.clone()), ..Reply::default() };
                let record = Box::new(self.record_of(Kind::Evaluation, context).with_outcome(&reply));
                Ok(Answer::Waits { asked, reply: Box::new(reply), record, output: self.settings.usual.output })
            }
            Ok(Begun::Ended(reply)) => Ok(Box::pin(self.replied(*reply, context)).await),
            Err(refused) => Err(refused),
        };
        match begun {
            Ok(Answer::Result { result, .. }) => Ok(result.into()),
            Ok(Answer::Waits { asked, reply, record, output }) => {
                Ok(Box::pin(self.ask(&asked, *reply, binding.as_ref(), *record, output, context)).await)
            }
            Err(refused) => {
                let error = refused.protocol_error();
                let reply = refused.reply();
                let program = program.map(|program| sha256(program.as_bytes())).unwrap_or_default();
                let record = Record { program, ..self.record_of(Kind::Evaluation, context) }.with_outcome(&reply);
                if let Some(error) = error {
                    if let Err(problem) = self.evaluations.recorded(record).await {
                        tracing::warn!(problem, "the record of a refused call is not written yet");
                    }
                    return Err(error);
                }
                let rendered = self.settings.replies.of(reply, self.settings.usual.output);
                Ok(recorded(&self.evaluations, &self.settings, rendered, record).await.into())
            }
        }
    }

    /// Returns the time at which a call is answered even if its program is still running, if there is one.
    fn deadline(&self, context: &RequestContext<RoleServer>) -> Option<Instant> {
        let client = (self.settings.reply_within == ReplyWithin::ByClient).then(|| context.client_info()).flatten();
        let has_progress = context.meta.get_progress_token().is_some();
        let within = self.settings.reply_within.of(client.as_ref().map(|client| &*client.name), has_progress);
        // A time that cannot be represented never comes.
        within.and_then(|within| Instant::now().checked_add(within))
    }

    /// Answers a call with a reply that needs no evaluation.
    async fn replied(&self, reply: Reply, context: &RequestContext<RoleServer>) -> Answer {
        let record = self.record_of(Kind::Evaluation, context).with_outcome(&reply);
        let rendered = self.settings.replies.of(reply, self.settings.usual.output);
        let result = recorded(&self.evaluations, &self.settings, rendered, record).await;
        Answer::Result { result, is_retriable: false, is_refused: false }
    }

    /// Evaluates a program, for as long as its client waits; then the program goes on.
    async fn evaluated(
        &self,
        mut intended: Box<Intended>,
        program: Option<&str>,
        deadline: Option<Instant>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, Refused> {
        // A run that outlives its request would go on.
        if context.ct.is_cancelled() {
            return Err(Refused::new("Cancelled", "the call was cancelled before it started"));
        }
        let is_stored = {
            let CalledProgram { key, resumed, .. } = &*intended.called;
            self.evaluations.outlives_request(key.is_some(), resumed.is_some())
        };
        let caller = &mut intended.caller;
        if deadline.is_some() || is_stored {
            // The program may outlive the request.
            caller.withdrawn = CancellationToken::new();
            caller.left = caller.withdrawn.child_token();
        }
        let (cancel, left, activity) = (caller.withdrawn.clone(), caller.left.clone(), Arc::clone(&caller.activity));
        let asking = Arc::clone(&caller.request);
        let (principal, own) = (caller.name.clone(), caller.own.as_ref().map(Arc::downgrade));
        let CalledProgram { request, resumed, key, .. } = &*intended.called;
        let is_plain = resumed.is_none() && key.is_none() && begin::is_plain(request);
        let session = request.session.clone();
        let (door, mut work) = self.answer(intended);
        let answer = {
            // A run that outlives its request goes on like one whose client has been answered.
            let end = async {
                tokio::select! {
                    () = until(deadline) => {}
                    () = context.ct.cancelled(), if is_stored => left.cancel(),
                }
            };
            let during = pin!(door.during(&mut work, end));
            let withdraws = async {
                context.ct.cancelled().await;
                if !is_stored {
                    cancel.cancel();
                }
                pending::<Infallible>().await
            };
            tokio::select! {
                biased;
                answer = reporting(context, &activity, during) => answer,
                never = withdraws => match never {},
            }
        };
        if let Some(answer) = answer {
            return Ok(answer);
        }
        let Ok(run) = activity.run() else {
            // Without an identity nobody could ask for its reply.
            return Ok(work.await);
        };
        if !self.promised(&activity).await {
            // It has ended at this moment.
            return Ok(work.await);
        }
        if !context.ct.is_cancelled() {
            asking.answered();
        }
        let program = program.filter(|_| is_plain).map(|program| sha256(program.as_bytes()));
        let sent = Sent { program, session };
        let (program, ending) = Unfinished::new(run, (principal, own), sent, (activity, cancel));
        let reply = running(&program.identity, Some(&program.activity));
        self.goes_on(program, ending, work);
        Ok(Box::pin(self.replied(reply, context)).await)
    }

    /// Returns the door at which a program asks, and the work of evaluating it and answering its call.
    fn answer(&self, intended: Box<Intended>) -> (Door, BoxFuture<'static, Answer>) {
        let (evaluations, settings) = (Arc::clone(&self.evaluations), Arc::clone(&self.settings));
        let Intended { called, caller, door, most } = *intended;
        let work = async move {
            let is_in_session = caller.own.is_some() || called.request.session.is_some();
            let limits = called.request.limits.clone();
            let output = limits.output;
            let (mut reply, identity, conclusion) = evaluations.evaluate(called, caller).await;
            let is_refused = matches!(conclusion, Conclusion::Refused);
            if let Conclusion::Waits(asked) = conclusion {
                let record = Record::of_evaluation(&identity, &reply);
                return Answer::Waits { asked, reply, record: Box::new(record), output };
            }
            let goes_on = reply.run.is_some() && !reply.made.is_empty();
            if let Some(failure) = &mut reply.failure {
                advise_on_limit(failure, &limits, &most, goes_on);
            }
            if !(is_in_session || reply.session.is_some()) {
                outside_session(&mut reply);
            }
            let record = Record::of_evaluation(&identity, &reply);
            // An error states what was kept.
            let is_lost = reply.failure.is_none() && !reply.defined.is_empty() && evaluations.loses_sessions();
            let is_retriable = reply.run.is_some();
            let replies = settings.replies.clone();
            let mut rendered = offload::linear(weight(&reply), move || replies.of(*reply, output)).await;
            if is_lost {
                warn(&mut rendered.result, SESSION_ENDS.to_owned());
            }
            let result = recorded(&evaluations, &settings, rendered, record).await;
            Answer::Result { result, is_retriable, is_refused }
        };
        (door, Box::pin(work))
    }

    /// Lets a program go on whose call is answered before it ends.
    fn goes_on(&self, program: Unfinished, ending: Ending, work: BoxFuture<'static, Answer>) {
        let (run, principal) = (program.identity.clone(), program.principal.clone());
        let activity = Arc::clone(&program.activity);
        let listed = self.evaluations.runs().goes_on(&run, &principal, Box::new(move || activity.made()));
        self.settings.unfinished.add(program);
        let under_way = self.evaluations.shutdown().enter();
        let settings = Arc::clone(&self.settings);
        tokio::spawn(async move {
            let answer = work.await;
            let is_refused = matches!(answer, Answer::Result { is_refused: true, .. });
            ending.keep(answer, &settings.unfinished, &principal);
            if is_refused {
                // Its run can go on as before.
                settings.unfinished.forget(&run);
            }
            drop((listed, under_way));
        });
    }

    /// Keeps the run of a program that goes on for the other processes of a store. Returns false if it has ended.
    async fn promised(&self, activity: &Arc<Activity>) -> bool {
        if !self.evaluations.runs().are_stored() {
            return activity.promise();
        }
        let activity = Arc::clone(activity);
        let promise = tokio::task::spawn_blocking(move || activity.promise());
        // Its client does not wait for a store that is slow.
        !matches!(tokio::time::timeout(LONGEST_PROMISE, promise).await, Ok(Ok(false)))
    }

    /// Waits for the reply of a program that goes on, for as long as the client does.
    async fn awaited(
        &self,
        program: &Arc<Unfinished>,
        cancel: bool,
        deadline: Option<Instant>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, Refused> {
        let _slot = self.evaluations.admit(&program.principal)?;
        if cancel {
            program.cancel.cancel();
        }
        let ended = pin!(program.outcome());
        let outcome = tokio::select! {
            biased;
            outcome = reporting(context, &program.activity, ended) => outcome,
            () = until(deadline) => {
                return Ok(Box::pin(self.replied(running(&program.identity, Some(&program.activity)), context)).await);
            }
            () = context.ct.cancelled() => {
                return Err(Refused::new("Cancelled", "the call was cancelled; the program goes on"));
            }
        };
        let Some(answer) = outcome else {
            self.settings.unfinished.forget(&program.identity);
            return Err(Refused::new("InternalError", "the reply of the program is lost; this is a bug in lispbox"));
        };
        program.is_returned();
        self.evaluations.runs().told(&program.identity);
        if !matches!(answer, Answer::Result { is_retriable: false, .. }) {
            self.settings.unfinished.forget(&program.identity);
        }
        let (caller, _) = self.caller(program.principal.clone(), true, context)?;
        if let Some(own) = caller.own.filter(|own| !program.is_of(own)) {
            own.origins().read_elsewhere();
        }
        Ok(answer)
    }

    /// Answers a call whose run waits: with a form for each question, if the client shows forms, or else with a reply that
    /// says how a person decides.
    async fn ask(
        &self,
        asked: &AskedRun,
        mut reply: Reply,
        binding: Option<&Binding>,
        record: Record,
        output: u64,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let shows_forms = multi_round::shows_forms(context.client_capabilities());
        if let Some(binding) = binding.filter(|_| shows_forms && asked.unknown.is_empty()) {
            match self.settings.rounds.ask(&self.evaluations, asked, binding).await {
                Ok(round) => {
                    return match self.evaluations.recorded(record).await {
                        Ok(()) => round.into(),
                        Err(problem) => self.settings.replies.of(unwritten(problem).reply(), output).result.into(),
                    };
                }
                Err(problem) => tracing::warn!(problem, "the client cannot be asked in the reply to its call"),
            }
        }
        let offer = self.offered(context);
        if offer.is_some() {
            self.doors.offer(&asked.identity);
        }
        suspended::explain(asked, &mut reply, self.settings.is_usual_store, offer);
        recorded(&self.evaluations, &self.settings, self.settings.replies.of(reply, output), record).await.into()
    }
}

/// Says in the reply of a program that it is that of an earlier call with the same program.
fn said_again(mut answer: Answer) -> Answer {
    if let Answer::Result { result, .. } = &mut answer {
        warn(
            result,
            "[the same program was sent before and had no reply yet, so it was not run again: this is its reply; `\"repeat\": \
             true` runs it again]"
                .to_owned(),
        );
    }
    answer
}

/// Waits for a time, if there is one.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

/// Writes the record of a reply and returns the reply, which mentions it if the record could not be written.
pub(super) async fn recorded(
    evaluations: &Evaluations,
    settings: &ServerSettings,
    rendered: RenderedReply,
    record: Record,
) -> CallToolResult {
    let RenderedReply { mut result, bytes, quarantine } = rendered;
    // A query has no effects: without its record its answer is withheld.
    let is_withheld = record.kind == Kind::Env && evaluations.fails_closed(&record.principal);
    let written = evaluations.recorded(Record { bytes: Some(bytes), quarantine, ..record }).await;
    if let Err(problem) = written {
        if is_withheld {
            return settings.replies.of(unwritten(problem).reply(), settings.usual.output).result;
        }
        warn(
            &mut result,
            format!(
                "[warning: {problem}; the record of this call is not written yet, and no tool is called until it is]"
            ),
        );
    }
    result
}

/// Adapts the advice in a reply to a client whose next call does not see the value as `*1`.
fn outside_session(reply: &mut Reply) {
    let before = reply.more.len();
    reply.more.retain(|more| !more.contains("*1"));
    if reply.more.len() < before {
        reply.more.insert(0, "`(describe …)` around the last expression".to_owned());
    }
}
