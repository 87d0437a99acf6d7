//! The cost of a round trip: `lisp_eval` over standard input and output, and tools of a real downstream MCP server. The
//! benchmark `load` measures HTTP.
//!
//! `cargo bench --bench server` prints two tables. The tools are those of `@modelcontextprotocol/server-everything`
//! from npm, in `target/peers` or the folder named by `LISPBOX_PEERS` (`.ci/run` installs it there); they are also
//! called directly, to show the overhead of lispbox.

#[path = "../../tests/peers/mod.rs"]
mod peers;
mod pipe;

use pipe::Pipe;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// The number of calls of each measurement.
const CALLS: usize = 2_000;

/// Maximum number of concurrent tool calls of a program.
const PARALLEL: usize = 32;

/// The definitions of a session, and the program that uses them.
const DEFINE: &str = "(def mails (mapv (fn [i] {:id i :size (* 3 i)}) (range 50)))";
const PROGRAM: &str = "(reduce + (map :size mails))";

/// The tool that is called.
const TOOL: &str = "get-sum";

fn main() {
    round_trips();
    match peers::installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js") {
        Some(script) => tools(&script.to_string_lossy()),
        None => println!("\nTools of a real server were not measured: the server is not installed."),
    }
}

/// The durations of many calls.
struct Times {
    each: Vec<Duration>,
    all: Duration,
}

impl Times {
    /// Prints a row of the table: median, 99th percentile, and calls per second.
    fn row(mut self, title: &str) {
        self.each.sort_unstable();
        let at = |part: usize| self.each[(self.each.len() - 1) * part / 100].as_secs_f64() * 1e6;
        let rate = self.each.len() as f64 / self.all.as_secs_f64();
        println!("| {title} | {:.0} µs | {:.0} µs | {rate:.0} |", at(50), at(99));
    }
}

/// Keeps `count` requests in flight until all are answered.
fn under_way(pipe: &mut Pipe, count: usize, request: impl Fn(usize) -> (&'static str, Value)) -> Times {
    let mut sent = vec![Instant::now(); CALLS];
    let mut each = Vec::with_capacity(CALLS);
    let begun = Instant::now();
    let first = pipe.next();
    for call in 0..CALLS + count - 1 {
        if let Some(time) = sent.get_mut(call) {
            let (method, params) = request(call);
            *time = Instant::now();
            pipe.send(method, params);
        }
        if call + 1 >= count {
            let answer = pipe.receive();
            assert!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer}");
            let id = answer["id"].as_u64().expect("an answer") as usize;
            each.push(sent[id - first].elapsed());
        }
    }
    Times { each, all: begun.elapsed() }
}

/// Measures `lisp_eval` with a small program.
fn round_trips() {
    println!("| `lisp_eval` over standard input and output | median | p99 | a second |\n|---|--:|--:|--:|");
    let evaluate = |program: &str| json!({"name": "lisp_eval", "arguments": {"program": program}});
    let mut pipe = lispbox(&json!({"mcpServers": {}}));
    pipe.request("tools/call", evaluate(DEFINE));
    under_way(&mut pipe, 1, |_| ("tools/call", evaluate(PROGRAM))).row("a warm session, one after another");
    under_way(&mut pipe, 16, |_| ("tools/call", evaluate(PROGRAM))).row("a warm session, 16 requests under way");
    under_way(&mut pipe, 1, |_| ("tools/list", json!({}))).row("for comparison: `tools/list`");
}

/// Measures tools of a real server, directly and from programs.
fn tools(script: &str) {
    println!("\n| `{TOOL}` of server-everything over a pipe | median | p99 | a second |\n|---|--:|--:|--:|");
    let call = |i: usize| ("tools/call", json!({"name": TOOL, "arguments": {"a": i, "b": 2}}));
    let mut direct = Pipe::start(Command::new("node").args([script, "stdio"]));
    under_way(&mut direct, 1, call).row("directly, one after another");
    under_way(&mut direct, PARALLEL, call).row("directly, 32 under way");
    drop(direct);
    let mut pipe = lispbox(&json!({"mcpServers": {"everything": {"command": "node", "args": [script, "stdio"]}}}));
    let mut evaluate = |program: String| {
        let begun = Instant::now();
        let answer = pipe.request("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
        assert!(answer["result"]["isError"] != true, "{answer}");
        begun.elapsed()
    };
    let first = evaluate(format!("(everything/{TOOL} {{:a 1 :b 2}})"));
    println!("| the first call, which starts the server | {} ms | | |", first.as_millis());
    let mut programs = |title: &str, program: String| {
        let rate = CALLS as f64 / evaluate(program).as_secs_f64();
        println!("| {title} | {:.0} µs a call | | {rate:.0} |", 1e6 / rate);
    };
    programs("in a program, one after another", format!("(dotimes [i {CALLS}] (everything/{TOOL} {{:a i :b 2}}))"));
    programs(
        "in a program, 32 under way",
        format!("(count (pmap #(everything/{TOOL} {{:a % :b 2}}) (range {CALLS})))"),
    );
}

/// Starts lispbox as a client would; its first reply shows that it has read its configuration.
fn lispbox(configuration: &Value) -> Pipe {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, configuration.to_string()).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["serve", "--limit", "calls=10000", "--limit", "parallel=32", "--config"]).arg(&file);
    command.env("LISPBOX_STORE", "memory").env("LISPBOX_NO_PREFETCH", "true");
    command.env("LISPBOX_CACHE", folder.path().join("cache"));
    Pipe::start(&mut command)
}
