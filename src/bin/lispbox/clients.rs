//! The known MCP clients: the locations and the format of their configurations.

use std::path::{Path, PathBuf};

use crate::context::folder_in;

/// A program that connects to MCP servers.
pub struct Client {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The file with the servers of a user on this system.
    file: fn(&Folders) -> Option<PathBuf>,
    /// The file of a project, relative to the folder of the project.
    project: Option<&'static str>,
    /// The key of the object that contains the servers.
    pub key: &'static str,
}

/// All known clients.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        file: |folders| Some(folders.settings()?.join("Claude/claude_desktop_config.json")),
        project: None,
        key: "mcpServers",
    },
    Client {
        name: "claude-code",
        title: "Claude Code",
        file: |folders| Some(folders.home()?.join(".claude.json")),
        project: Some(".mcp.json"),
        key: "mcpServers",
    },
    Client {
        name: "cursor",
        title: "Cursor",
        file: |folders| Some(folders.home()?.join(".cursor/mcp.json")),
        project: Some(".cursor/mcp.json"),
        key: "mcpServers",
    },
    Client {
        name: "vscode",
        title: "VS Code",
        file: |folders| Some(folders.settings()?.join("Code/User/mcp.json")),
        project: Some(".vscode/mcp.json"),
        key: "servers",
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        file: |folders| Some(folders.home()?.join(".codeium/windsurf/mcp_config.json")),
        project: None,
        key: "mcpServers",
    },
    Client {
        name: "gemini-cli",
        title: "Gemini CLI",
        file: |folders| Some(folders.home()?.join(".gemini/settings.json")),
        project: Some(".gemini/settings.json"),
        key: "mcpServers",
    },
    Client {
        name: "codex",
        title: "Codex",
        file: |folders| Some(folders.home()?.join(".codex/config.toml")),
        project: None,
        key: "mcp_servers",
    },
];

impl Client {
    /// Finds the client with this name.
    ///
    /// # Errors
    /// Returns a message with the known names if there is none.
    pub fn find(name: &str) -> Result<&'static Client, String> {
        CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| {
            let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
            format!("there is no client `{name}`; known are `{}`", names.join("`, `"))
        })
    }

    /// True if its configuration is JSON.
    pub fn keeps_json(&self) -> bool {
        self.name != "codex"
    }

    /// The path of the file with the servers of the user, which need not exist.
    pub fn user_file(&self) -> Option<PathBuf> {
        (self.file)(&Folders)
    }

    /// The path of the client's file in this project, which need not exist.
    pub fn project_file(&self, project: &Path) -> Option<PathBuf> {
        self.project.map(|file| project.join(file))
    }
}

/// The locations in which this system keeps the data of a user.
struct Folders;

impl Folders {
    fn home(&self) -> Option<PathBuf> {
        folder_in(if cfg!(windows) { "USERPROFILE" } else { "HOME" })
    }

    /// The folder in which applications keep their settings.
    fn settings(&self) -> Option<PathBuf> {
        if cfg!(windows) {
            folder_in("APPDATA")
        } else if cfg!(target_os = "macos") {
            Some(self.home()?.join("Library/Application Support"))
        } else {
            folder_in("XDG_CONFIG_HOME").or_else(|| Some(self.home()?.join(".config")))
        }
    }
}

/// True for an entry that starts lispbox itself, which must not become its own downstream server. Only the program
/// counts, not an argument such as the name of a database; the sample mailbox is a server of its own.
pub fn is_lispbox(server: &serde_json::Value) -> bool {
    let command = server.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
    let arguments = server.get("args").and_then(serde_json::Value::as_array).into_iter().flatten();
    let words: Vec<&str> = arguments.filter_map(serde_json::Value::as_str).collect();
    if words.contains(&"sample-mailbox") {
        return false;
    }
    is_ours(command) || (LAUNCHERS.contains(&program(command)) && launched(&words).is_some_and(is_ours))
}

/// The programs that start another one, named by their first argument that is neither an option nor a command of
/// theirs.
const LAUNCHERS: &[&str] = &[
    "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uv", "uvx", "pipx", "docker", "podman", "cmd", "env", "sudo",
    "nice", "node",
];

/// The words of launchers before the program.
const BEFORE: &[&str] = &["run", "exec", "dlx", "x", "tool", "start", "/c", "/d", "/s"];

/// The options of launchers that take no value.
const ALONE: &[&str] = &["-y", "--yes", "-i", "-t", "-it", "-ti", "--rm", "--init", "-q", "--quiet", "--", "-E", "-H"];

/// Returns the program that a launcher starts.
fn launched<'w>(words: &[&'w str]) -> Option<&'w str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let is_assignment = !word.starts_with('-') && word.contains('=') && !word.contains("==");
        let is_before = BEFORE.contains(&word.to_lowercase().as_str()) || LAUNCHERS.contains(&program(word));
        if ALONE.contains(word) || is_before || is_assignment {
            continue;
        }
        if !word.starts_with('-') {
            return Some(word);
        }
        if !word.contains('=') {
            words.next();
        }
    }
    None
}

/// The name of a program, without its folder and extension.
fn program(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    name.trim_end_matches(".exe").trim_end_matches(".cmd")
}

/// True for a path or package of lispbox, with or without a version.
fn is_ours(text: &str) -> bool {
    let name = program(text);
    name.split(['@', ':']).next() == Some("lispbox") || name.split("==").next() == Some("lispbox")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_program_itself_is_lispbox() {
        for (command, arguments, expected) in [
            ("/usr/bin/lispbox", json!(["serve"]), true),
            ("C:\\bin\\lispbox.exe", json!([]), true),
            ("/usr/bin/lispbox", json!(["sample-mailbox"]), false),
            ("npx", json!(["-y", "lispbox", "serve"]), true),
            ("npx", json!(["-y", "lispbox@1.2"]), true),
            ("uvx", json!(["lispbox==1.2"]), true),
            ("cmd", json!(["/c", "npx", "-y", "x"]), false),
            ("cmd", json!(["/c", "npx", "-y", "lispbox"]), true),
            ("docker", json!(["run", "-i", "--rm", "-v", "lispbox:/data", "ghcr.io/x/lispbox:1"]), true),
            ("docker", json!(["run", "-i", "--rm", "-v", "lispbox:/data", "postgres"]), false),
            ("npx", json!(["-y", "server-postgres", "lispbox"]), false),
            ("npx", json!(["-y", "server-filesystem", "/home/ann/lispbox"]), false),
            ("sqlite-mcp", json!(["--db", "lispbox"]), false),
            ("lispbox-notes", json!([]), false),
        ] {
            assert_eq!(is_lispbox(&json!({"command": command, "args": arguments})), expected, "{command} {arguments}");
        }
    }
}
