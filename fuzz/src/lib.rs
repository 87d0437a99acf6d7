//! What the fuzz targets share: the world that their programs see, the limits that they run under, and what
//! must hold of every evaluation.
//!
//! A panic is a finding wherever it comes up: libFuzzer's hook ends the process before anything catches it.

#[path = "../../tests/common/collections/mod.rs"]
pub mod collections;
pub mod expression;
pub mod vocabulary;

use lispbox::lang::{Engine, Host, Limits, Reply, Request, Session, Status, ToolCall, ToolReply};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> =
    lispbox::lang::Metered::new(std::alloc::System);

/// A world without tools, in which it is always the same moment and every random number is the same.
struct Nothing {
    started: Instant,
}

impl Host for Nothing {
    fn call(&self, _: ToolCall) -> ToolReply {
        ToolReply::Denied("there are no tools".to_string())
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
}

/// A host without tools.
pub fn host() -> Arc<dyn Host> {
    Arc::new(Nothing { started: Instant::now() })
}

/// The engine of this process.
pub fn engine() -> &'static Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::builder().build().expect("the metering allocator is installed above"))
}

/// A session with nothing defined.
pub fn session() -> Session {
    engine().session()
}

/// A session with nothing defined, of an engine that takes no shortcuts.
pub fn plain_session() -> Session {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    let plain = || Engine::builder().plain_walk().build().expect("the metering allocator is installed above");
    ENGINE.get_or_init(plain).session()
}

/// Limits that a program reaches within milliseconds.
pub fn small_limits() -> Limits {
    Limits { fuel: 20_000, memory: 8 << 20, compute: Duration::from_secs(2), output: 4 << 10, ..Limits::default() }
}

/// Evaluates a program with `data` bound to that text.
///
/// # Panics
/// If a defect of ours came up, or more was spent than the limits allow.
pub fn evaluate(session: &mut Session, program: &str, data: Option<&str>, limits: Limits) -> Reply {
    let mut request = Request::new(program);
    request.data = data.map(|text| serde_json::to_string(text).expect("a string is JSON"));
    request.limits = limits.clone();
    let reply = session.eval(request, host());
    if let Some(failure) = &reply.failure {
        assert_ne!(failure.error, "InternalError", "{program}\n{}", failure.rendered);
    }
    // What a program asked for at once, and did not get, is in the count of a reply that says so.
    if reply.status != Status::Limit {
        assert!(reply.spent.fuel <= limits.fuel, "{} steps of {}: {program}", reply.spent.fuel, limits.fuel);
    }
    reply
}

/// True for a reply that another run of the same program may not give, since it depends on the clock.
pub fn is_of_the_moment(reply: &Reply) -> bool {
    let limit = reply.failure.as_ref().and_then(|failure| failure.limit.as_deref());
    matches!(limit, Some("compute" | "total"))
}

/// The session, written, read and written again.
///
/// # Panics
/// If it cannot be written or read, or is not the same text the second time.
pub fn moved(session: &mut Session) -> Session {
    let text = session.encode(host()).expect("a session can be written");
    let mut other = engine().session();
    other.decode(&text, host()).unwrap_or_else(|error| panic!("what was written is not read: {error}\n{text}"));
    let again = other.encode(host()).expect("a session can be written");
    assert_eq!(again, text, "a session is written in another way after it was read");
    other
}

/// What the session holds, as text: without its counts, which only grow, and without `*1` and its kin.
///
/// # Panics
/// If it cannot be written or read.
pub fn state(session: &mut Session) -> String {
    let mut text = session.encode(host()).expect("a session can be written");
    text.truncate(text.rfind("\n(counts ").expect("a row of counts"));
    text.push_str("\n(history nil nil nil nil)\n");
    let mut other = engine().session();
    other.decode(&text, host()).unwrap_or_else(|error| panic!("what was written is not read: {error}\n{text}"));
    other.encode(host()).expect("a session can be written")
}
