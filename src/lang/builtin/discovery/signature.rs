//! Signatures of tools, derived from their schemas for models to read: on one line or in full.

use super::super::library::LIBRARY;
use super::super::pages::{has_pages, is_table};
use super::places;
use super::sentences::{first_sentence, remark};
use super::shape::{Detail, Sketch, cut, literal};
use crate::foreign_text;
use crate::host::{Tool, written_names};
use crate::meter::outside;
use crate::registry::Registry;
use crate::value::names::writable;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// Maximum number of parameters shown, and maximum length of a parameter's name, in characters.
const PARAMETERS: usize = 100;
const NAME: usize = 100;
/// Maximum length of an argument's type: in a call, and on a line by itself.
const KIND: usize = 60;
const WIDE: usize = 400;

/// Length from which the text of a schema says how to see a part of it, in bytes.
const LONG: usize = 2_000;

/// The maximum lengths of the parts of a line.
#[derive(Clone, Copy)]
pub struct Widths {
    /// Of the call with its optional arguments, in bytes.
    call: usize,
    /// Of the result's shape, in characters.
    result: usize,
    /// Of the description, in characters.
    description: usize,
}

/// The lengths of a line in a list.
const USUAL: Widths = Widths { call: 160, result: 120, description: 100 };

/// The lengths where tools have to share little room, and those that follow as long as there is more: keys of results
/// come before optional arguments, and both before descriptions.
pub const NARROW: Widths = Widths { call: 110, result: 60, description: 40 };
pub const WIDER: [Widths; 4] = [
    Widths { result: 120, ..NARROW },
    Widths { call: 160, result: 120, description: 60 },
    USUAL,
    Widths { call: 240, result: 240, description: 100 },
];

impl Tool {
    /// Returns the call, the result as far as known, and the description on one line: `(mail/search :query string
    /// :limit? integer(1..100)=50) -> [{:id :from}]  finds mail`.
    pub fn signature(&self) -> String {
        line(self, USUAL)
    }

    /// Returns the name under which programs call the tool: `mail/send`, `weather/get-weather` if it is called `get
    /// weather`, and `mcp__json__write` if the language has a function `json/write`.
    pub fn call_name(&self) -> String {
        call_name(self)
    }

    /// Returns the shape of the result with its types, if anything is known of it: `[{:id string :size? integer}]`, or
    /// `seen [{:id string}]` if it was inferred from results.
    pub fn returns(&self) -> Option<String> {
        result(self, Detail::Types, WIDE).map(|(origin, shape)| format!("{origin}{shape}"))
    }
}

/// Formats a tool on one line: `(mail/search :query string :limit? integer=50) -> [{:id :from}]  description`.
pub fn line(tool: &Tool, widths: Widths) -> String {
    let short = cut(first_sentence(&tool.description), widths.description);
    let result = result(tool, Detail::Keys, widths.result).map(|(said, shape)| format!(" -> {said}{shape}"));
    let pages = match has_pages(tool) {
        true if is_table(tool) => "  ; pages: all-pages, rows as maps",
        true => "  ; pages: all-pages",
        false => "",
    };
    let described = format!("{}{}  {short}", call_within(tool, widths.call), result.unwrap_or_default());
    let either = match tool.input_schema.get("properties").is_some() {
        // Where there is little room, the alternatives of arguments that are shown are left to `doc`.
        true if widths.call < USUAL.call => None,
        _ => alternatives(tool, widths.result).map(|either| format!("  ; {either}")),
    };
    format!("{}{}{pages}", described.trim_end(), either.unwrap_or_default())
}

/// Returns the name under which programs call a tool. Characters that no name has are replaced: `get weather` is
/// `get-weather`. A tool whose name is that of a function of the language, such as `write` of a server `json`, is called
/// as `mcp__json__write`.
pub fn call_name(tool: &Tool) -> String {
    let (server, name) = (written_part(&tool.server), written_part(&tool.name));
    let plain = format!("{server}/{name}");
    if places::is_of_library(&tool.server) && is_of_language(&plain) {
        return format!("mcp__{server}__{name}");
    }
    plain
}

/// Returns the name of a server or tool as programs write it; in quotes if there is no such spelling.
fn written_part(name: &str) -> String {
    let written = writable(name);
    let is_usual = |c: char| c.is_alphanumeric() || "_./-!?*+$%&<>=|".contains(c);
    let is_written = !written.is_empty() && written.chars().all(is_usual) && written.chars().nth(NAME).is_none();
    if is_written { written.into_owned() } else { foreign_text::name(name).into_owned() }
}

/// Returns whether the language has a function or form of that name.
fn is_of_language(name: &str) -> bool {
    static LANGUAGE: LazyLock<Option<Registry>> = LazyLock::new(|| Registry::new(&LIBRARY).ok());
    // It is built once, and belongs to no evaluation.
    outside(|| LANGUAGE.as_ref().is_some_and(|registry| registry.entry(name).is_some()))
}

/// Formats the call with its parameters, required ones first.
pub fn call(tool: &Tool) -> String {
    let parameters = Parameter::all(tool, KIND);
    let shown = parameters.iter().take(PARAMETERS).map(|parameter| parameter.written(false));
    let more = if parameters.len() > PARAMETERS { " …" } else { "" };
    format!("({}{}{more})", call_name(tool), shown.collect::<String>())
}

/// Formats the call with all required parameters, and as many optional ones as fit into `width` bytes. Remarks from
/// their descriptions are added, first to the required ones, where there is room.
fn call_within(tool: &Tool, width: usize) -> String {
    let start = format!("({}", call_name(tool));
    let parameters = Parameter::all(tool, KIND);
    let mut length = start.len() + 1;
    let mut shown: Vec<(&Parameter<'_>, bool)> = Vec::new();
    for parameter in parameters.iter().take(PARAMETERS) {
        length += parameter.written(false).len();
        if !parameter.is_required && length > width {
            break;
        }
        shown.push((parameter, false));
    }
    let is_cut = shown.len() < parameters.len();
    if !is_cut {
        for (parameter, with_remark) in &mut shown {
            let Some(remark) = parameter.remark() else { continue };
            if length + remark.len() + 2 <= width {
                length += remark.len() + 2;
                *with_remark = true;
            }
        }
    }
    let written: String = shown.iter().map(|(parameter, with_remark)| parameter.written(*with_remark)).collect();
    format!("{start}{written}{})", if is_cut { " …" } else { "" })
}

/// A parameter of a tool.
struct Parameter<'t> {
    /// The name as programs write it.
    name: String,
    is_required: bool,
    schema: Option<Cow<'t, Json>>,
    /// The type, without the default.
    kind: String,
}

impl Parameter<'_> {
    /// Returns the parameters of a tool, required ones first, with types of at most `width` characters.
    fn all(tool: &Tool, width: usize) -> Vec<Parameter<'_>> {
        let parameters = tool.parameters();
        let written = written_names(parameters.iter().map(|(name, _)| *name));
        // The types of parameters that are not shown are not needed.
        let kinds = parameters.iter().zip(written).enumerate().map(|(at, ((name, is_required), written))| {
            let schema = tool.parameter(name);
            let kind = match &schema {
                Some(schema) if at < PARAMETERS => Sketch::of(schema, &tool.input_schema).written(Detail::Types, width),
                _ => "any".to_string(),
            };
            let name = foreign_text::argument(&cut(written.into_owned(), NAME));
            Parameter { name, is_required: *is_required, schema, kind }
        });
        kinds.collect()
    }

    /// Formats the parameter behind others in a call: ` :limit? integer=50`.
    fn written(&self, with_remark: bool) -> String {
        let mark = if self.is_required { "" } else { "?" };
        let remark = self.remark().filter(|_| with_remark).map(|remark| format!("({remark})")).unwrap_or_default();
        format!(" {}{mark} {}{remark}{}", self.name, self.kind, self.default())
    }

    /// Returns the type with the default: `integer=50`.
    fn kind_and_default(&self) -> String {
        format!("{}{}", self.kind, self.default())
    }

    fn default(&self) -> String {
        match self.schema.as_ref().and_then(|schema| schema.get("default")) {
            Some(default) if !default.is_null() => format!("={}", literal(default)),
            _ => String::new(),
        }
    }

    fn description(&self) -> Option<&str> {
        self.schema.as_ref()?.get("description")?.as_str()
    }

    /// Returns what its description says about its values, unless the type says it.
    fn remark(&self) -> Option<String> {
        let is_told = self.kind.contains(['(', '"', '…', '{']);
        self.description().filter(|_| !is_told).and_then(remark)
    }
}

/// Returns which arguments go together where there are alternatives: `either :id, or :name`.
fn alternatives(tool: &Tool, width: usize) -> Option<String> {
    let all = tool.parameters();
    let written = written_names(all.iter().map(|(name, _)| *name));
    let names: HashMap<&str, String> =
        all.iter().zip(written).map(|((name, _), written)| (*name, written.into_owned())).collect();
    let each = tool.alternatives()?.into_iter().map(|marks| {
        let marks = marks.into_iter().map(|(name, value)| {
            let name = names.get(name).cloned().unwrap_or_else(|| name.to_owned());
            let name = foreign_text::argument(&cut(name, NAME));
            value.map_or_else(|| name.clone(), |value| format!("{name} {}", literal(value)))
        });
        marks.collect::<Vec<_>>().join(" ")
    });
    let each: Vec<String> = each.collect();
    (each.len() > 1).then(|| cut(format!("either {}", each.join(", or ")), width))
}

/// Returns the shape of the tool's result with a prefix for its origin: empty if the server declares it, `seen ` if it
/// was inferred from results.
fn result(tool: &Tool, detail: Detail, width: usize) -> Option<(&'static str, String)> {
    let sketch = |schema: &Json| Sketch::of(schema, schema);
    // A declared shape that is merely an object carries less information than one inferred from results.
    let promised = tool.output_schema.as_ref().map(sketch);
    let (origin, sketch) = match (promised, &tool.seen) {
        (Some(promised), Some(schema)) if promised.is_bare() => ("seen ", sketch(schema)),
        (Some(promised), _) => ("", promised),
        (None, Some(schema)) => ("seen ", sketch(schema)),
        (None, None) => return None,
    };
    Some((origin, sketch.written(detail, width)))
}

/// Formats all that is known of a tool: call, description, parameters, result.
pub fn full(tool: &Tool) -> String {
    let mut out = format!("{}\n", call(tool));
    for line in foreign_text::lines(&tool.description) {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
    let parameters = Parameter::all(tool, WIDE);
    for parameter in parameters.iter().take(PARAMETERS) {
        let described = parameter.description().map(|text| format!("  {}", foreign_text::line(text)));
        let need = if parameter.is_required { ", required" } else { "" };
        let kind = parameter.kind_and_default();
        let _ = writeln!(out, "  {} {kind}{need}{}", parameter.name, described.unwrap_or_default());
    }
    if parameters.len() > PARAMETERS {
        let _ = writeln!(out, "  … and {} more", parameters.len() - PARAMETERS);
    }
    if let Some(either) = alternatives(tool, WIDE) {
        let _ = writeln!(out, "  {either}");
    }
    match result(tool, Detail::Types, WIDE) {
        Some(("", shape)) => _ = writeln!(out, "  returns {shape}"),
        Some((_, shape)) => _ = writeln!(out, "  seen to return {shape}; its server does not declare this"),
        None => {}
    }
    let name = call_name(tool);
    if has_pages(tool) {
        let _ = writeln!(out, "  (all-pages {name} {{…}}) gives the items of all its pages");
    }
    let is_short = |parameter: &&Parameter<'_>| parameter.kind.contains('…');
    if let Some(parameter) = parameters.iter().take(PARAMETERS).find(is_short) {
        let _ = writeln!(out, "  (doc {name} {}) shows an argument in full", parameter.name);
    }
    let _ = writeln!(out, "  (doc {name} :schema) shows its JSON Schema");
    out
}

/// Formats the JSON Schemas of a tool as declared by its server.
pub fn schemas(tool: &Tool) -> String {
    let mut out = format!("arguments {}\n", foreign_text::json(&tool.input_schema));
    if out.len() > LONG
        && let Some(parameter) = Parameter::all(tool, KIND).first()
    {
        let name = call_name(tool);
        out.insert_str(0, &format!("(doc {name} {}) shows one argument; all of them:\n", parameter.name));
    }
    if let Some(schema) = &tool.output_schema {
        let _ = writeln!(out, "returns {}", foreign_text::json(schema));
    }
    out
}
