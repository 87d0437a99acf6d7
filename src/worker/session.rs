//! A session whose programs run in a worker process, used like an in-process session.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::lang::internal::NoHost;
use crate::lang::{
    CallId, CallRecord, Environment, Failure, Host, Limits, Plan, Reply, Request, Sandbox, Spent, Stacks, Status,
    ToolCall, ToolError, ToolReply,
};

use super::failure::{Unwritten, WorkerFailure, nonsense};
use super::lock;
use super::pool::{WorkerSlot, Workers};
use super::process::Worker;
use super::wire::{self, Answer, Described, Done, Instruction, Kept, Question, Report};

/// Polling interval for the clock, the memory and the cancellation by the host.
const TICK: Duration = Duration::from_millis(20);

/// Grace period beyond the time limits that a worker enforces itself.
const GRACE: Duration = Duration::from_secs(1);

/// Timeout for a worker to write or read the text of a session.
const WRITING: Duration = Duration::from_secs(60);

/// Maximum size of a report about a session, besides its text, in bytes.
const BESIDE_TEXT: u64 = 16 << 20;

/// Memory of a worker that is not a program's data, in bytes: code, tables, allocator reserves.
const OWN_MEMORY: u64 = 96 << 20;

/// A session in a worker process.
pub struct WorkerSession {
    workers: Arc<Workers>,
    slot: Arc<WorkerSlot>,
    /// The session as of its last evaluation; `None` while nothing is defined.
    text: Option<String>,
    names: Vec<String>,
    live_bytes: u64,
    /// The number of changes of the text.
    changes: u64,
    /// The names and the size of the session that the text describes.
    of_text: (Vec<String>, u64),
    /// True if the worker reports the text after each evaluation.
    is_exact: bool,
    /// Set if the worker's session could not be serialized: its changes exist only in the worker and are lost with it.
    unwritten: Option<Unwritten>,
    programs: u32,
}

impl WorkerSession {
    pub(super) fn new(workers: Arc<Workers>) -> WorkerSession {
        WorkerSession {
            workers,
            slot: Arc::default(),
            text: None,
            names: Vec::new(),
            live_bytes: 0,
            changes: 0,
            of_text: (Vec::new(), 0),
            is_exact: false,
            unwritten: None,
            programs: 0,
        }
    }

    /// Returns the session as text, as of its last evaluation; `None` while nothing is defined.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Reverts the session to its text after the loss of its worker. Returns the changes that only the worker had.
    fn fall_back(&mut self) -> Option<Unwritten> {
        let unwritten = self.unwritten.take()?;
        (self.names, self.live_bytes) = self.of_text.clone();
        self.changes += 1;
        Some(unwritten)
    }

    /// Returns the session's worker, or a fresh one that has loaded the session.
    fn worker(&mut self, host: &Arc<dyn Host>) -> Result<Worker, WorkerFailure> {
        let own = lock(&self.slot).take();
        if let Some(worker) = own.and_then(Worker::if_alive) {
            return Ok(worker);
        }
        if let Some(unwritten) = self.fall_back() {
            return Err(WorkerFailure::Between(unwritten));
        }
        // A single spare worker may have died; if the next ones fail too, that is not an accident.
        let taken = self.fresh_worker(host);
        match taken {
            Err(WorkerFailure::Broken(_)) => self.fresh_worker(host).or_else(|_| self.fresh_worker(host)),
            taken => taken,
        }
    }

    /// Returns a fresh worker that has loaded the session.
    fn fresh_worker(&self, host: &Arc<dyn Host>) -> Result<Worker, WorkerFailure> {
        match &self.text {
            Some(text) => self.worker_with(text, host).map(|(worker, _)| worker),
            None => self.workers.take().map_err(WorkerFailure::Unavailable),
        }
    }

    /// Returns a fresh worker that has loaded the session that a text describes, and its report of that session.
    fn worker_with(&self, text: &str, host: &Arc<dyn Host>) -> Result<(Worker, Kept), WorkerFailure> {
        let mut worker = self.workers.take().map_err(WorkerFailure::Unavailable)?;
        let limits = Limits { memory: text.len() as u64 * 8, ..Limits::default() };
        let mut conversation = Conversation::begin(&mut worker, Arc::clone(host), &limits, WRITING);
        conversation.worker.instructions.give(&Instruction::Restore(text.to_string()));
        match conversation.carry_out()? {
            (Done::Taken(Err(problem)), _) => Err(WorkerFailure::Unreadable(problem)),
            (_, kept) => Ok((worker, kept)),
        }
    }

    /// Has the worker carry out an instruction, and records the resulting state of the session.
    fn instruction(
        &mut self,
        instruction: &Instruction,
        host: &Arc<dyn Host>,
        limits: &Limits,
    ) -> Result<Done, (WorkerFailure, Costs)> {
        let mut is_first_try = true;
        loop {
            let mut worker = self.worker(host).map_err(|lost| (lost, Costs::default()))?;
            let mut conversation = Conversation::begin(&mut worker, Arc::clone(host), limits, limits.compute);
            conversation.worker.instructions.give(instruction);
            let outcome = conversation.carry_out();
            let has_begun = conversation.has_begun();
            let costs = conversation.costs();
            match outcome {
                Ok((done, kept)) => {
                    self.rest(worker, kept);
                    return Ok(done);
                }
                // The worker died before it began with the instruction, so a retry is safe.
                Err(WorkerFailure::Broken(_)) if is_first_try && !has_begun => is_first_try = false,
                Err(WorkerFailure::Broken(_)) => {
                    return Err((WorkerFailure::Broken(io::Error::other(worker.end())), costs));
                }
                Err(lost) => return Err((lost, costs)),
            }
        }
    }

    /// Puts the worker back in its slot and records the state of the session.
    fn rest(&mut self, worker: Worker, kept: Kept) {
        *lock(&self.slot) = Some(worker);
        self.names = kept.names;
        self.live_bytes = kept.live_bytes;
        match kept.text {
            None => {}
            Some(Ok(text)) if self.text.as_ref() != Some(&text) => {
                self.text = Some(text);
                self.of_text = (self.names.clone(), self.live_bytes);
                self.changes += 1;
                self.unwritten = None;
            }
            Some(Ok(_)) => self.unwritten = None,
            Some(Err(problem)) => {
                self.changes += 1;
                let since = self.unwritten.take().map_or_else(Timestamp::now, |unwritten| unwritten.since);
                self.unwritten = Some(Unwritten { since, problem });
            }
        }
        self.workers.rests(&self.slot, self.unwritten.is_some());
    }

    /// Builds the reply of an evaluation whose worker is lost.
    fn lost_reply(&mut self, lost: &WorkerFailure, costs: Costs) -> Reply {
        // A worker that violated the protocol may still be alive.
        drop(lock(&self.slot).take());
        let (status, error, limit) = match lost {
            WorkerFailure::Unavailable(_) => (Status::Error, "Busy", None),
            WorkerFailure::Broken(_) | WorkerFailure::Between(_) | WorkerFailure::Unreadable(_) => {
                (Status::Error, "WorkerLost", None)
            }
            WorkerFailure::Late { limit: "cancellation", .. } => (Status::Cancelled, "Cancelled", None),
            WorkerFailure::Late { limit, .. } => (Status::Limit, "LimitExceeded", Some((*limit).to_string())),
            WorkerFailure::Large { .. } => (Status::Limit, "LimitExceeded", Some("memory".to_string())),
            WorkerFailure::Calls(_) => (Status::Limit, "LimitExceeded", Some("calls".to_string())),
        };
        let message = match (lost, self.fall_back()) {
            (WorkerFailure::Between(_), _) => {
                format!("{lost}; nothing was evaluated; the session is as it was before that")
            }
            (_, Some(unwritten)) => format!("{lost}; {unwritten}; the session is as it was before that"),
            (_, None) => format!("{lost}; the session is as it was before this program"),
        };
        let rendered = format!("{error}: {message}");
        let failure = Failure { error: error.to_string(), message, limit, rendered, ..Failure::default() };
        Reply { status, failure: Some(failure), calls: costs.calls, spent: costs.spent, ..Reply::default() }
    }
}

impl Sandbox for Workers {
    fn environment(self: Arc<Self>) -> Box<dyn Environment> {
        Box::new(self.session())
    }
}

impl Environment for WorkerSession {
    fn eval(&mut self, request: Request, host: Arc<dyn Host>) -> Reply {
        self.programs += 1;
        let Request { program, data, limits, name, from } = request;
        let from = from.and_then(|mark| serde_json::to_string(&mark).ok());
        let name = name.unwrap_or_else(|| format!("program {}", self.programs));
        let servers = host.servers();
        let instruction = Instruction::Evaluate {
            program,
            data,
            limits: limits.clone(),
            name,
            servers,
            from,
            is_exact: self.is_exact,
        };
        match self.instruction(&instruction, &host, &limits) {
            Ok(Done::Evaluated(reply)) => {
                serde_json::from_str(&reply).unwrap_or_else(|_| self.lost_reply(&nonsense(), Costs::default()))
            }
            Ok(_) => self.lost_reply(&nonsense(), Costs::default()),
            Err((lost, costs)) => self.lost_reply(&lost, costs),
        }
    }

    fn bind(&mut self, name: &str, text: &str, host: Arc<dyn Host>) -> Result<(), String> {
        let instruction = Instruction::Bind { name: name.to_string(), text: text.to_string() };
        match self.instruction(&instruction, &host, &Limits::default()) {
            Ok(Done::Taken(taken)) => taken,
            Ok(_) => Err(nonsense().to_string()),
            Err((lost, _)) => Err(lost.to_string()),
        }
    }

    fn describe(&mut self, query: Option<&str>, host: Arc<dyn Host>) -> Result<String, Box<Reply>> {
        let instruction = Instruction::Describe { query: query.map(str::to_string), servers: host.servers() };
        match self.instruction(&instruction, &host, &Limits::default()) {
            Ok(Done::Described(text)) => Ok(text),
            Ok(_) => Err(Box::new(self.lost_reply(&nonsense(), Costs::default()))),
            Err((lost, costs)) => Err(Box::new(self.lost_reply(&lost, costs))),
        }
    }

    fn plan(&mut self, request: &Request, inputs: &[String], host: Arc<dyn Host>) -> Result<Plan, Box<Failure>> {
        let Request { program, limits, name, .. } = request;
        let name = name.clone().unwrap_or_else(|| format!("program {}", self.programs + 1));
        let (program, inputs, servers) = (program.clone(), inputs.to_vec(), host.servers());
        let instruction = Instruction::Plan { program, inputs, limits: limits.clone(), name, servers };
        let failed = |reply: Reply| Box::new(reply.failure.unwrap_or_default());
        let planned = match self.instruction(&instruction, &host, limits) {
            Ok(Done::Planned(planned)) => planned,
            Ok(_) => return Err(failed(self.lost_reply(&nonsense(), Costs::default()))),
            Err((lost, costs)) => return Err(failed(self.lost_reply(&lost, costs))),
        };
        let read = match &planned {
            Ok(plan) => serde_json::from_str(plan).map(Ok),
            Err(failure) => serde_json::from_str(failure).map(Err),
        };
        read.unwrap_or_else(|_| Err(failed(self.lost_reply(&nonsense(), Costs::default()))))
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn defines(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn bindings(&self) -> usize {
        self.names.len()
    }

    fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn report_exactly(&mut self) {
        self.is_exact = true;
    }

    fn encode(&mut self) -> Result<String, String> {
        match &self.unwritten {
            Some(unwritten) => Err(unwritten.problem.clone()),
            None => self.text.clone().ok_or_else(|| "nothing is defined in the session".to_string()),
        }
    }

    fn decode(&mut self, text: &str) -> Result<(), String> {
        let host: Arc<dyn Host> = Arc::new(NoHost);
        let (worker, kept) = match self.worker_with(text, &host) {
            Ok(taken) => taken,
            // The text is not at fault: the next operation needs a worker too and reports the failure.
            Err(WorkerFailure::Unavailable(_)) => {
                lock(&self.slot).take();
                self.text = Some(text.to_string());
                (self.names, self.live_bytes) = (Vec::new(), 0);
                self.of_text = (Vec::new(), 0);
                self.unwritten = None;
                self.changes += 1;
                return Ok(());
            }
            Err(WorkerFailure::Unreadable(problem)) => return Err(problem),
            Err(lost) => return Err(lost.to_string()),
        };
        self.rest(worker, Kept { text: Some(Ok(text.to_string())), ..kept });
        Ok(())
    }

    fn unkept(&self) -> Option<String> {
        self.unwritten.as_ref().map(|unwritten| unwritten.problem.clone())
    }
}

/// The cost of an evaluation that failed.
#[derive(Default)]
struct Costs {
    calls: Vec<CallRecord>,
    spent: Spent,
}

/// One instruction, from its transmission until the worker has reported the resulting state.
struct Conversation<'a> {
    worker: &'a mut Worker,
    host: Arc<dyn Host>,
    limits: Limits,
    /// The compute time that the worker may use until it has carried out the instruction.
    compute: Duration,
    begun: Instant,
    computed: Duration,
    /// The time for which the worker had waited for a processor at the first check.
    delay: Option<Duration>,
    /// Number of questions that other threads are putting to the host.
    outstanding: Arc<AtomicUsize>,
    calls: Arc<Mutex<Vec<CallRecord>>>,
    /// The positions of the calls that a person is asked about.
    asked: Arc<Mutex<HashMap<CallId, usize>>>,
    /// The calls that earlier attempts of the run made, and which do not count towards the limit.
    old: Arc<Mutex<HashSet<CallId>>>,
    cancelled: Option<Instant>,
    /// True once a report of the worker has arrived.
    heard: bool,
}

impl<'a> Conversation<'a> {
    fn begin(worker: &'a mut Worker, host: Arc<dyn Host>, limits: &Limits, compute: Duration) -> Conversation<'a> {
        worker.bound(most_memory(limits), Stacks::default().bytes_for(limits.parallel));
        Conversation {
            worker,
            host,
            limits: limits.clone(),
            compute,
            begun: Instant::now(),
            computed: Duration::ZERO,
            delay: None,
            outstanding: Arc::default(),
            calls: Arc::default(),
            asked: Arc::default(),
            old: Arc::default(),
            cancelled: None,
            heard: false,
        }
    }

    /// Serves the worker's requests until it has carried out its instruction and reported the resulting state.
    fn carry_out(&mut self) -> Result<(Done, Kept), WorkerFailure> {
        let mut looked = Instant::now();
        let done = loop {
            match self.next()? {
                None => {}
                Some(Report::Ask(number, question)) => self.answer(number, question)?,
                Some(Report::GiveUp(call)) => self.host.give_up(&call),
                Some(Report::Form(form)) => self.host.begin_form(form),
                Some(Report::Print(text)) => self.host.print(&text),
                Some(Report::Refused { server, tool }) => self.host.refused(&server, &tool),
                Some(Report::Done(done)) => break done,
                Some(Report::Ready { .. } | Report::Unconfined(_) | Report::Kept(_)) => return Err(nonsense()),
            }
            // A worker that reports without pause, such as in a flood of prints, is checked all the same.
            if looked.elapsed() >= TICK {
                self.look()?;
                looked = Instant::now();
            }
        };
        // Serializing a large session takes time that counts towards no limit of the program.
        let most = wire::largest_text(&self.limits).saturating_add(BESIDE_TEXT);
        match self.worker.reports.next(WRITING, most) {
            Ok(Some(Report::Kept(kept))) => Ok((done, kept)),
            Ok(Some(_)) => Err(nonsense()),
            Ok(None) => Err(WorkerFailure::Late { limit: "compute", allowed: WRITING }),
            Err(problem) => Err(WorkerFailure::Broken(problem)),
        }
    }

    /// Returns the next report, or `None` after [`TICK`]. The elapsed time counts as compute time of the worker unless
    /// a tool call is outstanding.
    fn next(&mut self) -> Result<Option<Report>, WorkerFailure> {
        let waits = self.outstanding.load(Ordering::Acquire) > 0;
        let from = Instant::now();
        let most = self.limits.memory.saturating_add(self.limits.output).saturating_add(1 << 20);
        let report = self.worker.reports.next(TICK, most).map_err(WorkerFailure::Broken)?;
        if !waits {
            self.computed += from.elapsed();
        }
        self.heard |= report.is_some();
        Ok(report)
    }

    /// Checks the limits that the worker is to enforce itself; returns an error if it exceeds one.
    fn look(&mut self) -> Result<(), WorkerFailure> {
        let allowed = most_memory(&self.limits);
        if let Some(resident) = self.worker.resident().filter(|resident| *resident > allowed) {
            return Err(WorkerFailure::Large { resident, allowed });
        }
        if self.cancelled.is_none() && self.host.cancelled() {
            self.worker.instructions.give(&Instruction::Cancel);
            self.cancelled = Some(Instant::now());
        }
        let waits = self.outstanding.load(Ordering::Acquire) > 0;
        if let Some(since) = self.cancelled.filter(|since| !waits && since.elapsed() > GRACE) {
            return Err(WorkerFailure::Late { limit: "cancellation", allowed: since.elapsed() });
        }
        if self.computes_longer_than(self.compute.saturating_add(GRACE)) {
            return Err(WorkerFailure::Late { limit: "compute", allowed: self.compute });
        }
        if !waits && self.begun.elapsed() > self.limits.total.saturating_add(GRACE) {
            return Err(WorkerFailure::Late { limit: "total", allowed: self.limits.total });
        }
        Ok(())
    }

    /// Returns whether the worker has computed for longer than a time. Where the system tells, the time does not count for
    /// which it had to wait for a processor since the first check.
    fn computes_longer_than(&mut self, most: Duration) -> bool {
        if self.delay.is_none() {
            self.delay = self.worker.delay();
        }
        if self.computed <= most {
            return false;
        }
        let waited = self.delay.zip(self.worker.delay()).map(|(before, now)| now.saturating_sub(before));
        self.computed.saturating_sub(waited.unwrap_or_default()) > most
    }

    fn answer(&mut self, number: u32, question: Question) -> Result<(), WorkerFailure> {
        let (host, instructions) = (Arc::clone(&self.host), self.worker.instructions.clone());
        match question {
            Question::Call(call) => return self.call(number, call),
            Question::Decide(questions) => {
                let decisions = self.host.decide(&questions);
                instructions.give(&Instruction::Answer(number, Answer::Decided(decisions), host.held()));
            }
            Question::Now => {
                instructions.give(&Instruction::Answer(number, Answer::Now(self.host.now_millis()), host.held()))
            }
            Question::Random => {
                instructions.give(&Instruction::Answer(number, Answer::Random(self.host.random()), host.held()))
            }
            Question::Fork => {
                instructions.give(&Instruction::Answer(number, Answer::Forked(self.host.fork_session()), host.held()))
            }
            Question::Close => {
                instructions.give(&Instruction::Answer(number, Answer::Closed(self.host.close_session()), host.held()))
            }
            Question::Runs(run) => {
                let runs = self.host.runs(run.as_deref());
                instructions.give(&Instruction::Answer(number, Answer::Runs(runs), host.held()));
            }
            Question::Tools(server) => {
                let tools = self.host.tools(&server).map(|tools| tools.iter().map(Described::from).collect());
                instructions.give(&Instruction::Answer(number, Answer::Tools(tools), host.held()));
            }
            Question::ToolsAnew(server) => {
                let tools = self.host.tools_anew(&server).map(|tools| tools.iter().map(Described::from).collect());
                instructions.give(&Instruction::Answer(number, Answer::ToolsAnew(tools), host.held()));
            }
            Question::Instructions(server) => {
                let words = self.host.instructions(&server);
                instructions.give(&Instruction::Answer(number, Answer::Instructions(words), host.held()));
            }
            Question::Denied(server) => {
                instructions.give(&Instruction::Answer(number, Answer::Denied(self.host.denied(&server)), host.held()));
            }
            Question::Search { query, most } => {
                instructions.give(&Instruction::Answer(
                    number,
                    Answer::from(self.host.search(&query, most)),
                    host.held(),
                ));
            }
            Question::Catalogue => {
                instructions.give(&Instruction::Answer(number, Answer::catalogue(self.host.catalogue()), host.held()));
            }
        }
        Ok(())
    }

    /// Makes a tool call. With no parallel branches, nothing else waits for the host, so this thread makes the call;
    /// each call of a parallel branch gets a thread.
    fn call(&mut self, number: u32, mut call: ToolCall) -> Result<(), WorkerFailure> {
        call.approved = None;
        // A call that was asked about is made again.
        let asked = lock(&self.asked).remove(&call.id);
        let place = if let Some(place) = asked {
            place
        } else {
            let mut calls = lock(&self.calls);
            if calls.len().saturating_sub(lock(&self.old).len()) >= self.limits.calls as usize {
                return Err(WorkerFailure::Calls(self.limits.calls));
            }
            let (server, tool) = (call.server.clone(), call.tool.clone());
            calls.push(CallRecord { server, tool, ms: 0, outcome: "running".into(), note: None, failed: None });
            calls.len() - 1
        };
        // A worker that misreports the time gets no more of it.
        call.remaining = call.remaining.min(self.limits.total.saturating_sub(self.begun.elapsed()));
        call.timeout = call.timeout.min(self.limits.tool);
        let alone = call.id.branch.is_empty();
        let (host, instructions) = (Arc::clone(&self.host), self.worker.instructions.clone());
        let (calls, asked, old) = (Arc::clone(&self.calls), Arc::clone(&self.asked), Arc::clone(&self.old));
        let make = move || {
            let (begun, id) = (Instant::now(), call.id.clone());
            let reply = host.call(call);
            let (note, is_old) = (host.note(&id), host.was_made_before(&id));
            if is_old {
                lock(&old).insert(id.clone());
            }
            if matches!(reply, ToolReply::Ask(_)) {
                lock(&asked).insert(id, place);
            }
            if let Some(record) = lock(&calls).get_mut(place) {
                record.ms = begun.elapsed().as_millis() as u64;
                record.outcome = reply.outcome().into();
                record.note.clone_from(&note);
            }
            instructions.give(&Instruction::Answer(number, Answer::Called { reply, note, is_old }, host.held()));
        };
        if alone {
            make();
            return Ok(());
        }
        let outstanding = Arc::clone(&self.outstanding);
        outstanding.fetch_add(1, Ordering::AcqRel);
        let waiting = Arc::clone(&outstanding);
        let started = std::thread::Builder::new().name("tool call".to_string()).spawn(move || {
            make();
            waiting.fetch_sub(1, Ordering::AcqRel);
        });
        if started.is_err() {
            outstanding.fetch_sub(1, Ordering::AcqRel);
            let error = ToolError::unavailable("the system has no thread for another concurrent call");
            let answer = Answer::Called { reply: ToolReply::Error(error), note: None, is_old: false };
            self.worker.instructions.give(&Instruction::Answer(number, answer, self.host.held()));
        }
        Ok(())
    }

    /// True if the worker may have begun with its instruction: a report has arrived, or it had time to fail on the instruction.
    fn has_begun(&self) -> bool {
        self.heard || self.begun.elapsed() > TICK
    }

    fn costs(&self) -> Costs {
        let calls = lock(&self.calls).clone();
        let spent = Spent {
            compute_ms: self.computed.as_millis() as u64,
            total_ms: self.begun.elapsed().as_millis() as u64,
            ..Spent::default()
        };
        Costs { calls, spent }
    }
}

/// The memory limit of a worker, in bytes: what a program may use, the allocator's overhead on it, and the session as
/// text.
fn most_memory(limits: &Limits) -> u64 {
    let programs = limits.memory.saturating_add(limits.memory / 2);
    OWN_MEMORY.saturating_add(programs).saturating_add(limits.session.saturating_mul(3))
}
