//! The steps of a call that a server takes; `crate::server::calls` has their order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::lang::internal::{closest, foreign_text};
use crate::lang::{ToolCall, ToolError, ToolErrorKind};
use crate::server::approvals::{Consent, IntendedCall, Ruling};
use crate::server::downstream::arguments::{Checked, CheckedTool};
use crate::server::downstream::connection::Failure;
use crate::server::downstream::result::Noted;
use crate::server::downstream::tool_transport::ToolTransport;
use crate::server::policy::RepeatedCalls;
use crate::server::system::offload::{self, NotDone};

use super::Downstream;

impl Downstream {
    /// Returns the time that a call has: by the configuration of its tool or of the server, or its own.
    ///
    /// # Errors
    /// Returns the rule that denies the tool by its name alone, if one does.
    pub(in crate::server) fn admit(&self, given: &ToolCall) -> Result<Duration, String> {
        let (rules, names) = (self.rules(), self.names());
        let name = self.named(&given.tool, &rules, names.as_deref());
        match rules.policy.denial_by_name(&name) {
            Some(denied) => Err(denied.rule),
            None => Ok(self.timeouts.get(&name).or(self.start.config.timeout).unwrap_or(given.timeout)),
        }
    }

    /// Connects to the server if necessary, and returns a tool with the connection over which it was listed.
    ///
    /// # Errors
    /// Returns [`Failure::NotStarted`] if there is no connection, and another failure if the tool cannot be called.
    pub(in crate::server) async fn target(
        self: &Arc<Self>,
        tool: &str,
    ) -> Result<(Arc<CheckedTool>, ToolTransport), Failure> {
        let transport = self.transport().await.map_err(|error| Failure::NotStarted(Some(error)))?;
        let mut tools = self.listed(&transport).await.map_err(Failure::harmless)?;
        let named = |tools: &[Arc<CheckedTool>]| tools.iter().find(|checked| checked.tool.name == tool).cloned();
        let mut checked = named(&tools);
        if let Some(held) = checked.as_ref().and_then(|checked| checked.standing.held.clone())
            && Box::pin(self.may_be_accepted(tool, held)).await
        {
            self.known().listed_by = None;
            tools = self.listed(&transport).await.map_err(Failure::harmless)?;
            checked = named(&tools);
        }
        if checked.is_none()
            && let Some(anew) = self.renewed(&transport).await
        {
            tools = anew;
            checked = named(&tools);
        }
        let checked = checked.ok_or_else(|| Failure::Final(self.unknown(tool, &tools)))?;
        match self.refusal(&checked) {
            Some(refusal) => Err(Failure::Final(refusal)),
            None => Ok((checked, transport)),
        }
    }

    /// The error of a call of a tool that is not among those of the server.
    fn unknown(&self, tool: &str, tools: &[Arc<CheckedTool>]) -> ToolError {
        let names = tools.iter().map(|checked| checked.tool.name.as_str());
        ToolError {
            kind: ToolErrorKind::Arguments,
            message: format!("server `{}` has no tool `{}`", self.name(), foreign_text::name(tool)),
            suggestion: closest(tool, names)
                .map(|name| format!("Did you mean {}?", foreign_text::qualified(self.name(), name))),
        }
    }

    /// Asks the server for its tools once more, because arguments do not fit the tool as it is known; returns the tool
    /// if the server has changed it.
    ///
    /// # Errors
    /// Returns an error if the tool is gone, or held because it has changed.
    pub(in crate::server) async fn changed(
        self: &Arc<Self>,
        (checked, transport): (&CheckedTool, &ToolTransport),
    ) -> Result<Option<Arc<CheckedTool>>, Failure> {
        let Some(tools) = self.renewed(transport).await else { return Ok(None) };
        let name = &checked.tool.name;
        let Some(anew) = tools.iter().find(|anew| anew.tool.name == *name) else {
            return Err(Failure::Final(self.unknown(name, &tools)));
        };
        match self.refusal(anew) {
            Some(refusal) => Err(Failure::Final(refusal)),
            None => Ok(Some(Arc::clone(anew)).filter(|anew| anew.digest() != checked.digest())),
        }
    }

    /// Validates the arguments of a call within `left`: at once if that takes little, otherwise on another thread.
    ///
    /// # Errors
    /// Returns an error that names the wrong argument, the expected value and the given one, or why that is not known.
    pub(in crate::server) async fn check(
        &self,
        principal: &str,
        checked: &Arc<CheckedTool>,
        arguments: &str,
        left: Duration,
    ) -> Result<Checked, ToolError> {
        let deadline = Instant::now() + left;
        if let Some(outcome) = checked.check_at_once(&self.shared.schemas, arguments, deadline) {
            return outcome;
        }
        let (checking, arguments) = (Arc::clone(checked), arguments.to_owned());
        let schemas = Arc::clone(&self.shared.schemas);
        let check = move || checking.check(&schemas, &arguments, deadline);
        let outcome = self.shared.offload.run(principal, deadline, check).await;
        let name = foreign_text::qualified(self.name(), &checked.tool.name);
        let seconds = left.as_secs_f64();
        outcome.unwrap_or_else(|problem| {
            Err(match problem {
                NotDone::NoTurn => {
                    let message = format!(
                        "the arguments of `{name}` were not checked within {seconds:.1} s: checks of other calls took all of that time; nothing was sent"
                    );
                    ToolError::new(ToolErrorKind::Timeout, message)
                }
                NotDone::Late => {
                    let message =
                        format!("the arguments of `{name}` were not checked within {seconds:.1} s; nothing was sent");
                    ToolError::new(ToolErrorKind::Timeout, message)
                }
                NotDone::Failed(reason) => {
                    ToolError::failed(format!("the arguments of `{name}` could not be checked: {reason}"))
                }
            })
        })
    }

    /// Returns what becomes of calls of its tools that an earlier program has made.
    pub(in crate::server) fn repeated_calls(&self) -> RepeatedCalls {
        self.rules().policy.repeated_calls()
    }

    /// Decides on a call with arguments as they will be sent; `unchecked` is the reason why they were not validated.
    pub(in crate::server) async fn ruling(
        &self,
        consent: &Consent,
        given: &ToolCall,
        checked: &CheckedTool,
        (arguments, unchecked): (&Map<String, Value>, Option<&str>),
        remaining: Duration,
    ) -> Ruling {
        let (rules, names) = (self.rules(), self.names());
        let intended = IntendedCall {
            given,
            tool: &checked.tool,
            name: &self.named(&checked.tool.name, &rules, names.as_deref()),
            arguments,
            is_checked: unchecked.is_none(),
            file: &self.start.config.file,
            remaining,
        };
        consent.to(&intended, &rules.policy, &self.shared.counts).await
    }

    /// Logs that the arguments of a call were not validated, for that reason, and returns the note about it.
    pub(in crate::server) fn unchecked_note(&self, checked: &CheckedTool, rule: &str, reason: &str) -> String {
        let tool = &checked.tool.name;
        tracing::warn!(server = self.name(), tool, rule, "arguments are not checked: the schema {reason}");
        let name = foreign_text::qualified(self.name(), tool);
        format!("the arguments were not checked: the schema of `{name}` {reason}")
    }

    /// Sends a call and returns the reply, whose shape is learned, and a note on how it was read. Dropping the future
    /// cancels the call.
    ///
    /// # Errors
    /// Returns the reason why there is no reply, which says whether the server may have carried out the call.
    pub(in crate::server) async fn deliver(
        self: &Arc<Self>,
        principal: &str,
        (checked, transport): (&Arc<CheckedTool>, &ToolTransport),
        arguments: Map<String, Value>,
        left: Duration,
    ) -> Result<Noted, Failure> {
        let (blobs, secrets) = (self.shared.blobs.of(principal), &self.shared.options.secrets);
        let (reply, note) = transport.call(&checked.tool, arguments, left, &blobs, secrets).await?;
        let bytes = usize::try_from(reply.bytes()).unwrap_or(usize::MAX);
        self.recall(principal).await;
        let (learning, learner) = (Arc::clone(checked), principal.to_owned());
        let learn = move || (learning.learn(&learner, &reply), reply);
        let (is_new, reply) = offload::linear(bytes, learn).await;
        if is_new {
            self.shapes.learned(principal);
            self.store_shapes(false).await;
        }
        Ok((reply, note))
    }
}
