//! The arguments of a tool call: a map, keywords with values, or positional values.

use super::{Pick, pick_by};
use crate::error::{Error, Outcome};
use crate::foreign_text;
use crate::host::{Tool, written_names};
use crate::json;
use crate::value::Value;
use crate::value::function::ToolFunction;
use crate::value::map::Map;
use crate::value::names::canonical;
use crate::value::text::Name;
use serde_json::Value as Json;
use std::sync::Arc;

/// Maximum size of arguments that are shown in part, in bytes, and maximum length of each that is shown, in characters.
const SHOWN_OF: usize = 4096;
const SHOWN: usize = 40;

/// Shows the first two arguments of a call that are scalars, the text of a JSON object, as `:to "ann" :size 3 `.
pub(super) fn told_apart(arguments: &str) -> String {
    let object: Option<serde_json::Map<String, Json>> =
        if arguments.len() <= SHOWN_OF { serde_json::from_str(arguments).ok() } else { None };
    let is_scalar = |value: &Json| !(value.is_object() || value.is_array() || value.is_null());
    let shown = object.iter().flatten().filter(|(_, value)| is_scalar(value)).take(2).map(|(name, value)| {
        // A number may have more digits than a double.
        let number = if value.is_number() { json::number_in(arguments, name) } else { None };
        let shown = number.map_or_else(|| foreign_text::json(value), str::to_owned);
        format!("{} {} ", foreign_text::argument(name), foreign_text::begun(&shown, SHOWN))
    });
    shown.collect()
}

/// Maximum number of keys in a map that is checked for argument names where it may be a value instead.
const MOST_NAMES: usize = 64;

/// Collects the arguments of a call in one map under the schema's names.
///
/// A single map holds the arguments by name, whatever types the tool takes. Keywords in front of values are names as
/// well. All other values are positional, in the order of [`Tool::parameters`], which the signature shows.
///
/// # Errors
/// Returns `ToolArgumentError` if names and positions are mixed, an argument is given twice, there are more values
/// than arguments, or positional values leave out a required argument; `arguments` are then unchanged. The host validates
/// arguments by name, and calls without arguments.
pub(super) fn tool_arguments(function: &ToolFunction, arguments: &mut [Value]) -> Outcome<Value> {
    let called = Called { tool: &function.tool, parameters: &function.parameters };
    match arguments {
        [map @ Value::Map(_)] => called.by_map(map),
        _ if called.are_pairs(arguments) => called.by_keywords(arguments),
        _ => called.by_position(arguments),
    }
}

/// The tool being called.
struct Called<'t> {
    tool: &'t Tool,
    parameters: &'t [(String, bool)],
}

impl Called<'_> {
    fn by_map(&self, map: &mut Value) -> Outcome<Value> {
        let Value::Map(entries) = &*map else { return Err(Error::expected("a map of arguments", map).into()) };
        let is_exact = |key: &Value| {
            let name = key.as_name().map(Name::as_str);
            self.parameters.is_empty() || self.parameters.iter().any(|(known, _)| Some(known.as_str()) == name)
        };
        if entries.iter().all(|(key, _)| matches!(key, Value::Keyword(_)) && is_exact(key)) {
            // Keyword keys serialize to JSON as their names, so the map is passed on unchanged.
            return Ok(std::mem::take(map));
        }
        self.check_not_a_value(entries)?;
        let mut out = Map::default();
        for (key, value) in entries.iter() {
            self.insert(&mut out, key, value.clone())?;
        }
        Ok(Value::Map(Arc::new(out)))
    }

    /// Rejects a map that was meant as the value of the first argument: none of its keys is an argument name, and the
    /// first argument takes an object.
    fn check_not_a_value(&self, map: &Map) -> Outcome<()> {
        let Some((first, is_required)) = self.parameters.first() else { return Ok(()) };
        let is_open = self.tool.input_schema.get("additionalProperties").is_some_and(|open| open != &Json::Bool(false));
        let may_be_value = takes_objects(self.tool, first) && (*is_required || !is_open);
        if !may_be_value || map.len() > MOST_NAMES || map.iter().any(|(key, _)| self.named(key).is_some()) {
            return Ok(());
        }
        let (name, argument) = (self.name(), self.written().next().unwrap_or_default());
        let message =
            format!("a single map gives the arguments of `{name}` by name, but no key of this one is an argument");
        let suggestion = format!("to give the map as `{first}`, write ({name} {argument} {{…}})");
        Err(self.error(message).suggest(suggestion).into())
    }

    /// True for `:to x :subject y`, and for quoted symbols that are argument names: `'status "open"`.
    fn are_pairs(&self, arguments: &[Value]) -> bool {
        let is_name = |key: &Value| matches!(key, Value::Keyword(_)) || self.named(key).is_some();
        arguments.len().is_multiple_of(2)
            && !arguments.is_empty()
            && arguments.iter().step_by(2).all(|key| !matches!(key, Value::Str(_)) && is_name(key))
    }

    fn by_keywords(&self, arguments: &[Value]) -> Outcome<Value> {
        let mut out = Map::default();
        for pair in arguments.chunks_exact(2) {
            self.insert(&mut out, &pair[0], pair[1].clone())?;
        }
        Ok(Value::Map(Arc::new(out)))
    }

    fn by_position(&self, arguments: &mut [Value]) -> Outcome<Value> {
        self.check_unmixed(arguments)?;
        let (name, given, known) = (self.name(), arguments.len(), self.parameters.len());
        if given > known {
            let message = match known {
                0 => format!("`{name}` takes no arguments by position: its schema names none"),
                _ => format!("`{name}` takes {} by position, got {given}", counted(known, "argument")),
            };
            return Err(self.error(message).suggest(self.call()).into());
        }
        if given > 0 {
            let missing: Vec<String> = self.parameters[given..]
                .iter()
                .filter(|(_, is_required)| *is_required)
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            if !missing.is_empty() {
                let needed = counted(given + missing.len(), "argument");
                let message = format!("`{name}` needs {needed}, got {given}: {} missing", are(&missing));
                return Err(self.error(message).suggest(self.call()).into());
            }
        }
        let mut out = Map::default();
        for ((name, _), value) in self.parameters.iter().zip(arguments.iter_mut()) {
            out.insert(Value::string(name), std::mem::take(value));
        }
        Ok(Value::Map(Arc::new(out)))
    }

    /// Rejects names mixed with positional values.
    ///
    /// A keyword is a positional value only if it cannot be a name: it names no argument, and it is the last value or
    /// an option that the schema lists for its position.
    fn check_unmixed(&self, arguments: &[Value]) -> Outcome<()> {
        let (name, last) = (self.name(), arguments.len().saturating_sub(1));
        if let [rest @ .., dangling] = arguments
            && rest.len().is_multiple_of(2)
            && let Some(argument) = self.named(dangling).filter(|_| !matches!(dangling, Value::Str(_)))
            && rest.iter().step_by(2).all(|key| self.named(key).is_some())
        {
            let message = format!("the argument `{argument}` of `{name}` is named but has no value");
            return Err(self.error(message).suggest(self.call()).into());
        }
        for (at, value) in arguments.iter().enumerate() {
            let is_name = match value {
                Value::Map(map) => {
                    let all_named =
                        (1..=MOST_NAMES).contains(&map.len()) && map.iter().all(|(key, _)| self.named(key).is_some());
                    let fits = self.parameters.get(at).is_some_and(|(name, _)| takes_objects(self.tool, name));
                    all_named && (at == 0 || !fits)
                }
                Value::Str(_) => false,
                _ if self.named(value).is_some() => true,
                Value::Keyword(option) => at < last && !self.is_option(at, option.as_str()),
                _ => false,
            };
            if is_name {
                let what = match value {
                    Value::Map(_) => "a map of arguments by name".to_string(),
                    _ => format!("`{}`", value.as_name().map(|name| format!(":{}", name.as_str())).unwrap_or_default()),
                };
                let message = format!(
                    "{what} is mixed with positional arguments of `{name}`: give all by name or all by position"
                );
                let suggestion = match value {
                    Value::Map(_) => self.call(),
                    _ => format!("{}; a value that is a name is written as a string", self.call()),
                };
                return Err(self.error(message).suggest(suggestion).into());
            }
        }
        Ok(())
    }

    /// Returns whether the schema lists the text among the values of the argument at that position.
    fn is_option(&self, at: usize, text: &str) -> bool {
        let schema = self.parameters.get(at).and_then(|(name, _)| property(self.tool, name));
        let options = schema.and_then(|schema| schema.get("enum")).and_then(Json::as_array);
        options.is_some_and(|options| options.iter().any(|option| option.as_str() == Some(text)))
    }

    fn insert(&self, out: &mut Map, key: &Value, value: Value) -> Outcome<()> {
        let Some(written) = key.as_name().map(Name::as_str).or(key.as_str()) else {
            return Err(Error::expected("a keyword as the name of an argument", key).into());
        };
        // Names that the schema lacks are left to the host, which validates arguments before it sends them.
        let name = Value::string(self.named(key).unwrap_or(written));
        if out.get(&name).is_some() {
            return Err(self.error(format!("`{}` is given twice to `{}`", written, self.name())).into());
        }
        out.insert(name, value);
        Ok(())
    }

    /// Returns the schema's name for an argument that a program spelled in its own way.
    fn named(&self, key: &Value) -> Option<&str> {
        let name = key.as_name().map(Name::as_str).or(key.as_str())?;
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| name.as_str()).collect();
        match pick_by(name, &names, canonical) {
            Pick::One(at) => self.parameters.get(at).map(|(name, _)| name.as_str()),
            _ => None,
        }
    }

    /// A usage hint, such as `call it as (mail/send-email :to :subject :cc?)`.
    fn call(&self) -> String {
        let mut out = format!("call it as ({}", self.name());
        for ((_, is_required), written) in self.parameters.iter().zip(self.written()) {
            out.push(' ');
            out.push_str(&written);
            out.push_str(if *is_required { "" } else { "?" });
        }
        out + ")"
    }

    /// The argument names as a program writes them.
    fn written(&self) -> impl Iterator<Item = String> {
        let names = written_names(self.parameters.iter().map(|(name, _)| name.as_str()));
        names.into_iter().map(|name| foreign_text::argument(&name))
    }

    fn name(&self) -> String {
        foreign_text::qualified(&self.tool.server, &self.tool.name)
    }

    fn error(&self, message: String) -> Error {
        Error::new("ToolArgumentError", message).about(&self.name())
    }
}

fn property<'t>(tool: &'t Tool, name: &str) -> Option<&'t Json> {
    tool.input_schema.get("properties")?.get(name)
}

/// Returns whether the schema allows an object as the value of the argument.
fn takes_objects(tool: &Tool, name: &str) -> bool {
    let Some(schema) = property(tool, name) else { return false };
    match schema.get("type") {
        Some(Json::String(kind)) => kind == "object",
        Some(Json::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => ["properties", "$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| schema.get(key).is_some()),
    }
}

/// A count with its noun: `1 argument`, `2 arguments`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The names with their verb: `` `a` is ``, `` `a`, `b` are ``.
fn are(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}
