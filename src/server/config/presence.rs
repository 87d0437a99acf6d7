//! Checks that the command, the folder and the address of a tool without a server are usable.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::local::{Action, LocalTool};
use super::template::{Round, Template};

impl LocalTool {
    /// Returns why a call cannot work on this machine at present, if so. Runs no command and sends no request.
    pub fn problem(&self) -> Option<String> {
        match &self.action {
            Action::Command { program, environment, folder, .. } => {
                if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
                    return Some(format!("its `cwd` {} is not a folder", folder.display()));
                }
                match found(program, environment, folder.as_deref()) {
                    Found::Runnable => None,
                    Found::Unrunnable(path) => Some(format!("its `command` {} is not executable", path.display())),
                    Found::Nowhere if has_folder(program) => Some(format!("its `command` {program} does not exist")),
                    Found::Nowhere => Some(format!("its `command` {program} is not on PATH")),
                }
            }
            Action::Request { url, .. } => {
                let filled = example(url);
                reqwest::Url::parse(&filled).err().map(|problem| format!("its `url` is not a valid address: {problem}"))
            }
        }
    }
}

/// The result of looking up a command.
enum Found {
    Runnable,
    /// A file or folder of that name exists but cannot be run.
    Unrunnable(PathBuf),
    Nowhere,
}

/// Looks up a command as the system does when it starts one, including the PATH set for the command itself.
fn found(program: &str, environment: &BTreeMap<String, String>, folder: Option<&Path>) -> Found {
    let places: Vec<PathBuf> = if has_folder(program) {
        vec![folder.unwrap_or(Path::new("")).join(program)]
    } else {
        let own = environment.get("PATH").map(OsString::from);
        let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(program)).collect()
    };
    let mut unrunnable = None;
    for place in places.into_iter().flat_map(spellings) {
        match std::fs::metadata(&place) {
            Ok(metadata) if metadata.is_file() && is_executable(&metadata) => return Found::Runnable,
            Ok(_) => unrunnable = unrunnable.or(Some(place)),
            Err(_) => {}
        }
    }
    unrunnable.map_or(Found::Nowhere, Found::Unrunnable)
}

/// True for a command that is given with its folder, and not looked up in PATH.
fn has_folder(program: &str) -> bool {
    program.contains('/') || (cfg!(windows) && program.contains('\\'))
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    true
}

/// Returns the file names that a command may have on disk.
fn spellings(place: PathBuf) -> Vec<PathBuf> {
    if !cfg!(windows) {
        return vec![place];
    }
    let with = |ending: &str| {
        let mut name = place.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    [with(".exe"), with(".cmd"), with(".bat"), with(".com")].into_iter().chain([place.clone()]).collect()
}

/// Fills a template with an example value for each argument.
fn example(template: &Template) -> String {
    let round: Round = template.arguments().map(|name| (name.to_owned(), "1".to_owned())).collect();
    template.filled(&round)
}

#[cfg(test)]
mod tests {
    use crate::server::config::{Configuration, Endpoint};

    /// Returns the problem of the only tool of a configuration.
    fn problem(tool: serde_json::Value) -> Option<String> {
        let text = serde_json::json!({"local": {"a/b": tool}}).to_string();
        let configuration = Configuration::parse(&text, "/etc/lispbox.json", &|name| std::env::var(name).ok());
        let mut servers = configuration.expect("a configuration").servers;
        match servers.remove(0).endpoint.expect("usable") {
            Endpoint::Local(tools) => tools[0].problem(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_commands_folders_and_addresses_are_problems() {
        let folder = tempfile::tempdir().expect("a folder");
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "text").expect("written");
        let (folder, plain) = (folder.path().display().to_string(), plain.display().to_string());
        let cases = [
            (serde_json::json!({"command": "sh"}), None),
            (serde_json::json!({"command": "/bin/sh", "cwd": folder}), None),
            (serde_json::json!({"command": "no-such-command"}), Some("is not on PATH")),
            (serde_json::json!({"command": "sh", "env": {"PATH": folder}}), Some("is not on PATH")),
            (serde_json::json!({"command": "/no/such/command"}), Some("does not exist")),
            (serde_json::json!({"command": plain}), Some("is not executable")),
            (serde_json::json!({"command": folder}), Some("is not executable")),
            (serde_json::json!({"command": "sh", "cwd": "/no/such/folder"}), Some("is not a folder")),
            (serde_json::json!({"command": "sh", "cwd": plain}), Some("is not a folder")),
            (serde_json::json!({"url": "https://example.org/a"}), None),
        ];
        for (tool, expected) in cases {
            let came = problem(tool.clone());
            let is_right = match (&came, expected) {
                (Some(came), Some(expected)) => came.contains(expected),
                (came, expected) => came.is_none() && expected.is_none(),
            };
            assert!(is_right, "{tool}: {came:?}");
        }
    }
}
