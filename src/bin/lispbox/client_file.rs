//! The configuration file of an MCP client, in which servers are added and removed. Everything else in it stays as it is.

use lispbox::server::read_document;
use serde_json::{Map, Value, json};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

use crate::clients::Client;

/// A file that is being changed.
pub struct ClientFile {
    key: &'static str,
    document: Document,
    /// The servers in the file.
    servers: Option<Map<String, Value>>,
}

enum Document {
    Json(Map<String, Value>),
    /// With its comments and the order of its tables.
    Toml(DocumentMut),
}

impl ClientFile {
    /// Reads a file, which may be empty.
    ///
    /// # Errors
    /// Returns the reason why it cannot be rewritten, as a clause: it is invalid, or comments would be lost.
    pub fn read(text: &str, client: &Client) -> Result<ClientFile, String> {
        let (text, key) = (text.trim_start_matches('\u{feff}'), client.key);
        let (document, root) = if client.keeps_json() {
            let root = json_object(text)?;
            (Document::Json(root.clone()), root)
        } else {
            let document = text.parse().map_err(|problem: toml_edit::TomlError| problem.to_string())?;
            let Value::Object(root) = read_document(text, "it.toml")? else {
                return Err("expected a table".to_owned());
            };
            (Document::Toml(document), root)
        };
        let servers = match root.get(key) {
            None => None,
            Some(Value::Object(servers)) => Some(servers.clone()),
            Some(_) => return Err(format!("expected an object in `{key}`")),
        };
        Ok(ClientFile { key, document, servers })
    }

    /// Returns the servers in the file, if it has any place for them.
    pub fn servers(&self) -> Option<&Map<String, Value>> {
        self.servers.as_ref()
    }

    /// Returns the text of the file with these servers instead.
    ///
    /// # Errors
    /// Returns the reason why it cannot be written, as a clause.
    pub fn with(self, servers: Map<String, Value>) -> Result<String, String> {
        match self.document {
            Document::Json(mut root) => {
                root.insert(self.key.to_owned(), Value::Object(servers));
                json_text(&Value::Object(root))
            }
            Document::Toml(mut document) => {
                let before = self.servers.unwrap_or_default();
                let place = document.entry(self.key).or_insert_with(|| {
                    // Its servers are tables of their own: `[mcp_servers.lispbox]`.
                    let mut table = Table::new();
                    table.set_implicit(true);
                    Item::Table(table)
                });
                let place = place.as_table_like_mut().ok_or_else(|| format!("expected a table in `{}`", self.key))?;
                for name in before.keys().filter(|name| !servers.contains_key(*name)) {
                    place.remove(name);
                }
                for (name, entry) in servers.iter().filter(|(name, entry)| before.get(*name) != Some(entry)) {
                    insert(place, name, entry)?;
                }
                Ok(document.to_string())
            }
        }
    }
}

/// Returns a client's entry for a server as its file has it, in lines.
pub fn entry_lines(client: &Client, name: &str, entry: &Value) -> Vec<String> {
    let text = if client.keeps_json() {
        format!("{}: {entry:#}", Value::from(name))
    } else {
        let file =
            ClientFile::read("", client).and_then(|file| file.with(Map::from_iter([(name.to_owned(), entry.clone())])));
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

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("expected an object".to_owned()),
        Err(_) => match read_document(text, "it.json") {
            Ok(_) => Err("it has comments or trailing commas, which would be lost".to_owned()),
            Err(problem) => Err(problem),
        },
    }
}

fn json_text(root: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(root).map(|text| text + "\n").map_err(|problem| problem.to_string())
}

/// Puts an entry into a table, in place of one of its name: objects become tables of their own.
fn insert(place: &mut dyn TableLike, name: &str, entry: &Value) -> Result<(), String> {
    let item = match entry {
        Value::Object(fields) => {
            let mut table = Table::new();
            fields.iter().try_for_each(|(name, field)| insert(&mut table, name, field))?;
            Item::Table(table)
        }
        other => Item::Value(toml_value(other)?),
    };
    place.insert(name, item);
    Ok(())
}

fn toml_value(value: &Value) -> Result<toml_edit::Value, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(number)) if !value.is_u64() => number.into(),
            _ => return Err(format!("TOML has no number {number}")),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            toml_edit::Value::Array(items.iter().map(toml_value).collect::<Result<Array, String>>()?)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| Ok((name.as_str(), toml_value(field)?)));
            toml_edit::Value::InlineTable(fields.collect::<Result<_, String>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = file.with(servers).expect("written");
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
        let without = before.with(Map::new()).expect("written");
        let file = ClientFile::read(&without, codex()).expect("read");
        assert_eq!(file.servers().cloned().unwrap_or_default(), Map::new());
        let again = ClientFile::read(&file.with(all.clone()).expect("written"), codex()).expect("read");
        assert_eq!(again.servers(), Some(&all));
    }

    #[test]
    fn inline_and_missing_tables_and_wrong_types_are_handled() {
        for text in ["", "mcp_servers = { a = { command = \"x\" } }\n", "mcp_servers.a.command = \"x\"\n"] {
            let file = ClientFile::read(text, codex()).expect("read");
            let mut servers = file.servers().cloned().unwrap_or_default();
            servers.insert("lispbox".to_owned(), json!({"command": "lispbox", "args": []}));
            let text = file.with(servers.clone()).expect("written");
            assert_eq!(ClientFile::read(&text, codex()).expect("read").servers(), Some(&servers), "{text}");
        }
        let refused = |text: &str| ClientFile::read(text, codex()).err().expect("refused");
        assert_eq!(refused("mcp_servers = 1"), "expected an object in `mcp_servers`");
        assert!(refused("a = ").contains("line 1"), "{}", refused("a = "));
    }
}
