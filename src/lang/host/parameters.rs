//! The parameters of a tool, as the schema of its arguments declares them: at its top, behind references, and in
//! alternatives and conditions.

use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Maximum length of a chain of references; a longer one is taken for a cycle.
const REFERENCES: usize = 8;
/// Maximum length of a reference that is followed, in bytes.
const REFERENCE: usize = 1_000;
/// Maximum depth at which alternatives are nested, maximum number of schemas that are visited, and maximum number of
/// parameters that are found in them.
const DEEPEST: usize = 6;
const VISITED: usize = 200;
const FOUND: usize = 1_000;
/// Maximum number of alternatives, and of schemas of one parameter.
const ALTERNATIVES: usize = 32;

/// The keywords by which a schema describes the same value in other schemas.
const ELSEWHERE: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "then", "else"];

/// Returns the names of the parameters that a schema of arguments declares, each with whether it is required; see
/// [`Tool::parameters`](super::Tool::parameters).
pub(super) fn parameters(schema: &Json) -> Vec<(&str, bool)> {
    let own = Found::at(schema);
    let Found { declared, required } = match has_elsewhere(schema) {
        false => own,
        true => own.and(Found::within(schema, schema)),
    };
    let needs: HashSet<&str> = required.iter().copied().collect();
    let named: HashSet<&str> = declared.iter().map(|(name, _)| *name).collect();
    let mut listed = HashSet::new();
    let undeclared = required.iter().copied().filter(|name| !named.contains(name) && listed.insert(*name));
    let names = || declared.iter().map(|(name, _)| *name);
    let needed = names().filter(|name| needs.contains(name));
    let optional = names().filter(|name| !needs.contains(name));
    needed.chain(undeclared).map(|name| (name, true)).chain(optional.map(|name| (name, false))).collect()
}

/// Returns the schema of a parameter: that at the top, or else those of the alternatives.
pub(super) fn parameter<'s>(root: &'s Json, name: &str) -> Option<Cow<'s, Json>> {
    if let Some(schema) = root.get("properties").and_then(|properties| properties.get(name)) {
        return Some(Cow::Borrowed(schema));
    }
    if !has_elsewhere(root) {
        return None;
    }
    let mut found = Found::within(root, root);
    let place = found.declared.iter().position(|(declared, _)| *declared == name)?;
    match found.declared.swap_remove(place).1.as_slice() {
        [only] => Some(Cow::Borrowed(only)),
        several => Some(Cow::Owned(json!({ "anyOf": several }))),
    }
}

/// The parameters by which an alternative is recognised, each with its value if that is fixed.
pub(crate) type Alternative<'s> = Vec<(&'s str, Option<&'s Json>)>;

/// Returns the alternatives of the arguments as a whole. `None` if there are none, or if one of them has no parameter by
/// which it is recognised.
pub(super) fn alternatives(root: &Json) -> Option<Vec<Alternative<'_>>> {
    let schema = meant(root, root)?;
    let several = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array())?;
    let each = several.iter().take(ALTERNATIVES).map(|alternative| {
        let found = Found::within(alternative, root);
        let fixed = found.declared.iter().filter_map(|(name, schemas)| {
            let value = schemas.first().and_then(|schema| schema.get("const"));
            value.map(|value| (*name, Some(value)))
        });
        let mut marks: Alternative<'_> = fixed.collect();
        for name in found.required {
            if marks.iter().all(|(known, _)| *known != name) {
                marks.push((name, None));
            }
        }
        (!marks.is_empty()).then_some(marks)
    });
    each.collect()
}

/// Parameters that were found in a schema.
#[derive(Default)]
struct Found<'s> {
    /// The names in order, each with its different schemas.
    declared: Vec<(&'s str, Vec<&'s Json>)>,
    required: Vec<&'s str>,
}

impl<'s> Found<'s> {
    /// Returns the parameters that a schema declares itself.
    fn at(schema: &'s Json) -> Found<'s> {
        let properties = schema.get("properties").and_then(Json::as_object);
        let declared = properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), vec![schema])).collect();
        let required = schema.get("required").and_then(Json::as_array);
        let required = required.into_iter().flatten().filter_map(Json::as_str).collect();
        Found { declared, required }
    }

    /// Returns the parameters that a schema declares, itself and elsewhere.
    fn within(schema: &'s Json, root: &'s Json) -> Found<'s> {
        let mut left = VISITED;
        Found::all(schema, root, 0, &mut left)
    }

    /// Returns the same as [`Found::within`] for a schema at that depth, while more may be visited.
    fn all(schema: &'s Json, root: &'s Json, depth: usize, left: &mut usize) -> Found<'s> {
        if depth > DEEPEST || *left == 0 {
            return Found::default();
        }
        *left -= 1;
        let mut found = Found::at(schema);
        if schema.get("$ref").is_some()
            && let Some(other) = meant(schema, root)
        {
            found = found.and(Found::all(other, root, depth + 1, left));
        }
        for part in schema.get("allOf").and_then(Json::as_array).into_iter().flatten().take(ALTERNATIVES) {
            found = found.and(Found::all(part, root, depth + 1, left));
        }
        for key in ["anyOf", "oneOf"] {
            let several = schema.get(key).and_then(Json::as_array).into_iter().flatten().take(ALTERNATIVES);
            let each: Vec<Found<'s>> = several.map(|one| Found::all(one, root, depth + 1, left)).collect();
            let common: Vec<&str> = match each.split_first() {
                Some((first, others)) => {
                    let is_common = |name: &&&str| others.iter().all(|other| other.required.contains(name));
                    first.required.iter().filter(is_common).copied().collect()
                }
                None => Vec::new(),
            };
            for one in each {
                found = found.and(Found { declared: one.declared, required: Vec::new() });
            }
            found.required.extend(common);
        }
        for part in ["then", "else"].into_iter().filter_map(|key| schema.get(key)) {
            let one = Found::all(part, root, depth + 1, left);
            found = found.and(Found { declared: one.declared, required: Vec::new() });
        }
        found
    }

    /// Adds the parameters of another schema.
    fn and(mut self, other: Found<'s>) -> Found<'s> {
        let mut places: HashMap<&str, usize> =
            self.declared.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
        for (name, schemas) in other.declared {
            match places.get(name) {
                Some(place) => {
                    let known = &mut self.declared[*place].1;
                    let new: Vec<&Json> = schemas.into_iter().filter(|schema| !known.contains(schema)).collect();
                    known.extend(new.into_iter().take(ALTERNATIVES.saturating_sub(known.len())));
                }
                None if self.declared.len() < FOUND => {
                    places.insert(name, self.declared.len());
                    self.declared.push((name, schemas));
                }
                None => {}
            }
        }
        self.required.extend(other.required);
        self
    }
}

fn has_elsewhere(schema: &Json) -> bool {
    schema.as_object().is_some_and(|keywords| keywords.keys().any(|key| ELSEWHERE.contains(&key.as_str())))
}

/// Follows references within the same document. Returns `None` if a reference is dangling or too long, or if the chain
/// exceeds `REFERENCES`.
pub fn meant<'s>(mut schema: &'s Json, root: &'s Json) -> Option<&'s Json> {
    for _ in 0..REFERENCES {
        let reference = schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
        match reference {
            Some(pointer) if pointer.len() > REFERENCE => return None,
            Some(pointer) => schema = root.pointer(pointer)?,
            None => return Some(schema),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, required: &[&str]) -> Json {
        json!({"type": "object", "properties": {name: {"type": "string"}}, "required": required})
    }

    #[test]
    fn parameters_are_found_in_references_and_alternatives() {
        let of = |schema: &Json| {
            let all = parameters(schema);
            all.iter().map(|(name, needed)| format!("{name}{}", if *needed { "" } else { "?" })).collect()
        };
        let definitions = json!({"A": object("a", &["a"]), "B": object("b", &["b"])});
        let cases: [(Json, &[&str]); 6] = [
            (json!({"$ref": "#/$defs/A", "$defs": definitions}), &["a"]),
            (json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": definitions}), &["a?", "b?"]),
            (json!({"allOf": [object("a", &["a"]), object("b", &[])]}), &["a", "b?"]),
            (json!({"oneOf": [object("a", &["a", "c"]), object("c", &["c"])]}), &["c", "a?"]),
            (json!({"properties": {"x": {}}, "if": {}, "then": object("y", &["y"])}), &["x?", "y?"]),
            (json!({"properties": {"x": {}}, "required": ["z", "x"]}), &["x", "z"]),
        ];
        for (schema, expected) in cases {
            let found: Vec<String> = of(&schema);
            assert_eq!(found, expected, "{schema}");
        }
        let circle = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"x": {}}});
        assert_eq!(parameters(&circle), [("x", false)]);
    }

    #[test]
    fn a_parameter_of_several_alternatives_has_all_their_schemas() {
        let one = |kind: &str| json!({"properties": {"kind": {"const": kind}}, "required": ["kind"]});
        let schema = json!({"oneOf": [one("file"), one("url"), one("file")]});
        assert_eq!(
            parameter(&schema, "kind").expect("there").into_owned(),
            json!({"anyOf": [{"const": "file"}, {"const": "url"}]})
        );
        assert_eq!(parameters(&schema), [("kind", true)]);
        assert_eq!(parameter(&schema, "other"), None);
        let file = json!("file");
        assert_eq!(alternatives(&schema).expect("three")[0], [("kind", Some(&file))]);
    }
}
