//! Paths of arguments in guards.

use std::fmt;

use serde_json::{Map, Value};

use crate::lang::internal::{canonical, foreign_text};
use crate::server::origins::is_name;

/// A path to the values of a guard, such as `recipients[*]` or `event.attendees[*].email`. It covers all scalars at and
/// below its end. `*` is any argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArgumentPath {
    text: String,
    steps: Vec<Step>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A field, in canonical form.
    Field(String),
    /// Any field, or any item.
    Any,
}

impl ArgumentPath {
    /// Parses a path.
    ///
    /// # Errors
    /// Returns what is wrong with it, as a clause.
    pub(super) fn new(text: &str) -> Result<ArgumentPath, String> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let mut name = part;
            let mut items = 0;
            while let Some(before) = name.strip_suffix("[*]") {
                (name, items) = (before, items + 1);
            }
            if name.is_empty() || name.contains(['[', ']']) {
                return Err("expected a path such as `recipients[*]`, `event.title` or `*`".to_owned());
            }
            steps.push(if name == "*" { Step::Any } else { Step::Field(canonical(name)) });
            // Items are covered by what contains them; a step says where a further field begins.
            steps.extend((0..items).map(|_| Step::Any));
        }
        Ok(ArgumentPath { text: text.to_owned(), steps })
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Calls `each` with the place and the value of each scalar that the path covers.
    pub(super) fn values(&self, arguments: &Map<String, Value>, each: &mut dyn FnMut(&str, &Value)) {
        in_fields(arguments, &self.steps, "", each);
    }

    /// Returns what the schema of a tool lacks of the path: "no argument `to`".
    pub(super) fn missing_in(&self, schema: &Value) -> Option<String> {
        let Some(Step::Field(first)) = self.steps.first() else { return None };
        let properties = schema.get("properties").and_then(Value::as_object);
        let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        if names.iter().any(|name| canonical(name) == *first) {
            return None;
        }
        // Further arguments may be accepted.
        let is_open = schema.get("additionalProperties").is_some_and(|more| more.as_bool() != Some(false));
        if names.is_empty() || is_open {
            return None;
        }
        let names: Vec<String> = names.iter().map(|name| foreign_text::name(name).into_owned()).collect();
        Some(format!("only {}", names.join(", ")))
    }
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn in_fields(fields: &Map<String, Value>, steps: &[Step], at: &str, each: &mut dyn FnMut(&str, &Value)) {
    for (name, value) in fields {
        let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match steps {
            [] => {
                // A key may be data, such as an address.
                if !is_name(name) {
                    each(&place, &Value::String(name.clone()));
                }
                in_value(value, &[], &place, each);
            }
            [Step::Any, rest @ ..] => in_value(value, rest, &place, each),
            [Step::Field(field), rest @ ..] if canonical(name) == *field => in_value(value, rest, &place, each),
            [Step::Field(_), ..] => {}
        }
    }
}

fn in_value(value: &Value, steps: &[Step], at: &str, each: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => in_fields(fields, steps, at, each),
        Value::Array(items) => {
            // `recipients.email` covers the items as `recipients[*].email` does.
            let rest = match steps {
                [Step::Any, rest @ ..] => rest,
                steps => steps,
            };
            items.iter().enumerate().for_each(|(index, item)| in_value(item, rest, &format!("{at}[{index}]"), each));
        }
        Value::Null => {}
        // A scalar in place of a list is its only item; one in place of an object has no such field, and is all there is.
        scalar => each(at, scalar),
    }
}
