//! Measures the overhead of worker processes: evaluations and tool calls in a worker and in this process, alternately,
//! as medians.
//!
//! `cargo run --release --example worker_costs`

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lispbox::lang::Metered;
use lispbox::lang::{Engine, Environment, Host, Request, Server, Tool, ToolCall, ToolError, ToolReply};

#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

/// A host with one tool that returns immediately.
struct Echo {
    tool: Arc<Tool>,
    begun: Instant,
}

impl Host for Echo {
    fn servers(&self) -> Vec<Server> {
        vec![Server { name: "echo".to_string(), description: String::new() }]
    }

    fn tools(&self, _: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        Ok(vec![self.tool.clone()])
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        ToolReply::Json(call.arguments)
    }

    fn now_millis(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        4
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn Error>> {
    use lispbox::worker::{Program, WorkerOptions, Workers};
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return Ok(lispbox::worker::run()?);
    }
    let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tool = Tool { server: "echo".to_string(), name: "echo".to_string(), input_schema: schema, ..Tool::default() };
    let host: Arc<dyn Host> = Arc::new(Echo { tool: Arc::new(tool), begun: Instant::now() });

    let begun = Instant::now();
    let workers = Workers::start(WorkerOptions::new(Program::this(&["worker"])?))?;
    println!("start of the pool, one worker ready: {:?}; walls: {}", begun.elapsed(), workers.walls().join(", "));
    let mut here = Engine::builder().build()?.session();
    let mut there = workers.session();

    let rows = [
        ("(+ 1 1)", 1_u32, 2_000),
        ("(defn f [x] (* x x))", 1, 500),
        ("(echo/echo {:n 1})", 1, 2_000),
        ("(dotimes [i 100] (echo/echo {:n i}))", 100, 100),
        ("(pmap (fn [i] (echo/echo {:n i})) (range 100))", 100, 100),
    ];
    println!("{:50} {:>12} {:>12} {:>12}", "each, by the piece", "here", "worker", "added");
    for (program, pieces, rounds) in rows {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            let places: [&mut dyn Environment; 2] = [&mut here, &mut there];
            for (place, times) in places.into_iter().zip(&mut times) {
                let begun = Instant::now();
                let reply = place.eval(Request::new(program), host.clone());
                times.push(begun.elapsed() / pieces);
                if let Some(failure) = reply.failure {
                    return Err(failure.rendered.into());
                }
            }
        }
        let [own, other] = times.map(|mut times| {
            times.sort();
            times[times.len() / 2]
        });
        println!("{program:50} {own:>12.1?} {other:>12.1?} {:>12.1?}", other.saturating_sub(own));
    }

    let mut fresh: Vec<Duration> = Vec::new();
    for _ in 0..50 {
        // This gives the pool time to start another worker.
        std::thread::sleep(Duration::from_millis(30));
        let begun = Instant::now();
        workers.session().eval(Request::new("(+ 1 1)"), host.clone());
        fresh.push(begun.elapsed());
    }
    fresh.sort();
    println!("first evaluation of a new session, in a spare worker: {:.1?}", fresh[fresh.len() / 2]);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), Box<dyn Error>> {
    Err("worker processes are confined by Linux's seccomp and landlock".into())
}
