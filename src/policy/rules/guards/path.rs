//! Paths of arguments in guards.

use std::fmt;

use serde_json::{Map, Value};

use lispbox_lang::internal::{canonical, foreign_text};

use super::declared::Fields;

/// A path to the values of a guard, such as `recipients[*]` or `event.attendees[*].email`. It covers all scalars at and
/// below its end, and the keys there, and at a `*`, that the schema of the tool does not declare: such a key is data, as
/// the address in `{"eve@example.org": "writer"}`. `*` is any argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArgumentPath {
    text: String,
    steps: Vec<Step>,
}

/// A scalar or a key that a path covers.
pub(super) struct Covered<'v> {
    pub(super) place: &'v str,
    pub(super) value: &'v Value,
    pub(super) is_key: bool,
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

    /// Calls `each` with each scalar and each key that the path covers.
    pub(super) fn values(&self, arguments: &Map<String, Value>, schema: &Value, each: &mut dyn FnMut(Covered<'_>)) {
        in_fields(arguments, &self.steps, &Fields::of(schema), "", each);
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

fn in_fields(
    fields: &Map<String, Value>,
    steps: &[Step],
    schema: &Fields<'_>,
    at: &str,
    each: &mut dyn FnMut(Covered<'_>),
) {
    for (name, value) in fields {
        let rest = match steps {
            [] => steps,
            [Step::Any, rest @ ..] => rest,
            [Step::Field(field), rest @ ..] if canonical(name) == *field => rest,
            [Step::Field(_), ..] => continue,
        };
        let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        if !matches!(steps, [Step::Field(_), ..]) && !schema.has(name) {
            each(Covered { place: &place, value: &Value::String(name.clone()), is_key: true });
        }
        in_value(value, rest, &schema.field(name), &place, each);
    }
}

fn in_value(value: &Value, steps: &[Step], schema: &Fields<'_>, at: &str, each: &mut dyn FnMut(Covered<'_>)) {
    match value {
        Value::Object(fields) => in_fields(fields, steps, schema, at, each),
        Value::Array(items) => {
            // `recipients.email` covers the items as `recipients[*].email` does.
            let rest = match steps {
                [Step::Any, rest @ ..] => rest,
                steps => steps,
            };
            let schema = schema.items();
            for (index, item) in items.iter().enumerate() {
                in_value(item, rest, &schema, &format!("{at}[{index}]"), each);
            }
        }
        Value::Null => {}
        // A scalar in place of a list is its only item; one in place of an object has no such field, and is all there is.
        scalar => each(Covered { place: at, value: scalar, is_key: false }),
    }
}
