//! Tests defined with `deftest`, and the counts of their checks.
//!
//! The names of the tests are stored in the table of definitions under a name that no program can define. They are
//! therefore rolled back, retained and written to snapshots like definitions. Each run counts its checks in its own
//! cell.

use super::arguments::take;
use crate::error::{Error, Outcome};
use crate::heap::{CellKind, Handle, State};
use crate::machine::{Global, Machine};
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::function::Bound;
use crate::value::map::Map;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "run-tests",
        &["[& namespaces]"],
        "Runs all tests of the session, prints failures and totals, and returns a map of the counts.",
        &[("(deftest sums (is (= 4 (+ 2 2)))) (run-tests)", "{:test 1, :pass 1, :fail 0, :error 0, :type :summary}")],
        run_tests,
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "test-vars",
        &["[tests]"],
        "Runs tests sequentially.",
        &[("(deftest sums (is (= 4 (+ 2 2)))) (test-vars [sums])", "nil")],
        |machine, arguments| {
            let tests = machine.items(take(arguments, 0))?;
            run(machine, tests)?;
            Ok(Value::Nil)
        },
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "note-test*",
        &["[name]"],
        "Adds a test to the tests that `run-tests` runs.",
        &[],
        |machine, arguments| {
            let mut tests = noted(machine, TESTS);
            tests.insert(take(arguments, 0), Value::Bool(true));
            note(machine, TESTS, Some(tests));
            Ok(Value::Nil)
        },
    ),
    Builtin::new(
        "use-fixtures*",
        &["[kind & functions]"],
        "Expansion of `use-fixtures`.",
        &[],
        |machine, arguments| {
            let kind = take(arguments, 0);
            if !matches!(&kind, Value::Keyword(name) if matches!(name.as_str(), "once" | "each")) {
                return Err(Error::expected("`:once` or `:each`", &kind).into());
            }
            let mut fixtures = noted(machine, FIXTURES);
            fixtures.insert(kind, Value::vector(arguments[1..].iter_mut().map(std::mem::take).collect()));
            note(machine, FIXTURES, Some(fixtures));
            Ok(Value::Nil)
        },
    ),
    Builtin::new(
        "count-check*",
        &["[outcome]"],
        "Counts a check while `run-tests` runs.",
        &[],
        |machine, arguments| {
            count(machine, &arguments[0])?;
            Ok(Value::Nil)
        },
    ),
];

/// Builtins that implement the function values created in this module.
pub const STEPS: &[&Builtin] = &[&RUN_EACH, &RUN_ONE, &FIXED];

/// The function passed to the `:once` fixtures: runs all tests.
static RUN_EACH: Builtin = Builtin::new("run-each*", &["[& tests]"], "Runs tests.", &[], |machine, arguments| {
    for test in arguments.iter_mut().map(std::mem::take) {
        let one = Value::Bound(Arc::new(Bound { builtin: &RUN_ONE, arguments: vec![test] }));
        let fixed = fixed(machine, "each", one);
        machine.call(&fixed, &mut [])?;
    }
    Ok(Value::Nil)
});

/// The function passed to the `:each` fixtures: counts and runs one test.
static RUN_ONE: Builtin =
    Builtin::new("run-one*", &["[test]"], "Counts and runs a test.", &[], |machine, arguments| {
        count(machine, &Value::keyword("test"))?;
        machine.call(&arguments[0], &mut [])
    });

/// A function wrapped in a fixture.
static FIXED: Builtin =
    Builtin::new("fixed*", &["[fixture f]"], "A function wrapped in a fixture.", &[], |machine, arguments| {
        let fixture = take(arguments, 0);
        machine.call(&fixture, &mut arguments[1..])
    });

/// Wraps a function in all fixtures of a kind.
fn fixed(machine: &Machine, kind: &str, function: Value) -> Value {
    let fixtures = match noted(machine, FIXTURES).get(&Value::keyword(kind)) {
        Some(Value::Vector(fixtures)) => fixtures.iter().cloned().collect(),
        _ => Vec::new(),
    };
    let inside = |inner, fixture| Value::Bound(Arc::new(Bound { builtin: &FIXED, arguments: vec![fixture, inner] }));
    fixtures.into_iter().rev().fold(function, inside)
}

/// Runs tests inside their fixtures.
fn run(machine: &mut Machine, tests: Vec<Value>) -> Outcome<Value> {
    let all = Value::Bound(Arc::new(Bound { builtin: &RUN_EACH, arguments: tests }));
    let fixed = fixed(machine, "once", all);
    machine.call(&fixed, &mut [])
}

/// Key of the test names in the table of definitions.
const TESTS: &str = "tests/names";

/// Key of the fixtures, by kind, in the table of definitions.
const FIXTURES: &str = "tests/fixtures";

fn noted(machine: &Machine, name: &str) -> Map {
    let known = machine.core.globals.find_note(name).and_then(|index| machine.core.globals.get(index).value.as_ref());
    match known {
        Some(Value::Map(map)) => (**map).clone(),
        _ => Map::default(),
    }
}

fn note(machine: &mut Machine, name: &str, map: Option<Map>) {
    let index = machine.core.globals.index(name);
    let value = map.map(|map| Value::Map(Arc::new(map)));
    machine.core.globals.set(index, Global { value, ..Global::default() });
}

/// Returns the counts of a run so far.
fn counted(machine: &Machine, counts: &Handle) -> Outcome<Map> {
    Ok(match machine.core.heap.state(counts)? {
        State::Done(Value::Map(map)) => (**map).clone(),
        _ => Map::default(),
    })
}

/// Increments a counter of the innermost `run-tests`, if one is running.
fn count(machine: &mut Machine, outcome: &Value) -> Outcome<()> {
    let Some(counts) = machine.counts().clone() else { return Ok(()) };
    let mut map = counted(machine, &counts)?;
    let so_far = match map.get(outcome) {
        Some(Value::Int(count)) => *count,
        _ => 0,
    };
    map.insert(outcome.clone(), Value::Int(so_far + 1));
    machine.core.heap.change(&counts, State::Done(Value::Map(Arc::new(map))))?;
    Ok(())
}

fn run_tests(machine: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    let zeros = ["test", "pass", "fail", "error"].map(|outcome| (Value::keyword(outcome), Value::Int(0)));
    let zeros = Value::Map(Arc::new(zeros.into_iter().collect()));
    let counts = machine.core.heap.allocate(CellKind::Volatile, State::Done(zeros));
    let outer = machine.counts().replace(counts.clone());
    let ran = run_noted(machine);
    *machine.counts() = outer;
    ran?;
    let mut counts = counted(machine, &counts)?;
    let number = |name: &str| counts.get(&Value::keyword(name)).cloned().unwrap_or_default().to_string();
    let (tests, fails, errors) = (number("test"), number("fail"), number("error"));
    let passed = number("pass");
    machine
        .core
        .print(&format!("Ran {tests} tests: {passed} checks passed, {fails} failed, {errors} raised errors.\n"));
    counts.insert(Value::keyword("type"), Value::keyword("summary"));
    Ok(Value::Map(Arc::new(counts)))
}

fn run_noted(machine: &mut Machine) -> Outcome<Value> {
    let mut tests = Vec::new();
    for (name, _) in noted(machine, TESTS).iter() {
        let found = machine.core.globals.find(&name.to_string());
        let Some(test) = found.and_then(|index| machine.core.globals.get(index).value.clone()) else {
            return Err(Error::new("UnboundVariable", format!("the test `{name}` no longer exists")).into());
        };
        tests.push(test);
    }
    run(machine, tests)
}
