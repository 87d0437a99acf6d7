//! The files of the clients on this machine, and whether lispbox is attached in each.

use std::io;
use std::path::{Path, PathBuf};

use lispbox::lang::internal::foreign_text;
use lispbox::server::read_document;
use serde_json::{Map, Value};

use super::attachment::Attachment;
use crate::clients::{CLIENTS, Client, is_lispbox};
use crate::config::counted;
use crate::output::outln;

/// A file in which a client has its servers, or would have them.
pub struct Seen {
    pub client: &'static Client,
    title: String,
    file: PathBuf,
    /// True if the client uses another file, unless a person starts this variant of it.
    pub is_variant: bool,
    /// The content, `None` if there is no file, or why it cannot be read.
    root: Result<Option<Map<String, Value>>, String>,
}

/// Returns the files of the clients that are on this machine.
pub fn all() -> Vec<Seen> {
    let mut all = Vec::new();
    for client in CLIENTS {
        let mut add = |title: String, file: PathBuf, is_variant: bool| {
            let root = read(&file, client);
            all.push(Seen { client, title, file, is_variant, root });
        };
        if let Some(file) = client.user_file().filter(|_| client.is_installed()) {
            add(client.title.to_owned(), file, false);
        }
        client.variants().into_iter().for_each(|(title, file)| add(title, file, true));
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
        let servers = self.root.as_ref().ok()?.as_ref().and_then(|root| root.get(self.client.key)?.as_object());
        Some(servers.into_iter().flatten().map(|(name, entry)| (&**name, entry)).collect())
    }

    /// The command that changes it, with this option.
    fn setup(&self, option: &str) -> String {
        let quote = if cfg!(windows) { '"' } else { '\'' };
        let file = match self.is_variant {
            true => format!(" --file {quote}{}{quote}", self.file.display()),
            false => String::new(),
        };
        foreign_text::line(&format!("`lispbox setup {}{file}{option}`", self.client.name)).to_string()
    }

    fn examine(&self) -> bool {
        let Seen { title, file, .. } = self;
        let (title, file) = (foreign_text::line(title), foreign_text::line(&file.display().to_string()).to_string());
        if let Err(problem) = &self.root {
            let problem = foreign_text::line(problem);
            outln!("broken  {title}: its configuration {file} cannot be read: {problem}; correct it, or move it away");
            return false;
        }
        let (ours, others): (Vec<_>, Vec<_>) =
            self.servers().unwrap_or_default().into_iter().partition(|(_, entry)| is_lispbox(entry));
        let moves = if others.is_empty() { "" } else { " --move" };
        let empty = Map::new();
        let root = self.root.as_ref().ok().and_then(Option::as_ref).unwrap_or(&empty);
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
            match self.is_variant {
                true => outln!("        {title} has its own file {file}; {} attaches lispbox there", self.setup(moves)),
                false => outln!("        {title}: not attached; {} attaches it", self.setup(moves)),
            }
            return true;
        }
        let faults: Vec<String> = attachments.iter().filter_map(Attachment::fault).collect();
        // One entry that works is enough.
        if let Some(fault) = faults.first().filter(|_| faults.len() == attachments.len()) {
            outln!("broken  {title}: {}", foreign_text::line(fault));
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

/// Reads the file of a client, if there is one.
fn read(file: &Path, client: &Client) -> Result<Option<Map<String, Value>>, String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound && !file.is_symlink() => return Ok(None),
        Err(problem) => return Err(problem.to_string()),
    };
    let text = String::from_utf8(bytes).map_err(|problem| match problem.as_bytes() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is in UTF-16, and not in UTF-8".to_owned(),
        _ => "it is not in UTF-8".to_owned(),
    })?;
    if text.trim().is_empty() && client.keeps_json() {
        return Err("it is empty".to_owned());
    }
    let name = if client.keeps_json() { "it.json" } else { "it.toml" };
    let Value::Object(root) = read_document(&text, name)? else { return Err("expected an object".to_owned()) };
    match root.get(client.key) {
        None | Some(Value::Null | Value::Object(_)) => Ok(Some(root)),
        Some(_) => Err(format!("expected an object in `{}`", client.key)),
    }
}
