//! Code shared by the fuzz targets: the host of their programs, the limits under which they run, and the invariants of
//! every evaluation.
//!
//! Every panic is a finding: libFuzzer's hook ends the process before any code can catch it.

pub mod checks;
#[path = "../../tests/common/collections/mod.rs"]
pub mod collections;
pub mod expression;
pub mod vocabulary;

use lispbox::lang::{Engine, Host, Limits, Reply, Request, Session, Status, ToolCall, ToolReply};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);

/// A host without tools, with a constant wall-clock time and constant random numbers. Only its monotonic clock
/// advances.
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

/// Returns a host without tools.
pub fn host() -> Arc<dyn Host> {
    Arc::new(Nothing { started: Instant::now() })
}

/// Returns the engine of this process.
pub fn engine() -> &'static Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::builder().build().expect("the metering allocator is installed above"))
}

/// Creates an empty session.
pub fn session() -> Session {
    engine().session()
}

/// Creates an empty session of an engine without optimisations.
pub fn plain_session() -> Session {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    let plain = || Engine::builder().plain_walk().build().expect("the metering allocator is installed above");
    ENGINE.get_or_init(plain).session()
}

/// Returns limits that a program reaches within milliseconds.
pub fn small_limits() -> Limits {
    Limits { fuel: 20_000, memory: 8 << 20, compute: Duration::from_secs(2), output: 4 << 10, ..Limits::default() }
}

/// Evaluates a program with `data` bound to that text.
///
/// # Panics
/// Panics if the evaluation reveals an internal error, or spends more than the limits allow.
pub fn evaluate(session: &mut Session, program: &str, data: Option<&str>, limits: Limits) -> Reply {
    let mut request = Request::new(program);
    request.data = data.map(|text| serde_json::to_string(text).expect("a string is JSON"));
    request.limits = limits.clone();
    let reply = session.eval(request, host());
    if let Some(failure) = &reply.failure {
        assert_ne!(failure.error, "InternalError", "{program}\n{}", failure.rendered);
    }
    // If a single request for fuel exceeds the limit, the reply reports the limit and its count includes that request.
    if reply.status != Status::Limit {
        assert!(reply.spent.fuel <= limits.fuel, "{} steps of {}: {program}", reply.spent.fuel, limits.fuel);
    }
    reply
}

/// Returns true if another run of the same program may give another reply because of the clock.
pub fn is_of_the_moment(reply: &Reply) -> bool {
    let limit = reply.failure.as_ref().and_then(|failure| failure.limit.as_deref());
    matches!(limit, Some("compute" | "total"))
}

/// Encodes the session, decodes the text and encodes it again.
///
/// # Panics
/// Panics if the session cannot be encoded or decoded, or if the second text differs from the first.
pub fn moved(session: &mut Session) -> Session {
    let text = session.encode().expect("a session can be written");
    let mut other = engine().session();
    other.decode(&text).unwrap_or_else(|error| panic!("what was written is not read: {error}\n{text}"));
    let again = other.encode().expect("a session can be written");
    assert_eq!(again, text, "a session is written in another way after it was read");
    other
}

/// Returns the state of the session as text, without its counters, which only grow, and without `*1`, `*2`, `*3` and
/// `*e`.
///
/// # Panics
/// Panics if the session cannot be encoded or decoded.
pub fn state(session: &mut Session) -> String {
    let mut text = session.encode().expect("a session can be written");
    text.truncate(text.rfind("\n(counts ").expect("a row of counts"));
    text.push_str("\n(history nil nil nil nil)\n");
    let mut other = engine().session();
    other.decode(&text).unwrap_or_else(|error| panic!("what was written is not read: {error}\n{text}"));
    other.encode().expect("a session can be written")
}
