//! Unwraps the result of a tool: the structured content, else JSON in the text, else the text. [`python`] reads what
//! Python prints.

mod python;

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::lang::internal::foreign_text;
use crate::lang::{Tool, ToolError, ToolErrorKind, ToolReply};
use crate::server::secrets::Secrets;
use crate::server::text::cut;
use crate::server::transport::lenient;

use super::blobs::Owned;
use super::uncertain;

/// The error for a call that timed out.
pub(super) fn late(what: &str, timeout: Duration) -> ToolError {
    let message = format!("`{what}` did not answer within {} s", timeout.as_secs_f64());
    ToolError::new(ToolErrorKind::Timeout, message)
}

/// The error for a call that timed out after its last progress.
pub(super) fn stalled(what: &str, timeout: Duration) -> ToolError {
    let message = format!("`{what}` neither answered nor reported progress for {} s", timeout.as_secs_f64());
    ToolError::new(ToolErrorKind::Timeout, message)
}

/// Returns the approximate size of a result in bytes; stops measuring once it is large.
pub(super) fn weight(result: &CallToolResult) -> usize {
    const EACH: usize = 64;
    const LARGE: usize = 1 << 20;
    let text = |block: &ContentBlock| block.as_text().map_or(EACH, |text| text.text.len());
    let mut sum = EACH * result.content.len() + result.content.iter().map(text).sum::<usize>();
    result.structured_content.iter().for_each(|structured| add_weight(structured, (EACH, LARGE), &mut sum));
    sum
}

/// Adds the approximate size of a value in bytes, with `each` for each value in it; stops once the sum is over `large`.
pub(super) fn add_weight(value: &Value, (each, large): (usize, usize), sum: &mut usize) {
    *sum += each;
    match value {
        _ if *sum > large => {}
        Value::String(text) => *sum += text.len(),
        Value::Array(items) => items.iter().take(large / each).for_each(|item| add_weight(item, (each, large), sum)),
        Value::Object(fields) => fields.iter().take(large / each).for_each(|(name, field)| {
            *sum += name.len();
            add_weight(field, (each, large), sum);
        }),
        _ => {}
    }
}

/// A reply, with a note for the program on how it was read, as a clause.
pub(super) type Noted = (ToolReply, Option<String>);

/// Unwraps the result of `tool`.
///
/// # Errors
/// Returns an error with the tool's message if the tool reports that it failed.
pub(super) fn unwrap(
    mut result: CallToolResult,
    tool: &Tool,
    blobs: &Owned,
    secrets: &Secrets,
) -> Result<Noted, ToolError> {
    let mut notes = Notes::of(&result);
    redact_texts(&mut result.content, secrets);
    if result.is_error == Some(true) {
        return Err(failure(&result, tool, secrets));
    }
    if let Some(structured) = result.structured_content {
        let reply = match bare(structured, tool) {
            // A text that was wrapped is what the tool returned: read it like a result that is a text.
            Value::String(text) if is_wrapped(tool) => noted(text, &mut notes),
            structured => ToolReply::Json(structured.to_string()),
        };
        return Ok((reply, notes.line()));
    }
    let mut blocks: Vec<Value> = Vec::with_capacity(result.content.len());
    let single = result.content.len() == 1;
    for block in result.content {
        match block {
            ContentBlock::Text(text) if single => {
                let reply = noted(text.text, &mut notes);
                return Ok((reply, notes.line()));
            }
            ContentBlock::Text(text) => blocks.push(embedded(text.text, &mut notes)),
            other => blocks.push(described(other, blobs, secrets)),
        }
    }
    let whole = match blocks.len() {
        0 => Value::Null,
        1 => blocks.swap_remove(0),
        _ => Value::Array(blocks),
    };
    Ok((ToolReply::Json(whole.to_string()), notes.line()))
}

/// The ways in which a result was read that a program should know of.
#[derive(Default)]
struct Notes {
    dropped: Vec<&'static str>,
    reading: Vec<&'static str>,
}

impl Notes {
    /// Takes the parts that were dropped when the message was read.
    fn of(result: &CallToolResult) -> Notes {
        let named = result.meta.as_ref().and_then(|meta| meta.get(lenient::DROPPED)?.as_array());
        let is_named = |part: &&'static str| named.is_some_and(|named| named.iter().any(|name| name == *part));
        Notes { dropped: lenient::PARTS.into_iter().filter(is_named).collect(), ..Notes::default() }
    }

    fn line(self) -> Option<String> {
        let dropped = (!self.dropped.is_empty())
            .then(|| format!("parts of the reply are not valid MCP and were left out: {}", self.dropped.join(", ")));
        let parts: Vec<String> = dropped.into_iter().chain(self.reading.into_iter().map(str::to_owned)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn add(&mut self, reading: Reading) {
        let note = match reading {
            Reading::Json => return,
            Reading::Forgiven => "its JSON has NaN, Infinity or half a character, which were read as nil and U+FFFD",
            Reading::Python => "its text was read as data, in the notation of Python",
        };
        if !self.reading.contains(&note) {
            self.reading.push(note);
        }
    }
}

/// How a text was read as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Json,
    Forgiven,
    Python,
}

/// Removes the `{"result": …}` with which Python's SDK and FastMCP wrap non-objects, as their schema declares.
fn bare(structured: Value, tool: &Tool) -> Value {
    match structured {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("result") && is_wrapped(tool) => {
            fields.remove("result").unwrap_or_default()
        }
        other => other,
    }
}

/// Returns the output schema of a result after [unwrapping](unwrap); `None` if it promises nothing.
pub(super) fn promised(tool: &Tool) -> Option<Value> {
    let schema = tool.output_schema.clone()?;
    if !is_wrapped(tool) {
        return Some(schema);
    }
    let mut inner = schema.pointer("/properties/result")?.clone();
    if inner.get("type") == Some(&json!("string")) {
        // The text may be data.
        return None;
    }
    if let (Some(fields), Some(definitions)) = (inner.as_object_mut(), schema.get("$defs")) {
        fields.insert("$defs".to_owned(), definitions.clone());
    }
    Some(inner)
}

fn is_wrapped(tool: &Tool) -> bool {
    let Some(schema) = &tool.output_schema else { return false };
    if schema.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true)) {
        return true;
    }
    let only = schema
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|fields| fields.len() == 1 && fields.contains_key("result"));
    let is_text = schema.pointer("/properties/result/type").and_then(Value::as_str) == Some("string");
    let title = schema.get("title").and_then(Value::as_str);
    only && (is_text || title.is_some_and(|title| title == format!("{}Output", tool.name)))
}

/// True for a text that is a JSON object, array or string, which is meant as data. A bare `42`, `true` or `null` may
/// just as well be the content of a file, so it stays text.
fn is_json(text: &str) -> bool {
    let text = text.trim_ascii();
    matches!(text.as_bytes().first(), Some(b'{' | b'[' | b'"')) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Converts the text of a tool: JSON objects, arrays and strings become JSON, anything else text.
pub(super) fn text_or_json(text: String) -> ToolReply {
    noted(text, &mut Notes::default())
}

/// Converts a text as [`text_or_json`] does, with notes on how it was read.
fn noted(text: String, notes: &mut Notes) -> ToolReply {
    match as_json(&text) {
        Some((json, reading)) => {
            notes.add(reading);
            match json {
                Cow::Borrowed(json) if json.len() == text.len() => ToolReply::Json(text),
                json => ToolReply::Json(json.into_owned()),
            }
        }
        None => ToolReply::Text(text),
    }
}

/// Returns a text that is [JSON](is_json), or data as JavaScript and Python write it. A byte order mark in front is no
/// part of it.
fn as_json(text: &str) -> Option<(Cow<'_, str>, Reading)> {
    let text = text.trim_start_matches('\u{feff}');
    let is_valid = is_json(text);
    // A half of a surrogate pair is valid, but no text.
    if is_valid && !text.contains("\\ud") && !text.contains("\\uD") {
        return Some((Cow::Borrowed(text), Reading::Json));
    }
    if !matches!(text.trim_ascii().as_bytes().first(), Some(b'{' | b'[' | b'"')) {
        return None;
    }
    let forgiven = lenient::forgiven(text.as_bytes()).and_then(|text| String::from_utf8(text).ok());
    match forgiven.filter(|text| is_json(text)) {
        Some(forgiven) => Some((Cow::Owned(forgiven), Reading::Forgiven)),
        None if is_valid => Some((Cow::Borrowed(text), Reading::Json)),
        None => python::json(text).map(|json| (Cow::Owned(json), Reading::Python)),
    }
}

/// Converts one text among several blocks. JSON that is nested too deeply to be parsed here stays text.
fn embedded(text: String, notes: &mut Notes) -> Value {
    let json = as_json(&text).and_then(|(json, reading)| Some((serde_json::from_str(&json).ok()?, reading)));
    match json {
        Some((json, reading)) => {
            notes.add(reading);
            json
        }
        None => Value::String(text),
    }
}

/// Describes a block that is not text: its kind, its size, and the identifier under which the client can fetch the
/// bytes.
fn described(block: ContentBlock, blobs: &Owned, secrets: &Secrets) -> Value {
    let blob = |kind: &str, mime_type: Option<String>, data: String, more: Value| {
        let data = harmless(data, secrets);
        let mime_type = mime_type.map(|kind| secrets.redact_own(kind));
        let Value::Object(mut fields) = json!({"type": kind, "mimeType": mime_type}) else { unreachable!("it is one") };
        fields.extend(more.as_object().cloned().unwrap_or_default());
        fields.insert("bytes".to_owned(), json!(decoded_length(&data)));
        fields.insert("blob".to_owned(), json!(blobs.keep(mime_type, data)));
        without_nulls(Value::Object(fields))
    };
    match block {
        ContentBlock::Text(text) => Value::String(text.text),
        ContentBlock::Image(image) => blob("image", Some(image.mime_type), image.data, Value::Null),
        ContentBlock::Audio(audio) => blob("audio", Some(audio.mime_type), audio.data, Value::Null),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                without_nulls(json!({"type": "resource", "uri": uri, "mimeType": mime_type, "text": text}))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob: data, .. } => {
                blob("resource", mime_type, data, json!({"uri": uri}))
            }
            _ => json!({"type": "resource"}),
        },
        ContentBlock::ResourceLink(link) => without_nulls(json!({
            "type": "resource_link",
            "uri": link.uri,
            "name": link.name,
            "description": link.description,
            "mimeType": link.mime_type,
            "size": link.size,
        })),
        _ => json!({"type": "unknown"}),
    }
}

/// The number of bytes that a base64 text encodes.
fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
    }
    value
}

/// Redacts secrets in the text blocks, including those split across several blocks.
fn redact_texts(content: &mut [ContentBlock], secrets: &Secrets) {
    let mut texts: Vec<String> = content.iter_mut().filter_map(text_of).map(std::mem::take).collect();
    // A single text may be JSON, in which redaction must treat keys differently from text; it is redacted with the
    // reply.
    if texts.len() > 1 {
        secrets.redact_parts(&mut texts);
    }
    content.iter_mut().filter_map(text_of).zip(texts).for_each(|(place, text)| *place = text);
}

fn text_of(block: &mut ContentBlock) -> Option<&mut String> {
    match block {
        ContentBlock::Text(text) => Some(&mut text.text),
        _ => None,
    }
}

/// Redacts secrets in base64-encoded bytes.
fn harmless(data: String, secrets: &Secrets) -> String {
    let redacted = STANDARD.decode(&data).ok().and_then(|bytes| secrets.redact_bytes(&bytes));
    redacted.map_or(data, |bytes| STANDARD.encode(bytes))
}

/// Builds the error message of a tool that failed.
fn failure(result: &CallToolResult, tool: &Tool, secrets: &Secrets) -> ToolError {
    let texts: Vec<&str> =
        result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.trim())).collect();
    let words = match (texts.join("\n"), &result.structured_content) {
        (texts, _) if !texts.is_empty() => texts,
        (_, Some(structured)) => secrets.redact_json(&structured.to_string()).into_owned(),
        _ => "it gave no reason".to_owned(),
    };
    let name = foreign_text::qualified(&tool.server, &tool.name);
    ToolError::new(uncertain::kind(&words), format!("`{name}` failed: {}", cut(&secrets.redact(&words), 2000)))
}

#[cfg(test)]
mod tests;
