//! Parsing of guards from configurations.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::fields::{Wrong, given, known_keys, scalar, wrong};
use crate::origins::{Part, Ports, UrlRules};

use super::super::read::read_pattern;
use super::bounds::{Bound, BoundKind};
use super::conditions::{Conditions, Origin};
use super::path::ArgumentPath;
use super::presets::Preset;
use super::{Guard, Policy, Source, Verdict};

/// Largest compiled pattern, in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

const KEYS: [&str; 16] = [
    "name",
    "tool",
    "argument",
    "undeclared",
    "part",
    "schemes",
    "ports",
    "from",
    "not_from",
    "one_of",
    "matches",
    "at_least",
    "more_than",
    "at_most",
    "domain",
    "otherwise",
];

impl Policy {
    /// Reads `trusted`, a list of tools.
    pub(crate) fn read_trusted(&mut self, value: &Value, path: &str, file: &str) -> Result<(), Wrong> {
        let source = Source { key: path.to_owned(), file: file.to_owned() };
        for (path, text) in strings(value, path)? {
            self.trusted.push((source.clone(), read_pattern(&text, &path)?));
        }
        Ok(())
    }

    /// Reads `preset` and `guards`, a list of objects. A guard with the name of one of the preset changes that one.
    pub(crate) fn read_guards(
        &mut self,
        preset: Option<&Value>,
        guards: Option<&Value>,
        path: &str,
        file: &str,
    ) -> Result<(), Wrong> {
        let place = format!("{path}.preset");
        let mut known = match preset {
            Some(name) => preset_of(name, &place)?.guards(),
            None => Vec::new(),
        };
        let own = match guards {
            None => &[][..],
            Some(Value::Array(guards)) => guards,
            Some(other) => return wrong(format!("{path}.guards"), "a list of guards", other),
        };
        for (index, guard) in own.iter().enumerate() {
            let path = format!("{path}.guards[{index}]");
            let Value::Object(fields) = guard else {
                return wrong(path, "an object such as `tool: mail/send, argument: to, from: [contacts/*]`", guard);
            };
            let name = given(fields, "name");
            let changed = known.iter().position(|guard| name.is_some() && guard.get("name") == name);
            match changed.map(|at| known.remove(at)) {
                Some(mut guard) => {
                    guard.extend(fields.clone());
                    if guard.get("otherwise").and_then(Value::as_str) != Some("allow") {
                        self.add_guard_of_preset(&guard, &path, file)?;
                    }
                }
                None => self.guards.push(read_guard(fields, &path, file)?),
            }
        }
        known.iter().try_for_each(|guard| self.add_guard_of_preset(guard, &place, file))
    }

    fn add_guard_of_preset(&mut self, fields: &Map<String, Value>, path: &str, file: &str) -> Result<(), Wrong> {
        self.guards.push(Guard { is_of_preset: true, ..read_guard(fields, path, file)? });
        Ok(())
    }

    /// Adds the guards of a preset, as a flag or variable names it.
    ///
    /// # Errors
    /// Returns a sentence that says which presets there are.
    ///
    /// ```
    /// use lispbox::policy::Policy;
    ///
    /// let mut policy = Policy::default();
    /// assert!(policy.add_preset("strict", "--guards").is_ok());
    /// assert!(policy.add_preset("lax", "--guards").is_err());
    /// ```
    pub fn add_preset(&mut self, name: &str, flag: &str) -> Result<(), String> {
        let preset = preset_of(&Value::from(name), flag);
        let read = preset
            .and_then(|preset| preset.guards().iter().try_for_each(|guard| self.add_guard_of_preset(guard, flag, "")));
        read.map_err(|wrong| format!("`{flag}`: {}", wrong.problem))
    }
}

fn preset_of(value: &Value, path: &str) -> Result<Preset, Wrong> {
    match Preset::ALL.into_iter().find(|preset| value.as_str() == Some(preset.key())) {
        Some(preset) => Ok(preset),
        None => wrong(path, "`careful` or `strict`", value),
    }
}

fn read_guard(fields: &Map<String, Value>, path: &str, file: &str) -> Result<Guard, Wrong> {
    known_keys(fields, KEYS, &format!("{path}."))?;
    let at = |key: &str| format!("{path}.{key}");
    let needed = |key: &str| {
        given(fields, key)
            .ok_or_else(|| Wrong::new(path, format!("a guard needs the key `{key}`")))
            .and_then(|value| strings(value, &at(key)))
    };
    let tools = needed("tool")?.into_iter().map(|(path, text)| read_pattern(&text, &path)).collect::<Result<_, _>>()?;
    let arguments = needed("argument")?
        .into_iter()
        .map(|(path, text)| ArgumentPath::new(&text).map_err(|message| Wrong::new(path, message)))
        .collect::<Result<_, _>>()?;
    let from = given(fields, "from").map(|value| read_origins(value, &at("from"))).transpose()?;
    let part = match given(fields, "part") {
        None => Part::Whole,
        Some(value) => match Part::ALL.into_iter().find(|(_, key)| value.as_str() == Some(key)) {
            Some((part, _)) => part,
            None => return wrong(at("part"), "`whole`, `host`, `domain` or `links`", value),
        },
    };
    let texts = |key: &str, value: &Value| -> Result<Vec<String>, Wrong> {
        let values = if let Value::Array(values) = value { &values[..] } else { std::slice::from_ref(value) };
        let text = |(index, value)| match scalar(value) {
            Some(text) => Ok(text),
            None => wrong(format!("{}[{index}]", at(key)), "a string, a number or a boolean", value),
        };
        values.iter().enumerate().map(text).collect()
    };
    let matches = match given(fields, "matches") {
        None => None,
        Some(Value::String(pattern)) => {
            let whole = format!(r"\A(?:{pattern})\z");
            let compiled = RegexBuilder::new(&whole).size_limit(LARGEST_PATTERN).build();
            Some(compiled.map_err(|problem| Wrong::new(at("matches"), problem.to_string()))?)
        }
        Some(other) => return wrong(at("matches"), "a regular expression", other),
    };
    let mut bounds = Vec::new();
    for (kind, key) in BoundKind::ALL {
        if let Some(value) = given(fields, key) {
            match Bound::new(kind, value) {
                Some(bound) => bounds.push(bound),
                None => return wrong(at(key), "a number", value),
            }
        }
    }
    let undeclared = match given(fields, "undeclared") {
        None => Vec::new(),
        Some(value) => strings(value, &at("undeclared"))?.into_iter().map(|(_, name)| name).collect(),
    };
    let domains = given(fields, "domain").map(|value| texts("domain", value)).transpose()?;
    let otherwise = match given(fields, "otherwise") {
        None => Verdict::Ask,
        Some(value) => {
            match [Verdict::Ask, Verdict::Deny].into_iter().find(|verdict| value.as_str() == Some(verdict.key())) {
                Some(verdict) => verdict,
                None => return wrong(at("otherwise"), "`ask` or `deny`", value),
            }
        }
    };
    let name = match given(fields, "name") {
        None => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(other) => return wrong(at("name"), "a string", other),
    };
    let guard = Guard {
        name,
        is_of_preset: false,
        tools,
        arguments,
        undeclared,
        part,
        urls: read_urls(fields, path)?,
        conditions: Conditions {
            from,
            not_from: read_not_from(fields, path)?,
            one_of: given(fields, "one_of").map(|value| texts("one_of", value)).transpose()?,
            matches,
            bounds,
            domains: domains.map(|domains| domains.iter().map(|domain| domain.to_ascii_lowercase()).collect()),
        },
        otherwise,
        source: Source { key: path.to_owned(), file: file.to_owned() },
    };
    if guard.conditions.is_empty() {
        let message = "a guard needs a condition: `from`, `not_from`, `one_of`, `matches`, `at_least`, `more_than`, `at_most` or \
                       `domain`";
        return Err(Wrong::new(path, message));
    }
    Ok(guard)
}

/// Reads `schemes` and `ports`: the URLs that a guard accepts.
fn read_urls(fields: &Map<String, Value>, path: &str) -> Result<UrlRules, Wrong> {
    let schemes = match given(fields, "schemes") {
        None => Vec::new(),
        Some(value) => {
            let schemes = strings(value, &format!("{path}.schemes"))?;
            schemes.into_iter().map(|(_, scheme)| scheme.to_ascii_lowercase()).collect()
        }
    };
    let expected = "`any`, or a list of ports";
    let place = format!("{path}.ports");
    let ports = match given(fields, "ports") {
        None => Ports::default(),
        Some(Value::String(any)) if any == "any" => Ports::Any,
        Some(value @ Value::Array(ports)) => {
            let port = |port: &Value| port.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            match ports.iter().map(port).collect() {
                Some(ports) => Ports::Only(ports),
                None => return wrong(place, expected, value),
            }
        }
        Some(other) => return wrong(place, expected, other),
    };
    Ok(UrlRules { schemes, ports })
}

/// Reads `not_from`, whose sources are tools: a person may say what a tool has returned, and a literal that looks like a
/// value of a tool is not told apart from it.
fn read_not_from(fields: &Map<String, Value>, path: &str) -> Result<Vec<Origin>, Wrong> {
    let path = format!("{path}.not_from");
    let origins = given(fields, "not_from").map(|value| read_origins(value, &path)).transpose()?.unwrap_or_default();
    match origins.iter().find(|origin| !matches!(origin, Origin::Tools(..))) {
        Some(origin) => {
            let message = format!("expected patterns of tools; `{}` can only be a source in `from`", origin.text());
            Err(Wrong::new(path, message))
        }
        None => Ok(origins),
    }
}

fn read_origins(value: &Value, path: &str) -> Result<Vec<Origin>, Wrong> {
    let origins = strings(value, path)?.into_iter().map(|(path, text)| {
        Ok(match text.as_str() {
            "user" => Origin::User,
            "program" => Origin::Program,
            "model" => Origin::Model,
            text => match text.split_once('#') {
                Some((_, "")) => {
                    let message = "expected the fields of a result behind `#`, such as `calendar/get#attendees.email`";
                    return Err(Wrong::new(path, message));
                }
                Some((pattern, fields)) => Origin::Tools(read_pattern(pattern, &path)?, Some(fields.to_owned())),
                None => Origin::Tools(read_pattern(text, &path)?, None),
            },
        })
    });
    origins.collect()
}

/// Reads a string, or a list of strings, each with its path.
fn strings(value: &Value, path: &str) -> Result<Vec<(String, String)>, Wrong> {
    match value {
        Value::String(text) => Ok(vec![(path.to_owned(), text.clone())]),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::String(text) => Ok((format!("{path}[{index}]"), text.clone())),
                other => wrong(format!("{path}[{index}]"), "a string", other),
            })
            .collect(),
        other => wrong(path, "a string or a list of strings", other),
    }
}
