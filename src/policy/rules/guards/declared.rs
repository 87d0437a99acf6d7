//! The fields that the schema of a tool declares, and arguments beside guarded ones that a server may take in their
//! place: those that the schema does not declare, and those whose names look like that of a guarded one.

use serde_json::{Map, Value};

use crate::origins::looks_like;
use lispbox_lang::internal::{canonical, foreign_text};

use super::path::{ArgumentPath, Step};

/// Most schemas that declare the fields of one object.
const MOST_SCHEMAS: usize = 64;

/// The fields that a schema declares at one place of the arguments.
pub(super) struct Fields<'s> {
    root: &'s Value,
    schemas: Vec<&'s Value>,
}

impl<'s> Fields<'s> {
    /// Returns the arguments that the schema of a tool declares.
    pub(super) fn of(root: &'s Value) -> Fields<'s> {
        Fields::new(root, vec![root])
    }

    /// Adds the schemas that those refer to, combine or choose from.
    fn new(root: &'s Value, mut schemas: Vec<&'s Value>) -> Fields<'s> {
        let mut next = 0;
        while next < schemas.len().min(MOST_SCHEMAS) {
            let schema = schemas[next];
            let reference = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
            let target = reference.and_then(|pointer| root.pointer(pointer));
            let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
            let branches = ["if", "then", "else"].into_iter().filter_map(|key| schema.get(key));
            for found in target.into_iter().chain(parts).chain(branches) {
                if !schemas.iter().any(|known| std::ptr::eq(*known, found)) {
                    schemas.push(found);
                }
            }
            next += 1;
        }
        schemas.truncate(MOST_SCHEMAS);
        Fields { root, schemas }
    }

    fn names(&self) -> impl Iterator<Item = &'s String> {
        self.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object()).flat_map(Map::keys)
    }

    /// Returns whether a field of exactly that name is declared.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns the fields of a field: of the one that is declared by that name, else of each that may be added.
    pub(super) fn field(&self, name: &str) -> Fields<'s> {
        let declared = self.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object()?.get(name));
        let mut schemas: Vec<&Value> = declared.collect();
        if schemas.is_empty() {
            let patterns = |schema: &&'s Value| schema.get("patternProperties").and_then(Value::as_object);
            schemas.extend(self.schemas.iter().filter_map(|schema| schema.get("additionalProperties")));
            schemas.extend(self.schemas.iter().filter_map(patterns).flat_map(Map::values));
        }
        Fields::new(self.root, schemas)
    }

    /// Returns the fields of the items of a list.
    pub(super) fn items(&self) -> Fields<'s> {
        let kinds = self.schemas.iter().flat_map(|schema| {
            let each = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
            schema.get("items").into_iter().chain(each)
        });
        Fields::new(self.root, kinds.collect())
    }
}

/// The arguments that guards of a tool cover, at one place of the arguments.
#[derive(Clone, Copy)]
struct Rest<'p> {
    steps: &'p [Step],
    /// False if another guard covers it, which is as strict.
    is_own: bool,
}

/// The arguments that a guard of a tool accepts beside the guarded ones.
pub(super) struct Siblings<'g> {
    /// The paths of the guard.
    pub(super) own: &'g [ArgumentPath],
    /// The paths of other guards of the tool that are at least as strict.
    pub(super) others: Vec<&'g ArgumentPath>,
    /// Further arguments that the guard, or one that is at least as strict, lists.
    pub(super) listed: Vec<&'g str>,
    pub(super) schema: &'g Value,
}

impl Siblings<'_> {
    /// Returns whether the schema or a call has an argument that the guard guards.
    pub(super) fn has_guarded(&self, arguments: &Map<String, Value>) -> bool {
        let declared = Fields::of(self.schema);
        let mut names = declared.names().chain(arguments.keys());
        let is_guarded =
            |name: &str| self.own.iter().any(|path| Rest { steps: path.steps(), is_own: true }.behind(name).is_some());
        names.any(|name| is_guarded(name))
    }

    /// Returns the first argument that may take the place of a guarded one, as a clause behind that the guard guards
    /// arguments of the tool.
    pub(super) fn stray(&self, arguments: &Map<String, Value>) -> Option<String> {
        let own = self.own.iter().map(|path| Rest { steps: path.steps(), is_own: true });
        let others = self.others.iter().map(|path| Rest { steps: path.steps(), is_own: false });
        self.in_fields(arguments, &own.chain(others).collect::<Vec<_>>(), &Fields::of(self.schema), "")
    }

    fn in_fields(
        &self,
        fields: &Map<String, Value>,
        rests: &[Rest<'_>],
        schema: &Fields<'_>,
        at: &str,
    ) -> Option<String> {
        fields.iter().find_map(|(name, value)| {
            let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            let covering: Vec<Rest<'_>> = rests.iter().filter_map(|rest| rest.behind(name)).collect();
            if covering.is_empty() {
                return self.beside(name, &place, rests, schema);
            }
            // All that is below the end of a path is compared.
            if covering.iter().any(|rest| rest.steps.is_empty()) {
                return None;
            }
            self.in_value(value, &covering, &schema.field(name), &place)
        })
    }

    fn in_value(&self, value: &Value, rests: &[Rest<'_>], schema: &Fields<'_>, at: &str) -> Option<String> {
        match value {
            Value::Object(fields) => self.in_fields(fields, rests, schema, at),
            Value::Array(items) => {
                let rests: Vec<Rest<'_>> = rests.iter().map(|rest| rest.of_items()).collect();
                if rests.iter().any(|rest| rest.steps.is_empty()) {
                    return None;
                }
                let schema = schema.items();
                let mut items = items.iter().enumerate();
                items.find_map(|(index, item)| self.in_value(item, &rests, &schema, &format!("{at}[{index}]")))
            }
            _ => None,
        }
    }

    /// Returns why an argument that no path covers may take the place of one.
    fn beside(&self, name: &str, place: &str, rests: &[Rest<'_>], schema: &Fields<'_>) -> Option<String> {
        if self.listed.contains(&place) {
            return None;
        }
        let argument = foreign_text::json(&Value::from(place));
        if !schema.has(name) {
            return Some(format!("the schema of the tool does not declare {argument}"));
        }
        let is_like =
            |rest: &&Rest<'_>| rest.is_own && matches!(rest.steps, [Step::Field(field), ..] if looks_like(field, name));
        rests.iter().find(is_like).map(|_| format!("{argument} looks like one of them"))
    }
}

impl<'p> Rest<'p> {
    /// Returns the rest of the path behind a field, if it covers the field.
    fn behind(self, name: &str) -> Option<Rest<'p>> {
        match self.steps {
            [Step::Any, rest @ ..] => Some(Rest { steps: rest, ..self }),
            [Step::Field(field), rest @ ..] if canonical(name) == *field => Some(Rest { steps: rest, ..self }),
            _ => None,
        }
    }

    /// Returns the rest of the path behind the items of a list.
    fn of_items(self) -> Rest<'p> {
        match self.steps {
            [Step::Any, rest @ ..] => Rest { steps: rest, ..self },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stray(paths: &[&str], listed: &[&str], schema: &Value, arguments: &Value) -> Option<String> {
        let own: Vec<ArgumentPath> = paths.iter().map(|path| ArgumentPath::new(path).expect("a path")).collect();
        let siblings = Siblings { own: &own, others: Vec::new(), listed: listed.to_vec(), schema };
        siblings.stray(arguments.as_object().expect("an object"))
    }

    #[test]
    fn what_the_schema_does_not_declare_or_looks_like_a_guarded_name_is_named() {
        let schema = json!({
            "properties": {"to": {}, "subject": {}, "t\u{43e}": {}, "to[0]": {}},
            "allOf": [{"$ref": "#/$defs/more"}],
            "$defs": {"more": {"properties": {"event": {"properties": {"attendees": {"items": {"properties": {"email": {}, "name": {}}}}}}}}},
        });
        for arguments in [
            json!({"to": "a", "subject": "b"}),
            json!({"TO": "a"}),
            json!({"event": {"attendees": [{"email": "a", "name": "b"}]}}),
            json!({"listed": 1}),
        ] {
            assert_eq!(
                stray(&["to", "event.attendees[*].email"], &["listed"], &schema, &arguments),
                None,
                "{arguments}"
            );
        }
        for (arguments, expected) in [
            (json!({"to": "a", "to ": "b"}), "the schema of the tool does not declare \"to \""),
            (json!({"recipient": "b"}), "the schema of the tool does not declare \"recipient\""),
            (json!({"Subject": "b"}), "the schema of the tool does not declare \"Subject\""),
            (json!({"t\u{43e}": "b"}), "\"t\u{43e}\" looks like one of them"),
            (json!({"to[0]": "b"}), "\"to[0]\" looks like one of them"),
            (json!({"event": {"cc": "b"}}), "the schema of the tool does not declare \"event.cc\""),
            (
                json!({"event": {"attendees": [{"email": "a"}, {"mail": "b"}]}}),
                "the schema of the tool does not declare \"event.attendees[1].mail\"",
            ),
        ] {
            let found = stray(&["to", "event.attendees[*].email"], &["listed"], &schema, &arguments);
            assert_eq!(found.as_deref(), Some(expected), "{arguments}");
        }
        assert_eq!(stray(&["*"], &[], &json!({}), &json!({"any": 1})), None);
        assert_eq!(stray(&["to"], &[], &json!({}), &json!({"to": 1})), None);
        assert!(stray(&["to"], &[], &json!({}), &json!({"subject": 1})).is_some());
        let endless = json!({"$ref": "#", "properties": {"to": {}}});
        assert!(stray(&["to"], &[], &endless, &json!({"x": 1})).is_some());
    }
}
