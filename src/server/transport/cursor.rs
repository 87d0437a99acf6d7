//! Detects cursors that are not strings, which rmcp treats as absent.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// Maximum size of a request for a list, whatever else it contains.
const LARGEST: usize = 64 << 10;

/// The parts of a message that show whether it has a cursor.
#[derive(Deserialize)]
struct Head<'t> {
    #[serde(borrow)]
    method: Cow<'t, str>,
    #[serde(borrow)]
    id: Option<&'t serde_json::value::RawValue>,
    params: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    cursor: Option<Value>,
}

/// Returns the problem of a request for a list whose cursor is not a string.
pub(in crate::server) fn problem(message: &[u8]) -> Option<&'static str> {
    if message.len() > LARGEST {
        return None;
    }
    let head = serde_json::from_slice::<Head<'_>>(message).ok()?;
    let asks = head.id.is_some() && head.method.ends_with("/list");
    let cursor = head.params.and_then(|parameters| parameters.cursor).filter(|cursor| !cursor.is_string())?;
    (asks && !cursor.is_null()).then_some("expected a string from this server as `cursor`; leave `cursor` out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_text() {
        let is_wrong = |text: &str| problem(text.as_bytes()).is_some();
        for cursor in ["5", "[\"x\"]", "{}", "true"] {
            let list =
                |method: &str| format!(r#"{{"id":1,"method":"{method}","params":{{"_meta":{{}},"cursor":{cursor}}}}}"#);
            assert!(is_wrong(&list("tools/list")) && is_wrong(&list("resources/templates/l\\u0069st")), "{cursor}");
            assert!(!is_wrong(&list("tools/call")), "{cursor}");
        }
        for fine in [r#"{"cursor":"x"}"#, r#"{"cursor":null}"#, "{}", "null"] {
            assert!(!is_wrong(&format!(r#"{{"id":1,"method":"tools/list","params":{fine}}}"#)), "{fine}");
        }
        assert!(!is_wrong("nonsense"));
    }
}
