//! `lispbox demo`: an introduction that takes a minute. Starts a server as a client would, with a sample mailbox as its
//! downstream server, runs programs, and compares their cost with direct calls of the same tools.

pub mod costs;
mod injection;
mod peer;
mod screen;
mod steps;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, ValueEnum};
use lispbox::server::CancellationToken;
use serde_json::{Value, json};

use costs::Cost;
use peer::{Answer, Peer};
use screen::Screen;
use steps::{Direct, Expected, STEPS, Step};

use crate::output::{self, errln};

/// Shows in a minute what lispbox is for; needs nothing but this binary.
#[derive(Args)]
pub struct Demo {
    /// Another subject: `injection` shows a mail that tries to steer an agent, and the guard at which it ends.
    #[arg(value_enum)]
    subject: Option<Subject>,
}

/// The subject of a demo.
#[derive(Clone, Copy, ValueEnum)]
enum Subject {
    Injection,
}

impl Demo {
    /// Runs the demo; the exit code is 1 if a step does not give the expected result.
    pub fn run(self) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(problem) => return failed(&problem.to_string()),
        };
        let interrupted = CancellationToken::new();
        let told = interrupted.clone();
        // Ctrl-C and termination signals cancel the demo, so that the temporary folder is removed in any case.
        let _ = ctrlc::set_handler(move || told.cancel());
        let outcome = runtime.block_on(async {
            tokio::select! {
                outcome = show(self.subject) => outcome,
                () = interrupted.cancelled() => Err("interrupted".to_owned()),
            }
        });
        // Child processes that were not closed in order are killed when they are dropped with the runtime.
        runtime.shutdown_background();
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => failed(&problem),
        }
    }
}

fn failed(problem: &str) -> ExitCode {
    errln!("lispbox demo: {problem}");
    ExitCode::FAILURE
}

async fn show(subject: Option<Subject>) -> Result<(), String> {
    let begun = Instant::now();
    let folder = tempfile::Builder::new().prefix("lispbox-demo-").tempdir();
    let folder = folder.map_err(|problem| format!("cannot create a temporary folder: {problem}"))?;
    let binary =
        std::env::current_exe().map_err(|problem| format!("cannot determine the path of this binary: {problem}"))?;
    if let Some(Subject::Injection) = subject {
        return injection::show(&binary, folder.path()).await;
    }
    let configuration = folder.path().join("servers.json");
    let mailbox =
        json!({"command": binary, "args": ["sample-mailbox"], "description": "a mailbox of a thousand messages"});
    let text = json!({"mcpServers": {"mail": mailbox}}).to_string();
    std::fs::write(&configuration, text).map_err(|problem| format!("{}: {problem}", configuration.display()))?;

    // The cache of the tool catalogue is in the temporary folder too, and sessions are in memory, so that the demo leaves
    // nothing behind.
    let cache = folder.path().join("cache");
    let serve =
        ["serve".as_ref(), "--config".as_ref(), configuration.as_os_str(), "--store".as_ref(), "memory".as_ref()];
    let lispbox = Peer::start(&binary, &serve, Some(("LISPBOX_CACHE", cache.as_os_str())));
    let alone = ["sample-mailbox".as_ref()];
    let plain = Peer::start(&binary, &alone, None);
    let (lispbox, plain) = tokio::join!(lispbox, plain);
    let mut stage = Stage { lispbox: lispbox?, plain: plain?, called: Vec::new(), screen: Screen::of_stdout() };
    let outcome = stage.play().await;
    let Stage { lispbox, plain, screen, .. } = stage;
    let ((), ()) = tokio::join!(lispbox.close(), plain.close());
    outcome?;
    screen.ending(begun.elapsed());
    Ok(())
}

/// Both connections to the mailbox.
struct Stage {
    /// lispbox, with the mailbox as its downstream server.
    lispbox: Peer,
    /// The mailbox, connected directly.
    plain: Peer,
    /// The direct calls made so far: a repeated call is not counted again.
    called: Vec<Direct>,
    screen: Screen,
}

impl Stage {
    async fn play(&mut self) -> Result<(), String> {
        self.screen.opening();
        let (through, direct) = (self.lispbox.tools().await?, self.plain.tools().await?);
        let tools = (Cost::of(&[&through.text]), Cost::of(&[&direct.text]));
        self.screen.tools(&through.names, &direct.names);
        let mut rows = vec![("the tools: descriptions, schemas".to_owned(), tools.0, tools.1)];
        for (index, step) in STEPS.iter().enumerate() {
            if output::is_broken() {
                return Ok(());
            }
            let number = index + 1;
            let (through, direct) =
                self.step(number, step).await.map_err(|problem| format!("step {number}: {problem}"))?;
            rows.push((format!("{number}  {}", step.title), through, direct));
        }
        self.screen.table(&rows);
        Ok(())
    }

    /// Runs a step through lispbox and directly.
    async fn step(&mut self, number: usize, step: &Step) -> Result<(Cost, Cost), String> {
        self.screen.program(number, step);
        let begun = Instant::now();
        let arguments = step.arguments();
        let answer = self.lispbox.call("lisp_eval", &arguments).await?;
        let took = begun.elapsed();
        check(step, &answer)?;
        let through = Cost::of(&[&arguments.to_string(), &answer.text, &answer.record]);
        let direct = self.direct(step.direct).await?;
        self.screen.reply(&answer, took);
        self.screen.cost(through, direct);
        Ok((through, direct))
    }

    /// Measures the cost of the same calls without lispbox; calls that were made before cost nothing.
    async fn direct(&mut self, calls: &[Direct]) -> Result<Cost, String> {
        let mut all = Cost::default();
        for call in calls {
            if self.called.contains(call) {
                continue;
            }
            self.called.push(*call);
            let arguments: Value = serde_json::from_str(call.arguments).map_err(|problem| problem.to_string())?;
            let answer = self.plain.call(call.tool, &arguments).await?;
            if answer.is_error {
                return Err(format!("`{}` called directly failed: {}", call.tool, answer.text));
            }
            all += Cost::of(&[call.arguments, &answer.text, &answer.record]);
        }
        Ok(all)
    }
}

/// Checks that a step gave the expected result.
fn check(step: &Step, answer: &Answer) -> Result<(), String> {
    let as_expected = match step.expected {
        Expected::Value(part) => !answer.is_error && answer.text.contains(part),
        Expected::Error(part) => answer.is_error && answer.text.contains(part),
    };
    if as_expected {
        return Ok(());
    }
    let expected = match step.expected {
        Expected::Value("") => "a value".to_owned(),
        Expected::Value(part) => format!("a value with `{part}`"),
        Expected::Error(part) => format!("an error with `{part}`"),
    };
    Err(format!("expected {expected}, got:\n{}", answer.text))
}
