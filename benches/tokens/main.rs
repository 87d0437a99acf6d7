//! The cost of tools for a model: five tasks performed with the tools themselves, with the tools after a search for
//! them, and through `lisp_eval`, with 10, 38, 200 and 2,000 tools available; and the time that lispbox adds to a call.
//!
//! `cargo bench --bench tokens` prints tables in Markdown; it needs `python3`, which runs the servers. It counts the
//! tokens (o200k_base) in a model's context at the end: the descriptions of the tools, the calls that it writes and the
//! results that it reads, but neither its own words nor the repeated reading of the context at each turn. Independent
//! calls are made in one turn. All ways must give the same answers, which is checked.
//!
//! The search models clients that load tool definitions on demand. Its figures are a lower bound: nothing but the search tool is in the
//! context at first, the first search with the words of the task finds what is needed, and no definition is read twice.

#[path = "../server/pipe.rs"]
mod pipe;
mod search;
mod tasks;

use pipe::Pipe;
use search::Catalogue;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};
use tasks::TASKS;
use tiktoken_rs::CoreBPE;

/// The numbers of available tools, ten of which are used.
const TOOLS: [usize; 4] = [10, 38, 200, 2_000];

/// The number of tools of a server that is not used.
const OTHERS: usize = 100;

/// The number of repetitions of a measurement.
const REPEATED: usize = 500;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/tokens/office.py");

fn main() {
    let encoding = tiktoken_rs::o200k_base().expect("the vocabulary is built in");
    println!(
        "| task | tools | tokens directly | turns | tokens with a search | turns | tokens through `lisp_eval` | turns \
         | part of directly | part of with a search |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for task in &TASKS {
        for count in TOOLS {
            let mut direct = Direct::new(&encoding, count);
            let answer = (task.directly)(&mut direct);
            let mut searching = Direct::searching(&encoding, count, task.searches);
            assert_eq!((task.directly)(&mut searching), answer, "{}", task.title);
            let mut through = Through::new(&encoding, count);
            assert_eq!(through.run(task.programs), answer, "{}", task.title);
            let spent = [direct.spent, searching.spent, through.spent];
            let cells = spent.map(|spent| format!("{} | {}", spent.tokens, spent.turns)).join(" | ");
            let part = |of: Spent| 100.0 * spent[2].tokens as f64 / of.tokens as f64;
            println!("| {} | {count} | {cells} | {:.1} % | {:.1} % |", task.title, part(spent[0]), part(spent[1]));
        }
    }
    names(&encoding);
    times(&encoding);
}

/// The cost of a task so far.
#[derive(Clone, Copy, Default)]
struct Spent {
    tokens: usize,
    turns: usize,
}

/// The servers that provide `count` tools.
fn servers(count: usize) -> Vec<(String, Vec<String>)> {
    let mut servers = vec![("office".to_string(), vec!["office".to_string()])];
    let mut left = count - 10;
    while left > 0 {
        let (name, tools) = (format!("service-{}", servers.len()), left.min(OTHERS));
        servers.push((name.clone(), vec![name, tools.to_string()]));
        left -= tools;
    }
    servers
}

fn start(arguments: &[String]) -> Pipe {
    Pipe::start(Command::new("python3").arg(SCRIPT).args(arguments))
}

/// The definitions of the tools of each server.
fn definitions(count: usize) -> Vec<Value> {
    let listed = |(_, arguments): (String, Vec<String>)| {
        start(&arguments).request("tools/list", json!({}))["result"]["tools"].take()
    };
    servers(count).into_iter().map(listed).collect()
}

/// Prints the tokens of the names of all tools, which some clients that defer tools put into the context.
fn names(encoding: &CoreBPE) {
    let tokens = TOOLS.map(|count| {
        let names: Vec<String> = (servers(count).iter().zip(definitions(count)))
            .flat_map(|((server, _), tools)| tools_of(tools).into_iter().map(move |tool| (server.clone(), tool)))
            .map(|(server, tool)| format!("mcp__{server}__{}", tool["name"].as_str().expect("a name")))
            .collect();
        format!("{} for {count}", encoding.encode_ordinary(&names.join("\n")).len())
    });
    println!("\nTokens of the names of all tools: {}.", tokens.join(", "));
}

/// The definitions in the reply of a server.
fn tools_of(listed: Value) -> Vec<Value> {
    match listed {
        Value::Array(tools) => tools,
        other => panic!("expected an array, got {other}"),
    }
}

/// A model that calls the tools themselves.
pub struct Direct<'a> {
    encoding: &'a CoreBPE,
    office: Pipe,
    /// The names of the tools whose definitions it has read; `None` if it has read all.
    loaded: Option<Vec<String>>,
    spent: Spent,
}

impl<'a> Direct<'a> {
    /// A model that has the definitions of all tools.
    fn new(encoding: &'a CoreBPE, count: usize) -> Direct<'a> {
        let listed = definitions(count);
        let tokens = listed.iter().map(|tools| encoding.encode_ordinary(&tools.to_string()).len()).sum();
        Direct { encoding, office: start(&servers(count)[0].1), loaded: None, spent: Spent { tokens, turns: 0 } }
    }

    /// A model that searches for tools, all in one turn, before it calls them.
    fn searching(encoding: &'a CoreBPE, count: usize, searches: &[&str]) -> Direct<'a> {
        let catalogue = Catalogue::new(definitions(count).into_iter().flat_map(tools_of).collect());
        let tokens_of = |value: &Value| encoding.encode_ordinary(&value.to_string()).len();
        let mut spent = Spent { tokens: tokens_of(&search::definition()), turns: 1 };
        let mut loaded: Vec<String> = Vec::new();
        for query in searches {
            spent.tokens += tokens_of(&json!({"name": "tool_search", "arguments": {"query": query}}));
            for tool in catalogue.find(query) {
                let name = tool["name"].as_str().expect("a name").to_string();
                if !loaded.contains(&name) {
                    spent.tokens += tokens_of(tool);
                    loaded.push(name);
                }
            }
        }
        Direct { encoding, office: start(&servers(count)[0].1), loaded: Some(loaded), spent }
    }

    /// Makes calls in one turn, and returns the contents of their results: JSON, or the text.
    pub fn turn(&mut self, calls: &[(&str, Value)]) -> Vec<Value> {
        self.spent.turns += 1;
        let mut results = Vec::new();
        for (name, arguments) in calls {
            let is_loaded = self.loaded.as_ref().is_none_or(|loaded| loaded.iter().any(|tool| tool == name));
            assert!(is_loaded, "the searches have not found {name}, but {:?}", self.loaded);
            let call = json!({"name": name, "arguments": arguments});
            let answer = self.office.request("tools/call", call.clone());
            assert!(answer["result"]["isError"] != true, "{answer}");
            let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
            self.spent.tokens += self.encoding.encode_ordinary(&call.to_string()).len();
            self.spent.tokens += self.encoding.encode_ordinary(text).len();
            results.push(serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
        }
        results
    }

    /// Makes one call in a separate turn.
    pub fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.turn(&[(name, arguments)]).remove(0)
    }
}

/// A model that has `lisp_eval`.
struct Through<'a> {
    encoding: &'a CoreBPE,
    lispbox: Pipe,
    spent: Spent,
}

impl<'a> Through<'a> {
    fn new(encoding: &'a CoreBPE, count: usize) -> Through<'a> {
        let mut lispbox = lispbox(count);
        let listed = lispbox.request("tools/list", json!({}))["result"]["tools"].take();
        // A client gives names, descriptions and schemas to the model, and keeps the rest.
        let given = |tool: Value| json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]});
        let tools = Value::from(tools_of(listed).into_iter().map(given).collect::<Vec<_>>()).to_string();
        let instructions = lispbox.hello()["result"]["instructions"].as_str().unwrap_or_default().to_string();
        let tokens = [tools, instructions].iter().map(|text| encoding.encode_ordinary(text).len()).sum();
        Through { encoding, lispbox, spent: Spent { tokens, turns: 0 } }
    }

    /// Evaluates programs one after the other; the value of the last one is the answer. The first one searches for
    /// tools, and must find those that the others call.
    fn run(&mut self, programs: &[&str]) -> Value {
        for program in programs {
            self.spent.turns += 1;
            let text = self.evaluate(program);
            if self.spent.turns == 1 {
                assert!(text.starts_with("(office/"), "{program} finds {text}");
            }
            let call = json!({"name": "lisp_eval", "arguments": {"program": program}}).to_string();
            self.spent.tokens += self.encoding.encode_ordinary(&call).len();
            self.spent.tokens += self.encoding.encode_ordinary(&text).len();
        }
        serde_json::from_str(&self.evaluate("(print (json/write *1))")).expect("JSON")
    }

    /// Returns the reply of lispbox to a program.
    fn evaluate(&mut self, program: &str) -> String {
        let call = json!({"name": "lisp_eval", "arguments": {"program": program}});
        let answer = self.lispbox.request("tools/call", call);
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(answer["result"]["isError"] != true, "{program}: {text}");
        text.to_string()
    }
}

/// Starts lispbox as a client would, with `count` downstream tools.
fn lispbox(count: usize) -> Pipe {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servers.json");
    let server = |(name, arguments): (String, Vec<String>)| {
        let arguments: Vec<Value> =
            std::iter::once(json!(SCRIPT)).chain(arguments.into_iter().map(Value::from)).collect();
        (name, json!({"command": "python3", "args": arguments}))
    };
    let servers: serde_json::Map<String, Value> = servers(count).into_iter().map(server).collect();
    std::fs::write(&file, json!({"mcpServers": servers}).to_string()).expect("it is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["serve", "--limit", "calls=10000", "--config"]).arg(&file);
    command.env("LISPBOX_STORE", "memory").env("LISPBOX_NO_PREFETCH", "true");
    command.env("LISPBOX_CACHE", folder.path().join("cache"));
    Pipe::start(&mut command)
}

/// The median of many measurements.
fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..REPEATED)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[REPEATED / 2]
}

/// Measures the time that lispbox adds to a call, and the time of a search.
fn times(encoding: &CoreBPE) {
    println!("\n| what | median |\n|---|--:|");
    let row = |title: &str, time: Duration| println!("| {title} | {:.2} ms |", time.as_secs_f64() * 1e3);
    let mut office = start(&servers(10)[0].1);
    let call = json!({"name": "find_contact", "arguments": {"name": "Ann Lee"}});
    row("a call of a tool, directly", median(|| _ = office.request("tools/call", call.clone())));
    let mut through = Through::new(encoding, 2_000);
    let mut evaluate = |program: &str| through.evaluate(program);
    evaluate("(def warm 1) (office/find-contact \"Ann Lee\")");
    row("the same call as a program of its own", median(|| _ = evaluate("(office/find-contact \"Ann Lee\")")));
    let begun = Instant::now();
    evaluate(&format!("(dotimes [i {REPEATED}] (office/find-contact \"Ann Lee\"))"));
    row("the same call, one of many in a program (mean)", begun.elapsed() / REPEATED as u32);
    let mut at_once = Duration::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        evaluate("(count (pmap office/look-up-order (range 32)))");
        at_once = at_once.min(begun.elapsed());
    }
    row("32 calls of 100 ms each, side by side (best of 5)", at_once);
    let search = "(apropos \"send a message to someone\")";
    let found = evaluate(search);
    assert!(found.starts_with("(office/send_message "), "{found}");
    row("a search among 2,000 tools", median(|| _ = evaluate(search)));
    println!("\nThe search's answer has {} bytes, {} tokens.", found.len(), encoding.encode_ordinary(&found).len());
}
