//! `lispbox config import`: the servers that other clients have.

use std::path::{Path, PathBuf};

use clap::Args;
use lispbox::server::{read_document, usual_folder};
use serde_json::{Map, Value, json};

use crate::clients::{CLIENTS, Client, is_lispbox};
use crate::setup::replace;
use crate::surroundings::Problem;

/// Finds the servers of the MCP clients on this machine, shows them, and writes them into one file of lispbox's
/// configuration. Secrets in them are copied with them; lispbox itself is left out.
#[derive(Args)]
pub struct Import {
    /// Import from this client alone, such as `cursor`; may be given several times.
    #[arg(long = "from", value_name = "CLIENT")]
    from: Vec<String>,
    /// The project whose own files are looked at too.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    project: PathBuf,
    /// Where to write; by default `config.d/imported.json` where settings of lispbox are.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show what is found, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Import {
    /// Imports.
    pub(super) fn run(self) -> Result<(), Problem> {
        for name in &self.from {
            Client::find(name, |_| true).map_err(Problem::Usage)?;
        }
        let mut imported = Map::new();
        let mut inputs = Vec::new();
        for client in
            CLIENTS.iter().filter(|client| self.from.is_empty() || self.from.iter().any(|name| name == client.name))
        {
            for file in client.files(&self.project) {
                println!("{} ({})", client.title, file.display());
                match read(&file) {
                    Ok(root) => take_up(client, &root, &mut imported, &mut inputs),
                    Err(problem) => println!("  cannot be read: {problem}"),
                }
            }
        }
        if imported.is_empty() {
            println!("no servers were found");
            return Ok(());
        }
        let Some(output) = self.output.or_else(|| Some(usual_folder()?.join("config.d").join("imported.json"))) else {
            return Err(Problem::Usage("the folder for settings is not known; name a file by `--output`".to_owned()));
        };
        if self.dry_run {
            println!("{} servers would be written to {}", imported.len(), output.display());
            return Ok(());
        }
        let count = imported.len();
        let mut root = json!({"mcpServers": imported});
        if !inputs.is_empty() {
            root["inputs"] = Value::Array(inputs);
        }
        let text = serde_json::to_string_pretty(&root).unwrap_or_default() + "\n";
        match replace(&output, &text)? {
            Some(backup) => {
                println!("{count} servers written to {}; what was there is {}", output.display(), backup.display())
            }
            None => println!("{count} servers written to {}", output.display()),
        }
        println!("`lispbox config check` starts each of them");
        Ok(())
    }
}

/// The servers of one file, shown and taken up: its own, and those of its projects.
fn take_up(client: &Client, root: &Value, imported: &mut Map<String, Value>, inputs: &mut Vec<Value>) {
    let projects = root.get("projects").and_then(Value::as_object).into_iter().flatten();
    let of_projects = projects.filter_map(|(_, project)| project.get(client.key));
    for servers in root.get(client.key).into_iter().chain(of_projects).filter_map(Value::as_object) {
        for (name, server) in servers {
            if is_lispbox(server) {
                println!("  {name}: left out, it is lispbox itself");
                continue;
            }
            if imported.get(name) == Some(server) {
                println!("  {name}: is there already");
                continue;
            }
            let mut taken = name.clone();
            if imported.contains_key(name) {
                taken = format!("{name}-{}", client.name);
                println!("  {name}: taken up as {taken}, since another client has another server of that name");
            } else {
                println!("  {name}");
            }
            imported.insert(taken, server.clone());
        }
    }
    let given = root.get("inputs").and_then(Value::as_array).into_iter().flatten();
    inputs.extend(given.cloned());
}

fn read(file: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|problem| problem.to_string())?;
    read_document(&text, &file.to_string_lossy())
}
