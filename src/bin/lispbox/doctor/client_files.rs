//! The files of the clients on this machine, and whether lispbox is attached in each.

use std::io;
use std::path::{Path, PathBuf};

use lispbox::lang::internal::foreign_text;
use lispbox::server::read_document;
use serde_json::{Map, Value};

use super::attachment::Attachment;
use crate::client_entry::starts_lispbox;
use crate::client_file::ClientFile;
use crate::clients::{CLIENTS, Client};
use crate::config::counted;
use crate::moved::{self, Moved};
use crate::output::outln;

/// A file in which a client has its servers, or would have them.
pub struct Seen {
    pub client: &'static Client,
    title: String,
    file: PathBuf,
    kind: Kind,
    /// The content, `None` if there is no file, or why it cannot be read.
    content: Result<Option<Content>, String>,
}

/// Why a file is one of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The client uses it.
    Usual,
    /// The client uses another file, unless a person starts this variant of it.
    Variant,
    /// Servers were moved out of it.
    Recorded,
}

/// The content of a file.
struct Content {
    root: Map<String, Value>,
    /// Why `setup` cannot change it, if it cannot.
    refused: Option<String>,
}

/// Returns the files of the clients that are on this machine, and those out of which servers were moved.
pub fn all() -> Vec<Seen> {
    let mut all = Vec::new();
    for client in CLIENTS {
        let usual = client.user_file();
        let installed = usual.clone().filter(|_| client.is_installed());
        let mut files: Vec<(String, PathBuf, Kind)> =
            installed.map(|file| (client.title.to_owned(), file, Kind::Usual)).into_iter().collect();
        files.extend(client.variants().into_iter().map(|(title, file)| (title, file, Kind::Variant)));
        // A record that cannot be read is reported with the records.
        for moved in moved::of_client(client).unwrap_or_default() {
            if files.iter().any(|(_, file, _)| moved.is_of(file)) {
                continue;
            }
            let (title, kind) = match usual.as_ref().is_some_and(|usual| moved.is_of(usual)) {
                true => (client.title.to_owned(), Kind::Usual),
                false => (format!("{} ({})", client.title, moved.file.display()), Kind::Recorded),
            };
            files.push((title, moved.file, kind));
        }
        all.extend(files.into_iter().map(|(title, file, kind)| {
            let content = read(&file, client);
            Seen { client, title, file, kind, content }
        }));
    }
    all
}

/// Says of each file how lispbox is attached in it; returns false if a client cannot start it.
pub fn examine(files: &[Seen]) -> bool {
    if files.is_empty() {
        outln!("        clients: none found on this machine");
    }
    let mut is_well = true;
    for seen in files {
        is_well &= seen.examine();
    }
    is_well
}

impl Seen {
    /// The servers in it, lispbox included; `None` if it cannot be read.
    pub fn servers(&self) -> Option<Vec<(&str, &Value)>> {
        let content = self.content.as_ref().ok()?;
        let servers = content.as_ref().and_then(|content| content.root.get(self.client.key)?.as_object());
        Some(servers.into_iter().flatten().map(|(name, entry)| (&**name, entry)).collect())
    }

    /// True if a server was moved out of it.
    pub fn is_of(&self, moved: &Moved) -> bool {
        moved.is_of(&self.file)
    }

    /// Its name, for a message.
    pub fn title(&self) -> String {
        foreign_text::line(&self.title).to_string()
    }

    /// The command that changes it, with this option.
    pub fn setup(&self, option: &str) -> String {
        self.client.setup(&self.file, option)
    }

    fn examine(&self) -> bool {
        let (title, file) = (self.title(), foreign_text::line(&self.file.display().to_string()).to_string());
        let content = match &self.content {
            Ok(content) => content.as_ref(),
            Err(problem) => {
                let problem = foreign_text::line(problem);
                outln!("broken  {title}: its configuration {file} cannot be read: {problem}; correct it");
                return false;
            }
        };
        let (ours, others): (Vec<_>, Vec<_>) =
            self.servers().unwrap_or_default().into_iter().partition(|(_, entry)| starts_lispbox(entry));
        let moves = if others.is_empty() { "" } else { " --move" };
        let empty = Map::new();
        let root = content.map_or(&empty, |content| &content.root);
        let attachments = ours.iter().filter_map(|(name, entry)| {
            Some(Attachment {
                client: self.client,
                title: &title,
                root,
                name,
                entry: entry.as_object()?,
                file: &file,
                setup: self.setup(""),
            })
        });
        let attachments: Vec<Attachment> = attachments.collect();
        if attachments.is_empty() {
            let setup = self.setup(moves);
            match (content.and_then(|content| content.refused.as_ref()), self.kind) {
                (Some(problem), _) => {
                    let problem = foreign_text::line(problem);
                    let by_hand = format!("{} says what to add by hand", self.setup(""));
                    outln!("        {title}: not attached; {by_hand}, since it cannot change {file}: {problem}");
                }
                (None, Kind::Variant) => {
                    outln!("        {title} has its own file {file}; {setup} attaches lispbox there")
                }
                (None, _) => outln!("        {title}: not attached; {setup} attaches it"),
            }
            return true;
        }
        let (attachments, faulty): (Vec<Attachment>, Vec<Attachment>) =
            attachments.into_iter().partition(|attachment| attachment.fault().is_none());
        // One entry that works is enough.
        if let Some(fault) = faulty.first().filter(|_| attachments.is_empty()).and_then(Attachment::fault) {
            outln!("broken  {title}: {}", foreign_text::line(&fault));
            return false;
        }
        match others.len() {
            0 => outln!("ok      {title}: attached"),
            count => outln!(
                "ok      {title}: attached, beside {} of its own; {} moves {}",
                counted(count, "server"),
                self.setup(moves),
                if count == 1 { "it" } else { "them" }
            ),
        }
        let differences: Vec<String> = attachments.iter().flat_map(Attachment::differences).collect();
        differences.iter().for_each(|difference| outln!("broken  {}", foreign_text::line(difference)));
        let notes = attachments.iter().filter_map(Attachment::note);
        notes.for_each(|note| outln!("        {}", foreign_text::line(&note)));
        differences.is_empty()
    }
}

/// Reads the file of a client as `setup` does, if there is one.
fn read(file: &Path, client: &Client) -> Result<Option<Content>, String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound && !file.is_symlink() => return Ok(None),
        Err(problem) => return Err(problem.to_string()),
    };
    let text = String::from_utf8(bytes).map_err(|problem| match problem.as_bytes() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is in UTF-16, and not in UTF-8".to_owned(),
        _ => "it is not in UTF-8".to_owned(),
    })?;
    let refused = match ClientFile::read(&text, client) {
        Ok(known) => {
            let root = known.root().as_object().cloned().unwrap_or_default();
            return Ok(Some(Content { root, refused: None }));
        }
        Err(problem) => problem,
    };
    // The client may read what `setup` cannot write, such as comments.
    let name = if client.keeps_json() { "it.json" } else { "it.toml" };
    match read_document(&text, name) {
        Ok(Value::Object(root))
            if root.get(client.key).is_none_or(|servers| servers.is_object() || servers.is_null()) =>
        {
            Ok(Some(Content { root, refused: Some(refused) }))
        }
        _ => Err(refused),
    }
}
