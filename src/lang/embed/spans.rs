//! Spans of runs and tool calls for `tracing`, behind the feature of that name.

use crate::host::ToolCall;
use crate::reply::{Spent, Status};

/// The span of a run, the parent of the spans of its calls.
#[derive(Clone, Debug)]
pub(super) struct RunSpan {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

/// The span of a tool call, which is current on its thread as long as this value exists.
pub(super) struct CallSpan {
    #[cfg(feature = "tracing")]
    entered: tracing::span::EnteredSpan,
}

#[cfg(feature = "tracing")]
impl RunSpan {
    /// Returns no span, for work that is no run.
    pub(super) fn none() -> RunSpan {
        RunSpan { span: tracing::Span::none() }
    }

    /// Opens the span of a run with that name.
    pub(super) fn open(program: Option<&str>) -> RunSpan {
        let span = tracing::info_span!(
            target: "lispbox::run",
            "run",
            program,
            status = tracing::field::Empty,
            fuel = tracing::field::Empty,
            memory_bytes = tracing::field::Empty,
        );
        RunSpan { span }
    }

    /// Opens the span of a call within the run.
    pub(super) fn call(&self, call: &ToolCall) -> CallSpan {
        let span = tracing::info_span!(
            target: "lispbox::call",
            parent: &self.span,
            "call",
            server = &*call.server,
            tool = &*call.tool,
            id = ?call.id,
            outcome = tracing::field::Empty,
            result_bytes = tracing::field::Empty,
        );
        CallSpan { entered: span.entered() }
    }

    /// Records the end of the run.
    pub(super) fn ended(&self, status: Status, spent: &Spent) {
        self.span.record("status", status.as_str());
        self.span.record("fuel", spent.fuel);
        self.span.record("memory_bytes", spent.memory_bytes);
    }
}

#[cfg(feature = "tracing")]
impl CallSpan {
    /// Records the end of the call.
    pub(super) fn ended(&self, outcome: &str, result_bytes: u64) {
        self.entered.record("outcome", outcome);
        self.entered.record("result_bytes", result_bytes);
    }
}

#[cfg(not(feature = "tracing"))]
impl RunSpan {
    pub(super) fn none() -> RunSpan {
        RunSpan {}
    }

    pub(super) fn open(_: Option<&str>) -> RunSpan {
        RunSpan {}
    }

    pub(super) fn call(&self, _: &ToolCall) -> CallSpan {
        CallSpan {}
    }

    pub(super) fn ended(&self, _: Status, _: &Spent) {}
}

#[cfg(not(feature = "tracing"))]
impl CallSpan {
    pub(super) fn ended(&self, _: &str, _: u64) {}
}
