//! The HTTP+SSE transport of MCP 2024-11-05: the server sends everything on one event stream, whose first event names
//! the address to which messages are posted.
//!
//! The stream is unframed as it arrives and read as [`Lines`]. A message over the size limit is thus scanned and
//! dropped but never held, as with a process; an event parser would first buffer all of it.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt, try_unfold};
use memchr::{memchr, memchr2};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::server::secrets::Secrets;
use crate::server::transport::lines::{Lines, Outlet};

use super::http;
use super::problems::{self, NOT_ACCEPTED, Refused};

/// Timeout for a server to accept a message. The answer comes on the event stream.
const ACCEPTING: Duration = Duration::from_secs(30);
/// Maximum length of the address to post to, in bytes.
const LONGEST_ADDRESS: usize = 8 << 10;

/// The messages of an event stream, one per line.
pub(super) struct Messages {
    come: Vec<u8>,
    /// The number of bytes of `come` that have been read.
    read: usize,
    /// The rest of the stream.
    rest: BoxStream<'static, io::Result<Vec<u8>>>,
}

impl AsyncRead for Messages {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.read == self.come.len() {
            match ready!(self.rest.poll_next_unpin(context)) {
                Some(piece) => (self.come, self.read) = (piece?, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let end = self.come.len().min(self.read + buffer.remaining());
        buffer.put_slice(&self.come[self.read..end]);
        self.read = end;
        Poll::Ready(Ok(()))
    }
}

/// Opens the event stream at an address and waits for the event that names the address to post to.
///
/// # Errors
/// Returns the reason if there is no connection.
pub(super) async fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    largest: usize,
    ended: CancellationToken,
    secrets: &Secrets,
) -> Result<Lines<Messages, Posts>, String> {
    let client = http::client(url)?;
    let headers: HeaderMap = http::sent(headers)?;
    let request = client.get(url).headers(headers.clone()).header(ACCEPT, "text/event-stream");
    let mut response = request.send().await.map_err(|problem| problems::failed(&problem))?;
    if !response.status().is_success() {
        let (refused, _) = Refused::read(response).await;
        let advice = match refused.status {
            401 if headers.contains_key(AUTHORIZATION) => NOT_ACCEPTED,
            401 => "; put the token of the server into `headers`: {\"Authorization\": \"Bearer ${TOKEN}\"}",
            _ => "",
        };
        return Err(format!("{}{advice}", refused.describe(secrets)));
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
    if !kind.starts_with("text/event-stream") {
        return Err(format!("expected a stream of events (`text/event-stream`), got `{kind}`"));
    }
    let mut frames = Frames::default();
    let mut messages = Vec::new();
    let address = loop {
        match response.chunk().await {
            Ok(Some(piece)) => messages.append(&mut frames.feed(&piece)),
            Ok(None) => return Err("it closed the stream of events before it named an address to post to".into()),
            Err(problem) => return Err(problems::failed(&problem)),
        }
        if let Some(address) = frames.address.take() {
            break address;
        }
        if !messages.is_empty() {
            return Err("expected the event `endpoint` before any other".into());
        }
    };
    let places = Arc::new(Semaphore::new(http::MOST_REQUESTS));
    let posts = Posts { client, headers, url: resolved(response.url(), &address)?, places };
    let messages = Messages { come: messages, read: 0, rest: rest(response, frames) };
    Ok(Lines::between(messages, posts, largest, ended))
}

/// Resolves the address to post to, which must be of the same origin because our headers are sent there.
fn resolved(stream: &Url, address: &[u8]) -> Result<Url, String> {
    let address = address.trim_ascii();
    if address.is_empty() || address.len() > LONGEST_ADDRESS {
        return Err(format!("expected an address of 1 to {LONGEST_ADDRESS} bytes in the event `endpoint`"));
    }
    let address = std::str::from_utf8(address).ok().and_then(|address| stream.join(address).ok());
    let address = address.ok_or("the event `endpoint` has no address")?;
    if address.origin() != stream.origin() {
        let (here, there) = (stream.origin().ascii_serialization(), address.origin().ascii_serialization());
        return Err(format!("the event `endpoint` names an address at `{there}`; expected one at `{here}`"));
    }
    Ok(address)
}

/// Returns the messages on the rest of the stream.
fn rest(response: Response, frames: Frames) -> BoxStream<'static, io::Result<Vec<u8>>> {
    let next = |(mut response, mut frames): (Response, Frames)| async move {
        let piece = response.chunk().await.map_err(io::Error::other)?;
        Ok(piece.map(|piece| (frames.feed(&piece), (response, frames))))
    };
    try_unfold((response, frames), next).boxed()
}

/// Posts messages to the server.
#[derive(Clone)]
pub(super) struct Posts {
    client: Client,
    headers: HeaderMap,
    url: Url,
    places: Arc<Semaphore>,
}

impl Outlet for Posts {
    async fn write(self, line: Vec<u8>) -> io::Result<()> {
        let _place = self.places.acquire().await.map_err(io::Error::other)?;
        let request = self.client.post(self.url).headers(self.headers).header(CONTENT_TYPE, "application/json");
        let answer = request.timeout(ACCEPTING).body(line).send().await.map_err(http::unsent)?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(io::Error::other(Refused::read(answer).await.0)),
        }
    }

    async fn close(&self) {
        self.places.close();
    }
}

/// Extracts messages from the frames of events, however the stream is split into chunks.
#[derive(Default)]
struct Frames {
    field: Field,
    /// The field name of the current line, as far as it has arrived.
    name: Vec<u8>,
    /// The kind of the current event.
    event: Vec<u8>,
    /// True once the current event has data.
    has_data: bool,
    /// True at the beginning of a field value, where one space belongs to the frame.
    at_value: bool,
    /// True after a carriage return, which a line feed may follow.
    returned: bool,
    /// The data of an `endpoint` event.
    endpoint: Vec<u8>,
    /// The data of `endpoint` once its event is complete.
    address: Option<Vec<u8>>,
}

/// The current position in a line.
#[derive(Clone, Copy, Default, PartialEq)]
enum Field {
    #[default]
    Name,
    Data,
    Event,
    Other,
}

/// Maximum recorded length of a field name or event kind; all known ones are shorter.
const LONGEST_NAME: usize = 16;

impl Frames {
    /// Returns the messages in a chunk of the stream, each terminated by a line feed.
    fn feed(&mut self, mut piece: &[u8]) -> Vec<u8> {
        let mut messages = Vec::with_capacity(piece.len());
        while let Some(first) = piece.first() {
            if std::mem::take(&mut self.returned) && *first == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', piece) else {
                self.part(piece, &mut messages);
                break;
            };
            self.part(&piece[..end], &mut messages);
            self.end_of_line(&mut messages);
            self.returned = piece[end] == b'\r';
            piece = &piece[end + 1..];
        }
        messages
    }

    /// Processes a part of a line, without its end.
    fn part(&mut self, part: &[u8], messages: &mut Vec<u8>) {
        let mut value = part;
        if self.field == Field::Name {
            let colon = memchr(b':', part);
            let name = &part[..colon.unwrap_or(part.len())];
            let room = LONGEST_NAME.saturating_sub(self.name.len());
            self.name.extend_from_slice(&name[..name.len().min(room)]);
            let Some(colon) = colon else { return };
            value = &part[colon + 1..];
            self.begin_value(messages);
        }
        if !value.is_empty() && std::mem::take(&mut self.at_value) {
            value = value.strip_prefix(b" ").unwrap_or(value);
        }
        match self.field {
            Field::Data => match self.event.as_slice() {
                b"" | b"message" => messages.extend_from_slice(value),
                b"endpoint" => {
                    // One byte more than is allowed shows that the address is too long.
                    let room = (LONGEST_ADDRESS + 1).saturating_sub(self.endpoint.len());
                    self.endpoint.extend_from_slice(&value[..value.len().min(room)]);
                }
                _ => {}
            },
            Field::Event if self.event.len() + value.len() <= LONGEST_NAME => self.event.extend_from_slice(value),
            // An unknown kind. It must not become empty, which would mean `message`.
            Field::Event => self.event = b"?".to_vec(),
            Field::Name | Field::Other => {}
        }
    }

    fn begin_value(&mut self, messages: &mut Vec<u8>) {
        self.at_value = true;
        self.field = match self.name.as_slice() {
            // Several lines of data are one message: between tokens of JSON a space is equivalent to a line feed.
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) && self.is_message() {
                    messages.push(b' ');
                }
                Field::Data
            }
            b"event" => {
                self.event.clear();
                Field::Event
            }
            _ => Field::Other,
        };
    }

    fn is_message(&self) -> bool {
        matches!(self.event.as_slice(), b"" | b"message")
    }

    fn end_of_line(&mut self, messages: &mut Vec<u8>) {
        // An empty line ends the event. A comment line has a colon.
        if self.field == Field::Name && self.name.is_empty() {
            if self.has_data && self.is_message() {
                messages.push(b'\n');
            }
            if self.event == b"endpoint" {
                self.address = Some(std::mem::take(&mut self.endpoint));
            }
            self.event.clear();
            self.has_data = false;
        }
        self.field = Field::Name;
        self.name.clear();
        self.at_value = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages and the address extracted from a text, the same in one piece and byte by byte.
    fn taken_out(text: &str) -> (String, Option<String>) {
        let words = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let mut frames = Frames::default();
        let whole = (words(frames.feed(text.as_bytes())), frames.address.map(words));
        let mut frames = Frames::default();
        let pieces: Vec<u8> = text.bytes().flat_map(|byte| frames.feed(&[byte])).collect();
        assert_eq!((words(pieces), frames.address.map(words)), whole, "{text:?}");
        whole
    }

    #[test]
    fn events_become_lines() {
        let cases = [
            ("event: message\ndata: {\"a\": 1}\n\n", "{\"a\": 1}\n"),
            ("data:{}\r\n\r\n: a comment\r\n\r\ndata: []\r\n\r\n", "{}\n[]\n"),
            ("data: {\ndata: \"a\":1}\n\n", "{ \"a\":1}\n"),
            ("data: {}\rdata\rid: 4\rretry: 5\r\r", "{}\n"),
            ("event: ping\ndata: {}\n\ndata: {\"b\": \"x: y\"}\n\n", "{\"b\": \"x: y\"}\n"),
            ("event: a-kind-that-is-far-too-long\ndata: {}\n\n", ""),
            ("datadatadatadatadata: {}\n\n", ""),
            ("data: {\"cut\": 1}\n", "{\"cut\": 1}"),
        ];
        for (text, expected) in cases {
            assert_eq!(taken_out(text), (expected.to_owned(), None), "{text:?}");
        }
        let begin = "event: endpoint\ndata: /post?id=1\n\nevent: message\ndata: {}\n\n";
        assert_eq!(taken_out(begin), ("{}\n".to_owned(), Some("/post?id=1".to_owned())));
    }

    #[test]
    fn messages_are_posted_to_the_origin_of_the_stream_only() {
        let stream = Url::parse("https://example.org:8443/mcp/sse").expect("an address");
        let resolved = |address: &str| resolved(&stream, address.as_bytes()).map(|url| url.to_string());
        assert_eq!(resolved("/post?id=1").as_deref(), Ok("https://example.org:8443/post?id=1"));
        assert_eq!(resolved("post").as_deref(), Ok("https://example.org:8443/mcp/post"));
        for other in ["http://example.org:8443/post", "https://example.org/post", "//evil.example/post", "file:///post"]
        {
            let problem = resolved(other).expect_err(other);
            assert!(problem.ends_with("expected one at `https://example.org:8443`"), "{problem}");
        }
        assert!(resolved("http://[").is_err());
        for wrong in ["", " ", &"a".repeat(LONGEST_ADDRESS + 1)] {
            assert!(resolved(wrong).expect_err("no address").starts_with("expected an address of 1 to 8192 bytes"));
        }
        let long = format!("event: endpoint\ndata: /{}\n\n", "a".repeat(2 * LONGEST_ADDRESS));
        let (_, address) = taken_out(&long);
        assert!(resolved(&address.expect("an address")).is_err(), "it is not cut");
    }
}
