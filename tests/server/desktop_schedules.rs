//! Random schedules on the usual store: two clients of one person share it, a third process decides, and all of them are
//! killed at any moment. Sometimes another program, such as one that makes backups, locks the store for a while, which no
//! reply shows.
//!
//! The model requires: each definition that a reply acknowledges is in its session; each call that a reply acknowledges
//! was made, and no call twice; a call that a person has denied is never made, and one that was approved is made; a
//! program with a run key is answered as before when it is repeated.
//!
//! `LISPBOX_DESKTOP_SCHEDULES=300` sets their number. `LISPBOX_DESKTOP_SEED` sets the first seed, which each run prints. A
//! seed that fails is added to `desktop_schedules.seeds`, whose seeds run first from then on.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::failed_runs::configuration;
use crate::grant_schedules::{Random, first_seed, keep, kept, variable};
use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{approvals_command, lines, listed, printed, run_of};

/// The number of schedules, and of those that run at the same time.
const SCHEDULES: u64 = 3;
const BESIDE: usize = 3;

/// The number of steps of each client.
const STEPS: usize = 14;

/// The time for which another program locks the store at most, in milliseconds.
const LOCKED: u64 = 700;

/// The time within which all programs come to their end, on a busy machine: leases of dead processes are waited for.
const LONGEST_END: Duration = Duration::from_secs(300);

/// The file of the seeds that have failed.
const SEEDS: &str = "desktop_schedules.seeds";

/// The usual store, in the home folder.
const STORE: &str = ".local/share/lispbox/sessions.db";

/// A program that increments the counter of its session.
const COUNT: &str = "(def n (inc n)) n";

/// What is known of a session with a counter.
#[derive(Debug)]
struct Counter {
    session: String,
    /// The increments that replies have acknowledged.
    sure: i64,
    /// The increments that may have been made.
    perhaps: i64,
}

/// What is known of a call that changes something.
#[derive(Clone, Debug, Default)]
struct Effect {
    /// Its tool: `add`, or `share`, about which a person is asked.
    tool: &'static str,
    /// The run key of its program.
    key: Option<String>,
    /// The first line of a reply that acknowledges it.
    acknowledged: Option<String>,
    /// The run that waits or has waited.
    run: Option<String>,
    /// The decision that a command has acknowledged: true if it was approved.
    decided: Option<bool>,
    /// True if a command that was killed may have denied it.
    is_perhaps_denied: bool,
}

/// What the clients and the person of a schedule share.
struct World {
    home: tempfile::TempDir,
    effects: Mutex<BTreeMap<String, Effect>>,
    /// A session that both clients use.
    shared: Mutex<Counter>,
    is_over: AtomicBool,
}

impl World {
    fn new() -> World {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join(".config/lispbox/config.d");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("notes.json"), configuration(home.path()).to_string()).expect("written");
        let mut client = Client::start_at_home(home.path(), &[], json!({}));
        let shared = Mutex::new(counter(&mut client));
        ended(client);
        World { home, effects: Mutex::default(), shared, is_over: AtomicBool::new(false) }
    }

    fn folder(&self) -> &Path {
        self.home.path()
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.folder().join(STORE).display())
    }

    fn client(&self) -> Client {
        Client::start_at_home(self.folder(), &[], json!({}))
    }

    fn change(&self, line: &str, change: impl FnOnce(&mut Effect)) {
        change(self.effects.lock().expect("no panic").entry(line.to_owned()).or_default());
    }

    /// Waits until no process of a tool is left, nor one of a server that is about to become such a process.
    fn until_tools_end(&self, servers: &[&Client]) {
        let mark = self.folder().display().to_string();
        let names: Vec<String> = servers.iter().map(|server| server.process.id().to_string()).collect();
        until(|| {
            let processes = std::fs::read_dir("/proc").expect("processes").flatten();
            let others = processes.filter(|process| !names.iter().any(|name| *process.file_name() == **name));
            let mut texts = others.map(|process| {
                let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
                [read("cmdline"), read("environ")].concat()
            });
            !texts.any(|text| String::from_utf8_lossy(&text).contains(&mark))
        });
    }

    /// Decides on calls that wait, at random, until the clients have done their steps.
    fn person(&self, mut random: Random) {
        while !self.is_over.load(Ordering::SeqCst) {
            if random.below(8) == 0 {
                self.lock_store(Duration::from_millis(random.next() % LOCKED));
            }
            self.decide_on_one(&mut random, true);
            std::thread::park_timeout(Duration::from_millis(random.next() % 40));
        }
    }

    /// Locks the store against all changes for that time.
    fn lock_store(&self, time: Duration) {
        let path = self.folder().join(STORE);
        let connection = rusqlite::Connection::open(path).expect("it opens");
        connection.busy_timeout(Duration::from_secs(60)).expect("set");
        connection.execute_batch("BEGIN IMMEDIATE").expect("locked");
        std::thread::park_timeout(time);
        connection.execute_batch("ROLLBACK").expect("unlocked");
    }

    /// Decides on a call that waits, if there is one; the process that does so may be killed. Returns whether there was.
    fn decide_on_one(&self, random: &mut Random, may_die: bool) -> bool {
        let runs = listed(&self.store());
        let mut open = Vec::new();
        for run in &runs {
            let calls = run["open"].as_array().expect("calls").iter();
            open.extend(calls.filter(|call| call["unknown"] != true).map(|call| (text(&run["run"]), call)));
        }
        if open.is_empty() {
            return false;
        }
        let (run, call) = &open[random.below(open.len())];
        let is_approved = random.below(3) > 0;
        let action = if is_approved { "approve" } else { "deny" };
        let mut command = approvals_command(&self.store(), &[action, run, "--call", &text(&call["call"])]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        if may_die && random.below(5) == 0 {
            std::thread::park_timeout(Duration::from_millis(random.next() % 60));
            // It may have ended.
            let _ = process.kill();
        }
        let is_done = process.wait().expect("it ends").success();
        self.change(&text(&call["arguments"]["line"]), |effect| match is_done {
            true => effect.decided = Some(is_approved),
            false => effect.is_perhaps_denied |= !is_approved,
        });
        true
    }

    /// A person looks which of the unknown calls happened, and says so. Returns whether there were any.
    fn settle(&self) -> bool {
        let mut is_settled = false;
        for run in listed(&self.store()) {
            for call in run["open"].as_array().expect("calls").iter().filter(|call| call["unknown"] == true) {
                let (line, number) = (text(&call["arguments"]["line"]), text(&call["call"]));
                let happened = lines(self.folder(), made_by(&text(&call["tool"]))).contains(&line);
                let reply = format!("\"added {line}\"");
                let said: &[&str] = if happened { &["--happened", &reply] } else { &["--did-not-happen"] };
                let run = text(&run["run"]);
                let arguments = [&["settle", &run, "--call", &number], said].concat();
                printed(&approvals_command(&self.store(), &arguments).output().expect("it runs"));
                is_settled = true;
            }
        }
        is_settled
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The file of the lines that a tool has written.
fn made_by(tool: &str) -> &'static str {
    if tool == "share" { "shared" } else { "added" }
}

/// Calls a tool. The reply is returned without the line about a program that an earlier process did not end.
fn reply(client: &mut Client, params: Value) -> Answer {
    let mut answer = Answer::of(&client.request("tools/call", params));
    if let Some((first, others)) = answer.text.split_once('\n')
        && first.starts_with("[made before a program was cut off: ")
    {
        answer.text = others.to_owned();
    }
    answer
}

/// Starts a session with a counter.
fn counter(client: &mut Client) -> Counter {
    // Whether or not the connection has a session: a copy has a handle of its own.
    let copied = reply(client, json!({"name": "lisp_eval", "arguments": {"program": "(def n 0) (session/fork)"}}));
    let session = copied.text.lines().next().unwrap_or_default().trim_matches('"').to_owned();
    assert!(!copied.is_error && !session.is_empty(), "{}", copied.text);
    Counter { session, sure: 0, perhaps: 0 }
}

/// Ends a server as its client does when it is restarted.
fn ended(mut client: Client) {
    client.close();
    client.wait();
}

fn number(answer: &Answer) -> i64 {
    let first = answer.text.lines().next().and_then(|line| line.parse().ok());
    first.unwrap_or_else(|| panic!("no number: {}", answer.text))
}

/// One of the clients.
struct Side<'w> {
    world: &'w World,
    name: char,
    random: Random,
    client: Client,
    /// Its own sessions; the last one is in use.
    counters: Vec<Counter>,
    next: usize,
}

impl<'w> Side<'w> {
    fn new(world: &'w World, name: char, seed: u64) -> Side<'w> {
        let mut client = world.client();
        let counters = vec![counter(&mut client)];
        Side { world, name, random: Random(seed), client, counters, next: 0 }
    }

    /// Calls `lisp_eval`, or kills the server during the call; returns the reply unless it was killed.
    fn call(&mut self, arguments: Value, key: Option<&str>) -> Option<Answer> {
        let mut params = json!({"name": "lisp_eval", "arguments": arguments});
        if let Some(key) = key {
            params["_meta"] = json!({"lispbox/run-key": key});
        }
        if self.random.below(6) == 0 {
            self.client.begin("tools/call", params);
            std::thread::park_timeout(Duration::from_millis(self.random.next() % 120));
            self.client.process.kill().expect("it is a child");
            self.client.process.wait().expect("it is a child");
            self.client = self.world.client();
            return None;
        }
        Some(reply(&mut self.client, params))
    }

    fn count(&mut self) {
        let session = self.counters.last().expect("one").session.clone();
        match self.call(json!({"program": COUNT, "session": session}), None) {
            Some(answer) => {
                let counter = self.counters.last_mut().expect("one");
                counter.sure += 1;
                assert_eq!(number(&answer), counter.sure, "{}", answer.text);
            }
            None => {
                self.counters.last_mut().expect("one").perhaps += 1;
                // Its lease is the dead process's for a while.
                let next = counter(&mut self.client);
                self.counters.push(next);
            }
        }
    }

    fn count_together(&mut self) {
        let session = self.world.shared.lock().expect("no panic").session.clone();
        let answer = self.call(json!({"program": COUNT, "session": session}), None);
        let mut shared = self.world.shared.lock().expect("no panic");
        match answer {
            Some(answer) if !answer.is_error => shared.sure += 1,
            // The dead process's lease outlasts the patience of no one; what is refused is not evaluated.
            Some(answer) => assert!(answer.text.contains("nothing was evaluated"), "{}", answer.text),
            None => shared.perhaps += 1,
        }
    }

    fn make(&mut self, tool: &'static str, is_keyed: bool) {
        self.next += 1;
        let line = format!("{}-{}", self.name, self.next);
        let key = is_keyed.then(|| format!("key of {line}"));
        self.world.change(&line, |effect| {
            effect.tool = tool;
            effect.key.clone_from(&key);
        });
        if let Some(answer) = self.call(json!({"program": program(tool, &line)}), key.as_deref()) {
            self.heard(&line, &answer);
        }
    }

    /// Notes what a reply says of a call.
    fn heard(&self, line: &str, answer: &Answer) {
        self.world.change(line, |effect| {
            if answer.text.starts_with("Suspended: ") {
                effect.run = Some(run_of(answer));
            } else if answer.text.starts_with(&format!("\"added {line}\"")) {
                effect.acknowledged = answer.text.lines().next().map(str::to_owned);
            } else {
                let is_expected = ["ToolDenied: ", "RunNotResumed: "].iter().any(|code| answer.text.starts_with(code));
                assert!(is_expected && effect.tool == "share" || is_leased(answer), "{line}: {}", answer.text);
            }
        });
    }

    /// Continues a run that has waited, of either client.
    fn go_on(&mut self) {
        let waiting: Vec<(String, String)> = {
            let effects = self.world.effects.lock().expect("no panic");
            let all = effects.iter().filter_map(|(line, effect)| Some((line.clone(), effect.run.clone()?)));
            all.filter(|(line, _)| effects[line].acknowledged.is_none()).collect()
        };
        if waiting.is_empty() {
            return;
        }
        let (line, run) = &waiting[self.random.below(waiting.len())];
        if let Some(answer) = self.call(json!({"run": run}), None) {
            self.heard(line, &answer);
        }
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..3 => self.count(),
            3 => self.count_together(),
            4 | 5 => self.make("add", true),
            6 => self.make("add", false),
            7 => self.make("share", true),
            8 => self.make("share", false),
            9 | 10 => self.go_on(),
            _ => {
                let next = self.world.client();
                ended(std::mem::replace(&mut self.client, next));
            }
        }
    }
}

/// The program that makes a call of a tool.
fn program(tool: &str, line: &str) -> String {
    format!("(notes/{tool} {{:line \"{line}\"}})")
}

/// True if a reply says that a process which has died may still have the run.
fn is_leased(answer: &Answer) -> bool {
    answer.text.contains("is being resumed") || answer.text.contains("another attempt of it is being evaluated")
}

/// Brings all programs to their end, as the clients and the person of a schedule do sooner or later.
fn end(world: &World, client: &mut Client, random: &mut Random) {
    world.until_tools_end(&[client]);
    let begun = Instant::now();
    loop {
        while world.decide_on_one(random, false) {}
        world.settle();
        let runs = listed(&world.store());
        let left: Vec<&Value> = runs.iter().filter(|run| run["state"] != "ended").collect();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < LONGEST_END, "they do not end: {left:?}");
        for run in left {
            client.call("lisp_eval", json!({"run": run["run"]}));
        }
    }
}

/// Checks all that the model requires of the calls.
fn check_effects(world: &World, client: &mut Client) {
    let effects = world.effects.lock().expect("no panic").clone();
    // A program with a run key is repeated by whoever has not received its reply.
    for (line, effect) in effects.iter().filter(|(_, effect)| effect.key.is_some()) {
        let params = json!({
            "name": "lisp_eval", "arguments": {"program": program(effect.tool, line)},
            "_meta": {"lispbox/run-key": effect.key},
        });
        let mut answer = reply(client, params.clone());
        if answer.text.starts_with("Suspended: ") {
            // It had not begun before.
            let run = run_of(&answer);
            printed(&approvals_command(&world.store(), &["approve", &run]).output().expect("it runs"));
            answer = reply(client, params);
        }
        let first = answer.text.lines().next().map(str::to_owned);
        assert!(effect.acknowledged.is_none() || effect.acknowledged == first, "{line}: {effect:?}: {}", answer.text);
        let is_made = lines(world.folder(), made_by(effect.tool)).contains(line);
        assert_eq!(
            is_made,
            answer.text.starts_with(&format!("\"added {line}\"")),
            "{line}: {effect:?}: {}",
            answer.text
        );
        let may_be_denied = effect.decided == Some(false) || effect.is_perhaps_denied;
        assert!(may_be_denied || is_made, "{line}: {effect:?}: {}", answer.text);
    }
    for (line, effect) in &effects {
        let made = lines(world.folder(), made_by(effect.tool)).iter().filter(|made| *made == line).count();
        assert!(made <= 1, "{line} was made {made} times: {effect:?}");
        assert!(effect.acknowledged.is_none() || made == 1, "{line} is lost: {effect:?}");
        assert!(
            effect.decided.is_none_or(|is_approved| is_approved == (made == 1)),
            "{line}, {made} times: {effect:?}"
        );
    }
    let all = ["added", "shared"].map(|file| lines(world.folder(), file)).concat();
    assert!(all.iter().all(|line| effects.contains_key(line)), "{all:?}");
}

/// Checks that a counter has each increment that was acknowledged.
fn check_counter(client: &mut Client, counter: &Counter) {
    let arguments = json!({"program": "n", "session": counter.session});
    let answer = reply(client, json!({"name": "lisp_eval", "arguments": arguments}));
    let possible = counter.sure..=counter.sure + counter.perhaps;
    assert!(possible.contains(&number(&answer)), "{counter:?}: {}", answer.text);
}

/// Runs a schedule to its end.
fn check(seed: u64) {
    let world = World::new();
    let mut random = Random(seed);
    let mut seeds = [(); 3].map(|()| random.next());
    let counters: Vec<Counter> = std::thread::scope(|scope| {
        let (person, world) = (seeds[2], &world);
        let sides = ['a', 'b'].into_iter().zip(&mut seeds).map(|(name, seed)| {
            let seed = *seed;
            scope.spawn(move || {
                let mut side = Side::new(world, name, seed);
                (0..STEPS).for_each(|_| side.step());
                side.counters
            })
        });
        let sides: Vec<_> = sides.collect();
        scope.spawn(move || world.person(Random(person)));
        let done: Vec<_> = sides.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        world.is_over.store(true, Ordering::SeqCst);
        done.into_iter().flat_map(|done| done.unwrap_or_else(|failure| std::panic::resume_unwind(failure))).collect()
    });
    let mut client = world.client();
    end(&world, &mut client, &mut random);
    check_effects(&world, &mut client);
    counters.iter().for_each(|counter| check_counter(&mut client, counter));
    check_counter(&mut client, &world.shared.lock().expect("no panic"));
}

#[test]
fn nothing_is_lost_and_nothing_made_twice_by_two_clients_that_are_killed() {
    let first = first_seed("LISPBOX_DESKTOP_SEED");
    let count = variable("LISPBOX_DESKTOP_SCHEDULES").unwrap_or(SCHEDULES);
    let seeds = kept(SEEDS).into_iter().chain((0..count).map(|at| first.wrapping_add(at)));
    let (left, failed) = (Mutex::new(seeds), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                loop {
                    let Some(seed) = left.lock().expect("no panic").next() else { return };
                    if std::panic::catch_unwind(|| check(seed)).is_err() {
                        println!("LISPBOX_DESKTOP_SEED={seed} fails");
                        failed.lock().expect("no panic").push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    failed.iter().for_each(|seed| keep(SEEDS, *seed));
    assert!(failed.is_empty(), "seeds that fail: {failed:?}");
}
