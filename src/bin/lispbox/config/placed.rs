//! The folder that an entry of a client's file belongs to: its paths keep their meaning in lispbox's own file.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

/// The folder in which a client starts a server, and the one that its paths are relative to.
pub struct Place<'a> {
    /// The project to which the entry belongs. Its servers are started there.
    pub project: Option<&'a Path>,
    /// The project of which `${workspaceFolder}` in an entry for all projects is the folder.
    pub workspace: Option<&'a Path>,
    /// The client's file.
    pub file: &'a Path,
}

impl Place<'_> {
    /// Returns an entry with the same meaning in any other file.
    ///
    /// # Errors
    /// Returns a sentence if a path has no meaning without a project.
    pub fn fixed(&self, fields: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut fields = fields.clone();
        for value in fields.values_mut() {
            self.expand(value)?;
        }
        if fields.get("command").is_none_or(Value::is_null) {
            return Ok(fields);
        }
        let given = |fields: &Map<String, Value>, key: &str| {
            fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let base = self.project.or(self.file.parent()).unwrap_or(Path::new(""));
        let cwd = match (given(&fields, "cwd"), self.project) {
            (Some(cwd), _) => Some(absolute(base, &cwd)),
            (None, project) => project.map(|project| project.display().to_string()),
        };
        if let Some(cwd) = &cwd {
            fields.insert("cwd".to_owned(), Value::String(cwd.clone()));
        }
        for key in ["envFile", "env_file"] {
            if let Some(file) = given(&fields, key) {
                fields.insert(key.to_owned(), Value::String(absolute(base, &file)));
            }
        }
        // A name without a folder is looked up in PATH.
        if let (Some(command), Some(cwd)) = (given(&fields, "command"), cwd)
            && command.contains(['/', '\\'])
        {
            fields.insert("command".to_owned(), Value::String(absolute(Path::new(&cwd), &command)));
        }
        Ok(fields)
    }

    /// Replaces the references to the folder of the project in all texts.
    fn expand(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) => {
                for name in ["workspaceFolderBasename", "workspaceFolder", "workspaceRoot"] {
                    let reference = format!("${{{name}}}");
                    if !text.contains(&reference) {
                        continue;
                    }
                    let Some(folder) = self.project.or(self.workspace) else {
                        return Err(format!(
                            "`{reference}` is the folder of a project; give it with `--project FOLDER`"
                        ));
                    };
                    let folder = match name {
                        "workspaceFolderBasename" => folder.file_name().unwrap_or_default().display().to_string(),
                        _ => folder.display().to_string(),
                    };
                    *text = text.replace(&reference, &folder);
                }
                if text.contains("${workspaceFolder:") {
                    return Err(
                        "`${workspaceFolder:…}` names one of several folders, which is not possible here".into()
                    );
                }
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.expand(item)),
            Value::Object(fields) => fields.values_mut().try_for_each(|item| self.expand(item)),
            _ => Ok(()),
        }
    }
}

/// Returns the absolute form of a path. One that begins with a reference or with the home folder stays as it is.
fn absolute(base: &Path, path: &str) -> String {
    if path.starts_with("${") || path == "~" || path.starts_with("~/") {
        return path.to_owned();
    }
    lean(&base.join(path)).display().to_string()
}

/// Returns a path without `.` in it.
pub fn lean(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fixed(place: &Place<'_>, fields: Value) -> Result<Value, String> {
        place.fixed(fields.as_object().expect("an entry")).map(Value::Object)
    }

    #[test]
    fn paths_of_a_project_keep_their_meaning() {
        let project = Place {
            project: Some(Path::new("/work/app")),
            workspace: None,
            file: Path::new("/work/app/.vscode/mcp.json"),
        };
        for (theirs, ours) in [
            (
                json!({"command": "node", "args": ["./srv.js", "${workspaceFolder}/data"]}),
                json!({"command": "node", "args": ["./srv.js", "/work/app/data"], "cwd": "/work/app"}),
            ),
            (
                json!({"command": "./bin/srv", "cwd": "${workspaceFolder}/sub", "envFile": ".env"}),
                json!({"command": "/work/app/sub/bin/srv", "cwd": "/work/app/sub", "envFile": "/work/app/.env"}),
            ),
            (
                json!({"command": "srv", "cwd": "sub", "envFile": "${userHome}/.env"}),
                json!({"command": "srv", "cwd": "/work/app/sub", "envFile": "${userHome}/.env"}),
            ),
            (
                json!({"url": "https://x.test", "headers": {"X": "${workspaceFolderBasename}"}}),
                json!({"url": "https://x.test", "headers": {"X": "app"}}),
            ),
        ] {
            assert_eq!(fixed(&project, theirs), Ok(ours));
        }
    }

    #[test]
    fn entries_for_all_projects_have_no_folder() {
        let file = Path::new("/home/ann/.cursor/mcp.json");
        let alone = Place { project: None, workspace: None, file };
        let refused = fixed(&alone, json!({"command": "x", "args": ["${workspaceFolder}"]}));
        assert_eq!(
            refused,
            Err("`${workspaceFolder}` is the folder of a project; give it with `--project FOLDER`".to_owned())
        );
        let fields = json!({"command": "x", "envFile": ".env"});
        assert_eq!(fixed(&alone, fields), Ok(json!({"command": "x", "envFile": "/home/ann/.cursor/.env"})));
        let with = Place { project: None, workspace: Some(Path::new("/work/app")), file };
        let fields = json!({"command": "x", "args": ["${workspaceFolder}"]});
        assert_eq!(fixed(&with, fields), Ok(json!({"command": "x", "args": ["/work/app"]})));
    }
}
