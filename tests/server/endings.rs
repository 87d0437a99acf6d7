//! Programs end in every way, on every transport and store, and go on in every way: each change is made once, as the tool
//! itself counts.
//!
//! The product of endings, ways to go on, transports and stores is sampled so that each possible pair of two of them has a
//! cell. `cargo test --test server endings -- --nocapture` prints the cells.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::databases::{Database, Kind, PASSWORD};
use crate::effect_schedules::{settle, until_tools_end};
use crate::http_client::{Connection, Server, Session};
use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::lines;
use serde_json::{Value, json};

/// The lines that each cell has to add, once each.
const ALL: [&str; 6] = ["0", "1", "2", "3", "4", "5"];

/// Adds them.
const CORRECTED: &str = "(doseq [n (range 6)] (notes/add {:line (str n)}))";

/// Programs that fail by themselves after they have added the first four lines, with their limits. `ADD` is a call.
const FAILING: [(&str, &str, &str); 33] = [
    ("doseq", "(doseq [n (range 6)] ADD (when (= n 3) (/ 1 0)))", "{}"),
    ("dotimes", "(dotimes [n 6] ADD (when (= n 3) (nth [] 1)))", "{}"),
    ("loop", "(loop [n 0] ADD (if (= n 3) (/ 1 0) (recur (inc n))))", "{}"),
    ("let", "(let [a (mapv (fn [n] ADD) (range 4)) b (/ 1 0)] [a b])", "{}"),
    ("a function", "(defn f [n] ADD) (mapv f (range 4)) (f)", "{}"),
    ("reduce", "(reduce (fn [sum n] ADD (if (= n 3) (nth [] 1) sum)) 0 (range 6))", "{}"),
    ("a lazy sequence", "(doall (map (fn [n] ADD (when (= n 3) (throw (ex-info \"x\" {})))) (range 6)))", "{}"),
    ("for", "(doall (for [n (range 6)] (do ADD (when (= n 3) (/ 1 0)))))", "{}"),
    ("finally", "(try (dotimes [n 6] ADD (when (= n 3) (throw (ex-info \"x\" {})))) (finally 1))", "{}"),
    (
        "an error that is thrown on",
        "(try (dotimes [n 6] ADD (when (= n 3) (/ 1 0))) (catch Exception e (throw (ex-info \"y\" {} e))))",
        "{}",
    ),
    ("swap!", "(def log (atom [])) (dotimes [n 4] (swap! log conj ADD)) (swap! log inc)", "{}"),
    ("a macro", "(defmacro twice [form] `(do ~form ~form)) (run! (fn [n] ADD) (range 4)) (twice (/ 1 0))", "{}"),
    ("transduce", "(transduce (map (fn [n] ADD (when (= n 3) (/ 1 0)) n)) + (range 6))", "{}"),
    ("a thread of forms", "(->> (range 6) (mapv (fn [n] ADD (when (= n 3) (/ 1 0)))))", "{}"),
    ("case", "(dotimes [n 6] ADD (case n 3 (/ 1 0) nil))", "{}"),
    ("cond", "(dotimes [n 6] ADD (cond (= n 3) (/ 1 0) :else nil))", "{}"),
    ("a multimethod", "(defmulti m identity) (defmethod m :default [n] ADD) (run! m (range 4)) (m)", "{}"),
    ("assert", "(run! (fn [n] ADD) (range 4)) (assert (= 1 2))", "{}"),
    ("a name that is unknown", "(run! (fn [n] ADD) (range 4)) (no-such-name 1)", "{}"),
    ("an error of a tool", "(run! (fn [n] ADD) (range 4)) (notes/try {:line \"x\"})", "{}"),
    ("arguments that are refused", "(run! (fn [n] ADD) (range 4)) (notes/add {:lin \"x\"})", "{}"),
    ("pmap", "(doall (pmap (fn [n] ADD) (range 4))) (doall (pmap (fn [n] (/ 1 n)) [0 1]))", "{}"),
    ("branches that make changes", "(doall (pmap (fn [n] (if (= n 4) (do ADD (/ 1 0)) ADD)) (range 5)))", "{}"),
    ("parallel", "(let [add (fn [n] ADD)] (parallel [(add 0) (add 1) (add 2) (add 3)])) (/ 1 0)", "{}"),
    ("all-settled", "(all-settled (fn [n] ADD) (range 4)) (/ 1 0)", "{}"),
    ("the limit of calls", CORRECTED, "{\"calls\": 4}"),
    ("the limit of fuel", "(run! (fn [n] ADD) (range 4)) (loop [] (recur))", "{\"fuel\": 300000}"),
    (
        "the limit of computing",
        "(run! (fn [n] ADD) (range 4)) (loop [] (recur))",
        "{\"fuel\": 1e12, \"compute\": \"200ms\"}",
    ),
    (
        "the limit of memory",
        "(run! (fn [n] ADD) (range 4)) (loop [v []] (recur (conj v (str (count v)))))",
        "{\"memory\": 8388608, \"fuel\": 1e9}",
    ),
    ("the limit of depth", "(run! (fn [n] ADD) (range 4)) (defn f [n] (inc (f n))) (f 1)", "{}"),
    ("the limit of time", "(run! (fn [n] ADD) (range 4)) (notes/wait {:line \"w\"})", "{\"total\": \"1s\"}"),
    (
        "the limit of a call that reads",
        "(run! (fn [n] ADD) (range 4)) (notes/wait {:line \"w\"})",
        "{\"tool\": \"300ms\"}",
    ),
    ("the limit of a call", "(run! (fn [n] ADD) (range 4)) (notes/hold {:line \"h\"})", "{\"tool\": \"300ms\"}"),
];

/// A way in which a program ends from outside, while it waits for a tool behind the fourth line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Cancelled,
    Disconnected,
    Killed,
    Terminated,
    /// Its worker process dies.
    Worker,
    /// The store fails behind the fourth line, and comes back later.
    Outage,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    /// By itself, as that entry of [`FAILING`].
    Failing(usize),
    /// From outside; true if the outcome of a call is unknown then.
    Cut(Cut, bool),
}

impl Ending {
    fn all() -> Vec<Ending> {
        let failing = (0..FAILING.len()).map(Ending::Failing);
        let cut = [
            (Cut::Cancelled, false),
            (Cut::Cancelled, true),
            (Cut::Disconnected, false),
            (Cut::Disconnected, true),
            (Cut::Killed, false),
            (Cut::Killed, true),
            (Cut::Terminated, false),
            (Cut::Terminated, true),
            (Cut::Worker, false),
            (Cut::Worker, true),
            (Cut::Outage, false),
        ];
        failing.chain(cut.map(|(cut, is_unknown)| Ending::Cut(cut, is_unknown))).collect()
    }

    fn name(self) -> String {
        match self {
            Ending::Failing(at) => FAILING[at].0.to_owned(),
            Ending::Cut(cut, is_unknown) => format!("{cut:?}{}", if is_unknown { ", outcome unknown" } else { "" }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `{"run": …}`: the program as it was; if it fails again, a corrected one.
    Same,
    /// `{"run": …, "program": …}`
    Corrected,
    /// A new program for the rest, with `"repeat": true`.
    ByHand,
    /// A corrected program, sent to another process on the store.
    Elsewhere,
}

const WAYS: [Way; 4] = [Way::Same, Way::Corrected, Way::ByHand, Way::Elsewhere];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Stdio,
    /// Revision 2025-11-25.
    OldHttp,
    /// Revision 2026-07-28.
    NewHttp,
}

const TRANSPORTS: [Transport; 3] = [Transport::Stdio, Transport::OldHttp, Transport::NewHttp];

/// A store: none, SQLite, or a database.
const STORES: [Option<Option<Kind>>; 4] = [None, Some(None), Some(Some(Kind::Redis)), Some(Some(Kind::Postgres))];

#[derive(Clone, Copy, Debug)]
struct Cell {
    ending: Ending,
    way: Way,
    transport: Transport,
    store: Option<Option<Kind>>,
}

impl Cell {
    /// True if something outside of the process has to know the run.
    fn needs_store(&self) -> bool {
        let ends_process = match self.ending {
            Ending::Cut(Cut::Disconnected, _) => self.transport == Transport::Stdio,
            Ending::Cut(cut, _) => matches!(cut, Cut::Killed | Cut::Terminated | Cut::Outage),
            Ending::Failing(_) => false,
        };
        ends_process || self.way == Way::Elsewhere
    }

    /// All cells that are possible.
    fn possible() -> Vec<Cell> {
        let mut cells = Vec::new();
        for ending in Ending::all() {
            for way in WAYS {
                for transport in TRANSPORTS {
                    for store in STORES {
                        let cell = Cell { ending, way, transport, store };
                        cells.extend((store.is_some() || !cell.needs_store()).then_some(cell));
                    }
                }
            }
        }
        cells
    }

    /// A sample in which each pair of an ending, a way, a transport and a store that is possible has a cell.
    fn sampled() -> Vec<Cell> {
        let possible: Vec<(Cell, [String; 6])> =
            Cell::possible().into_iter().map(|cell| (cell, cell.pairs())).collect();
        let mut missing: HashSet<&String> = possible.iter().flat_map(|(_, pairs)| pairs).collect();
        let mut cells = Vec::new();
        while !missing.is_empty() {
            let covers = |pairs: &[String; 6]| pairs.iter().filter(|pair| missing.contains(pair)).count();
            let (cell, pairs) = possible.iter().max_by_key(|(_, pairs)| covers(pairs)).expect("there are some");
            pairs.iter().for_each(|pair| _ = missing.remove(pair));
            cells.push(*cell);
        }
        cells
    }

    /// Returns the pairs of two of its properties.
    fn pairs(&self) -> [String; 6] {
        let Cell { ending, way, transport, store } = self;
        let (ending, store) = (ending.name(), format!("{store:?}"));
        [
            format!("{ending}, {way:?}"),
            format!("{ending}, {transport:?}"),
            format!("{ending}, {store}"),
            format!("{way:?}, {transport:?}"),
            format!("{way:?}, {store}"),
            format!("{transport:?}, {store}"),
        ]
    }

    fn options<'o>(&self, store: Option<&'o str>) -> Vec<&'o str> {
        let mut options = vec!["--grace", "100ms"];
        if let Some(store) = store {
            options.extend(["--store", store]);
        }
        if matches!(self.ending, Ending::Cut(Cut::Worker, _)) {
            options.push("--isolate");
        }
        options
    }
}

/// A server with a client of one transport.
enum Line {
    Stdio(Client),
    Old(Server, Session),
    New(Server),
}

/// A call whose reply is not read.
enum Begun {
    Id(i64),
    Connection(Connection),
}

fn evaluation(arguments: Value) -> Value {
    let params = json!({"name": "lisp_eval", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
}

impl Line {
    fn start(cell: &Cell, folder: &Path, store: Option<&str>) -> Line {
        let options = cell.options(store);
        let servers = folder.join("servers.json");
        let start = || {
            let (file, cache) = (servers.display().to_string(), folder.join("cache").display().to_string());
            let options = [&["--config", &file][..], &options].concat();
            Server::start(&options, &[("LISPBOX_CACHE", &cache), ("LISPBOX_NO_PREFETCH", "true")])
        };
        match cell.transport {
            Transport::Stdio => Line::Stdio(match cell.way {
                Way::Same | Way::ByHand => Client::start(&configuration(folder), &options),
                Way::Corrected | Way::Elsewhere => Client::start_stateless(&configuration(folder), &options),
            }),
            Transport::OldHttp => {
                let server = start();
                let session = server.initialize("", "2025-11-25").expect("a session");
                Line::Old(server, session)
            }
            Transport::NewHttp => Line::New(start()),
        }
    }

    fn process(&mut self) -> &mut Child {
        match self {
            Line::Stdio(client) => &mut client.process,
            Line::Old(server, _) | Line::New(server) => &mut server.process,
        }
    }

    fn call(&mut self, arguments: Value) -> Answer {
        match self {
            Line::Stdio(client) => client.call("lisp_eval", arguments),
            Line::Old(_, session) => Answer::of(&session.post(&evaluation(arguments)).message()),
            Line::New(server) => Answer::of(&server.call("", "lisp_eval", arguments).message()),
        }
    }

    fn begin(&mut self, arguments: Value) -> Begun {
        match self {
            Line::Stdio(client) => {
                Begun::Id(client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments})))
            }
            Line::Old(server, session) => {
                let mut connection = server.connect();
                connection.begin_post(&session.head(), &evaluation(arguments));
                Begun::Connection(connection)
            }
            Line::New(server) => Begun::Connection(server.begin("", "lisp_eval", arguments)),
        }
    }

    /// Reads the reply of a call.
    fn end(&mut self, begun: Begun) -> Answer {
        match (self, begun) {
            (Line::Stdio(client), Begun::Id(id)) => loop {
                let message = client.receive();
                if message["id"] == id {
                    return Answer::of(&message);
                }
            },
            (_, Begun::Connection(mut connection)) => Answer::of(&connection.receive().message()),
            _ => unreachable!("a call is read from where it was made"),
        }
    }

    /// Withdraws a call as clients of the transport do.
    fn cancel(&mut self, begun: Begun) {
        let cancelled =
            |id| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        match (&mut *self, begun) {
            (Line::Stdio(client), Begun::Id(id)) => client.send(&cancelled(id).to_string()),
            (Line::Old(_, session), Begun::Connection(_connection)) => {
                assert_eq!(session.post(&cancelled(7)).status, 202);
            }
            (_, begun) => drop(begun),
        }
    }

    /// Ends the connection, and with it the session of the protocol.
    fn disconnect(&mut self, begun: Begun) {
        match self {
            Line::Stdio(client) => {
                client.close();
                client.wait();
            }
            Line::Old(_, session) => {
                let response = session.client.request("DELETE", "/mcp", &session.head(), b"");
                assert!(response.status < 300, "{response:?}");
                *session = session.client.initialize("", "2025-11-25").expect("a session");
            }
            Line::New(_) => {}
        }
        drop(begun);
    }

    fn signal(&mut self, signal: &str) {
        let process = self.process().id().to_string();
        Command::new("kill").args(["-s", signal, &process]).status().expect("kill runs");
        self.process().wait().expect("a child");
    }

    /// Kills the worker processes of the server.
    fn kill_workers(&mut self) {
        let parent = format!("PPid:\t{}\n", self.process().id());
        let mut killed = 0;
        for process in std::fs::read_dir("/proc").expect("processes").flatten() {
            let read = |name: &str| std::fs::read_to_string(process.path().join(name)).unwrap_or_default();
            if read("status").contains(&parent) && read("cmdline").contains("worker") {
                Command::new("kill").arg("-9").arg(process.file_name()).status().expect("kill runs");
                killed += 1;
            }
        }
        assert!(killed > 0, "the server has a worker");
    }
}

/// The tools of [`failed_runs`](crate::failed_runs), and `notes/wait`, which reads: it appends a line and waits for the file
/// `go`.
fn configuration(folder: &Path) -> Value {
    let mut configuration = crate::failed_runs::configuration(folder);
    let mut wait = configuration["local"]["notes/hold"].clone();
    wait["args"][2] = json!(folder.join("waited"));
    wait["read_only"] = json!(true);
    configuration["local"]["notes/wait"] = wait;
    configuration["policy"]["allow"].as_array_mut().expect("a list").push(json!("notes/wait"));
    configuration
}

/// The databases of the cells; each of the cells at the same time has its own part.
struct Databases {
    redis: Option<Database>,
    postgres: Option<Database>,
    count: AtomicUsize,
    creating: Mutex<()>,
}

impl Databases {
    /// Returns the URL of an empty store; `None` for a database that is not installed.
    fn empty(&self, kind: Option<Kind>, folder: &Path, worker: usize) -> Option<String> {
        match kind {
            None => Some(format!("sqlite:{}", folder.join("sessions.db").display())),
            Some(Kind::Redis) => {
                let database = self.redis.as_ref()?;
                let mut stream = TcpStream::connect(database.address()).expect("it listens");
                let commands = format!("AUTH {PASSWORD}\r\nSELECT {worker}\r\nFLUSHDB\r\nQUIT\r\n");
                stream.write_all(commands.as_bytes()).expect("it reads");
                let mut said = String::new();
                stream.read_to_string(&mut said).expect("it answers");
                assert_eq!(said.matches("+OK").count(), 4, "{said}");
                Some(database.url().replace("/3", &format!("/{worker}")))
            }
            Some(Kind::Postgres) => {
                let database = self.postgres.as_ref()?;
                let name = format!("cell{}", self.count.fetch_add(1, Ordering::Relaxed));
                let _one_at_a_time = self.creating.lock().expect("no panic");
                database.tell(&format!("CREATE DATABASE {name}"));
                Some(database.url().replace("/postgres", &format!("/{name}")))
            }
        }
    }
}

fn go(folder: &Path) {
    std::fs::write(folder.join("go"), "").expect("written");
}

/// Returns the run that a text names.
fn named(answer: &Answer) -> Option<String> {
    let (_, rest) = answer.text.split_once("{\"run\": \"")?;
    rest.split('"').next().map(str::to_owned)
}

/// Waits until the program that was cut off has ended, and returns its run, as a client finds it.
fn found(line: &mut Line) -> Option<String> {
    let mut found = None;
    until(|| {
        let status = line.call(json!({"program": "(json/write (mapv #(select-keys % [:run :state]) (run/status)))"}));
        let text = status.text.lines().find(|line| line.starts_with("\"[")).unwrap_or("\"[]\"").to_owned();
        let runs: String = serde_json::from_str(&text).expect("a text");
        let runs: Vec<Value> = serde_json::from_str(&runs).expect("JSON");
        found = runs.first().and_then(|run| run["run"].as_str()).map(str::to_owned);
        found.is_some() && runs.iter().all(|run| run["state"] != "running")
    });
    found
}

/// Lets the program of a cell end, and returns its run.
fn ended(cell: &Cell, line: &mut Line, folder: &Path, store: Option<&str>, database: &mut Option<Database>) -> String {
    let (cut, is_unknown) = match cell.ending {
        Ending::Failing(at) => {
            let (_, program, limits) = FAILING[at];
            let program = program.replace("ADD", "(notes/add {:line (str n)})");
            let limits: Value = serde_json::from_str(limits).expect("JSON");
            let answer = line.call(json!({"program": program, "limits": limits}));
            assert!(answer.is_error, "{}", answer.text);
            assert!(answer.text.contains("[made before the "), "{}", answer.text);
            return named(&answer).unwrap_or_else(|| panic!("no run: {}", answer.text));
        }
        Ending::Cut(cut, is_unknown) => (cut, is_unknown),
    };
    let (tool, file) = if is_unknown { ("notes/hold", "held") } else { ("notes/wait", "waited") };
    let program = format!("(dotimes [n 6] (when (= n 4) ({tool} {{:line \"h\"}})) (notes/add {{:line (str n)}}))");
    let begun = line.begin(json!({"program": program}));
    until(|| !lines(folder, file).is_empty());
    match cut {
        Cut::Cancelled => line.cancel(begun),
        Cut::Disconnected => line.disconnect(begun),
        Cut::Killed => line.signal("KILL"),
        Cut::Terminated => line.signal("TERM"),
        Cut::Worker => {
            line.kill_workers();
            // The server finds out when it has the result for its worker.
            go(folder);
            let answer = line.end(begun);
            assert!(answer.is_error && answer.text.contains("[made before the "), "{}", answer.text);
        }
        Cut::Outage => {
            let sessions = folder.join("sessions.db");
            let away = folder.join("away");
            match database {
                Some(database) => database.kill(),
                None => std::fs::rename(&sessions, &away).expect("it is there"),
            }
            go(folder);
            let answer = line.end(begun);
            assert!(answer.is_error, "{}", answer.text);
            match database {
                Some(database) => database.restart(),
                None => std::fs::rename(&away, &sessions).expect("it is there"),
            }
            return named(&answer).unwrap_or_else(|| panic!("no run: {}", answer.text));
        }
    }
    if line.process().try_wait().expect("a child").is_some() {
        *line = Line::start(cell, folder, store);
    }
    found(line).expect("a run")
}

/// Checks a cell.
fn check(cell: &Cell, databases: &Databases, worker: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("servers.json"), configuration(folder).to_string()).expect("written");
    let is_outage = matches!(cell.ending, Ending::Cut(Cut::Outage, _));
    let (mut database, store) = match cell.store {
        None => (None, None),
        Some(Some(kind)) if is_outage => match Database::start(kind) {
            None => return,
            Some(database) => {
                let url = database.url();
                (Some(database), Some(url))
            }
        },
        Some(kind) => match databases.empty(kind, folder, worker) {
            None => return,
            url => (None, url),
        },
    };
    let store = store.as_deref();
    let mut line = Line::start(cell, folder, store);
    let run = ended(cell, &mut line, folder, store, &mut database);
    until_tools_end(folder, line.process().id());
    go(folder);
    std::fs::write(folder.join("ready"), "").expect("written");
    // Nobody has to say more to the process that has made the calls.
    if let Some(store) = store.filter(|_| !is_outage || cell.way == Way::Elsewhere) {
        settle(folder, store);
    }
    let corrected = json!({"run": run, "program": CORRECTED, "limits": {"calls": 100}});
    let rest = || {
        let made = lines(folder, "added");
        let rest: Vec<&str> = ALL.into_iter().filter(|line| !made.iter().any(|known| known == line)).collect();
        json!({"program": format!("(doseq [line {rest:?}] (notes/add {{:line line}}))"), "repeat": true})
    };
    let mut other = None;
    let done = match cell.way {
        Way::Same => {
            let again = line.call(json!({ "run": run }));
            if again.is_error { line.call(corrected) } else { line.call(rest()) }
        }
        Way::Corrected => line.call(corrected),
        Way::ByHand => line.call(rest()),
        Way::Elsewhere => {
            let other = other.insert(Line::start(cell, folder, store));
            let done = other.call(corrected.clone());
            // After an outage, the store may learn of a call only when its process has given up to write the outcome.
            match store.filter(|_| done.text.starts_with("Suspended: ")) {
                Some(store) => {
                    settle(folder, store);
                    other.call(corrected)
                }
                None => done,
            }
        }
    };
    // Without a store nobody can settle a call: whoever has looked makes the rest.
    let is_stopped = store.is_none() && done.text.starts_with("EffectRepeated: an earlier attempt has sent ");
    let done = if is_stopped { line.call(rest()) } else { done };
    assert!(!done.is_error, "{}", done.text);
    assert_eq!(lines(folder, "added"), ALL, "{}", done.text);
    let held = lines(folder, "held");
    assert!(held.len() <= 1, "{held:?}");
}

#[test]
fn each_change_is_made_once_whatever_ends_a_program_and_however_it_goes_on() {
    let mut cells = Cell::sampled();
    // Those that wait for the lease of a dead process take longest.
    cells.sort_by_key(|cell| matches!(cell.ending, Ending::Failing(_)));
    let (redis, postgres) = (Database::start(Kind::Redis), Database::start(Kind::Postgres));
    let databases = Databases { redis, postgres, count: AtomicUsize::new(0), creating: Mutex::default() };
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..12 {
            let (cells, databases, next, failed) = (&cells, &databases, &next, &failed);
            scope.spawn(move || {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = std::time::Instant::now();
                    let name =
                        format!("{}, {:?}, {:?}, {:?}", cell.ending.name(), cell.way, cell.transport, cell.store);
                    let outcome = std::panic::catch_unwind(|| check(cell, databases, worker));
                    println!("{name}: {} in {:?}", if outcome.is_ok() { "once" } else { "FAILED" }, begun.elapsed());
                    if outcome.is_err() {
                        failed.lock().expect("no panic").push(name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{} of {} cells: {failed:#?}", failed.len(), cells.len());
}
