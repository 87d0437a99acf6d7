//! What `lispbox setup --move` has taken out of clients, as it has recorded it, and whether it is still somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lispbox::lang::internal::foreign_text;
use lispbox::server::{Configuration, server_namespace, usual_folder};
use serde_json::{Map, Value};

use super::client_files::Seen;
use crate::clients::{CLIENTS, Client, is_lispbox};
use crate::output::outln;

/// Looks at the records of moved servers; returns false if one is in no client that lispbox reaches any more.
pub fn examine(files: &[Seen], configuration: &Configuration) -> bool {
    let Some(folder) = usual_folder() else { return true };
    let known = Known::of(&folder, configuration);
    let mut is_well = true;
    for client in CLIENTS {
        match servers(&file_in(&folder, client)) {
            Ok(servers) => is_well &= accounted(client, files, &servers, &known),
            Err(problem) => {
                is_well = false;
                let problem = foreign_text::line(&problem).to_string();
                outln!("broken  {}: the record of its moved servers cannot be read: {problem}", client.title);
            }
        }
    }
    is_well
}

/// True if servers were moved out of a client.
pub fn has(client: &Client) -> bool {
    usual_folder().is_some_and(|folder| file_in(&folder, client).exists())
}

fn file_in(folder: &Path, client: &Client) -> PathBuf {
    folder.join("moved").join(format!("{}.json", client.name))
}

/// Says which servers of a record are lost to the client; returns false if there are any.
fn accounted(client: &Client, files: &[Seen], servers: &Map<String, Value>, known: &Known) -> bool {
    let mut of_client = files.iter().filter(|seen| seen.client.name == client.name && !seen.is_variant);
    // A file that cannot be read has been reported.
    let Some(present) = of_client.next().map_or(Some(Vec::new()), Seen::servers) else { return true };
    let is_attached = present.iter().any(|(_, entry)| is_lispbox(entry));
    let returned: BTreeSet<&str> = present.iter().map(|(name, _)| *name).collect();
    let gone = servers.iter().filter(|(name, _)| !returned.contains(&***name));
    let (kept, lost): (Vec<_>, Vec<_>) = gone.partition(|(name, moved)| known.has(client, name, moved));
    let names = |servers: &[(&String, &Value)]| {
        let names: Vec<String> = servers.iter().map(|(name, _)| foreign_text::name(name).to_string()).collect();
        names.join(", ")
    };
    let title = client.title;
    let undo = format!("`lispbox setup {} --undo` puts back what was moved", client.name);
    if !lost.is_empty() {
        outln!("broken  {title}: moved out of it, and not in lispbox any more: {}; {undo}", names(&lost));
    }
    let is_cut_off = !kept.is_empty() && !is_attached;
    if is_cut_off {
        let attach = format!("`lispbox setup {}` attaches it again", client.name);
        outln!(
            "broken  {title}: moved into lispbox, which it does not have any more: {}; {undo}, {attach}",
            names(&kept)
        );
    }
    lost.is_empty() && !is_cut_off
}

/// Reads a record, which need not exist.
fn servers(record: &Path) -> Result<Map<String, Value>, String> {
    let text = match std::fs::read_to_string(record) {
        Ok(text) => text,
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(problem) => return Err(format!("{}: {problem}", record.display())),
    };
    let root: Option<Value> = serde_json::from_str(&text).ok();
    let servers = root.and_then(|root| root.get("servers")?.as_object().cloned());
    servers.ok_or_else(|| format!("{}: expected JSON with `servers`", record.display()))
}

/// The servers that lispbox has.
struct Known {
    /// Their names, as programs use them.
    names: BTreeSet<String>,
    /// The places in the clients' files from which they were imported.
    places: BTreeSet<String>,
}

impl Known {
    fn of(folder: &Path, configuration: &Configuration) -> Known {
        let file = folder.join("config.d").join("imported.json");
        let imported: Option<Value> =
            std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
        let object = |key: &str| imported.as_ref().and_then(|root| root.get(key)?.as_object()).into_iter().flatten();
        let of_file = object("mcpServers").map(|(name, _)| namespace(name));
        let names = configuration.servers.iter().map(|server| server.name.clone()).chain(of_file).collect();
        let places = object("importedFrom").filter_map(|(_, origin)| origin.get("key")?.as_str());
        Known { names, places: places.map(str::to_owned).collect() }
    }

    /// True if lispbox has a server that was moved. One that it had before has no name in the record.
    fn has(&self, client: &Client, name: &str, moved: &Value) -> bool {
        match moved.get("imported").and_then(Value::as_str) {
            Some(imported) => self.names.contains(&namespace(imported)),
            None => self.names.contains(&namespace(name)) || self.places.contains(&format!("{}.{name}", client.key)),
        }
    }
}

fn namespace(name: &str) -> String {
    server_namespace(name).unwrap_or_else(|_| name.to_owned())
}
