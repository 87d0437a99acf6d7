//! Tools with the validation of their arguments: only arguments that fit the schema are sent. Learned result shapes
//! are stored with each tool.

mod either;
mod expected;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use indexmap::IndexMap;
use jsonschema::JsonType;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Value};

use crate::lang::internal::{closest, first_rounded, foreign_text};
use crate::lang::{Tool, ToolError, ToolErrorKind, ToolReply};
use crate::server::fields::kind;
use crate::server::identity::{LOCAL, sha256_of_json};
use crate::server::pins::{Standing, Vetted};
use crate::server::text::cut;
use crate::server::transport::envelope::Envelope;
use crate::server::transport::lines::{LARGEST_LINE, MOST_MARKS};

use super::coercion::{self, Notes};
use super::expansion::Unchecked;
use super::field_names::Words;
use super::learned_shape::LearnedShape;
use super::result;
use super::schemas::Schemas;
use super::validation::{Problem, Validation};
use either::{alternatives, given, part, problem_of_meant};
use expected::{expected, expected_of_options, keys, listed, object as object_of};

/// Maximum nesting depth of arguments; other JSON implementations can be expected to accept it.
const DEEPEST: u32 = 100;

/// Maximum number of comparisons of unknown arguments with declared ones in one call.
const COMPARED: usize = 100_000;

/// Maximum number of repairs of the arguments of one call.
const REPAIRS: usize = 64;

/// Maximum size and nesting depth of arguments that are validated without another thread.
const AT_ONCE_BYTES: usize = 8 << 10;
const AT_ONCE_DEPTH: u32 = 32;

/// A tool with the validation of its arguments.
pub(in crate::server) struct CheckedTool {
    pub(in crate::server) tool: Arc<Tool>,
    /// What its pin says about it.
    pub(super) standing: Standing,
    /// The tool as its pin declares it, which is how programs and models see it.
    pinned: Arc<Tool>,
    /// The tool as shown to principals who have seen none of its results.
    plain: Arc<Tool>,
    /// The words that the tool uses to describe itself.
    words: OnceLock<Words>,
    /// The SHA-256 of its schemas.
    digest: OnceLock<String>,
    /// Results by principal, least recently used first: the shape of one principal's data is not shown to others.
    results: Mutex<IndexMap<String, Results>>,
}

/// Maximum number of principals whose results are kept in memory for one tool.
pub(super) const PRINCIPALS: usize = 16;

/// The result shape that one principal has seen, and the tool with that shape.
#[derive(Clone)]
struct Results {
    seen: LearnedShape,
    shown: Arc<Tool>,
}

/// Prepares tools of the configuration or of this program for the validation of their arguments.
pub(super) fn checked(tools: Vec<Arc<Tool>>) -> Vec<Arc<CheckedTool>> {
    vetted(tools.into_iter().map(|tool| Vetted { tool, standing: Standing::own() }))
}

/// Prepares tools of a server for the validation of their arguments.
pub(super) fn vetted(tools: impl IntoIterator<Item = Vetted>) -> Vec<Arc<CheckedTool>> {
    tools.into_iter().map(|Vetted { tool, standing }| Arc::new(CheckedTool::new(tool, standing))).collect()
}

impl CheckedTool {
    /// Wraps a tool; a result shape that it brings along counts as seen by [`LOCAL`].
    fn new(tool: Arc<Tool>, standing: Standing) -> CheckedTool {
        let seen = tool.seen.as_ref().map(LearnedShape::of);
        let tool = match seen {
            Some(_) => Arc::new(Tool { seen: None, ..(*tool).clone() }),
            None => tool,
        };
        let pinned = match &standing.pinned_schema {
            Some(schema) => Arc::new(Tool { input_schema: schema.clone(), ..(*tool).clone() }),
            None => Arc::clone(&tool),
        };
        let checked = CheckedTool {
            plain: shown(&pinned, &LearnedShape::default()),
            pinned,
            tool,
            standing,
            words: OnceLock::new(),
            digest: OnceLock::new(),
            results: Mutex::default(),
        };
        if let Some(seen) = seen {
            let results = Results { shown: shown(&checked.pinned, &seen), seen };
            checked.results().insert(LOCAL.to_owned(), results);
        }
        checked
    }

    fn results(&self) -> MutexGuard<'_, IndexMap<String, Results>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(&self.tool))
    }

    /// Returns the SHA-256 of the tool's schemas, in hexadecimal.
    pub(super) fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            // A JSON value can always be serialized.
            sha256_of_json(&(&self.tool.input_schema, &self.tool.output_schema)).unwrap_or_default()
        })
    }

    /// Returns the tool with the result shape that a principal has seen.
    pub(super) fn shown(&self, principal: &str) -> Arc<Tool> {
        let mut results = self.results();
        let Some(at) = results.get_index_of(principal) else { return Arc::clone(&self.plain) };
        let last = results.len() - 1;
        results.move_index(at, last);
        Arc::clone(&results[last].shown)
    }

    /// Returns the result shape that a principal has seen.
    pub(super) fn seen_by(&self, principal: &str) -> Option<LearnedShape> {
        self.results().get(principal).map(|results| results.seen.clone())
    }

    /// Learns from a result that a principal received; returns true if there is something new to write to disk.
    pub(super) fn learn(&self, principal: &str, reply: &ToolReply) -> bool {
        let mut seen = self.seen_by(principal).unwrap_or_default();
        // Not under the lock, which threads of the runtime take: this examines much of the reply.
        let is_new = seen.learn(reply, self.words());
        let shown = if is_new { shown(&self.pinned, &seen) } else { self.shown(principal) };
        self.keep(principal, Results { seen, shown });
        is_new
    }

    /// Takes up a result shape that a principal has seen in an earlier process, unless it has learned one by now.
    pub(super) fn take_up(&self, principal: &str, seen: LearnedShape) {
        if self.seen_by(principal).is_none() {
            let shown = shown(&self.pinned, &seen);
            self.keep(principal, Results { seen, shown });
        }
    }

    fn keep(&self, principal: &str, one: Results) {
        let mut results = self.results();
        results.shift_remove(principal);
        results.insert(principal.to_owned(), one);
        if results.len() > PRINCIPALS {
            results.shift_remove_index(0);
        }
    }

    /// Continues with the result shapes of the tool of the same name from before it was listed anew, unless its schemas
    /// have changed.
    pub(super) fn resume(&self, before: &CheckedTool) {
        if self.digest() != before.digest() {
            return;
        }
        let before = before.results().clone();
        let resumed =
            |(principal, Results { seen, .. })| (principal, Results { shown: shown(&self.pinned, &seen), seen });
        *self.results() = before.into_iter().map(resumed).collect();
    }

    /// Parses the text of an object of arguments and validates it. Arguments that do not fit but have an unambiguous
    /// repair are repaired; see [`coercion`]. This may take as long as the budget of a [`Validation`] allows, needs a deep
    /// stack, and stops between two passes over the arguments once the deadline has passed.
    ///
    /// # Errors
    /// Returns an error that names the wrong argument, the expected value and the given one.
    pub(super) fn check(&self, schemas: &Schemas, arguments: &str, deadline: Instant) -> Result<Checked, ToolError> {
        let arguments = self.read(arguments)?;
        if let Some(error) = self.unknown_argument(&arguments) {
            return Err(error);
        }
        match &*schemas.of(&self.tool) {
            Ok(schema) => {
                let validated = self.validated(Validation::of(schema, deadline), arguments);
                validated.unwrap_or_else(|unfinished| unfinished.into_outcome())
            }
            Err(unchecked) => Ok(Checked::without(arguments, unchecked)),
        }
    }

    /// As [`CheckedTool::check`], within a budget so small that no other thread is needed: some microseconds for usual
    /// arguments, at most a millisecond. Returns `None` if the schema is not compiled yet, or the outcome takes more.
    pub(super) fn check_at_once(
        &self,
        schemas: &Schemas,
        arguments: &str,
        deadline: Instant,
    ) -> Option<Result<Checked, ToolError>> {
        let scan = Envelope::of(arguments.as_bytes());
        let is_small = arguments.len() <= AT_ONCE_BYTES && scan.deepest() <= AT_ONCE_DEPTH;
        let prepared = schemas.compiled(&self.tool).filter(|_| is_small)?;
        let schema = prepared.as_ref().as_ref().ok().filter(|schema| schema.is_small_for(scan.marks()))?;
        let arguments = match self.read(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Some(Err(error)),
        };
        // A misspelling is looked for among all declared arguments.
        let declared = self.properties();
        if arguments.keys().any(|name| declared.is_none_or(|declared| !declared.contains_key(name))) {
            return None;
        }
        self.validated(Validation::at_once(schema, deadline), arguments).ok()
    }

    /// Validates arguments, and repairs what has an unambiguous repair.
    ///
    /// # Errors
    /// Returns the state of the work if the budget of the validation was exhausted.
    fn validated(
        &self,
        mut validation: Validation<'_>,
        arguments: Map<String, Value>,
    ) -> Result<Result<Checked, ToolError>, Box<Unfinished>> {
        let (mut instance, mut notes) = (Value::Object(arguments), Notes::default());
        coercion::whole_numbers(&self.tool.input_schema, &mut instance, &mut notes);
        let mut repairs = 0;
        let mut wrong = None;
        loop {
            let found = match self.first_problem(&mut validation, &instance) {
                Ok(found) => found,
                Err(unchecked) => return Err(Box::new(Unfinished { arguments: object(instance), wrong, unchecked })),
            };
            let Some((place, path, error)) = found else { break };
            repairs += 1;
            if repairs > REPAIRS || !coercion::repair(&mut validation, &mut instance, &place, &path, &mut notes) {
                return Ok(Err(error));
            }
            wrong = Some(error);
        }
        Ok(Ok(Checked { arguments: object(instance), note: notes.line(), unchecked: None }))
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
        if let Some(rounded) = first_rounded(arguments) {
            let suggestion = "pass it as a string, or round it yourself, for example with `double`";
            return Err(
                self.error(format!("the arguments of `{}`: {rounded}", self.name()), Some(suggestion.to_owned()))
            );
        }
        match serde_json::from_str(arguments) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(other) => {
                Err(self.error(format!("the arguments of `{}` must be a map, not {}", self.name(), kind(&other)), None))
            }
            Err(_) => Err(self.error(format!("the arguments of `{}` cannot be expressed as JSON", self.name()), None)),
        }
    }

    /// Returns the declared arguments.
    fn properties(&self) -> Option<&Map<String, Value>> {
        self.tool.input_schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())
    }

    /// Reports an undeclared argument. It is an error if the schema forbids undeclared arguments, and also if the
    /// schema does not mention them and the name is a likely misspelling of a declared argument that is not given:
    /// many servers silently ignore such an argument.
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
        let mut compared = 0;
        for name in arguments.keys().filter(|name| !properties.contains_key(*name)) {
            compared += properties.len();
            let left = properties.keys().map(String::as_str).filter(|other| !arguments.contains_key(*other));
            let close = if compared <= COMPARED { closest(name, left) } else { None };
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

    /// Returns the first problem: its place, as a JSON pointer and in readable form, and its error.
    fn first_problem(
        &self,
        validation: &mut Validation<'_>,
        instance: &Value,
    ) -> Result<Option<(String, String, ToolError)>, Unchecked> {
        Ok(validation.first_problem(instance)?.map(|problem| match problem {
            Problem::Known(problem) => {
                let place = place_of(&problem);
                let error = self.wrong(&problem, &place);
                (problem.instance_path().to_string(), path(&place), error)
            }
            Problem::Unknown => {
                let message = format!(
                    "the arguments of `{0}` do not fit its schema, and are too large to say where; (doc {0} :schema) shows it",
                    self.name()
                );
                (String::new(), String::new(), self.error(message, None))
            }
        }))
    }

    fn wrong(&self, problem: &ValidationError<'_>, place: &[String]) -> ToolError {
        if let Some(meant) = problem_of_meant(problem) {
            return self.wrong(meant, &place_of(meant));
        }
        let name = self.name();
        if let ValidationErrorKind::Required { property } = problem.kind() {
            let missing = property.as_str().unwrap_or_default();
            let inside = if place.is_empty() { String::new() } else { format!(" in `{}`", path(place)) };
            let given = problem.instance().as_object();
            let slip = given.and_then(|given| closest(missing, given.keys().map(String::as_str)));
            let others = self.around(problem).filter(|_| !place.is_empty()).and_then(keys);
            let others = others.map(|keys| format!("; it has the keys {keys}")).unwrap_or_default();
            return self.error(
                format!("`{name}` needs the argument `{missing}`{inside}{}{others}", self.described(missing, place)),
                slip.map(|slip| format!("Did you mean {missing} instead of {slip}?")),
            );
        }
        let declared = match place {
            [argument] => self.properties().and_then(|properties| properties.get(argument)),
            _ => None,
        };
        let expected = match problem.kind() {
            ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Object) } => {
                Some(self.around(problem).map_or_else(|| "object".to_owned(), object_of))
            }
            ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => Some(kind.to_string()),
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } if place.is_empty() => {
                self.around(problem).and_then(|schema| alternatives(schema, &self.tool.input_schema))
            }
            ValidationErrorKind::Enum { options } => expected_of_options(options),
            ValidationErrorKind::Minimum { limit } => Some(format!("at least `{limit}`")),
            ValidationErrorKind::Maximum { limit } => Some(format!("at most `{limit}`")),
            ValidationErrorKind::ExclusiveMinimum { limit } => Some(format!("more than `{limit}`")),
            ValidationErrorKind::ExclusiveMaximum { limit } => Some(format!("less than `{limit}`")),
            ValidationErrorKind::MinLength { limit } => Some(format!("a string of at least {limit} characters")),
            ValidationErrorKind::MaxLength { limit } => Some(format!("a string of at most {limit} characters")),
            ValidationErrorKind::MinItems { limit } => Some(format!("at least {limit} items")),
            ValidationErrorKind::MaxItems { limit } => Some(format!("at most {limit} items")),
            ValidationErrorKind::Pattern { pattern } => Some(format!("a string that matches `{}`", cut(pattern, 100))),
            _ => declared.and_then(expected),
        };
        let what = match place {
            [] => "the arguments".to_owned(),
            _ => format!("argument `{}`", path(place)),
        };
        let message = match expected {
            Some(expected) => {
                let given = given(problem.instance()).filter(|_| expected.starts_with("either "));
                let given = given.unwrap_or_else(|| kind(problem.instance()));
                format!("{what} of `{name}`: expected {expected}, got {given}")
            }
            None => format!("{what} of `{name}`: {}", cut(&problem.to_string(), 300)),
        };
        self.error(message, option_meant(problem))
    }

    /// Returns the schema that has the keyword with which an argument does not comply.
    fn around(&self, problem: &ValidationError<'_>) -> Option<&Value> {
        let path = problem.schema_path().to_string();
        let (schema, _) = path.rsplit_once('/')?;
        part(&self.tool.input_schema, schema)
    }

    /// Describes a missing top-level argument, if the schema does.
    fn described(&self, name: &str, place: &[String]) -> String {
        let schema = self.properties().filter(|_| place.is_empty()).and_then(|properties| properties.get(name));
        schema.and_then(expected).map(|expected| format!(" ({expected})")).unwrap_or_default()
    }

    fn name(&self) -> String {
        foreign_text::qualified(&self.tool.server, &self.tool.name)
    }

    fn error(&self, message: String, suggestion: Option<String>) -> ToolError {
        // Types, options and names of arguments come from the server.
        let suggestion = suggestion.map(|suggestion| foreign_text::line(&suggestion));
        ToolError { kind: ToolErrorKind::Arguments, message: foreign_text::line(&message), suggestion }
    }
}

/// Arguments that may be sent.
#[derive(Debug)]
pub(in crate::server) struct Checked {
    pub(in crate::server) arguments: Map<String, Value>,
    /// A note about the repairs that were made to them.
    pub(in crate::server) note: Option<String>,
    /// Why they were not validated although a schema exists, as a clause: "its schema has …".
    pub(in crate::server) unchecked: Option<String>,
}

impl Checked {
    fn without(arguments: Map<String, Value>, unchecked: &Unchecked) -> Checked {
        // If a schema cannot be understood, validation is left to its server.
        let unchecked = match unchecked {
            Unchecked::Unreadable(_) => None,
            Unchecked::Beyond(clause) => Some(clause.clone()),
        };
        Checked { arguments, note: None, unchecked }
    }
}

/// A validation whose budget was exhausted.
struct Unfinished {
    arguments: Map<String, Value>,
    /// The last error that was repaired.
    wrong: Option<ToolError>,
    unchecked: Unchecked,
}

impl Unfinished {
    /// Arguments that were not validated at all are sent unchecked; during repairs, the last error is returned.
    fn into_outcome(self) -> Result<Checked, ToolError> {
        let Unfinished { arguments, wrong, unchecked } = self;
        wrong.map_or_else(|| Ok(Checked::without(arguments, &unchecked)), Err)
    }
}

fn object(instance: Value) -> Map<String, Value> {
    match instance {
        Value::Object(arguments) => arguments,
        _ => unreachable!("no repair changes the arguments as a whole"),
    }
}

/// The option that a text was probably meant to be.
fn option_meant(problem: &ValidationError<'_>) -> Option<String> {
    let ValidationErrorKind::Enum { options } = problem.kind() else { return None };
    let given = problem.instance().as_str()?;
    let options = options.as_array()?.iter().filter_map(Value::as_str);
    closest(given, options).map(|option| format!("Did you mean \"{option}\"?"))
}

/// Returns the tool as shown to programs: with the learned result shape, and with the output schema without the
/// wrapping that is removed from results.
fn shown(tool: &Arc<Tool>, seen: &LearnedShape) -> Arc<Tool> {
    match (seen.schema(), result::promised(tool)) {
        (seen, promised) if seen == tool.seen && promised == tool.output_schema => Arc::clone(tool),
        (seen, output_schema) => Arc::new(Tool { seen, output_schema, ..(**tool).clone() }),
    }
}

/// Returns the place of a problem: the names of arguments and fields that lead to it.
fn place_of(problem: &ValidationError<'_>) -> Vec<String> {
    let pointer = problem.instance_path().to_string();
    pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// Formats a place as a path, such as `filters[0].name`.
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

#[cfg(test)]
mod tests;
