//! Alternatives in schemas: which of them was meant, and what each of them needs.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::lang::internal::meant;

use super::expected::{listed, required};

/// Maximum number of alternatives that an error lists.
const LISTED: usize = 8;

/// Returns the problem of the alternative that was meant, if that is clear: the only one whose constants are those of the
/// value, or else the only one whose needs are given.
pub(super) fn problem_of_meant<'e>(problem: &'e ValidationError<'_>) -> Option<&'e ValidationError<'static>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) = problem.kind()
    else {
        return None;
    };
    let here = problem.instance_path().to_string();
    let is_constant = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Constant { .. } => true,
        ValidationErrorKind::Enum { options } => options.as_array().is_some_and(|options| options.len() == 1),
        // A value of another type.
        ValidationErrorKind::Type { .. } => error.instance_path().to_string() == here,
        _ => false,
    };
    let is_of_another = |errors: &&Vec<ValidationError<'static>>| errors.iter().any(is_constant);
    let possible: Vec<_> = context.iter().filter(|errors| !errors.is_empty() && !is_of_another(errors)).collect();
    if let [errors] = *possible
        && context.len() > 1
    {
        return errors.first();
    }
    let is_lack = |error: &ValidationError<'_>| {
        matches!(error.kind(), ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. })
    };
    let mut given = possible.into_iter().filter(|errors| !errors.iter().any(is_lack));
    match (given.next(), given.next()) {
        (Some(errors), None) => errors.first(),
        _ => None,
    }
}

/// Describes the alternatives of `anyOf` or `oneOf` by the arguments that each needs, if they differ in these.
pub(super) fn alternatives(schema: &Value, root: &Value) -> Option<String> {
    let several = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array())?;
    let each = several.iter().map(|alternative| {
        let alternative = meant(alternative, root)?;
        let (needed, described) = (required(alternative), Map::new());
        let properties = alternative.get("properties").and_then(Value::as_object).unwrap_or(&described);
        let fixed = properties.iter().filter_map(|(name, schema)| Some(format!("{name} = {}", schema.get("const")?)));
        let is_fixed = |name: &&str| properties.get(*name).is_some_and(|schema| schema.get("const").is_some());
        let plain = needed.iter().filter(|name| !is_fixed(name)).map(|name| (*name).to_owned());
        let all: Vec<String> = fixed.chain(plain).collect();
        (!all.is_empty()).then(|| listed(all.iter().map(String::as_str)))
    });
    let each: Option<Vec<String>> = each.take(LISTED).collect();
    each.filter(|each| !each.is_empty()).map(|each| format!("either {}", each.join(", or ")))
}

/// Names the keys of an object that fits no alternative.
pub(super) fn given(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    match fields.is_empty() {
        true => Some("none".to_owned()),
        false => Some(listed(fields.keys().map(String::as_str))),
    }
}

/// Returns the part of a schema to which a path of keywords leads, through references.
pub(super) fn part<'s>(root: &'s Value, path: &str) -> Option<&'s Value> {
    path.split('/').skip(1).try_fold(root, |schema, key| match key {
        "$ref" => meant(schema, root),
        key => {
            let key = key.replace("~1", "/").replace("~0", "~");
            match schema {
                Value::Array(items) => items.get(key.parse::<usize>().ok()?),
                other => other.get(&key),
            }
        }
    })
}
