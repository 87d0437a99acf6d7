//! Checks whether the servers that `lispbox setup --move` has taken out of clients, by its records, are still in use.

use std::collections::BTreeSet;
use std::path::Path;

use lispbox::lang::internal::foreign_text;
use lispbox::server::{Configuration, usual_folder};
use serde_json::Value;

use super::client_files::Seen;
use crate::client_entry::starts_lispbox;
use crate::clients::{CLIENTS, Client};
use crate::context::Problem;
use crate::moved::{self, Moved, Origin};
use crate::output::outln;

/// Looks at the records of moved servers; returns false if one is in no client that lispbox reaches any more.
pub fn examine(files: &[Seen], configuration: &Configuration) -> bool {
    let Some(folder) = usual_folder() else { return true };
    let known = Known::of(&folder, configuration);
    let mut is_well = true;
    for client in CLIENTS {
        match moved::of_client(client) {
            Ok(mut moved) => {
                for seen in files.iter().filter(|seen| seen.client.name == client.name) {
                    let (here, elsewhere) = moved.into_iter().partition(|moved| seen.is_of(moved));
                    moved = elsewhere;
                    is_well &= accounted(seen, here, &known);
                }
            }
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

/// Says which of the servers that were moved out of a file are lost to the client; returns false if there are any.
fn accounted(seen: &Seen, moved: Vec<Moved>, known: &Known) -> bool {
    // A file that cannot be read has been reported.
    let Some(present) = seen.servers() else { return true };
    let is_attached = present.iter().any(|(_, entry)| starts_lispbox(entry));
    let returned: BTreeSet<&str> = present.iter().map(|(name, _)| *name).collect();
    let gone = moved.into_iter().filter(|moved| !returned.contains(&*moved.name));
    let (kept, lost): (Vec<Moved>, Vec<Moved>) = gone.partition(|moved| known.has(seen.client, moved));
    let names = |servers: &[Moved]| {
        servers.iter().map(|moved| foreign_text::name(&moved.name).to_string()).collect::<Vec<_>>().join(", ")
    };
    let (title, is_cut_off) = (seen.title(), !is_attached && !kept.is_empty());
    let undo = format!("{} puts back what was moved", seen.setup(" --undo"));
    if !lost.is_empty() {
        let lost = names(&lost);
        outln!("broken  {title}: moved out of it, and not in lispbox any more: {lost}; {undo}");
    }
    if is_cut_off {
        let (kept, attach) = (names(&kept), format!("{} attaches it again", seen.setup("")));
        outln!("broken  {title}: moved into lispbox, which it does not have any more: {kept}; {undo}, {attach}");
    }
    lost.is_empty() && !is_cut_off
}

/// The servers that lispbox has.
struct Known {
    /// Their names, and the places from which they were imported.
    servers: Vec<(String, Option<Origin>)>,
}

impl Known {
    fn of(folder: &Path, configuration: &Configuration) -> Known {
        let file = folder.join("config.d").join("imported.json");
        let imported: Option<Value> =
            std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok());
        let imported = imported.unwrap_or_default();
        let of_file = imported.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
        let of_file = of_file.map(|(name, _)| {
            let origin = imported.get("importedFrom").and_then(|origins| Origin::of(origins.get(name)?));
            (name.clone(), origin)
        });
        let of_all = configuration.servers.iter().map(|server| (server.name.clone(), None));
        Known { servers: of_all.chain(of_file).collect() }
    }

    fn has(&self, client: &Client, moved: &Moved) -> bool {
        self.servers.iter().any(|(name, origin)| moved.is(client, name, origin.as_ref()))
    }
}
