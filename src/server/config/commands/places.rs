//! The usual folders of commands, by the program that installs them.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Whose folders these are, for an error message.
pub(super) const OWNERS: &str =
    "Node, nvm, fnm, Volta, asdf, mise, Homebrew, uv, pipx, Cargo, Bun, Deno, pnpm and Docker";

/// A folder of commands, and the program that keeps them there.
pub(super) struct Place {
    pub owner: &'static str,
    pub folder: PathBuf,
}

/// Returns the usual folders of commands on this system, which may not exist, in the order of the search: managers of
/// versions first, the chosen version of each or else its newest.
pub(super) fn usual(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |owner: &'static str, folder: PathBuf| places.push(Place { owner, folder });
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = named(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    // A folder that a variable names, or else one in the home folder.
    let or_home = |name: &str, folder: &str| named(name).or_else(|| Some(home.as_ref()?.join(folder)));
    let in_home = |folder: &str| home.as_ref().map(|home| home.join(folder));

    if let Some(folder) = or_home("NVM_DIR", ".nvm").and_then(|nvm| version_of_nvm(&nvm)) {
        add("nvm", folder);
    }
    named("NVM_SYMLINK").into_iter().for_each(|folder| add("nvm", folder));
    let of_fnm = [".local/share/fnm", ".fnm", "Library/Application Support/fnm", "AppData/Roaming/fnm"];
    for fnm in named("FNM_DIR").into_iter().chain(of_fnm.iter().filter_map(|folder| in_home(folder))) {
        version_of_fnm(&fnm).into_iter().for_each(|folder| add("fnm", folder));
    }
    let of_volta = if cfg!(windows) { "AppData/Local/Volta" } else { ".volta" };
    or_home("VOLTA_HOME", of_volta).into_iter().for_each(|volta| add("Volta", volta.join("bin")));
    let of_mise = if cfg!(windows) { "AppData/Local/mise" } else { ".local/share/mise" };
    or_home("MISE_DATA_DIR", of_mise).into_iter().for_each(|mise| add("mise", mise.join("shims")));
    or_home("ASDF_DATA_DIR", ".asdf").into_iter().for_each(|asdf| add("asdf", asdf.join("shims")));

    let of_pipx = ["UV_TOOL_BIN_DIR", "PIPX_BIN_DIR", "XDG_BIN_HOME"].into_iter().filter_map(named);
    of_pipx.chain(in_home(".local/bin")).for_each(|folder| add("uv and pipx", folder));
    or_home("CARGO_HOME", ".cargo").into_iter().for_each(|cargo| add("Cargo", cargo.join("bin")));
    or_home("BUN_INSTALL", ".bun").into_iter().for_each(|bun| add("Bun", bun.join("bin")));
    or_home("DENO_INSTALL", ".deno").into_iter().for_each(|deno| add("Deno", deno.join("bin")));
    let of_pnpm =
        [".local/share/pnpm", "Library/pnpm", "AppData/Local/pnpm"].iter().filter_map(|folder| in_home(folder));
    named("PNPM_HOME").into_iter().chain(of_pnpm).for_each(|folder| add("pnpm", folder));
    in_home(".npm-global/bin").into_iter().for_each(|folder| add("Node", folder));
    in_home(".docker/bin").into_iter().for_each(|folder| add("Docker", folder));

    if cfg!(windows) {
        named("APPDATA").into_iter().for_each(|data| add("Node", data.join("npm")));
        named("PROGRAMFILES").into_iter().for_each(|programs| add("Node", programs.join("nodejs")));
        return places;
    }
    named("HOMEBREW_PREFIX").into_iter().for_each(|brew| add("Homebrew", brew.join("bin")));
    in_home(".linuxbrew/bin").into_iter().for_each(|folder| add("Homebrew", folder));
    add("Homebrew", "/opt/homebrew/bin".into());
    add("Homebrew", "/home/linuxbrew/.linuxbrew/bin".into());
    add("Node", "/usr/local/bin".into());
    add("the system", "/usr/bin".into());
    add("the system", "/bin".into());
    add("Docker", "/Applications/Docker.app/Contents/Resources/bin".into());
    places
}

/// Returns the commands of the version of Node that is the default of nvm, or else of the newest one.
fn version_of_nvm(nvm: &Path) -> Option<PathBuf> {
    let versions = versions_in(&nvm.join("versions/node"));
    let wanted = named_by_nvm(nvm);
    let fits = |version: &&(Vec<u64>, PathBuf)| wanted.as_ref().is_some_and(|wanted| version.0.starts_with(wanted));
    let version = versions.iter().find(fits).or_else(|| versions.first())?;
    Some(version.1.join("bin"))
}

/// The number of names of nvm that are followed from the default on, each of which may stand for another one.
const NAMES_OF_NVM: usize = 6;

/// Returns the numbers of the default version of nvm; `None` if it is the newest one, or not known. The default may be
/// another name, such as `lts/hydrogen` or `lts/*`.
fn named_by_nvm(nvm: &Path) -> Option<Vec<u64>> {
    let mut name = "default".to_owned();
    for _ in 0..NAMES_OF_NVM {
        let text = std::fs::read_to_string(nvm.join("alias").join(&name)).ok()?;
        name = text.trim().to_owned();
        if let Some(numbers) = numbers(&name) {
            return Some(numbers);
        }
    }
    None
}

/// Returns the commands of the version of Node that is the default of fnm, or else of the newest one.
fn version_of_fnm(fnm: &Path) -> Option<PathBuf> {
    let bin = if cfg!(windows) { "" } else { "bin" };
    let default = fnm.join("aliases/default").join(bin);
    if default.is_dir() {
        return Some(default);
    }
    Some(versions_in(&fnm.join("node-versions")).first()?.1.join("installation").join(bin))
}

/// Returns the folders whose names are versions, newest first.
fn versions_in(folder: &Path) -> Vec<(Vec<u64>, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let version = |entry: std::fs::DirEntry| Some((numbers(entry.file_name().to_str()?)?, entry.path()));
    let mut versions: Vec<(Vec<u64>, PathBuf)> = entries.filter_map(version).collect();
    versions.sort_by_key(|(numbers, _)| Reverse(numbers.clone()));
    versions
}

/// `v20.11.1` as its numbers.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.split('.').map(|number| number.parse().ok()).collect()
}
