//! One soak: concurrent sessions send good and hostile programs through a server, while its workers and its downstream
//! servers are killed.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{self, Client, Server};
use super::field::Field;
use super::processes::{self, Role};
use super::session::Session;
use super::summary::{Ending, Summary};
use super::watch::Watch;
use super::{chaos, jobs};
use crate::mailbox::chance::Chance;

/// Maximum time for the server to exit after the end of its input, and then for its child processes to exit.
const FAREWELL: Duration = Duration::from_secs(10);

/// Maximum time for the sessions to finish: one last reply and a last check of the contents.
const LAST_REPLIES: Duration = Duration::from_secs(180);

/// Maximum time in which each kind of outcome has to occur, on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);

/// The plan of a soak.
pub struct Soak {
    /// Minimum time during which requests are made: they go on until each kind of outcome has occurred, for at most a
    /// minute.
    pub duration: Duration,
    /// The number of concurrent sessions.
    pub sessions: usize,
    /// True if programs run in worker processes.
    pub isolated: bool,
    /// The seed from which the requests are derived.
    pub seed: u64,
}

impl Soak {
    /// Runs the soak with that binary.
    ///
    /// # Errors
    /// Returns an error if the server does not start.
    pub fn run(&self, binary: &Path) -> Result<Summary, String> {
        let Soak { seed, isolated, .. } = *self;
        let folder = tempfile::Builder::new().prefix("lispbox-soak-").tempdir();
        let folder = folder.map_err(|problem| format!("there is no room for a temporary folder: {problem}"))?;
        let (mut server, client) = start(binary, folder.path(), isolated)?;
        let field = Field::new(client);
        let mut watch = Watch::default();
        let begun = Instant::now();
        watch.look(server.id(), Duration::ZERO);
        self.play(&field, &mut server, seed, &mut watch);
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
    fn play(&self, field: &Field, server: &mut Server, seed: u64, watch: &mut Watch) {
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
            self.watch(field, id, watch);
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

    /// Samples the resources until the soak has taken long enough or is stopped.
    fn watch(&self, field: &Field, server: u32, watch: &mut Watch) {
        let (begun, duration) = (Instant::now(), self.duration);
        let pause = (duration / 240).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let has_seen_all = || {
            let kills = field.kills(Role::Worker) + field.kills(Role::Downstream);
            !field.sums().kinds().contains(&0) && (kills > 0 || cfg!(not(target_os = "linux")))
        };
        while !field.is_stopped() && (begun.elapsed() < duration || begun.elapsed() < LONGEST && !has_seen_all()) {
            std::thread::sleep(pause);
            watch.look(server, begun.elapsed());
        }
    }
}

/// Starts the server with two sample mailboxes as downstream servers, and waits for its first reply.
fn start(binary: &Path, folder: &Path, isolated: bool) -> Result<(Server, Client), String> {
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
    let (server, client) = client::start(binary, &arguments, &configuration, &folder.join("cache"))
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
