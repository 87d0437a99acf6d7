//! Checks that the command, the folder and the address of a tool without a server are usable.

use super::commands::{Commands, has_folder, runnable};
use super::local::{Action, LocalTool};
use super::template::{Round, Template};

impl LocalTool {
    /// Returns why a call cannot work on this machine at present, if so. Runs no command and sends no request.
    pub(in crate::server) async fn problem(&self, commands: &Commands) -> Option<String> {
        match &self.action {
            Action::Command { program, environment, folder, .. } => {
                if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
                    return Some(format!("its `cwd` {} is not a folder", folder.display()));
                }
                let not_executable =
                    |file: &std::path::Path| format!("its `command` {} is not executable", file.display());
                if has_folder(program) {
                    let file = folder.clone().unwrap_or_default().join(program);
                    let mut unrunnable = None;
                    let found = runnable([file].into_iter(), false, &mut unrunnable);
                    let missing = || format!("its `command` {program} does not exist");
                    return found.is_none().then(|| unrunnable.map_or_else(missing, |file| not_executable(&file)));
                }
                let taken = commands.find(program, environment, false).await;
                let missing = |places| format!("its `command` {program} was not found; {places}");
                taken.unrunnable().map(not_executable).or_else(|| taken.missing().map(missing))
            }
            Action::Request { url, .. } => {
                let filled = example(url);
                reqwest::Url::parse(&filled).err().map(|problem| format!("its `url` is not a valid address: {problem}"))
            }
        }
    }
}

/// Fills a template with an example value for each argument.
fn example(template: &Template) -> String {
    let round: Round = template.arguments().map(|name| (name.to_owned(), "1".to_owned())).collect();
    template.filled(&round)
}

#[cfg(test)]
mod tests {
    use crate::server::config::{Commands, Configuration, Endpoint};

    /// Returns the problem of the only tool of a configuration.
    async fn problem(tool: serde_json::Value) -> Option<String> {
        let text = serde_json::json!({"local": {"a/b": tool}}).to_string();
        let configuration = Configuration::parse(&text, "/etc/lispbox.json", &|name| std::env::var(name).ok());
        let mut servers = configuration.expect("a configuration").servers;
        match servers.remove(0).endpoint.expect("usable") {
            Endpoint::Local(tools) => tools[0].problem(&Commands::of_environment()).await,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn missing_commands_folders_and_addresses_are_problems() {
        let folder = tempfile::tempdir().expect("a folder");
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "text").expect("written");
        let (folder, plain) = (folder.path().display().to_string(), plain.display().to_string());
        let cases = [
            (serde_json::json!({"command": "sh"}), None),
            (serde_json::json!({"command": "/bin/sh", "cwd": folder}), None),
            (serde_json::json!({"command": "no-such-command"}), Some("was not found; it was looked for on PATH")),
            (
                serde_json::json!({"command": "sh", "env": {"PATH": folder}}),
                Some("was not found; it was looked for on the PATH that its `env` sets"),
            ),
            (serde_json::json!({"command": "/no/such/command"}), Some("does not exist")),
            (serde_json::json!({"command": plain}), Some("is not executable")),
            (serde_json::json!({"command": folder}), Some("is not executable")),
            (serde_json::json!({"command": "sh", "cwd": "/no/such/folder"}), Some("is not a folder")),
            (serde_json::json!({"command": "sh", "cwd": plain}), Some("is not a folder")),
            (serde_json::json!({"url": "https://example.org/a"}), None),
        ];
        for (tool, expected) in cases {
            let came = problem(tool.clone()).await;
            let is_right = match (&came, expected) {
                (Some(came), Some(expected)) => came.contains(expected),
                (came, expected) => came.is_none() && expected.is_none(),
            };
            assert!(is_right, "{tool}: {came:?}");
        }
    }
}
