//! The rules by which results are mended: of tool calls, of the handshake, and of lists.

use rmcp::model::Annotations;
use serde_json::{Map, Value, json};

use super::{DROPPED, TASK_ONLY, as_text};

/// The form of an image by the beginning of its base64 text.
const IMAGES: &[(&str, &str)] =
    &[("iVBOR", "image/png"), ("/9j/", "image/jpeg"), ("R0lG", "image/gif"), ("UklGR", "image/webp")];

/// Mends a result, whose kind is recognised by its keys. One that is no object is the content of a tool's result. The
/// result of a tool names the parts that were dropped from it, besides those in `dropped`.
pub(super) fn mend(result: &mut Value, mut dropped: Vec<&'static str>) {
    match result {
        Value::Object(fields) => {
            if fields.get("_meta").is_some_and(|meta| !meta.is_object()) {
                note(&mut dropped, "_meta", fields.shift_remove("_meta"));
            }
            // A result with content is complete, whatever it calls itself.
            if fields.get("resultType").is_some_and(|kind| !kind.is_string() || fields.contains_key("content")) {
                fields.shift_remove("resultType");
            }
            let has = |key: &str| fields.contains_key(key);
            if has("protocolVersion") || has("serverInfo") || has("supportedVersions") || has("capabilities") {
                mend_handshake(fields);
            } else if has("tools") {
                mend_tools(fields);
            } else if has("content") || has("structuredContent") || has("isError") || has("toolResult") {
                mend_call(fields, &mut dropped);
                if !dropped.is_empty() {
                    let meta = fields.entry("_meta").or_insert_with(|| json!({}));
                    meta.as_object_mut()
                        .into_iter()
                        .for_each(|meta| drop(meta.insert(DROPPED.to_owned(), json!(dropped))));
                }
            }
        }
        other => {
            let content = content_of(Some(other.take()), &mut dropped);
            *other = json!({"content": content});
        }
    }
}

/// Notes a part that is dropped, unless it is empty and stands for nothing.
fn note(dropped: &mut Vec<&'static str>, part: &'static str, value: Option<Value>) {
    let is_empty = match &value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) => false,
    };
    if !is_empty && !dropped.contains(&part) {
        dropped.push(part);
    }
}

fn mend_handshake(fields: &mut Map<String, Value>) {
    let capabilities = match fields.shift_remove("capabilities") {
        Some(Value::Object(capabilities)) => capabilities,
        _ => Map::new(),
    };
    fields.insert("capabilities".to_owned(), Value::Object(capabilities.into_iter().filter_map(capability).collect()));
    if fields.get("instructions").is_some_and(|instructions| !instructions.is_string()) {
        fields.shift_remove("instructions");
    }
    if fields.contains_key("supportedVersions") {
        return;
    }
    match fields.get("protocolVersion") {
        Some(Value::String(_)) => {}
        Some(Value::Number(version)) => {
            let version = version.to_string();
            fields.insert("protocolVersion".to_owned(), Value::String(version));
        }
        _ => drop(fields.insert("protocolVersion".to_owned(), json!("2024-11-05"))),
    }
    let about = fields.shift_remove("serverInfo").unwrap_or_default();
    let text = |key: &str| about.get(key).filter(|value| value.is_string() || value.is_number()).map(as_text);
    let mut info = json!({"name": text("name").unwrap_or_default(), "version": text("version").unwrap_or_default()});
    if let (Some(title), Some(info)) = (about.get("title").and_then(Value::as_str), info.as_object_mut()) {
        info.insert("title".to_owned(), json!(title));
    }
    fields.insert("serverInfo".to_owned(), info);
}

/// Returns a capability that a server has: an object without settings of the wrong type.
fn capability((name, value): (String, Value)) -> Option<(String, Value)> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Object(mut settings) => {
            settings.retain(|key, setting| match key.as_str() {
                "listChanged" | "subscribe" => setting.is_boolean(),
                _ => setting.is_object(),
            });
            Some((name, Value::Object(settings)))
        }
        _ => Some((name, json!({}))),
    }
}

/// Mends a list of tools as a whole; each tool is read by itself elsewhere. An empty array is how PHP writes an empty
/// object.
fn mend_tools(fields: &mut Map<String, Value>) {
    if fields.get("nextCursor").is_some_and(|cursor| !cursor.is_string()) {
        fields.shift_remove("nextCursor");
    }
    let tools = match fields.get_mut("tools") {
        Some(Value::Array(tools)) => tools,
        Some(tools @ Value::Null) => {
            *tools = json!([]);
            return;
        }
        Some(tools @ Value::Object(_)) => {
            *tools = named(std::mem::take(tools));
            let Some(tools) = tools.as_array_mut() else { return };
            tools
        }
        _ => return,
    };
    tools.iter_mut().filter_map(Value::as_object_mut).for_each(mend_tool);
}

/// Returns the list of tools that are given by name.
fn named(tools: Value) -> Value {
    let Value::Object(tools) = tools else { return json!([]) };
    let tool = |(name, mut tool): (String, Value)| {
        if let Some(fields) = tool.as_object_mut() {
            fields.entry("name").or_insert(Value::String(name));
        }
        tool
    };
    tools.into_iter().map(tool).collect()
}

/// Mends the declaration of a tool: parts without which it can be called are dropped if they cannot be read.
fn mend_tool(tool: &mut Map<String, Value>) {
    if tool.get("description").is_some_and(|description| !description.is_string()) {
        tool.shift_remove("description");
    }
    for key in ["annotations", "outputSchema", "_meta"] {
        if tool.get(key).is_some_and(|part| !part.is_object()) {
            tool.shift_remove(key);
        }
    }
    let support = tool.get("execution").and_then(|execution| execution.get("taskSupport"));
    if support.is_some_and(|support| support == "required") {
        let meta = tool.entry("_meta").or_insert_with(|| json!({}));
        meta.as_object_mut().into_iter().for_each(|meta| drop(meta.insert(TASK_ONLY.to_owned(), json!(true))));
    }
    let schema = match tool.shift_remove("inputSchema") {
        Some(Value::Object(schema)) => Some(schema),
        Some(Value::String(text)) => serde_json::from_str(&text).ok(),
        // As some servers in Python write it.
        None => tool.get("input_schema").and_then(Value::as_object).cloned(),
        _ => None,
    };
    let mut schema = schema.unwrap_or_else(|| Map::from_iter([("type".to_owned(), json!("object"))]));
    for key in ["properties", "$defs", "definitions"] {
        if schema.get(key).is_some_and(is_empty_array) {
            schema.insert(key.to_owned(), json!({}));
        }
    }
    tool.insert("inputSchema".to_owned(), Value::Object(schema));
}

fn is_empty_array(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn mend_call(fields: &mut Map<String, Value>, dropped: &mut Vec<&'static str>) {
    let is_error = match fields.shift_remove("isError") {
        Some(Value::Bool(is_error)) => Some(is_error),
        Some(Value::String(text)) => Some(text.eq_ignore_ascii_case("true")),
        Some(Value::Number(number)) => Some(number.as_f64() != Some(0.0)),
        other => {
            note(dropped, "isError", other);
            None
        }
    };
    if let Some(is_error) = is_error {
        fields.insert("isError".to_owned(), json!(is_error));
    }
    let content = content_of(fields.shift_remove("content"), dropped);
    let stands_for_nothing = match fields.get("structuredContent") {
        Some(Value::Null) => true,
        Some(Value::Object(structured)) => structured.is_empty() && !content.is_empty(),
        _ => false,
    };
    if stands_for_nothing {
        fields.shift_remove("structuredContent");
    }
    fields.insert("content".to_owned(), Value::Array(content));
    // An older revision had the result itself there.
    if let Some(result) = fields.shift_remove("toolResult")
        && !fields.contains_key("structuredContent")
        && !result.is_null()
    {
        fields.insert("structuredContent".to_owned(), result);
    }
}

/// Returns the blocks of a content, with the parts that are read.
fn content_of(content: Option<Value>, dropped: &mut Vec<&'static str>) -> Vec<Value> {
    let mut read = |item: Value| {
        let is_odd = |annotations: &&Value| serde_json::from_value::<Annotations>((*annotations).clone()).is_err();
        note(dropped, "annotations", item.get("annotations").filter(is_odd).cloned());
        note(dropped, "_meta", item.get("_meta").filter(|meta| !meta.is_object()).cloned());
        block(item)
    };
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.into_iter().filter_map(read).collect(),
        Some(other) => read(other).into_iter().collect(),
    }
}

fn text(text: String) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a block with what is read of it. A block of an unknown kind is a text with its JSON; `None` for nothing.
fn block(block: Value) -> Option<Value> {
    let fields = match block {
        Value::Object(fields) => fields,
        Value::Null => return None,
        other => return Some(text(as_text(&other))),
    };
    let string = |key: &str| fields.get(key).and_then(Value::as_str);
    match string("type") {
        Some("text") => match fields.get("text") {
            None | Some(Value::Null) => Some(text(String::new())),
            Some(words) => Some(text(as_text(words))),
        },
        Some(kind @ ("image" | "audio")) if string("data").is_some() => {
            let data = string("data").unwrap_or_default();
            let guess = || IMAGES.iter().find(|(begin, _)| data.starts_with(begin)).map(|(_, form)| *form);
            let form = string("mimeType").or_else(guess).unwrap_or("application/octet-stream");
            Some(json!({"type": kind, "data": data, "mimeType": form}))
        }
        Some("resource") if fields.get("resource").is_some_and(Value::is_object) => {
            let resource = &fields["resource"];
            let part = |key: &str| resource.get(key).and_then(Value::as_str);
            let mut read = Map::from_iter([("uri".to_owned(), json!(part("uri").unwrap_or_default()))]);
            if let Some(form) = part("mimeType") {
                read.insert("mimeType".to_owned(), json!(form));
            }
            match (part("text"), part("blob"), resource.get("text")) {
                (Some(words), ..) => drop(read.insert("text".to_owned(), json!(words))),
                (None, Some(blob), _) => drop(read.insert("blob".to_owned(), json!(blob))),
                (None, None, words) => {
                    let words = words.filter(|words| !words.is_null()).map(as_text).unwrap_or_default();
                    read.insert("text".to_owned(), Value::String(words));
                }
            }
            Some(json!({"type": "resource", "resource": read}))
        }
        Some("resource_link") if string("uri").is_some() => {
            let uri = string("uri").unwrap_or_default();
            let mut read = json!({"type": "resource_link", "uri": uri, "name": string("name").unwrap_or(uri)});
            if let Some(read) = read.as_object_mut() {
                for key in ["description", "mimeType"] {
                    read.extend(string(key).map(|value| (key.to_owned(), json!(value))));
                }
                let size = fields.get("size").and_then(Value::as_u64).filter(|size| u32::try_from(*size).is_ok());
                read.extend(size.map(|size| ("size".to_owned(), json!(size))));
            }
            Some(read)
        }
        None if string("text").is_some() => Some(text(string("text").unwrap_or_default().to_owned())),
        _ => Some(text(Value::Object(fields).to_string())),
    }
}
