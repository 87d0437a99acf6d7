//! The worker side: one session, instructions from a pipe, nothing else.
//!
//! The first thread reads the pipe and never runs a program, so that answers and cancellations arrive while one runs.
//! Programs run on a second thread, in the order of their arrival. The end of the pipe ends the process, whatever it
//! is doing.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lang::{
    Audience, CallId, Catalogue, Decision, Engine, Found, Host, Limits, Request, Server, Session, Status, Tool,
    ToolCall, ToolError, ToolReply,
};

use super::lock;
use super::wire::{self, Answer, Described, Done, Instruction, Kept, Question, Report, receive, send};

/// Runs a worker process. The program that starts workers calls this first, in a process whose standard input is the
/// pipe. Returns at the end of the pipe.
///
/// # Errors
/// Returns an error if the process cannot be confined, its engine cannot be built, or the pipe breaks.
///
/// ```no_run
/// if std::env::args().nth(1).as_deref() == Some("worker") {
///     lispbox::worker::run().expect("the worker is confined and has a pipe");
///     return;
/// }
/// ```
pub fn run() -> io::Result<()> {
    super::confine::close_descriptors();
    let pipe = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let link = Arc::new(Link::new(pipe.try_clone()?));
    let walls = match super::confine::confine() {
        Ok(walls) => walls,
        Err(problem) => {
            link.report(&Report::Unconfined(problem.clone()))?;
            return Err(io::Error::other(problem));
        }
    };
    let engine = Engine::builder().build().map_err(io::Error::other)?;
    let (instructions, programs) = channel();
    let spoken = Arc::clone(&link);
    std::thread::Builder::new().name("programs".to_string()).spawn(move || carry_out(&engine, &programs, &spoken))?;
    link.report(&Report::Ready { version: super::VERSION.to_string(), walls })?;
    while let Some(instruction) = receive::<Instruction>(&pipe)? {
        match instruction {
            Instruction::Answer(number, answer, held) => {
                link.held.store(held, Ordering::Relaxed);
                link.answered(number, answer);
            }
            Instruction::Cancel => link.cancelled.store(true, Ordering::Relaxed),
            instruction => {
                link.cancelled.store(false, Ordering::Relaxed);
                if instructions.send(instruction).is_err() {
                    return Err(io::Error::other("the thread that runs programs has ended"));
                }
            }
        }
    }
    Ok(())
}

/// Carries out the instructions in sequence.
fn carry_out(engine: &Arc<Engine>, instructions: &Receiver<Instruction>, link: &Arc<Link>) {
    let mut session = engine.session();
    // The version of the session that the server has.
    let mut known = session.changes();
    while let Ok(instruction) = instructions.recv() {
        let largest = match &instruction {
            Instruction::Evaluate { limits, .. } | Instruction::Plan { limits, .. } => wire::largest_text(limits),
            _ => wire::largest_text(&Limits::default()),
        };
        // The session keeps the data of a run that waits, which is not a change of a definition.
        let mut is_reported = false;
        let done = match instruction {
            Instruction::Restore(text) => {
                let taken = session.decode(&text).map_err(|error| error.to_string());
                known = session.changes();
                Done::Taken(taken)
            }
            Instruction::Evaluate { program, data, limits, name, servers, from, is_exact } => {
                let from = from.and_then(|mark| serde_json::from_str(&mark).ok());
                is_reported = from.is_some() || is_exact;
                let request = Request { program, data, limits, name: Some(name), from };
                let reply = session.eval(request, link.host(servers));
                is_reported |= reply.status == Status::Suspended;
                Done::evaluated(&reply)
            }
            Instruction::Bind { name, text } => Done::Taken(session.bind(&name, &text, link.host(Vec::new()))),
            Instruction::Describe { query, servers } => {
                Done::Described(session.describe(query.as_deref(), link.host(servers)))
            }
            Instruction::Plan { program, inputs, limits, name, servers } => {
                let request = Request { limits, name: Some(name), ..Request::new(program) };
                Done::planned(session.plan(&request, &inputs, link.host(servers)))
            }
            // The first thread handles these.
            Instruction::Answer(..) | Instruction::Cancel => continue,
        };
        // If the server has gone, it needs no reports; the first thread sees the end of the pipe.
        let _ = link.report(&Report::Done(done));
        let text = (is_reported || session.changes() != known).then(|| {
            let text = session.encode().map_err(|error| error.to_string())?;
            match text.len() as u64 {
                bytes if bytes > largest => Err(format!("it has {bytes} bytes as text; at most {largest} are allowed")),
                _ => Ok(text),
            }
        });
        // A session that could not be serialized is retried after the next instruction.
        if !matches!(text, Some(Err(_))) {
            known = session.changes();
        }
        let _ = link.report(&Report::Kept(kept(&session, text)));
    }
}

fn kept(session: &Session, text: Option<Result<String, String>>) -> Kept {
    Kept { names: session.names(), live_bytes: session.live_bytes(), text }
}

/// The worker's end of the pipe.
struct Link {
    pipe: Mutex<File>,
    /// The channels on which threads wait for answers, by question number.
    waiting: Mutex<HashMap<u32, Sender<Answer>>>,
    asked: AtomicU32,
    cancelled: AtomicBool,
    /// The number of bytes that the server keeps for the evaluation.
    held: AtomicU64,
}

impl Link {
    fn new(pipe: File) -> Link {
        Link {
            pipe: Mutex::new(pipe),
            waiting: Mutex::default(),
            asked: AtomicU32::new(0),
            cancelled: AtomicBool::new(false),
            held: AtomicU64::new(0),
        }
    }

    fn host(self: &Arc<Self>, servers: Vec<Server>) -> Arc<dyn Host> {
        self.held.store(0, Ordering::Relaxed);
        Arc::new(PipeHost {
            link: Arc::clone(self),
            servers,
            listed: Mutex::default(),
            old: Mutex::default(),
            notes: Mutex::default(),
            begun: Instant::now(),
        })
    }

    fn report(&self, report: &Report) -> io::Result<()> {
        send(&*lock(&self.pipe), report)
    }

    /// Asks the server and waits for its answer; `None` if the server has gone.
    fn ask(&self, question: Question) -> Option<Answer> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = channel();
        lock(&self.waiting).insert(number, answer);
        self.report(&Report::Ask(number, question)).ok()?;
        answered.recv().ok()
    }

    fn answered(&self, number: u32, answer: Answer) {
        if let Some(waiting) = lock(&self.waiting).remove(&number) {
            // The thread that asked waits until it is answered.
            let _ = waiting.send(answer);
        }
    }
}

/// The proxy of the [`Host`] at the other end of the pipe, for one evaluation.
struct PipeHost {
    link: Arc<Link>,
    servers: Vec<Server>,
    listed: Mutex<Listed>,
    /// Answered calls that an earlier attempt of the run made.
    old: Mutex<HashSet<CallId>>,
    /// Notes about answered calls, by call.
    notes: Mutex<HashMap<CallId, String>>,
    begun: Instant,
}

/// The tools that the server has listed during this evaluation.
#[derive(Default)]
struct Listed {
    catalogue: Option<Catalogue>,
    tools: HashMap<String, Vec<Arc<Tool>>>,
}

/// The error for an answer of the wrong kind, or a missing one.
fn lost() -> ToolError {
    ToolError::unavailable("the answer was lost")
}

fn taken(tools: Vec<Described>) -> Vec<Arc<Tool>> {
    tools.into_iter().map(Arc::from).collect()
}

impl Host for PipeHost {
    fn audience(&self) -> Audience {
        Audience::User
    }

    fn servers(&self) -> Vec<Server> {
        self.servers.clone()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        if let Some(tools) = lock(&self.listed).tools.get(server) {
            return Ok(tools.clone());
        }
        let Some(Answer::Tools(answer)) = self.link.ask(Question::Tools(server.to_string())) else {
            return Err(lost());
        };
        let tools = taken(answer?);
        lock(&self.listed).tools.insert(server.to_string(), tools.clone());
        Ok(tools)
    }

    fn tools_anew(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        let Some(Answer::ToolsAnew(Some(answer))) = self.link.ask(Question::ToolsAnew(server.to_string())) else {
            return None;
        };
        let tools = taken(answer);
        lock(&self.listed).tools.insert(server.to_string(), tools.clone());
        Some(tools)
    }

    fn instructions(&self, server: &str) -> Option<String> {
        match self.link.ask(Question::Instructions(server.to_string())) {
            Some(Answer::Instructions(instructions)) => instructions,
            _ => None,
        }
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        match self.link.ask(Question::Denied(server.to_string())) {
            Some(Answer::Denied(denied)) => denied,
            _ => Vec::new(),
        }
    }

    fn refused(&self, server: &str, tool: &str) {
        // If the server has gone, it keeps no records.
        let _ = self.link.report(&Report::Refused { server: server.to_string(), tool: tool.to_string() });
    }

    fn catalogue(&self) -> Catalogue {
        if let Some(catalogue) = &lock(&self.listed).catalogue {
            return catalogue.clone();
        }
        let Some(Answer::Catalogue { tools, missing }) = self.link.ask(Question::Catalogue) else {
            return Catalogue::default();
        };
        let catalogue = Catalogue { tools: taken(tools), missing };
        // A server that did not answer may do so the next time.
        if catalogue.missing.is_empty() {
            lock(&self.listed).catalogue = Some(catalogue.clone());
        }
        catalogue
    }

    fn search(&self, query: &str, most: usize) -> Found {
        match self.link.ask(Question::Search { query: query.to_string(), most }) {
            Some(Answer::Found { tools, more, searched, missing }) => {
                let tools = tools.into_iter().map(|(tool, score)| (Arc::from(tool), score)).collect();
                Found { tools, more, searched, missing }
            }
            _ => Found::default(),
        }
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        let id = call.id.clone();
        match self.link.ask(Question::Call(call)) {
            Some(Answer::Called { reply, note, is_old }) => {
                if is_old {
                    lock(&self.old).insert(id.clone());
                }
                note.into_iter().for_each(|note| _ = lock(&self.notes).insert(id.clone(), note));
                reply
            }
            _ => ToolReply::Error(lost()),
        }
    }

    fn decide(&self, questions: &[crate::lang::Question]) -> Vec<Decision> {
        match self.link.ask(Question::Decide(questions.to_vec())) {
            Some(Answer::Decided(decisions)) => decisions,
            _ => Vec::new(),
        }
    }

    fn begin_form(&self, form: u32) {
        // If the server has gone, it keeps no log.
        let _ = self.link.report(&Report::Form(form));
    }

    fn was_made_before(&self, call: &CallId) -> bool {
        lock(&self.old).remove(call)
    }

    fn note(&self, call: &CallId) -> Option<String> {
        lock(&self.notes).remove(call)
    }

    fn give_up(&self, call: &CallId) {
        // If the server has gone, it makes no calls.
        let _ = self.link.report(&Report::GiveUp(call.clone()));
    }

    fn print(&self, text: &str) {
        // If the server has gone, it reads no output.
        let _ = self.link.report(&Report::Print(text.to_string()));
    }

    fn now_millis(&self) -> i64 {
        match self.link.ask(Question::Now) {
            Some(Answer::Now(millis)) => millis,
            _ => 0,
        }
    }

    fn random(&self) -> u64 {
        match self.link.ask(Question::Random) {
            Some(Answer::Random(bits)) => bits,
            _ => 0,
        }
    }

    fn fork_session(&self) -> Result<String, String> {
        match self.link.ask(Question::Fork) {
            Some(Answer::Forked(answer)) => answer,
            _ => Err(lost().message),
        }
    }

    fn close_session(&self) -> Result<(), String> {
        match self.link.ask(Question::Close) {
            Some(Answer::Closed(answer)) => answer,
            _ => Err(lost().message),
        }
    }

    fn runs(&self, run: Option<&str>) -> Result<String, String> {
        match self.link.ask(Question::Runs(run.map(str::to_owned))) {
            Some(Answer::Runs(answer)) => answer,
            _ => Err(lost().message),
        }
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    fn processor_time(&self) -> Option<Duration> {
        super::processor::processor_time()
    }

    fn held(&self) -> u64 {
        self.link.held.load(Ordering::Relaxed)
    }

    fn cancelled(&self) -> bool {
        self.link.cancelled.load(Ordering::Relaxed)
    }
}
