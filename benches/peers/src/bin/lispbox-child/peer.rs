//! lispbox as a peer, with its limits on.

use crate::by_hand;
use crate::tools::Tools;
use lispbox::lang::Residence;
use lispbox::lang::{Engine, Host, Limits, Reply, Request, Session as Environment, Status};
use lispbox_peers::child::{LONGEST, Meaning, Peer, Session};
use lispbox_peers::workload::{Language, Workload};
use serde_json::Value as Json;
use std::sync::Arc;

/// The default limits, raised only for the workloads that need it; the time limits are raised for all, because the
/// machine may be busy.
fn limits(workload: Workload) -> Limits {
    let mut limits = Limits { compute: LONGEST, ..Limits::default() };
    match workload {
        Workload::MailsFromText | Workload::MailsFromValues => limits.session = 256 << 20,
        Workload::HostCalls => limits.fuel = 1_000_000_000,
        _ => (),
    }
    limits
}

/// The argument of the host function that is called a million times.
#[derive(serde::Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

/// Returns the sum of the numbers.
fn add(numbers: Numbers) -> i64 {
    numbers.a + numbers.b
}

/// The engine, the host and the limits shared by all environments.
pub struct Lispbox {
    language: Language,
    engine: Arc<Engine>,
    host: Arc<dyn Host>,
    limits: Limits,
}

impl Lispbox {
    /// Creates lispbox for a workload, or for its variant in Rust.
    ///
    /// # Errors
    /// Returns an error if memory limits cannot be enforced.
    pub fn for_workload(workload: Workload, by_hand: bool) -> Result<Lispbox, String> {
        let language = if by_hand { Language::ByHand } else { Language::Lisp };
        Ok(Lispbox { language, ..Lispbox::new(Tools::many(0), limits(workload))? })
    }

    /// Creates lispbox with these tools and limits.
    ///
    /// # Errors
    /// Returns an error if memory limits cannot be enforced.
    pub fn new(tools: Tools, limits: Limits) -> Result<Lispbox, String> {
        let mut builder = Engine::builder().residence(Memory);
        builder.function("host/add", add);
        by_hand::register(&mut builder);
        let engine = builder.build().map_err(|error| error.to_string())?;
        Ok(Lispbox { language: Language::Lisp, engine, host: Arc::new(tools), limits })
    }

    /// Creates an empty environment.
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

/// An environment, and JSON text that has not been parsed yet.
pub struct Running<'a> {
    peer: &'a Lispbox,
    environment: Environment,
    text: Option<String>,
}

impl Running<'_> {
    /// Runs a program, with `data` bound to the parsed JSON text if there is any.
    ///
    /// # Errors
    /// Returns the error of the program or the data.
    pub fn eval(&mut self, program: &str, data: Option<String>) -> Result<Reply, String> {
        let request = Request { data, limits: self.peer.limits.clone(), ..Request::new(program) };
        let reply = self.environment.eval(request, self.peer.host.clone());
        match reply.status {
            Status::Ok => Ok(reply),
            _ => Err(reply.failure.map_or_else(|| "stopped".to_string(), |failure| failure.rendered)),
        }
    }

    /// The live bytes of the environment.
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
            None => Err("the answer cannot be expressed as JSON".to_string()),
        }
    }
}

/// The resident memory of the process, which the lispbox binary observes in the same way.
struct Memory;

impl Residence for Memory {
    fn resident(&self) -> Option<u64> {
        // SAFETY: a system call without pointers.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
        Some(counts.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * page)
    }

    fn give_back(&self) {
        // SAFETY: mimalloc is the allocator of the process, and this function may be called at any time on any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
