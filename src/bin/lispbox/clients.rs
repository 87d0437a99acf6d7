//! The known MCP clients: the locations and the format of their configurations.

use std::path::{Path, PathBuf};

use crate::config::import::printable;
use crate::context::folder_in;
use crate::moved::absolute;

/// A program that connects to MCP servers.
pub struct Client {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The folder that it creates for a user on this system.
    folder: fn(&Folders) -> Option<PathBuf>,
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
        folder: |folders| Some(folders.settings()?.join("Claude")),
        file: |folders| Some(folders.settings()?.join("Claude/claude_desktop_config.json")),
        project: None,
        key: "mcpServers",
    },
    Client {
        name: "claude-code",
        title: "Claude Code",
        folder: Folders::claude_code,
        file: |folders| match folder_in("CLAUDE_CONFIG_DIR") {
            Some(folder) => Some(folder.join(".claude.json")),
            None => Some(folders.home()?.join(".claude.json")),
        },
        project: Some(".mcp.json"),
        key: "mcpServers",
    },
    Client {
        name: "cursor",
        title: "Cursor",
        folder: |folders| Some(folders.home()?.join(".cursor")),
        file: |folders| Some(folders.home()?.join(".cursor/mcp.json")),
        project: Some(".cursor/mcp.json"),
        key: "mcpServers",
    },
    Client {
        name: "vscode",
        title: "VS Code",
        folder: |folders| Some(folders.settings()?.join("Code")),
        file: |folders| Some(folders.settings()?.join("Code/User/mcp.json")),
        project: Some(".vscode/mcp.json"),
        key: "servers",
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        folder: |folders| Some(folders.home()?.join(".codeium/windsurf")),
        file: |folders| Some(folders.home()?.join(".codeium/windsurf/mcp_config.json")),
        project: None,
        key: "mcpServers",
    },
    Client {
        name: "gemini-cli",
        title: "Gemini CLI",
        folder: |folders| Some(folders.home()?.join(".gemini")),
        file: |folders| Some(folders.home()?.join(".gemini/settings.json")),
        project: Some(".gemini/settings.json"),
        key: "mcpServers",
    },
    Client {
        name: "codex",
        title: "Codex",
        folder: Folders::codex,
        file: |folders| Some(folders.codex()?.join("config.toml")),
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

    /// True if there is a sign of it on this machine: its file, or the folder that it creates.
    pub fn is_installed(&self) -> bool {
        let files = [self.user_file(), (self.folder)(&Folders)];
        files.into_iter().flatten().any(|file| file.symlink_metadata().is_ok())
    }

    /// True if a person starts it in a terminal, so that it has the PATH of the terminal.
    pub fn is_of_terminal(&self) -> bool {
        matches!(self.name, "claude-code" | "gemini-cli" | "codex")
    }

    /// Returns the command of `setup` for a file of it, with this option, for a message.
    pub fn setup(&self, file: &Path, option: &str) -> String {
        let file = absolute(file);
        let place = match self.user_file().is_some_and(|usual| absolute(&usual) == file) {
            true => String::new(),
            false if cfg!(windows) => format!(" --file \"{}\"", file.display()),
            false => format!(" --file '{}'", file.display().to_string().replace('\'', r"'\''")),
        };
        format!("`lispbox setup {}{}{option}`", self.name, printable(&place))
    }

    /// The files of its variants and profiles on this machine, each with a title. They need not exist. Each has servers
    /// of its own.
    pub fn variants(&self) -> Vec<(String, PathBuf)> {
        if self.name != "vscode" {
            return Vec::new();
        }
        let flatpak = |id: &str| Some(Folders.home()?.join(".var/app").join(id).join("config"));
        let folders = [
            ("VS Code", Folders.settings(), "Code"),
            ("VS Code Insiders", Folders.settings(), "Code - Insiders"),
            ("VS Code of Flatpak", flatpak("com.visualstudio.code"), "Code"),
            ("VS Code Insiders of Flatpak", flatpak("com.visualstudio.code.insiders"), "Code - Insiders"),
        ];
        let mut variants = Vec::new();
        for (title, settings, name) in folders {
            let Some(folder) = settings.map(|settings| settings.join(name).join("User")) else { continue };
            let file = folder.join("mcp.json");
            if folder.is_dir() && self.user_file().as_ref() != Some(&file) {
                variants.push((title.to_owned(), file));
            }
            let profiles = std::fs::read_dir(folder.join("profiles")).into_iter().flatten().flatten();
            let mut profiles: Vec<PathBuf> = profiles.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
            profiles.sort();
            for profile in profiles {
                let name = profile.file_name().unwrap_or_default().to_string_lossy().into_owned();
                variants.push((format!("{title} (profile {name})"), profile.join("mcp.json")));
            }
        }
        variants
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

    /// The folder of Claude Code, which a variable moves.
    fn claude_code(&self) -> Option<PathBuf> {
        folder_in("CLAUDE_CONFIG_DIR").or_else(|| Some(self.home()?.join(".claude")))
    }

    /// The folder of Codex, which a variable moves.
    fn codex(&self) -> Option<PathBuf> {
        folder_in("CODEX_HOME").or_else(|| Some(self.home()?.join(".codex")))
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
pub fn program(command: &str) -> &str {
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
