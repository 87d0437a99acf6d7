//! TOON for tables: an array of objects with the same plain fields, its keys written once.
//!
//! ```text
//! [2]{id,name}:
//!   1,Ada
//!   2,"Grace, Rear Admiral"
//! ```

use std::fmt::Write;

use serde_json::Value;

/// Encodes a value as a table if it is one: two or more objects with the same keys and plain fields.
pub(in crate::server) fn table(value: &Value) -> Option<String> {
    let rows = value.as_array().filter(|rows| rows.len() > 1)?;
    let first = rows.first()?.as_object().filter(|first| !first.is_empty())?;
    let mut table = format!("[{}]{{", rows.len());
    for (index, key) in first.keys().enumerate() {
        table.push_str(if index == 0 { "" } else { "," });
        push_key(&mut table, key);
    }
    table.push_str("}:");
    for row in rows {
        let row = row.as_object().filter(|row| row.len() == first.len())?;
        table.push_str("\n  ");
        for (index, key) in first.keys().enumerate() {
            table.push_str(if index == 0 { "" } else { "," });
            push_field(&mut table, row.get(key)?)?;
        }
    }
    Some(table)
}

fn push_key(table: &mut String, key: &str) {
    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    if plain { table.push_str(key) } else { push_quoted(table, key) }
}

fn push_field(table: &mut String, field: &Value) -> Option<()> {
    match field {
        Value::String(text) if needs_quotes(text) => push_quoted(table, text),
        Value::String(text) => table.push_str(text),
        Value::Array(_) | Value::Object(_) => return None,
        plain => write!(table, "{plain}").ok()?,
    }
    Some(())
}

/// True for a text that would be parsed as something else, or would end its field.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.trim() != text
        || matches!(text, "true" | "false" | "null")
        || text.starts_with('-')
        || text.parse::<f64>().is_ok()
        || text.contains(|c: char| c.is_control() || ",:\"\\[]{}".contains(c))
}

/// Appends a quoted text. TOON has five escapes; other control characters cannot be encoded and become spaces.
fn push_quoted(table: &mut String, text: &str) {
    table.push('"');
    for c in text.chars() {
        match c {
            '"' => table.push_str("\\\""),
            '\\' => table.push_str("\\\\"),
            '\n' => table.push_str("\\n"),
            '\r' => table.push_str("\\r"),
            '\t' => table.push_str("\\t"),
            c if c.is_control() => table.push(' '),
            c => table.push(c),
        }
    }
    table.push('"');
}

#[cfg(test)]
mod tests {
    use super::table;
    use serde_json::json;

    #[test]
    fn uniform_rows_become_a_table() {
        let value = json!([
            {"id": 1, "name": "Ada", "on": true, "a-b": null},
            {"name": "Grace, \"R\"\n", "id": -2.5, "on": false, "a-b": "05"}
        ]);
        let expected = "[2]{id,name,on,\"a-b\"}:\n  1,Ada,true,null\n  -2.5,\"Grace, \\\"R\\\"\\n\",false,\"05\"";
        assert_eq!(table(&value).as_deref(), Some(expected));
    }

    #[test]
    fn other_values_are_left_alone() {
        for value in [
            json!([]),
            json!([{"a": 1}]),
            json!([{}, {}]),
            json!([{"a": 1}, {"b": 1}]),
            json!([{"a": 1}, {"a": [1]}]),
            json!([{"a": 1}, 2]),
            json!({"a": 1}),
        ] {
            assert_eq!(table(&value), None, "{value}");
        }
    }
}
