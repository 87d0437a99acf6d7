//! `lispbox config import`: imports the servers of other MCP clients.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Configuration, Dialect, read_document, usual_folder};
use serde_json::{Map, Value};

use super::check::counted;
use super::imported::{Imported, Server, Taken, Unclaimed};
use super::placed::{Place, lean};
use crate::client_entry::starts_lispbox;
use crate::client_json::JsonText;
use crate::clients::{CLIENTS, Client};
use crate::context::Problem;
use crate::moved::{Origin, Records, absolute};
use crate::output::{errln, outln};
use crate::rewriting::{lock, replace};

/// Finds the servers of the MCP clients on this machine, shows them, and merges them into one file of lispbox's
/// configuration. Secrets are copied too; lispbox itself is omitted. A server that no client has any more is kept
/// unless `--prune` is given. Fails if a file cannot be read; its servers are kept.
#[derive(Args)]
pub struct Import {
    /// Import only from this client, such as `cursor`; may be given several times.
    #[arg(long = "from", value_name = "CLIENT")]
    from: Vec<String>,
    /// Also import from the files of the project in this folder (default: the current folder): `.mcp.json`,
    /// `.cursor/mcp.json`, `.vscode/mcp.json`, `.gemini/settings.json`. The author of the project chose the commands in
    /// them, so they are shown. By default, files of projects are not read.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// The file to write; by default `config.d/imported.json` in the settings folder of lispbox.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Remove imported servers that no client has any more.
    #[arg(long)]
    prune: bool,
    /// Show what would change, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// A configuration file of a client.
#[derive(Clone)]
struct Source {
    client: &'static Client,
    file: PathBuf,
    is_of_project: bool,
    /// The folder that `--project` names.
    project: Option<PathBuf>,
    /// The servers that the client does not use in that project.
    disabled: Vec<String>,
    /// The content, `None` if the file does not exist, or the reason why it cannot be read.
    root: Result<Option<Value>, String>,
}

/// The number of servers added, changed and removed.
#[derive(Default)]
struct Counts {
    added: usize,
    changed: usize,
    removed: usize,
}

impl Import {
    /// Runs the import; the exit code is 1 if a file or a server in it could not be read.
    pub(super) fn run(self) -> Result<ExitCode, Problem> {
        for name in &self.from {
            Client::find(name).map_err(Problem::Usage)?;
        }
        if let Some(folder) = self.project.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(Problem::Usage(format!("--project {}: expected a folder", folder.display())));
        }
        let output = self.output.clone().or_else(usual_output);
        let output = output
            .ok_or_else(|| Problem::Usage("the settings folder is unknown; give a file with `--output`".to_owned()))?;
        // Another import or `setup` waits until this one has written.
        let _lock = if self.dry_run { None } else { lock() };
        let mut imported = read_output(&output)?;
        let before = imported.clone();
        let is_usual = usual_output().is_some_and(|usual| usual == absolute(&output));
        let records = if is_usual { Some(Records::read()?) } else { None };
        let sources = self.sources();
        // An entry without a recorded origin may come from a file that cannot be read now.
        let sees_all = self.from.is_empty() && sources.iter().all(|source| source.root.is_ok());
        let mut counts = Counts::default();
        let mut broken: Vec<&Path> = Vec::new();
        for source in &sources {
            if !source.take_up(&mut imported, records.as_ref(), sees_all, &mut counts) {
                broken.push(&source.file);
            }
        }
        let unclaimed = unmoved(imported.unclaimed(), records.as_ref());
        self.look_after_unclaimed(unclaimed, &mut imported, &sources, &broken, &mut counts);
        let code = if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        if imported.count() == 0 && before.count() == 0 {
            outln!("no servers were found");
            return Ok(code);
        }
        let text = imported.text();
        // For instance, two names with the same namespace make the whole file unusable.
        Configuration::parse(&text, "imported.json", &|_| Some(String::new()))
            .map_err(|problem| Problem::Failed(format!("the servers conflict: {problem}")))?;
        let sum = format!("{} added, {} changed, {} removed", counts.added, counts.changed, counts.removed);
        let count = counted(imported.count(), "server");
        if self.dry_run {
            outln!("{count} would be written to {}: {sum}", output.display());
            return Ok(code);
        }
        if imported == before {
            outln!("{} is unchanged: {count}", output.display());
            return Ok(code);
        }
        match replace(&output, &text)? {
            Some(backup) => {
                outln!("{count} written to {}: {sum}; the previous file is {}", output.display(), backup.display())
            }
            None => outln!("{count} written to {}: {sum}", output.display()),
        }
        outln!("`lispbox config check` starts each of them");
        Ok(code)
    }

    /// Reads the files of the selected clients.
    fn sources(&self) -> Vec<Source> {
        let mut sources: Vec<Source> = Vec::new();
        let project = self.project.as_deref().map(|folder| std::path::absolute(folder).unwrap_or(folder.to_owned()));
        let project = project.map(|folder| lean(&folder));
        let is_wanted = |client: &&Client| self.from.is_empty() || self.from.iter().any(|name| name == client.name);
        for client in CLIENTS.iter().filter(is_wanted) {
            let of_project = project.as_deref().and_then(|folder| client.project_file(folder));
            let files = client.user_file().into_iter().map(|file| (file, false));
            for (file, is_of_project) in files.chain(of_project.map(|file| (file, true))) {
                let file = std::path::absolute(&file).unwrap_or(file);
                if sources.iter().all(|known| known.file != file) {
                    let disabled = match (is_of_project, &project) {
                        (true, Some(project)) if client.name == "claude-code" => disabled_by_claude_code(project),
                        _ => Vec::new(),
                    };
                    let (root, project) = (read(&file), project.clone());
                    sources.push(Source { client, file, is_of_project, project, disabled, root });
                }
            }
        }
        sources
    }

    /// Reports the servers that no client has any more, and removes them if `--prune` is given.
    fn look_after_unclaimed(
        &self,
        unclaimed: Vec<Unclaimed>,
        imported: &mut Imported,
        sources: &[Source],
        broken: &[&Path],
        counts: &mut Counts,
    ) {
        if !unclaimed.is_empty() {
            outln!("imported before");
        }
        for Unclaimed { name, origin } in unclaimed {
            let shown = printable(&name);
            let reason = match origin.as_ref().map(|origin| Path::new(&origin.file)) {
                Some(file) if broken.contains(&file) => Some(format!("{} cannot be read", file.display())),
                Some(file) if sources.iter().all(|source| source.file != file) => {
                    Some(format!("{} was not read", file.display()))
                }
                None if !self.from.is_empty() || !broken.is_empty() => Some("not all clients could be read".to_owned()),
                _ => None,
            };
            match reason {
                Some(reason) => outln!("  {shown}: kept, {}", printable(&reason)),
                None if self.prune => {
                    imported.remove(&name);
                    counts.removed += 1;
                    let removed = if self.dry_run { "would be removed" } else { "removed" };
                    outln!("  {shown}: {removed}, no client has it any more");
                }
                None => outln!("  {shown}: kept, no client has it any more; `--prune` removes it"),
            }
        }
    }
}

impl Source {
    /// Merges the servers of the file and shows each; returns false if something could not be read.
    fn take_up(&self, imported: &mut Imported, records: Option<&Records>, sees_all: bool, counts: &mut Counts) -> bool {
        let is_moved = |name: &str, origin: Option<&Origin>| {
            records.is_some_and(|records| records.client_of(name, origin).is_some())
        };
        let root = match &self.root {
            Ok(None) => return true,
            Ok(Some(root)) => root,
            Err(problem) => {
                errln!("lispbox: {} ({}) cannot be read: {problem}", self.client.title, self.file.display());
                return false;
            }
        };
        outln!("{} ({})", self.client.title, self.file.display());
        let (servers, mut is_whole) = self.servers(root);
        for server in servers {
            let name = printable(&server.name);
            if starts_lispbox(&Value::Object(server.fields.clone())) {
                outln!("  {name}: left out, it is lispbox itself");
                continue;
            }
            if let Some(key) = self.excludes(root, &server) {
                outln!("  {name}: left out, as `{key}` of {} says", self.client.title);
                continue;
            }
            let command = if self.is_of_project { format!("  {}", starts(&server.fields)) } else { String::new() };
            let asked = server.name.clone();
            let taken = match self.ours(&server) {
                Ok(fields) => {
                    let server = Server { fields, ..server };
                    imported.take_up(self.client.name, &self.file.to_string_lossy(), server, sees_all, &is_moved)
                }
                Err(problem) => Taken::Wrong(problem),
            };
            match taken {
                Taken::Wrong(problem) => {
                    is_whole = false;
                    errln!("lispbox: {}: server `{name}` is left out: {}", self.file.display(), printable(&problem));
                }
                Taken::Same(_) => outln!("  {name}: already present{command}"),
                Taken::Changed(taken, keys) => {
                    counts.changed += 1;
                    outln!("  {}: changed ({}){command}", printable(&taken), printable(&keys.join(", ")));
                }
                Taken::Added(taken) if taken == asked => {
                    counts.added += 1;
                    outln!("  {name}: added{command}");
                }
                Taken::Added(taken) => {
                    counts.added += 1;
                    let taken = printable(&taken);
                    outln!("  {name}: added as {taken}, since another server has that name{command}");
                }
            }
        }
        imported.add_inputs(root.get("inputs"));
        is_whole
    }

    /// Returns an entry as it is in our file, where it has the same meaning.
    fn ours(&self, server: &Server) -> Result<Map<String, Value>, String> {
        let of_project = if self.is_of_project { self.project.as_deref() } else { None };
        let place = Place {
            project: server.project.as_deref().or(of_project),
            workspace: self.project.as_deref(),
            file: &self.file,
        };
        place.fixed(&Dialect::named(self.client.name).translate(&server.fields)?)
    }

    /// Returns the key that excludes a server, if one does.
    fn excludes(&self, root: &Value, server: &Server) -> Option<&'static str> {
        let root = root.as_object()?;
        if self.disabled.contains(&server.name) {
            return Some("disabledMcpjsonServers");
        }
        let project = server.project.as_deref().or(self.project.as_deref().filter(|_| !self.is_of_project));
        let project = project.and_then(|project| root.get("projects")?.get(project.to_str()?)?.as_object());
        project
            .and_then(|project| disables(self.client, project, &server.name))
            .or_else(|| leaves_out(self.client, root, &server.name))
    }

    /// The servers of the file, global ones and those of its projects, and true if all of them have the right shape.
    fn servers(&self, root: &Value) -> (Vec<Server>, bool) {
        let key = self.client.key;
        let projects = root.get("projects").and_then(Value::as_object).into_iter().flatten();
        let of_projects = projects.filter_map(|(path, project)| {
            Some((format!("projects[{path}].{key}"), Some(PathBuf::from(path)), project.get(key)?))
        });
        let own = root.get(key).map(|servers| (key.to_owned(), None, servers));
        let (mut servers, mut is_whole) = (Vec::new(), true);
        for (place, project, listed) in own.into_iter().chain(of_projects) {
            let mut complain = |place: &str| {
                is_whole = false;
                errln!("lispbox: {}: expected an object in `{}`", self.file.display(), printable(place));
            };
            match listed {
                Value::Null => {}
                Value::Object(listed) => {
                    for (name, server) in listed {
                        let key = format!("{place}.{name}");
                        match server {
                            Value::Object(fields) => {
                                let (name, project, fields) = (name.clone(), project.clone(), fields.clone());
                                servers.push(Server { name, key, project, fields });
                            }
                            _ => complain(&key),
                        }
                    }
                }
                _ => complain(&place),
            }
        }
        (servers, is_whole)
    }
}

/// A server of the user in a client's file, which could be moved into lispbox.
pub struct Movable {
    /// Its name in the client's file.
    pub name: String,
    /// The entry in the client's file.
    pub theirs: Value,
    /// The entry in lispbox's file, or why there cannot be one.
    pub ours: Result<Server, String>,
    /// True if the client leaves it out.
    pub is_excluded: bool,
}

/// A server as it was merged into the imported ones.
pub struct Merged {
    /// The name that it has there.
    pub name: String,
    /// True if it was not there before.
    pub is_new: bool,
    /// Notes on it for the user.
    pub note: Option<String>,
}

/// The file of lispbox with imported servers, and what a client has for it.
#[derive(Clone)]
pub struct Moving {
    output: PathBuf,
    imported: Imported,
    source: Source,
}

impl Moving {
    /// Reads the file with imported servers. `root` is what the client's file says.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn of(client: &'static Client, file: &Path, root: &Value) -> Result<Moving, Problem> {
        let unknown = || Problem::Usage("the settings folder of lispbox is unknown".to_owned());
        let output = usual_output().ok_or_else(unknown)?;
        let imported = read_output(&output)?;
        let (file, root) = (absolute(file), Ok(Some(root.clone())));
        let source = Source { client, file, is_of_project: false, project: None, disabled: Vec::new(), root };
        Ok(Moving { output, imported, source })
    }

    /// The file of lispbox that is written.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// Returns the servers of the user, without lispbox itself and without those of projects.
    pub fn servers(&self) -> Vec<Movable> {
        let Ok(Some(root)) = &self.source.root else { return Vec::new() };
        let movable = |server: Server| {
            let (name, theirs) = (server.name.clone(), Value::Object(server.fields.clone()));
            let excluded = self.source.excludes(root, &server);
            let ours = match excluded {
                Some(key) => Err(format!("`{key}` leaves it out")),
                None => self.source.ours(&server).map(|fields| Server { fields, ..server }),
            };
            Movable { name, theirs, ours, is_excluded: excluded.is_some() }
        };
        self.others(root).filter(|server| server.project.is_none()).map(movable).collect()
    }

    /// Returns the number of servers of projects.
    pub fn of_projects(&self) -> usize {
        let Ok(Some(root)) = &self.source.root else { return 0 };
        self.others(root).filter(|server| server.project.is_some()).count()
    }

    /// The servers in the client's file other than lispbox.
    fn others(&self, root: &Value) -> impl Iterator<Item = Server> + use<> {
        let (servers, _) = self.source.servers(root);
        servers.into_iter().filter(|server| !starts_lispbox(&Value::Object(server.fields.clone())))
    }

    /// Merges a server into the imported ones. `records` says which of those stay as they are.
    ///
    /// # Errors
    /// Returns why it cannot be used.
    pub fn add(&mut self, server: &Server, records: &Records) -> Result<Merged, String> {
        let (client, file) = (self.source.client, self.source.file.to_string_lossy().into_owned());
        let is_moved = |name: &str, origin: Option<&Origin>| records.client_of(name, origin).is_some();
        let shown = printable(&server.name);
        let renamed = |name: &str| {
            let there = printable(name);
            (name != server.name)
                .then(|| format!("  {shown}: is {there} in lispbox, where another server has its name"))
        };
        // What a person has written there stays.
        Ok(match self.imported.take_up(client.name, &file, server.clone(), false, &is_moved) {
            Taken::Added(name) => Merged { note: renamed(&name), name, is_new: true },
            Taken::Same(name) => Merged { note: renamed(&name), name, is_new: false },
            Taken::Changed(name, keys) => {
                let (keys, title) = (printable(&keys.join(", ")), client.title);
                let note = format!("  {shown}: lispbox had it with another {keys}, and takes over that of {title}");
                Merged { name, is_new: false, note: Some(note) }
            }
            Taken::Wrong(problem) => return Err(problem),
        })
    }

    /// Returns the entry of an imported server.
    pub fn entry(&self, name: &str) -> Option<&Value> {
        self.imported.entry(name)
    }

    /// Removes an imported server.
    pub fn remove(&mut self, name: &str) {
        self.imported.remove(name);
    }

    /// Adds the inputs to which the client's servers refer.
    pub fn add_inputs(&mut self) {
        if let Ok(Some(root)) = &self.source.root {
            self.imported.add_inputs(root.get("inputs"));
        }
    }

    /// Returns the imported servers as the text of a configuration file.
    pub fn text(&self) -> String {
        self.imported.text()
    }
}

/// Returns the key with which a client's file leaves out the server of this name, if it does. `root` is its content.
pub fn leaves_out(client: &Client, root: &Map<String, Value>, name: &str) -> Option<&'static str> {
    disables(client, root, name).or_else(|| Dialect::named(client.name).excludes(root, name))
}

/// Returns the key of a list that disables a server for all projects of a client, or for one.
fn disables(client: &Client, object: &Map<String, Value>, name: &str) -> Option<&'static str> {
    let key = "disabledMcpServers";
    let names = object.get(key).filter(|_| client.name == "claude-code")?.as_array()?;
    names.iter().any(|other| other == name).then_some(key)
}

/// Shows the servers that `setup --move` has taken out of clients, and returns the others.
fn unmoved(unclaimed: Vec<Unclaimed>, records: Option<&Records>) -> Vec<Unclaimed> {
    let client = |server: &Unclaimed| records?.client_of(&server.name, server.origin.as_ref());
    let (moved, others): (Vec<Unclaimed>, Vec<Unclaimed>) =
        unclaimed.into_iter().partition(|server| client(server).is_some());
    if !moved.is_empty() {
        outln!("moved here by `lispbox setup`");
    }
    for server in &moved {
        let client = client(server).map_or("a client", |client| client.title);
        outln!("  {}: kept, moved here from {client}", printable(&server.name));
    }
    others
}

/// Returns the servers of a project's `.mcp.json` that a person has disabled in Claude Code.
fn disabled_by_claude_code(project: &Path) -> Vec<String> {
    let home = CLIENTS.iter().find(|client| client.name == "claude-code").and_then(Client::user_file);
    let of_user = home.as_deref().map(read);
    let of_user = of_user.and_then(|root| root.ok()??.get("projects")?.get(project.to_str()?).cloned());
    let of_project = ["settings.json", "settings.local.json"].map(|file| read(&project.join(".claude").join(file)));
    let settings = of_project.into_iter().filter_map(|root| root.ok()?).chain(of_user);
    let names = settings.filter_map(|settings| Some(settings.get("disabledMcpjsonServers")?.as_array()?.clone()));
    names.flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Reads a client's file, if it exists.
fn read(file: &Path) -> Result<Option<Value>, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound && !file.is_symlink() => return Ok(None),
        Err(problem) if problem.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(problem) => return Err(problem.to_string()),
    };
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    match read_document(&text, &file.to_string_lossy()) {
        Ok(root @ Value::Object(_)) => Ok(Some(root)),
        Ok(_) => Err("expected an object".to_owned()),
        // Half of a surrogate pair in what a client remembers of a conversation says nothing about its servers.
        Err(problem) => JsonText::read(&text, "").map(|(_, root)| Some(Value::Object(root))).map_err(|_| problem),
    }
}

/// Returns the file of imported servers in the settings folder of lispbox, if that folder is known.
fn usual_output() -> Option<PathBuf> {
    Some(usual_folder()?.join("config.d").join("imported.json"))
}

/// Reads the output file, as an earlier import or a person has left it.
fn read_output(output: &Path) -> Result<Imported, Problem> {
    let name = output.to_string_lossy();
    if output.extension().is_some_and(|ending| !ending.eq_ignore_ascii_case("json")) {
        return Err(Problem::Usage(format!("--output {name}: expected a file that ends in `.json`")));
    }
    let refused = |problem: String| {
        Problem::Failed(format!("{name}: {problem}; fix or move the file, or give another one with `--output`"))
    };
    let text = match std::fs::read_to_string(output) {
        Ok(text) => text,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Imported::default()),
        Err(problem) => return Err(refused(problem.to_string())),
    };
    if text.trim().is_empty() {
        return Ok(Imported::default());
    }
    match (serde_json::from_str(&text), read_document(&text, &name)) {
        (Ok(root), _) => Imported::of(root).map_err(refused),
        (Err(_), Ok(_)) => Err(refused("it has comments or trailing commas, which would be lost".to_owned())),
        (Err(_), Err(problem)) => Err(refused(problem)),
    }
}

/// `starts npx -y some-server (env KEY)` or `reaches https://…`: describes the effect of a server of a project.
fn starts(fields: &Map<String, Value>) -> String {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let Some(command) = text("command") else {
        let url = ["url", "httpUrl", "serverUrl"].into_iter().find_map(text).unwrap_or("nothing");
        return format!("reaches {}", printable(url));
    };
    let words = fields.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned));
    let line = std::iter::once(command.to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    let variables = fields.get("env").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str());
    match variables.collect::<Vec<_>>().join(", ") {
        names if names.is_empty() => format!("starts {}", printable(&line)),
        names => format!("starts {} (env {})", printable(&line), printable(&names)),
    }
}

/// Sanitizes a text of an untrusted file: replaces characters that control a terminal or reorder a line.
pub fn printable(text: &str) -> String {
    let is_steering = |c: char| {
        c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_steering(c) { '\u{fffd}' } else { c }).collect()
}
