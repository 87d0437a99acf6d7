//! Layers around the calls of a world: each may answer a call, or pass it on and look at the reply.

use super::request::CallRequest;
use crate::host::ToolReply;
use crate::reply::Reply;
use std::sync::Arc;

/// One concern of every call of a world, such as a policy. Layers are added by [`World::layer`]; the first one is the
/// outermost.
///
/// The branches of a program call tools at the same time, on several threads.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, CallRequest, Engine, Layer, Next, NoArguments, ToolReply, Tools, World};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// /// Counts the bytes that tools return.
/// #[derive(Default)]
/// struct Traffic(AtomicU64);
///
/// impl Layer for Traffic {
///     fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
///         let reply = next.call(request);
///         self.0.fetch_add(reply.bytes(), Ordering::Relaxed);
///         reply
///     }
/// }
///
/// let mut tools = Tools::new();
/// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok("three"));
/// let traffic = Traffic::default();
/// let world = World::new(tools).layer(&traffic);
/// let mut session = Engine::builder().build().unwrap().session();
/// session.run("(mail/unread)").eval::<String>(&world).unwrap().done().unwrap();
/// assert_eq!(traffic.0.load(Ordering::Relaxed), 7);
/// ```
pub trait Layer: Send + Sync {
    /// Answers the call, or passes it on by [`Next::call`]. A panic denies a call that was not made, and is the error
    /// `ToolPanic` of one that was.
    fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply;

    /// Notes that a program is about to run in the world; `has_data` says that it was given [data](crate::Run::data) or
    /// [parameters](crate::Run::set). A run that is resumed has begun before.
    fn begins(&self, program: &str, has_data: bool) {
        let _ = (program, has_data);
    }

    /// Notes that a program has ended, or is suspended, with the reply that its sender receives; `None` if that is a value
    /// of a Rust type.
    fn ended(&self, program: &str, reply: Option<&Reply>) {
        let _ = (program, reply);
    }
}

impl<L: Layer + ?Sized> Layer for &L {
    fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
        (**self).call(request, next)
    }

    fn begins(&self, program: &str, has_data: bool) {
        (**self).begins(program, has_data);
    }

    fn ended(&self, program: &str, reply: Option<&Reply>) {
        (**self).ended(program, reply);
    }
}

impl<L: Layer + ?Sized> Layer for Arc<L> {
    fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
        (**self).call(request, next)
    }

    fn begins(&self, program: &str, has_data: bool) {
        (**self).begins(program, has_data);
    }

    fn ended(&self, program: &str, reply: Option<&Reply>) {
        (**self).ended(program, reply);
    }
}

/// The way of a call from a [`Layer`] to its tool: the layers behind it, the approval that the tool itself
/// [needs](crate::ToolEntry::needs_approval), and the tool.
pub struct Next<'n> {
    pub(super) layers: &'n [Box<dyn Layer + 'n>],
    pub(super) tool: &'n dyn Fn(&CallRequest<'_>) -> ToolReply,
}

impl Next<'_> {
    /// Passes the call on, and returns its reply.
    pub fn call(self, request: &CallRequest<'_>) -> ToolReply {
        match self.layers.split_first() {
            Some((first, layers)) => first.call(request, Next { layers, ..self }),
            None => (self.tool)(request),
        }
    }
}
