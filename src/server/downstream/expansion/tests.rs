//! Schemas whose expansion is disproportionate to their size, and estimates compared with the visits of a validator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jsonschema::{Keyword, ValidationError};
use proptest::prelude::*;
use serde_json::json;

use crate::server::system::offload::Offload;

use super::super::validation::{Schema, Validation};
use super::*;

/// Runs work on the threads on which arguments are validated.
fn offloaded<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let deadline = Instant::now() + Duration::from_secs(120);
    runtime.block_on(Offload::default().run("ann", deadline, work)).expect("an outcome in time")
}

/// Builds a chain of definitions; `link` builds each from a reference to the one before.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    definitions.insert("a0".into(), json!({"type": "string"}));
    for at in 1..=length {
        definitions.insert(format!("a{at}"), link(json!({"$ref": format!("#/$defs/a{}", at - 1)})));
    }
    json!({"type": "object", "properties": {"x": {"$ref": format!("#/$defs/a{length}")}}, "$defs": definitions})
}

/// Returns whether the arguments fit the schema, or why they are not validated.
fn checked(schema: Value, arguments: Value) -> Result<bool, Unchecked> {
    offloaded(move || {
        let schema = Schema::of(&schema)?;
        let outcome = Validation::of(&schema, Instant::now() + Duration::from_secs(60)).first_problem(&arguments);
        outcome.map(|problem| problem.is_none())
    })
}

#[track_caller]
fn is_beyond(schema: Value, arguments: Value) {
    let shown: String = schema.to_string().chars().take(300).collect();
    let begun = Instant::now();
    let outcome = checked(schema, arguments);
    assert!(matches!(outcome, Err(Unchecked::Beyond(_))), "{outcome:?} of {shown}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?} for {shown}", begun.elapsed());
}

#[test]
fn exponential_expansions_are_beyond_the_budget() {
    let links: [fn(Value) -> Value; 20] = [
        |one| json!({"allOf": [one, one]}),
        |one| json!({"anyOf": [one, one]}),
        |one| json!({"oneOf": [one, one]}),
        |one| json!({"not": {"allOf": [one, one]}}),
        |one| json!({"if": one, "then": one, "else": one}),
        |one| json!({"dependentSchemas": {"a": one, "b": one}}),
        |one| json!({"$ref": one["$ref"], "allOf": [one]}),
        |one| json!({"allOf": [one], "anyOf": [one]}),
        |one| json!({"allOf": [{"allOf": [one]}, {"allOf": [one]}]}),
        |one| json!({"not": one, "anyOf": [one]}),
        |one| json!({"unevaluatedProperties": false, "anyOf": [one]}),
        |one| json!({"unevaluatedItems": false, "oneOf": [one]}),
        |one| json!({"unevaluatedProperties": one, "if": one}),
        |one| json!({"propertyNames": one, "allOf": [one, one]}),
        |one| json!({"unevaluatedProperties": false, "anyOf": [one, one]}),
        |one| json!({"unevaluatedItems": false, "anyOf": [one, one]}),
        |one| json!({"unevaluatedItems": one, "allOf": [one, one]}),
        |one| json!({"unevaluatedProperties": false, "if": one, "then": one}),
        |one| json!({"unevaluatedProperties": false, "dependentSchemas": {"a": one, "b": one}}),
        |one| {
            let option = |k: u32| json!({"properties": {"k": {"const": k}}, "required": ["k"], "allOf": [one]});
            json!({"oneOf": [option(1), option(2)], "not": one})
        },
    ];
    for link in links {
        is_beyond(chain(40, link), json!({"x": {"a": 1}}));
    }
    // Here the parts apply not to the value itself but to its members.
    let deep = |depth: usize| (0..depth).fold(json!("text"), |inner, _| json!({"p": inner}));
    is_beyond(
        chain(60, |one| json!({"properties": {"p": one}, "patternProperties": {"p": one}})),
        json!({"x": deep(59)}),
    );
    is_beyond(chain(60, |one| json!({"patternProperties": {"p": one, ".": one}})), json!({"x": deep(59)}));
    let lists = (0..59).fold(json!("text"), |inner, _| json!([inner]));
    is_beyond(chain(60, |one| json!({"items": one, "contains": one})), json!({"x": lists}));
}

/// Parts that apply to the members of a value are compiled once, however many paths lead to them.
#[test]
fn expansions_that_the_arguments_do_not_reach_are_no_work() {
    let links: [fn(Value) -> Value; 9] = [
        |one| json!({"properties": {"p": one, "q": one}}),
        |one| json!({"properties": {"p": one}, "additionalProperties": one}),
        |one| json!({"patternProperties": {"p": one, "q": one}, "additionalProperties": one}),
        |one| json!({"propertyNames": one, "additionalProperties": one}),
        |one| json!({"items": one, "prefixItems": [one, one]}),
        |one| json!({"items": one, "contains": one}),
        |one| json!({"anyOf": [{"items": one}, {"properties": {"p": one}}]}),
        |one| json!({"oneOf": [{"properties": {"k": {"const": 1}, "p": one}}, {"properties": {"k": {"const": 2}, "p": one}}]}),
        |one| json!({"unevaluatedProperties": false, "properties": {"p": {"allOf": [one]}, "q": one}}),
    ];
    for (at, link) in links.into_iter().enumerate() {
        let begun = Instant::now();
        let outcome = checked(chain(40, link), json!({"x": 1}));
        assert!(outcome.is_ok(), "{at}: {outcome:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{at}: {:?}", begun.elapsed());
    }
}

#[test]
fn references_are_found_however_they_are_written() {
    let double = |reference: &str| json!({"allOf": [{"$ref": reference}, {"$ref": reference}]});
    let bomb = |name: &dyn Fn(usize) -> String, define: &dyn Fn(usize, Value) -> Value| {
        let definitions: Map<String, Value> = (0..40)
            .map(|at| (format!("a~/ {at}"), define(at, if at == 0 { json!({}) } else { double(&name(at - 1)) })))
            .collect();
        json!({"$id": "http://x.org/s", "$defs": definitions, "allOf": [{"$ref": name(39)}]})
    };
    let plain = |_: usize, schema: Value| schema;
    is_beyond(bomb(&|at| format!("#/$defs/a~0~1%20{at}"), &plain), json!({}));
    is_beyond(bomb(&|at| format!("#/%24defs/a%7e0%7E1%20{at}"), &plain), json!({}));
    is_beyond(bomb(&|at| format!("http://x.org/s#/$defs/a~0~1%20{at}"), &plain), json!({}));
    let anchored = |keyword: &'static str| {
        move |at: usize, mut schema: Value| {
            schema[keyword] = json!(format!("n{at}"));
            schema
        }
    };
    is_beyond(bomb(&|at| format!("#n{at}"), &anchored("$anchor")), json!({}));
    let mut dynamic = bomb(&|at| format!("#n{at}"), &anchored("$dynamicAnchor")).to_string();
    dynamic = dynamic.replace("\"$ref\"", "\"$dynamicRef\"");
    is_beyond(serde_json::from_str(&dynamic).expect("JSON"), json!({}));
    // Parts that no keyword references.
    let links: Vec<Value> =
        (0..40).map(|at| if at == 0 { json!({}) } else { double(&format!("#/enum/{}", at - 1)) }).collect();
    is_beyond(json!({"enum": links, "$ref": "#/enum/39"}), json!({}));
}

#[test]
fn parts_that_apply_themselves_to_the_same_value_are_beyond_the_budget() {
    for schema in [
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "not": {"$recursiveRef": "#"}}),
        json!({"$dynamicAnchor": "a", "if": {"$dynamicRef": "#a"}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        is_beyond(schema, json!({"a": 1}));
    }
    // Each refers to all: there are as many paths as permutations.
    let all: Vec<Value> = (0..12).map(|at| json!({"$ref": format!("#/$defs/{at}")})).collect();
    let definitions: Map<String, Value> = (0..12).map(|at| (at.to_string(), json!({"anyOf": all}))).collect();
    is_beyond(json!({"$defs": definitions, "anyOf": all, "unevaluatedProperties": false}), json!({}));
    is_beyond(json!({"$defs": definitions, "anyOf": all}), json!({}));
}

#[test]
fn schemas_that_are_too_large_are_not_compiled() {
    is_beyond(chain(30_000, |one| json!({"allOf": [one]})), json!({"x": "a"}));
    let parts: Map<String, Value> = (0..60_000).map(|at| (at.to_string(), json!({}))).collect();
    is_beyond(json!({"properties": parts}), json!({}));
    let name = "n".repeat(1 << 20);
    let inner: Map<String, Value> = (0..1_000).map(|at| (at.to_string(), json!({}))).collect();
    is_beyond(json!({"properties": {name: {"properties": inner}}}), json!({}));
    let patterns: Map<String, Value> = (0..100).map(|at| (format!("(a{{1000}}){{20}}{at}"), json!({}))).collect();
    is_beyond(json!({"patternProperties": patterns}), json!({}));
    let patterns: Map<String, Value> = (0..2_000).map(|at| (format!("a{at}"), json!({}))).collect();
    is_beyond(json!({"patternProperties": patterns}), json!({}));
}

#[test]
fn work_on_large_arguments_counts() {
    let text = "a".repeat(8 << 20);
    is_beyond(json!({"properties": {"t": {"pattern": "(a|b)*c(a{100}){100}"}}}), json!({"t": text}));
    is_beyond(json!({"patternProperties": {"(a|b)*c(a{100}){100}": {}}}), json!({text: 1}));
    let many: Vec<u32> = (0..400_000).collect();
    is_beyond(json!({"properties": {"t": {"uniqueItems": true}}}), json!({"t": many}));
    let choices: Vec<u32> = (0..10_000).collect();
    let many: Vec<u32> = vec![20_000; 10_000];
    is_beyond(json!({"properties": {"t": {"items": {"enum": choices}}}}), json!({"t": many}));
    let needed: Vec<String> = (0..10_000).map(|at| at.to_string()).collect();
    let many = vec![json!({}); 10_000];
    is_beyond(json!({"properties": {"t": {"items": {"required": needed}}}}), json!({"t": many}));
}

#[test]
fn usual_schemas_are_within_the_budget() {
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {
        "type": "object", "required": ["name"], "additionalProperties": false, "properties": {
            "name": {"type": "string", "pattern": "^[a-z_]{1,64}$"},
            "id": {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
            "children": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}
        }
    }}});
    let leaf = json!({"name": "leaf", "id": "01234567-89ab-cdef-0123-456789abcdef"});
    let arguments = (0..8).fold(leaf, |inner, _| json!({"name": "n", "children": [inner, inner, null]}));
    assert_eq!(checked(tree.clone(), arguments), Ok(true));
    let wrong = (0..8).fold(json!({"nam": 1}), |inner, _| json!({"name": "n", "children": [inner, inner]}));
    assert_eq!(checked(tree, wrong), Ok(false));
    let rows: Vec<Value> = (0..20_000).map(|at| json!({"id": at, "tags": ["a", "b"], "text": "some words"})).collect();
    let table = json!({"properties": {"rows": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
        "id": {"type": "integer", "minimum": 0}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": true},
        "text": {"type": "string", "maxLength": 100}}}}}});
    assert_eq!(checked(table, json!({"rows": rows})), Ok(true));
    let base64 = json!({"properties": {"data": {"type": "string", "pattern": "^[A-Za-z0-9+/=]*$"}}});
    assert_eq!(checked(base64, json!({"data": "QUJD".repeat(1 << 18)})), Ok(true));
}

#[test]
fn references_out_of_the_schema_are_not_followed() {
    for reference in ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json#/a", "#/nowhere", "#no-anchor"] {
        let outcome = checked(json!({"properties": {"a": {"$ref": reference}}}), json!({"a": 1}));
        assert!(matches!(outcome, Err(Unchecked::Unreadable(_))), "{outcome:?} of {reference}");
    }
    let embedded = json!({"$defs": {"a": {"$id": "http://x.org/a"}}, "$ref": "http://x.org/a"});
    assert!(matches!(checked(embedded, json!({})), Err(Unchecked::Unreadable(_))));
}

/// A schema at the limit of every depth is compiled, used and dropped.
#[test]
fn the_deepest_schemas_that_are_compiled_overflow_no_stack() {
    let nest = |inner: Value| (0..60).fold(inner, |inner, _| json!({"allOf": [inner]}));
    let deep = chain(500, |one| json!({"anyOf": [nest(one)]}));
    let schema = offloaded(move || Schema::of(&deep));
    // It is dropped on a thread with a stack of the usual size.
    drop(schema.expect("it is not too large"));
    let long = chain(900 / 3, |one| json!({"anyOf": [one, {"type": "string"}]}));
    assert_eq!(checked(long.clone(), json!({"x": "a"})), Ok(true));
    assert_eq!(checked(long, json!({"x": 1})), Ok(false));
    let lists = chain(90, |one| json!({"items": {"allOf": [{"anyOf": [one]}]}}));
    let arguments = (0..90).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(checked(lists, json!({"x": arguments})), Ok(false));
}

/// Counts the visits of a validator to the parts of a schema.
struct Visits(Arc<AtomicU64>);

impl<'i> Keyword<'i> for Visits {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// One of the definitions before `at`, applied to the value itself; `all` may be applied to its members.
fn part(at: usize, all: usize) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "object"})),
        Just(json!({"minLength": 2, "minimum": 3})),
        Just(json!({"required": ["a"]})),
        Just(json!({"const": [1]})),
    ];
    let below = if at == 0 { leaf.clone().boxed() } else { (0..at).prop_map(reference).boxed() };
    let any = (0..all).prop_map(reference);
    let (one, inner) = (below.clone(), any.clone());
    let in_place = prop_oneof![
        leaf.clone(),
        one.clone(),
        (one.clone(), one.clone()).prop_map(|(a, b)| json!({"allOf": [a, b]})),
        (one.clone(), one.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
        (one.clone(), one.clone()).prop_map(|(a, b)| json!({"oneOf": [a, b]})),
        (one.clone(), one.clone(), one.clone()).prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
        one.clone().prop_map(|a| json!({"not": a})),
        (one.clone(), one.clone()).prop_map(|(a, b)| json!({"dependentSchemas": {"a": a, "b": b}})),
    ];
    let inside = prop_oneof![
        Just(json!({})),
        (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
        (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"properties": {"a": a}, "additionalProperties": b})),
        (inner.clone(), inner.clone())
            .prop_map(|(a, b)| json!({"patternProperties": {"a|b": a, "^.$": b}, "propertyNames": {"maxLength": 1}})),
        (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"prefixItems": [a], "items": b})),
        (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"items": a, "contains": b, "uniqueItems": true})),
    ];
    let unevaluated = prop_oneof![
        4 => Just(json!({})),
        1 => inner.clone().prop_map(|a| json!({"unevaluatedProperties": a})),
        1 => inner.prop_map(|a| json!({"unevaluatedItems": a})),
    ];
    (in_place, inside, unevaluated).prop_map(|(a, b, c)| merged([a, b, c])).boxed()
}

fn reference(at: usize) -> Value {
    json!({"$ref": format!("#/$defs/{at}")})
}

fn merged(schemas: [Value; 3]) -> Value {
    schemas.into_iter().flat_map(|schema| schema.as_object().cloned().unwrap_or_default()).collect()
}

/// Adds the counting keyword to all parts; `true` members of other keywords are not parts.
fn counting(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords.iter_mut() {
                match (keyword.as_str(), value) {
                    ("required" | "const", _) => {}
                    ("properties" | "patternProperties" | "$defs" | "dependentSchemas", Value::Object(parts)) => {
                        parts.values_mut().for_each(counting);
                    }
                    (_, value) => counting(value),
                }
            }
            keywords.insert("x-count".into(), Value::Bool(true));
        }
        Value::Array(parts) => parts.iter_mut().for_each(counting),
        _ => {}
    }
}

fn schema() -> impl Strategy<Value = Value> {
    (1..7_usize).prop_flat_map(|all| {
        let parts: Vec<_> = (0..all).map(|at| part(at, all)).collect();
        parts.prop_map(|parts| {
            let last = parts.len() - 1;
            let definitions: Map<String, Value> =
                parts.into_iter().enumerate().map(|(at, part)| (at.to_string(), part)).collect();
            let mut schema = json!({"$ref": format!("#/$defs/{last}"), "$defs": definitions});
            counting(&mut schema);
            schema
        })
    })
}

fn instance() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!(5)), Just(json!("a")), Just(json!("abc"))];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[abc]{1,2}", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn an_estimate_is_never_below_what_is_visited(schema in schema(), instance in instance()) {
        let patterns = Patterns::of(&schema).expect("small patterns");
        // Nested references of a small schema may expand beyond the budgets.
        let estimate = Graph::of(&schema, &patterns).and_then(|graph| graph.estimate(&instance));
        prop_assume!(estimate.is_ok());
        let estimate = estimate.expect("assumed above");
        let visits = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&visits);
        let validator = jsonschema::options()
            .with_keyword("x-count", move |_, _, _| Ok(Box::new(Visits(Arc::clone(&counter)))))
            .build(&schema)
            .expect("a valid schema");
        let is_valid = validator.is_valid(&instance);
        let tested = visits.swap(0, Ordering::Relaxed);
        prop_assert!(tested <= estimate.test, "{tested} tested, estimated {estimate:?}");
        let errors = validator.iter_errors(&instance).count() as u64;
        let collected = visits.swap(0, Ordering::Relaxed);
        prop_assert!(collected <= estimate.collect, "{collected} collected, estimated {estimate:?}");
        prop_assert!(errors <= estimate.collect);
        prop_assert_eq!(validator.validate(&instance).is_ok(), is_valid);
        let validated = visits.swap(0, Ordering::Relaxed);
        prop_assert!(validated <= estimate.collect, "{validated} validated, estimated {estimate:?}");
    }
}
