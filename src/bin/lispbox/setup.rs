//! `lispbox setup`: adds lispbox to the configuration of an MCP client.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Policy, Sources, usual_folder};
use serde_json::Value;

use crate::client_entry::{
    Given, NAME, attached, entry, has_guards, has_other_settings, reads_elsewhere, shown, switched_off,
};
use crate::client_file::{COMMENTS, ClientFile, by_hand, entry_lines};
use crate::clients::Client;
use crate::config::counted;
use crate::config::import::{leaves_out, printable};
use crate::context::Problem;
use crate::moved::Records;
use crate::moving::{Plan, Trial};
use crate::output::{errln, outln};
use crate::rewriting::{Change, change, check_writable, current, lock};

/// Adds lispbox to the configuration of an MCP client on this machine and keeps a backup of the file. Repeating it
/// changes nothing; `--remove` removes it again.
#[derive(Args)]
pub struct Setup {
    /// The client: `claude-desktop`, `claude-code`, `cursor`, `vscode`, `windsurf`, `gemini-cli` or `codex`.
    client: String,
    /// The configuration file of the client, if it is in an unusual place.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A configuration for lispbox, instead of the user's own. It must exist and be valid.
    #[arg(long, value_name = "PATH", conflicts_with = "remove")]
    config: Vec<PathBuf>,
    /// Guards on the arguments of tools with effects: `careful` or `strict`.
    #[arg(long, value_name = "PRESET", conflicts_with = "remove")]
    guards: Option<String>,
    /// Move the client's servers into lispbox: each is started, and taken out of the client if it started. Servers that
    /// do not start, or that change meanwhile, stay where they are.
    #[arg(long = "move", conflicts_with_all = ["remove", "config"])]
    moves: bool,
    /// Take back what `--move` has done: the client has its servers again, and not lispbox.
    #[arg(long, conflicts_with_all = ["moves", "remove", "config", "guards"])]
    undo: bool,
    /// Remove lispbox from the client's configuration. If its servers were moved, `--undo` does that.
    #[arg(long)]
    remove: bool,
    /// Show what would change, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Setup {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        self.write().map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    fn write(self) -> Result<(), Problem> {
        let client = Client::find(&self.client).map_err(Problem::Usage)?;
        let unknown =
            || Problem::Usage(format!("the configuration file of {} is unknown; give it with `--file`", client.title));
        let file = self.file.clone().or_else(|| client.user_file()).ok_or_else(unknown)?;
        self.check()?;
        // What cannot be written is refused before any server is started.
        let text = current(&file)?;
        let now = self.read(client, &file, &text)?;
        self.edited(client, &file, now, Plan::default())?;
        let trial = if self.moves { self.start(client, &file, &text)? } else { Trial::default() };
        // Another `setup` waits until this one has written.
        let _lock = if self.dry_run { None } else { lock() };
        let compute = |text: &str| {
            let now = self.read(client, &file, text)?;
            let plan = match (self.moves, self.undo) {
                (true, _) => Plan::moving(client, &file, &now, &trial, self.dry_run)?,
                (_, true) => Plan::undoing(client, &file, &now)?,
                _ => Plan::default(),
            };
            self.edited(client, &file, now, plan)
        };
        if self.dry_run {
            let (change, edited) = compute(&current(&file)?)?;
            edited.plan.notes.iter().for_each(|note| outln!("{note}"));
            match change.text {
                Some(_) => edited.show(client, &format!("{} would change:", file.display())),
                None => self.say_unchanged(client, &file, &edited),
            }
            return Ok(());
        }
        let (edited, copies) = change(&file, client.title, compute)?;
        edited.plan.notes.iter().for_each(|note| outln!("{note}"));
        if edited.is_changed {
            edited.show(client, &format!("{}:", file.display()));
            match copies.of_client {
                Some(copy) => outln!("written; the previous file is {}", copy.display()),
                None => outln!("written"),
            }
        } else {
            self.say_unchanged(client, &file, &edited);
        }
        copies.of_own.iter().for_each(|copy| outln!("the previous file of lispbox is {}", copy.display()));
        if edited.is_changed {
            self.advise(client, &file, &edited);
        }
        Ok(())
    }

    fn is_removed(&self) -> bool {
        self.remove || self.undo
    }

    /// Starts the servers that are to be moved.
    fn start(&self, client: &'static Client, file: &Path, text: &str) -> Result<Trial, Problem> {
        let now = self.read(client, file, text)?;
        let (_, edited) = self.edited(client, file, now, Plan::default())?;
        let is_off = edited.off.map(|reason| format!("{reason}; switch it on there, and repeat"));
        let reads_elsewhere = || edited.new.as_ref().and_then(|entry| reads_elsewhere(client, entry));
        if let Some(reason) = is_off.or_else(reads_elsewhere) {
            return Err(Problem::Usage(reason));
        }
        if !self.dry_run {
            check_writable(file)?;
            usual_folder().map_or(Ok(()), |folder| check_writable(&folder.join("config.d/imported.json")))?;
        }
        Trial::run(client, file, text)
    }

    fn read(&self, client: &Client, file: &Path, text: &str) -> Result<ClientFile, Problem> {
        ClientFile::read(text, client).map_err(|problem| self.by_hand(client, file, None, &problem))
    }

    /// Says why a file cannot be changed, and what a person can do there instead.
    fn by_hand(&self, client: &Client, file: &Path, old: Option<&Value>, problem: &str) -> Problem {
        let is_behind = match Records::of_client(client) {
            Ok(records) => !records.of_file(client, file).is_empty(),
            Err(problem) if self.is_removed() => return problem,
            Err(_) => false,
        };
        let by_hand = match self.entry(client, old) {
            Ok(entry) if !self.is_removed() => format!("add by hand:\n{}", by_hand(client, NAME, &entry)),
            // Without lispbox, the client would have none of its servers.
            _ if is_behind => {
                let mend = if problem == COMMENTS { "take them out" } else { "mend that" };
                format!("{mend}, and repeat: servers of {} are behind lispbox", client.title)
            }
            _ => format!("remove `{}.{NAME}` by hand", client.key),
        };
        Problem::Failed(format!("{}: {problem}; {by_hand}", file.display()))
    }

    fn entry(&self, client: &Client, old: Option<&Value>) -> Result<Value, Problem> {
        entry(client, &Given { config: &self.config, guards: self.guards.as_deref() }, old)
    }

    /// Edits a client's configuration so that it has an entry for lispbox, or none, and the other entries of a plan.
    fn edited(
        &self,
        client: &'static Client,
        file: &Path,
        now: ClientFile,
        mut plan: Plan,
    ) -> Result<(Change, Edited), Problem> {
        let before = now.servers().cloned();
        let mut servers = before.clone().unwrap_or_default();
        let name = match attached(&servers) {
            Err(_) if self.is_removed() => None,
            found => found.map_err(|problem| {
                Problem::Failed(format!("{}: {problem}; give it another name, and repeat", file.display()))
            })?,
        };
        let old = name.as_ref().and_then(|name| servers.get(name)).cloned();
        let new = if self.is_removed() { None } else { Some(self.entry(client, old.as_ref())?) };
        if let Some(old) = old.as_ref().filter(|_| self.is_removed()) {
            self.refuse_to_strand(client, file, old)?;
        }
        let key = new.as_ref().and_then(|entry| {
            let leaves_out = |root| leaves_out(client, root, name.as_deref().unwrap_or(NAME));
            entry.as_object().and_then(switched_off).or_else(|| now.root().as_object().and_then(leaves_out))
        });
        let off = key.map(|key| format!("lispbox is switched off in {}, by `{key}`", client.title));
        if let Some(off) = off.as_ref().filter(|_| !self.moves) {
            plan.notes.push(format!("{off}; switch it on there"));
        }
        plan.apply(&mut servers);
        let name = name.unwrap_or_else(|| NAME.to_owned());
        match &new {
            Some(new) => drop(servers.insert(name.clone(), new.clone())),
            None if old.is_some() => drop(servers.shift_remove(&name)),
            None => {}
        }
        if self.is_removed()
            && let Ok(Some(other)) = attached(&servers)
        {
            plan.notes.push(format!("`{}` is lispbox too, and stays; `--remove` removes it", printable(&other)));
        }
        let records = if self.undo { Some(Records::of_client(client)?) } else { None };
        let behind = records.iter().flat_map(|records| records.of_file(client, file));
        let behind = behind.filter_map(|moved| moved.imported.clone()).collect();
        let is_changed = servers != before.unwrap_or_default();
        let mut edited = Edited { name, old, new, off, is_changed, behind, plan };
        let text = match edited.is_changed {
            true => Some(
                now.with(&servers, &edited.plan.texts)
                    .map_err(|problem| self.by_hand(client, file, edited.old.as_ref(), &problem))?,
            ),
            false => None,
        };
        let (before, after) = (std::mem::take(&mut edited.plan.before), std::mem::take(&mut edited.plan.after));
        Ok((Change { before, text, after }, edited))
    }

    /// Refuses to take lispbox out of a client whose servers are behind it; `old` is its entry.
    fn refuse_to_strand(&self, client: &Client, file: &Path, old: &Value) -> Result<(), Problem> {
        let records = Records::of_client(client)?;
        match records.of_file(client, file).len() {
            0 if records.of(client).is_empty() => {
                has_other_settings(client, old).map_or(Ok(()), |reason| Err(Problem::Usage(reason)))
            }
            count if count > 0 && self.remove => Err(Problem::Usage(format!(
                "{} of {} moved into lispbox, and would be lost to it; {} puts {} back and removes lispbox",
                counted(count, "server"),
                client.title,
                client.setup(file, " --undo"),
                if count == 1 { "it" } else { "them" }
            ))),
            _ => Ok(()),
        }
    }

    /// Says that a client's file is as it was.
    fn say_unchanged(&self, client: &Client, file: &Path, edited: &Edited) {
        let state = if self.is_removed() { "does not have lispbox" } else { "has lispbox already" };
        outln!("{} {state}, in {}", client.title, file.display());
        if self.undo && edited.plan.notes.is_empty() && !self.dry_run {
            let stay = imported(&edited.behind);
            match stay.is_empty() {
                true => outln!("it has its servers; what lispbox had of them is removed"),
                false => outln!("it has its servers; lispbox keeps {} too", stay.join(", ")),
            }
        }
    }

    /// Checks the configuration and the guards that the entry names.
    fn check(&self) -> Result<(), Problem> {
        if !self.config.is_empty() {
            let configuration = Sources::new(self.config.clone()).read();
            let configuration = configuration.map_err(|problem| Problem::Usage(format!("--config {problem}")))?;
            configuration.warnings.iter().for_each(|warning| errln!("lispbox: {warning}"));
        }
        if let Some(preset) = &self.guards {
            Policy::default().add_preset(preset, "--guards").map_err(Problem::Usage)?;
        }
        Ok(())
    }

    /// Says what to do after the change.
    fn advise(&self, client: &Client, file: &Path, edited: &Edited) {
        let effect = if self.is_removed() { "stop using" } else { "start" };
        outln!("restart {} for it to {effect} lispbox", client.title);
        if self.moves {
            outln!("{} takes this back; `lispbox doctor` says whether all is well", client.setup(file, " --undo"));
        }
        if edited.new.as_ref().is_some_and(|entry| !has_guards(entry)) {
            outln!(
                "with `--guards careful`, mails, payments and posts go only to addresses that you or your contacts gave"
            );
        }
    }
}

/// Returns those of the named servers that are among the imported ones, for a message.
fn imported(names: &[String]) -> Vec<String> {
    let text = usual_folder().and_then(|folder| std::fs::read_to_string(folder.join("config.d/imported.json")).ok());
    let root: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let stays = |name: &&String| root["mcpServers"].get(name.as_str()).is_some();
    names.iter().filter(stays).map(|name| format!("`{}`", printable(name))).collect()
}

/// A client's entry for lispbox before and after the change, and what else changes.
struct Edited {
    name: String,
    old: Option<Value>,
    new: Option<Value>,
    /// Why the client does not start it, if it does not.
    off: Option<String>,
    /// Whether the client's file is another one then.
    is_changed: bool,
    /// The names that lispbox gave to the servers that return.
    behind: Vec<String>,
    plan: Plan,
}

impl Edited {
    /// Shows an entry before (`-`) and after (`+`) a change, line by line. The rest of the file, the values of variables
    /// and what URLs have of passwords are not shown, because they may be secret.
    fn show(&self, client: &Client, heading: &str) {
        outln!("{heading}");
        let is_json = client.keeps_json();
        let lines = |entry: Option<&Value>| -> Vec<String> {
            let Some(entry) = entry else { return Vec::new() };
            let indent = if is_json { "    " } else { "" };
            entry_lines(client, &self.name, &shown(entry)).iter().map(|line| format!("{indent}{line}")).collect()
        };
        let (old, new) = (lines(self.old.as_ref()), lines(self.new.as_ref()));
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let ending = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(old, new)| old == new).count();
        if is_json {
            outln!("  \"{}\": {{", client.key);
        }
        old[..same].iter().for_each(|line| outln!("  {line}"));
        old[same..old.len() - ending].iter().for_each(|line| outln!("- {line}"));
        new[same..new.len() - ending].iter().for_each(|line| outln!("+ {line}"));
        new[new.len() - ending..].iter().for_each(|line| outln!("  {line}"));
        let other = |name: &str| match is_json {
            true => format!("    {}: …", Value::from(printable(name))),
            false => format!("[{}.{}] …", client.key, printable(name)),
        };
        self.plan.taken.iter().for_each(|name| outln!("- {}", other(name)));
        self.plan.returned.keys().for_each(|name| outln!("+ {}", other(name)));
        if is_json {
            outln!("  }}");
        }
    }
}
