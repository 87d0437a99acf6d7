//! Counts the instructions and system calls of one request to the server, through the real binary, and compares them
//! with the recorded counts in `counts.md` in this folder.
//!
//! `cargo bench --bench requests` fails if a request takes 5% more instructions than recorded, a quarter and two more
//! system calls of a kind (the scheduler decides whether a thread is still awake), or a thread of its own; with
//! `-- --record` it records the current counts.
//!
//! The server runs under valgrind, and once more under strace. Each time it answers some requests first and many more
//! then, in one process, and fewer in another; the difference is what the requests take. The downstream server is this
//! program itself, started with `--echo`.

#[path = "../counts/mod.rs"]
mod counts;
#[path = "../../tests/http_client/mod.rs"]
mod http_client;
#[path = "../server/pipe.rs"]
mod pipe;

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use http_client::{Server, evaluation};
use pipe::Pipe;
use serde_json::{Value, json};

/// Permitted instructions, as a part of those recorded.
const INSTRUCTIONS: f64 = 1.05;

/// Permitted system calls of a kind, as a part of those recorded, and as a number beside that.
const SCHEDULED: (f64, f64) = (1.25, 2.0);

/// Permitted threads of a request: of all requests together, some may be the first of their kind.
const THREADS: f64 = 0.05;

/// The file with the recorded counts.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/requests/counts.md");

/// Requests before those that are counted, so that caches are filled and threads are started.
const BEFORE: usize = 50;

/// Requests that are counted.
const COUNTED: usize = 400;

/// The system calls that are counted.
const SYSTEM_CALLS: [&str; 5] = ["clone3", "futex", "write", "epoll_wait", "getrandom"];

/// How a client is connected.
#[derive(Clone, Copy, PartialEq)]
enum Connected {
    /// By standard input and output.
    Stdio,
    /// Over HTTP, in a session of revision 2025-06-18.
    Session,
    /// Over HTTP, by requests of revision 2026-07-28.
    Stateless,
}
use Connected::{Session, Stateless, Stdio};

/// The requests: a name, the connection, options of the server, and the program.
const REQUESTS: [(&str, Connected, &[&str], &str); 9] = [
    ("evaluation", Stdio, &[], "(+ 1 1)"),
    ("evaluation over HTTP, in a session", Session, &[], "(+ 1 1)"),
    ("evaluation over HTTP, stateless", Stateless, &[], "(+ 1 1)"),
    ("tool call", Stdio, &[], "(echo/echo {:text \"abc\"})"),
    ("tool call, audited", Stdio, &["--audit", "AUDIT"], "(echo/echo {:text \"abc\"})"),
    ("tool call, with a store", Stdio, &["--store", "sqlite:STORE"], "(echo/echo {:text \"abc\"})"),
    ("tool call, with a guard", Stdio, &[GUARD], "(echo/echo {:text \"abc\"})"),
    // The calls of the second are kept, in case the program fails.
    ("ten calls that read", Stdio, &[], "(dotimes [n 10] (echo/echo {:text \"abc\"}))"),
    ("ten calls that change something", Stdio, &[], "(dotimes [n 10] (echo/keep {:text \"abc\"}))"),
];

/// The option for which the policy gets a guard, so that the origins of values are recorded.
const GUARD: &str = "GUARD";

type Counts = BTreeMap<String, f64>;

fn main() -> ExitCode {
    let own = |arguments: &[&str]| (*arguments == ["--echo"]).then(echo);
    counts::run(own, count_all, check, record)
}

/// Serves two tools that return their argument, of which one may change something, on standard input and output.
fn echo() -> Result<(), Box<dyn Error>> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tools = json!([
        {"name": "echo", "inputSchema": schema, "annotations": {"readOnlyHint": true}},
        {"name": "keep", "inputSchema": schema},
    ]);
    let about = json!({"name": "echo", "version": "1"});
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str() {
            Some("initialize") => {
                let version = &request["params"]["protocolVersion"];
                json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
            }
            Some("tools/list") => json!({"tools": tools}),
            Some("tools/call") => {
                json!({"content": [{"type": "text", "text": request["params"]["arguments"]["text"]}]})
            }
            _ => json!({}),
        };
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        output.flush()?;
    }
    Ok(())
}

fn count_all() -> Result<Counts, Box<dyn Error>> {
    let mut counts = Counts::new();
    for (name, connected, options, program) in REQUESTS {
        let request = (connected, options, program);
        let fewer = instructions(request, BEFORE)?;
        let more = instructions(request, BEFORE + COUNTED)?;
        counts.insert(format!("{name}: instructions"), (more - fewer) / COUNTED as f64);
        let fewer = system_calls(request, BEFORE)?;
        let more = system_calls(request, BEFORE + COUNTED)?;
        for call in SYSTEM_CALLS {
            let of = |calls: &BTreeMap<String, f64>| calls.get(call).copied().unwrap_or_default();
            counts.insert(format!("{name}: {call}"), ((of(&more) - of(&fewer)) / COUNTED as f64).max(0.0));
        }
    }
    Ok(counts)
}

/// A request: the connection, options of the server, and the program.
type Request<'r> = (Connected, &'r [&'r str], &'r str);

/// Runs a server by the command `under`, which answers `times` requests and ends. `folder` has its files.
fn serve(
    mut under: Command,
    folder: &Path,
    (connected, options, program): Request<'_>,
    times: usize,
) -> Result<(), Box<dyn Error>> {
    // Under valgrind a program takes so long that its client might have given up on it and sent it again.
    let guards = json!([{"tool": "echo/keep", "argument": "text", "from": ["program"]}]);
    let guards = if options.contains(&GUARD) { guards } else { json!([]) };
    let policy = json!({"repeats": "make", "guards": guards});
    let echo = json!({"command": std::env::current_exe()?, "args": ["--echo"]});
    let servers = json!({"mcpServers": {"echo": echo}, "policy": policy});
    let config = folder.join("servers.json");
    std::fs::write(&config, servers.to_string())?;
    let option = |option: &&str| match *option {
        "AUDIT" => folder.join("audit").to_string_lossy().into_owned(),
        "sqlite:STORE" => format!("sqlite:{}", folder.join("store").display()),
        option => option.to_owned(),
    };
    let options = options.iter().filter(|option| **option != GUARD).map(option);
    under.arg(env!("CARGO_BIN_EXE_lispbox")).arg("serve").arg("--config").arg(config).args(options);
    under
        .env("LISPBOX_STORE", "memory")
        .env("LISPBOX_NO_PREFETCH", "true")
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_DATA_HOME");
    if connected != Stdio {
        under.args(["--http", "127.0.0.1:0"]);
        return serve_http(under, connected == Session, program, times);
    }
    let mut server = Pipe::start(&mut under);
    for _ in 0..times {
        let reply = server.request("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}));
        if reply["result"]["isError"] == true || reply.get("result").is_none() {
            return Err(format!("{program}: {reply}").into());
        }
    }
    server.finish();
    Ok(())
}

/// Runs a server over HTTP, which answers `times` requests of one connection and ends.
fn serve_http(under: Command, in_session: bool, program: &str, times: usize) -> Result<(), Box<dyn Error>> {
    let mut server = Server::of(under);
    let session = in_session.then(|| server.initialize("", "2025-06-18").expect("a session"));
    let mut connection = server.connect();
    for _ in 0..times {
        let (text, failed) = match &session {
            Some(session) => connection.post(&session.head(), &evaluation(1, program)).result(),
            None => connection.eval("", program, None),
        };
        if failed {
            return Err(format!("{program}: {text}").into());
        }
    }
    drop(connection);
    // The command that counts ends with the server, which it may have started.
    let own = server.process.id();
    let started = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"))?;
    let served = started.split_whitespace().next().map_or_else(|| own.to_string(), str::to_owned);
    Command::new("kill").args(["-TERM", &served]).status()?;
    server.process.wait()?;
    Ok(())
}

/// The instructions of a server that answers `times` requests.
fn instructions(request: Request<'_>, times: usize) -> Result<f64, Box<dyn Error>> {
    let folder = scratch()?;
    let report = folder.join("report");
    let mut valgrind = counts::valgrind();
    valgrind.arg(format!("--log-file={}", report.display()));
    serve(valgrind, &folder, request, times)?;
    let report = std::fs::read_to_string(report)?;
    std::fs::remove_dir_all(folder)?;
    let count = counts::instructions(&report).ok_or_else(|| format!("valgrind counted nothing:\n{report}"))?;
    Ok(count as f64)
}

/// The system calls of a server that answers `times` requests, without those of the server behind it.
fn system_calls(request: Request<'_>, times: usize) -> Result<BTreeMap<String, f64>, Box<dyn Error>> {
    let folder = scratch()?;
    let report = folder.join("report");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e"]).arg(format!("trace=execve,{}", SYSTEM_CALLS.join(","))).arg("-o").arg(&report);
    serve(strace, &folder, request, times)?;
    let report = std::fs::read_to_string(report)?;
    std::fs::remove_dir_all(folder)?;
    let calls: Vec<(&str, &str)> = report
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .filter_map(|(process, call)| Some((process, call.trim_start().split_once('(')?.0)))
        .collect();
    let executed = calls.iter().filter(|(_, call)| *call == "execve").map(|(process, _)| *process);
    let others: HashSet<&str> = executed.skip(1).collect();
    let mut counts = BTreeMap::new();
    for (_, call) in calls.iter().filter(|(process, _)| !others.contains(process)) {
        *counts.entry((*call).to_owned()).or_default() += 1.0;
    }
    Ok(counts)
}

/// Makes a folder of its own for a server.
fn scratch() -> Result<PathBuf, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("lispbox-requests-{}", std::process::id()));
    match std::fs::remove_dir_all(&folder) {
        Err(problem) if problem.kind() != std::io::ErrorKind::NotFound => return Err(problem.into()),
        _ => std::fs::create_dir_all(&folder)?,
    }
    Ok(folder)
}

/// Compares the counts with the table.
fn check(counts: &Counts) -> Result<(), Box<dyn Error>> {
    let table = std::fs::read_to_string(TABLE)?;
    let recorded: Counts = counts::recorded(&table);
    let mut more = Vec::new();
    for (name, count) in counts {
        let before = recorded.get(name).copied().ok_or_else(|| format!("{name} is not recorded; {}", how()))?;
        println!("{count:>12.1}  {before:>12.1}  {name}");
        let most = match name.rsplit_once(": ") {
            Some((_, "instructions")) => before * INSTRUCTIONS,
            Some((_, "clone3")) => before + THREADS,
            _ => before * SCHEDULED.0 + SCHEDULED.1,
        };
        if *count > most {
            more.push(name.as_str());
        }
    }
    match more.is_empty() {
        true => Ok(()),
        false => Err(format!("more than recorded: {}. If that is meant, {}", more.join(", "), how()).into()),
    }
}

/// The advice on counts that are meant to have changed.
fn how() -> &'static str {
    "record anew: `cargo bench --bench requests -- --record`"
}

/// Writes the table.
fn record(counts: &Counts) -> Result<(), Box<dyn Error>> {
    let mut table = "# Counts of requests\n\n\
         The instructions (valgrind) and system calls (strace) of one request, through the real binary; on standard input \
         and output, unless it says otherwise. `.ci/run` fails when a request takes 5% more instructions, or a quarter and two more system calls of \
         a kind. After a change that is meant to change them, record them anew:\n\n```sh\ncargo bench --bench requests -- --record\n```\n\n| request | count |\n|---|--:|\n"
        .to_owned();
    for (name, count) in counts {
        writeln!(table, "| {name} | {count:.1} |")?;
    }
    std::fs::write(TABLE, table)?;
    println!("written to {TABLE}");
    Ok(())
}
