//! MCP towards the client: the two tools, on every revision of the protocol.
//!
//! From 2026-07-28 on nothing may be inferred from the connection, so a call that names no session gets a new one.
//! Earlier revisions have protocol sessions: there the connection has a session, which ends with the connection.

use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ConstString, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SubscribeRequestMethod, SubscribeRequestParams, UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;

use crate::lang::Limits;
use crate::lang::internal::closest;
use crate::server::admission::allowances::Allowances;
use crate::server::admission::request::{EnvRequest, Refused};
use crate::server::admission::shutdown::{SHUTTING_DOWN, UnderWay};
use crate::server::audit::{Kind, Record};
use crate::server::evaluations::withdrawn::{ClientRequest, ReplyLost};
use crate::server::evaluations::{Caller, Evaluations};
use crate::server::identity::sha256;
use crate::server::identity::{LOCAL, Principal};
use crate::server::sessions::Entry;
use crate::server::sessions::handles::Handles;
use crate::server::system::offload;
use crate::server::text::cut;
use crate::server::transport::buffer_space::BufferSpace;
use crate::server::transport::lines::UNREADABLE;

use super::begin::words;
use super::card::{self, Cards};
use super::doors::{Door, Doors, Offer};
use super::evaluating::recorded;
use super::multi_round::Rounds;
use super::patience::ReplyWithin;
use super::replies::Replies;
use super::tools;
use super::unfinished::UnfinishedPrograms;

/// Settings shared by all connections.
pub(in crate::server) struct ServerSettings {
    /// Builds the replies.
    pub(in crate::server) replies: Replies,
    /// The default limits of a call.
    pub(in crate::server) usual: Limits,
    /// The maximum limits of a call.
    pub(in crate::server) most: Limits,
    /// Limits of individual principals.
    pub(in crate::server) allowances: Arc<Allowances>,
    /// Asks in the replies to calls.
    pub(in crate::server) rounds: Rounds,
    /// True if commands at a terminal use the store without being told.
    pub(in crate::server) is_usual_store: bool,
    /// True if clients that show no forms have the tool `lisp_approve`.
    pub(in crate::server) approve_tool: bool,
    /// The time after which the call of a program is answered that is still running.
    pub(in crate::server) reply_within: ReplyWithin,
    /// The programs that go on.
    pub(in crate::server) unfinished: UnfinishedPrograms,
    /// The cards that take a decision.
    pub(in crate::server) cards: Cards,
}

/// One connection of a client.
pub(in crate::server) struct Front {
    pub(super) evaluations: Arc<Evaluations>,
    pub(super) settings: Arc<ServerSettings>,
    /// True if each request carries its principal.
    pub(super) over_http: bool,
    /// The session of this connection, created by the first call that needs it.
    own: Mutex<Option<Arc<Entry>>>,
    /// The session handles that this connection knows.
    handles: Arc<Handles>,
    /// Done once the servers whose tools are not known have been started.
    pub(super) prefetched: Once,
    /// Whether this client shows forms, and the runs about which `lisp_approve` may ask its user.
    pub(super) doors: Arc<Doors>,
    /// The client, once it has opened the connection.
    peer: OnceLock<Peer<RoleServer>>,
}

impl Front {
    /// Creates the front of a local client, connected by a pair of streams.
    pub(in crate::server) fn over_streams(evaluations: Arc<Evaluations>, settings: Arc<ServerSettings>) -> Front {
        Front::new(evaluations, settings, false)
    }

    /// Creates the front of a connection over HTTP.
    pub(in crate::server) fn over_http(evaluations: Arc<Evaluations>, settings: Arc<ServerSettings>) -> Front {
        Front::new(evaluations, settings, true)
    }

    fn new(evaluations: Arc<Evaluations>, settings: Arc<ServerSettings>, over_http: bool) -> Front {
        Front {
            evaluations,
            settings,
            over_http,
            own: Mutex::default(),
            handles: Arc::default(),
            prefetched: Once::new(),
            doors: Arc::default(),
            peer: OnceLock::new(),
        }
    }

    /// Returns the client of this connection, once it has opened it (revisions before 2026-07-28).
    pub(in crate::server) fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.peer.get()
    }

    /// Registers a request as under way.
    ///
    /// # Errors
    /// Returns an error if the server is shutting down. Over HTTP a request was admitted before it reached this.
    fn under_way(&self) -> Result<UnderWay, ErrorData> {
        let shutdown = self.evaluations.shutdown();
        let admitted = if self.over_http { Some(shutdown.enter()) } else { shutdown.admit() };
        admitted.ok_or_else(|| ErrorData::new(UNREADABLE, SHUTTING_DOWN, None))
    }

    /// Returns the principal of a request.
    pub(super) fn principal(&self, context: &RequestContext<RoleServer>) -> Result<String, Refused> {
        if !self.over_http {
            return Ok(LOCAL.to_owned());
        }
        let parts = context.extensions.get::<http::request::Parts>();
        let principal = parts.and_then(|parts| parts.extensions.get::<Principal>());
        let principal =
            principal.ok_or_else(|| Refused::new("InternalError", "the principal of this request is unknown"))?;
        Ok(principal.0.clone())
    }

    /// Returns the caller of a request, with its way to ask the user. A run that is resumed may wait again, however many
    /// others do.
    pub(super) fn caller(
        &self,
        name: String,
        is_resumed: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Caller, Door), Refused> {
        let stateless = is_stateless(context);
        let own = if stateless {
            None
        } else {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            if own.as_ref().is_none_or(|own| own.is_lost()) {
                let new = self.evaluations.new_session(&name)?;
                // The model has still read what it read in the session that is lost.
                if own.as_ref().is_some_and(|lost| lost.origins().is_read()) {
                    new.origins().read_elsewhere();
                }
                *own = Some(new);
            }
            own.clone()
        };
        if own.as_ref().is_some_and(|own| own.caller() != name) {
            return Err(Refused::new(
                "UnknownSession",
                "this connection was opened with another token; open a new one",
            ));
        }
        let (approver, door) = self.approver(&name, stateless, is_resumed, context);
        // Requests over HTTP that belong to no protocol session may each come from a different client.
        let handles = (!stateless || !self.over_http).then(|| Arc::clone(&self.handles));
        let (withdrawn, can_wait) = (context.ct.clone(), door.can_wait());
        let words = words(context)?;
        let lost = context.extensions.get::<ReplyLost>().cloned();
        let (left, request) = (withdrawn.clone(), Arc::new(ClientRequest::new(context.ct.clone(), lost)));
        let activity = Arc::default();
        let caller = Caller { name, own, handles, withdrawn, left, request, activity, approver, can_wait, words };
        Ok((caller, door))
    }

    /// Returns the session of the connection, if it has one.
    pub(super) fn own(&self) -> Option<Arc<Entry>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn env(&self, request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> CallToolResult {
        let (asked, arguments) = (Instant::now(), request.arguments.unwrap_or_default());
        let downstreams = self.evaluations.downstreams();
        let kept = downstreams.audit().map(|audit| {
            let query = json!({"query": arguments.get("query")}).to_string();
            audit.redaction().apply("", "lisp_env", &query, downstreams.secrets())
        });
        let read = EnvRequest::read(arguments);
        let begun = read.and_then(|request| Ok((request, self.caller(self.principal(context)?, false, context)?)));
        let (described, record) = match begun {
            Ok((request, (caller, _))) => {
                let (described, identity) = self.evaluations.describe(request, caller).await;
                (described, Record::of(Kind::Env, &identity))
            }
            Err(refused) => (Err(refused.into()), self.record_of(Kind::Env, context)),
        };
        let ms = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = Record { arguments: kept, ms: Some(ms), ..record };
        let (rendered, record) = match described {
            Ok(described) => {
                let (size, replies) = (described.text.len(), self.settings.replies.clone());
                let rendered = offload::linear(size, move || replies.described(&described)).await;
                (rendered, Record { outcome: "ok".to_owned(), ..record })
            }
            Err(reply) => {
                let record = record.with_outcome(&reply);
                (self.settings.replies.of(*reply, self.settings.usual.output), record)
            }
        };
        recorded(&self.evaluations, &self.settings, rendered, record).await
    }

    /// Creates a record of a request that is not an evaluation, or not yet.
    pub(super) fn record_of(&self, kind: Kind, context: &RequestContext<RoleServer>) -> Record {
        Record { kind, principal: self.principal(context).unwrap_or_default(), ..Record::default() }
    }
}

/// The length of the recorded hash of a reference: enough to tell references apart.
const REFERENCE_KEPT: usize = 16;

impl Drop for Front {
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = own.take() {
            self.evaluations.discard(&own);
        }
    }
}

/// True from 2026-07-28 on. Revisions are dates, so they compare as text.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Checks that a list is requested from its beginning: each of our lists is one page, so we issue no cursors.
fn first_page(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_ref()) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params(
            "unknown `cursor`: every list of this server is a single page; leave `cursor` out",
            None,
        )),
    }
}

/// The supported methods that rmcp passes on as custom requests if their parameters have an unexpected shape.
const WITH_PARAMETERS: [&str; 4] = ["tools/list", "resources/list", "resources/templates/list", "resources/read"];

/// The error for an unsupported method.
fn no_method(name: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("method not found: {}", cut(name, 200)), None)
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(Implementation::new("lispbox", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.peer.get_or_init(|| context.peer.clone());
        let answer = self.negotiate_initialize(&request)?;
        // In a place of its own, as in `call_tool`.
        Ok(Box::pin(self.instructed(answer, &context)).await)
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.prefetch();
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let answer = Box::pin(self.instructed(self.get_info(), &context)).await;
        self.prefetch();
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), answer))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        first_page(request.as_ref())?;
        let downstreams = self.evaluations.downstreams();
        downstreams.refresh();
        // A client without a handshake begins with this.
        self.prefetch();
        let names = downstreams.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut all = tools::both(&names, context.protocol_version().as_ref());
        match self.offered(&context) {
            Some(Offer::Card) => all.extend(tools::card()),
            Some(Offer::Prompt) => all.push(tools::approve()),
            None => {}
        }
        Ok(ListToolsResult::with_all_items(all))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        BufferSpace::release(&context.extensions);
        let _under_way = self.under_way()?;
        let result = match request.name.as_ref() {
            // In a place of their own: rmcp moves what it awaits several times.
            "lisp_eval" => return Box::pin(self.eval(request, &context)).await,
            "lisp_env" => Box::pin(self.env(request, &context)).await,
            "lisp_approve" | "lisp_decide" if let Some(offer) = self.offered(&context) => {
                Box::pin(self.by_offer(offer, request, &context)).await?
            }
            other => {
                let hint = closest(other, ["lisp_eval", "lisp_env"])
                    .map(|close| format!("; did you mean `{close}`?"))
                    .unwrap_or_default();
                return Err(ErrorData::invalid_params(
                    format!("there is no tool `{other}`; the tools are `lisp_eval` and `lisp_env`{hint}"),
                    None,
                ));
            }
        };
        Ok(result.into())
    }

    /// Lists no resources: the reference to one is a secret.
    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        first_page(request.as_ref()).map(|()| ListResourcesResult::default())
    }

    /// Lists no templates, as there are none.
    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        first_page(request.as_ref()).map(|()| ListResourceTemplatesResult::default())
    }

    /// Reads non-text content that a tool returned to a program of the same principal, or the document of the card.
    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let _under_way = self.under_way()?;
        let principal = self.principal(&context).map_err(|refused| ErrorData::internal_error(refused.message, None))?;
        if request.uri == card::URI {
            return Ok(ReadResourceResult::new(vec![card::resource()]).into());
        }
        let found = self.evaluations.downstreams().blobs().of(&principal).find(&request.uri);
        let record = Record {
            resource: sha256(request.uri.as_bytes())[..REFERENCE_KEPT].to_owned(),
            outcome: if found.is_some() { "ok" } else { "UnknownResource" }.to_owned(),
            bytes: found.as_ref().map(|blob| blob.data.len() as u64),
            ..self.record_of(Kind::Resource, &context)
        };
        self.evaluations.recorded_first(record).await.map_err(|problem| ErrorData::internal_error(problem, None))?;
        let blob = found.ok_or_else(|| {
            let message = "there is no such blob, or it has expired: call the tool again for a new reference";
            ErrorData::resource_not_found(message, None)
        })?;
        let contents = ResourceContents::blob(blob.data, blob.reference);
        let contents = match blob.mime_type {
            Some(kind) => contents.with_mime_type(kind),
            None => contents,
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    // For some of the following requests rmcp would return empty lists, as if there could be more; for the others it
    // would return only the name of the method.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_method(ListPromptsRequestMethod::VALUE))
    }

    async fn get_prompt(
        &self,
        _request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(no_method(GetPromptRequestMethod::VALUE))
    }

    #[expect(deprecated, reason = "clients of older revisions ask for it")]
    async fn set_level(
        &self,
        _request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(no_method(SetLevelRequestMethod::VALUE))
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(no_method(SubscribeRequestMethod::VALUE))
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(no_method(UnsubscribeRequestMethod::VALUE))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(no_method(CompleteRequestMethod::VALUE))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method arrives here if its parameters have an unexpected shape. In a tool call that is a mistake of
        // the model, which sees results but seldom protocol errors.
        if WITH_PARAMETERS.contains(&&*request.method) {
            let message = format!("the parameters of `{}` have the wrong types", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        if request.method != "tools/call" {
            return Err(no_method(&request.method));
        }
        let refused = Refused::new(
            "InvalidArguments",
            "a tool call needs `name`, a string, and `arguments`, an object such as `{\"program\": \"(+ 1 2)\"}`",
        );
        let mut result = self.settings.replies.of(refused.reply(), self.settings.usual.output).result;
        if !is_stateless(&context) {
            // rmcp removes it from results whose type it knows.
            result.result_type = None;
        }
        serde_json::to_value(result)
            .map(CustomResult)
            .map_err(|problem| ErrorData::internal_error(problem.to_string(), None))
    }
}
