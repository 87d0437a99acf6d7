//! Guards for the tools of well-known servers.

use serde_json::{Map, Value};

/// A set of guards that a configuration can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    /// Recipients, accounts and hosts of tools with effects come from the user, from a program that was written before
    /// anything was read, or from contacts; otherwise a person is asked.
    Careful,
    /// As `careful`, but literals of programs are not accepted, URLs that are only read are guarded too, and what does
    /// not come from the user is denied.
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
            let read = serde_json::json!({
                "name": "fetched-from",
                "tool": ["*/{fetch,get,open,browse,navigate,visit,read,download,scrape,crawl}*"],
                "argument": ["url", "uri", "urls"],
                "part": "host",
                "from": ["user"]
            });
            guards.extend(read.as_object().cloned());
            for guard in &mut guards {
                if let Some(Value::Array(from)) = guard.get_mut("from") {
                    from.retain(|origin| origin != "program");
                }
                guard.insert("otherwise".to_owned(), "deny".into());
            }
        }
        guards
    }
}
