//! The HTTP client under rmcp's streamable HTTP transport: it reads replies leniently, whatever their status.
//!
//! An error reply to a request is its answer, with or without an identity and with any status. A session that the server
//! no longer knows is reported as [`StreamableHttpError::SessionExpired`], upon which rmcp opens another one and sends
//! the request once more: servers answer 404, or 400 as the SDK for TypeScript does, and have then not carried it out.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use futures::stream::{BoxStream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use serde_json::{Value, json};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::server::transport::envelope::Envelope;
use crate::server::transport::lenient::{self, Waits};
use crate::server::transport::lines;

use super::kept_connections::Connections;
use super::problems::Refused;

/// The beginnings of a text with a byte order mark, and of data that is compressed with gzip.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const GZIP: &[u8] = b"\x1f\x8b";

type Failure = StreamableHttpError<reqwest::Error>;

/// The events of a stream.
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client for one server.
#[derive(Clone)]
pub(super) struct Http {
    connections: Arc<Connections>,
    /// Maximum size of a reply in bytes.
    largest: usize,
    /// The session in which the server has answered last.
    session: Arc<Mutex<Option<Arc<str>>>>,
    /// True once the server has refused to open a stream of its own messages.
    has_no_stream: Arc<AtomicBool>,
}

impl Http {
    pub(super) fn new(connections: Connections, largest: usize) -> Http {
        Http { connections: Arc::new(connections), largest, session: Arc::default(), has_no_stream: Arc::default() }
    }

    fn worked_in(&self, session: &Option<Arc<str>>) {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone_from(session);
    }

    fn has_worked_in(&self, session: &str) -> bool {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(session)
    }

    /// Returns what a response that is not a success means for a message.
    async fn refused(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let (status, is_json) = (response.status(), is_of(&response, JSON_MIME_TYPE));
        let (refused, body) = Refused::read(response).await;
        if status == StatusCode::UNAUTHORIZED {
            return Err(refused.challenge());
        }
        // Other JSON is quoted with the status.
        let is_json = is_json && names_protocol(&body);
        let id = id_of(message);
        let error = is_json.then(|| lenient::read::<RoleClient>(&body, id.map_or(Waits::Nobody, Waits::This)).ok());
        let error = error.flatten().filter(|reply| matches!(reply, JsonRpcMessage::Error(_)));
        if let Some(session) = session
            && matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::GONE)
        {
            let is_plain = error.is_none() && self.has_worked_in(session);
            // An error with the identity of the request comes from whatever has carried it out.
            let is_answer = error.is_some() && id.is_some_and(|id| has_identity(&body, id));
            if is_plain || !is_answer && (status == StatusCode::NOT_FOUND || names_session(&body)) {
                return Err(StreamableHttpError::SessionExpired);
            }
        }
        match (error, message) {
            (Some(error), JsonRpcMessage::Request(_))
                if status != StatusCode::FORBIDDEN && (status.is_client_error() || status.is_server_error()) =>
            {
                Ok(StreamableHttpPostResponse::Json(error, None))
            }
            // A server that takes no notifications may answer requests all the same.
            (_, JsonRpcMessage::Notification(_)) => {
                tracing::warn!(status = status.as_u16(), "a server has refused a notification");
                Ok(StreamableHttpPostResponse::Accepted)
            }
            _ => Err(refused.error()),
        }
    }
}

/// Returns the identity of a request.
fn id_of(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    }
}

/// Returns whether a text says that the server does not know our session, in the words of the SDKs.
fn names_session(body: &[u8]) -> bool {
    let words = lossy(body).to_lowercase();
    words.contains("session") || words.contains("not initialized")
}

/// Returns whether a message in JSON has the identity of a request.
fn has_identity(body: &[u8], id: &RequestId) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|message| message.get("id") == Some(&json!(id)))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// True if a response has a content type.
fn is_of(response: &Response, kind: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    given.get(..kind.len()).is_some_and(|given| given.eq_ignore_ascii_case(kind.as_bytes()))
}

/// Reads a body; `None` if it is larger than the limit.
async fn limited(response: &mut Response, most: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// Reads the body of a reply; the problem of one that cannot be read is the answer to the request.
fn reply(body: &[u8], id: &RequestId) -> ServerJsonRpcMessage {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    if body.starts_with(GZIP) {
        let message = "it is compressed with gzip, which was not asked for".to_owned();
        return JsonRpcMessage::error(ErrorData::new(lines::UNREADABLE, message, None), Some(id.clone()));
    }
    let envelope = Envelope::of(body);
    if let Some(problem) = lines::problem_of(&envelope) {
        return JsonRpcMessage::error(problem, Some(id.clone()));
    }
    let read = |text: &[u8]| lenient::read::<RoleClient>(text, Waits::This(id));
    if envelope.is_batch()
        && let Ok(items) = serde_json::from_slice::<Vec<&serde_json::value::RawValue>>(body)
    {
        let mut replies = items.iter().filter_map(|item| read(item.get().as_bytes()).ok());
        let answers = |reply: &ServerJsonRpcMessage| match reply {
            JsonRpcMessage::Response(response) => response.id == *id,
            JsonRpcMessage::Error(_) => true,
            _ => false,
        };
        if let Some(answer) = replies.find(answers) {
            return answer;
        }
    }
    read(body).unwrap_or_else(|problem| {
        let message = format!("the message is not JSON-RPC: {problem}");
        JsonRpcMessage::error(ErrorData::new(lines::UNREADABLE, message, None), Some(id.clone()))
    })
}

/// Returns whether a body is a message, although its type says something else.
fn is_message(body: &[u8], id: &RequestId) -> bool {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let is_sound = lines::problem_of(&Envelope::of(body)).is_none();
    is_sound && names_protocol(body) && lenient::read::<RoleClient>(body, Waits::This(id)).is_ok()
}

/// Returns whether a text has the key by which a message of JSON-RPC is known.
fn names_protocol(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"\"jsonrpc\"").is_some()
}

/// The name of an event that is too large to be read.
const CUT: &str = "cut";

/// Returns the events of the response to a request, with their messages as rmcp reads them. An event that is too large
/// is replaced by an error reply, with which the stream ends.
fn events(response: Response, most: usize, id: RequestId) -> Events {
    let (limit, is_over) = (EventLimit { most, ..EventLimit::default() }, false);
    let refusal = {
        let message = format!("the message has more than {most} bytes, which are accepted at most");
        let error = ErrorData::new(lines::UNREADABLE, message, Some(json!({ "bytes": most + 1 })));
        let reply: ServerJsonRpcMessage = JsonRpcMessage::error(error, Some(id.clone()));
        serde_json::to_string(&reply).unwrap_or_default()
    };
    let bounded = response.bytes_stream().scan((limit, is_over), move |(limit, is_over), piece| {
        let next = match piece {
            _ if *is_over => None,
            Err(problem) => Some(Err(io::Error::other(problem))),
            Ok(piece) if limit.is_exceeded_by(&piece) => {
                *is_over = true;
                Some(Ok(format!("\nevent: {CUT}\n\ndata: {refusal}\n\n").into()))
            }
            Ok(piece) => Some(Ok(piece)),
        };
        std::future::ready(next)
    });
    // The last event of a stream may lack the blank line that ends it.
    let ended = bounded.chain(futures::stream::once(async { Ok("\n\n".into()) }));
    SseStream::from_bytes_stream(ended).map(move |event| event.map(|event| mended(event, Some(&id)))).boxed()
}

/// Returns an event with its message as rmcp reads it. Data that is no message, such as that of a `ping`, is left out.
fn mended(mut event: Sse, id: Option<&RequestId>) -> Sse {
    let is_whole = event.event.as_deref() != Some(CUT);
    let Some(data) = event.data.as_deref().filter(|data| is_whole && !data.trim().is_empty()) else { return event };
    // Some servers give events of messages a name.
    event.event = None;
    let text = match lenient::read_and_compare::<RoleClient>(data.as_bytes(), id.map_or(Waits::Nobody, Waits::This)) {
        Ok((_, false)) => return event,
        Ok((message, true)) => serde_json::to_string(&message).ok(),
        // What was meant as the reply is an error at once.
        Err(_) if data.contains("\"jsonrpc\"") => {
            id.and_then(|id| serde_json::to_string(&reply(data.as_bytes(), id)).ok())
        }
        Err(_) => None,
    };
    event.data = text;
    event
}

/// Counts the bytes of an event as it arrives.
#[derive(Default)]
struct EventLimit {
    most: usize,
    /// The bytes of the finished lines of the event, and of the line that is arriving.
    lines: usize,
    line: usize,
    is_comment: bool,
}

impl EventLimit {
    fn is_exceeded_by(&mut self, piece: &[u8]) -> bool {
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let text = line.trim_ascii_end();
            if self.line == 0 {
                self.is_comment = text.starts_with(b":");
            }
            self.line += text.len();
            if self.lines + self.line > self.most {
                return true;
            }
            if line.ends_with(b"\n") {
                self.lines = match self.line {
                    0 => 0,
                    _ if self.is_comment => self.lines,
                    length => self.lines + length,
                };
                self.line = 0;
            }
        }
        false
    }
}

fn with(mut request: RequestBuilder, token: Option<&str>, headers: &HeaderMap) -> RequestBuilder {
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request.headers(headers.clone())
}

/// An extension of a request: its tool changes nothing, or a second call with the same arguments changes nothing more.
#[derive(Clone)]
pub(super) struct Harmless;

/// Returns whether it makes no difference that a server receives a message twice.
fn may_be_repeated(message: &ClientJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::CallToolRequest(call) => call.extensions.get::<Harmless>().is_some(),
            ClientRequest::InitializeRequest(_)
            | ClientRequest::PingRequest(_)
            | ClientRequest::ListToolsRequest(_) => true,
            _ => false,
        },
        // A second answer to the same request is ignored.
        JsonRpcMessage::Notification(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
    }
}

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let most = self.largest;
        self.post_message_with_max_sse_event_size(uri, message, session_id, auth_header, custom_headers, most).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let accept = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let headers = custom_headers.into_iter().collect::<HeaderMap>();
        let request = |client: &Client| {
            let request = with(client.post(uri.as_ref()).header(ACCEPT, &accept), auth_header.as_deref(), &headers);
            let request = match &session_id {
                Some(session) => request.header(HEADER_SESSION_ID, session.as_ref()),
                None => request,
            };
            request.json(&message)
        };
        let sent = self.connections.send(may_be_repeated(&message), request).await;
        let mut response = sent.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, &message, session_id.as_deref()).await;
        }
        self.worked_in(&session_id);
        let Some(id) = id_of(&message) else { return Ok(StreamableHttpPostResponse::Accepted) };
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // Without a session no stream is asked for.
            if session_id.is_some() && !self.has_no_stream.load(Ordering::Acquire) {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            let message =
                format!("it answered HTTP status {status} alone, and has no stream on which a reply could come");
            let error = ErrorData::new(lines::UNREADABLE, message, None);
            return Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::error(error, Some(id.clone())), None));
        }
        let opened = response.headers().get(HEADER_SESSION_ID).and_then(|session| session.to_str().ok());
        let opened = opened.map(str::to_owned);
        if is_of(&response, EVENT_STREAM_MIME_TYPE) {
            let events = events(response, max_sse_event_size, id.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, opened));
        }
        let is_json = is_of(&response, JSON_MIME_TYPE);
        let body = limited(&mut response, self.largest).await.map_err(StreamableHttpError::Client)?;
        let body = body.ok_or(StreamableHttpError::ResponseBodyTooLarge { max_size: self.largest })?;
        if !is_json && !is_message(&body, id) {
            return Err(Refused::of(&response, &body).error());
        }
        Ok(StreamableHttpPostResponse::Json(reply(&body, id), opened))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.connections.single().delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let most = self.largest;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<Events, Failure> {
        let opened = self.connections.single().get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        let opened = opened.await;
        self.has_no_stream.store(opened.is_err(), Ordering::Release);
        Ok(opened?.map(|event| event.map(|event| mended(event, None))).boxed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_bounded_however_they_arrive() {
        let text = b"data: 12345\r\n: a comment of any length\n\ndata: 1\ndata: 2\n\n";
        for size in 1..text.len() {
            let mut limit = EventLimit { most: 16, ..EventLimit::default() };
            let exceeded = text.chunks(size).any(|piece| limit.is_exceeded_by(piece));
            assert!(exceeded, "the comment line alone is too long, in pieces of {size}");
            let mut limit = EventLimit { most: 40, ..EventLimit::default() };
            assert!(!text.chunks(size).any(|piece| limit.is_exceeded_by(piece)), "in pieces of {size}");
        }
        let mut limit = EventLimit { most: 20, ..EventLimit::default() };
        assert!(limit.is_exceeded_by(b"data: 123456\ndata: 123456\n"));
    }

    #[test]
    fn the_reply_of_a_batch_is_found() {
        let id = RequestId::Number(2);
        let body = br#"[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},
                        {"jsonrpc":"2.0","id":2,"result":{"content":"x"}}]"#;
        assert!(matches!(reply(body, &id), JsonRpcMessage::Response(_)));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        let JsonRpcMessage::Error(error) = reply(deep.as_bytes(), &id) else { panic!("no error") };
        assert_eq!((error.error.code, error.id), (lines::UNREADABLE, Some(id)));
    }

    #[test]
    fn data_that_is_no_message_is_left_out() {
        let id = RequestId::Number(2);
        for data in ["hello", "{}", "[DONE]", "[1]"] {
            assert_eq!(mended(Sse::default().data(data), Some(&id)).data, None, "{data}");
        }
        let broken = mended(Sse::default().data("{\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {"), Some(&id));
        assert!(broken.data.is_some_and(|data| data.contains("\"error\"")), "it is the answer");
    }

    #[test]
    fn messages_are_read_whatever_their_type() {
        let id = RequestId::Number(2);
        let whole = br#"{"jsonrpc": "2.0", "id": 2, "result": {"content": []}}"#;
        assert!(is_message(whole, &id));
        assert!(is_message(&[BYTE_ORDER_MARK, whole].concat(), &id));
        assert!(matches!(reply(&[BYTE_ORDER_MARK, whole].concat(), &id), JsonRpcMessage::Response(_)));
        assert!(!is_message(b"<html>Please log in</html>", &id));
        assert!(!is_message(br#"{"error": "late"}"#, &id));
        let JsonRpcMessage::Error(error) = reply(&[GZIP, b"..."].concat(), &id) else { panic!("no error") };
        assert_eq!(error.error.message, "it is compressed with gzip, which was not asked for");
    }

    #[test]
    fn an_event_is_a_message_whatever_its_name() {
        let id = RequestId::Number(2);
        let data = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"quota"}}"#;
        let event = mended(Sse::default().event("error").data(data), Some(&id));
        assert_eq!(event.event, None);
        let data: Value = serde_json::from_str(&event.data.expect("data")).expect("JSON");
        assert_eq!((&data["id"], &data["error"]["message"]), (&json!(2), &json!("quota")));
    }
}
