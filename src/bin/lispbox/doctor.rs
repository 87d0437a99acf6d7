//! `lispbox doctor`: whether lispbox is attached and works, and the command that mends what does not.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lispbox::lang::internal::foreign_text;
use lispbox::server::{CheckProgress, Checked, Connections, DownstreamOptions, RunState, StoredRuns, read_document};
use lispbox::store::{Store, Summary, open_existing};
use serde_json::Value;

use crate::clients::{CLIENTS, Client, is_lispbox};
use crate::config::counted;
use crate::config_paths::ConfigPaths;
use crate::context::Problem;
use crate::output::outln;
use crate::usual_store::{self, MEMORY};

/// The interval of reports about servers that are still starting.
const STILL: Duration = Duration::from_secs(5);

/// Says which clients lispbox is attached to, starts each server, looks at the store and at what waits for you, and names
/// the command that mends what does not work. Changes nothing. Fails if something does not work.
#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    config: ConfigPaths,
}

impl Doctor {
    /// Runs the command; the exit code is 1 if something does not work.
    pub fn run(self) -> ExitCode {
        let examined = self.examine();
        examined.map_or_else(Problem::report, |is_well| if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn examine(&self) -> Result<bool, Problem> {
        let clients = clients();
        let servers = self.servers()?;
        let store = store();
        if clients && servers && store {
            outln!("all is well");
        }
        Ok(clients && servers && store)
    }

    /// Starts each server; returns false if one does not work.
    fn servers(&self) -> Result<bool, Problem> {
        let configuration = self.config.read().map_err(Problem::Usage)?;
        configuration.warnings.iter().for_each(|warning| outln!("warning {}", foreign_text::line(warning)));
        if configuration.servers.is_empty() {
            outln!("        servers: none; `lispbox config import` imports those of your clients");
            return Ok(true);
        }
        let connections = Connections::open_with(configuration, DownstreamOptions::default());
        let connections = connections.map_err(|problem| Problem::Failed(problem.to_string()))?;
        let mut is_well = true;
        connections.check_each(STILL, |progress| match progress {
            CheckProgress::Starting(names) => outln!("        still starting: {}", names.join(", ")),
            CheckProgress::Done(Checked { server, tools, unusable, .. }) => {
                let name = foreign_text::name(&server);
                match tools {
                    Ok(_) if !unusable.is_empty() => {
                        is_well = false;
                        outln!("broken  server {name}: {}", unusable.join("; "));
                    }
                    Ok(tools) => outln!("ok      server {name}: {}", counted(tools.len(), "tool")),
                    Err(problem) => {
                        is_well = false;
                        outln!("broken  {}", foreign_text::line(&problem.message));
                    }
                }
            }
        });
        connections.close();
        Ok(is_well)
    }
}

/// Looks at the file of each client that is there; returns false if one cannot start lispbox.
fn clients() -> bool {
    let (mut is_well, mut count) = (true, 0);
    for client in CLIENTS {
        let Some(text) = client.user_file().and_then(|file| std::fs::read_to_string(file).ok()) else { continue };
        count += 1;
        let name = if client.keeps_json() { "it.json" } else { "it.toml" };
        match read_document(&text, name) {
            Ok(root) => is_well &= attached(client, &root),
            Err(problem) => {
                is_well = false;
                outln!("broken  {}: its configuration cannot be read: {problem}", client.title);
            }
        }
    }
    if count == 0 {
        outln!("        clients: none found on this machine");
    }
    is_well
}

/// Says how a client has lispbox; returns false if it cannot start it.
fn attached(client: &Client, root: &Value) -> bool {
    let servers = root.get(client.key).and_then(Value::as_object);
    let (ours, others): (Vec<&Value>, Vec<&Value>) =
        servers.into_iter().flat_map(|servers| servers.values()).partition(|server| is_lispbox(server));
    let setup = |option: &str| format!("`lispbox setup {}{option}`", client.name);
    let Some(entry) = ours.first() else {
        outln!("        {}: not attached; {} attaches it", client.title, setup(" --move"));
        return true;
    };
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    if command.contains(['/', '\\']) && !std::path::Path::new(command).is_file() {
        let command = foreign_text::line(command);
        outln!("broken  {}: {command} is not there any more; {} names this one", client.title, setup(""));
        return false;
    }
    match others.len() {
        0 => outln!("ok      {}: attached", client.title),
        count => outln!(
            "ok      {}: attached, beside {} of its own; {} moves {}",
            client.title,
            counted(count, "server"),
            setup(" --move"),
            if count == 1 { "it" } else { "them" }
        ),
    }
    true
}

/// Looks at the store and at the programs that wait in it; returns false if it cannot be used.
fn store() -> bool {
    let named = std::env::var("LISPBOX_STORE").ok().filter(|url| !url.is_empty());
    if named.as_deref() == Some(MEMORY) {
        outln!("        store: none; sessions end with their process, as LISPBOX_STORE says");
        return true;
    }
    let is_usual = named.is_none();
    let Some(url) = named.or_else(usual_store::url) else {
        outln!("        store: none; the folder of the user's data is unknown");
        return true;
    };
    if is_usual && usual_store::file().is_some_and(|file| !file.exists()) {
        outln!("ok      store: none yet; the first client creates it");
        return true;
    }
    let examined = open_existing(&url).and_then(|store| {
        let sessions = store.list().map_err(|problem| problem.to_string())?;
        let size = store.bytes().map_err(|problem| problem.to_string())?;
        Ok((sessions.iter().filter(|summary| Summary::is_session(summary)).count(), size, store))
    });
    match examined {
        Ok((sessions, size, store)) => {
            let size = size.map_or_else(String::new, |bytes| format!(", {} KiB", bytes.div_ceil(1024)));
            let place = if is_usual { url.trim_start_matches("sqlite:") } else { "the one that LISPBOX_STORE names" };
            outln!("ok      store: {place}, {}{size}", counted(sessions, "session"));
            waiting(store);
            true
        }
        Err(problem) => {
            let mends = if is_usual { "; move the file away, and a new one is created" } else { "" };
            outln!("broken  store: {problem}{mends}");
            false
        }
    }
}

/// Says how many programs wait for a person.
fn waiting(store: std::sync::Arc<dyn Store>) {
    let listed = StoredRuns::new(store).list().unwrap_or_default();
    let is_waiting = |run: &lispbox::server::StoredRun| run.state() == RunState::Waiting;
    match listed.iter().filter_map(|(_, run)| run.as_ref().ok()).filter(|run| is_waiting(run)).count() {
        0 => outln!("ok      approvals: nothing waits for you"),
        count => {
            let programs = counted(count, "program");
            outln!("waiting approvals: {programs} waiting for you; `lispbox approvals open` shows them");
        }
    }
}
