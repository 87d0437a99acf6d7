//! Tools with the checks of their arguments: nothing is sent that does not fit the schema. What was seen of their results
//! is kept beside.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::lang::error::suggest::closest;
use crate::lang::{Tool, ToolError, ToolErrorKind, ToolReply};
use crate::server::config::{cut, kind};
use crate::server::envelope::Envelope;
use crate::server::lines::{LARGEST_LINE, MOST_MARKS};

use super::coercion::{self, Notes};
use super::result;
use super::seen::Seen;

/// What other implementations of JSON can be trusted to take.
const DEEPEST: u32 = 100;

/// How many arguments of one call are changed into what they mean.
const REPAIRS: usize = 64;

/// A tool with the check of its arguments, which is prepared when it is first called.
pub(super) struct CheckedTool {
    pub(super) tool: Arc<Tool>,
    /// Nothing for a schema that cannot be understood: its server then checks alone.
    validator: OnceLock<Option<Validator>>,
    results: Mutex<Results>,
}

/// What was seen of a tool's results, and the tool with it.
struct Results {
    seen: Seen,
    shown: Arc<Tool>,
}

/// Tools with their checks.
pub(super) fn checked(tools: Vec<Arc<Tool>>) -> Vec<Arc<CheckedTool>> {
    tools.into_iter().map(|tool| Arc::new(CheckedTool::new(tool))).collect()
}

impl CheckedTool {
    fn new(tool: Arc<Tool>) -> CheckedTool {
        let seen = tool.seen.as_ref().map(Seen::of).unwrap_or_default();
        let results = Mutex::new(Results { shown: shown(&tool, &seen), seen });
        CheckedTool { tool, validator: OnceLock::new(), results }
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool with what was seen of its results.
    pub(super) fn shown(&self) -> Arc<Tool> {
        Arc::clone(&self.results().shown)
    }

    /// Takes in a result; true if something new was seen.
    pub(super) fn learn(&self, reply: &ToolReply) -> bool {
        let results = &mut *self.results();
        let is_new = results.seen.learn(reply);
        if is_new {
            results.shown = shown(&self.tool, &results.seen);
        }
        is_new
    }

    /// Goes on from what was seen of the tool of that name before it was listed anew.
    pub(super) fn resume(&self, before: &CheckedTool) {
        let seen = before.results().seen.clone();
        *self.results() = Results { shown: shown(&self.tool, &seen), seen };
    }

    /// Reads the text of an object of arguments and checks it. What does not fit and plainly means something that does
    /// is changed into that, as [`coercion`] says; the second is a note of what was changed.
    ///
    /// # Errors
    /// Which argument is wrong, what was expected and what came.
    pub(super) fn check(&self, arguments: &str) -> Result<(Map<String, Value>, Option<String>), ToolError> {
        let arguments = self.read(arguments)?;
        if let Some(error) = self.unknown_argument(&arguments) {
            return Err(error);
        }
        let Some(validator) = self.validator() else { return Ok((arguments, None)) };
        let (mut instance, mut notes) = (Value::Object(arguments), Notes::default());
        let schema = &self.tool.input_schema;
        coercion::whole_numbers(schema, schema, &mut instance, &mut Vec::new(), &mut notes);
        let mut repairs = 0;
        while let Some((place, path, error)) = self.first_problem(validator, &instance) {
            repairs += 1;
            if repairs > REPAIRS || !coercion::repair(validator, &mut instance, &place, &path, &mut notes) {
                return Err(error);
            }
        }
        let Value::Object(arguments) = instance else { unreachable!("it was made an object above") };
        Ok((arguments, notes.line()))
    }

    fn read(&self, arguments: &str) -> Result<Map<String, Value>, ToolError> {
        let scan = Envelope::of(arguments.as_bytes());
        if arguments.len() > LARGEST_LINE || scan.marks() > MOST_MARKS {
            let problem = format!(
                "the arguments of `{}` are too large: {} bytes, about {} values and keys; at most {LARGEST_LINE} and {MOST_MARKS} can be sent",
                self.name(),
                arguments.len(),
                scan.marks()
            );
            return Err(self.error(problem, None));
        }
        let depth = scan.deepest();
        if depth > DEEPEST {
            return Err(self.error(
                format!(
                    "the arguments of `{}` are nested {depth} levels deep; at most {DEEPEST} can be sent",
                    self.name()
                ),
                None,
            ));
        }
        match serde_json::from_str(arguments) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(other) => {
                Err(self.error(format!("the arguments of `{}` are a map, not {}", self.name(), kind(&other)), None))
            }
            Err(_) => Err(self.error(format!("the arguments of `{}` cannot be said in JSON", self.name()), None)),
        }
    }

    fn validator(&self) -> Option<&Validator> {
        let prepare = || {
            jsonschema::options()
                // Schemas come from servers: their patterns must not be able to take for ever.
                .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
                .should_validate_formats(false)
                .build(&self.tool.input_schema)
                .inspect_err(|problem| {
                    tracing::debug!(server = self.tool.server, tool = self.tool.name, %problem, "schema not understood");
                })
                .ok()
        };
        self.validator.get_or_init(prepare).as_ref()
    }

    /// The declared arguments.
    fn properties(&self) -> Option<&Map<String, Value>> {
        self.tool.input_schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())
    }

    /// An argument that is not declared is an error where the schema forbids others, and also where it
    /// only says nothing of them but the name is a slip of a declared one that is not given: many
    /// servers pass over such an argument in silence.
    fn unknown_argument(&self, arguments: &Map<String, Value>) -> Option<ToolError> {
        let schema = &self.tool.input_schema;
        let forbidden = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let open = schema.get("additionalProperties").is_some() || schema.get("patternProperties").is_some();
        if schema.get("patternProperties").is_some() || (open && !forbidden) {
            return None;
        }
        let none = Map::new();
        let properties = match self.properties() {
            Some(properties) => properties,
            None if forbidden => &none,
            None => return None,
        };
        for name in arguments.keys().filter(|name| !properties.contains_key(*name)) {
            let left = properties.keys().map(String::as_str).filter(|other| !arguments.contains_key(*other));
            let close = closest(name, left);
            if !forbidden && close.is_none() {
                continue;
            }
            let known = match properties.len() {
                0 => "it takes none".to_owned(),
                _ => format!("it takes {}", listed(properties.keys().map(String::as_str))),
            };
            return Some(self.error(
                format!("`{}` has no argument `{}`; {known}", self.name(), cut(name, 60)),
                close.map(|close| format!("Did you mean {close}?")),
            ));
        }
        None
    }

    /// The first thing that is wrong: where, as a pointer and as a person writes it, and its error.
    fn first_problem(&self, validator: &Validator, instance: &Value) -> Option<(String, String, ToolError)> {
        let problem = validator.iter_errors(instance).next()?;
        let pointer = problem.instance_path().to_string();
        let place: Vec<String> =
            pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        Some((pointer, path(&place), self.wrong(&problem, &place)))
    }

    fn wrong(&self, problem: &ValidationError<'_>, place: &[String]) -> ToolError {
        let name = self.name();
        if let ValidationErrorKind::Required { property } = problem.kind() {
            let missing = property.as_str().unwrap_or_default();
            let inside = if place.is_empty() { String::new() } else { format!(" in `{}`", path(place)) };
            let given = problem.instance().as_object();
            let slip = given.and_then(|given| closest(missing, given.keys().map(String::as_str)));
            return self.error(
                format!("`{name}` needs the argument `{missing}`{inside}{}", self.described(missing, place)),
                slip.map(|slip| format!("Did you mean {missing} instead of {slip}?")),
            );
        }
        let declared = match place {
            [argument] => self.properties().and_then(|properties| properties.get(argument)),
            _ => None,
        };
        let expected = match problem.kind() {
            ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => Some(kind.to_string()),
            ValidationErrorKind::Enum { options } => expected_of_options(options),
            ValidationErrorKind::Minimum { limit } => Some(format!("at least `{limit}`")),
            ValidationErrorKind::Maximum { limit } => Some(format!("at most `{limit}`")),
            ValidationErrorKind::ExclusiveMinimum { limit } => Some(format!("more than `{limit}`")),
            ValidationErrorKind::ExclusiveMaximum { limit } => Some(format!("less than `{limit}`")),
            ValidationErrorKind::MinLength { limit } => Some(format!("a text of at least {limit} characters")),
            ValidationErrorKind::MaxLength { limit } => Some(format!("a text of at most {limit} characters")),
            ValidationErrorKind::MinItems { limit } => Some(format!("at least {limit} items")),
            ValidationErrorKind::MaxItems { limit } => Some(format!("at most {limit} items")),
            ValidationErrorKind::Pattern { pattern } => Some(format!("a text that matches `{}`", cut(pattern, 100))),
            _ => declared.and_then(expected),
        };
        let what = match place {
            [] => "the arguments".to_owned(),
            _ => format!("argument `{}`", path(place)),
        };
        let message = match expected {
            Some(expected) => {
                format!("{what} of `{name}`: expected {expected}, got {}", kind(problem.instance()))
            }
            None => format!("{what} of `{name}`: {}", cut(&problem.to_string(), 300)),
        };
        self.error(message, option_meant(problem))
    }

    /// What a missing top-level argument is, as far as the schema says.
    fn described(&self, name: &str, place: &[String]) -> String {
        let schema = self.properties().filter(|_| place.is_empty()).and_then(|properties| properties.get(name));
        schema.and_then(expected).map(|expected| format!(" ({expected})")).unwrap_or_default()
    }

    fn name(&self) -> String {
        format!("{}/{}", self.tool.server, self.tool.name)
    }

    fn error(&self, message: String, suggestion: Option<String>) -> ToolError {
        ToolError { kind: ToolErrorKind::Arguments, message, suggestion }
    }
}

/// The option that a text was probably meant to be.
fn option_meant(problem: &ValidationError<'_>) -> Option<String> {
    let ValidationErrorKind::Enum { options } = problem.kind() else { return None };
    let given = problem.instance().as_str()?;
    let options = options.as_array()?.iter().filter_map(Value::as_str);
    closest(given, options).map(|option| format!("Did you mean \"{option}\"?"))
}

/// A tool as programs see it: with what was seen of its results, and what it promises without the wrapping that is
/// taken off.
fn shown(tool: &Arc<Tool>, seen: &Seen) -> Arc<Tool> {
    match (seen.schema(), result::promised(tool)) {
        (seen, promised) if seen == tool.seen && promised == tool.output_schema => Arc::clone(tool),
        (seen, output_schema) => Arc::new(Tool { seen, output_schema, ..(**tool).clone() }),
    }
}

/// `filters[0].name`
pub(super) fn path(place: &[String]) -> String {
    let mut path = String::new();
    for part in place {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&cut(part, 60));
        }
    }
    path
}

/// What a schema asks for, in a few words, where it is simple enough to be said.
fn expected(schema: &Value) -> Option<String> {
    if let Some(options) = schema.get("enum") {
        return expected_of_options(options);
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    if let Some(alternatives) = alternatives {
        let each: Option<Vec<String>> = alternatives.iter().map(expected).collect();
        return each.map(|each| each.join(" or "));
    }
    match schema.get("type")? {
        Value::String(name) => Some(name.clone()),
        Value::Array(names) => {
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            names.map(|names| names.join(" or "))
        }
        _ => None,
    }
}

fn expected_of_options(options: &Value) -> Option<String> {
    let options: Vec<String> = options.as_array()?.iter().map(Value::to_string).collect();
    Some(format!("one of {}", listed(options.iter().map(String::as_str))))
}

/// A short list in backticks.
fn listed<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.map(|item| format!("`{}`", cut(item, 60))).collect();
    match items.len() {
        0..=12 => items.join(", "),
        more => format!("{} and {} more", items[..12].join(", "), more - 12),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
