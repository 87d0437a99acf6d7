//! A tool's schema as a signature that a model reads: one line, or all of it.

use crate::lang::host::Tool;
use crate::lang::value::map::kebab;
use serde_json::Value as Json;
use std::fmt::Write;

/// How long a description in one line is.
const LINE: usize = 100;

/// `(mail/search :query string :limit? integer=50)  what it does`
pub fn line(tool: &Tool) -> String {
    let first = tool.description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let first = first.split(". ").next().unwrap_or_default();
    let short: String = first.chars().take(LINE).collect();
    format!("{}  {}", call(tool), short.trim_end_matches('.')).trim_end().to_string()
}

/// The call with its parameters, required ones first.
pub fn call(tool: &Tool) -> String {
    let mut out = format!("({}/{}", tool.server, tool.name);
    let mut parameters = tool.parameters();
    parameters.sort_by_key(|(_, required)| !required);
    for (name, required) in parameters {
        let schema = tool.input_schema.get("properties").and_then(|properties| properties.get(name));
        let _ = write!(
            out,
            " :{}{} {}",
            kebab(name),
            if required { "" } else { "?" },
            schema.map_or_else(String::new, kind)
        );
    }
    out.trim_end().to_string() + ")"
}

/// The type of a parameter, with its enum values or default.
fn kind(schema: &Json) -> String {
    if let Some(choices) = schema.get("enum").and_then(Json::as_array) {
        let shown: Vec<String> = choices.iter().take(8).map(Json::to_string).collect();
        return shown.join("|");
    }
    let of = |schema: &Json| match schema.get("type") {
        Some(Json::String(name)) => name.clone(),
        Some(Json::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Json::as_str).filter(|name| *name != "null").collect();
            names.join("|")
        }
        _ => String::new(),
    };
    let mut name = of(schema);
    if name == "array" {
        let items = schema.get("items").map(of).unwrap_or_default();
        name = if items.is_empty() { "[any]".to_string() } else { format!("[{items}]") };
    }
    if name.is_empty() {
        let several = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)).and_then(Json::as_array);
        let names: Vec<String> =
            several.into_iter().flatten().map(of).filter(|name| !name.is_empty() && name != "null").collect();
        name = if names.is_empty() { "any".to_string() } else { names.join("|") };
    }
    match schema.get("default") {
        Some(default) if !default.is_null() => format!("{name}={default}"),
        _ => name,
    }
}

/// All that is known of a tool: its call, its description, its parameters, how to call it.
pub fn full(tool: &Tool) -> String {
    let mut out = format!("{}\n", call(tool));
    for line in tool.description.trim().lines() {
        let _ = writeln!(out, "  {}", line.trim_end());
    }
    for (name, required) in tool.parameters() {
        let Some(schema) = tool.input_schema.get("properties").and_then(|properties| properties.get(name)) else {
            continue;
        };
        let described = schema.get("description").and_then(Json::as_str).unwrap_or_default();
        let need = if required { ", required" } else { "" };
        let _ = writeln!(out, "  :{} {}{need}  {described}", kebab(name), kind(schema));
    }
    if let Some(schema) = &tool.output_schema {
        let _ = writeln!(out, "  returns {}", output(schema));
    }
    out
}

/// The shape of a result in one line.
fn output(schema: &Json) -> String {
    match schema.get("properties").and_then(Json::as_object) {
        Some(properties) => {
            let shown: Vec<String> =
                properties.iter().map(|(name, schema)| format!(":{name} {}", kind(schema))).collect();
            format!("{{{}}}", shown.join(", "))
        }
        None => kind(schema),
    }
}
