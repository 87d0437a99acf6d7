//! Tools of the embedding application without a server: closures of [`Tools`](crate::lang::Tools).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::lang::internal::panic_text;
use crate::lang::{CallId, CancelHandle, Tool, ToolCall, ToolEntry, ToolError, ToolErrorKind, ToolReply};

/// The future outcome of a [`Function`].
pub type Answering = BoxFuture<'static, Result<ToolReply, ToolError>>;

/// The code of a tool without a server.
pub trait Function: Send + Sync {
    /// Describes the tool to programs. `server` is filled in.
    fn describe(&self) -> Tool;

    /// Carries out a call on a Tokio runtime, with arguments that the schema allows. The caller drops the future after
    /// `timeout`, or when the call is cancelled.
    ///
    /// # Errors
    /// Returns any failure, which a program can catch; usually [`ToolError::failed`].
    fn call(self: Arc<Self>, arguments: Map<String, Value>, timeout: Duration) -> Answering;
}

/// A closure of the embedding application.
struct Closure(ToolEntry<'static>);

impl Function for Closure {
    fn describe(&self) -> Tool {
        self.0.tool().clone()
    }

    fn call(self: Arc<Self>, arguments: Map<String, Value>, timeout: Duration) -> Answering {
        Box::pin(async move {
            let tool = self.0.tool();
            let call = ToolCall {
                id: CallId::default(),
                server: tool.server.as_str().into(),
                tool: tool.name.as_str().into(),
                arguments: Value::Object(arguments).to_string(),
                remaining: timeout,
                timeout,
                fuel: 0,
                memory: 0,
                approved: None,
                values: None,
                room: u64::MAX,
            };
            let handle = CancelHandle::new();
            let _guard = handle.cancel_on_drop();
            // The closure may block. An asynchronous one is dropped when the handle is cancelled.
            let outcome = tokio::task::spawn_blocking(move || self.0.invoke(&call, &handle)).await;
            match outcome {
                Ok(ToolReply::Error(error)) => Err(error),
                Ok(reply) => Ok(reply),
                Err(lost) => {
                    let reason = lost.try_into_panic().map(|payload| panic_text(&*payload).to_owned());
                    Err(ToolError::new(ToolErrorKind::Panicked, format!("panicked: {}", reason.unwrap_or_default())))
                }
            }
        })
    }
}

/// The tools of a namespace.
#[derive(Clone)]
pub struct Functions(pub(in crate::server) Vec<Arc<dyn Function>>);

impl Functions {
    /// Wraps the closures of one server.
    pub(super) fn of(entries: Vec<ToolEntry<'static>>) -> Functions {
        Functions(entries.into_iter().map(|entry| Arc::new(Closure(entry)) as Arc<dyn Function>).collect())
    }
}

impl PartialEq for Functions {
    fn eq(&self, other: &Functions) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl Eq for Functions {}

impl fmt::Debug for Functions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|function| function.describe().name)).finish()
    }
}
