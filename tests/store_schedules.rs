//! Tests sessions under random schedules: servers that share a store are stopped, resumed, killed and delayed at every
//! step of lease, read, tool call, write, renewal and close, and a model checks each reply.
//!
//! The model requires: an `ok` reply means that the effects are in the store, and no acknowledged effect is lost; a
//! refusal means that the effects are not in the store, unless it reports that this is unknown; and the tool calls of
//! two programs are never interleaved.
//!
//! The test takes about a minute. `LISPBOX_SCHEDULES_SECONDS=3600` sets its duration, and `LISPBOX_SCHEDULES_SEED` sets
//! its first seed, which each run prints. Timing depends on the machine, so that a seed reproduces a schedule only
//! approximately.
#![cfg(all(feature = "cli", target_os = "linux"))]

#[path = "databases/mod.rs"]
mod databases;
#[path = "http_client/mod.rs"]
mod http_client;
#[path = "peers/mod.rs"]
mod peers;
#[path = "relay/mod.rs"]
mod relay;
#[path = "steps/mod.rs"]
mod steps;

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use databases::{Database, Kind};
use http_client::{Server, handle};
use relay::Relay;
use serde_json::Value;
use steps::Steps;

/// The number of concurrent schedules on one store, and the number of consecutive ones unless a duration is given.
const BESIDE: usize = 3;
const AFTER: usize = 2;

/// Time for which a server is stopped in order to lose its lease.
const LONG: Duration = Duration::from_millis(11_500);

/// Random numbers derived from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most))
    }
}

/// The effects that the reply of a program reports.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The effects are in the store, which now holds this log.
    Kept(Vec<u32>),
    /// The effects are not in the store; nothing was evaluated.
    Refused,
    /// The effects are not in the store, though tools were called.
    NotKept,
    /// It is unknown whether the effects are in the store.
    Perhaps,
    /// The session no longer existed.
    Closed,
}

/// A program that ran, with the times of its request and its reply.
#[derive(Clone, Debug)]
struct Ran {
    number: u32,
    begun: Instant,
    ended: Instant,
    outcome: Outcome,
}

/// Sleeps for that time, as a schedule requires.
fn pass(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::thread::park_timeout(time - begun.elapsed().min(time));
    }
}

/// Builds a program that calls the step tool and adds its number to the session's log.
fn adding(number: u32) -> String {
    format!(
        "(do (step/taken {{:text \"{number}-1\"}}) (def log (conj log {number})) (step/taken {{:text \"{number}-2\"}})
             (def size (count log)) (step/taken {{:text \"{number}-3\"}}) log)"
    )
}

const CLOSING: u32 = 1_000;

/// Builds a program that closes the session.
fn closing() -> String {
    format!("(do (step/taken {{:text \"{CLOSING}-1\"}}) (session/close) [])")
}

/// Extracts the outcome from a reply; unknown if the server ended without replying.
fn outcome(reply: Option<Value>) -> Outcome {
    let Some(result) = reply else { return Outcome::Perhaps };
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if result["isError"] != true {
        // Before it, the reply may tell of a program that was cut off.
        let first = text.lines().find(|line| !line.starts_with("[made before ")).unwrap_or_default();
        let numbers = first.trim_start_matches('[').trim_end_matches(']').split_whitespace();
        return Outcome::Kept(numbers.map(|number| number.parse().expect("a number")).collect());
    }
    match result["structuredContent"]["error"].as_str() {
        Some("StoreUnavailable" | "SessionBusy") => {
            assert!(text.contains("nothing was evaluated"), "{text}");
            Outcome::Refused
        }
        // The lease of the session is lost, or that of the record of the run.
        Some("LeaseLost" | "Cancelled") => Outcome::NotKept,
        // The record of the run has the fate of the session, under a lease of its own.
        Some("ToolDenied") if text.contains("cannot be stored with its run, so it is not made") => Outcome::NotKept,
        Some("SessionNotKept") if text.contains("may not have been kept") => Outcome::Perhaps,
        Some("SessionNotKept") if text.contains("could not be kept") => Outcome::NotKept,
        Some("SessionNotClosed") if text.contains("is unknown") => Outcome::Perhaps,
        Some("SessionNotClosed") => Outcome::NotKept,
        Some("UnknownSession") => Outcome::Closed,
        _ => panic!("{result}"),
    }
}

/// A store and the means of reaching it.
enum Place {
    File(PathBuf),
    Database(Box<Database>),
}

impl Place {
    fn url(&self) -> String {
        match self {
            Place::File(path) => format!("sqlite:{}", path.display()),
            Place::Database(database) => database.url(),
        }
    }
}

/// Two servers on one store, each with its own connection path.
struct World<'p> {
    place: &'p Place,
    steps: Steps,
    relays: Vec<Relay>,
    servers: Vec<Mutex<Server>>,
}

impl World<'_> {
    fn new(place: &Place) -> World<'_> {
        let relays = match place {
            Place::File(_) => Vec::new(),
            Place::Database(database) => (0..2).map(|_| Relay::to(vec![database.address()])).collect(),
        };
        let mut world = World { place, steps: Steps::new(), relays, servers: Vec::new() };
        world.servers = (0..2).map(|which| Mutex::new(world.server(which))).collect();
        world
    }

    /// Starts a server; its store must be reachable at this time.
    fn server(&self, which: usize) -> Server {
        let url = match (self.place, self.relays.get(which)) {
            (Place::Database(database), Some(relay)) => {
                relay.go_on();
                database.url_at(relay.address)
            }
            (place, _) => place.url(),
        };
        let file = self.steps.configuration();
        Server::start(&["--store", &url, "--config", file.to_str().expect("a path")], &[])
    }

    /// Runs the program with that number.
    fn run(&self, which: usize, number: u32, session: &str) -> Ran {
        let client = self.servers[which].lock().expect("nobody panics").client;
        let program = if number == CLOSING { closing() } else { adding(number) };
        let begun = Instant::now();
        let outcome = outcome(client.try_to_eval(&program, Some(session)));
        Ran { number, begun, ended: Instant::now(), outcome }
    }

    /// Blocks the path from a server to its store for a while, beginning at a random message.
    fn hold_up(&self, which: usize, random: &mut Random) {
        let time = random.millis(6_000);
        match self.place {
            Place::File(path) => {
                let connection = rusqlite::Connection::open(path).expect("it opens");
                connection.busy_timeout(Duration::from_secs(10)).expect("it is set");
                if connection.execute_batch("BEGIN IMMEDIATE").is_ok() {
                    pass(time);
                }
            }
            Place::Database(_) => {
                let count = u32::try_from(random.below(12)).expect("it is small");
                self.relays[which].hold_up_after(count);
                pass(time);
                self.relays[which].go_on();
            }
        }
    }
}

/// Creates a session with an empty log. Retries, because concurrent schedules may lock a shared file beyond the server's
/// timeout.
fn fresh_session(world: &World<'_>) -> String {
    let begun = Instant::now();
    loop {
        let (text, is_error) = world.servers[0].lock().expect("not poisoned").eval("", "(def log [])", None);
        if !is_error {
            return handle(&text);
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{text}");
    }
}

/// Runs one schedule in a new session, and checks its outcome.
fn schedule(place: &Place, seed: u64) {
    let mut random = Random(seed);
    let world = World::new(place);
    let session = fresh_session(&world);
    let mut taken = vec![format!("seed {seed} on {}", place.url().split(':').next().unwrap_or_default())];
    let mut ran: Vec<Ran> = Vec::new();
    std::thread::scope(|scope| {
        let mut running: [Option<ScopedJoinHandle<'_, Ran>>; 2] = [None, None];
        let (mut number, mut was_long) = (0, false);
        let begin = |which: usize, number: u32| {
            let (world, session) = (&world, &session);
            scope.spawn(move || world.run(which, number, session))
        };
        for _ in 0..6 + random.below(5) {
            let which = usize::try_from(random.below(2)).expect("it is small");
            if running[which].as_ref().is_some_and(ScopedJoinHandle::is_finished) {
                ran.extend(running[which].take().map(|one| one.join().expect("its reply is one of ours")));
            }
            if running[which].is_none() {
                number += 1;
                running[which] = Some(begin(which, number));
                taken.push(format!("run {number} on {which}"));
            }
            let action = random.below(8);
            taken.push(format!("action {action} on {which}"));
            match action {
                0 | 1 => pass(random.millis(400)),
                2 => {
                    pass(random.millis(60));
                    world.servers[which].lock().expect("nobody panics").pause();
                    pass(random.millis(900));
                    world.servers[which].lock().expect("nobody panics").go_on();
                }
                3 if !was_long => {
                    was_long = true;
                    world.steps.hold();
                    pass(random.millis(300));
                    world.servers[which].lock().expect("nobody panics").pause();
                    world.steps.let_go();
                    let stopped = Instant::now();
                    let other = 1 - which;
                    while stopped.elapsed() < LONG {
                        ran.extend(running[other].take().map(|one| one.join().expect("its reply is one of ours")));
                        number += 1;
                        running[other] = Some(begin(other, number));
                        pass(random.millis(4_000));
                    }
                    world.servers[which].lock().expect("nobody panics").go_on();
                }
                4 => {
                    pass(random.millis(120));
                    let mut server = world.servers[which].lock().expect("nobody panics");
                    server.process.kill().expect("it runs");
                    server.process.wait().expect("a child");
                    *server = world.server(which);
                }
                5 => {
                    world.steps.hold();
                    pass(random.millis(1_500));
                    world.steps.let_go();
                }
                6 if !world.relays.is_empty() => world.relays[which].lose_an_answer(),
                _ => world.hold_up(which, &mut random),
            }
        }
        if random.below(3) == 0 {
            let which = usize::try_from(random.below(2)).expect("it is small");
            ran.extend(running[which].take().map(|one| one.join().expect("its reply is one of ours")));
            running[which] = Some(begin(which, CLOSING));
            taken.push(format!("close on {which}"));
            match random.below(3) {
                0 => world.hold_up(which, &mut random),
                1 => {
                    pass(random.millis(60));
                    let mut server = world.servers[which].lock().expect("nobody panics");
                    server.process.kill().expect("it runs");
                    server.process.wait().expect("a child");
                    *server = world.server(which);
                }
                _ => {}
            }
        }
        for one in running.into_iter().flatten() {
            ran.push(one.join().expect("its reply is one of ours"));
        }
    });
    let begun = Instant::now();
    let last = loop {
        read_at_last(&world, &session, &mut ran);
        match &ran.last().expect("it ran").outcome {
            Outcome::Kept(log) => break Some(log.clone()),
            Outcome::Closed => break None,
            other => assert!(begun.elapsed() < Duration::from_secs(40), "{other:?} at last; {taken:#?}"),
        }
    };
    check(&ran, last, &world.steps.calls(), &taken);
}

/// Reads the final contents of the session, under a lease that fences off all writes that are still in flight.
fn read_at_last(world: &World<'_>, session: &str, ran: &mut Vec<Ran>) {
    let client = world.servers[0].lock().expect("nobody panics").client;
    let begun = Instant::now();
    let outcome = outcome(client.try_to_eval("log", Some(session)));
    ran.push(Ran { number: 0, begun, ended: Instant::now(), outcome });
}

/// Checks all replies of a schedule against the final log; a closed session has none.
fn check(ran: &[Ran], last: Option<Vec<u32>>, calls: &[String], taken: &[String]) {
    let told = || format!("\n{taken:#?}\n{ran:#?}\ncalls {calls:?}, at last {last:?}");
    let kept: Vec<(&Ran, &Vec<u32>)> = ran
        .iter()
        .filter_map(|one| match &one.outcome {
            Outcome::Kept(log) if one.number != CLOSING => Some((one, log)),
            _ => None,
        })
        .collect();
    // A close whose outcome is unknown leaves both possibilities open.
    let closing = ran.iter().find(|one| one.number == CLOSING);
    match closing.map(|one| &one.outcome) {
        Some(Outcome::Kept(_)) => assert!(last.is_none(), "it is there still{}", told()),
        Some(Outcome::Perhaps) => {}
        _ => assert!(last.is_some(), "it is gone{}", told()),
    }
    let whole =
        last.clone().or_else(|| kept.iter().map(|(_, log)| (*log).clone()).max_by_key(Vec::len)).unwrap_or_default();
    for (one, log) in &kept {
        assert!(whole.starts_with(log), "program {} was acknowledged and is lost{}", one.number, told());
        assert!(one.number == 0 || log.last() == Some(&one.number), "program {} missed itself{}", one.number, told());
        for (earlier, before) in &kept {
            assert!(
                earlier.ended > one.begun || log.starts_with(before),
                "{} saw no {}{}",
                one.number,
                earlier.number,
                told()
            );
        }
    }
    for one in ran.iter().filter(|one| one.number != 0) {
        let is_there = whole.contains(&one.number);
        assert!(
            !is_there || !matches!(one.outcome, Outcome::Refused | Outcome::NotKept | Outcome::Closed),
            "{one:?}{}",
            told()
        );
        let called = calls.iter().filter(|call| call.starts_with(&format!("{}-", one.number))).count();
        assert!(called == 0 || one.outcome != Outcome::Refused, "{one:?} has called{}", told());
        assert!(called == 3 || one.number == CLOSING || !matches!(one.outcome, Outcome::Kept(_)), "{one:?}{}", told());
    }
    let owners: Vec<&str> = calls.iter().filter_map(|call| call.split('-').next()).collect();
    for (at, owner) in owners.iter().enumerate() {
        let next = owners[at..].iter().position(|other| other != owner).map_or(owners.len(), |length| at + length);
        assert!(!owners[next..].contains(owner), "calls of {owner} are interleaved with others{}", told());
    }
    let mut once = whole.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), whole.len(), "something counts twice{}", told());
}

#[test]
fn schedules_of_stops_kills_and_delays_hold_on_every_store() {
    let variable = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seed = variable("LISPBOX_SCHEDULES_SEED").unwrap_or_else(|| {
        let handle = lispbox::store::handle().expect("random");
        handle.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)))
    });
    println!("LISPBOX_SCHEDULES_SEED={seed}");
    let time = variable("LISPBOX_SCHEDULES_SECONDS").map(Duration::from_secs);
    let folder = tempfile::tempdir().expect("a folder");
    let databases =
        Kind::ALL.into_iter().filter_map(Database::start).map(|database| Place::Database(Box::new(database)));
    let places: Vec<Place> = std::iter::once(Place::File(folder.path().join("sessions.db"))).chain(databases).collect();
    let begun = Instant::now();
    let count = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (at, place) in places.iter().enumerate() {
            for beside in 0..BESIDE {
                let mut random = Random(seed ^ ((at * BESIDE + beside) as u64) << 32);
                running.push(scope.spawn(move || {
                    let mut count = 0;
                    while time.map_or(count < AFTER, |time| begun.elapsed() < time) {
                        schedule(place, random.next());
                        count += 1;
                    }
                    count
                }));
            }
        }
        running.into_iter().map(|one| one.join().expect("a schedule does not hold")).sum::<usize>()
    });
    println!("{count} schedules in {:.0?}", begun.elapsed());
}
