//! Finds the texts of the results of tools.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Most levels of JSON within texts of JSON.
const MOST_NESTED: usize = 4;

/// Calls `each` with the place and the text of every scalar of a JSON document, also of documents within its texts, whose
/// values have the place of the text: its fields are those of whoever wrote it. A text that is no document is taken as it
/// is.
pub(super) fn texts(json: &str, each: &mut dyn FnMut(&str, &str)) {
    let mut at = String::new();
    if !document(json, 0, &mut at, each) {
        each("", json);
    }
}

/// Calls `each` with a text, or with the texts of the document that it is, all at one place.
pub(super) fn text(text: &str, at: &str, each: &mut dyn FnMut(&str, &str)) {
    scalar(text, 0, &mut at.to_owned(), each);
}

fn scalar(text: &str, nested: usize, at: &mut String, each: &mut dyn FnMut(&str, &str)) {
    let is_document = nested < MOST_NESTED
        && text.trim_start().starts_with(['{', '[', '"'])
        && serde_json::from_str::<IgnoredAny>(text).is_ok();
    // A document that is too deep to be read is a text as well.
    if !is_document || !document(text, nested + 1, at, each) {
        each(at, text);
    }
}

fn document(json: &str, nested: usize, at: &mut String, each: &mut dyn FnMut(&str, &str)) -> bool {
    let mut reader = serde_json::Deserializer::from_str(json);
    let read = Texts { at, each, nested }.deserialize(&mut reader);
    read.is_ok() && reader.end().is_ok()
}

/// Visits a document without building it.
struct Texts<'t> {
    at: &'t mut String,
    each: &'t mut dyn FnMut(&str, &str),
    /// The number of texts around the document.
    nested: usize,
}

impl Texts<'_> {
    /// Adds a step to the place, unless the document is a text.
    fn step(&mut self, step: &str) {
        if self.nested == 0 {
            self.at.push_str(step);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        scalar(text, self.nested, self.at, self.each);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        (self.each)(self.at, if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        (self.each)(self.at, &value.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        (self.each)(self.at, &value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        (self.each)(self.at, &value.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let before = self.at.len();
        self.step("[*]");
        while items.next_element_seed(Texts { at: self.at, each: self.each, nested: self.nested })?.is_some() {}
        self.at.truncate(before);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let before = self.at.len();
        while let Some(Key(key)) = entries.next_key()? {
            // Other keys are data.
            if is_name(&key) {
                if before > 0 {
                    self.step(".");
                }
                self.step(&key);
            } else {
                (self.each)(self.at, &key);
                self.step("[*]");
            }
            entries.next_value_seed(Texts { at: self.at, each: self.each, nested: self.nested })?;
            self.at.truncate(before);
        }
        Ok(())
    }
}

struct Key<'de>(std::borrow::Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(key.into()))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(key.to_owned().into()))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Returns whether a key names a field, in contrast to keys that are data, such as addresses and identifiers.
pub fn is_name(key: &str) -> bool {
    let mut bytes = key.bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte == b' ';
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && key.len() <= 40
        && bytes.all(is_word)
        && key.bytes().filter(u8::is_ascii_digit).count() <= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_places_and_documents_in_texts_are_read() {
        let mut found = Vec::new();
        let json = r#"[{"from": "ann", "n": 7, "by": {"a@b.org": true}, "raw": "{\"to\": [\"bob\"]}", "none": null}]"#;
        texts(json, &mut |at, text| found.push(format!("{at}={text}")));
        assert_eq!(found, ["[*].from=ann", "[*].n=7", "[*].by=a@b.org", "[*].by[*]=true", "[*].raw=bob"]);
    }

    #[test]
    fn what_is_no_document_is_one_text() {
        let deep = format!("{{\"to\": [\"eve\"], \"deep\": {}1{}}}", "[".repeat(200), "]".repeat(200));
        for (text_of_a_tool, expected) in [
            ("{not JSON", "={not JSON"),
            ("{\"to\": [\"eve\"]} and more", "={\"to\": [\"eve\"]} and more"),
            ("{\"to\": [\"eve\"]", "={\"to\": [\"eve\"]"),
            ("{\"to\": [\"eve\"]}", "=eve"),
            (&*deep, "=eve"),
        ] {
            let mut found = Vec::new();
            text(text_of_a_tool, "", &mut |at, text| found.push(format!("{at}={text}")));
            assert_eq!(found.first().map(String::as_str), Some(expected));
            assert!(found.iter().all(|found| found.starts_with('=')), "{found:?}");
        }
        let mut found = Vec::new();
        texts("{not JSON", &mut |at, text| found.push(format!("{at}={text}")));
        assert_eq!(found, ["={not JSON"]);
    }
}
