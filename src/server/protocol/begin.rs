//! Reading a call of `lisp_eval`: a new program, an earlier one that is continued, or one that has ended already.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::lang::{Limits, Reply, Status};
use crate::server::admission::request::{EvalRequest, NamedRun, Refused};
use crate::server::approvals::answers::Answers;
use crate::server::approvals::asked::AskedRun;
use crate::server::evaluations::dry_run::DryRun;
use crate::server::evaluations::{CalledProgram, Caller, Found};
use crate::server::guards::received;
use crate::server::identity::{sha256, sha256_of_json};
use crate::server::plans::dry_run::Planning;
use crate::server::rehearsals::dry_run::Rehearsing;
use crate::server::runs::{FoundRun, LONGEST_RUN_KEY, Resumption, Retry, RunKey, gone, not_resumed};

use super::doors::Door;
use super::front::Front;
use super::multi_round::{self, Binding};
use super::unfinished::{Sent, Unfinished, running};

/// A call of `lisp_eval` that can be answered.
pub(super) enum Begun {
    /// A program is evaluated, or a run of one is resumed.
    Program(Box<Intended>),
    /// The program that it names goes on, or has ended meanwhile; true if it is to be ended.
    Unfinished(Arc<Unfinished>, bool),
    /// The same program goes on, or has ended meanwhile.
    Again(Arc<Unfinished>),
    /// The run that it names still waits.
    Waits(AskedRun),
    /// The run that it names has ended with this reply.
    Ended(Box<Reply>),
}

/// A program that is about to be evaluated.
pub(super) struct Intended {
    pub(super) called: Box<CalledProgram>,
    pub(super) caller: Box<Caller>,
    pub(super) door: Door,
    pub(super) most: Limits,
}

/// The field of a call's metadata with its run key.
const RUN_KEY: &str = "lispbox/run-key";

/// The field of a call's metadata with the words of the user.
const USER: &str = "lispbox/user";

/// Returns the words of the user, which a client puts into the metadata of a call.
///
/// # Errors
/// Refuses metadata of another type.
pub(super) fn words(context: &RequestContext<RoleServer>) -> Result<Option<String>, Refused> {
    match context.meta.0.get(USER) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(words)) => Ok(Some(words.clone())),
        Some(_) => {
            let message = format!("`_meta` has `{USER}`, which has to be a string: the words of the user");
            Err(Refused::new("InvalidArguments", message))
        }
    }
}

/// Returns the further attempt of a run that a call asks for; `None` if it only continues the run, or asks for its reply.
///
/// # Errors
/// Refuses arguments of a further attempt for a run that did not fail, and an attempt without the data that it needs.
fn further_attempt(named: &NamedRun, found: &FoundRun, most: &Limits) -> Result<Option<Retry>, Refused> {
    if !found.may_be_retried {
        return match named.further() {
            None => Ok(None),
            // A person has to say first what has happened.
            Some(_) if !found.asked.unknown.is_empty() => Ok(None),
            Some(argument) => Err(not_resumed(&format!(
                "the run {}, so `{argument}` does not apply to it: `run` alone {}",
                if found.ended.is_some() { "has ended" } else { "waits" },
                if found.ended.is_some() { "has its reply" } else { "continues it" }
            ))),
        };
    }
    // One that was cut off goes on from there.
    if named.further().is_none() && (found.keeps_reply || found.ended.is_none()) {
        return Ok(None);
    }
    if found.lacks_data && named.data.is_none() {
        let message = "the server does not keep the data of the program: pass `data` again; nothing was evaluated";
        return Err(Refused::new("InvalidArguments", message));
    }
    let mut limits = named.limits.clone().unwrap_or_else(|| found.limits.clone());
    limits.clamp_to(most);
    Ok(Some(Retry {
        program: named.program.clone(),
        data: named.data.clone(),
        limits: Some(limits),
        repeats_reads: named.repeats_reads,
        repeats_unknown: named.repeat,
    }))
}

/// Checks that a run is the one that a call asks for, and in a state in which the call applies to it.
///
/// # Errors
/// Refuses a call that continues a run that does not exist, whose arguments are not those of its run key, that names
/// another session than that of the run, or that cancels a run that is not running.
fn is_asked_for(
    found: Option<&FoundRun>,
    key: Option<&RunKey>,
    named: Option<&NamedRun>,
    is_round: bool,
) -> Result<(), Refused> {
    let Some(found) = found else {
        // Only a run with a key may not have begun.
        return if named.is_some() || is_round { Err(gone()) } else { Ok(()) };
    };
    if key.is_some_and(|key| found.arguments.as_ref() != Some(&key.arguments)) {
        let message = "a call with this run key had other arguments; nothing was evaluated";
        return Err(Refused::new("RunKeyReused", message));
    }
    if let Some(session) = named.and_then(|named| named.session.as_deref())
        && session != found.session.handle()
    {
        let message = "`run` goes on with a program in its own session, which is not the one that `session` names; leave \
                       `session` out; nothing was evaluated";
        return Err(Refused::new("InvalidArguments", message));
    }
    if named.is_some_and(|named| named.cancel) {
        let state = if found.ended.is_some() { "has ended" } else { "waits" };
        return Err(not_resumed(&format!("the run {state}, so there is no program to cancel")));
    }
    Ok(())
}

/// Returns the request of a run that a call continues by its name.
fn continued(found: &FoundRun, retry: Option<&Retry>, most: &Limits) -> EvalRequest {
    let mut limits = retry.and_then(|retry| retry.limits.clone()).unwrap_or(found.limits.clone());
    limits.clamp_to(most);
    let (program, rehearse, plan, repeat) = (found.program.clone(), false, false, false);
    EvalRequest { program, session: None, data: None, limits, rehearse, plan, repeat }
}

/// True if a request is known by its program and its session.
pub(super) fn is_plain(request: &EvalRequest) -> bool {
    request.data.is_none() && !(request.repeat || request.rehearse || request.plan)
}

impl Front {
    /// Reads a call of `lisp_eval`, and finds the run that it resumes: that of its state, or of its argument `run`.
    pub(super) async fn begin(
        &self,
        mut arguments: Map<String, Value>,
        binding: Option<&Binding>,
        call: CallToolRequestParams,
        deadline: Option<Instant>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Begun, Refused> {
        let name = self.principal(context)?;
        let (usual, most) = self.settings.allowances.of(&name).within(&self.settings.usual, &self.settings.most);
        let named = EvalRequest::run(&mut arguments, &usual, &most)?;
        if let Some(named) = &named
            && let Some(program) = self.unfinished(named, &name)?
        {
            return Ok(Begun::Unfinished(program, named.cancel));
        }
        let state = self.settings.rounds.resumed(&self.evaluations, binding, &call).await?;
        let key = self.key(&name, &arguments, named.is_some(), context)?;
        let (run, round) = match (&named, state) {
            (_, Some((run, round))) => (Some(run), Some(round)),
            (Some(named), None) => (Some(named.run.clone()), None),
            (None, None) => (key.as_ref().map(|key| key.identity.clone()), None),
        };
        let found = match &run {
            None => None,
            Some(run) => match self.evaluations.find_run(run, &name, named.as_ref(), deadline, &context.ct).await? {
                Found::Run(found) => found.map(|found| *found),
                Found::Running => return Ok(Begun::Ended(Box::new(running(run, None)))),
            },
        };
        is_asked_for(found.as_ref(), key.as_ref(), named.as_ref(), round.is_some())?;
        let retry = match (&named, &found) {
            (Some(named), Some(found)) if round.is_none() => further_attempt(named, found, &most)?,
            _ => None,
        };
        let request = match (&named, &found) {
            (Some(_), Some(found)) => continued(found, retry.as_ref(), &most),
            _ => EvalRequest::read(arguments, &usual, &most)?,
        };
        if found.is_none()
            && key.is_none()
            && let Some(program) = self.sent_again(&request, &name)
        {
            return Ok(Begun::Again(program));
        }
        if request.plan && key.is_some() {
            let message = "a plan takes no run key: `run` in its reply names the run; nothing was planned";
            return Err(Refused::new("InvalidArguments", message));
        }
        // A rehearsal with a key is continued by another program than that of the call.
        let corrected = retry.as_ref().and_then(|retry| retry.program.clone());
        let request = match &found {
            Some(found) => EvalRequest { program: corrected.unwrap_or(found.program.clone()), ..request },
            None => request,
        };
        let key = key.filter(|_| found.is_none());
        let resumed = match found {
            None => None,
            Some(FoundRun { ended: Some(reply), .. }) if retry.is_none() => {
                self.receives(name, &request.program, &reply, context);
                return Ok(Begun::Ended(reply));
            }
            Some(found) if round.is_none() && !found.asked.is_decided() => {
                let waits = Reply { status: Status::Suspended, ..Reply::default() };
                self.receives(name, &request.program, &waits, context);
                return Ok(Begun::Waits(found.asked));
            }
            Some(found) => {
                let answers = round.map(|round| {
                    let responses = call.input_responses;
                    let answer: Answers = Arc::new(move |asked| multi_round::answer(asked, responses.as_ref()));
                    (round, answer)
                });
                Some((Resumption { run: found.asked.identity, answers, retry }, found.session))
            }
        };
        let (caller, door) = self.caller(name, resumed.is_some(), context)?;
        let dry_run = self.dry_run(&request);
        let called = Box::new(CalledProgram { request, resumed, key, dry_run });
        Ok(Begun::Program(Box::new(Intended { called, caller: Box::new(caller), door, most })))
    }

    /// Returns the way to answer a program that is not to be run.
    fn dry_run(&self, request: &EvalRequest) -> Option<Arc<dyn DryRun>> {
        if request.plan {
            return Some(Arc::new(Planning(Arc::clone(self.evaluations.downstreams()))));
        }
        request.rehearse.then(|| Arc::<Rehearsing>::default() as _)
    }

    /// Finds a program that goes on, or whose reply is kept here.
    ///
    /// # Errors
    /// Refuses a further attempt of a program that is still running.
    fn unfinished(&self, named: &NamedRun, principal: &str) -> Result<Option<Arc<Unfinished>>, Refused> {
        let Some(program) = self.settings.unfinished.find(&named.run, principal) else { return Ok(None) };
        match named.further() {
            None => Ok(Some(program)),
            Some(_) if program.has_ended() => {
                self.settings.unfinished.forget(&program.identity);
                Ok(None)
            }
            Some(argument) => Err(not_resumed(&format!(
                "the program is still running, so `{argument}` does not apply to it: `run` alone waits for its reply, and \
                 `\"cancel\": true` beside it ends it"
            ))),
        }
    }

    /// Finds the program that a call sends once more: its client did not wait for it.
    fn sent_again(&self, request: &EvalRequest, principal: &str) -> Option<Arc<Unfinished>> {
        let sent = || Sent { program: Some(sha256(request.program.as_bytes())), session: request.session.clone() };
        let own = self.own();
        self.settings.unfinished.sent_again(principal, sent, own.as_ref()).filter(|_| is_plain(request))
    }

    /// Records that the connection receives a reply without an evaluation.
    fn receives(&self, name: String, program: &str, reply: &Reply, context: &RequestContext<RoleServer>) {
        let own = self.caller(name, false, context).ok().and_then(|(caller, _)| caller.own);
        own.iter().for_each(|own| received(own.origins(), program, reply));
    }

    /// Returns the run key of a call, which its client puts into the metadata.
    fn key(
        &self,
        principal: &str,
        arguments: &Map<String, Value>,
        is_named: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<RunKey>, Refused> {
        let Some(key) = context.meta.0.get(RUN_KEY) else { return Ok(None) };
        let refused = |why: &str| Err(Refused::new("InvalidArguments", format!("`_meta` has `{RUN_KEY}`, {why}")));
        match key {
            _ if is_named => refused("which is for a new program, and `run`"),
            _ if !self.evaluations.runs().are_stored() => refused("but the server has no `--store`"),
            Value::String(key) if !key.is_empty() && key.len() <= LONGEST_RUN_KEY => {
                let digest =
                    sha256_of_json(arguments).map_err(|problem| Refused::new("InternalError", problem.to_string()))?;
                Ok(Some(RunKey::new(principal, key, digest)))
            }
            _ => refused(&format!("which takes a text of 1 to {LONGEST_RUN_KEY} bytes")),
        }
    }
}
