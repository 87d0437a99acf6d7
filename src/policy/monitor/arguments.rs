//! The arguments of a call, as guards compare them.

use std::borrow::Cow;

use lispbox_lang::internal::{canonical, survives};
use serde_json::{Map, Value};

/// Reads the text of a JSON object as guards compare it. A number that a reader of JSON may round is the text of its
/// digits, and an argument has the name that the schema of the tool declares, of which the program may use any spelling.
///
/// # Errors
/// Returns a clause if the text is no object.
pub(super) fn compared(text: &str, schema: &Value) -> Result<Map<String, Value>, String> {
    let read: Map<String, Value> = serde_json::from_str(&unrounded(text))
        .map_err(|problem| format!("its arguments cannot be read as a JSON object: {problem}"))?;
    let declared = schema.get("properties").and_then(Value::as_object);
    let name_of = |name: &str| {
        let mut fits = declared.into_iter().flat_map(Map::keys).filter(|known| canonical(known) == canonical(name));
        match (fits.next(), fits.next()) {
            (Some(only), None) => only.clone(),
            _ => name.to_owned(),
        }
    };
    let count = read.len();
    let named: Map<String, Value> = read.iter().map(|(name, value)| (name_of(name), value.clone())).collect();
    // Two spellings of one argument are both compared.
    Ok(if named.len() == count { named } else { read })
}

/// Puts quotes around the numbers that do not survive as binary numbers.
fn unrounded(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = bytes[at..].iter().position(|byte| !is_part(byte)).map_or(bytes.len(), |length| at + length);
                if !survives(&text[at..end]) {
                    out.push_str(&text[copied..at]);
                    out.push('"');
                    out.push_str(&text[at..end]);
                    out.push('"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the place behind the string that begins there.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_digit_of_an_argument_is_lost() {
        let text =
            r#"{"a \" 100.00000000000000000001":100.00000000000000000001,"b":[-1.5,12345678901234567890123],"c":7}"#;
        let read = compared(text, &json!({})).expect("an object");
        let expected = json!({
            "a \" 100.00000000000000000001": "100.00000000000000000001", "b": [-1.5, "12345678901234567890123"], "c": 7
        });
        assert_eq!(Value::Object(read), expected);
    }

    #[test]
    fn an_argument_has_the_name_that_is_declared() {
        let schema = json!({"properties": {"sentBy": {}, "to": {}}});
        let read = |text: &str| Value::Object(compared(text, &schema).expect("an object"));
        assert_eq!(read(r#"{"sent-by":1,"TO":2,"other":3}"#), json!({"sentBy": 1, "to": 2, "other": 3}));
        assert_eq!(read(r#"{"sent-by":1,"sent_by":2}"#), json!({"sent-by": 1, "sent_by": 2}));
        assert!(compared("[1]", &schema).is_err());
    }
}
