//! `lispbox setup`: adds lispbox to the configuration of an MCP client.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Policy, Sources};
use serde_json::{Value, json};

use crate::client_file::{ClientFile, by_hand, entry_lines};
use crate::clients::Client;
use crate::config::import::printable;
use crate::context::Problem;
use crate::installation::launcher;
use crate::moving::Plan;
use crate::output::{errln, outln};

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
    /// do not start stay where they are.
    #[arg(long = "move", conflicts_with_all = ["remove", "config"])]
    moves: bool,
    /// Take back what `--move` has done: the client has its servers again, and not lispbox.
    #[arg(long, conflicts_with_all = ["moves", "remove", "config", "guards"])]
    undo: bool,
    /// Remove lispbox from the client's configuration.
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
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(Problem::Failed(format!("{}: {problem}", file.display()))),
        };
        let is_removed = self.remove || self.undo;
        let entry = if is_removed { None } else { Some(self.entry(client)?) };
        let edit = |plan: &Plan| {
            edited(&before, client, entry.as_ref(), plan).map_err(|problem| {
                let by_hand = match &entry {
                    Some(entry) => format!("add by hand:\n{}", by_hand(client, "lispbox", entry)),
                    None => format!("remove `{}.lispbox` by hand", client.key),
                };
                Problem::Failed(format!("{}: {problem}; {by_hand}", file.display()))
            })
        };
        // A file that cannot be rewritten is refused before any server is started.
        edit(&Plan::default())?;
        let plan = match (self.moves, self.undo) {
            (true, _) => Plan::moving(client, &file, self.dry_run)?,
            (_, true) => Plan::undoing(client, &file)?,
            _ => Plan::default(),
        };
        let Some(Edited { text, old, new }) = edit(&plan)? else {
            let state = if is_removed { "does not have lispbox" } else { "has lispbox already" };
            outln!("{} {state}, in {}", client.title, file.display());
            return Ok(());
        };
        outln!("{}{}", file.display(), if self.dry_run { " would change:" } else { ":" });
        show_change(client, old.as_ref(), new.as_ref(), &plan);
        if self.dry_run {
            return Ok(());
        }
        // First what lispbox has, so that no server is ever in neither of the two.
        plan.begin()?;
        match replace(&file, &text)? {
            Some(backup) => outln!("written; the previous file is {}", backup.display()),
            None => outln!("written"),
        }
        plan.finish()?;
        self.advise(client);
        Ok(())
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
    fn advise(&self, client: &Client) {
        let is_removed = self.remove || self.undo;
        let effect = if is_removed { "stop using" } else { "start" };
        outln!("restart {} for it to {effect} lispbox", client.title);
        if self.moves {
            outln!("`lispbox setup {} --undo` takes this back; `lispbox doctor` says whether all is well", client.name);
        }
        if self.guards.is_none() && !is_removed {
            outln!(
                "with `--guards careful`, mails, payments and posts go only to addresses that you or your contacts gave"
            );
        }
    }

    /// The entry with which the client starts lispbox.
    fn entry(&self, client: &Client) -> Result<Value, Problem> {
        let failed = |problem: std::io::Error| Problem::Failed(problem.to_string());
        let (program, mut arguments) = launcher(std::env::current_exe().map_err(failed)?);
        arguments.push("serve".to_owned());
        for path in &self.config {
            let path = std::path::absolute(path).map_err(failed)?;
            arguments.extend(["--config".to_owned(), path.display().to_string()]);
        }
        if let Some(preset) = &self.guards {
            arguments.extend(["--guards".to_owned(), preset.clone()]);
        }
        if ASKS_BEFORE_TOOLS.contains(&client.name) {
            arguments.push("--approve-tool".to_owned());
        }
        let mut entry = json!({"command": program.display().to_string(), "args": arguments});
        if matches!(client.name, "claude-code" | "vscode") {
            entry["type"] = "stdio".into();
        }
        Ok(entry)
    }
}

/// The clients that ask a person before each call of a tool, and show no forms of a server.
const ASKS_BEFORE_TOOLS: &[&str] = &["claude-desktop"];

/// A client's configuration after the change, and its entry for lispbox before and after.
struct Edited {
    text: String,
    old: Option<Value>,
    new: Option<Value>,
}

/// Edits a client's configuration so that it has this entry for lispbox, or none, and the other entries of a plan;
/// returns `None` if nothing changes. Variables and other keys that a person has added to the entry are kept.
///
/// # Errors
/// Returns the reason why the configuration cannot be rewritten.
fn edited(before: &str, client: &Client, entry: Option<&Value>, plan: &Plan) -> Result<Option<Edited>, String> {
    let file = ClientFile::read(before, client)?;
    if entry.is_none() && plan.returned().is_empty() && file.servers().is_none() {
        return Ok(None);
    }
    let mut servers = file.servers().cloned().unwrap_or_default();
    let old = servers.get("lispbox").cloned();
    let new = entry.map(|entry| {
        let mut entry = entry.clone();
        if let (Some(entry), Some(Value::Object(old))) = (entry.as_object_mut(), &old) {
            for (key, value) in old {
                entry.entry(key).or_insert_with(|| value.clone());
            }
        }
        entry
    });
    let is_changed = plan.apply(&mut servers);
    if old == new && !is_changed {
        return Ok(None);
    }
    match &new {
        Some(new) => servers.insert("lispbox".to_owned(), new.clone()),
        None => servers.shift_remove("lispbox"),
    };
    Ok(Some(Edited { text: file.with(servers)?, old, new }))
}

/// Shows an entry before (`-`) and after (`+`) a change, line by line. The rest of the file and the values of variables
/// are not shown, because they may be secret.
fn show_change(client: &Client, old: Option<&Value>, new: Option<&Value>, plan: &Plan) {
    let is_json = client.keeps_json();
    let lines = |entry: Option<&Value>| -> Vec<String> {
        let Some(entry) = entry else { return Vec::new() };
        let mut entry = entry.clone();
        for place in ["env", "headers"] {
            for (_, value) in entry.get_mut(place).and_then(Value::as_object_mut).into_iter().flatten() {
                *value = "(not shown)".into();
            }
        }
        let indent = if is_json { "    " } else { "" };
        entry_lines(client, "lispbox", &entry).iter().map(|line| format!("{indent}{line}")).collect()
    };
    let (old, new) = (lines(old), lines(new));
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
    plan.taken().iter().for_each(|name| outln!("- {}", other(name)));
    plan.returned().iter().for_each(|name| outln!("+ {}", other(name)));
    if is_json {
        outln!("  }}");
    }
}

/// Atomically replaces a file and keeps a backup of its previous content; a new file is readable only by its owner.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn replace(file: &Path, text: &str) -> Result<Option<PathBuf>, Problem> {
    let failed = |problem: std::io::Error| Problem::Failed(format!("{}: {problem}", file.display()));
    if std::fs::read_to_string(file).is_ok_and(|before| before == text) {
        return Ok(None);
    }
    // If the file is a link, its target is replaced.
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut backup = None;
    let mut draft = tempfile::Builder::new().prefix(".lispbox-").tempfile_in(folder).map_err(failed)?;
    std::io::Write::write_all(&mut draft, text.as_bytes()).map_err(failed)?;
    if let Ok(metadata) = std::fs::metadata(file) {
        let copy = free_name(file);
        std::fs::copy(file, &copy).map_err(failed)?;
        std::fs::set_permissions(draft.path(), metadata.permissions()).map_err(failed)?;
        backup = Some(copy);
    }
    draft.persist(&target).map_err(|problem| failed(problem.error))?;
    Ok(backup)
}

/// `NAME.backup`, `NAME.backup-2`, …
fn free_name(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let names = std::iter::once(format!("{name}.backup")).chain((2..).map(|number| format!("{name}.backup-{number}")));
    let mut paths = names.map(|name| file.with_file_name(name));
    paths.find(|path| !path.exists()).unwrap_or_else(|| file.with_extension("backup"))
}
