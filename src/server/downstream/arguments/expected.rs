//! What a schema expects, in the words of an error.

use serde_json::Value;

use crate::server::text::cut;

/// Describes in a few words what a schema expects, if it is simple enough.
pub(super) fn expected(schema: &Value) -> Option<String> {
    if let Some(options) = schema.get("enum") {
        return expected_of_options(options);
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    if let Some(alternatives) = alternatives {
        let each: Option<Vec<String>> = alternatives.iter().map(expected).collect();
        return each.map(|each| each.join(" or "));
    }
    match schema.get("type")? {
        Value::String(name) if name == "object" => Some(object(schema)),
        Value::String(name) => Some(name.clone()),
        Value::Array(names) => {
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            names.map(|names| names.join(" or "))
        }
        _ => None,
    }
}

/// Describes the options of an enumeration.
pub(super) fn expected_of_options(options: &Value) -> Option<String> {
    let options: Vec<String> = options.as_array()?.iter().map(Value::to_string).collect();
    Some(format!("one of {}", listed(options.iter().map(String::as_str))))
}

/// Formats a short list in backticks.
pub(super) fn listed<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.map(|item| format!("`{}`", cut(item, 60))).collect();
    match items.len() {
        0..=12 => items.join(", "),
        more => format!("{} and {} more", items[..12].join(", "), more - 12),
    }
}

/// Describes an object, with its keys if the schema names any.
pub(super) fn object(schema: &Value) -> String {
    keys(schema).map_or_else(|| "object".to_owned(), |keys| format!("object with the keys {keys}"))
}

/// Returns the keys of the objects that a schema describes, with `?` behind those that may be absent; `None` if it names
/// none.
pub(super) fn keys(schema: &Value) -> Option<String> {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty())?;
    let required = required(schema);
    let written = |name: &String| format!("{name}{}", if required.contains(&name.as_str()) { "" } else { "?" });
    let (needed, optional): (Vec<&String>, Vec<&String>) =
        properties.keys().partition(|name| required.contains(&name.as_str()));
    let all: Vec<String> = needed.into_iter().chain(optional).map(written).collect();
    Some(listed(all.iter().map(String::as_str)))
}

/// Returns the keys that an object needs.
pub(super) fn required(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
