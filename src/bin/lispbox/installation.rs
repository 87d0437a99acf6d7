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

/// Returns the program and the arguments with which a client starts this binary: the binary itself, or `npx` or `uvx` if
/// it lies in a cache of theirs, from which they may remove it.
pub fn launcher(program: PathBuf) -> (PathBuf, Vec<String>) {
    let version = env!("CARGO_PKG_VERSION");
    let words: Vec<String> = if program.iter().any(|part| part == "_npx") {
        // On Windows `npx` is a script, which needs a shell.
        let shell: &[&str] = if cfg!(windows) { &["cmd", "/c"] } else { &[] };
        let words = shell.iter().copied().chain(["npx", "-y"]).map(str::to_owned);
        words.chain([format!("lispbox@{version}")]).collect()
    } else if program.iter().any(|part| part == "archive-v0") {
        vec!["uvx".to_owned(), format!("lispbox=={version}")]
    } else {
        return (program, Vec::new());
    };
    let mut words = words.into_iter();
    (words.next().map_or(program, PathBuf::from), words.collect())
}

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
        for (program, expected) in [
            (
                "/home/ann/.npm/_npx/2c1f/node_modules/@lispbox/linux-x64/bin/lispbox",
                format!("npx -y lispbox@{version}"),
            ),
            ("/home/ann/.cache/uv/archive-v0/x7Qb/bin/lispbox", format!("uvx lispbox=={version}")),
            ("/home/ann/.local/share/uv/tools/lispbox/bin/lispbox", String::new()),
        ] {
            let (found, arguments) = launcher(PathBuf::from(program));
            let expected = if expected.is_empty() { program.to_owned() } else { expected };
            let words: Vec<String> = [found.display().to_string()].into_iter().chain(arguments).collect();
            assert_eq!(words.join(" "), expected);
        }
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
