//! What `lispbox setup --move` has taken out of clients, as it has recorded it, and whether it is still somewhere.

use std::collections::BTreeSet;
use std::path::Path;

use lispbox::lang::internal::foreign_text;
use lispbox::server::{Configuration, server_namespace, usual_folder};
use serde_json::Value;

use super::client_files::Seen;
use crate::clients::{CLIENTS, Client, is_lispbox};
use crate::context::Problem;
use crate::moved::{self, Moved};
use crate::output::outln;

/// Looks at the records of moved servers; returns false if one is in no client that lispbox reaches any more.
pub fn examine(files: &[Seen], configuration: &Configuration) -> bool {
    let Some(folder) = usual_folder() else { return true };
    let known = Known::of(&folder, configuration);
    let mut is_well = true;
    for client in CLIENTS {
        match moved::of_client(client) {
            Ok(moved) => is_well &= accounted(client, files, &moved, &known),
            Err(Problem::Usage(problem) | Problem::Failed(problem)) => {
                is_well = false;
                let problem = foreign_text::line(&problem).to_string();
                outln!("broken  {}: the record of its moved servers cannot be read: {problem}", client.title);
            }
        }
    }
    is_well
}

/// True if servers were moved out of a client, or if that cannot be known.
pub fn has(client: &Client) -> bool {
    moved::of_client(client).map_or(true, |moved| !moved.is_empty())
}

/// Says which servers of a record are lost to the client; returns false if there are any.
fn accounted(client: &Client, files: &[Seen], moved: &[Moved], known: &Known) -> bool {
    let mut of_client = files.iter().filter(|seen| seen.client.name == client.name && !seen.is_variant);
    // A file that cannot be read has been reported.
    let Some(present) = of_client.next().map_or(Some(Vec::new()), Seen::servers) else { return true };
    let is_attached = present.iter().any(|(_, entry)| is_lispbox(entry));
    let returned: BTreeSet<&str> = present.iter().map(|(name, _)| *name).collect();
    let usual = client.user_file();
    let is_of_usual = |moved: &Moved| usual.as_ref().is_none_or(|file| moved.is_of(file));
    let gone = moved.iter().filter(|moved| !(is_of_usual(moved) && returned.contains(&*moved.name)));
    let (kept, lost): (Vec<&Moved>, Vec<&Moved>) = gone.partition(|moved| known.has(client, moved));
    let names = |servers: &mut dyn Iterator<Item = &&Moved>| {
        servers.map(|moved| foreign_text::name(&moved.name).to_string()).collect::<Vec<_>>().join(", ")
    };
    let title = client.title;
    let undo = format!("`lispbox setup {} --undo` puts back what was moved", client.name);
    if !lost.is_empty() {
        let lost = names(&mut lost.iter());
        outln!("broken  {title}: moved out of it, and not in lispbox any more: {lost}; {undo}");
    }
    let cut_off = names(&mut kept.iter().filter(|moved| !is_attached && is_of_usual(moved)));
    if !cut_off.is_empty() {
        let attach = format!("`lispbox setup {}` attaches it again", client.name);
        outln!("broken  {title}: moved into lispbox, which it does not have any more: {cut_off}; {undo}, {attach}");
    }
    lost.is_empty() && cut_off.is_empty()
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
    fn has(&self, client: &Client, Moved { name, imported, .. }: &Moved) -> bool {
        match imported {
            Some(imported) => self.names.contains(&namespace(imported)),
            None => self.names.contains(&namespace(name)) || self.places.contains(&format!("{}.{name}", client.key)),
        }
    }
}

fn namespace(name: &str) -> String {
    server_namespace(name).unwrap_or_else(|_| name.to_owned())
}
