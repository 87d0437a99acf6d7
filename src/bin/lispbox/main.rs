//! The command line of lispbox: one module per command, each a thin layer over the library.
// The language must not use files, clocks and processes; the command line may. `println!` panics on a closed pipe; the
// functions of `output` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod address;
mod approval;
mod approvals;
mod audit;
mod bounds;
mod client_entry;
mod client_file;
mod client_json;
mod client_toml;
mod clients;
mod completions;
mod config;
mod config_paths;
mod context;
mod demo;
mod doc;
mod doctor;
mod eval;
mod grants;
mod http;
mod input;
mod installation;
mod logging;
mod login;
mod manual;
mod moved;
mod moving;
mod output;
mod page;
mod paint;
mod permissions;
mod plan;
mod process;
mod recording;
mod rehearsal;
mod repl;
mod rewriting;
mod run;
mod runs;
mod sample_mailbox;
mod serve;
mod sessions;
mod setup;
mod storage;
#[cfg(feature = "telemetry")]
mod telemetry;
#[cfg(not(feature = "telemetry"))]
#[path = "untraced.rs"]
mod telemetry;
mod terminal;
mod tools;
mod usual_store;
mod welcome;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The exit codes of all commands, as documented in `docs/configuration.md`, and what the usage line cannot say.
const EXIT_CODES: &str = "Exit codes:
    0  success, also if the reader of the output has gone
    1  a program, check, query or server failed
    2  the command line or a setting, or what it names, is invalid or missing; nothing was started
  130  interrupted

`--version --verbose` also prints the commit, the target, the features, and how lispbox was installed.";

/// A small, sandboxed, Clojure-like Lisp that agents run their data pipelines in.
#[derive(Parser)]
#[command(name = "lispbox", version, propagate_version = true, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Eval(eval::Eval),
    Run(run::Run),
    Plan(plan::Plan),
    Repl(repl::Repl),
    Doc(doc::Doc),
    Serve(Box<serve::Serve>),
    Sessions(sessions::Sessions),
    Approvals(approvals::Approvals),
    Runs(runs::Runs),
    Audit(audit::Audit),
    Tools(tools::Tools),
    Config(config::Config),
    Login(login::Login),
    Setup(setup::Setup),
    Doctor(doctor::Doctor),
    Demo(demo::Demo),
    Completions(completions::Completions),
    #[command(hide = true)]
    Manual(manual::Manual),
    #[command(hide = true)]
    SampleMailbox(sample_mailbox::SampleMailbox),
    #[command(hide = true)]
    Worker(worker::Worker),
}

fn main() -> ExitCode {
    process::outlives_large_files();
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if installation::is_asked(&arguments) {
        return output::finish(installation::print());
    }
    output::finish(run(CommandLine::parse().command))
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Eval(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Plan(command) => command.run(),
        Command::Repl(command) => command.run(),
        Command::Doc(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Sessions(command) => command.run(),
        Command::Approvals(command) => command.run(),
        Command::Runs(command) => command.run(),
        Command::Audit(command) => command.run(),
        Command::Tools(command) => command.run(),
        Command::Config(command) => command.run(&CommandLine::command()),
        Command::Login(command) => command.run(),
        Command::Setup(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Completions(command) => command.run(CommandLine::command()),
        Command::Manual(command) => command.run(CommandLine::command()),
        Command::SampleMailbox(command) => command.run(),
        Command::Worker(command) => command.run(),
    }
}
