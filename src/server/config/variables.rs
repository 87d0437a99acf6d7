//! Expansion of `${NAME}` and similar references in a configuration.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::server::secrets::{credentials_in, is_secret_variable};

use super::conceal::Secret;

/// Maximum size of a file that `${file:…}` includes, in bytes.
const LARGEST: u64 = 64 << 10;

/// The definitions of `${…}` references in a file.
pub(super) struct Scope<'a> {
    /// The file, as named by the caller.
    pub(super) file: &'a str,
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The inputs for which VS Code would prompt, with their defaults.
    inputs: HashMap<String, Option<String>>,
    /// Expanded values that are secret because of their source.
    secrets: RefCell<Vec<Secret>>,
    /// Sentences about what was ignored in files that the configuration names.
    notes: RefCell<Vec<String>>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(file: &'a str, variable: &'a dyn Fn(&str) -> Option<String>) -> Scope<'a> {
        Scope { file, variable, inputs: HashMap::new(), secrets: RefCell::default(), notes: RefCell::default() }
    }

    /// Adds the `inputs` that a VS Code file declares.
    pub(super) fn add_inputs(&mut self, inputs: Option<&Value>) {
        for input in inputs.and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
            if let Some(id) = text("id") {
                self.inputs.insert(id, text("default"));
            }
        }
    }

    /// Takes the secrets expanded since the last call: files, inputs, and variables that have the name of a secret or
    /// contain credentials.
    pub(super) fn take_secrets(&self) -> Vec<Secret> {
        self.secrets.take()
    }

    /// Adds a sentence about something that was ignored.
    pub(super) fn note(&self, note: String) {
        self.notes.borrow_mut().push(note);
    }

    /// Takes the sentences that were added since the last call.
    pub(super) fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Resolves a path in the file: relative to the folder of the file, unless it is absolute or begins with `~/`.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.home()) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => self.folder().join(path),
        }
    }

    fn folder(&self) -> &Path {
        Path::new(self.file).parent().unwrap_or(Path::new(""))
    }

    fn home(&self) -> Option<String> {
        (self.variable)(if cfg!(windows) { "USERPROFILE" } else { "HOME" })
    }

    /// Returns the folder that VS Code would have open: the parent of the settings folder in which the file is, or
    /// otherwise the folder of the file.
    fn workspace(&self) -> PathBuf {
        let folder = std::path::absolute(self.folder()).unwrap_or_else(|_| self.folder().to_owned());
        let is_its = folder.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor");
        if is_its { folder.parent().map(Path::to_owned).unwrap_or(folder) } else { folder }
    }

    /// Records the secrets in the value of `${inside}`.
    fn conceal(&self, inside: &str, value: &str) {
        let name = inside.split(":-").next().unwrap_or_default();
        let variable = name.strip_prefix("env:").unwrap_or(name);
        let mut texts = credentials_in(value);
        if inside.starts_with("file:") || inside.starts_with("input:") || is_secret_variable(variable, value) {
            texts.push(value.to_owned());
        }
        let place = format!("${{{name}}}");
        self.secrets.borrow_mut().extend(texts.into_iter().map(|text| Secret { place: place.clone(), text }));
    }

    /// Returns the value of `${inside}`.
    fn value(&self, inside: &str) -> Result<String, String> {
        if let Some(path) = inside.strip_prefix("file:") {
            // Omit the folder, since programs see why a server cannot be used.
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let path = self.path(path);
            let failed = |problem: std::io::Error| format!("the file {name}: {problem}");
            if std::fs::metadata(&path).map_err(failed)?.len() > LARGEST {
                return Err(format!("the file {name} is larger than {} KiB", LARGEST >> 10));
            }
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            return Ok(text.trim_end_matches(['\r', '\n']).to_owned());
        }
        if let Some(id) = inside.strip_prefix("input:") {
            let name =
                format!("LISPBOX_INPUT_{}", id.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
            let proposed = || self.inputs.get(id).cloned().flatten();
            return (self.variable)(&name).or_else(proposed).ok_or_else(|| {
                format!("no one can be asked for `${{input:{id}}}` here; set the environment variable `{name}`")
            });
        }
        match inside {
            "workspaceFolder" | "workspaceRoot" => return Ok(self.workspace().display().to_string()),
            "workspaceFolderBasename" => {
                return Ok(self.workspace().file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
            "userHome" => return self.home().ok_or_else(|| "the home folder is unknown".to_owned()),
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
            _ => {}
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = (self.variable)(name).filter(|value| default.is_none() || !value.is_empty());
        value.or(default.map(str::to_owned)).ok_or_else(|| unknown(name))
    }
}

/// Explains a reference `${name}` that has no value.
fn unknown(name: &str) -> String {
    /// The beginnings of names that only VS Code resolves.
    const OF_EDITOR: [&str; 9] = [
        "file",
        "relativeFile",
        "lineNumber",
        "columnNumber",
        "selectedText",
        "execPath",
        "defaultBuildTask",
        "command:",
        "config:",
    ];
    let (kind, of) = name.split_once([':', '.']).unwrap_or((name, ""));
    if OF_EDITOR.iter().any(|known| name.starts_with(known)) {
        return format!(
            "VS Code alone can fill in `${{{name}}}`; write the value itself, or a variable as `${{NAME}}`"
        );
    }
    match kind {
        "workspaceFolder" if !of.is_empty() => {
            format!(
                "VS Code alone knows the folder `{of}` of `${{{name}}}`; write its path, or a variable as `${{NAME}}`"
            )
        }
        "user_config" | "__dirname" => format!(
            "`${{{name}}}` is filled in when a bundle is installed; write the value itself, or a variable as `${{NAME}}`"
        ),
        _ if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !name.is_empty() => {
            format!("the environment variable `{name}` is not set; set it, or write `${{{name}:-default}}`")
        }
        _ => format!(
            "`${{{name}}}` is unknown: expected `${{NAME}}`, `${{NAME:-default}}`, `${{file:PATH}}`, `${{input:ID}}`, \
             `${{workspaceFolder}}` or `${{userHome}}`"
        ),
    }
}

/// Expands `${NAME}` (`${env:NAME}`) to the value of the variable, `${NAME:-default}` to the value or the default,
/// `${file:PATH}` to the content of the file without trailing line breaks, `${input:ID}` to the variable
/// `LISPBOX_INPUT_ID`, and VS Code's `${workspaceFolder}` and `${userHome}`. Any other `$` is literal.
///
/// # Errors
/// Returns a description of an undefined reference, an unreadable file, or a `${` without `}`.
pub(super) fn expand(text: &str, scope: &Scope<'_>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        expanded.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let end = inside.find('}').ok_or_else(|| "expected `}` after `${`".to_owned())?;
        let value = scope.value(&inside[..end])?;
        scope.conceal(&inside[..end], &value);
        expanded.push_str(&value);
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        match name {
            "A" | "LISPBOX_INPUT_MY_KEY" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/ann".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_replaced() {
        let scope = Scope::new("servers.json", &variable);
        let expand = |text| expand(text, &scope);
        assert_eq!(expand("x${A}y${env:A}"), Ok("x1y1".into()));
        assert_eq!(expand("$A and $5"), Ok("$A and $5".into()));
        assert_eq!(expand("${B:-two}${EMPTY:-three}"), Ok("twothree".into()));
        assert_eq!(expand("[${EMPTY}]"), Ok("[]".into()));
        assert_eq!(
            expand("${B}"),
            Err("the environment variable `B` is not set; set it, or write `${B:-default}`".into())
        );
        assert_eq!(expand("${B"), Err("expected `}` after `${`".into()));
    }

    #[test]
    fn references_that_others_fill_in_are_explained() {
        let scope = Scope::new("servers.json", &variable);
        for (reference, expected) in [
            ("${command:pickPort}", "VS Code alone can fill in `${command:pickPort}`; write the value itself"),
            ("${config:go.root}", "VS Code alone can fill in `${config:go.root}`"),
            ("${fileDirname}", "VS Code alone can fill in `${fileDirname}`"),
            (
                "${workspaceFolder:api}",
                "VS Code alone knows the folder `api` of `${workspaceFolder:api}`; write its path",
            ),
            ("${user_config.key}", "`${user_config.key}` is filled in when a bundle is installed"),
            ("${__dirname}", "`${__dirname}` is filled in when a bundle is installed"),
            ("${KEY-none}", "`${KEY-none}` is unknown: expected `${NAME}`, `${NAME:-default}`"),
            ("${secret:key}", "`${secret:key}` is unknown: expected `${NAME}`"),
            ("${}", "`${}` is unknown"),
        ] {
            let problem = expand(reference, &scope).expect_err(reference);
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn what_others_ask_a_person_for_comes_from_the_environment() {
        let mut scope = Scope::new("/work/.vscode/mcp.json", &variable);
        scope.add_inputs(Some(&serde_json::json!([{"id": "host", "type": "promptString", "default": "localhost"}])));
        assert_eq!(expand("${input:my-key}@${input:host}", &scope), Ok("1@localhost".into()));
        assert_eq!(
            expand("${input:other}", &scope),
            Err("no one can be asked for `${input:other}` here; set the environment variable `LISPBOX_INPUT_OTHER`"
                .into())
        );
        assert_eq!(expand("${workspaceFolder}/data", &scope), Ok("/work/data".into()));
    }

    #[test]
    fn a_file_is_read_where_the_configuration_is() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("key"), "secret\n").expect("written");
        let file = folder.path().join("servers.json").display().to_string();
        let scope = Scope::new(&file, &variable);
        assert_eq!(expand("Bearer ${file:key}", &scope), Ok("Bearer secret".into()));
        let missing = expand("${file:keys/none}", &scope).expect_err("it is not there");
        assert!(missing.starts_with("the file none: ") && !missing.contains('/'), "{missing}");
    }
}
