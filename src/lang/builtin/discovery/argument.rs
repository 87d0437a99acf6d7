//! One argument of a tool in full: `(doc mail/send :body)`, or a field in it: `(doc mail/send :body.to)`.

use super::shape::{Detail, Sketch, cut, literal};
use super::signature::call_name;
use crate::error::Error;
use crate::error::suggest::{closest, did_you_mean};
use crate::foreign_text;
use crate::host::{Tool, meant, written_names};
use crate::value::names::canonical;
use serde_json::Value as Json;
use std::fmt::Write;

/// Maximum number of fields and of options that are shown.
const FIELDS: usize = 100;
const OPTIONS: usize = 200;
/// Maximum length of a type, of a field's name, and of a field's description, in characters.
const WIDE: usize = 400;
const NAME: usize = 100;
const DESCRIPTION: usize = 300;
/// Maximum depth at which the fields of alternatives are collected, maximum number of alternatives of each, and maximum
/// number of schemas that are visited.
const DEEPEST: usize = 6;
const ALTERNATIVES: usize = 32;
const VISITED: usize = 500;

/// A field of an object, or an argument of a tool.
struct Field<'s> {
    name: &'s str,
    schema: &'s Json,
    is_required: bool,
}

/// Documents an argument of a tool, or the field of one to which `path` leads, with dots between the names.
///
/// # Errors
/// Returns `UnknownName` with the names that there are.
pub fn describe(tool: &Tool, path: &str) -> Result<String, Error> {
    let root = &tool.input_schema;
    let (mut fields, mut taken) = (fields_of(root, root), Vec::new());
    let mut rest = path;
    let found = loop {
        // A name may contain a dot.
        let whole = named(&fields, rest);
        let split = || rest.split_once('.').map(|(first, inner)| (named(&fields, first), inner));
        let (field, inner) = match (whole, split()) {
            (Some(field), _) => (field, None),
            (None, Some((Some(field), inner))) => (field, Some(inner)),
            _ => return Err(unknown(tool, rest, &taken, &fields)),
        };
        taken.push(fields[field].name);
        match inner {
            None => break fields.swap_remove(field),
            Some(inner) => {
                rest = inner;
                fields = fields_of(fields[field].schema, root);
            }
        }
    };
    Ok(written(tool, &found, &taken))
}

fn written(tool: &Tool, field: &Field<'_>, path: &[&str]) -> String {
    let (root, name) = (&tool.input_schema, call_name(tool));
    // Only the names of arguments are in kebab case: keys inside of them are sent as they are written.
    let first = path.first().map(|name| written_name(name)).unwrap_or_default();
    let inner = path.iter().skip(1).map(|name| format!(".{}", cut((*name).to_owned(), NAME)));
    let place = first + &inner.collect::<String>();
    let mut out = format!("{} of {name}  {}\n", foreign_text::argument(&place), kind(field, root));
    for line in foreign_text::lines(text_of(field.schema, root, "description")) {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
    let options = meant(field.schema, root).and_then(|schema| schema.get("enum")?.as_array());
    if let Some(options) = options {
        let shown: Vec<String> = options.iter().take(OPTIONS).map(literal).collect();
        let more = options.len().saturating_sub(OPTIONS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(out, "  one of {}{more}", shown.join(", "));
    }
    let fields = fields_of(field.schema, root);
    for field in fields.iter().take(FIELDS) {
        let description = foreign_text::line(text_of(field.schema, root, "description"));
        let key = foreign_text::argument(&cut(field.name.to_owned(), NAME));
        let line = format!("  {key} {}  {}", kind(field, root), cut(description, DESCRIPTION));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if fields.len() > FIELDS {
        let _ = writeln!(out, "  … and {} more", fields.len() - FIELDS);
    }
    if let Some(inner) = fields.iter().find(|field| !fields_of(field.schema, root).is_empty()) {
        let inner = foreign_text::argument(&format!("{place}.{}", inner.name));
        let _ = writeln!(out, "  (doc {name} {inner}) shows one of its fields in the same way");
    }
    out
}

/// Returns the type of a field with its default, and whether it is required.
fn kind(field: &Field<'_>, root: &Json) -> String {
    let kind = Sketch::of(field.schema, root).written(Detail::Types, WIDE);
    let default = match meant(field.schema, root).and_then(|schema| schema.get("default")) {
        Some(default) if !default.is_null() => format!("={}", literal(default)),
        _ => String::new(),
    };
    format!("{kind}{default}{}", if field.is_required { ", required" } else { "" })
}

fn text_of<'s>(schema: &'s Json, root: &'s Json, key: &str) -> &'s str {
    let own = schema.get(key).and_then(Json::as_str);
    own.or_else(|| meant(schema, root)?.get(key)?.as_str()).unwrap_or_default()
}

/// Returns a name as a program writes it.
fn written_name(name: &str) -> String {
    let written = written_names(std::iter::once(name)).pop().unwrap_or_default();
    cut(written.into_owned(), NAME)
}

fn named(fields: &[Field<'_>], name: &str) -> Option<usize> {
    let exact = fields.iter().position(|field| field.name == name);
    exact.or_else(|| fields.iter().position(|field| canonical(field.name) == canonical(name)))
}

fn unknown(tool: &Tool, name: &str, inside: &[&str], fields: &[Field<'_>]) -> Error {
    let of_tool = call_name(tool);
    let what = match inside {
        [] => format!("`{of_tool}` has no argument"),
        inside => format!("`{}` of `{of_tool}` has no field", foreign_text::line(&inside.join("."))),
    };
    let error = Error::new("UnknownName", format!("{what} `{}`", foreign_text::line(name))).about(name);
    match closest(name, fields.iter().map(|field| field.name)) {
        Some(nearest) => error.suggest(did_you_mean(&foreign_text::argument(&written_name(nearest)))),
        None => error.suggest(format!("see (doc {of_tool})")),
    }
}

/// Returns the fields of the objects that a schema describes: its own, those of the items of a list, and those of all
/// alternatives, each name once.
fn fields_of<'s>(schema: &'s Json, root: &'s Json) -> Vec<Field<'s>> {
    let mut fields: Vec<Field<'s>> = Vec::new();
    let (mut open, mut left) = (vec![(schema, 0, true)], VISITED);
    while let Some((schema, depth, may_require)) = open.pop().filter(|_| left > 0) {
        left -= 1;
        let Some(schema) = meant(schema, root).filter(|_| depth <= DEEPEST) else { continue };
        let required = schema.get("required").and_then(Json::as_array);
        let is_required = |name: &str| may_require && required.is_some_and(|all| all.iter().any(|one| one == name));
        for (name, schema) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let is_required = is_required(name);
            if let Some(known) = fields.iter_mut().find(|field| field.name == name) {
                known.is_required |= is_required;
            } else if fields.len() < 10 * FIELDS {
                fields.push(Field { name, schema, is_required });
            }
        }
        for (key, may_require) in
            [("then", false), ("else", false), ("anyOf", false), ("oneOf", false), ("allOf", may_require)]
        {
            let inner = match schema.get(key) {
                Some(Json::Array(several)) => several.iter().take(ALTERNATIVES).collect(),
                Some(one @ Json::Object(_)) => vec![one],
                _ => Vec::new(),
            };
            open.extend(inner.into_iter().rev().map(|inner| (inner, depth + 1, may_require)));
        }
        open.extend(schema.get("items").map(|items| (items, depth + 1, may_require)));
    }
    fields.sort_by_key(|field| !field.is_required);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool() -> Tool {
        let place = json!({"type": "object", "properties": {
            "dateTime": {"type": "string", "description": "A date and time."}, "timeZone": {"type": "string"}},
            "required": ["dateTime"]});
        let body = json!({"type": "object", "description": "The event.\nIn full.", "properties": {
            "subject": {"type": "string"},
            "start": {"$ref": "#/$defs/place", "description": "When it begins."},
            "attendees": {"type": "array", "items": {"type": "object", "properties": {"address": {"type": "string"}}}},
            "importance": {"enum": (0..12).map(|n| format!("level {n}")).collect::<Vec<_>>()}}});
        Tool {
            server: "ms".into(),
            name: "create-event".into(),
            input_schema: json!({"type": "object", "$defs": {"place": place}, "properties": {"body": body, "a.b": {"type": "integer", "default": 5}},
                "required": ["body"]}),
            ..Tool::default()
        }
    }

    #[test]
    fn an_argument_is_shown_with_its_fields() {
        assert_eq!(
            describe(&tool(), "body").expect("there"),
            ":body of ms/create-event  {:subject? string :start? {:dateTime string :timeZone? string} :attendees? \
             [{:address? string}] :importance? \"level 0\"|\"level 1\"|\"level 2\"|\"level 3\"|\"level 4\"|\"level \
             5\"|\"level 6\"|\"level 7\"|…}, required\n  The event.\n  In full.\n  :subject string\n  :start {:dateTime \
             string :timeZone? string}  When it begins.\n  :attendees [{:address? string}]\n  :importance \"level \
             0\"|\"level 1\"|\"level 2\"|\"level 3\"|\"level 4\"|\"level 5\"|\"level 6\"|\"level 7\"|…\n  (doc \
             ms/create-event :body.start) shows one of its fields in the same way\n"
        );
        assert_eq!(
            describe(&tool(), "body.start").expect("there"),
            ":body.start of ms/create-event  {:dateTime string :timeZone? string}\n  When it begins.\n  :dateTime \
             string, required  A date and time.\n  :timeZone string\n"
        );
        assert_eq!(describe(&tool(), "a.b").expect("there"), ":a.b of ms/create-event  integer=5\n");
        assert!(describe(&tool(), "body.attendees.address").is_ok());
        let options = describe(&tool(), "body.importance").expect("there");
        assert!(options.contains("\"level 10\", \"level 11\"\n"), "{options}");
    }

    #[test]
    fn an_unknown_argument_is_an_error_with_the_nearest() {
        let error = |path: &str| {
            let error = describe(&tool(), path).expect_err("unknown");
            (error.message, error.suggestion.as_deref().unwrap_or_default().to_owned())
        };
        let expected = ("`ms/create-event` has no argument `bodi`".to_owned(), "Did you mean :body?".to_owned());
        assert_eq!(error("bodi"), expected);
        assert_eq!(error("body.starts").0, "`body` of `ms/create-event` has no field `starts`");
    }

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let circle =
            json!({"type": "object", "properties": {"x": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        let tool = Tool { server: "t".into(), name: "x".into(), input_schema: circle, ..Tool::default() };
        assert!(describe(&tool, "x.x.x.x").is_ok());
    }
}
