//! The allow-list of environment variables that child processes inherit.
//!
//! The environment of lispbox holds the credentials of all servers, the tokens of principals and the password of the
//! store. A child gets only the variables that programs need to run at all, and those that the configuration names.

use std::ffi::{OsStr, OsString};

use serde_json::Value;

use crate::server::fields::{Wrong, wrong};
use crate::server::secrets::has_credentials;

/// Names inherited by every child, in upper case; a trailing `*` matches any suffix.
///
/// They include the names that the MCP SDKs let a server inherit (`HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`;
/// the Windows names below), and those for the locale, folders, certificates, proxies, and the installations of Node,
/// Python and uv.
const INHERITED: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "NODE_PATH",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "DENO_INSTALL",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "COREPACK_HOME",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONUNBUFFERED",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PIP_INDEX_URL",
    "UV_CACHE_DIR",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_NATIVE_TLS",
    "UV_OFFLINE",
    "UV_PYTHON",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_BIN_DIR",
    "UV_TOOL_DIR",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "MISE_DATA_DIR",
    "JAVA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Also inherited in lower case, as most programs on Unix expect them.
const LOWER_CASE_TOO: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "npm_config_cache",
    "npm_config_prefix",
    "npm_config_registry",
    "npm_config_userconfig",
];

/// Prefix of settings and credentials of lispbox itself, which no child inherits even if the configuration names them.
const OURS: &str = "LISPBOX_";

/// Names that the configuration adds to the allow-list, each with an optional trailing `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inherit(Vec<String>);

impl Inherit {
    /// Parses a list of names, such as `[GH_TOKEN, AWS_*]`.
    pub(super) fn read(value: Option<&Value>, path: &str) -> Result<Inherit, Wrong> {
        let items = match value {
            None | Some(Value::Null) => return Ok(Inherit::default()),
            Some(Value::Array(items)) => items,
            Some(other) => return wrong(path, "a list of names of environment variables", other),
        };
        let name = |(index, item): (usize, &Value)| {
            let path = format!("{path}[{index}]");
            let Value::String(name) = item else { return wrong(path, "the name of an environment variable", item) };
            let stem = name.strip_suffix('*').unwrap_or(name);
            let message = if stem.contains(['*', '=', '\0']) || name.is_empty() {
                "expected the name of an environment variable, with at most one `*` at its end, such as `GH_TOKEN` or `AWS_*`"
            } else if is_ours(stem) {
                "variables of lispbox itself (`LISPBOX_…`) are never inherited; give the value under another name in \
                 `env`"
            } else {
                return Ok(name.clone());
            };
            Err(Wrong { path, message: message.to_owned() })
        };
        items.iter().enumerate().map(name).collect::<Result<_, _>>().map(Inherit)
    }

    /// Adds the names of another list.
    pub fn extend(&mut self, other: &Inherit) {
        for name in &other.0 {
            if !self.0.contains(name) {
                self.0.push(name.clone());
            }
        }
    }

    /// Returns the variables among `all` that a child inherits. A variable on the default list is withheld if its value
    /// contains credentials, such as a proxy address with a password, unless the configuration names it.
    pub fn of(&self, all: impl Iterator<Item = (OsString, OsString)>) -> impl Iterator<Item = (OsString, OsString)> {
        all.filter(|(name, value)| self.allows(name, value))
    }

    fn allows(&self, name: &OsStr, value: &OsStr) -> bool {
        let (Some(name), value) = (name.to_str(), value.to_string_lossy()) else { return false };
        // A shell function, which old versions of the shell execute as code.
        if is_ours(name) || value.starts_with("()") {
            return false;
        }
        let is_usual = INHERITED.iter().chain(LOWER_CASE_TOO).any(|pattern| fits(pattern, name));
        self.0.iter().any(|pattern| fits(pattern, name)) || (is_usual && !has_credentials(&value))
    }
}

fn is_ours(name: &str) -> bool {
    name.get(..OURS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OURS))
}

/// Returns whether a name matches a pattern. Windows ignores the case of names.
fn fits(pattern: &str, name: &str) -> bool {
    let is_same = |one: &str, other: &str| if cfg!(windows) { one.eq_ignore_ascii_case(other) } else { one == other };
    match pattern.strip_suffix('*') {
        Some(stem) => name.get(..stem.len()).is_some_and(|start| is_same(start, stem)),
        None => is_same(pattern, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Inherit, String> {
        Inherit::read(Some(&value), "inherit").map_err(|wrong| format!("{}: {}", wrong.path, wrong.message))
    }

    fn inherited(inherit: &Inherit, variables: &[(&str, &str)]) -> Vec<String> {
        let all = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        inherit.of(all).map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    const VARIABLES: &[(&str, &str)] = &[
        ("PATH", "/bin"),
        ("LC_TIME", "C"),
        ("HOME", "() { :; }"),
        ("https_proxy", "http://proxy:3128"),
        ("HTTPS_PROXY", "http://ann:hunter-22@proxy:3128"),
        ("GH_TOKEN", "a"),
        ("GH_HOST", "b"),
        ("LISPBOX_TOKEN", "c"),
        ("lispbox_store", "d"),
        ("AWS_SECRET_ACCESS_KEY", "e"),
        ("DATABASE_URL", "f"),
    ];

    #[test]
    fn only_names_on_the_list_are_inherited() {
        assert_eq!(inherited(&Inherit::default(), VARIABLES), ["PATH", "LC_TIME", "https_proxy"]);
        let more = read(json!(["GH_*", "HTTPS_PROXY"])).expect("two patterns");
        assert_eq!(
            inherited(&more, VARIABLES),
            ["PATH", "LC_TIME", "https_proxy", "HTTPS_PROXY", "GH_TOKEN", "GH_HOST"]
        );
        let all = inherited(&read(json!(["*"])).expect("a pattern"), VARIABLES);
        assert!(all.contains(&"DATABASE_URL".to_owned()) && !all.iter().any(|name| is_ours(name)), "{all:?}");
    }

    #[test]
    fn patterns_are_checked() {
        for bad in [json!("PATH"), json!([1]), json!(["A*B"]), json!([""]), json!(["A=B"]), json!(["*_TOKEN"])] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
        for ours in ["LISPBOX_TOKEN", "LISPBOX_*", "lispbox_store"] {
            let refused = read(json!([ours])).expect_err("it is ours");
            assert!(refused.starts_with("inherit[0]: variables of lispbox itself"), "{refused}");
        }
    }
}
