//! `lispbox setup --move`: a client's servers become those of lispbox.
//!
//! Each server is started first, so that one that does not work stays with the client. What is taken out of the client is
//! recorded, entry by entry, so that `--undo` can put it back whatever else has changed in the client's file meanwhile.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use lispbox::server::{
    CheckProgress, Checked, Configuration, Connections, DownstreamOptions, Sources, Verdict, server_namespace,
};
use serde_json::{Map, Value, json};

use crate::client_entry::switched_off;
use crate::client_file::ClientFile;
use crate::clients::Client;
use crate::config::counted;
use crate::config::import::{Merged, Moving, printable};
use crate::config::imported::Server;
use crate::context::Problem;
use crate::demo::costs::Cost;
use crate::moved::{Moved, Records, absolute};
use crate::output::outln;
use crate::rewriting::OwnFile;

/// The time for the start of a server whose configuration sets none: the first `npx` downloads packages.
const FIRST_START: Duration = Duration::from_secs(300);
/// The interval of reports about servers that are still starting.
const STILL: Duration = Duration::from_secs(5);
/// The tokens of the tools of lispbox: 220, and 70 where `lisp_approve` is one of them.
const OURS: usize = 290;
/// Maximum number of tools that are named.
const NAMED: usize = 6;
/// The variables that a program with a window has too.
const EVERYWHERE: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "SHELL",
    "LANG",
    "TMPDIR",
    "USERPROFILE",
    "USERNAME",
    "APPDATA",
    "LOCALAPPDATA",
];

/// The changes of the servers in a client's file beside the entry for lispbox, and those of lispbox's own files.
#[derive(Default)]
pub struct Plan {
    /// The names of the entries that are taken out of the client's file.
    pub taken: Vec<String>,
    /// The entries that are put back into it.
    pub returned: Map<String, Value>,
    /// The texts of those.
    pub texts: BTreeMap<String, String>,
    /// Notes on it for the user, one a line.
    pub notes: Vec<String>,
    /// The files that are written before the client's file.
    pub before: Vec<OwnFile>,
    /// The files that are written after it.
    pub after: Vec<OwnFile>,
}

/// A server of a client that has started.
struct Started {
    name: String,
    theirs: Value,
    ours: Server,
}

/// The servers of a client that have started, and can be moved.
#[derive(Default)]
pub struct Trial {
    started: Vec<Started>,
    /// The number of servers that the client has.
    count: usize,
    /// Lines about the variables of those that have started.
    notes: Vec<String>,
}

impl Trial {
    /// Starts the servers of a client, and says which stay where they are.
    ///
    /// # Errors
    /// Returns an error if servers do not work and none starts, or if a file cannot be read.
    pub fn run(client: &'static Client, file: &Path, text: &str) -> Result<Trial, Problem> {
        let now = read(text, client, file)?;
        // What cannot be read is said before any server is started.
        let records = Records::read()?;
        let mut moving = Moving::of(client, file, now.root())?;
        let servers = moving.servers();
        match moving.of_projects() {
            0 => {}
            count => {
                let (stay, them) = if count == 1 { ("stays", "it") } else { ("stay", "them") };
                let (servers, title) = (counted(count, "server"), client.title);
                outln!("{servers} of projects {stay} in {title}; `lispbox config import` gives {them} to lispbox too");
            }
        }
        if servers.is_empty() {
            outln!("{} has no servers of its own to move", client.title);
            return Ok(Trial::default());
        }
        let mut tried = Vec::new();
        let mut is_refused = false;
        for server in &servers {
            let added = server
                .ours
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|ours| Ok((ours, moving.add(ours, &records)?.name)));
            match added {
                Ok((ours, _)) if switched_off(&ours.fields).is_some() => {
                    stays(&server.name, client, "it is switched off there")
                }
                Ok((ours, name)) => tried.push((server_namespace(&name).map_err(Problem::Failed)?, server, ours)),
                Err(problem) => {
                    is_refused |= !server.is_excluded;
                    stays(&server.name, client, &problem);
                }
            }
        }
        let names = tried.iter().map(|(name, server, _)| (name.clone(), server.name.clone())).collect();
        moving.add_inputs();
        let started = if tried.is_empty() { Vec::new() } else { started(&moving.text(), client, &names)? };
        if started.is_empty() && (is_refused || !tried.is_empty()) {
            return Err(Problem::Failed(format!("no server of {} was moved, and nothing is changed", client.title)));
        }
        let mut trial = Trial { count: servers.len(), ..Trial::default() };
        let mut variables = BTreeSet::new();
        for (_, server, ours) in tried.iter().filter(|(name, ..)| started.contains(name)) {
            variables.extend(variables_of(ours));
            let (name, theirs, ours) = (server.name.clone(), server.theirs.clone(), (*ours).clone());
            trial.started.push(Started { name, theirs, ours });
        }
        let line = |name: String| format!("{name} is set in this terminal; {} may not have it", client.title);
        trial.notes = variables.into_iter().map(line).collect();
        Ok(trial)
    }
}

impl Plan {
    /// Plans to move the servers that have started and that the client still has as they were started.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn moving(
        client: &'static Client,
        file: &Path,
        now: &ClientFile,
        trial: &Trial,
        is_dry: bool,
    ) -> Result<Plan, Problem> {
        let mut plan = Plan::default();
        if trial.started.is_empty() {
            return Ok(plan);
        }
        let mut records = Records::read()?;
        let mut moving = Moving::of(client, file, now.root())?;
        let mut record = records.of(client).to_vec();
        for Started { name, theirs, ours } in &trial.started {
            if now.servers().and_then(|servers| servers.get(name)) != Some(theirs) {
                plan.notes.push(format!("  {}: stays in {}: it changed meanwhile", printable(name), client.title));
                continue;
            }
            let Merged { name: imported, is_new, note } = moving.add(ours, &records).map_err(Problem::Failed)?;
            plan.notes.extend(note);
            // Another server that had this name before keeps its record.
            record.retain(|moved| {
                let is_same = moved.entry == *theirs || (!is_new && moved.imported.as_ref() == Some(&imported));
                moved.name != *name || !moved.is_of(file) || !is_same
            });
            record.push(Moved {
                file: absolute(file),
                name: name.clone(),
                entry: theirs.clone(),
                text: now.entry(name),
                is_added: is_new || records.has_added(&imported),
                ours: moving.entry(&imported).cloned(),
                imported: Some(imported),
            });
            plan.taken.push(name.clone());
        }
        if plan.taken.is_empty() {
            let notes = plan.notes.join("\n");
            let nothing = format!("no server of {} was moved, and nothing is changed", client.title);
            return Err(Problem::Failed(format!("{nothing}\n{notes}")));
        }
        moving.add_inputs();
        let moved = if is_dry { "would be moved" } else { "moved" };
        let (count, output) = (plan.taken.len(), moving.output().to_owned());
        plan.notes.push(format!("{count} of {} servers {moved} into {}", trial.count, output.display()));
        plan.notes.extend(trial.notes.iter().cloned());
        records.set(client, record);
        plan.before = vec![own_record(&records, client), own_imported(&moving)];
        Ok(plan)
    }

    /// Plans to put back what was moved.
    ///
    /// # Errors
    /// Returns an error if nothing was moved out of this file, or if a file cannot be read.
    pub fn undoing(client: &'static Client, file: &Path, now: &ClientFile) -> Result<Plan, Problem> {
        let mut records = Records::of_client(client)?;
        let (here, mut record): (Vec<Moved>, Vec<Moved>) =
            records.of(client).iter().cloned().partition(|moved| moved.is_of(file));
        if here.is_empty() {
            let files: BTreeSet<String> = record.iter().map(|moved| moved.file.display().to_string()).collect();
            let files: Vec<String> = files.into_iter().collect();
            return Err(Problem::Usage(match files.as_slice() {
                [] => format!("no servers were moved out of {}; `--remove` removes lispbox from it", client.title),
                files => format!(
                    "the servers of {} were moved out of {}; give `--file {}`",
                    client.title,
                    files.join(" and "),
                    files[0]
                ),
            }));
        }
        let mut plan = Plan::default();
        let mut back = Vec::new();
        for moved in here {
            match now.servers().and_then(|servers| servers.get(&moved.name)) {
                Some(other) if *other != moved.entry => {
                    let (name, title) = (printable(&moved.name), client.title);
                    plan.notes.push(format!("  {name}: not put back, {title} has another server of that name"));
                    record.push(moved);
                    continue;
                }
                Some(_) => {}
                None if plan.returned.contains_key(&moved.name) => {
                    // It was moved after another server of that name.
                    let is_free = |name: &String| {
                        let is_there = now.servers().is_some_and(|servers| servers.contains_key(name));
                        !is_there && !plan.returned.contains_key(name)
                    };
                    let numbered = (2..).map(|number| format!("{}-{number}", moved.name));
                    if let Some(other) = moved.imported.clone().into_iter().chain(numbered).find(is_free) {
                        let (name, shown) = (printable(&moved.name), printable(&other));
                        plan.notes.push(format!("  {name}: put back as {shown}, beside the other one"));
                        plan.returned.insert(other, moved.entry.clone());
                    }
                }
                None => {
                    plan.returned.insert(moved.name.clone(), moved.entry.clone());
                    plan.texts.extend(moved.text.clone().map(|text| (moved.name.clone(), text)));
                }
            }
            back.push(moved);
        }
        records.set(client, record);
        let mut moving = Moving::of(client, file, now.root())?;
        let mut is_changed = false;
        for moved in &back {
            let Some(imported) = moved.imported.as_deref().filter(|_| moved.is_added) else { continue };
            let Some(entry) = moving.entry(imported).filter(|_| records.client_of(imported, None).is_none()) else {
                continue;
            };
            if moved.ours.as_ref().is_some_and(|ours| ours != entry) {
                let (name, output) = (printable(imported), moving.output().display());
                plan.notes.push(format!("  {name}: stays in {output} too, since it was changed there"));
                continue;
            }
            // Another client may have moved it too.
            if !records.is_whole {
                let (name, output) = (printable(imported), moving.output().display());
                plan.notes.push(format!("  {name}: stays in {output} too, since not all records can be read"));
                continue;
            }
            moving.remove(imported);
            is_changed = true;
        }
        if is_changed {
            plan.after.push(own_imported(&moving));
        }
        plan.after.push(own_record(&records, client));
        Ok(plan)
    }

    /// Changes the servers of a client.
    pub fn apply(&self, servers: &mut Map<String, Value>) {
        self.taken.iter().for_each(|name| drop(servers.shift_remove(name)));
        servers.extend(self.returned.clone());
    }
}

fn read(text: &str, client: &Client, file: &Path) -> Result<ClientFile, Problem> {
    ClientFile::read(text, client).map_err(|problem| Problem::Failed(format!("{}: {problem}", file.display())))
}

fn own_record(records: &Records, client: &Client) -> OwnFile {
    OwnFile { file: records.file(client), text: records.text(client), is_copied: false }
}

fn own_imported(moving: &Moving) -> OwnFile {
    OwnFile { file: moving.output().to_owned(), text: Some(moving.text()), is_copied: true }
}

/// Returns the names of the variables on which the entry of a server depends, and which this process has.
fn variables_of(server: &Server) -> Vec<String> {
    let asked = RefCell::new(Vec::new());
    let variable = |name: &str| {
        let value = std::env::var(name).ok();
        if value.is_some() && !EVERYWHERE.contains(&name) {
            asked.borrow_mut().push(name.to_owned());
        }
        value
    };
    let alone = json!({"mcpServers": {&server.name: server.fields}}).to_string();
    let _ = Configuration::parse(&alone, "imported.json", &variable);
    asked.into_inner()
}

/// Starts the named servers of a configuration, one line each, and returns the names of those that have started. `names`
/// has the names that the client gives them.
fn started(text: &str, client: &Client, names: &BTreeMap<String, String>) -> Result<Vec<String>, Problem> {
    let failed = |problem: String| Problem::Failed(format!("the servers conflict: {problem}"));
    let variable = |name: &str| std::env::var(name).ok();
    let mut configuration =
        Configuration::parse(text, "imported.json", &variable).map_err(|problem| failed(problem.to_string()))?;
    configuration.servers.retain(|server| names.contains_key(&server.name));
    for (_, name) in names.iter().filter(|(known, _)| configuration.servers.iter().all(|server| server.name != **known))
    {
        stays(name, client, "it is switched off in lispbox");
    }
    for server in &mut configuration.servers {
        server.start_timeout.get_or_insert(FIRST_START);
    }
    // The rules of the user decide what will be asked about.
    let policy = Sources::usual().read().map(|usual| usual.policy).unwrap_or_default();
    configuration.merge(Configuration { policy, ..Configuration::default() });
    outln!("starting {} of {}", counted(configuration.servers.len(), "server"), client.title);
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
        CheckProgress::Done(Checked { server, tools: Err(problem), .. }) => {
            let reason = match problem.message.contains("`lispbox login ") {
                // It logs in at servers of lispbox only.
                true => {
                    format!("{}, after `lispbox config import --from {}`; then repeat", problem.message, client.name)
                }
                false => problem.message,
            };
            stays(names.get(&server).unwrap_or(&server), client, &reason);
        }
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
