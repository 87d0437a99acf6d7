//! A model of grants under random schedules: two instances on one store look grants up, count calls, wait, go on, and a
//! person gives, revokes and lets expire, in any order.
//!
//! The model requires: a call is made by a grant if, and only if, one covers it at the time at which it is sent; a look-up
//! counts nothing, and each call that is made counts once; a grant that was revoked, used up or has expired while a
//! program waited makes none of its calls; no call is made twice.
//!
//! `LISPBOX_GRANT_SCHEDULES=500` sets the number of schedules on each store. `LISPBOX_GRANT_SEED` sets the first seed, which
//! each run prints. A seed that fails is added to `grant_schedules.seeds`, whose seeds run first from then on.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lispbox::server::{Grant, GrantTerms, StoredGrants, StoredRuns};
use lispbox::store::{Key, Store, open};
use serde_json::json;

use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{configuration, lines, run_of};

/// The number of schedules on each store, and of steps in each.
const SCHEDULES: u64 = 1;
const STEPS: u64 = 24;

/// The file of the seeds that have failed.
const SEEDS: &str = "grant_schedules.seeds";

/// Random numbers derived from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it is small")
    }
}

/// The calls that the grants cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    is_unlimited: bool,
    calls: u32,
}

impl Left {
    /// Returns the most of `calls` calls that are made.
    fn made(self, calls: u32) -> u32 {
        if self.is_unlimited { calls } else { calls.min(self.calls) }
    }
}

/// Two instances on a store, with a person.
struct World {
    instances: [Client; 2],
    grants: StoredGrants,
    runs: StoredRuns,
    folder: PathBuf,
    /// The lines of the calls that were made.
    made: Vec<String>,
    /// The programs that wait, each with the line of its call that a grant may cover.
    parked: Vec<(String, String)>,
    next: u32,
    taken: Vec<String>,
}

impl World {
    fn new(store: &str, folder: &Path) -> World {
        let mut configuration = configuration(folder);
        configuration["policy"] = json!({"ask": ["notes/share", "notes/add"]});
        let opened: Arc<dyn Store> = open(store).expect("it opens");
        World {
            instances: [0, 1].map(|_| Client::start_stateless(&configuration, &["--store", store])),
            grants: StoredGrants::new(Arc::clone(&opened)),
            runs: StoredRuns::new(opened),
            folder: folder.to_owned(),
            made: Vec::new(),
            parked: Vec::new(),
            next: 0,
            taken: Vec::new(),
        }
    }

    fn line(&mut self) -> String {
        self.next += 1;
        format!("line {:03}", self.next)
    }

    fn there(&self) -> Vec<(Key, Grant)> {
        let listed = self.grants.list().expect("a list");
        listed.into_iter().map(|(key, grant)| (key, grant.expect("a grant"))).collect()
    }

    fn left(&self) -> Left {
        let there = self.there();
        let is_unlimited = there.iter().any(|(_, grant)| grant.left.is_none());
        Left { is_unlimited, calls: there.iter().filter_map(|(_, grant)| grant.left).sum() }
    }

    /// Checks that so many calls were counted, at most, and that all were if no grant is unlimited.
    fn counted(&self, before: Left, made: u32) {
        let after = self.left();
        let counted = before.calls - after.calls;
        assert_eq!(after.is_unlimited, before.is_unlimited);
        assert!(counted == made || before.is_unlimited && counted < made, "{counted} of {made}: {before:?} {after:?}");
    }

    /// Checks that exactly the calls of the model were made, each once.
    fn check(&mut self) {
        self.made.sort();
        assert_eq!(lines(&self.folder, "shared"), self.made);
    }

    fn key_of(&self, run: &str) -> Key {
        Key { principal: "local".to_owned(), handle: run.to_owned() }
    }

    fn cancel(&self, run: &str) {
        self.runs.cancel(&self.key_of(run), "the model").expect("it waits");
    }

    /// Gives a grant with these bounds, as a person does who is asked about a call.
    fn give(&mut self, period: Duration, count: Option<u32>) {
        let run = self.parked.first().map(|(run, _)| run.clone());
        let run = run.unwrap_or_else(|| self.park(0));
        let stored = self.runs.read(&self.key_of(&run)).expect("a run");
        let mut calls = stored.open().into_iter().chain(stored.covered());
        let call = calls.find(|call| call.question.tool == "share").expect("it is asked about");
        let terms = GrantTerms { period, count, is_for_these_arguments: false };
        let grant = Grant::new(&stored, &call, terms, "the model").expect("it is in bounds");
        self.grants.give("local", &grant).expect("it is stored");
    }

    /// Makes calls at the same time, at most one on each instance.
    fn call(&mut self, instances: &[usize]) {
        let before = self.left();
        let asked: Vec<(usize, String, i64)> = instances
            .iter()
            .map(|at| {
                let line = self.line();
                let program = format!("(notes/share {{:line \"{line}\"}})");
                let call = json!({"name": "lisp_eval", "arguments": {"program": program}});
                (*at, line, self.instances[*at].begin("tools/call", call))
            })
            .collect();
        let mut made = 0;
        for (at, line, id) in asked {
            let message = self.instances[at].receive();
            assert_eq!(message["id"], id);
            let answer = Answer::of(&message);
            if answer.text.starts_with("Suspended: ") {
                self.cancel(&run_of(&answer));
            } else {
                assert!(answer.text.starts_with(&format!("\"added {line}\"")), "{}", answer.text);
                self.made.push(line);
                made += 1;
            }
        }
        let calls = u32::try_from(instances.len()).expect("few");
        assert_eq!(made, before.made(calls), "{before:?}");
        self.counted(before, made);
    }

    /// Suspends a program whose call of `notes/share` waits because of another; a look-up counts nothing.
    fn park(&mut self, at: usize) -> String {
        let before = self.left();
        let run = self.park_anyhow(at);
        assert_eq!(self.left(), before);
        run
    }

    /// Suspends such a program while a grant may expire.
    fn park_anyhow(&mut self, at: usize) -> String {
        let line = self.line();
        let share = format!("(notes/share {{:line \"{line}\"}})");
        let program = format!(
            "(first (pmap (fn [tool] (if (= tool :share) {share} (notes/add {{:line \"x\"}}))) [:share :add]))"
        );
        let answer = self.instances[at].eval(&program);
        assert!(answer.text.starts_with("Suspended: "), "{}", answer.text);
        let run = run_of(&answer);
        self.parked.push((run.clone(), line));
        run
    }

    /// Approves the call that is asked about, and continues the program.
    fn go_on(&mut self, which: usize, at: usize) {
        let (run, line) = self.parked.remove(which);
        let approve = self.runs.change(&self.key_of(&run), |run| {
            let open: Vec<_> = run.open().into_iter().filter(|call| call.question.tool == "add").collect();
            open.iter().try_for_each(|call| run.decide(&call.number, None, "the model").map(drop))
        });
        approve.expect("it waits");
        let stored = self.runs.read(&self.key_of(&run)).expect("a run");
        let before = self.left();
        let answer = self.instances[at].call("lisp_eval", json!({"run": run}));
        let is_suspended = answer.text.starts_with("Suspended: ");
        // A call that no grant covered when its program was suspended is decided on by a person, whatever came later.
        let is_made = stored.open().is_empty() && before.made(1) == 1;
        assert_eq!(!is_suspended, is_made, "{before:?} {}", answer.text);
        if is_made {
            assert!(answer.text.starts_with(&format!("\"added {line}\"")), "{}", answer.text);
            self.made.push(line);
        } else {
            self.cancel(&run);
        }
        self.counted(before, u32::from(is_made));
    }

    fn step(&mut self, random: &mut Random) {
        let (at, hour) = (random.below(2), Duration::from_secs(3_600));
        let action = random.below(14);
        self.taken.push(format!("{action} on {at}, {:?}, {} parked", self.left(), self.parked.len()));
        match action {
            0 | 1 | 9 => self.give(hour, Some(1 + u32::try_from(random.below(3)).expect("small"))),
            2 => self.give(hour, None),
            3 => {
                if let Some((key, _)) = self.there().into_iter().next() {
                    self.grants.revoke(&key).expect("it is there");
                }
            }
            4 => {
                // All that is there but what expires is in the way.
                self.there().iter().for_each(|(key, _)| self.grants.revoke(key).expect("it is there"));
                self.give(Duration::from_secs(1), None);
                let before = self.parked.len();
                self.park_anyhow(at);
                until(|| self.there().is_empty());
                self.go_on(before, 1 - at);
            }
            5 => self.call(&[at]),
            6 | 10 => self.call(&[0, 1]),
            7 | 11 if self.parked.len() < 6 => _ = self.park(at),
            _ if !self.parked.is_empty() => {
                let which = random.below(self.parked.len());
                self.go_on(which, at);
            }
            _ => {}
        }
        self.check();
    }
}

fn schedule(store: &str, seed: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new(store, folder.path());
    let mut random = Random(seed);
    let run = std::panic::AssertUnwindSafe(|| (0..STEPS).for_each(|_| world.step(&mut random)));
    let outcome = std::panic::catch_unwind(run);
    if let Err(failure) = outcome {
        keep(SEEDS, seed);
        println!("LISPBOX_GRANT_SEED={seed} fails on {store}: {:#?}", world.taken);
        std::panic::resume_unwind(failure);
    }
    // The next schedule finds the store as it was.
    world.there().iter().for_each(|(key, _)| world.grants.revoke(key).expect("it is there"));
    world.parked.iter().for_each(|(run, _)| world.cancel(run));
}

fn seeds(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server").join(name)
}

/// Returns the seeds in a file of this folder.
pub fn kept(name: &str) -> Vec<u64> {
    let kept = std::fs::read_to_string(seeds(name)).unwrap_or_default();
    kept.lines().map(|line| line.parse().expect("a seed")).collect()
}

/// Adds a seed that fails to a file of this folder.
pub fn keep(name: &str, seed: u64) {
    let kept = std::fs::read_to_string(seeds(name)).unwrap_or_default();
    if !kept.lines().any(|line| line == seed.to_string()) {
        std::fs::write(seeds(name), format!("{kept}{seed}\n")).expect("it can be written");
    }
}

/// Returns the number in an environment variable.
pub fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// Returns the first seed: that of an environment variable, or a random one. Prints it.
pub fn first_seed(name: &str) -> u64 {
    let seed = variable(name).unwrap_or_else(|| {
        let handle = lispbox::store::handle().expect("random");
        handle.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)))
    });
    println!("{name}={seed}");
    seed
}

#[test]
fn grants_hold_under_random_schedules_on_two_instances_and_every_store() {
    let seed = first_seed("LISPBOX_GRANT_SEED");
    let count = variable("LISPBOX_GRANT_SCHEDULES").unwrap_or(SCHEDULES);
    let kept = kept(SEEDS);
    crate::databases::on_each_store(|store| {
        let new = (0..count).map(|at| seed.wrapping_add(at));
        kept.iter().copied().chain(new).for_each(|seed| schedule(store, seed));
    });
}
