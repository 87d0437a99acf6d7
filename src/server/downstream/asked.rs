//! A call that was sent to a server: its answer, the progress that the server reports on it, and its end if the
//! caller gives up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use futures::FutureExt;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    ClientRequest, ErrorData, ProgressToken, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use tokio::process::ChildStdin;

use crate::server::transport::frequent;
use crate::server::transport::lines::{Direct, Stream};

use super::client;
use super::streamable::Harmless;

/// Maximum number of calls whose progress is remembered. Only a server that reports on calls which it does not have
/// exceeds it.
const MOST_REPORTS: usize = 1_024;

/// The unsolicited reports of a server.
#[derive(Default)]
pub(super) struct Reports {
    list_changed: AtomicBool,
    has_progress: AtomicBool,
    /// When the server has last reported progress of each call, by its token. Servers write tokens as numbers or texts.
    progress: Mutex<HashMap<String, Instant>>,
}

impl Reports {
    /// Records that the tools have changed.
    pub(super) fn list_changes(&self) {
        self.list_changed.store(true, Ordering::Release);
    }

    /// Returns true once after the server has reported a change of its tools.
    pub(super) fn take_list_changed(&self) -> bool {
        self.list_changed.swap(false, Ordering::AcqRel)
    }

    /// Records progress of a call.
    pub(super) fn progresses(&self, token: &ProgressToken) {
        let (token, mut progress) = (token.0.to_string(), self.progress());
        if progress.len() < MOST_REPORTS || progress.contains_key(&token) {
            progress.insert(token, Instant::now());
            self.has_progress.store(true, Ordering::Release);
        }
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends calls to a process, past rmcp's task of the connection.
pub(super) struct DirectCalls {
    direct: Direct<Stream<ChildStdin>>,
    /// The metadata of every call.
    meta: RequestMetaObject,
}

impl DirectCalls {
    pub(super) fn new(direct: Direct<Stream<ChildStdin>>, peer: &Peer<RoleClient>) -> DirectCalls {
        let mut meta = RequestMetaObject::new();
        let version = peer.peer_info().map(|info| info.protocol_version.clone());
        // Where there is no handshake, each request says what a handshake would.
        if let Some(version) = version.filter(|version| !version.has_initialize()) {
            let client = client::config(version);
            meta.set_protocol_version(client.protocol_version);
            meta.set_client_info(client.client_info);
            meta.set_client_capabilities(client.capabilities);
        }
        DirectCalls { direct, meta }
    }
}

/// A call that is sent once. Dropping it tells the server that its answer is not needed.
pub(super) struct Asked<'c> {
    peer: &'c Peer<RoleClient>,
    calls: Option<&'c DirectCalls>,
    reports: &'c Reports,
    sent: OnceLock<(RequestId, ProgressToken)>,
    is_answered: AtomicBool,
}

impl<'c> Asked<'c> {
    /// Creates a call that goes by `calls`, if there are any, and else by rmcp's task.
    pub(super) fn new(peer: &'c Peer<RoleClient>, calls: Option<&'c DirectCalls>, reports: &'c Reports) -> Asked<'c> {
        Asked { peer, calls, reports, sent: OnceLock::new(), is_answered: AtomicBool::new(false) }
    }

    /// Sends the call and waits for its answer. One that is harmless may reach the server twice.
    ///
    /// # Errors
    /// Returns the error reply, or why there is no answer.
    pub(super) async fn answer(
        &self,
        params: CallToolRequestParams,
        is_harmless: bool,
    ) -> Result<CallToolResponse, ServiceError> {
        let answer = match self.calls {
            Some(calls) => self.answer_directly(calls, params).await,
            None => self.answer_by_service(params, is_harmless).await,
        };
        self.is_answered.store(true, Ordering::Release);
        match answer? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            ServerResult::EmptyResult(_) => Ok(CallToolResponse::Complete(CallToolResult::success(Vec::new()))),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    async fn answer_directly(
        &self,
        calls: &DirectCalls,
        mut params: CallToolRequestParams,
    ) -> Result<ServerResult, ServiceError> {
        let request = calls.direct.begin()?;
        let (id, token) = (request.id().clone(), ProgressToken(request.id().clone()));
        let mut meta = calls.meta.clone();
        meta.set_progress_token(token.clone());
        params.meta = Some(meta);
        let text = frequent::text_of_call(&id, &params)
            .map_err(|problem| ServiceError::McpError(ErrorData::invalid_params(problem.to_string(), None)))?;
        let _ = self.sent.set((id, token));
        request.answer(text).await
    }

    async fn answer_by_service(
        &self,
        params: CallToolRequestParams,
        is_harmless: bool,
    ) -> Result<ServerResult, ServiceError> {
        let mut request = CallToolRequest::new(params);
        if is_harmless {
            request.extensions.insert(Harmless);
        }
        let request = ClientRequest::CallToolRequest(request);
        let handle = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        let _ = self.sent.set((handle.id.clone(), handle.progress_token.clone()));
        handle.await_response().await
    }

    /// Returns when the server has last reported progress of the call.
    pub(super) fn last_progress(&self) -> Option<Instant> {
        let (_, token) = self.sent.get()?;
        self.reports.progress().get(&token.0.to_string()).copied()
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some((id, token)) = self.sent.take() else { return };
        if self.reports.has_progress.load(Ordering::Acquire) {
            self.reports.progress().remove(&token.0.to_string());
        }
        if !*self.is_answered.get_mut() {
            let reason = "request abandoned by the caller".to_owned();
            let notice = CancelledNotificationParam::new(Some(id), Some(reason));
            // One poll puts the notice into the queue of the connection; it is written later.
            let _ = self.peer.notify_cancelled(notice).now_or_never();
        }
    }
}
