//! `lispbox setup --move`: a client's servers become those of lispbox.
//!
//! Each server is started first, so that one that does not work stays with the client. What is taken out of the client is
//! recorded, entry by entry, so that `--undo` can put it back whatever else has changed in the client's file meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lispbox::server::{
    CheckProgress, Checked, Configuration, Connections, DownstreamOptions, Sources, Verdict, server_namespace,
    usual_folder,
};
use serde_json::{Map, Value, json};

use crate::clients::Client;
use crate::config::counted;
use crate::config::import::{Moving, printable};
use crate::context::Problem;
use crate::demo::costs::Cost;
use crate::output::outln;
use crate::setup::replace;

/// The time for the start of a server whose configuration sets none: the first `npx` downloads packages.
const FIRST_START: Duration = Duration::from_secs(300);
/// The interval of reports about servers that are still starting.
const STILL: Duration = Duration::from_secs(5);
/// The tokens of the tools of lispbox: 220, and 70 where `lisp_approve` is one of them.
const OURS: usize = 290;
/// Maximum number of tools that are named.
const NAMED: usize = 6;

/// The changes of a client's file beside the entry for lispbox, and those of lispbox's own files.
#[derive(Default)]
pub struct Plan {
    /// The names of the entries that are taken out of the client's file.
    taken: Vec<String>,
    /// The entries that are put back into it, unless it has others of these names.
    returned: Map<String, Value>,
    /// The files that are written before the client's file, with their texts.
    before: Vec<(PathBuf, String)>,
    /// The files that are written after it; one without a text is removed.
    after: Vec<(PathBuf, Option<String>)>,
}

impl Plan {
    /// Starts the servers of a client and plans to move those that have started.
    ///
    /// # Errors
    /// Returns an error if the client has servers and none of them starts, or if a file cannot be read.
    pub fn moving(client: &'static Client, file: &Path, is_dry: bool) -> Result<Plan, Problem> {
        let record = Record::of(client)?;
        let mut moving = Moving::of(client, file)?;
        let mut trial = moving.clone();
        let servers = moving.servers();
        if servers.is_empty() {
            outln!("{} has no servers of its own to move", client.title);
            return Ok(Plan::default());
        }
        let mut names = Vec::new();
        for server in &servers {
            let added = server.ours.as_ref().map_err(Clone::clone).and_then(|server| trial.add(server));
            match added {
                Ok((name, _)) => names.push((server_namespace(&name).map_err(Problem::Failed)?, server)),
                Err(problem) => stays(&server.name, client, &problem),
            }
        }
        let is_named = |name: &str| names.iter().any(|(taken, _)| taken == name);
        let started = started(&trial.text(), client, &is_named)?;
        let mut plan = Plan::default();
        let mut entries = record.servers.clone();
        for (_, server) in names.iter().filter(|(name, _)| started.contains(name)) {
            let ours = server.ours.as_ref().map_err(|problem| Problem::Failed(problem.clone()))?;
            let (imported, is_new) = moving.add(ours).map_err(Problem::Failed)?;
            plan.taken.push(server.name.clone());
            let imported = if is_new { Value::from(imported) } else { Value::Null };
            entries.insert(server.name.clone(), json!({"entry": server.theirs, "imported": imported}));
        }
        if plan.taken.is_empty() {
            return Err(Problem::Failed(format!("no server of {} was moved, and nothing is changed", client.title)));
        }
        let moved = if is_dry { "would be moved" } else { "moved" };
        outln!("{} of {} servers {moved} into {}", plan.taken.len(), servers.len(), moving.output().display());
        plan.before.push((record.file, format!("{:#}\n", json!({"servers": entries}))));
        plan.before.push((moving.output().to_owned(), moving.text()));
        Ok(plan)
    }

    /// Plans to put back what was moved.
    ///
    /// # Errors
    /// Returns an error if nothing was moved, or if a file cannot be read.
    pub fn undoing(client: &'static Client, file: &Path) -> Result<Plan, Problem> {
        let record = Record::of(client)?;
        if record.servers.is_empty() {
            return Err(Problem::Usage(format!(
                "no servers were moved out of {}; `--remove` removes lispbox from it",
                client.title
            )));
        }
        let mut moving = Moving::of(client, file)?;
        let mut plan = Plan::default();
        for (name, moved) in &record.servers {
            plan.returned.insert(name.clone(), moved["entry"].clone());
            moved["imported"].as_str().into_iter().for_each(|imported| moving.remove(imported));
        }
        plan.after.push((moving.output().to_owned(), Some(moving.text())));
        plan.after.push((record.file, None));
        Ok(plan)
    }

    /// Changes the servers of a client; returns true if they are others then.
    pub fn apply(&self, servers: &mut Map<String, Value>) -> bool {
        let mut is_changed = false;
        for name in &self.taken {
            is_changed |= servers.shift_remove(name).is_some();
        }
        for (name, entry) in &self.returned {
            if !servers.contains_key(name) {
                is_changed = true;
                servers.insert(name.clone(), entry.clone());
            }
        }
        is_changed
    }

    /// The names of the entries that leave the client.
    pub fn taken(&self) -> &[String] {
        &self.taken
    }

    /// The names of the entries that return to the client.
    pub fn returned(&self) -> Vec<&String> {
        self.returned.keys().collect()
    }

    /// Writes the files that come before the client's own.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn begin(&self) -> Result<(), Problem> {
        self.before.iter().try_for_each(|(file, text)| replace(file, text).map(drop))
    }

    /// Writes and removes the files that come after the client's own.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn finish(&self) -> Result<(), Problem> {
        for (file, text) in &self.after {
            match text {
                Some(text) => drop(replace(file, text)?),
                None => std::fs::remove_file(file)
                    .map_err(|problem| Problem::Failed(format!("{}: {problem}", file.display())))?,
            }
        }
        Ok(())
    }
}

/// The servers that were moved out of a client: by name, the entry in the client's file, and the name of the server that
/// was added to lispbox for it.
struct Record {
    file: PathBuf,
    servers: Map<String, Value>,
}

impl Record {
    fn of(client: &Client) -> Result<Record, Problem> {
        let folder =
            usual_folder().ok_or_else(|| Problem::Usage("the settings folder of lispbox is unknown".to_owned()))?;
        let file = folder.join("moved").join(format!("{}.json", client.name));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => "{\"servers\": {}}".to_owned(),
            Err(problem) => return Err(Problem::Failed(format!("{}: {problem}", file.display()))),
        };
        let root: Option<Value> = serde_json::from_str(&text).ok();
        let servers = root.and_then(|root| root.get("servers")?.as_object().cloned());
        let servers =
            servers.ok_or_else(|| Problem::Failed(format!("{}: expected JSON with `servers`", file.display())))?;
        Ok(Record { file, servers })
    }
}

/// Starts the named servers of a configuration, one line each, and returns the names of those that have started.
fn started(text: &str, client: &Client, is_named: &dyn Fn(&str) -> bool) -> Result<Vec<String>, Problem> {
    let failed = |problem: String| Problem::Failed(format!("the servers conflict: {problem}"));
    let variable = |name: &str| std::env::var(name).ok();
    let mut configuration =
        Configuration::parse(text, "imported.json", &variable).map_err(|problem| failed(problem.to_string()))?;
    configuration.servers.retain(|server| is_named(&server.name));
    for server in &mut configuration.servers {
        server.start_timeout.get_or_insert(FIRST_START);
    }
    // The rules of the user decide what will be asked about.
    let policy = Sources::usual().read().map(|usual| usual.policy).unwrap_or_default();
    configuration.merge(Configuration { policy, ..Configuration::default() });
    outln!("starting {} servers of {}", configuration.servers.len(), client.title);
    let connections = Connections::open_with(configuration, DownstreamOptions::default())
        .map_err(|problem| Problem::Failed(problem.to_string()))?;
    let (mut started, mut all) = (Vec::new(), Cost::default());
    connections.check_each(STILL, |progress| match progress {
        CheckProgress::Starting(names) => {
            outln!("  still starting: {} (the first start of a server may download it)", names.join(", "));
        }
        CheckProgress::Done(Checked { server, tools: Ok(tools), .. }) => {
            let direct = |tool: &lispbox::lang::Tool| {
                json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema})
                    .to_string()
            };
            let mut cost = Cost::default();
            tools.iter().for_each(|tool| cost += Cost::of(&[&direct(tool)]));
            let is_asked = |tool: &&std::sync::Arc<lispbox::lang::Tool>| {
                connections.downstreams().decide(tool).is_some_and(|decision| decision.verdict == Verdict::Ask)
            };
            let asked: Vec<String> = tools.iter().filter(is_asked).map(|tool| printable(&tool.name)).collect();
            let asks = match asked.len() {
                0 => String::new(),
                count if count > NAMED => {
                    format!("; asks before {} and {} more", asked[..NAMED].join(", "), count - NAMED)
                }
                _ => format!("; asks before {}", asked.join(", ")),
            };
            let count = counted(tools.len(), "tool");
            outln!("  {}: started, {count}{asks}; about {} tokens", printable(&server), cost.tokens);
            all += cost;
            started.push(server);
        }
        CheckProgress::Done(Checked { server, tools: Err(problem), .. }) => stays(&server, client, &problem.message),
    });
    connections.close();
    if !started.is_empty() {
        outln!("in each conversation: about {} tokens for their tools before, at most {OURS} for lispbox", all.tokens);
    }
    Ok(started)
}

fn stays(name: &str, client: &Client, reason: &str) {
    outln!("  {}: stays in {}: {}", printable(name), client.title, printable(reason));
}
