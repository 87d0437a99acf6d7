//! Code shared by the tests of the language: the metering allocator, a scripted host, and programs in Markdown.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod collections;
pub mod counted;
pub mod hostile;
pub mod literate;

use lispbox::lang::{Engine, Host, Reply, Request, RestoreError, Session, Status, Tool, ToolCall, ToolReply};
use std::collections::HashMap;
use std::mem::discriminant;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lispbox::lang::Metered<counted::Counted> = lispbox::lang::Metered::new(counted::Counted);

/// The implementation of a tool of a scripted host: maps the JSON of its arguments to its reply.
pub type Script = Box<dyn Fn(&serde_json::Value) -> ToolReply + Send + Sync>;

/// A host whose tools are closures of the test.
pub struct Scripted {
    tools: Vec<Arc<Tool>>,
    scripts: HashMap<String, Script>,
    pub calls: Mutex<Vec<ToolCall>>,
    pub cancelled: std::sync::atomic::AtomicBool,
    started: Instant,
}

impl Scripted {
    pub fn new() -> Scripted {
        Scripted {
            tools: Vec::new(),
            scripts: HashMap::new(),
            calls: Mutex::default(),
            cancelled: false.into(),
            started: Instant::now(),
        }
    }

    /// Adds the tool `server/name` with that input schema.
    pub fn tool(
        mut self,
        name: &str,
        schema: serde_json::Value,
        script: impl Fn(&serde_json::Value) -> ToolReply + Send + Sync + 'static,
    ) -> Scripted {
        let (server, tool) = name.split_once('/').expect("a qualified name");
        self.tools.push(Arc::new(Tool {
            server: server.to_string(),
            name: tool.to_string(),
            description: format!("the tool {tool}"),
            input_schema: schema,
            ..Tool::default()
        }));
        self.scripts.insert(name.to_string(), Box::new(script));
        self
    }
}

impl Host for Scripted {
    fn servers(&self) -> Vec<lispbox::lang::Server> {
        let mut names: Vec<String> = self.tools.iter().map(|tool| tool.server.clone()).collect();
        names.dedup();
        names.into_iter().map(|name| lispbox::lang::Server { name, description: String::new() }).collect()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, lispbox::lang::ToolError> {
        Ok(self.tools.iter().filter(|tool| tool.server == server).cloned().collect())
    }

    fn catalogue(&self) -> lispbox::lang::Catalogue {
        lispbox::lang::Catalogue { tools: self.tools.clone(), missing: Vec::new() }
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        let arguments = serde_json::from_str(&call.arguments).expect("arguments are JSON");
        let reply = self.scripts[&format!("{}/{}", call.server, call.tool)](&arguments);
        self.calls.lock().expect("not poisoned").push(call);
        reply
    }

    fn fork_session(&self) -> Result<String, String> {
        Ok("copy".to_owned())
    }

    fn runs(&self, _run: Option<&str>) -> Result<String, String> {
        Ok("[]".to_owned())
    }

    fn close_session(&self) -> Result<(), String> {
        Ok(())
    }

    fn now_millis(&self) -> i64 {
        1_750_000_000_000
    }

    fn random(&self) -> u64 {
        42
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Creates an engine with memory limits enabled.
pub fn engine() -> Arc<Engine> {
    Engine::builder().build().expect("the metering allocator is installed above")
}

/// Creates a session with its own engine.
pub fn session() -> Session {
    engine().session()
}

/// Creates a host without tools.
pub fn host() -> Arc<dyn Host> {
    Arc::new(Scripted::new())
}

/// Evaluates a program in a session; returns the printed value, or the whole error as text.
pub fn run(session: &mut Session, program: &str) -> String {
    shown(session.eval(Request::new(program), host()))
}

/// Encodes the session, decodes the text, and checks that encoding it again yields the same text.
pub fn moved(session: &mut Session) -> Session {
    let text = session.encode().expect("it encodes");
    let mut other = decoded(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(other.encode().expect("it encodes"), text);
    other
}

/// Decodes a snapshot as it is, and with a discarded form after it, for which the whole text is read by the reader of
/// programs. Panics if the sessions or the errors differ.
pub fn decoded(text: &str) -> Result<Session, RestoreError> {
    let (mut session, mut other) = (engine().session(), engine().session());
    let scanned = session.decode(text);
    let read = other.decode(&format!("{text}\n#_nil"));
    match (&scanned, &read) {
        (Ok(()), Ok(())) => assert_eq!(session.encode(), other.encode(), "the reader reads another session\n{text}"),
        (Err(scanned), Err(read)) => {
            assert_eq!(discriminant(scanned), discriminant(read), "{scanned}\n{read}\n{text}");
            // The reader says what follows the damage.
            if !scanned.to_string().starts_with("the snapshot cannot be read") {
                assert_eq!(scanned.to_string(), read.to_string(), "{text}");
            }
        }
        _ => panic!("scanned: {scanned:?}, read: {read:?}\n{text}"),
    }
    scanned.map(|()| session)
}

/// Returns the state of the session as text, without its counters, which only grow, and without `*1`, `*2`, `*3` and
/// `*e`.
pub fn state(session: &mut Session) -> String {
    let mut text = session.encode().expect("it encodes");
    text.truncate(text.rfind("\n(counts ").expect("a row of counts"));
    let mut other = engine().session();
    other.decode(&format!("{text}\n(history nil nil nil nil)\n")).unwrap_or_else(|error| panic!("{error}\n{text}"));
    other.encode().expect("it encodes")
}

fn shown(reply: Reply) -> String {
    match reply.failure {
        Some(failure) => failure.rendered,
        None => reply.value.unwrap_or_default(),
    }
}

/// Evaluates a program in a fresh session without tools.
pub fn eval(program: &str) -> Reply {
    session().eval(Request::new(program), host())
}

/// Evaluates a program in a fresh session; returns the printed value, or the whole error as text.
pub fn value(program: &str) -> String {
    shown(eval(program))
}

/// Evaluates a program; returns the printed value or `error: Code`, as literate cases do, and the message of the error.
pub fn answer(program: &str) -> (String, String) {
    let reply = eval(program);
    match reply.failure {
        Some(failure) => (format!("error: {}", failure.error), failure.message),
        None => (reply.value.unwrap_or_default(), String::new()),
    }
}

/// Returns the outcome in the notation of the hostile programs: `limit: memory`, `error: InvalidRegex`, or the value.
pub fn outcome(reply: Reply) -> String {
    match (&reply.status, &reply.failure) {
        (Status::Limit, Some(failure)) => format!("limit: {}", failure.limit.as_deref().unwrap_or_default()),
        (_, Some(failure)) => format!("error: {}", failure.error),
        _ => reply.value.unwrap_or_default(),
    }
}

/// Returns the peak memory of this process, in MiB.
#[cfg(target_os = "linux")]
pub fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a text");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// The reply to a program in a new session under these limits.
pub fn with_limit(program: &str, limits: &[(&str, &str)]) -> Reply {
    let mut request = Request::new(program);
    for (name, amount) in limits {
        request.limits.set(name, amount).expect("a known limit");
    }
    session().eval(request, host())
}
