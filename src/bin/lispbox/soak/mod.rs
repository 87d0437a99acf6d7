//! `lispbox soak`: concurrent sessions send good and hostile programs through a server, while its workers and its
//! downstream servers are killed. Every request must be answered exactly once, no answer may be wrong, and no resource
//! may grow.

mod chaos;
mod client;
mod field;
mod jobs;
mod ledger;
mod processes;
mod progress;
mod session;
mod summary;
mod tally;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::json;

use crate::chance::Chance;
use crate::output::errln;
use crate::terminal::line;
use client::{Client, Server};
use field::Field;
use processes::Role;
use progress::Progress;
use session::Session;
use summary::{Ending, Summary, mebibytes};
use watch::{Sample, Watch};

/// Maximum time for the server to exit after the end of its input, and then for its child processes to exit.
const FAREWELL: Duration = Duration::from_secs(10);

/// Maximum time for the sessions to finish: one last reply and a last check of the contents.
const LAST_REPLIES: Duration = Duration::from_secs(180);

/// Tests the server with good and hostile programs from concurrent sessions, killing its processes in between.
#[derive(Args)]
pub struct Soak {
    /// Duration in minutes [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    minutes: Option<u64>,
    /// Duration in seconds.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// The number of concurrent sessions.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    sessions: usize,
    /// Run programs in the server's own process, even where they could be isolated.
    #[arg(long)]
    no_isolate: bool,
    /// The seed from which the requests are derived [default: random].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Show the summary as one JSON object.
    #[arg(long)]
    json: bool,
}

impl Soak {
    /// Runs the soak; the exit code is 1 if a check fails.
    pub fn run(self) -> ExitCode {
        match self.soak() {
            Ok(summary) => {
                if self.json {
                    line(&summary.json().to_string());
                } else {
                    summary.show();
                }
                if summary.failings().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            Err(problem) => {
                errln!("lispbox soak: {problem}");
                ExitCode::FAILURE
            }
        }
    }

    fn duration(&self) -> Duration {
        let seconds = self.seconds.or(self.minutes.map(|minutes| minutes.saturating_mul(60)));
        Duration::from_secs(seconds.unwrap_or(60))
    }

    fn soak(&self) -> Result<Summary, String> {
        let seed = self.seed.unwrap_or_else(|| getrandom::u64().unwrap_or_default() >> 32);
        let isolated = cfg!(target_os = "linux") && !self.no_isolate;
        let folder = tempfile::Builder::new().prefix("lispbox-soak-").tempdir();
        let folder = folder.map_err(|problem| format!("there is no room for a temporary folder: {problem}"))?;
        let (mut server, client) = start(folder.path(), isolated)?;
        errln!(
            "soak: seed {seed}, {} sessions, {} s, {}",
            self.sessions,
            self.duration().as_secs(),
            if isolated { "isolated" } else { "not isolated" }
        );
        let interrupted = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&interrupted);
        // Ctrl-C ends the soak early; the summary is still shown.
        let _ = ctrlc::set_handler(move || told.store(true, Ordering::Relaxed));

        let field = Field::new(client);
        let mut watch = Watch::default();
        let begun = Instant::now();
        watch.look(server.id(), Duration::ZERO);
        self.play(&field, &mut server, seed, &mut watch, &interrupted);
        let seconds = begun.elapsed().as_secs_f64();
        let ending = end(&field.client, &mut server);
        Ok(Summary {
            seed,
            seconds,
            sessions: self.sessions,
            isolated,
            account: field.client.account(),
            tally: field.sums(),
            killed_workers: field.kills(Role::Worker),
            killed_servers: field.kills(Role::Downstream),
            watch,
            ending,
        })
    }

    /// Runs the sessions and the killer until the duration has elapsed.
    fn play(&self, field: &Field, server: &mut Server, seed: u64, watch: &mut Watch, interrupted: &AtomicBool) {
        let mut seeds = Chance::new(seed);
        let mut chance = || Chance::new(seeds.next());
        let id = server.id();
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..self.sessions)
                .map(|_| {
                    let session = Session::new(field, chance());
                    scope.spawn(move || session.play())
                })
                .collect();
            let killer = chance();
            scope.spawn(move || chaos::rage(field, id, killer));
            self.watch(field, id, watch, interrupted);
            field.stop();
            let until = Instant::now() + LAST_REPLIES;
            while sessions.iter().any(|session| !session.is_finished()) {
                if Instant::now() > until {
                    // This releases sessions that are blocked on writing to the server or waiting for it.
                    server.kill();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }

    /// Samples and shows the progress until the duration has elapsed or the soak is stopped or interrupted.
    fn watch(&self, field: &Field, server: u32, watch: &mut Watch, interrupted: &AtomicBool) {
        let (begun, duration) = (Instant::now(), self.duration());
        let pause = (duration / 240).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let mut progress = Progress::new();
        while begun.elapsed() < duration && !field.is_stopped() && !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(pause.min(duration.saturating_sub(begun.elapsed())));
            let sample = watch.look(server, begun.elapsed());
            progress.show(|| status(field, begun.elapsed(), duration, sample));
        }
        progress.clear();
    }
}

/// Formats one line of progress.
fn status(field: &Field, elapsed: Duration, duration: Duration, sample: Option<Sample>) -> String {
    let (sums, (requests, replies)) = (field.sums(), field.client.counts());
    let memory = sample.map_or(String::new(), |sample| {
        let Sample { server, workers, worker_count, .. } = sample;
        format!("; server {}, {worker_count} workers {}", mebibytes(server), mebibytes(workers))
    });
    format!(
        "{:.0}/{} s: {requests} requests, {replies} replies ({} values, {} limits, {} errors, {} refused, {} lost), \
         {} wrong; killed {} workers, {} servers{memory}",
        elapsed.as_secs_f64(),
        duration.as_secs(),
        sums.values,
        sums.limits,
        sums.errors,
        sums.refused,
        sums.lost + sums.unavailable,
        sums.wrong,
        field.kills(Role::Worker),
        field.kills(Role::Downstream),
    )
}

/// Starts the server with two sample mailboxes as downstream servers, and waits for its first reply.
fn start(folder: &std::path::Path, isolated: bool) -> Result<(Server, Client), String> {
    let binary =
        std::env::current_exe().map_err(|problem| format!("this binary does not know where it is: {problem}"))?;
    let mailbox = json!({"command": binary, "args": ["sample-mailbox"], "description": "a mailbox"});
    let servers: serde_json::Map<_, _> =
        jobs::tools::SERVERS.iter().map(|name| ((*name).to_owned(), mailbox.clone())).collect();
    let configuration = folder.join("servers.json");
    std::fs::write(&configuration, json!({"mcpServers": servers}).to_string())
        .map_err(|problem| format!("{}: {problem}", configuration.display()))?;
    let mut arguments = vec!["--reply", "structured"];
    if isolated {
        arguments.push("--isolate");
    }
    let (server, client) = client::start(&binary, &arguments, &configuration, &folder.join("cache"))
        .map_err(|problem| format!("the server does not start: {problem}"))?;
    match client.request("tools/list", json!({})).reply() {
        Ok(_) => Ok((server, client)),
        Err(_) => Err(format!("the server does not answer: {}", server.complaints())),
    }
}

/// Closes the server's input and observes the exit of the server and its child processes.
fn end(client: &Client, server: &mut Server) -> Ending {
    let family = processes::below(server.id());
    let begun = Instant::now();
    client.close();
    let status = server.wait(FAREWELL);
    let seconds = status.map(|_| begun.elapsed().as_secs_f64());
    let until = Instant::now() + FAREWELL;
    let left = loop {
        let left = family.iter().filter(|process| process.lives()).count();
        if left == 0 || Instant::now() > until {
            break left;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Ending { seconds, is_success: status.is_some_and(|status| status.success()), left, complaints: server.complaints() }
}
