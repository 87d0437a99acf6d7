//! Says what a message of a client lacks, where it is JSON but not a message of MCP.

use serde_json::Value;

use super::batch::NO_MESSAGE;

/// Maximum size of a message that is explained, in bytes.
pub(in crate::server) const LARGEST: usize = 64 << 10;

/// A field that a request needs: the path of its object within the message, its name, and what it is.
type Field = (&'static [&'static str], &'static str, &'static str);

/// The fields of `initialize`.
const INITIALIZE: [Field; 5] = [
    (&["params"], "protocolVersion", "a text such as \"2025-06-18\""),
    (&["params"], "capabilities", "an object"),
    (&["params"], "clientInfo", "an object with `name` and `version`"),
    (&["params", "clientInfo"], "name", "a text"),
    (&["params", "clientInfo"], "version", "a text"),
];

/// The fields of `tools/call`.
const CALL: [Field; 1] = [(&["params"], "name", "the name of a tool")];

/// Returns why a text is not a message of MCP: the fields that are missing or wrong, as far as that is known.
pub(in crate::server) fn reason(text: &[u8]) -> String {
    lack(text).unwrap_or_else(|| NO_MESSAGE.to_owned())
}

/// Returns the fields that a message lacks, if it is one of those whose fields are known.
pub(in crate::server) fn lack(text: &[u8]) -> Option<String> {
    let message = (text.len() <= LARGEST).then(|| serde_json::from_slice::<Value>(text).ok()).flatten()?;
    let method = message.get("method").and_then(Value::as_str)?;
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Some(format!("{NO_MESSAGE}; `jsonrpc` must be \"2.0\""));
    }
    let fields: &[Field] = match method {
        "initialize" => &INITIALIZE,
        "tools/call" => &CALL,
        _ => return None,
    };
    let wanting = fields.iter().filter_map(|(path, field, kind)| {
        let place = path.iter().try_fold(&message, |place, key| place.get(*key));
        // An object that is missing is reported, not each of its fields.
        if path.len() > 1 && !place.is_some_and(Value::is_object) {
            return None;
        }
        let found = place.and_then(|place| place.get(*field)).unwrap_or(&Value::Null);
        let is_right = if kind.starts_with("an object") { found.is_object() } else { found.is_string() };
        (!is_right).then(|| format!("`{}.{field}` ({kind})", path.join(".")))
    });
    let wanting: Vec<String> = wanting.collect();
    (!wanting.is_empty()).then(|| format!("`{method}` needs {}", wanting.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_are_missing_are_named() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
                "`initialize` needs `params.clientInfo` (an object with `name` and `version`)",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"capabilities":{},"clientInfo":{"name":"a"}}}"#,
                "`initialize` needs `params.protocolVersion` (a text such as \"2025-06-18\"), `params.clientInfo.version` (a text)",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
                "`initialize` needs `params.protocolVersion` (a text such as \"2025-06-18\"), `params.capabilities` (an object), `params.clientInfo` (an object with `name` and `version`)",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
                "`tools/call` needs `params.name` (the name of a tool)",
            ),
            (r#"{"id":1}"#, NO_MESSAGE),
            ("[]", NO_MESSAGE),
            ("", NO_MESSAGE),
        ];
        for (text, reason) in cases {
            assert_eq!(super::reason(text.as_bytes()), reason, "{text}");
        }
        let untyped = reason(br#"{"id":1,"method":"ping"}"#);
        assert_eq!(untyped, format!("{NO_MESSAGE}; `jsonrpc` must be \"2.0\""));
    }
}
