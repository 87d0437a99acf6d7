//! MCP over lines of JSON: the transport of standard input and output, towards our client and the downstream servers.
//! Transports with other frames can be adapted to lines as well: [`Lines::between`].
//!
//! It differs from rmcp's own transport in the treatment of messages that cannot be accepted. A line over the cap is
//! scanned and dropped, never buffered, and the waiting peer learns its size at once; the same applies to a line that
//! is nested too deeply, has too many values or is malformed. rmcp drops such lines with a log entry, and the call runs
//! into its timeout.
//!
//! It also provides back-pressure: it accepts nothing while too much is owed to the peer; see [`super::backlog`].
//!
//! Of servers, it also reads messages that do not stand on a line each; see [`pieces`].

mod pieces;
mod reader;
mod reading;
mod requests;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use rmcp::model::{CancelledNotification, ErrorCode, ErrorData, JsonRpcMessage, JsonRpcNotification, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceError, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::backlog::{Backlog, Kind, MOST_REQUESTS};
use super::batch::{self, Batches, Item, Outgoing};
use super::cursor;
use super::envelope::{Envelope, LONGEST_ID};
use super::frequent::same;
use super::lenient::Waits;
use super::unfit;
use pieces::Piece;
use reader::LineReader;
use reading::{Unreadable, read_item, read_message};

pub(in crate::server) use reading::{MOST_MARKS, UNREADABLE, bytes_of, problem_of};
pub(in crate::server) use requests::Direct;

/// Default maximum size of an accepted message: 16 MiB.
pub(in crate::server) const LARGEST_LINE: usize = 16 << 20;

/// The time without any progress on a connection that owes too much, after which we check that its peer is still
/// connected.
const STUCK: Duration = Duration::from_secs(1);

/// The destination of a transport's lines.
pub(in crate::server) trait Outlet: Clone + Send + Sync + 'static {
    /// Writes one line, which ends in a newline.
    fn write(self, line: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send + 'static;

    /// Closes our side.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// A byte stream to which lines are written in order.
pub(in crate::server) struct Stream<Write> {
    write: Arc<Mutex<Option<Write>>>,
    ended: CancellationToken,
    /// Cancelled when nothing can be written any more.
    gone: CancellationToken,
    /// True if the length of each message is sent before it, as in the Language Server Protocol.
    is_framed: bool,
}

impl<Write> Clone for Stream<Write> {
    fn clone(&self) -> Self {
        let (ended, gone) = (self.ended.clone(), self.gone.clone());
        Stream { write: Arc::clone(&self.write), ended, gone, is_framed: self.is_framed }
    }
}

impl<Write: AsyncWrite + Unpin + Send + 'static> Outlet for Stream<Write> {
    async fn write(self, line: Vec<u8>) -> io::Result<()> {
        let mut write = self.write.lock().await;
        let write = write.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        let line = if self.is_framed { pieces::framed(&line) } else { line };
        let written = async {
            write.write_all(&line).await?;
            write.flush().await
        };
        // A peer that has closed the side to which we write cannot be answered any more.
        written.await.inspect_err(|_| {
            self.gone.cancel();
            self.ended.cancel();
        })
    }

    async fn close(&self) {
        self.write.lock().await.take();
    }
}

/// A message that was decoded, if there is one.
type Decoded<Role> = Result<Option<RxJsonRpcMessage<Role>>, (Envelope, Unreadable)>;

/// A transport that reads lines from a byte stream and writes them to an [`Outlet`].
pub(in crate::server) struct Lines<Read, Out> {
    reader: LineReader<Read>,
    outlet: Out,
    backlog: Arc<Backlog>,
    /// Called when too much is owed and there was no progress for a while; true if the peer counts as gone.
    given_up: fn() -> bool,
    /// False until the peer's first request.
    begun: bool,
    /// Our own answers that are being written.
    answers: JoinSet<()>,
    batches: Batches,
    /// Messages of a batch that have not been accepted yet.
    of_batch: VecDeque<Box<RawValue>>,
    /// Towards a server: our requests that it has not answered.
    requests: requests::OfTransport,
    /// Cancelled when the peer closes either side.
    ended: CancellationToken,
    /// Towards a client: cancelled when nothing more is to be accepted. All accepted requests are answered before the
    /// end.
    finish: Option<CancellationToken>,
}

impl<Read: AsyncRead + Unpin, Write> Lines<Read, Stream<Write>> {
    /// Creates a transport over a pair of byte streams that accepts lines of up to `largest` bytes and cancels `ended`
    /// at the end.
    pub(in crate::server) fn new(read: Read, write: Write, largest: usize, ended: CancellationToken) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        let outlet = Stream { write, ended: ended.clone(), gone: CancellationToken::new(), is_framed: false };
        Lines::between(read, outlet, largest, ended)
    }

    /// Sends the length of each message before it, in place of lines.
    pub(in crate::server) fn in_frames(mut self) -> Self {
        self.outlet.is_framed = true;
        self
    }

    /// Returns a token that is cancelled when nothing can be written to the peer any more.
    pub(in crate::server) fn gone(&self) -> CancellationToken {
        self.outlet.gone.clone()
    }
}

impl<Read: AsyncRead + Unpin, Out> Lines<Read, Out> {
    /// Creates a transport over a byte stream and an outlet.
    pub(in crate::server) fn between(read: Read, outlet: Out, largest: usize, ended: CancellationToken) -> Self {
        Lines {
            reader: LineReader::new(read, largest),
            outlet,
            backlog: Backlog::new(MOST_REQUESTS),
            // A downstream server that sends requests and does not read is of no further use.
            given_up: || true,
            begun: false,
            answers: JoinSet::new(),
            batches: Batches::default(),
            of_batch: VecDeque::new(),
            requests: requests::OfTransport::default(),
            ended,
            finish: None,
        }
    }

    /// Configures the transport for a client, which may have up to `most_requests` requests at once and read as late as
    /// it likes, until `hung_up` reports that it has closed its side. After its last message, or when `finish` is
    /// cancelled, the stream ends once all its requests have been answered.
    pub(in crate::server) fn serving(
        self,
        most_requests: usize,
        hung_up: fn() -> bool,
        finish: CancellationToken,
    ) -> Self {
        Lines { backlog: Backlog::new(most_requests), given_up: hung_up, finish: Some(finish), ..self }
    }

    /// Returns what makes requests on this connection without its service.
    pub(in crate::server) fn direct(&self) -> Direct<Out>
    where
        Out: Outlet,
    {
        Direct::new(&self.requests, self.backlog(), self.outlet.clone())
    }

    /// The books on what is owed to the peer.
    pub(in crate::server) fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }

    /// Waits for room and reads the next line; `None` if there is none, or no more is to be accepted. A pending message
    /// of a batch is returned as an empty line.
    async fn next(&mut self) -> Option<Option<Envelope>> {
        let finish = self.finish.clone();
        let next = async {
            if !self.room().await {
                return None;
            }
            if self.of_batch.is_empty() { self.reader.next_line(self.finish.is_none()).await } else { Some(None) }
        };
        match finish {
            Some(finish) => tokio::select! {
                biased;
                () = finish.cancelled() => None,
                next = next => next,
            },
            None => next.await,
        }
    }

    /// Waits until another message may be accepted; false if the peer is gone.
    async fn room(&mut self) -> bool {
        loop {
            match tokio::time::timeout(STUCK, self.backlog.room()).await {
                Ok(()) => return true,
                Err(_) if (self.given_up)() => return false,
                Err(_) => {}
            }
        }
    }
}

impl<Role: ServiceRole, Read: AsyncRead + Unpin + Send, Out: Outlet> Transport<Role> for Lines<Read, Out> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<Role>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if Role::IS_CLIENT {
            self.asks::<Role>(&item);
        }
        let writing = self.write::<Role>(item, id.as_ref());
        if let Some(id) = id {
            self.backlog.close(&id);
        }
        writing
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<Role>> {
        loop {
            let line = self.next().await;
            if line.is_some()
                && let Some(message) = self.of_batch.pop_front()
            {
                let only = self.requests.only();
                let read = read_item::<Role>(message.get().as_bytes(), Waits::of(only.as_ref()));
                match read.and_then(|message| self.taken_in::<Role>(message)) {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let Some(oversized) = line else {
                self.ended.cancel();
                if self.finish.is_some() {
                    self.backlog.settled().await;
                }
                // The connection is closed after this, and pending answers still have to be delivered.
                while self.answers.join_next().await.is_some() {}
                return None;
            };
            let read = match oversized {
                Some(envelope) => self.reader.end_of_large(envelope).map_or(Ok(None), Err),
                None if Role::IS_CLIENT => self.read_of_server::<Role>(),
                None => self.read_of_client::<Role>(),
            };
            let (envelope, problem) = match read {
                Ok(Some(message)) => match self.taken_in::<Role>(message) {
                    Some(message) => return Some(message),
                    None => continue,
                },
                Ok(None) => continue,
                Err(unreadable) => unreadable,
            };
            // An unreadable response becomes an error response for the waiting caller. An unreadable request is
            // answered with an error, without an identity if the identity is unreadable.
            let id = envelope.id();
            tracing::warn!(id = id.as_ref().map(ToString::to_string), problem = %problem.error().message, "a message was rejected");
            if Role::IS_CLIENT {
                if let Some(id) = id.filter(|_| !envelope.has_method())
                    && let Some(message) = self.taken_in::<Role>(JsonRpcMessage::error(problem.error(), Some(id)))
                {
                    return Some(message);
                }
            } else if envelope.is_batch() || (envelope.has_method() && envelope.has_id()) {
                self.answer::<Role>(problem.error(), id);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outlet.close().await;
        Ok(())
    }
}

impl<Read: AsyncRead + Unpin + Send, Out: Outlet> Lines<Read, Out> {
    /// Decodes the line of a client; `None` if it is no message, or was answered or taken apart.
    fn read_of_client<Role: ServiceRole>(&mut self) -> Decoded<Role> {
        let line = self.reader.take();
        self.batches.comes(&line);
        let wrong = match cursor::problem(&line) {
            // rmcp takes a malformed `initialize` for a request of another kind.
            None if self.batches.are_open() => unfit::lack(&line),
            wrong => wrong.map(str::to_owned),
        };
        match (read_message::<Role>(&line, Waits::Nobody), wrong) {
            (Ok(Some(_)), Some(problem)) => {
                let error = ErrorData::invalid_params(problem, None);
                self.answer::<Role>(error, Envelope::of(&line).id());
                Ok(None)
            }
            (Err((envelope, Unreadable::Batch(_))), _) if self.batches.are_known() => match self.batch::<Role>(&line) {
                Ok(()) => Ok(None),
                Err(problem) => Err((envelope, Unreadable::Batch(problem))),
            },
            (Err((envelope, Unreadable::Odd(problem))), _) if envelope.has_method() => {
                Err((envelope, unfit::lack(&line).map_or(Unreadable::Odd(problem), Unreadable::Unfit)))
            }
            (read, _) => read,
        }
    }

    /// Decodes the line of a server; `None` if it is no message, only a part of one, or was taken apart.
    fn read_of_server<Role: ServiceRole>(&mut self) -> Decoded<Role> {
        let line = self.reader.take();
        let only = self.requests.only();
        let waits = Waits::of(only.as_ref());
        let read = read_message::<Role>(&line, waits);
        let kind = match &read {
            Ok(Some(_)) => pieces::Kind::Message,
            Err((envelope, _)) if envelope.has_id() => pieces::Kind::Broken,
            Ok(None) | Err(_) => pieces::Kind::Other,
        };
        let (line, read) = match self.reader.join(line, kind) {
            Piece::Alone(line) => (line, read),
            Piece::Part => return Ok(None),
            Piece::Last(whole) => {
                let read = read_message::<Role>(&whole, waits);
                (whole, read)
            }
            Piece::Large(envelope) => return Err(self.reader.large(envelope)),
        };
        read.or_else(|unreadable| {
            self.of_batch.extend(pieces::several(&line).ok_or(unreadable)?);
            Ok(None)
        })
    }

    /// Updates the books for a message that was read; `None` if the message is not for the service.
    fn taken_in<Role: ServiceRole>(&mut self, message: RxJsonRpcMessage<Role>) -> Option<RxJsonRpcMessage<Role>> {
        match message {
            JsonRpcMessage::Request(request) => {
                self.begun = true;
                let (problem, id) = match &request.id {
                    RequestId::String(text) if text.len() > LONGEST_ID => {
                        (format!("the id has {} bytes; at most {LONGEST_ID} are accepted", text.len()), None)
                    }
                    id if self.backlog.open(id) => return Some(JsonRpcMessage::Request(request)),
                    id => (format!("a request with the id `{id}` is still open; ids must differ"), Some(id.clone())),
                };
                self.answer::<Role>(ErrorData::new(ErrorCode::INVALID_REQUEST, problem, None), id);
                None
            }
            // rmcp ends the connection of a client whose first message is not a request.
            _ if !Role::IS_CLIENT && !self.begun => None,
            JsonRpcMessage::Notification(JsonRpcNotification { jsonrpc, notification }) => {
                let notification = match TryInto::<CancelledNotification>::try_into(notification) {
                    Ok(cancelled) => {
                        if let Some(id) = &cancelled.params.request_id {
                            self.backlog.close(id);
                            if let Some(replies) = self.batches.withdrawn(id) {
                                let writing = write_line(&self.backlog, &self.outlet, Kind::Reply, replies);
                                self.spawn(writing);
                            }
                        }
                        cancelled.into()
                    }
                    Err(other) => other,
                };
                Some(JsonRpcMessage::Notification(JsonRpcNotification { jsonrpc, notification }))
            }
            JsonRpcMessage::Response(response) => {
                let Some(answer) = self.requests.end(&response.id) else {
                    return Some(JsonRpcMessage::Response(response));
                };
                // The receiver has been dropped if the caller has given up.
                let _ = answer.send(same(response.result).ok_or(ServiceError::UnexpectedResponse));
                None
            }
            JsonRpcMessage::Error(error) => {
                let Some(answer) = error.id.as_ref().and_then(|id| self.requests.end(id)) else {
                    return Some(JsonRpcMessage::Error(error));
                };
                let _ = answer.send(Err(ServiceError::McpError(error.error)));
                None
            }
        }
    }

    /// Records a request that the peer is to answer, or that one need not be answered any more.
    fn asks<Role: ServiceRole>(&mut self, item: &TxJsonRpcMessage<Role>) {
        match item {
            JsonRpcMessage::Request(request) => self.requests.begin(request.id.clone()),
            JsonRpcMessage::Notification(JsonRpcNotification { notification, .. }) => {
                let cancelled: Result<CancelledNotification, _> = notification.clone().try_into();
                if let Ok(CancelledNotification { params, .. }) = cancelled {
                    params.request_id.iter().for_each(|id| _ = self.requests.end(id));
                }
            }
            _ => {}
        }
    }

    /// Splits a batch: its messages are accepted one after the other.
    ///
    /// # Errors
    /// Returns the problem of the batch as a whole.
    fn batch<Role: ServiceRole>(&mut self, line: &[u8]) -> Result<(), String> {
        let (mut waiting, mut replies) = (HashSet::new(), Vec::new());
        let mut refuse = |code: ErrorCode, id: Option<RequestId>, problem: &str| {
            let error = ErrorData::new(code, problem.to_owned(), None);
            let error: TxJsonRpcMessage<Role> = JsonRpcMessage::error(error, id);
            replies.extend(serde_json::to_vec(&error).ok());
        };
        for item in batch::items(line.trim_ascii())? {
            let (text, id) = match item {
                Item::Message { text, id } => (text, id),
                Item::Wrong { id, code, problem } => {
                    refuse(code, id, problem);
                    continue;
                }
            };
            if id.as_ref().is_some_and(|id| self.backlog.is_open(id)) {
                refuse(ErrorCode::INVALID_REQUEST, id, "a request with this id is still open; ids must differ");
                continue;
            }
            match RawValue::from_string(text.to_owned()) {
                Ok(message) if serde_json::from_str::<RxJsonRpcMessage<Role>>(text).is_ok() => {
                    waiting.extend(id);
                    self.of_batch.push_back(message);
                }
                _ => refuse(ErrorCode::INVALID_REQUEST, id, &unfit::reason(text.as_bytes())),
            }
        }
        if let Some(replies) = self.batches.begin(waiting, replies) {
            let writing = write_line(&self.backlog, &self.outlet, Kind::Reply, replies);
            self.spawn(writing);
        }
        Ok(())
    }

    /// Answers a request that never reaches the service.
    fn answer<Role: ServiceRole>(&mut self, error: ErrorData, id: Option<RequestId>) {
        let writing = self.write::<Role>(JsonRpcMessage::error(error, id.clone()), id.as_ref());
        self.spawn(writing);
    }

    fn spawn(&mut self, writing: impl Future<Output = io::Result<()>> + Send + 'static) {
        while self.answers.try_join_next().is_some() {}
        self.answers.spawn(async move {
            if let Err(problem) = writing.await {
                tracing::debug!(%problem, "an error reply could not be sent");
            }
        });
    }

    /// Writes a message, which may be the reply to that request. It is encoded now, so that a queued message is no
    /// larger than its encoding.
    fn write<Role: ServiceRole>(
        &mut self,
        message: TxJsonRpcMessage<Role>,
        id: Option<&RequestId>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static + use<Role, Read, Out> {
        let kind = match &message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Kind::Reply,
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Kind::Ours,
        };
        let line = serde_json::to_vec(&message);
        let outgoing = match (line, id) {
            (Ok(line), Some(id)) if !Role::IS_CLIENT => self.batches.goes(id, line),
            (Ok(line), _) => Outgoing::Alone(line),
            (Err(problem), _) => return Either::Left(std::future::ready(Err(problem.into()))),
        };
        match outgoing {
            Outgoing::Alone(line) | Outgoing::Batch(line) => {
                Either::Right(write_line(&self.backlog, &self.outlet, kind, line))
            }
            Outgoing::Kept => Either::Left(std::future::ready(Ok(()))),
        }
    }
}

/// Writes a line to an outlet, unless it is a message of our own and too much is unread.
fn write_line<Out: Outlet>(
    backlog: &Arc<Backlog>,
    outlet: &Out,
    kind: Kind,
    mut line: Vec<u8>,
) -> impl Future<Output = io::Result<()>> + Send + 'static + use<Out> {
    let unwritten = backlog.write(kind, line.len());
    let outlet = outlet.clone();
    async move {
        let _unwritten = unwritten.ok_or_else(|| io::Error::other("it does not read what is sent to it"))?;
        line.push(b'\n');
        outlet.write(line).await
    }
}

#[cfg(test)]
mod tests;
