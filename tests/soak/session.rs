//! One session of the soak: sends requests one after another and checks each reply against the expected outcome.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Request, Silence};
use super::field::Field;
use super::jobs::kept::{Kept, WITHDRAWN};
use super::jobs::wrong::Wrong;
use super::jobs::{Job, Outcome, good, hostile, tools, wrong};
use super::ledger::{Reply, beginning};
use super::processes::Role;
use crate::mailbox::chance::Chance;

/// Maximum bytes of a reply for which the program sets no limit of its own, including the mark of a truncation.
const OUTPUT: usize = (32 << 10) + 200;

/// Maximum attempts to read a session when kills interrupt the request.
const LOOKS: usize = 20;

/// A session under test and its expected contents.
pub struct Session<'a> {
    field: &'a Field,
    /// Source of one seed per request, so that the plan does not depend on the kills.
    seeds: Chance,
    chance: Chance,
    handle: Option<String>,
    kept: Kept,
    /// The beginning of the latest request.
    latest: String,
}

/// The verdict on a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The reply is correct.
    Right,
    /// The reply reports an error that a kill explains.
    Disturbed,
    /// The reply is wrong; the mistake has been recorded.
    Wrong,
}

impl<'a> Session<'a> {
    /// Creates a session whose requests are derived from `seeds`.
    pub fn new(field: &'a Field, mut seeds: Chance) -> Session<'a> {
        let chance = Chance::new(seeds.next());
        Session { field, seeds, chance, handle: None, kept: Kept::default(), latest: String::new() }
    }

    /// Makes requests until the field is stopped, then checks the contents of the session once more.
    pub fn play(mut self) {
        let outcome = loop {
            if self.field.is_stopped() {
                break self.look(None);
            }
            if let Err(silence) = self.step() {
                break Err(silence);
            }
        };
        if let Err(silence) = outcome {
            let got = match silence {
                Silence::Late => "none in a minute and a half",
                Silence::Ended => "the server is gone",
            };
            // All sessions notice the end of the server; only the first one reports it.
            if !self.field.is_stopped() || silence == Silence::Late {
                self.field.mistake(&self.latest, "a reply", got);
            }
            self.field.stop();
        }
    }

    fn step(&mut self) -> Result<(), Silence> {
        if self.handle.is_none() {
            return self.begin();
        }
        self.chance = Chance::new(self.seeds.next());
        match self.chance.below(200) {
            0 => {
                self.inside(&Kept::leave())?;
                self.begin()
            }
            1..=8 => self.look(None),
            9..=14 => self.describe(),
            15..=24 => self.withdraw(),
            25..=44 => self.send_wrong(),
            45..=84 => {
                let job = self.kept.change(&mut self.chance, &self.field.mailbox);
                self.inside(&job)
            }
            85..=104 => {
                let job = self.kept.use_it(&mut self.chance);
                self.inside(&job)
            }
            105..=134 => {
                let job = tools::job(&mut self.chance, &self.field.mailbox);
                self.anywhere(&job)
            }
            135..=159 => {
                let job = good::job(&mut self.chance);
                self.anywhere(&job)
            }
            _ => {
                let job = hostile::job(&mut self.chance);
                self.anywhere(&job)
            }
        }
    }

    /// Begins a new session and abandons the current one, if any.
    fn begin(&mut self) -> Result<(), Silence> {
        self.handle = None;
        let (kept, job) = Kept::begin(&mut self.chance);
        let (verdict, outcome) = self.run(&job, None)?;
        if verdict == Verdict::Right {
            self.handle = outcome.record["session"].as_str().map(str::to_owned);
            self.kept = kept;
            self.field.tally(|tally| tally.sessions += 1);
            if self.handle.is_none() {
                self.field.mistake(&job.program, "the handle of the session", beginning(&outcome.shown));
            }
        }
        Ok(())
    }

    /// Runs a program that does not depend on session state, either in the session or in a fresh one.
    fn anywhere(&mut self, job: &Job) -> Result<(), Silence> {
        if self.chance.below(4) > 0 {
            return self.inside(job);
        }
        self.run(job, None).map(|_| ())
    }

    /// Runs a program in the session.
    fn inside(&mut self, job: &Job) -> Result<(), Silence> {
        let Some(handle) = self.handle.clone() else { return Ok(()) };
        let (verdict, _) = self.run(job, Some(&handle))?;
        self.follow(job, verdict)
    }

    /// Updates the expected contents of the session after a program with the verdict `verdict`.
    fn follow(&mut self, job: &Job, verdict: Verdict) -> Result<(), Silence> {
        match verdict {
            Verdict::Right => {
                if let Some(after) = &job.after {
                    self.kept = after.clone();
                }
                Ok(())
            }
            // After such a reply, the contents must be unchanged.
            Verdict::Disturbed => self.look(None),
            Verdict::Wrong => {
                self.handle = None;
                Ok(())
            }
        }
    }

    /// Reads all contents of the session, which must equal the expected contents or those of `or`.
    fn look(&mut self, or: Option<&Kept>) -> Result<(), Silence> {
        let Some(handle) = self.handle.clone() else { return Ok(()) };
        let job = Kept::look();
        let candidates: Vec<Kept> = std::iter::once(self.kept.clone()).chain(or.cloned()).collect();
        for _ in 0..LOOKS {
            let request = self.ask(&job, Some(&handle));
            let outcome = Outcome::of(&request.reply()?.message);
            self.field.tally(|tally| tally.count(&outcome.text));
            if self.is_disturbed(false, &outcome, request.made()) {
                continue;
            }
            match candidates.iter().find(|kept| kept.shown() == outcome.text) {
                Some(kept) => {
                    self.kept = kept.clone();
                    self.field.tally(|tally| tally.looks += 1);
                }
                None => {
                    let expected: Vec<String> = candidates.iter().map(Kept::shown).collect();
                    self.field.mistake(&job.program, expected.join(" or "), beginning(&outcome.shown));
                    self.handle = None;
                }
            }
            return Ok(());
        }
        Ok(())
    }

    /// Makes a request and cancels it.
    fn withdraw(&mut self) -> Result<(), Silence> {
        let Some(handle) = self.handle.clone() else { return Ok(()) };
        let is_inside = self.chance.below(2) > 0;
        let job = if is_inside { self.kept.endless(&mut self.chance) } else { hostile::job(&mut self.chance) };
        let pause = Duration::from_millis(self.chance.below(100));
        let request = self.ask(&job, is_inside.then_some(&handle));
        std::thread::sleep(pause);
        if self.field.client.withdraw(&request) {
            let Some(after) = &job.after else { return Ok(()) };
            let withdrawn = Instant::now();
            self.look(Some(after))?;
            let took = withdrawn.elapsed();
            self.field.tally(|tally| tally.freed(took));
            if took > WITHDRAWN {
                let expected = format!("the session goes on within {} s of its withdrawal", WITHDRAWN.as_secs());
                self.field.mistake(&job.program, expected, format!("it went on after {:.1} s", took.as_secs_f64()));
            }
            return Ok(());
        }
        let (verdict, _) = self.judge(&job, &request, &request.reply()?);
        if is_inside { self.follow(&job, verdict) } else { Ok(()) }
    }

    /// Requests a description: the list of tools, the session's environment, or a search for a tool.
    fn describe(&mut self) -> Result<(), Silence> {
        let Some(handle) = self.handle.clone() else { return Ok(()) };
        let (method, params, parts): (_, Value, &[&str]) = match self.chance.below(3) {
            0 => ("tools/list", json!({}), &["lisp_eval", "lisp_env"]),
            1 => {
                let arguments = json!({"session": handle});
                (
                    "tools/call",
                    json!({"name": "lisp_env", "arguments": arguments}),
                    &["log", "total", "scale", "record"],
                )
            }
            _ => {
                let arguments = json!({"query": "get-email", "session": handle});
                ("tools/call", json!({"name": "lisp_env", "arguments": arguments}), &["get-email"])
            }
        };
        self.latest = format!("{method} {params}");
        let request = self.field.client.request(method, params);
        let message = request.reply()?.message;
        let outcome = Outcome::of(&message);
        self.field.tally(|tally| tally.count(&outcome.text));
        let text = message["result"].to_string();
        let is_disturbed = self.is_disturbed(false, &outcome, request.made());
        if !is_disturbed && !parts.iter().all(|part| text.contains(part)) {
            self.field.mistake(&self.latest, parts.join(" and "), beginning(&text));
        }
        Ok(())
    }

    /// Sends a message that no client should send.
    fn send_wrong(&mut self) -> Result<(), Silence> {
        let client = &self.field.client;
        let (request, what, expected) = match wrong::message(&mut self.chance) {
            Wrong::Unanswered(line) => {
                client.send(&line);
                self.field.tally(|tally| tally.unanswerable += 1);
                return Ok(());
            }
            Wrong::Request(method, params, expected) => {
                let what = beginning(&format!("{method} {params}"));
                (client.request(method, params), what, expected)
            }
            Wrong::Line(line, expected) => {
                let mut what = String::new();
                let request = client.request_as(|number| {
                    let line = line(number);
                    what = beginning(&String::from_utf8_lossy(&line));
                    line
                });
                (request, what, expected)
            }
        };
        self.latest = what;
        let outcome = Outcome::of(&request.reply()?.message);
        self.field.tally(|tally| tally.count(&outcome.text));
        if outcome.text != expected {
            self.field.mistake(&self.latest, expected, beginning(&format!("{}: {}", outcome.text, outcome.shown)));
        }
        Ok(())
    }

    /// Sends a request for an evaluation.
    fn ask(&mut self, job: &Job, handle: Option<&String>) -> Request {
        self.latest = beginning(&job.program);
        let arguments = job.arguments(handle.map(String::as_str));
        self.field.client.request("tools/call", json!({"name": "lisp_eval", "arguments": arguments}))
    }

    /// Runs a program and checks the reply.
    fn run(&mut self, job: &Job, handle: Option<&String>) -> Result<(Verdict, Outcome), Silence> {
        let request = self.ask(job, handle);
        let reply = request.reply()?;
        Ok(self.judge(job, &request, &reply))
    }

    fn judge(&self, job: &Job, request: &Request, reply: &Reply) -> (Verdict, Outcome) {
        let outcome = Outcome::of(&reply.message);
        self.field.tally(|tally| tally.count(&outcome.text));
        if !job.expected.fits(&outcome.text) {
            if self.is_disturbed(job.calls_tools(), &outcome, request.made()) {
                return (Verdict::Disturbed, outcome);
            }
            let got = beginning(&format!("{}\n{}", outcome.text, outcome.shown));
            self.field.mistake(&beginning(&job.program), beginning(&job.expected.told()), got);
            return (Verdict::Wrong, outcome);
        }
        if outcome.shown.len() > OUTPUT {
            self.field.mistake(&beginning(&job.program), format!("at most {OUTPUT} bytes"), beginning(&outcome.shown));
            return (Verdict::Wrong, outcome);
        }
        self.time(job, &outcome, request.made(), reply.came);
        (Verdict::Right, outcome)
    }

    /// Records the latency of a good program, and the lateness of a program that a clock stopped.
    fn time(&self, job: &Job, outcome: &Outcome, made: Instant, came: Instant) {
        if job.is_good {
            self.field.tally(|tally| tally.took(came - made));
        }
        let computed = outcome.record["spent"]["compute_ms"].as_f64();
        if let (Some(clock), Some(computed)) = (job.clock, computed) {
            self.field.tally(|tally| tally.late((computed - clock.as_secs_f64() * 1e3).max(0.0) as f32));
        }
    }

    /// True if the reply reports the loss of a process that was killed while the request needed it.
    fn is_disturbed(&self, calls_tools: bool, outcome: &Outcome, made: Instant) -> bool {
        match outcome.text.as_str() {
            "error: WorkerLost" | "error: Busy" => self.field.was_killed(Role::Worker, made),
            "error: ServerUnavailable" => calls_tools && self.field.was_killed(Role::Downstream, made),
            _ => false,
        }
    }
}
