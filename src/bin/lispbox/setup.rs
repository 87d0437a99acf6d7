//! `lispbox setup`: puts lispbox into the configuration of a client.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::clients::Client;
use crate::surroundings::Problem;

/// Attaches lispbox to an MCP client of this machine: writes it into the client's configuration, of which a copy is
/// kept. Doing so again changes nothing.
#[derive(Args)]
pub struct Setup {
    /// The client: `claude-desktop`, `claude-code`, `cursor`, `vscode`, `windsurf` or `gemini-cli`.
    client: String,
    /// The file to write, where the client has its configuration elsewhere.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A configuration for lispbox, other than the user's own.
    #[arg(long, value_name = "PATH")]
    config: Vec<PathBuf>,
    /// Show what would be written, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Setup {
    /// Writes it.
    pub fn run(self) -> ExitCode {
        self.write().map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    fn write(self) -> Result<(), Problem> {
        let client = Client::find(&self.client, Client::keeps_json).map_err(Problem::Usage)?;
        let unknown =
            || Problem::Usage(format!("where {} keeps its servers is not known; name it by `--file`", client.title));
        let file = self.file.clone().or_else(|| client.user_file()).ok_or_else(unknown)?;
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(Problem::Failed(format!("{}: {problem}", file.display()))),
        };
        let entry = self.entry(client)?;
        let after = with_entry(&before, client, &entry).map_err(|problem| {
            let by_hand = json!({client.key: {"lispbox": entry}});
            Problem::Failed(format!("{}: {problem}; add by hand:\n{by_hand:#}", file.display()))
        })?;
        let Some(after) = after else {
            println!("{} has lispbox already, in {}", client.title, file.display());
            return Ok(());
        };
        if self.dry_run {
            println!("{} would be:\n{after}", file.display());
            return Ok(());
        }
        match replace(&file, &after)? {
            Some(backup) => println!("{} written; what was there is {}", file.display(), backup.display()),
            None => println!("{} written", file.display()),
        }
        println!("restart {} for it to start lispbox", client.title);
        Ok(())
    }

    /// How the client starts lispbox.
    fn entry(&self, client: &Client) -> Result<Value, Problem> {
        let failed = |problem: std::io::Error| Problem::Failed(problem.to_string());
        let program = std::env::current_exe().map_err(failed)?;
        let mut arguments = vec!["serve".to_owned()];
        for path in &self.config {
            let path = std::path::absolute(path).map_err(failed)?;
            arguments.extend(["--config".to_owned(), path.display().to_string()]);
        }
        let mut entry = json!({"command": program.display().to_string(), "args": arguments});
        if matches!(client.name, "claude-code" | "vscode") {
            entry["type"] = "stdio".into();
        }
        Ok(entry)
    }
}

/// A client's configuration with lispbox in it, if it has not.
///
/// # Errors
/// Why it cannot be rewritten.
fn with_entry(before: &str, client: &Client, entry: &Value) -> Result<Option<String>, String> {
    let text = before.trim_start_matches('\u{feff}');
    let mut root = match serde_json::from_str(text) {
        _ if text.trim().is_empty() => Value::Object(Map::new()),
        Ok(root) => root,
        Err(_) if json5::from_str::<Value>(text).is_ok() => {
            return Err("it has comments or trailing commas, which would be lost".to_owned());
        }
        Err(problem) => return Err(format!("it is not readable as JSON: {problem}")),
    };
    let servers = root.as_object_mut().ok_or("expected an object")?;
    let servers = servers.entry(client.key).or_insert_with(|| Value::Object(Map::new()));
    let servers = servers.as_object_mut().ok_or_else(|| format!("expected an object in `{}`", client.key))?;
    if servers.get("lispbox") == Some(entry) {
        return Ok(None);
    }
    servers.insert("lispbox".to_owned(), entry.clone());
    Ok(Some(serde_json::to_string_pretty(&root).map_err(|problem| problem.to_string())? + "\n"))
}

/// Replaces a file as a whole, readable for its owner alone if it is new, and keeps a copy of what was there.
///
/// # Errors
/// When the system does not let us.
pub fn replace(file: &Path, text: &str) -> Result<Option<PathBuf>, Problem> {
    let failed = |problem: std::io::Error| Problem::Failed(format!("{}: {problem}", file.display()));
    if std::fs::read_to_string(file).is_ok_and(|before| before == text) {
        return Ok(None);
    }
    // Where the file is a link, what it points to is replaced.
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
