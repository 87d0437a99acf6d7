//! The way of a call through the layers of a world to its tool.

use super::layer::{Layer, Next};
use super::request::{Access, CallRequest};
use super::tools::ToolEntry;
use super::world::{Visit, World};
use crate::host::{ToolCall, ToolError, ToolReply, panic_text};
use crate::reply::Reply;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A closure that decides on calls.
struct Gate<F>(F);

impl<F: Fn(&CallRequest<'_>) -> Access + Send + Sync> Layer for Gate<F> {
    fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
        match (self.0)(request) {
            Access::Deny(reason) => ToolReply::Denied(reason),
            Access::Ask(reason) if !request.is_approved => ToolReply::Ask(Box::new(request.question(reason, false))),
            Access::Ask(_) | Access::Allow => next.call(request),
        }
    }
}

impl<'w> World<'w> {
    /// Adds a layer around all calls, behind those that were added before.
    ///
    /// See [`Layer`] for an example.
    pub fn layer(mut self, layer: impl Layer + 'w) -> World<'w> {
        self.layers.push(Box::new(layer));
        self
    }

    /// Decides on each call of each tool before it is made. The closure can only narrow what the program may do: a tool
    /// that [needs approval](crate::ToolEntry::needs_approval) needs it also if the call is allowed here. After a person has
    /// approved a call, the closure is called again, with [`CallRequest::is_approved`]; a call that was approved in other
    /// words is asked about anew. A panic in the closure denies the call.
    ///
    /// It is a [layer](World::layer) behind those that were added before.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Access, Call, Engine, Outcome, Tools, World};
    /// use std::collections::{HashMap, HashSet};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/send", |_: HashMap<String, String>, _: &Call| Ok("sent"));
    /// let world = World::new(tools).on_request(|request| {
    ///     if request.arguments.contains("@example.org") {
    ///         return Access::Allow;
    ///     }
    ///     Access::Ask("the address is not one of ours".to_owned())
    /// });
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let ours = session.run("(mail/send {:to \"ann@example.org\"})").eval::<String>(&world).unwrap();
    /// assert_eq!(ours.done().as_deref(), Some("sent"));
    /// let other = session.run("(mail/send {:to \"eve@example.com\"})").eval::<String>(&world).unwrap();
    /// assert!(matches!(other, Outcome::Suspended(_)));
    /// ```
    pub fn on_request(self, decide: impl Fn(&CallRequest<'_>) -> Access + Send + Sync + 'w) -> World<'w> {
        self.layer(Gate(decide))
    }

    /// Tells the layers that a program is about to run.
    pub(super) fn begins(&self, program: &str, has_data: bool) {
        self.layers.iter().for_each(|layer| layer.begins(program, has_data));
    }

    /// Tells the layers that a program has ended.
    pub(super) fn ended(&self, program: &str, reply: Option<&Reply>) {
        self.layers.iter().for_each(|layer| layer.ended(program, reply));
    }
}

impl Visit<'_, '_> {
    /// Passes a call through the layers. Returns the reply, and whether the tool was called.
    pub(super) fn through_layers(&self, call: &ToolCall, entry: &ToolEntry<'_>) -> (ToolReply, bool) {
        let is_made = Cell::new(false);
        let tool = |request: &CallRequest<'_>| {
            if entry.needs_approval && !request.is_approved {
                let reason = "this tool needs the approval of a person".to_owned();
                return ToolReply::Ask(Box::new(request.question(reason, false)));
            }
            is_made.set(true);
            self.make(call.clone(), entry)
        };
        let ToolCall { id, server, tool: name, arguments, .. } = call;
        let request = CallRequest {
            id,
            server,
            tool: name,
            arguments,
            is_approved: call.approved.as_deref() == Some(arguments),
            plan: self.plan,
            now_millis: self.world.now_millis(),
            call,
            declared: &entry.tool,
        };
        let next = Next { layers: &self.world.layers, tool: &tool };
        let reply = catch_unwind(AssertUnwindSafe(|| match next.call(&request) {
            // Nobody is asked about a call that would fail.
            ToolReply::Ask(question) => self.unfit(call, entry).map_or(ToolReply::Ask(question), ToolReply::Error),
            reply => reply,
        }));
        let reply = reply.unwrap_or_else(|payload| match is_made.get() {
            true => ToolReply::Error(ToolError::panicked(server, name, &*payload)),
            false => ToolReply::Denied(format!("the decision on it panicked: {}", panic_text(&*payload))),
        });
        (reply, is_made.get())
    }
}
