//! The entry with which a client starts lispbox: what starts it is replaced, and what a person has added stays.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lispbox::server::{usual_folder, usual_folder_in};
use serde_json::{Map, Value, json};

use crate::clients::{Client, is_lispbox, program};
use crate::config_paths::VARIABLE;
use crate::context::{Problem, folder_in};
use crate::installation::{Launcher, is_path_of_launcher, launcher};

/// The name of the entry in the files of clients.
pub const NAME: &str = "lispbox";

/// The clients that ask a person before each call of a tool, and show no forms of a server.
const ASKS_BEFORE_TOOLS: &[&str] = &["claude-desktop"];

/// The variables that decide where lispbox keeps its files, with the folders that they are by default.
const FOLDERS: &[(&str, &str)] = &[("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")];

/// The programs that decide where, or as whom, the lispbox that they start runs.
const WRAPPERS: &[&str] = &["docker", "podman", "sudo", "nice", "env"];

/// The placeholder for values that may be secret.
const NOT_SHOWN: &str = "(not shown)";

/// The options that the command line gives to the entry.
pub struct Given<'a> {
    /// The configurations to read instead of the user's own.
    pub config: &'a [PathBuf],
    /// The preset of the guards.
    pub guards: Option<&'a str>,
}

/// Returns the name of the entry that starts lispbox, if there is one.
///
/// # Errors
/// Returns a clause if another server has the name of lispbox.
pub fn attached(servers: &Map<String, Value>) -> Result<Option<String>, String> {
    match servers.get(NAME) {
        Some(entry) if starts_lispbox(entry) => Ok(Some(NAME.to_owned())),
        other => match servers.iter().find(|(_, entry)| starts_lispbox(entry)) {
            Some((name, _)) => Ok(Some(name.clone())),
            None if other.is_some() => Err(format!("`{NAME}` is another server there")),
            None => Ok(None),
        },
    }
}

/// Returns true for an entry that starts lispbox, which must not become its own server: by its name, or as this binary,
/// whatever that is called.
pub fn starts_lispbox(entry: &Value) -> bool {
    let file = |path: &Path| std::fs::canonicalize(path).ok();
    let command = entry.get("command").and_then(Value::as_str).map(Path::new).filter(|command| command.is_absolute());
    let is_this = || {
        let own = std::env::current_exe().ok().and_then(|own| file(&own));
        own.is_some() && command.and_then(file) == own && is_serving(entry)
    };
    is_lispbox(entry) || is_this()
}

/// Returns true unless an entry starts another command of this binary, such as the sample mailbox.
fn is_serving(entry: &Value) -> bool {
    let first = entry.get("args").and_then(|arguments| arguments.get(0)).and_then(Value::as_str);
    first.is_none_or(|first| first == "serve")
}

/// Returns the entry for a client; `old` is the one that it has.
///
/// # Errors
/// Returns an error if the program of lispbox is unknown.
pub fn entry(client: &Client, given: &Given<'_>, old: Option<&Value>) -> Result<Value, Problem> {
    let failed = |problem: std::io::Error| Problem::Failed(problem.to_string());
    let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<PathBuf>>());
    let own = std::env::current_exe().map_err(failed)?;
    let old = old.map(without_env);
    let old = old.as_ref();
    let wrapped = old.filter(|old| wrapper(old).is_some());
    let Launcher { program, mut arguments, path } = match wrapped {
        Some(old) => Launcher { program: command_of(old).into(), arguments: words_of(old), path: None },
        None => launcher(own, &folders.unwrap_or_default()),
    };
    arguments.truncate(arguments.iter().position(|word| word == "serve").unwrap_or(arguments.len()));
    arguments.push("serve".to_owned());
    let mut options = old.map(options_of).unwrap_or_default();
    let config: Result<Vec<String>, Problem> =
        given.config.iter().map(|path| Ok(std::path::absolute(path).map_err(failed)?.display().to_string())).collect();
    set_option(&mut options, "--config", config?);
    set_option(&mut options, "--guards", given.guards.into_iter().map(str::to_owned).collect());
    if ASKS_BEFORE_TOOLS.contains(&client.name) && !options.iter().any(|option| option == "--approve-tool") {
        options.push("--approve-tool".to_owned());
    }
    arguments.extend(options);
    let mut entry = Map::new();
    entry.insert("command".to_owned(), program.display().to_string().into());
    entry.insert("args".to_owned(), arguments.into());
    if matches!(client.name, "claude-code" | "vscode") {
        entry.insert("type".to_owned(), "stdio".into());
    }
    for (key, value) in old.and_then(Value::as_object).into_iter().flatten() {
        entry.entry(key).or_insert_with(|| value.clone());
    }
    if let Some(variables) = entry.get_mut("env").and_then(Value::as_object_mut)
        && let Some(path) = variables.get("PATH").and_then(Value::as_str)
        && old.is_some_and(|old| is_path_of_launcher(path, command_of(old)))
    {
        variables.shift_remove("PATH");
        if variables.is_empty() {
            entry.shift_remove("env");
        }
    }
    // A client of a terminal has the PATH of that, which is longer.
    let path = path.filter(|_| !client.is_of_terminal()).map(|path| ("PATH", path));
    let folders = if wrapped.is_some() { Vec::new() } else { folders_of_shell() };
    for (name, folder) in path.into_iter().chain(folders) {
        let variables = entry.entry("env").or_insert_with(|| json!({}));
        if let Some(variables) = variables.as_object_mut() {
            variables.entry(name).or_insert_with(|| folder.into());
        }
    }
    Ok(Value::Object(entry))
}

/// Returns an entry without what may be secret in it.
pub fn shown(entry: &Value) -> Value {
    let mut entry = entry.clone();
    for place in ["env", "headers"] {
        for (_, value) in entry.get_mut(place).and_then(Value::as_object_mut).into_iter().flatten() {
            *value = NOT_SHOWN.into();
        }
    }
    for word in entry.get_mut("args").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(text) = word.as_str() {
            *word = shown_word(text).into();
        }
    }
    entry
}

/// Returns an argument without the value of a variable, and without the user, the password and the query of a URL.
fn shown_word(word: &str) -> String {
    if let Some((name, _)) = assignment(word) {
        return format!("{name}={NOT_SHOWN}");
    }
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let (user, place) = match rest.rsplit_once('@') {
        Some((_, place)) => (format!("{NOT_SHOWN}@"), place),
        None => (String::new(), rest),
    };
    let (place, query) = match place.split_once('?') {
        Some((place, _)) => (place, format!("?{NOT_SHOWN}")),
        None => (place, String::new()),
    };
    format!("{scheme}://{user}{place}{query}")
}

/// Returns the parts of a word that gives a variable its value.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// Returns an entry that starts the same without `env`, if that only sets variables.
fn without_env(entry: &Value) -> Value {
    let mut entry = entry.clone();
    let words = words_of(&entry);
    let (set, others) = words.split_at(words.iter().take_while(|word| assignment(word).is_some()).count());
    if program(command_of(&entry)) != "env" || others.first().is_none_or(|word| word.starts_with('-')) {
        return entry;
    }
    for (name, value) in set.iter().filter_map(|word| assignment(word)) {
        let variables = entry.as_object_mut().map(|entry| entry.entry("env").or_insert_with(|| json!({})));
        if let Some(variables) = variables.and_then(Value::as_object_mut) {
            variables.insert(name.to_owned(), value.into());
        }
    }
    entry["command"] = others[0].clone().into();
    entry["args"] = others[1..].into();
    entry
}

/// Returns the program through which an entry starts lispbox, if it must stay.
fn wrapper(entry: &Value) -> Option<&str> {
    Some(program(command_of(entry))).filter(|name| WRAPPERS.contains(name))
}

/// Returns why servers that move into lispbox would not be found by the lispbox that an entry starts, as a sentence.
pub fn reads_elsewhere(client: &Client, entry: &Value) -> Option<String> {
    let ours = usual_folder()?.join("config.d");
    let of_entry = |name: &str| entry.get("env")?.get(name)?.as_str().filter(|value| !value.is_empty());
    if folder_in(VARIABLE).is_some() {
        return Some(format!("lispbox reads {VARIABLE}, not the folder into which servers move, {}", ours.display()));
    }
    if of_entry(VARIABLE).is_some() {
        let title = client.title;
        return Some(format!(
            "lispbox reads {VARIABLE} in {title}, not the folder into which servers move, {}",
            ours.display()
        ));
    }
    if let Some(wrapper) = wrapper(entry) {
        return Some(format!(
            "`{wrapper}` starts lispbox in {}, which may not read the folder into which servers move, {}; let the entry \
             start lispbox itself first",
            client.title,
            ours.display()
        ));
    }
    let options = options_of(entry);
    let files = values_of(&options, "--config");
    let is_read = files.is_empty()
        || files.iter().any(|file| ours.starts_with(file) || Path::new(*file) == ours.join("imported.json"));
    if !is_read || options.iter().any(|option| option == "--no-config") {
        let option = if is_read { "--no-config" } else { "--config" };
        return Some(format!(
            "lispbox has `{option}` in {}, and does not read the folder into which servers move, {}; take the option out first",
            client.title,
            ours.display()
        ));
    }
    has_other_settings(client, entry)
}

/// Returns why the lispbox that an entry starts does not have the settings of this terminal, as a sentence.
pub fn has_other_settings(client: &Client, entry: &Value) -> Option<String> {
    let entry = without_env(entry);
    let of_entry = |name: &str| entry.get("env")?.get(name)?.as_str().filter(|value| !value.is_empty());
    let (names, home) =
        if cfg!(windows) { (&["APPDATA"][..], "APPDATA") } else { (&["XDG_CONFIG_HOME", "HOME"][..], "HOME") };
    let name = names.iter().find(|name| of_entry(name).is_some())?;
    let inherited = |name: &str| if name == home { std::env::var_os(name) } else { None };
    let theirs = usual_folder_in(&|name| of_entry(name).map(OsString::from).or_else(|| inherited(name)));
    let is_other = theirs != usual_folder();
    is_other.then(|| format!("lispbox has another {name} in {} than here; repeat with that", client.title))
}

/// Returns the key that switches an entry off, if one does.
pub fn switched_off(entry: &Map<String, Value>) -> Option<&'static str> {
    let is = |key: &str, value: bool| entry.get(key).and_then(Value::as_bool) == Some(value);
    if is("disabled", true) {
        Some("disabled")
    } else if is("enabled", false) {
        Some("enabled")
    } else {
        None
    }
}

/// Returns true if an entry chooses guards.
pub fn has_guards(entry: &Value) -> bool {
    !values_of(&options_of(entry), "--guards").is_empty()
}

/// Returns the folders that this shell has elsewhere than usual.
fn folders_of_shell() -> Vec<(&'static str, String)> {
    let elsewhere = FOLDERS.iter().filter_map(|(name, usual)| {
        let folder = folder_in(name).filter(|folder| default_folder(usual).as_ref() != Some(folder))?;
        Some((*name, folder.display().to_string()))
    });
    if cfg!(windows) { Vec::new() } else { elsewhere.collect() }
}

fn default_folder(usual: &str) -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| Path::new(&home).join(usual))
}

fn command_of(entry: &Value) -> &str {
    entry.get("command").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the arguments of an entry.
fn words_of(entry: &Value) -> Vec<String> {
    let words = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    words.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}

/// Returns the arguments of an entry behind `serve`.
fn options_of(entry: &Value) -> Vec<String> {
    words_of(entry).into_iter().skip_while(|word| word != "serve").skip(1).collect()
}

/// Returns the values of an option among words, in their order.
pub fn values_of<'w>(words: &'w [String], option: &str) -> Vec<&'w str> {
    let mut values = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == option {
            values.extend(words.next().map(String::as_str));
        } else if let Some(value) = word.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')) {
            values.push(value);
        }
    }
    values
}

/// Replaces the values of an option, if any are given and they are others.
fn set_option(options: &mut Vec<String>, name: &str, values: Vec<String>) {
    if values.is_empty() || values_of(options, name) == values {
        return;
    }
    let (mut kept, mut at) = (Vec::new(), None);
    let mut words = std::mem::take(options).into_iter();
    while let Some(word) = words.next() {
        let is_joined = word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
        if word == name || is_joined {
            at.get_or_insert(kept.len());
            if !is_joined {
                words.next();
            }
        } else {
            kept.push(word);
        }
    }
    let at = at.unwrap_or(kept.len());
    kept.splice(at..at, values.into_iter().flat_map(|value| [name.to_owned(), value]));
    *options = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_is_given_replaces_the_one_that_was_there() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        for (before, values, after) in [
            ("--deny x --guards careful --audit D", "strict", "--deny x --guards strict --audit D"),
            ("--guards=careful --deny x", "strict", "--guards strict --deny x"),
            ("--guards=careful --deny x", "careful", "--guards=careful --deny x"),
            ("--deny x", "strict", "--deny x --guards strict"),
            ("--guards careful", "", "--guards careful"),
        ] {
            let mut options = words(before);
            set_option(&mut options, "--guards", words(values));
            assert_eq!(options, words(after));
        }
        let docker = json!({"command": "docker", "args": ["run", "-i", "x/lispbox", "serve", "--deny", "serve"]});
        assert_eq!(options_of(&docker), ["--deny", "serve"]);
    }
}
