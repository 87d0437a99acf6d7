//! Guards for the tools of well-known servers.

use serde_json::{Map, Value};

/// A set of guards that a configuration can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    /// Recipients, accounts and hosts, also of URLs that are only read, come from the user, from a program that was
    /// written before anything was read, from contacts or from search results; otherwise a person is asked.
    Careful,
    /// As `careful`, but neither literals of programs nor hosts of search results are accepted, and what does not come
    /// from the user is denied.
    Strict,
}

impl Preset {
    pub(super) const ALL: [Preset; 2] = [Preset::Careful, Preset::Strict];

    /// Returns the name in configurations.
    pub(super) fn key(self) -> &'static str {
        match self {
            Preset::Careful => "careful",
            Preset::Strict => "strict",
        }
    }

    /// Returns the guards, as configurations write them.
    pub(super) fn guards(self) -> Vec<Map<String, Value>> {
        let careful = include_str!("careful.json");
        let mut guards: Vec<Map<String, Value>> = serde_json::from_str(careful).expect("it is JSON");
        if self == Preset::Strict {
            for guard in &mut guards {
                let is_read = guard.get("name").is_some_and(|name| name == "fetched-from");
                if let Some(Value::Array(from)) = guard.get_mut("from") {
                    // Search results are written by others.
                    from.retain(|origin| if is_read { origin == "user" } else { origin != "program" });
                }
                guard.insert("otherwise".to_owned(), "deny".into());
            }
        }
        guards
    }
}
