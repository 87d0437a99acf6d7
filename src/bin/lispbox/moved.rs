//! The records of the servers that `setup --move` has taken out of clients: what `--undo` puts back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lispbox::server::{server_namespace, usual_folder};
use serde_json::{Map, Value, json};

use crate::clients::{CLIENTS, Client};
use crate::context::Problem;

/// A server that was taken out of a client.
#[derive(Clone)]
pub struct Moved {
    /// The file of the client.
    pub file: PathBuf,
    /// The name that it had there.
    pub name: String,
    /// The entry that it had there.
    pub entry: Value,
    /// The text of the entry in that file, if it was in one piece.
    pub text: Option<String>,
    /// The name that it has among the imported servers, if it is known.
    pub imported: Option<String>,
    /// True if it was not among the imported servers before.
    pub is_added: bool,
    /// The entry that it was given there, if it is known.
    pub ours: Option<Value>,
}

impl Moved {
    /// Returns true if it was taken out of this file.
    pub fn is_of(&self, file: &Path) -> bool {
        let same = |file: &Path| std::fs::canonicalize(file).ok();
        self.file == absolute(file) || same(&self.file).is_some_and(|known| same(file) == Some(known))
    }

    /// Returns true if a server of lispbox with this name and origin is the one that was taken out of a client. Earlier
    /// records do not name one that lispbox had before.
    pub fn is(&self, client: &Client, name: &str, origin: Option<&Origin>) -> bool {
        let is_named = |known: &str| namespace(known) == namespace(name);
        let is_from = |origin: &Origin| {
            origin.key == format!("{}.{}", client.key, self.name) && self.is_of(Path::new(&origin.file))
        };
        match &self.imported {
            Some(imported) => is_named(imported),
            None => is_named(&self.name) || origin.is_some_and(is_from),
        }
    }
}

/// The place in a client's file from which a server was imported.
pub struct Origin {
    pub file: String,
    /// The path of keys in the file.
    pub key: String,
}

impl Origin {
    /// Reads what the file of imported servers says.
    pub fn of(origin: &Value) -> Option<Origin> {
        let text = |key: &str| origin.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Origin { file: text("file")?, key: text("key")? })
    }
}

/// All records, by client.
pub struct Records {
    folder: PathBuf,
    of: Vec<(&'static Client, Vec<Moved>)>,
    /// True if each of them could be read.
    pub is_whole: bool,
}

impl Records {
    /// Reads the records.
    ///
    /// # Errors
    /// Returns an error if the folder of the settings is unknown or a record cannot be read.
    pub fn read() -> Result<Records, Problem> {
        Records::read_for(|_| true)
    }

    /// Reads the records; those of other clients than this one are empty if they cannot be read.
    ///
    /// # Errors
    /// Returns an error if the folder of the settings is unknown or the record of the client cannot be read.
    pub fn of_client(client: &Client) -> Result<Records, Problem> {
        Records::read_for(|other| other.name == client.name)
    }

    fn read_for(is_needed: impl Fn(&Client) -> bool) -> Result<Records, Problem> {
        let folder =
            usual_folder().ok_or_else(|| Problem::Usage("the settings folder of lispbox is unknown".to_owned()))?;
        let folder = folder.join("moved");
        let (mut of, mut is_whole) = (Vec::new(), true);
        for client in CLIENTS {
            let moved = match read(&path(&folder, client), client) {
                Err(problem) if is_needed(client) => return Err(problem),
                moved => moved,
            };
            is_whole &= moved.is_ok();
            of.push((client, moved.unwrap_or_default()));
        }
        Ok(Records { folder, of, is_whole })
    }

    /// Returns the servers that were taken out of a client, whatever its file was.
    pub fn of(&self, client: &Client) -> &[Moved] {
        self.of.iter().find(|(known, _)| known.name == client.name).map_or(&[], |(_, moved)| moved)
    }

    /// Returns the servers that were taken out of this file of a client.
    pub fn of_file(&self, client: &Client, file: &Path) -> Vec<&Moved> {
        self.of(client).iter().filter(|moved| moved.is_of(file)).collect()
    }

    /// Sets the servers that were taken out of a client.
    pub fn set(&mut self, client: &Client, servers: Vec<Moved>) {
        if let Some((_, moved)) = self.of.iter_mut().find(|(known, _)| known.name == client.name) {
            *moved = servers;
        }
    }

    /// Returns the client out of which an imported server was taken, if it was.
    pub fn client_of(&self, imported: &str, origin: Option<&Origin>) -> Option<&'static Client> {
        let has = |(client, moved): &&(&'static Client, Vec<Moved>)| {
            moved.iter().any(|moved| moved.is(client, imported, origin))
        };
        self.of.iter().find(has).map(|(client, _)| *client)
    }

    /// Returns true if an imported server was added by a move.
    pub fn has_added(&self, imported: &str) -> bool {
        let added = |moved: &Moved| moved.is_added && moved.imported.as_deref() == Some(imported);
        self.of.iter().any(|(_, moved)| moved.iter().any(added))
    }

    /// Returns the file of the record of a client.
    pub fn file(&self, client: &Client) -> PathBuf {
        path(&self.folder, client)
    }

    /// Returns the text of the record of a client, unless it is empty.
    pub fn text(&self, client: &Client) -> Option<String> {
        let moved: Vec<Value> = self.of(client).iter().map(written).collect();
        (!moved.is_empty()).then(|| format!("{:#}\n", json!({"moved": moved})))
    }
}

/// Reads the record of a client; empty if there is none.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn of_client(client: &Client) -> Result<Vec<Moved>, Problem> {
    usual_folder().map_or_else(|| Ok(Vec::new()), |folder| read(&path(&folder.join("moved"), client), client))
}

/// Returns the path of a file from the root on.
pub fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

fn namespace(name: &str) -> String {
    server_namespace(name).unwrap_or_else(|_| name.to_owned())
}

fn path(folder: &Path, client: &Client) -> PathBuf {
    folder.join(format!("{}.json", client.name))
}

fn written(moved: &Moved) -> Value {
    let Moved { file, name, entry, text, imported, is_added, ours } = moved;
    let file = file.to_string_lossy();
    json!({"file": file, "name": name, "entry": entry, "text": text, "imported": imported, "added": is_added, "server": ours})
}

fn read(file: &Path, client: &Client) -> Result<Vec<Moved>, Problem> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(problem) if problem.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(Problem::Failed(format!("{}: {problem}", file.display()))),
    };
    let root: Option<Value> = serde_json::from_str(&text).ok();
    let moved = root.and_then(|root| match root.get("servers") {
        // Earlier versions had one file for each client, and named only the servers that they had added.
        Some(servers) => Some(of_usual_file(servers.as_object()?, client)),
        None => root.get("moved")?.as_array()?.iter().map(moved).collect(),
    });
    moved.ok_or_else(|| Problem::Failed(format!(
            "{}: it is not a record of moved servers; move it away; the `.backup` beside the file of {} has the servers",
            file.display(),
            client.title
        )))
}

fn moved(record: &Value) -> Option<Moved> {
    let text = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Moved {
        file: PathBuf::from(text("file")?),
        name: text("name")?,
        entry: record.get("entry")?.clone(),
        text: text("text"),
        imported: text("imported"),
        is_added: record.get("added")?.as_bool()?,
        ours: record.get("server").filter(|server| !server.is_null()).cloned(),
    })
}

fn of_usual_file(servers: &Map<String, Value>, client: &Client) -> Vec<Moved> {
    let file = client.user_file().map(|file| absolute(&file)).unwrap_or_default();
    let moved = servers.iter().map(|(name, record)| {
        let imported = record["imported"].as_str().map(str::to_owned);
        let (entry, is_added) = (record["entry"].clone(), imported.is_some());
        Moved { file: file.clone(), name: name.clone(), entry, text: None, imported, is_added, ours: None }
    });
    moved.collect()
}
