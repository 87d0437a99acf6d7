//! Finds out how this binary was installed, for `lispbox --version --verbose` and for the command with which a client
//! starts it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::out;

/// Returns true if the arguments ask for the version and for details of it, and for nothing else.
pub fn is_asked(arguments: &[OsString]) -> bool {
    let has = |names: [&str; 2]| arguments.iter().any(|argument| names.iter().any(|name| argument == name));
    arguments.len() == 2 && has(["--version", "-V"]) && has(["--verbose", "-v"])
}

/// Prints the version, the commit, the target, the features, and how this binary was installed.
pub fn print() -> ExitCode {
    let program = std::env::current_exe().ok();
    let installed = match &program {
        Some(program) => format!("{} ({})", origin(program, Path::exists), program.display()),
        None => "unknown".to_owned(),
    };
    out!(
        "lispbox {}\ncommit: {}\ntarget: {}\nfeatures: {}\ninstalled: {installed}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("LISPBOX_COMMIT").unwrap_or("not recorded"),
        target(),
        features().join(", "),
    );
    ExitCode::SUCCESS
}

/// The system for which this binary was built, such as `x86_64-linux-musl`.
fn target() -> String {
    let environment = [
        (cfg!(target_env = "gnu"), "-gnu"),
        (cfg!(target_env = "musl"), "-musl"),
        (cfg!(target_env = "msvc"), "-msvc"),
    ];
    let environment = environment.iter().find(|(is_set, _)| *is_set).map_or("", |(_, name)| name);
    format!("{}-{}{environment}", std::env::consts::ARCH, std::env::consts::OS)
}

/// The optional features of this binary.
fn features() -> Vec<&'static str> {
    let features = [
        (cfg!(feature = "postgres"), "postgres"),
        (cfg!(feature = "redis"), "redis"),
        (cfg!(feature = "telemetry"), "telemetry"),
    ];
    features.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect()
}

/// The command with which a client starts this binary.
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before those of lispbox.
    pub arguments: Vec<String>,
    /// The PATH that it needs where that of a terminal is not there.
    pub path: Option<String>,
}

/// Returns how a client starts this binary, which `folders` (those of PATH) may contain: by its usual name if it lies in
/// a folder for its version, or by `npx` or `uvx` if it lies in a cache of theirs, from which they may remove it.
pub fn launcher(program: PathBuf, folders: &[PathBuf]) -> Launcher {
    let version = env!("CARGO_PKG_VERSION");
    let has = |name: &str| program.iter().any(|part| part == name);
    let on_path = |name: &str| {
        // While it runs, `npx` puts folders of packages before those of the terminal.
        let stays = |folder: &&PathBuf| folder.is_absolute() && folder.iter().all(|part| part != "node_modules");
        folders.iter().filter(stays).map(|folder| lasting(folder).join(name)).find(|file| file.is_file())
    };
    if has("_npx") && cfg!(windows) {
        // There `npx` is a script, which needs a shell.
        let arguments = ["/c", "npx", "-y"].map(str::to_owned).into_iter().chain([format!("lispbox@{version}")]);
        return Launcher { program: "cmd".into(), arguments: arguments.collect(), path: None };
    }
    if has("_npx") {
        // Beside it is Node, which it looks for on PATH. A program with a window has a short one.
        let found = on_path("npx");
        let folder = found
            .as_deref()
            .and_then(Path::parent)
            .filter(|folder| !SHORT_PATH.contains(&folder.to_str().unwrap_or_default()));
        let path = folder.map(|folder| path_with(&folder.display().to_string()));
        let arguments = vec!["-y".to_owned(), format!("lispbox@{version}")];
        return Launcher { program: found.unwrap_or_else(|| "npx".into()), arguments, path };
    }
    if has("archive-v0") {
        let found = on_path(if cfg!(windows) { "uvx.exe" } else { "uvx" }).unwrap_or_else(|| "uvx".into());
        return Launcher { program: found, arguments: vec![format!("lispbox=={version}")], path: None };
    }
    // A package manager removes the folder of a version with the next one; the name on PATH stays.
    let own = std::fs::canonicalize(&program).ok();
    let is_own = |file: &PathBuf| own.is_some() && std::fs::canonicalize(file).ok() == own;
    let names = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(NAME));
    let program = names.into_iter().find(is_own).unwrap_or(program);
    Launcher { program, arguments: Vec::new(), path: None }
}

/// Returns true for a PATH that [`launcher`] has made together with this command.
pub fn is_path_of_launcher(path: &str, command: &str) -> bool {
    command.strip_suffix("/npx").is_some_and(|folder| path == path_with(folder))
}

/// The PATH of a program with a window, after the folder of Node.
fn path_with(folder: &str) -> String {
    format!("{folder}:{}", SHORT_PATH.join(":"))
}

/// Returns the folder that stays when the terminal is closed: fnm gives each terminal a link of its own.
fn lasting(folder: &Path) -> PathBuf {
    let is_of_terminal = folder.iter().any(|part| part == "fnm_multishells");
    let link = is_of_terminal.then(|| std::fs::canonicalize(folder).ok()).flatten();
    link.unwrap_or_else(|| folder.to_owned())
}

/// The file name of this binary.
const NAME: &str = if cfg!(windows) { "lispbox.exe" } else { "lispbox" };

/// The folders on the PATH of programs with a window, on Unix.
const SHORT_PATH: &[&str] = &["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// Infers from its path how a binary was installed. `exists` tells whether there is a file.
fn origin(program: &Path, exists: fn(&Path) -> bool) -> &'static str {
    let names: Vec<_> = program.iter().map(|part| part.to_string_lossy().to_lowercase()).collect();
    let has = |name: &str| names.iter().any(|part| part == name);
    let beside = |file: &str| {
        let folder = program.parent().and_then(Path::parent);
        folder.is_some_and(|folder| exists(&folder.join(file)))
    };
    let folder = program.parent().unwrap_or(program);
    if has("node_modules") {
        "npm"
    } else if has("site-packages") || beside("pyvenv.cfg") {
        "PyPI"
    } else if has("cellar") {
        "Homebrew"
    } else if has("scoop") {
        "Scoop"
    } else if folder.ends_with("server") && beside("manifest.json") {
        "Claude Desktop bundle"
    } else if folder.ends_with(".cargo/bin") {
        "cargo install"
    } else if has("target") && (has("release") || has("dist") || has("debug")) {
        "built from source"
    } else if folder == Path::new("/usr/bin") {
        "system package"
    } else if folder == Path::new("/") {
        "container image"
    } else {
        "unknown"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_and_verbose_together_ask_for_details() {
        let is_asked = |text: &str| is_asked(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert!(is_asked("--version --verbose") && is_asked("-v -V") && is_asked("--verbose -V"));
        assert!(!is_asked("--version") && !is_asked("--verbose") && !is_asked("eval --version --verbose"));
        assert!(!is_asked("--version --version"));
    }

    #[test]
    #[cfg(unix)]
    fn clients_start_a_binary_in_a_cache_through_what_has_put_it_there() {
        let version = env!("CARGO_PKG_VERSION");
        let folder = tempfile::tempdir().expect("a folder");
        let folders = [folder.path().to_owned()];
        let line = |program: &str, folders: &[PathBuf]| {
            let Launcher { program, arguments, path } = launcher(PathBuf::from(program), folders);
            let words: Vec<String> = [program.display().to_string()].into_iter().chain(arguments).collect();
            (words.join(" "), path)
        };
        let npx = "/home/ann/.npm/_npx/2c1f/node_modules/@lispbox/linux-x64/bin/lispbox";
        let uvx = "/home/ann/.cache/uv/archive-v0/x7Qb/bin/lispbox";
        let tool = "/home/ann/.local/share/uv/tools/lispbox/bin/lispbox";
        assert_eq!(line(npx, &[]), (format!("npx -y lispbox@{version}"), None));
        assert_eq!(line(uvx, &folders), (format!("uvx lispbox=={version}"), None));
        assert_eq!(line(tool, &folders), (tool.to_owned(), None));
        for name in ["npx", "uvx"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let place = folder.path().display();
        let path = format!("{place}:/usr/bin:/bin:/usr/sbin:/sbin");
        assert_eq!(line(npx, &folders), (format!("{place}/npx -y lispbox@{version}"), Some(path.clone())));
        let is_ours = |path: &str| is_path_of_launcher(path, &format!("{place}/npx"));
        assert!(is_ours(&path) && !is_ours(&format!("/mine:{path}")) && !is_path_of_launcher(&path, "/mine/npx"));
        assert_eq!(line(uvx, &folders), (format!("{place}/uvx lispbox=={version}"), None));
    }

    #[test]
    #[cfg(unix)]
    fn how_a_binary_was_installed_is_inferred_from_its_path() {
        let nothing: fn(&Path) -> bool = |_| false;
        let environment: fn(&Path) -> bool = |file| file.ends_with("pyvenv.cfg");
        let bundle: fn(&Path) -> bool = |file| file.ends_with("lispbox/manifest.json");
        for (program, exists, expected) in [
            ("/home/ann/app/node_modules/@lispbox/linux-x64/bin/lispbox", nothing, "npm"),
            ("/home/ann/.local/share/uv/tools/lispbox/bin/lispbox", environment, "PyPI"),
            ("/opt/homebrew/Cellar/lispbox/0.1.0/bin/lispbox", nothing, "Homebrew"),
            ("/home/ann/Claude Extensions/lispbox/server/lispbox", bundle, "Claude Desktop bundle"),
            ("/home/ann/.cargo/bin/lispbox", nothing, "cargo install"),
            ("/home/ann/lispbox/target/release/lispbox", nothing, "built from source"),
            ("/usr/bin/lispbox", nothing, "system package"),
            ("/lispbox", nothing, "container image"),
            ("/opt/lispbox/lispbox", nothing, "unknown"),
        ] {
            assert_eq!(origin(Path::new(program), exists), expected, "{program}");
        }
    }
}
