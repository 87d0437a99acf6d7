//! The configuration file of an MCP client, in which servers are added and removed. Everything else in it stays as it is.

use std::collections::BTreeMap;

use lispbox::server::read_document;
use serde_json::{Map, Value, json};
use toml_edit::DocumentMut;

use crate::client_json::{JsonText, has_comments_or_commas};
use crate::client_toml;
use crate::clients::Client;

/// The reason why a file in JSON with comments is not rewritten, as a clause.
pub const COMMENTS: &str = "it has comments or trailing commas, which would be lost";

/// A file that is being changed.
pub struct ClientFile {
    key: &'static str,
    document: Document,
    /// The content of the file.
    root: Value,
}

enum Document {
    Json(JsonText),
    /// With its comments and the order of its tables.
    Toml(DocumentMut),
}

impl ClientFile {
    /// Reads a file, which may be empty.
    ///
    /// # Errors
    /// Returns the reason why it cannot be rewritten, as a clause: it is invalid, has a key twice, or comments would be
    /// lost.
    pub fn read(text: &str, client: &Client) -> Result<ClientFile, String> {
        let key = client.key;
        let (document, root) = if client.keeps_json() {
            let (document, root) = JsonText::read(text, key).map_err(|problem| not_json(text, &problem))?;
            (Document::Json(document), root)
        } else {
            let text = text.trim_start_matches('\u{feff}');
            let document = text.parse().map_err(|problem: toml_edit::TomlError| problem.to_string())?;
            let Value::Object(root) = read_document(text, "it.toml")? else {
                return Err("expected a table".to_owned());
            };
            (Document::Toml(document), root)
        };
        if root.get(key).is_some_and(|servers| !servers.is_object()) {
            return Err(format!("expected an object in `{key}`"));
        }
        Ok(ClientFile { key, document, root: Value::Object(root) })
    }

    /// Returns what the file says.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Returns the servers in the file, if it has any place for them.
    pub fn servers(&self) -> Option<&Map<String, Value>> {
        self.root.get(self.key)?.as_object()
    }

    /// Returns the text of the entry of a server, with the comments about it, if it is in one piece.
    pub fn entry(&self, name: &str) -> Option<String> {
        match &self.document {
            Document::Json(file) => file.entry(name).map(str::to_owned),
            Document::Toml(document) => client_toml::entry(document, self.key, name),
        }
    }

    /// Returns the text of the file with these servers instead. One that is new gets one of `texts`, which an earlier
    /// [`ClientFile::entry`] has returned.
    ///
    /// # Errors
    /// Returns the reason why it cannot be written, as a clause.
    pub fn with(self, servers: &Map<String, Value>, texts: &BTreeMap<String, String>) -> Result<String, String> {
        let before = self.servers().cloned().unwrap_or_default();
        match self.document {
            Document::Json(file) => Ok(file.with(self.key, servers, texts)),
            Document::Toml(document) => client_toml::with(document, self.key, &before, servers, texts),
        }
    }
}

/// Returns a client's entry for a server as its file has it, in lines.
pub fn entry_lines(client: &Client, name: &str, entry: &Value) -> Vec<String> {
    let text = if client.keeps_json() {
        format!("{}: {entry:#}", Value::from(name))
    } else {
        let servers = Map::from_iter([(name.to_owned(), entry.clone())]);
        let file = ClientFile::read("", client).and_then(|file| file.with(&servers, &BTreeMap::new()));
        file.unwrap_or_else(|_| entry.to_string())
    };
    text.lines().map(str::to_owned).collect()
}

/// Returns what a person adds to a client's file by hand for an entry.
pub fn by_hand(client: &Client, name: &str, entry: &Value) -> String {
    match client.keeps_json() {
        true => format!("{:#}", json!({client.key: {name: entry}})),
        false => entry_lines(client, name, entry).join("\n"),
    }
}

/// Says why a text is not the JSON that can be rewritten.
fn not_json(text: &str, problem: &serde_json::Error) -> String {
    if problem.is_data() {
        // The position is that of the end of the object.
        let said = problem.to_string();
        return said.split(" at line ").next().unwrap_or_default().to_owned();
    }
    match read_document(text, "it.json") {
        Ok(_) if has_comments_or_commas(text) => COMMENTS.to_owned(),
        Ok(_) => format!("it is not plain JSON: {problem}"),
        Err(problem) => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(file: ClientFile, servers: &Map<String, Value>) -> String {
        file.with(servers, &BTreeMap::new()).expect("written")
    }

    const FILE: &str = "# mine\nmodel = \"o5\"\n\n[mcp_servers.files] # old\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\n\
                        env = { A = \"1\" }\n\n[mcp_servers.time]\ncommand = \"uvx\"\n\n[tui]\ntheme = \"dark\"\n";

    fn codex() -> &'static Client {
        Client::find("codex").expect("known")
    }

    #[test]
    fn a_file_in_toml_keeps_all_but_its_servers() {
        let file = ClientFile::read(FILE, codex()).expect("read");
        let mut servers = file.servers().expect("servers").clone();
        servers.remove("files");
        servers.insert("lispbox".to_owned(), json!({"command": "lispbox", "args": ["serve"], "env": {"B": "2"}}));
        let text = with(file, &servers);
        for kept in ["# mine\nmodel = \"o5\"\n", "[mcp_servers.time]\ncommand = \"uvx\"\n", "[tui]\ntheme = \"dark\"\n"]
        {
            assert!(text.contains(kept), "{kept} is not in\n{text}");
        }
        assert!(!text.contains("npx"), "{text}");
        let added = "[mcp_servers.lispbox]\ncommand = \"lispbox\"\nargs = [\"serve\"]\n\n[mcp_servers.lispbox.env]\nB = \"2\"\n";
        assert!(text.contains(added), "{text}");
    }

    #[test]
    fn servers_return_to_a_file_in_toml_as_they_were() {
        let before = ClientFile::read(FILE, codex()).expect("read");
        let all = before.servers().expect("servers").clone();
        let without = with(before, &Map::new());
        let file = ClientFile::read(&without, codex()).expect("read");
        assert_eq!(file.servers().cloned().unwrap_or_default(), Map::new());
        let again = ClientFile::read(&with(file, &all), codex()).expect("read");
        assert_eq!(again.servers(), Some(&all));
    }

    #[test]
    fn inline_and_missing_tables_and_wrong_types_are_handled() {
        for text in ["", "mcp_servers = { a = { command = \"x\" } }\n", "mcp_servers.a.command = \"x\"\n"] {
            let file = ClientFile::read(text, codex()).expect("read");
            let mut servers = file.servers().cloned().unwrap_or_default();
            servers.insert("lispbox".to_owned(), json!({"command": "lispbox", "args": []}));
            let text = with(file, &servers);
            assert_eq!(ClientFile::read(&text, codex()).expect("read").servers(), Some(&servers), "{text}");
        }
        let refused = |text: &str| ClientFile::read(text, codex()).err().expect("refused");
        assert_eq!(refused("mcp_servers = 1"), "expected an object in `mcp_servers`");
        assert!(refused("a = ").contains("line 1"), "{}", refused("a = "));
    }
}
