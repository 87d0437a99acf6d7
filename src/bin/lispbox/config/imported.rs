//! The file that `config import` writes: the servers, and the origin of each.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lispbox::server::{Configuration, server_namespace};
use serde_json::{Map, Value, json};

use crate::moved::Origin;

/// The key under which the origin of each server is recorded; the configuration ignores it.
const ORIGINS: &str = "importedFrom";

/// Keys that a person adds to an imported server; they are kept if the client's entry does not set them.
const OWN_KEYS: &[&str] = &[
    "description",
    "tools",
    "policy",
    "timeout_seconds",
    "start_timeout_seconds",
    "tool_timeout_seconds",
    "pinning",
    "idle_seconds",
    "disabled",
    "enabled",
];

/// A server as defined in a client's file.
#[derive(Clone)]
pub struct Server {
    /// The name in that file.
    pub name: String,
    /// The path of keys in that file.
    pub key: String,
    /// The folder to which it belongs, if the file has servers of several.
    pub project: Option<PathBuf>,
    pub fields: Map<String, Value>,
}

/// The outcome of merging one server.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// No server with this name existed.
    Added(String),
    /// The server existed with other values for these keys.
    Changed(String, Vec<String>),
    /// The server existed with the same values.
    Same(String),
    /// The server is not valid in a configuration.
    Wrong(String),
}

/// An imported server that no file contained this time.
pub struct Unclaimed {
    pub name: String,
    /// The place from which it was imported, if recorded.
    pub origin: Option<Origin>,
}

/// The imported servers, into which further ones are merged.
#[derive(Clone, Default)]
pub struct Imported {
    /// The other keys of the file, which a person has added.
    rest: Map<String, Value>,
    servers: Map<String, Value>,
    /// Origins by the name of the server: `{"file": …, "key": …}`.
    origins: Map<String, Value>,
    inputs: Vec<Value>,
    /// The names of the servers that were found this time.
    claimed: BTreeSet<String>,
}

impl PartialEq for Imported {
    fn eq(&self, other: &Imported) -> bool {
        self.root() == other.root()
    }
}

impl Imported {
    /// Parses the content of the file.
    ///
    /// # Errors
    /// Returns a message if a part has the wrong shape.
    pub fn of(root: Value) -> Result<Imported, String> {
        let Value::Object(mut rest) = root else { return Err("expected an object".to_owned()) };
        let mut object = |key: &str| match rest.shift_remove(key) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields),
            Some(_) => Err(format!("expected an object in `{key}`")),
        };
        let (servers, origins) = (object("mcpServers")?, object(ORIGINS)?);
        let inputs = match rest.shift_remove("inputs") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(inputs)) => inputs,
            Some(_) => return Err("expected a list in `inputs`".to_owned()),
        };
        Ok(Imported { rest, servers, origins, inputs, claimed: BTreeSet::new() })
    }

    fn root(&self) -> Value {
        let mut root = Map::from_iter([("mcpServers".to_owned(), Value::Object(self.servers.clone()))]);
        if !self.inputs.is_empty() {
            root.insert("inputs".to_owned(), Value::Array(self.inputs.clone()));
        }
        if !self.origins.is_empty() {
            root.insert(ORIGINS.to_owned(), Value::Object(self.origins.clone()));
        }
        root.extend(self.rest.clone());
        Value::Object(root)
    }

    /// Serializes the file.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.root())
    }

    /// The number of servers.
    pub fn count(&self) -> usize {
        self.servers.len()
    }

    /// Merges a server of a client's file. An existing entry of that name without a recorded origin is taken over only
    /// if `may_adopt` is true. One for which `is_moved` is true is the only one of that server, and stays as it is.
    pub fn take_up(
        &mut self,
        client: &str,
        file: &str,
        server: Server,
        may_adopt: bool,
        is_moved: &dyn Fn(&str, Option<&Origin>) -> bool,
    ) -> Taken {
        let Server { name, key, fields, .. } = server;
        if let Err(problem) = acceptable(&name, &fields) {
            return Taken::Wrong(problem);
        }
        let origin = json!({"file": file, "key": key});
        let is_free = |imported: &Imported, name: &str| !imported.claimed.contains(name);
        let is_same = |imported: &Imported, name: &str| {
            let before = imported.servers.get(name);
            before.is_some_and(|entry| *entry == with_own_keys(&fields, before))
        };
        let may_change = |imported: &Imported, name: &str| {
            is_free(imported, name) && !is_moved(name, imported.origin(name).as_ref())
        };
        let of_origin = self.origins.iter().find(|(known, from)| {
            let is_there = **from == origin && self.servers.contains_key(*known);
            is_there && (may_change(self, known) || (is_free(self, known) && is_same(self, known)))
        });
        if let Some((known, _)) = of_origin {
            let known = known.clone();
            return self.update(known, &fields, origin);
        }
        let numbered = (2..).map(|number| format!("{name}-{client}-{number}"));
        for candidate in [name.clone(), format!("{name}-{client}")].into_iter().chain(numbered) {
            let Some(known) = self.servers.keys().find(|known| is_one_namespace(known, &candidate)).cloned() else {
                self.servers.insert(candidate.clone(), Value::Object(fields.clone()));
                self.claim(&candidate, origin);
                return Taken::Added(candidate);
            };
            let is_same = is_same(self, &known);
            let is_unsaid = !self.origins.contains_key(&known);
            if is_same && !is_free(self, &known) {
                return Taken::Same(known);
            }
            if is_same || (is_unsaid && may_adopt && may_change(self, &known)) {
                return self.update(known, &fields, origin);
            }
        }
        unreachable!("there is a free name among endlessly many")
    }

    fn update(&mut self, name: String, fields: &Map<String, Value>, origin: Value) -> Taken {
        self.claim(&name, origin);
        let before = self.servers.get(&name);
        let after = with_own_keys(fields, before);
        if before == Some(&after) {
            return Taken::Same(name);
        }
        let none = Map::new();
        let (old, new) = (before.and_then(Value::as_object).unwrap_or(&none), after.as_object().unwrap_or(&none));
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let changed = keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).cloned().collect();
        self.servers.insert(name.clone(), after);
        Taken::Changed(name, changed)
    }

    fn claim(&mut self, name: &str, origin: Value) {
        self.claimed.insert(name.to_owned());
        self.origins.insert(name.to_owned(), origin);
    }

    /// Adds a client's inputs, to which `${input:ID}` refers; an input replaces an earlier one with the same id.
    pub fn add_inputs(&mut self, inputs: Option<&Value>) {
        for input in inputs.and_then(Value::as_array).into_iter().flatten() {
            match self.inputs.iter_mut().find(|known| known.get("id") == input.get("id")) {
                Some(known) => *known = input.clone(),
                None => self.inputs.push(input.clone()),
            }
        }
    }

    /// The servers that no file contained.
    pub fn unclaimed(&self) -> Vec<Unclaimed> {
        let names = self.servers.keys().filter(|name| !self.claimed.contains(*name));
        names.map(|name| Unclaimed { name: name.clone(), origin: self.origin(name) }).collect()
    }

    /// The place from which a server was imported, if recorded.
    fn origin(&self, name: &str) -> Option<Origin> {
        Origin::of(self.origins.get(name)?)
    }

    /// The entry of a server.
    pub fn entry(&self, name: &str) -> Option<&Value> {
        self.servers.get(name)
    }

    /// Removes a server.
    pub fn remove(&mut self, name: &str) {
        self.servers.shift_remove(name);
        self.origins.shift_remove(name);
    }
}

/// Adds the keys that a person has set on the existing entry to the fields of a server.
fn with_own_keys(fields: &Map<String, Value>, before: Option<&Value>) -> Value {
    let mut fields = fields.clone();
    for (key, value) in before.and_then(Value::as_object).into_iter().flatten() {
        if OWN_KEYS.contains(&key.as_str()) && !fields.contains_key(key) {
            fields.insert(key.clone(), value.clone());
        }
    }
    Value::Object(fields)
}

/// True if the tools of both names would be in the same namespace.
fn is_one_namespace(one: &str, other: &str) -> bool {
    let canonical = |name: &str| server_namespace(name).unwrap_or_else(|_| name.to_owned());
    canonical(one) == canonical(other)
}

/// Checks that a configuration can contain the server.
fn acceptable(name: &str, fields: &Map<String, Value>) -> Result<(), String> {
    let alone = json!({"mcpServers": {name: fields}}).to_string();
    let problem = match Configuration::parse(&alone, "it", &|_| Some(String::new())) {
        Ok(configuration) => configuration.wrong_entries.into_iter().next(),
        Err(problem) => Some(problem),
    };
    match problem {
        None => Ok(()),
        Some(problem) if problem.path.is_empty() => Err(problem.message),
        Some(problem) => Err(format!("`{}`: {}", problem.path, problem.message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(imported: &mut Imported, file: &str, name: &str, command: &str) -> Taken {
        let fields = Map::from_iter([("command".to_owned(), json!(command))]);
        let server = Server { name: name.to_owned(), key: format!("mcpServers.{name}"), project: None, fields };
        imported.take_up("cursor", file, server, true, &|_, _| false)
    }

    /// As the next import reads it.
    fn reread(imported: &Imported) -> Imported {
        Imported::of(serde_json::from_str(&imported.text()).expect("JSON")).expect("its own text")
    }

    #[test]
    fn servers_keep_their_names_over_imports() {
        let mut first = Imported::default();
        assert_eq!(take(&mut first, "a.json", "mail", "one"), Taken::Added("mail".to_owned()));
        assert_eq!(take(&mut first, "b.json", "mail", "two"), Taken::Added("mail-cursor".to_owned()));
        assert_eq!(take(&mut first, "c.json", "mail", "one"), Taken::Same("mail".to_owned()));
        let mut second = reread(&first);
        assert_eq!(
            take(&mut second, "b.json", "mail", "three"),
            Taken::Changed("mail-cursor".to_owned(), vec!["command".to_owned()])
        );
        assert_eq!(second.unclaimed().len(), 1);
        assert_eq!(take(&mut second, "c.json", "mail", "one"), Taken::Same("mail".to_owned()));
        assert_eq!(second.unclaimed().len(), 0);
        // It belongs to the remaining file now, whose changes it follows.
        let mut third = reread(&second);
        assert!(matches!(take(&mut third, "c.json", "mail", "four"), Taken::Changed(name, _) if name == "mail"));
    }

    #[test]
    fn keys_of_a_person_stay() {
        let root = json!({"mcpServers": {"mail": {"command": "old", "tools": {"block": ["send-*"]}}}, "policy": {"read_only": "allow"}});
        let mut imported = Imported::of(root).expect("a file");
        assert_eq!(
            take(&mut imported, "a.json", "mail", "new"),
            Taken::Changed("mail".to_owned(), vec!["command".to_owned()])
        );
        let root: Value = serde_json::from_str(&imported.text()).expect("JSON");
        assert_eq!(root["mcpServers"]["mail"], json!({"command": "new", "tools": {"block": ["send-*"]}}));
        assert_eq!(root["policy"], json!({"read_only": "allow"}));
    }

    #[test]
    fn names_of_one_namespace_are_told_apart() {
        let mut imported = Imported::default();
        assert_eq!(take(&mut imported, "a.json", "my mail", "one"), Taken::Added("my mail".to_owned()));
        assert_eq!(take(&mut imported, "a.json", "my-mail", "two"), Taken::Added("my-mail-cursor".to_owned()));
        assert!(matches!(take(&mut imported, "a.json", "", "two"), Taken::Wrong(_)));
    }
}
