//! Messages on the pipe between a server and its worker, and their framing.
//!
//! A frame is its length in eight bytes, little-endian, followed by a message in the `postcard` format. Tool calls are
//! sent as the texts that a [`Host`](crate::lang::Host) handles anyway.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lang::{
    self, CallId, Catalogue, Decision, Failure, Found, Limits, Plan, Reply, Server, Tool, ToolCall, ToolError,
    ToolHints, ToolReply,
};

/// Size of the length prefix of a frame, in bytes.
const HEAD: usize = 8;

/// Maximum size by which the buffer grows at once before the data of a frame has arrived, in bytes.
const PIECE: usize = 256 << 10;

/// A message to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Instruction {
    /// Replace the environment by the one that this text describes.
    Restore(String),
    /// Run a program.
    Evaluate {
        program: String,
        data: Option<String>,
        limits: Limits,
        name: String,
        servers: Vec<Server>,
        /// The place at which the program is resumed, as JSON.
        from: Option<String>,
        /// True if the text of the session is reported even if no definition has changed.
        is_exact: bool,
    },
    /// Bind a name to the value of a JSON text.
    Bind { name: String, text: String },
    /// Describe the environment.
    Describe { query: Option<String>, servers: Vec<Server> },
    /// Compute the plan of a program to which these names are bound.
    Plan { program: String, inputs: Vec<String>, limits: Limits, name: String, servers: Vec<Server> },
    /// The answer to the question of that number, with the number of bytes that the server keeps for the evaluation.
    Answer(u32, Answer, u64),
    /// Cancel the running program.
    Cancel,
}

/// A message from a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// It is confined, by these means, and waits for instructions.
    Ready { version: String, walls: Vec<String> },
    /// It cannot be confined, for this reason, and exits.
    Unconfined(String),
    /// A program asks its host a question.
    Ask(u32, Question),
    /// The program no longer waits for the reply to this call.
    GiveUp(CallId),
    /// A top-level form of a program begins.
    Form(u32),
    /// A program printed something.
    Print(String),
    /// A program named a tool that may not be called.
    Refused { server: String, tool: String },
    /// An instruction has been carried out.
    Done(Done),
    /// The state of the session after that instruction.
    Kept(Kept),
}

/// The outcome of an instruction.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Done {
    /// The reply as JSON.
    Evaluated(String),
    Described(String),
    /// The plan, or else the failure of the program, as JSON.
    Planned(Result<String, String>),
    /// For `Bind` and `Restore`; an error describes what is wrong with the text.
    Taken(Result<(), String>),
}

/// The state of a session as the server knows it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub names: Vec<String>,
    pub live_bytes: u64,
    /// The environment as text, if it has changed; or why it could not be serialized.
    pub text: Option<Result<String, String>>,
}

/// Maximum size of the text of a session after an instruction with these limits, in bytes.
pub(super) fn largest_text(limits: &Limits) -> u64 {
    limits.session.saturating_mul(8).saturating_add(limits.memory)
}

/// A question of a program to its host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    Call(ToolCall),
    Decide(Vec<lang::Question>),
    Tools(String),
    ToolsAnew(String),
    Instructions(String),
    Denied(String),
    Catalogue,
    Search { query: String, most: usize },
    Now,
    Random,
    Fork,
    Close,
    Runs(Option<String>),
}

/// The answer of the host to a question.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The reply to a call, and a note about how it was made.
    Called {
        reply: ToolReply,
        note: Option<String>,
        /// True if an earlier attempt of the run made the call.
        is_old: bool,
    },
    Decided(Vec<Decision>),
    Tools(Result<Vec<Described>, ToolError>),
    ToolsAnew(Option<Vec<Described>>),
    Instructions(Option<String>),
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
    Runs(Result<String, String>),
}

/// A [`Tool`] with its schemas as text.
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
    /// Encodes a catalogue for the pipe.
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
    /// Encodes a reply for the pipe.
    pub(super) fn evaluated(reply: &Reply) -> Done {
        Done::Evaluated(serde_json::to_string(reply).unwrap_or_default())
    }

    /// Encodes a plan for the pipe, or the failure of its program.
    pub(super) fn planned(planned: Result<Plan, Box<Failure>>) -> Done {
        Done::Planned(match planned {
            Ok(plan) => Ok(serde_json::to_string(&plan).unwrap_or_default()),
            Err(failure) => Err(serde_json::to_string(&failure).unwrap_or_default()),
        })
    }
}

/// Writes a message as one frame.
pub(super) fn send(mut stream: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut frame = postcard::to_extend(message, vec![0; HEAD]).map_err(io::Error::other)?;
    let length = (frame.len() - HEAD) as u64;
    frame[..HEAD].copy_from_slice(&length.to_le_bytes());
    stream.write_all(&frame)
}

/// Waits for one message and reads it; `None` at the end of the stream.
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

/// Reads the messages of a worker, which may be slow, silent or hostile.
pub(super) struct Reports {
    stream: UnixStream,
    /// The received bytes of the current frame.
    come: Vec<u8>,
}

impl Reports {
    pub(super) fn new(stream: UnixStream) -> Reports {
        Reports { stream, come: Vec::new() }
    }

    /// Returns the next message; `None` if it does not arrive within `wait`. A frame of more than `most` bytes is an
    /// error, and so is the end of the stream.
    pub(super) fn next(&mut self, wait: Duration, most: u64) -> io::Result<Option<Report>> {
        let until = Instant::now() + wait;
        loop {
            let missing = match self.come.first_chunk::<HEAD>() {
                None => HEAD - self.come.len(),
                Some(head) => {
                    let length = u64::from_le_bytes(*head);
                    if length > most {
                        let problem = format!("got a frame of {length} bytes; at most {most} are allowed");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                    }
                    // Never reads beyond the current frame.
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

    /// Decodes the complete frame in the buffer.
    fn take(&mut self) -> io::Result<Report> {
        let message = postcard::from_bytes(&self.come[HEAD..]).map_err(io::Error::other);
        self.come.clear();
        if self.come.capacity() > 4 * PIECE {
            self.come = Vec::new();
        }
        message
    }

    /// Reads some of the missing bytes; returns false if none arrived in time.
    fn read(&mut self, missing: usize, wait: Duration) -> io::Result<bool> {
        // The system rounds to its own ticks, and takes zero as no timeout.
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
mod tests;
