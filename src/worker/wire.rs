//! What goes over the pipe between a server and its worker, and how it is framed.
//!
//! A frame is its length in eight bytes, the smallest first, and a message in the format of `postcard`.
//! Tool calls cross as the texts that they are for a [`Host`](crate::lang::Host) anyway.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lang::{CallId, Catalogue, Found, Limits, Reply, Server, Tool, ToolCall, ToolError, ToolHints, ToolReply};

/// Bytes of a frame's length.
const HEAD: usize = 8;

/// How much of a frame is made room for before it has come.
const PIECE: usize = 256 << 10;

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Take up the environment that this text describes, instead of the one there is.
    Restore(String),
    /// Run a program.
    Evaluate { program: String, data: Option<String>, limits: Limits, name: String, servers: Vec<Server> },
    /// Bind a name to what JSON text says.
    Bind { name: String, text: String },
    /// Answer a question about what there is.
    Describe { query: Option<String>, servers: Vec<Server> },
    /// The answer to the question of that number.
    Answer(u32, Answer),
    /// Stop what runs.
    Cancel,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// It is confined, by these means, and waits for orders.
    Ready { version: String, walls: Vec<String> },
    /// It cannot be confined, for this reason, and ends.
    Unconfined(String),
    /// A program asks something of its host.
    Ask(u32, Question),
    /// Nobody waits for the reply to this call any more.
    GiveUp(CallId),
    /// A program printed something.
    Print(String),
    /// A program named a tool that may not be called.
    Refused { server: String, tool: String },
    /// An order has been carried out.
    Done(Done),
    /// What the session is after that, when it has changed.
    Kept(Kept),
}

/// What an order came to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Done {
    /// The reply's record as JSON, and how its failure is rendered.
    Evaluated {
        record: String,
        rendered: Option<String>,
    },
    Described(String),
    /// Of `Bind` and `Restore`; an error says what is wrong with the text.
    Taken(Result<(), String>),
}

/// A session as the server knows it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub names: Vec<String>,
    pub live_bytes: u64,
    /// The environment as text, if it is another than before; or why it could not be written.
    pub text: Option<Result<String, String>>,
}

/// The most bytes that the text of a session may have behind an order with these limits.
pub(super) fn largest_text(limits: &Limits) -> u64 {
    limits.session.saturating_mul(8).saturating_add(limits.memory)
}

/// What a program asks of its host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    Call(ToolCall),
    Tools(String),
    Denied(String),
    Catalogue,
    Search { query: String, most: usize },
    Now,
    Random,
    Fork,
    Close,
}

/// What the host says to it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The reply to a call, and what there is to say about how it was made.
    Called(ToolReply, Option<String>),
    Tools(Result<Vec<Described>, ToolError>),
    Denied(Vec<(String, String)>),
    Catalogue {
        tools: Vec<Described>,
        missing: Vec<(String, String)>,
    },
    Found {
        tools: Vec<(Described, f64)>,
        more: usize,
        searched: usize,
        missing: Vec<(String, String)>,
    },
    Now(i64),
    Random(u64),
    Forked(Result<String, String>),
    Closed(Result<(), String>),
}

/// A [`Tool`], its schemas as text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Described {
    server: String,
    name: String,
    description: String,
    input_schema: String,
    output_schema: Option<String>,
    hints: ToolHints,
    seen: Option<String>,
}

impl From<&Arc<Tool>> for Described {
    fn from(tool: &Arc<Tool>) -> Described {
        Described {
            server: tool.server.clone(),
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.to_string(),
            output_schema: tool.output_schema.as_ref().map(serde_json::Value::to_string),
            hints: tool.hints,
            seen: tool.seen.as_ref().map(serde_json::Value::to_string),
        }
    }
}

impl From<Described> for Arc<Tool> {
    fn from(tool: Described) -> Arc<Tool> {
        let read = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Arc::new(Tool {
            server: tool.server,
            name: tool.name,
            description: tool.description,
            input_schema: read(&tool.input_schema),
            output_schema: tool.output_schema.as_deref().map(read),
            hints: tool.hints,
            seen: tool.seen.as_deref().map(read),
        })
    }
}

impl Answer {
    /// All tools, as they cross the pipe.
    pub(super) fn catalogue(catalogue: Catalogue) -> Answer {
        let Catalogue { tools, missing } = catalogue;
        Answer::Catalogue { tools: tools.iter().map(Described::from).collect(), missing }
    }
}

impl From<Found> for Answer {
    fn from(found: Found) -> Answer {
        let Found { tools, more, searched, missing } = found;
        let tools = tools.iter().map(|(tool, score)| (Described::from(tool), *score)).collect();
        Answer::Found { tools, more, searched, missing }
    }
}

impl Done {
    /// A reply as it crosses the pipe.
    pub(super) fn evaluated(reply: &Reply) -> Done {
        let rendered = reply.failure.as_ref().map(|failure| failure.rendered.clone());
        Done::Evaluated { record: serde_json::to_string(reply).unwrap_or_default(), rendered }
    }
}

/// The reply behind its record; `None` if the record is none.
pub(super) fn reply(record: &str, rendered: Option<String>) -> Option<Reply> {
    let mut reply: Reply = serde_json::from_str(record).ok()?;
    if let (Some(failure), Some(rendered)) = (&mut reply.failure, rendered) {
        failure.rendered = rendered;
    }
    Some(reply)
}

/// Writes a message as one frame.
pub(super) fn send(mut stream: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut frame = postcard::to_extend(message, vec![0; HEAD]).map_err(io::Error::other)?;
    let length = (frame.len() - HEAD) as u64;
    frame[..HEAD].copy_from_slice(&length.to_le_bytes());
    stream.write_all(&frame)
}

/// Reads one message and waits for it; `None` at the end of the stream.
pub(super) fn receive<M: DeserializeOwned>(mut stream: impl Read) -> io::Result<Option<M>> {
    let mut head = [0; HEAD];
    match stream.read_exact(&mut head) {
        Err(problem) if problem.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut body = vec![0; usize::try_from(u64::from_le_bytes(head)).map_err(io::Error::other)?];
    stream.read_exact(&mut body)?;
    postcard::from_bytes(&body).map(Some).map_err(io::Error::other)
}

/// Reads the messages of a worker, who may be slow, silent or hostile.
pub(super) struct Reports {
    stream: UnixStream,
    /// What has come of the next frames.
    come: Vec<u8>,
}

impl Reports {
    pub(super) fn new(stream: UnixStream) -> Reports {
        Reports { stream, come: Vec::new() }
    }

    /// The next message; `None` if it is not there after `wait`. A frame of more than `most` bytes is an
    /// error, and so is the end of the stream.
    pub(super) fn next(&mut self, wait: Duration, most: u64) -> io::Result<Option<Report>> {
        let until = Instant::now() + wait;
        loop {
            let missing = match self.come.first_chunk::<HEAD>() {
                None => HEAD - self.come.len(),
                Some(head) => {
                    let length = u64::from_le_bytes(*head);
                    if length > most {
                        let problem = format!("a frame of {length} bytes came, and at most {most} may");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                    }
                    // Never is more read than one frame.
                    HEAD + length as usize - self.come.len()
                }
            };
            if missing == 0 {
                return self.take().map(Some);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if !self.read(missing, left)? {
                return Ok(None);
            }
        }
    }

    /// Takes the whole frame that is there.
    fn take(&mut self) -> io::Result<Report> {
        let message = postcard::from_bytes(&self.come[HEAD..]).map_err(io::Error::other);
        self.come.clear();
        if self.come.capacity() > 4 * PIECE {
            self.come = Vec::new();
        }
        message
    }

    /// Reads some of what is missing; false if nothing came in time.
    fn read(&mut self, missing: usize, wait: Duration) -> io::Result<bool> {
        // The system rounds to its own ticks, and takes zero for ever.
        self.stream.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        let begun = self.come.len();
        self.come.resize(begun + missing.min(PIECE), 0);
        let read = self.stream.read(&mut self.come[begun..]);
        self.come.truncate(begun + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(problem) => match problem.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(false),
                io::ErrorKind::Interrupted => Ok(true),
                _ => Err(problem),
            },
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
