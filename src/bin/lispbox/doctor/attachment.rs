//! An entry for lispbox in the file of a client: whether the client starts it, and what that lispbox reads and keeps.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use lispbox::server::{data_folder_in, find_command, usual_folder_in};
use serde_json::{Map, Value};

use super::records;
use crate::client_entry::{switched_off, values_of};
use crate::clients::Client;
use crate::config::import::leaves_out;
use crate::config_paths::VARIABLE;
use crate::installation::launcher;
use crate::usual_store::MEMORY;

/// The variables with which every client starts its servers.
const GIVEN: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// The PATH of a program with a window.
const WINDOWED: &str = if cfg!(target_os = "macos") {
    "/usr/bin:/bin:/usr/sbin:/sbin"
} else {
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
};

/// The variable with the URL of the store.
const STORE: &str = "LISPBOX_STORE";

/// An entry for lispbox in the file of a client.
pub struct Attachment<'f> {
    pub client: &'static Client,
    pub title: &'f str,
    pub root: &'f Map<String, Value>,
    pub name: &'f str,
    pub entry: &'f Map<String, Value>,
    /// The file, for a message.
    pub file: &'f str,
    /// The command that writes the entry, for a message.
    pub setup: String,
}

/// The variables and arguments with which a lispbox is started.
struct Start {
    /// A variable without a value has one that cannot be told from here.
    variables: BTreeMap<String, Option<OsString>>,
    arguments: Vec<String>,
}

impl Attachment<'_> {
    /// Returns why the client does not start lispbox by this entry, and what mends that.
    pub fn fault(&self) -> Option<String> {
        self.switched_off().or_else(|| self.not_found())
    }

    fn switched_off(&self) -> Option<String> {
        let Attachment { name, file, .. } = self;
        if let Some(key) = switched_off(self.entry) {
            return Some(format!("its entry `{name}` has `{key}: {}`; take that out of {file}", self.entry[key]));
        }
        let key = leaves_out(self.client, self.root, name)?;
        Some(match key.to_lowercase().contains("allow") {
            true => format!("`{key}` leaves `{name}` out; add it to that list in {file}"),
            false => format!("`{key}` names `{name}`; take it out of that list in {file}"),
        })
    }

    fn not_found(&self) -> Option<String> {
        let command = self.entry.get("command").and_then(Value::as_str).unwrap_or_default();
        // The client puts something in.
        if command.contains('$') {
            return None;
        }
        let variable = |name: &str| std::env::var_os(name);
        let own = self.variable("PATH").filter(|path| !path.contains('$'));
        let inherited = if cfg!(windows) || self.client.is_of_terminal() { variable("PATH") } else { None };
        let path = own.map(OsString::from).or(inherited).unwrap_or_else(|| WINDOWED.into());
        if find_command(command, &path, &variable).is_some() {
            return None;
        }
        let mend = match std::env::current_exe().map(|program| launcher(program, &[]).program) {
            Ok(program) if program.is_absolute() => format!("{} names this one", self.setup),
            _ => format!("give its whole path as `command` in {}", self.file),
        };
        if command.contains(['/', '\\']) {
            let state = if PathBuf::from(command).exists() { "cannot be run" } else { "is not there any more" };
            return Some(format!("{command} {state}; {mend}"));
        }
        let path = if self.client.is_of_terminal() { "PATH" } else { "the PATH of a program with a window" };
        Some(format!("`{command}` is neither on {path} nor in the usual folders of commands; {mend}"))
    }

    /// Returns what that lispbox reads and keeps elsewhere than the commands of this terminal, a sentence each.
    pub fn differences(&self) -> Vec<String> {
        let Some((theirs, here)) = self.starts() else { return Vec::new() };
        let title = self.title;
        let mut differences = Vec::new();
        if let (Some(read), Some(read_here)) = (theirs.configuration(), here.configuration())
            && read != read_here
            && !here.names_configuration()
            && !self.names_its_own(&theirs, &here)
        {
            let names = [VARIABLE, if cfg!(windows) { "APPDATA" } else { "XDG_CONFIG_HOME" }, "HOME"];
            let mend = self.mend(&theirs, &here, "--config", &names);
            differences.push(format!(
                "{title}'s lispbox reads {}, this terminal {}; {mend}",
                listed(&read),
                listed(&read_here)
            ));
        }
        if let (Some(kept), Some(kept_here)) = (theirs.store(), here.store())
            && kept != kept_here
        {
            let names = [STORE, if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_DATA_HOME" }, "HOME"];
            let mend = self.mend(&theirs, &here, "--store", &names);
            let (kept, kept_here) = (shown(&kept), shown(&kept_here));
            differences
                .push(format!("{title}'s lispbox keeps sessions in {kept}, this terminal in {kept_here}; {mend}"));
        }
        differences
    }

    /// Returns how this terminal sees what that lispbox reads, if its entry names it.
    pub fn note(&self) -> Option<String> {
        let (theirs, here) = self.starts()?;
        let (read, read_here) = (theirs.configuration()?, here.configuration()?);
        let options: Vec<String> = read.iter().map(|path| format!(" --config {}", path.display())).collect();
        (read != read_here && self.names_its_own(&theirs, &here)).then(|| {
            let title = self.title;
            format!("{title}'s lispbox reads {}; `lispbox doctor{}` looks at that", listed(&read), options.concat())
        })
    }

    /// True if the arguments of the entry name a configuration, nothing here names another one, and no servers were moved
    /// out of the client into the usual one.
    fn names_its_own(&self, theirs: &Start, here: &Start) -> bool {
        !records::has(self.client)
            && !theirs.values("--config").is_empty()
            && !here.names_configuration()
            && here.text(VARIABLE).is_none()
    }

    /// Returns what makes the two starts alike, by the option or the first of the variables in which they differ.
    fn mend(&self, theirs: &Start, here: &Start, option: &str, names: &[&str]) -> String {
        let file = self.file;
        if !theirs.values(option).is_empty() {
            return format!("set `{}` here to what `{option}` says in its entry in {file}", names[0]);
        }
        let differs = |name: &&&str| theirs.variables.get(**name) != here.variables.get(**name);
        match names.iter().find(differs) {
            Some(name) if here.variables.contains_key(*name) && theirs.variables.contains_key(*name) => {
                format!("make `{name}` the same in both, here and in its entry in {file}")
            }
            Some(name) if here.variables.contains_key(*name) => {
                format!("give `{name}` to its entry in {file} as well, in `env`, or unset it here")
            }
            Some(name) => format!("set `{name}` here as well, or take it out of its entry in {file}"),
            None => format!("change its entry in {file}"),
        }
    }

    /// A variable that the entry sets.
    fn variable(&self, name: &str) -> Option<&str> {
        self.entry.get("env")?.get(name)?.as_str()
    }

    /// The variables and arguments of lispbox as the client starts it, and as this terminal does; `None` if the entry does not
    /// determine them.
    fn starts(&self) -> Option<(Start, Start)> {
        let command = self.entry.get("command").and_then(Value::as_str).unwrap_or_default();
        let is_elsewhere =
            ["docker", "podman", "ssh", "wsl", "wsl.exe"].iter().any(|program| command.ends_with(program));
        if is_elsewhere || self.entry.contains_key("envFile") {
            return None;
        }
        let here: BTreeMap<String, Option<OsString>> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, Some(value))))
            .filter(|(_, value)| value.as_ref().is_some_and(|value| !value.is_empty()))
            .collect();
        // Codex hands on the variables that an entry names.
        let handed = self.entry.get("env_vars").and_then(Value::as_array).into_iter().flatten();
        let handed: Vec<&str> = handed.filter_map(|name| name.get("name").unwrap_or(name).as_str()).collect();
        let mut variables = here.clone();
        variables.retain(|name, _| GIVEN.contains(&&**name) || handed.contains(&&**name));
        for (name, value) in self.entry.get("env").and_then(Value::as_object).into_iter().flatten() {
            match value.as_str().filter(|value| !value.contains('$')) {
                Some("") => drop(variables.remove(name)),
                value => drop(variables.insert(name.clone(), value.map(OsString::from))),
            }
        }
        let words = self.entry.get("args").and_then(Value::as_array).into_iter().flatten();
        let arguments = words.filter_map(Value::as_str).map(str::to_owned).collect();
        let own = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        Some((Start { variables, arguments }, Start { variables: here, arguments: own }))
    }
}

impl Start {
    /// The values of an option, in their order.
    fn values(&self, option: &str) -> Vec<&str> {
        values_of(&self.arguments, option)
    }

    fn text(&self, variable: &str) -> Option<String> {
        Some(self.variables.get(variable)?.as_ref()?.to_string_lossy().into_owned())
    }

    /// True if one of these variables has a value that cannot be told.
    fn hides(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.variables.get(*name) == Some(&None))
    }

    /// True if its arguments say which configuration it reads.
    fn names_configuration(&self) -> bool {
        !self.values("--config").is_empty() || self.arguments.iter().any(|word| word == "--no-config")
    }

    /// The files and folders of the configuration that it reads; `None` if that cannot be told.
    fn configuration(&self) -> Option<Vec<PathBuf>> {
        let named = self.values("--config");
        if self.arguments.iter().any(|word| word == "--no-config") {
            return Some(Vec::new());
        }
        if !named.is_empty() {
            let whole = |path: &&str| std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            let is_plain = named.iter().all(|path| !path.contains('$'));
            return is_plain.then(|| named.iter().map(whole).collect());
        }
        if self.hides(&[VARIABLE, "XDG_CONFIG_HOME", "HOME", "APPDATA"]) {
            return None;
        }
        match self.text(VARIABLE) {
            Some(paths) => Some(std::env::split_paths(&paths).collect()),
            None => Some(vec![usual_folder_in(&|name| self.variables.get(name)?.clone())?]),
        }
    }

    /// The URL of the store in which it keeps sessions; `None` if that cannot be told.
    fn store(&self) -> Option<String> {
        if let Some(url) = self.values("--store").last() {
            return (!url.contains('$')).then(|| (*url).to_owned());
        }
        if self.hides(&[STORE, "XDG_DATA_HOME", "HOME", "LOCALAPPDATA"]) {
            return None;
        }
        let usual = || {
            let folder = data_folder_in(&|name| self.variables.get(name)?.clone())?;
            Some(format!("sqlite:{}", folder.join("sessions.db").display()))
        };
        self.text(STORE).or_else(usual)
    }
}

fn listed(paths: &[PathBuf]) -> String {
    match paths {
        [] => "no configuration".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and "),
    }
}

/// A store, without what its URL may contain of passwords.
fn shown(url: &str) -> String {
    match url.strip_prefix("sqlite:") {
        Some(path) => path.to_owned(),
        None if url == MEMORY => "memory".to_owned(),
        None => format!("a store of {}", url.split(':').next().unwrap_or_default()),
    }
}
