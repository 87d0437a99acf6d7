//! Signatures of tools, derived from their schemas for models to read: on one line or in full.

use super::super::pages::has_pages;
use super::shape::{cut, literal, shape};
use crate::foreign_text;
use crate::host::{Tool, written_names};
use serde_json::Value as Json;
use std::fmt::Write;

/// Maximum length of a one-line description, in characters.
const LINE: usize = 100;
/// Maximum length of the call (in bytes) and of the result's shape (in characters) on one line.
const CALL: usize = 160;
const RESULT: usize = 80;
/// Maximum number of parameters shown, and maximum length of a parameter's name, in characters.
const PARAMETERS: usize = 100;
const NAME: usize = 100;
/// Maximum length of an argument's type: in a call, and on a line by itself.
const KIND: usize = 60;
const WIDE: usize = 400;

impl Tool {
    /// Returns the call, the result as far as known, and the description on one line: `(mail/search :query string
    /// :limit? integer=50) -> [{:id string}]  finds mail`.
    pub fn signature(&self) -> String {
        line(self)
    }
}

/// Formats a tool on one line: `(mail/search :query string :limit? integer=50) -> [{:id string}]  description`.
pub fn line(tool: &Tool) -> String {
    let lines = foreign_text::lines(beginning(&tool.description));
    let first = lines.first().map_or("", |first| first.split(". ").next().unwrap_or_default());
    let short = cut(first.trim_end_matches('.').to_string(), LINE);
    let result = result(tool, RESULT).map(|(said, shape)| format!(" -> {said}{shape}")).unwrap_or_default();
    let pages = if has_pages(tool) { "  ; pages: all-pages" } else { "" };
    let described = format!("{}{result}  {short}", call_within(tool, CALL));
    format!("{}{pages}", described.trim_end())
}

/// Formats the call with its parameters, required ones first.
pub fn call(tool: &Tool) -> String {
    call_within(tool, usize::MAX)
}

/// Formats the call with all required parameters, and as many optional ones as fit into `width` bytes.
fn call_within(tool: &Tool, width: usize) -> String {
    let mut out = format!("({}", foreign_text::qualified(&tool.server, &tool.name));
    let parameters = tool.parameters();
    let written = written_names(parameters.iter().map(|(name, _)| *name));
    for (at, ((name, required), written)) in parameters.into_iter().zip(written).enumerate() {
        let mark = if required { "" } else { "?" };
        let argument = format!(" {}{mark} {}", shown(&written), kind(tool, name, KIND));
        if at == PARAMETERS || (!required && out.len() + argument.len() > width) {
            out.push_str(" …");
            break;
        }
        out.push_str(&argument);
    }
    out + ")"
}

/// Formats the name of a parameter as programs write it, truncated to [`NAME`] characters.
fn shown(written: &str) -> String {
    foreign_text::argument(&cut(written.to_owned(), NAME))
}

/// Formats the type of a parameter, with its enumeration values or default.
fn kind(tool: &Tool, name: &str, width: usize) -> String {
    let Some(schema) = property(tool, name) else { return "any".to_string() };
    let (shape, _) = shape(schema, &tool.input_schema, width);
    match schema.get("default") {
        Some(default) if !default.is_null() => format!("{shape}={}", literal(default)),
        _ => shape,
    }
}

fn property<'t>(tool: &'t Tool, name: &str) -> Option<&'t Json> {
    tool.input_schema.get("properties")?.get(name)
}

/// Returns the shape of the tool's result with a prefix for its origin: empty if the server declares it, `seen ` if it
/// was inferred from results.
fn result(tool: &Tool, width: usize) -> Option<(&'static str, String)> {
    let shown = |schema: &Json| shape(schema, schema, width).0;
    // A declared shape that is merely an object carries less information than one inferred from results.
    let promised = tool.output_schema.as_ref().map(shown);
    match (promised, &tool.seen) {
        (Some(shape), None) => Some(("", shape)),
        (Some(shape), _) if !["any", "object", "[any]", "[object]"].contains(&shape.as_str()) => Some(("", shape)),
        (_, Some(schema)) => Some(("seen ", shown(schema))),
        (None, None) => None,
    }
}

/// Formats all that is known of a tool: call, description, parameters, result.
pub fn full(tool: &Tool) -> String {
    let mut out = format!("{}\n", call(tool));
    for line in foreign_text::lines(&tool.description) {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
    let parameters = tool.parameters();
    let written = written_names(parameters.iter().map(|(name, _)| *name));
    let more = parameters.len().saturating_sub(PARAMETERS);
    for ((name, required), written) in parameters.into_iter().zip(written).take(PARAMETERS) {
        let described = property(tool, name).and_then(|schema| schema.get("description")).and_then(Json::as_str);
        let need = if required { ", required" } else { "" };
        let described = described.map(|text| format!("  {}", foreign_text::line(text))).unwrap_or_default();
        let _ = writeln!(out, "  {} {}{need}{described}", shown(&written), kind(tool, name, WIDE));
    }
    if more > 0 {
        let _ = writeln!(out, "  … and {more} more");
    }
    match result(tool, WIDE) {
        Some(("", shape)) => _ = writeln!(out, "  returns {shape}"),
        Some((_, shape)) => _ = writeln!(out, "  seen to return {shape}; its server does not declare this"),
        None => {}
    }
    let name = foreign_text::qualified(&tool.server, &tool.name);
    if has_pages(tool) {
        let _ = writeln!(out, "  (all-pages {name} {{…}}) gives the items of all its pages");
    }
    let _ = writeln!(out, "  (doc {name} :schema) shows its JSON Schema");
    out
}

/// Returns the part of a description that a one-line summary is taken from.
fn beginning(description: &str) -> &str {
    const LOOKED_AT: usize = 4_000;
    let description = description.trim_start();
    &description[..description.floor_char_boundary(LOOKED_AT)]
}

/// Formats the JSON Schemas of a tool as declared by its server.
pub fn schemas(tool: &Tool) -> String {
    let mut out = format!("arguments {}\n", foreign_text::json(&tool.input_schema));
    if let Some(schema) = &tool.output_schema {
        let _ = writeln!(out, "returns {}", foreign_text::json(schema));
    }
    out
}
