//! MCP over lines of JSON: the transport of standard input and output, towards our client and towards
//! the servers behind us.
//!
//! It differs from rmcp's own in what happens to a message that cannot be taken in. A line over the cap
//! is scanned and dropped, never held, and whoever waits for it is told its size at once; the same goes
//! for a line that is nested too deep or is not what it should be. rmcp drops such lines with a log
//! entry, and the call runs into its time-out.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::envelope::Envelope;

/// The largest message that is taken in unless something else is configured: 16 MiB.
pub(super) const LARGEST_LINE: usize = 16 << 20;

/// The code of the errors that stand for a message which could not be taken in.
pub(super) const UNREADABLE: ErrorCode = ErrorCode(-32099);

/// Deeper messages are not decoded: serde_json stops at 128 levels, as decoding and dropping them would
/// take stack in proportion. rmcp's own layers are within this number.
const DEEPEST: u32 = 120;

/// What a peer sent instead of a readable message.
enum Unreadable {
    Large(u64),
    Deep(u32),
    Odd(String),
}

impl Unreadable {
    fn error(&self) -> ErrorData {
        let (message, data) = match self {
            Unreadable::Large(bytes) => (format!("the message has {bytes} bytes"), json!({ "bytes": bytes })),
            Unreadable::Deep(depth) => (
                format!("the message is nested {depth} levels deep; at most {DEEPEST} are taken in"),
                json!({ "depth": depth }),
            ),
            Unreadable::Odd(problem) => (format!("the message is not JSON-RPC: {problem}"), json!({})),
        };
        ErrorData::new(UNREADABLE, message, Some(data))
    }
}

/// The number of bytes, when an error of [`UNREADABLE`] stands for a message that was too large.
pub(super) fn bytes_of(error: &ErrorData) -> Option<u64> {
    error.data.as_ref()?.get("bytes")?.as_u64()
}

/// A transport over a pair of byte streams.
pub(super) struct Lines<Read, Write> {
    read: BufReader<Read>,
    write: Arc<Mutex<Option<Write>>>,
    line: Vec<u8>,
    /// The scan of a line over the cap, until its end.
    oversized: Option<Envelope>,
    largest: usize,
    /// Cancelled when the peer closes its side.
    ended: CancellationToken,
}

impl<Read: AsyncRead + Unpin, Write> Lines<Read, Write> {
    /// A transport that takes in lines of up to `largest` bytes and cancels `ended` at the end.
    pub(super) fn new(read: Read, write: Write, largest: usize, ended: CancellationToken) -> Self {
        Lines {
            read: BufReader::with_capacity(64 << 10, read),
            write: Arc::new(Mutex::new(Some(write))),
            line: Vec::new(),
            oversized: None,
            largest,
            ended,
        }
    }

    /// Reads up to the end of a line, which is then in `self.line`; `Some` for one over the cap, `None`
    /// at the end of the stream. What has been read stays in `self` when the future is dropped.
    async fn next_line(&mut self) -> Option<Option<Envelope>> {
        loop {
            let available = match self.read.fill_buf().await {
                Ok(available) if !available.is_empty() => available,
                Ok(_) => return None,
                Err(problem) => {
                    tracing::warn!(%problem, "a peer's stream broke");
                    return None;
                }
            };
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |place| place + 1);
            let piece = &available[..taken];
            if let Some(scan) = &mut self.oversized {
                scan.feed(piece);
            } else if self.line.len() + taken > self.largest {
                let mut scan = Envelope::of(&self.line);
                scan.feed(piece);
                self.oversized = Some(scan);
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            self.read.consume(taken);
            if newline.is_some() {
                return Some(self.oversized.take());
            }
        }
    }
}

impl<Role, Read, Write> Transport<Role> for Lines<Read, Write>
where
    Role: ServiceRole,
    Read: AsyncRead + Unpin + Send,
    Write: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<Role>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<Role>> {
        loop {
            let Some(oversized) = self.next_line().await else {
                self.ended.cancel();
                return None;
            };
            let (envelope, problem) = match oversized {
                Some(envelope) => {
                    let bytes = envelope.bytes();
                    (envelope, Unreadable::Large(bytes))
                }
                None => {
                    let line = std::mem::take(&mut self.line);
                    match read_message::<Role>(&line) {
                        Ok(Some(message)) => return Some(message),
                        Ok(None) => continue,
                        Err(unreadable) => unreadable,
                    }
                }
            };
            // A response that cannot be read becomes an error response for the one who waits; a request
            // that cannot be read is answered with an error.
            let Some(id) = envelope.id() else { continue };
            tracing::warn!(%id, problem = %problem.error().message, "a message was not taken in");
            match (Role::IS_CLIENT, envelope.has_method()) {
                (true, false) => return Some(JsonRpcMessage::error(problem.error(), Some(id))),
                (false, true) => self.answer::<Role>(problem.error(), id),
                _ => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.take();
        Ok(())
    }
}

impl<Read, Write: AsyncWrite + Unpin + Send + 'static> Lines<Read, Write> {
    /// Answers a request that never reaches the service.
    fn answer<Role: ServiceRole>(&mut self, error: ErrorData, id: RequestId)
    where
        Read: AsyncRead + Unpin + Send,
    {
        let sending = Transport::<Role>::send(self, JsonRpcMessage::error(error, Some(id)));
        tokio::spawn(async move {
            if let Err(problem) = sending.await {
                tracing::debug!(%problem, "an error reply could not be sent");
            }
        });
    }
}

/// Decodes one line; `None` for what is to be passed over: empty lines, log lines that a server prints
/// where it should not, notifications of other protocols.
fn read_message<Role: ServiceRole>(line: &[u8]) -> Result<Option<RxJsonRpcMessage<Role>>, (Envelope, Unreadable)> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let problem = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(problem) => problem,
    };
    let envelope = Envelope::of(line);
    if envelope.id().is_none() {
        tracing::debug!("passed over a line that is no message");
        return Ok(None);
    }
    let depth = envelope.deepest();
    let unreadable = if depth > DEEPEST { Unreadable::Deep(depth) } else { Unreadable::Odd(problem.to_string()) };
    Err((envelope, unreadable))
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
