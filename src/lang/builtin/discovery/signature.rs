//! A tool's schema as a signature that a model reads: one line, or all of it.

use super::shape::{cut, literal, shape};
use crate::lang::foreign_text;
use crate::lang::host::{Tool, written_names};
use serde_json::Value as Json;
use std::fmt::Write;

/// How long a description in one line is, in characters.
const LINE: usize = 100;
/// How long the call and the shape of the result are in one line.
const CALL: usize = 160;
const RESULT: usize = 80;
/// How many parameters are shown, and how much of the name of each, in characters.
const PARAMETERS: usize = 100;
const NAME: usize = 100;
/// How long the kind of one argument is, in one line and where there is room.
const KIND: usize = 60;
const WIDE: usize = 400;

impl Tool {
    /// Its call, its result as far as it is known, and what it does, in one line:
    /// `(mail/search :query string :limit? integer=50) -> [{:id string}]  finds mail`.
    pub fn signature(&self) -> String {
        line(self)
    }
}

/// `(mail/search :query string :limit? integer=50) -> [{:id string}]  what it does`
pub fn line(tool: &Tool) -> String {
    let lines = foreign_text::lines(beginning(&tool.description));
    let first = lines.first().map_or("", |first| first.split(". ").next().unwrap_or_default());
    let short = cut(first.trim_end_matches('.').to_string(), LINE);
    let result = result(tool, RESULT).map(|(said, shape)| format!(" -> {said}{shape}")).unwrap_or_default();
    format!("{}{result}  {short}", call_within(tool, CALL)).trim_end().to_string()
}

/// The call with its parameters, required ones first.
pub fn call(tool: &Tool) -> String {
    call_within(tool, usize::MAX)
}

/// The call with its required parameters, and as many of the others as there is room for.
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

/// The name of a parameter as a program writes it, cut.
fn shown(written: &str) -> String {
    foreign_text::argument(&cut(written.to_owned(), NAME))
}

/// The type of a parameter, with its enum values or default.
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

/// The shape of what the tool returns, and in which words it is said: what its server promises, or what was seen.
fn result(tool: &Tool, width: usize) -> Option<(&'static str, String)> {
    let shown = |schema: &Json| shape(schema, schema, width).0;
    // That a result is an object, and no more, says less than what was seen of it.
    let promised = tool.output_schema.as_ref().map(shown);
    match (promised, &tool.seen) {
        (Some(shape), None) => Some(("", shape)),
        (Some(shape), _) if !["any", "object", "[any]", "[object]"].contains(&shape.as_str()) => Some(("", shape)),
        (_, Some(schema)) => Some(("seen ", shown(schema))),
        (None, None) => None,
    }
}

/// All that is known of a tool: its call, its description, its parameters, what it returns.
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
        Some((_, shape)) => _ = writeln!(out, "  seen to return {shape}; its server promises nothing"),
        None => {}
    }
    let name = foreign_text::qualified(&tool.server, &tool.name);
    let _ = writeln!(out, "  (doc {name} :schema) shows its JSON Schema");
    out
}

/// As much of a description as a line is made of.
fn beginning(description: &str) -> &str {
    const LOOKED_AT: usize = 4_000;
    let description = description.trim_start();
    &description[..description.floor_char_boundary(LOOKED_AT)]
}

/// The JSON Schemas of a tool as its server gave them.
pub fn schemas(tool: &Tool) -> String {
    let mut out = format!("arguments {}\n", foreign_text::json(&tool.input_schema));
    if let Some(schema) = &tool.output_schema {
        let _ = writeln!(out, "returns {}", foreign_text::json(schema));
    }
    out
}
