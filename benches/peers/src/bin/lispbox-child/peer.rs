//! lispbox, its limits on.

use crate::by_hand;
use crate::tools::Tools;
use lispbox::lang::builtin::Builtin;
use lispbox::lang::builtin::arguments::{integer, map, take};
use lispbox::lang::error::Outcome;
use lispbox::lang::eval::Machine;
use lispbox::lang::meter::Residence;
use lispbox::lang::{Engine, Host, Limits, Reply, Request, Session as Environment, Status, Value};
use lispbox_peers::child::{LONGEST, Meaning, Peer, Session};
use lispbox_peers::workload::{Language, Workload};
use serde_json::Value as Json;
use std::sync::Arc;

/// The default limits, each raised only for the workloads that need it; but for time, which a busy machine takes.
fn limits(workload: Workload) -> Limits {
    let mut limits = Limits { compute: LONGEST, ..Limits::default() };
    match workload {
        Workload::MailsFromText | Workload::MailsFromValues => limits.session = 256 << 20,
        Workload::HostCalls => limits.fuel = 1_000_000_000,
        _ => (),
    }
    limits
}

/// The function of the host that is called a million times.
static FUNCTIONS: [Builtin; 1] = [Builtin::new("host/add", &["[numbers]"], "The sum of `:a` and `:b`.", &[], add)];

/// The sum of `:a` and `:b`.
///
/// # Errors
/// If they are no integers.
pub fn add(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let numbers = map(take(arguments, 0))?;
    let number = |name: &str| integer(numbers.field(name).unwrap_or(&Value::Nil));
    Ok(Value::Int(number("a")? + number("b")?))
}

/// The engine, the host and the limits that all environments share.
pub struct Lispbox {
    language: Language,
    engine: Arc<Engine>,
    host: Arc<dyn Host>,
    limits: Limits,
}

impl Lispbox {
    /// lispbox as it runs a workload, or its values as Rust uses them.
    ///
    /// # Errors
    /// If its limits cannot be kept.
    pub fn for_workload(workload: Workload, by_hand: bool) -> Result<Lispbox, String> {
        let language = if by_hand { Language::ByHand } else { Language::Lisp };
        Ok(Lispbox { language, ..Lispbox::new(Tools::many(0), limits(workload))? })
    }

    /// lispbox with these tools and limits.
    ///
    /// # Errors
    /// If its limits cannot be kept.
    pub fn new(tools: Tools, limits: Limits) -> Result<Lispbox, String> {
        let builder = Engine::builder().residence(Memory);
        let builder = builder.functions("The host", &FUNCTIONS).functions("By hand", &by_hand::FUNCTIONS);
        let engine = builder.build().map_err(|error| error.to_string())?;
        Ok(Lispbox { language: Language::Lisp, engine, host: Arc::new(tools), limits })
    }

    /// An environment with nothing defined.
    pub fn environment(&self) -> Running<'_> {
        Running { peer: self, environment: self.engine.session(), text: None }
    }
}

impl Peer for Lispbox {
    fn language(&self) -> Language {
        self.language
    }

    fn in_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<(), String>) -> Result<(), String> {
        work(&mut self.environment())
    }
}

/// An environment, and JSON text that is yet to be parsed.
pub struct Running<'a> {
    peer: &'a Lispbox,
    environment: Environment,
    text: Option<String>,
}

impl Running<'_> {
    /// Runs a program; JSON text is bound as `data` before.
    ///
    /// # Errors
    /// What is wrong with the program or the data.
    pub fn eval(&mut self, program: &str, data: Option<String>) -> Result<Reply, String> {
        let request = Request { data, limits: self.peer.limits.clone(), ..Request::new(program) };
        let reply = self.environment.eval(request, self.peer.host.clone());
        match reply.status {
            Status::Ok => Ok(reply),
            _ => Err(reply.failure.map_or_else(|| "stopped".to_string(), |failure| failure.rendered)),
        }
    }

    /// Live bytes that it holds.
    pub fn live_bytes(&self) -> u64 {
        self.environment.live_bytes()
    }
}

impl Session for Running<'_> {
    fn give(&mut self, text: String, meaning: Meaning) -> Result<(), String> {
        match meaning {
            Meaning::Json => self.text = Some(text),
            Meaning::Words => {
                let text = Json::String(text).to_string();
                self.environment.bind("text", &text, self.peer.host.clone())?;
            }
        }
        Ok(())
    }

    fn parse(&mut self) -> Result<(), String> {
        let text = self.text.take().ok_or("no text was given")?;
        self.eval("nil", Some(text)).map(drop)
    }

    fn run(&mut self, program: &str) -> Result<String, String> {
        match self.eval(program, None)?.json {
            Some(Json::String(text)) => Ok(text),
            Some(value) => Ok(value.to_string()),
            None => Err("the answer cannot be said in JSON".to_string()),
        }
    }
}

/// What the process takes, which lispbox's binary watches in the same way.
struct Memory;

impl Residence for Memory {
    fn resident(&self) -> Option<u64> {
        // SAFETY: a plain system call without pointers.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
        Some(counts.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * page)
    }

    fn give_back(&self) {
        // SAFETY: the process's allocator is mimalloc, and this may be called at any time on any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
