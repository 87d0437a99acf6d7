//! A client's configuration in JSON, in which the servers change and every other byte stays.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The text of a file, and where the servers are in it.
pub struct JsonText {
    text: String,
    /// The position of the object with the servers, if there is one.
    place: Option<(usize, usize)>,
    /// The end of the last value of the file, if there is one.
    last: Option<usize>,
    /// The texts of the servers.
    servers: BTreeMap<String, String>,
}

impl JsonText {
    /// Reads a text, which may be empty, with the servers under this key; returns also what it says. A part that no
    /// value can hold, such as half of a surrogate pair, is null there.
    ///
    /// # Errors
    /// Returns the reason why it cannot be rewritten, as a clause: it is not plain JSON, or has a key twice.
    pub fn read(text: &str, key: &str) -> Result<(JsonText, Map<String, Value>), serde_json::Error> {
        let mut file = JsonText { text: text.to_owned(), place: None, last: None, servers: BTreeMap::new() };
        let mut root = Map::new();
        let plain = text.trim_start_matches('\u{feff}');
        if plain.trim().is_empty() {
            file.text.clear();
            return Ok((file, root));
        }
        let end = |raw: &RawValue| raw.get().as_ptr() as usize + raw.get().len() - text.as_ptr() as usize;
        let Members(members) = serde_json::from_str(plain)?;
        file.last = members.last().map(|(_, raw)| end(raw));
        for (name, raw) in members {
            let mut value = lenient(raw.get());
            if name == key && raw.get().starts_with('{') {
                let Members(servers) = serde_json::from_str(raw.get())?;
                // An entry is taken as a whole or not at all.
                let whole = |(name, raw): &(String, &RawValue)| {
                    (name.clone(), serde_json::from_str(raw.get()).unwrap_or(Value::Null))
                };
                value = Value::Object(servers.iter().map(whole).collect());
                file.servers = servers.into_iter().map(|(name, raw)| (name, raw.get().to_owned())).collect();
                file.place = Some((end(raw) - raw.get().len(), end(raw)));
            }
            root.insert(name, value);
        }
        Ok((file, root))
    }

    /// Returns the text of the entry of a server.
    pub fn entry(&self, name: &str) -> Option<&str> {
        self.servers.get(name).map(String::as_str)
    }

    /// Returns the text of the file with these servers under this key. Entries that stay keep their text, and others get
    /// one of `texts` if it says the same.
    pub fn with(&self, key: &str, servers: &Map<String, Value>, texts: &BTreeMap<String, String>) -> String {
        let (line, step) = self.layout();
        let inner = format!("{line}{step}{step}");
        let means = |text: &String, entry: &Value| serde_json::from_str::<Value>(text).is_ok_and(|said| said == *entry);
        let members = servers.iter().map(|(name, entry)| {
            let texts = self.servers.get(name).into_iter().chain(texts.get(name));
            let text = texts.into_iter().find(|text| means(text, entry) || entry.is_null());
            let text = text.cloned().unwrap_or_else(|| pretty(entry, step).replace('\n', &inner));
            format!("{inner}{}: {text}", Value::from(name.as_str()))
        });
        let members = members.collect::<Vec<_>>().join(",");
        let close = if members.is_empty() { String::new() } else { format!("{line}{step}") };
        let object = format!("{{{members}{close}}}");
        if let Some((begin, end)) = self.place {
            return format!("{}{object}{}", &self.text[..begin], &self.text[end..]);
        }
        let member = format!("{line}{step}{}: {object}", Value::from(key));
        match (self.last, self.text.find('{')) {
            (Some(last), _) => format!("{},{member}{}", &self.text[..last], &self.text[last..]),
            (None, Some(open)) => format!("{}{{{member}{line}}}{line}", &self.text[..open]),
            (None, None) => format!("{{{member}{line}}}{line}"),
        }
    }

    /// The line break of the file, and the blanks before its first key.
    fn layout(&self) -> (&str, &str) {
        let line = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let second = self.text.split_once('\n').map_or("", |(_, rest)| rest);
        let step = &second[..second.len() - second.trim_start_matches([' ', '\t']).len()];
        (line, if step.is_empty() { "  " } else { step })
    }
}

/// Returns true for a text with comments, or with a comma before a closing bracket.
pub fn has_comments_or_commas(text: &str) -> bool {
    let (mut in_text, mut is_escaped, mut last) = (false, false, ' ');
    for c in text.chars() {
        if in_text {
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match (last, c) {
            ('/', '/' | '*') | (',', '}' | ']') => return true,
            _ => in_text = c == '"',
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    false
}

/// The members of an object, each with its text.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Members<'t>, D::Error> {
        struct Each;
        impl<'t> Visitor<'t> for Each {
            type Value = Members<'t>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Members<'t>, A::Error> {
                let mut members: Vec<(String, &'t RawValue)> = Vec::new();
                while let Some((name, raw)) = map.next_entry::<String, &'t RawValue>()? {
                    if members.iter().any(|(known, _)| *known == name) {
                        let twice = format!("`{name}` is there twice; leave one of the two, with what both have");
                        return Err(serde::de::Error::custom(twice));
                    }
                    members.push((name, raw));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// Returns what a text says, with null for each part that no value can hold.
fn lenient(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    if let Ok(Members(members)) = serde_json::from_str(text) {
        return Value::Object(members.into_iter().map(|(name, raw)| (name, lenient(raw.get()))).collect());
    }
    let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    if items.is_empty() { Value::Null } else { items.into_iter().map(|raw| lenient(raw.get())).collect() }
}

/// Returns the text of a value in lines, with these blanks for each level.
fn pretty(value: &Value, step: &str) -> String {
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(step.as_bytes());
    let written = serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut text, formatter));
    written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(text: &str, servers: Value) -> String {
        let (file, _) = JsonText::read(text, "servers").expect("read");
        file.with("servers", servers.as_object().expect("servers"), &BTreeMap::new())
    }

    #[test]
    fn what_is_not_a_server_keeps_its_bytes() {
        let text = "\u{feff}{\r\n\t\"id\": 12345678901234567890123, \"f\":1e400,\r\n\t\"cut\": [\"\\ud83d\"],\r\n\t\"servers\": {\r\n\t\t\"a\": {\"n\": 1.0}\r\n\t}\r\n}\r\n";
        let changed = with(text, json!({"a": {"n": 1.0}, "b": {"command": "x"}}));
        let added = "{\"n\": 1.0},\r\n\t\t\"b\": {\r\n\t\t\t\"command\": \"x\"\r\n\t\t}\r\n\t}\r\n}\r\n";
        assert_eq!(changed, text.replace("{\"n\": 1.0}\r\n\t}\r\n}\r\n", added));
        assert_eq!(with(&changed, json!({"a": {"n": 1.0}})), text);
    }

    #[test]
    fn a_file_without_servers_gets_them() {
        let object = "\"servers\": {\n    \"a\": {}\n  }";
        for (text, expected) in [
            ("", format!("{{\n  {object}\n}}\n")),
            ("\u{feff}\n", format!("{{\n  {object}\n}}\n")),
            ("{}", format!("{{\n  {object}\n}}\n")),
            ("{\n  \"x\": \"}\"\n}\n", format!("{{\n  \"x\": \"}}\",\n  {object}\n}}\n")),
        ] {
            assert_eq!(with(text, json!({"a": {}})), expected, "{text:?}");
        }
        assert_eq!(with("{}", json!({})), "{\n  \"servers\": {}\n}\n");
    }

    #[test]
    fn comments_and_commas_are_seen_outside_of_texts() {
        for text in ["{} // x", "{/* x */}", "[1,\n]", "{\"a\": 1, }"] {
            assert!(has_comments_or_commas(text), "{text}");
        }
        for text in ["{\"a\": \"// ,}\"}", "{\"a\\\"//\": 1}", "{'a': 1}"] {
            assert!(!has_comments_or_commas(text), "{text}");
        }
    }
}
