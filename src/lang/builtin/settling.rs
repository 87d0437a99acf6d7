//! `all-settled`: many effects, each with its outcome.
//!
//! Two designs were considered. A wrapper around the function that catches errors would be a line of Lisp, but could not
//! tell a call that surely was not carried out from one of which that is not known. So the calls of each item are counted
//! while it is processed ([`CountedCalls`](crate::machine::CountedCalls)), in its branch and those behind it.

use super::arguments::{function_and_collection, take};
use super::options::COUNT;
use crate::error::{Fault, Outcome, Raised};
use crate::eval::annotate;
use crate::foreign_text;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::print::print_within;
use crate::value::release::Scratch;
use crate::value::walk::Free;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "all-settled",
    &["[f coll & {:keys [parallel]}]"],
    "Calls `f` for each item, whatever becomes of the others, and returns a vector of outcomes, which a reply shows as one \
     line: `{:item x :outcome :ok :value v}`; `:failed` with `:error`, `:message`, and `:changed false` if `f` surely has \
     changed nothing; `:unknown` if it may have. Given back as `coll`, it repeats only what has failed without a change. One \
     item after the other, or at most `:parallel` at once.",
    &[
        (
            "(mapv :outcome (all-settled (fn [x] (/ 6 x)) [1 0 2]))",
            "[:ok :failed :ok]",
        ),
        ("(all-settled (fn [x] (/ 6 x)) [1 0 2])", "2 ok (6, 3), 1 failed: 0 (divide by zero); (all-settled f outcomes) repeats 1"),
    ],
    all_settled,
)
.with_options(&OPTIONS)
.with_conduct(Conduct::Maps)];

/// Builtins of this module that only the evaluator and snapshots refer to.
pub const STEPS: &[&Builtin] = &[&SETTLE];

static SETTLE: Builtin = Builtin::new("settle*", &["[f item]"], "The outcome of `f` for an item.", &[], settle);

static OPTIONS: OptionSet = OptionSet { function: "all-settled", accepted: &[OptionSpec::new("parallel", &COUNT)] };

/// The key of the metadata with the line that a reply shows.
const SUMMARY: &str = "outcomes/summary";

/// Maximum number of outcomes that the line names, of each kind.
const NAMED: usize = 3;

/// Maximum length of an item and of a message in the line, in characters.
const ITEM: usize = 60;
const MESSAGE: usize = 80;

/// Maximum length of a value in the line, and of all of them, in bytes.
const VALUE: usize = 60;
const VALUES: usize = 300;

/// Returns the line that a reply shows in place of these outcomes.
pub fn summary(value: &Value) -> Option<Value> {
    let Value::Vector(_) = value else { return None };
    metadata(value)?.get(&Value::keyword(SUMMARY)).cloned()
}

fn all_settled(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = OPTIONS.read(&mut arguments[2..])?;
    let (function, collection) = function_and_collection(&mut arguments[..2]);
    let is_again = summary(&collection).is_some();
    let mut outcomes = machine.items(collection)?;
    // The positions of the items that are processed.
    let places: Vec<usize> = (0..outcomes.len()).filter(|at| !is_again || is_repeatable(&outcomes[*at])).collect();
    if is_again && places.is_empty() && !outcomes.is_empty() {
        // It may have been meant as a list of items for another function.
        machine.core.note(format!(
            "all-settled was given its outcomes back ({}), of which none has failed without a change, and called `f` for none",
            outcomes.len()
        ));
    }
    let calls: Vec<Vec<Value>> = places
        .iter()
        .map(|at| {
            let item = if is_again { field(&outcomes[*at], "item") } else { outcomes[*at].clone() };
            vec![function.clone(), item]
        })
        .collect();
    machine.grown_block(&calls)?;
    let calls = Scratch::from(calls);
    let parallel = match given.or_nil("parallel") {
        Value::Int(count) => u32::try_from(count).unwrap_or(u32::MAX).max(1),
        _ => 1,
    };
    let step = Value::Builtin(&SETTLE);
    let settled = if parallel == 1 {
        let mut settled = Vec::with_capacity(calls.len());
        for mut call in calls.into_vec() {
            settled.push(machine.call(&step, &mut call)?);
        }
        settled
    } else {
        let most = machine.core.meter.limits.parallel;
        machine.core.meter.limits.parallel = parallel.min(most);
        let settled = machine.in_branches(&step, calls, |call| call);
        machine.core.meter.limits.parallel = most;
        settled?
    };
    for (at, outcome) in places.into_iter().zip(settled) {
        outcomes[at] = outcome;
    }
    let line = line(&outcomes);
    let described = Map::from_iter([(Value::keyword(SUMMARY), Value::string(&line))]);
    annotate(machine, Value::vector(outcomes), Some(Arc::new(described)))
}

/// True for the outcome of an item whose failure has changed nothing.
fn is_repeatable(outcome: &Value) -> bool {
    field(outcome, "outcome") == Value::keyword("failed") && field(outcome, "changed") == Value::Bool(false)
}

fn field(outcome: &Value, name: &str) -> Value {
    match outcome {
        Value::Map(map) => map.get(&Value::keyword(name)).cloned().unwrap_or_default(),
        _ => Value::Nil,
    }
}

/// Calls the function for one item.
fn settle(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, item) = (take(arguments, 0), take(arguments, 1));
    let (top, depth, nesting) = (machine.stack.len(), machine.depth, machine.nesting);
    let from = machine.branch.upcoming_call(machine.core.form);
    machine.core.counted.begin();
    let called = machine.call(&function, &mut [item.clone()]);
    let called = called.and_then(|value| machine.settle(&value).map(|()| value));
    let (made, unknown) = machine.core.counted.since((from.form, &from.branch, from.ordinal));
    machine.core.counted.end();
    let signal = match called {
        Ok(value) => {
            return Ok(outcome([("item", item), ("outcome", Value::keyword("ok")), ("value", value)]));
        }
        Err(signal) => signal,
    };
    let error = match signal.raised() {
        Raised::Fault(Fault { error, .. }) | Raised::Error(error) => error.clone(),
        Raised::Halt(_) => return Err(signal),
    };
    machine.stack.truncate(top);
    (machine.depth, machine.nesting) = (depth, nesting);
    let kind = if unknown > 0 { "unknown" } else { "failed" };
    let mut fields = vec![
        ("item", item),
        ("outcome", Value::keyword(kind)),
        ("error", Value::string(&error.code)),
        ("message", Value::string(&error.message)),
    ];
    if unknown == 0 {
        fields.push(("changed", Value::Bool(made > 0)));
    }
    Ok(outcome(fields))
}

fn outcome(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (Value::keyword(name), value));
    Value::Map(Arc::new(Map::from_iter(fields)))
}

/// Returns `2 ok (7, 12), 1 failed: "bob" (busy), 1 unknown: "eve" (no answer within 30 s)`, with the values of those that
/// are ok as far as there is room, and with what repeats those that have failed without a change.
fn line(outcomes: &[Value]) -> String {
    let of = |name: &str| {
        let name = Value::keyword(name);
        outcomes.iter().filter(move |outcome| field(outcome, "outcome") == name).collect::<Vec<_>>()
    };
    let ok = of("ok");
    let mut parts = vec![format!("{} ok{}", ok.len(), values(&ok))];
    for kind in ["failed", "unknown"] {
        let those = of(kind);
        if those.is_empty() {
            continue;
        }
        let named = those.iter().take(NAMED).map(|outcome| named(outcome)).collect::<Vec<_>>().join(", ");
        let more = if those.len() > NAMED { ", …" } else { "" };
        parts.push(format!("{} {kind}: {named}{more}", those.len()));
    }
    let repeated = outcomes.iter().filter(|outcome| is_repeatable(outcome)).count();
    let advice = match repeated {
        0 => String::new(),
        count => format!("; (all-settled f outcomes) repeats {count}"),
    };
    parts.join(", ") + &advice
}

/// Returns ` (7, 12, …)`, the values of items that are ok, unless there are none but nil.
fn values(ok: &[&Value]) -> String {
    let values = ok.iter().map(|outcome| field(outcome, "value")).collect::<Vec<_>>();
    if values.iter().all(|value| value.is_nil()) {
        return String::new();
    }
    let mut shown = String::new();
    for value in &values {
        let Ok(printed) = print_within(value, VALUE, true, &mut Free);
        let cut = if printed.truncated.is_some() { "…" } else { "" };
        let separator = if shown.is_empty() { "" } else { ", " };
        if shown.len() + printed.text.len() > VALUES {
            shown = shown + separator + "…: see :value";
            break;
        }
        shown += &format!("{separator}{}{cut}", foreign_text::line(&printed.text));
    }
    format!(" ({shown})")
}

/// Returns an item that has failed, and why.
fn named(outcome: &Value) -> String {
    let item = foreign_text::begun(&field(outcome, "item").to_string(), ITEM);
    let message = match field(outcome, "message") {
        Value::Str(message) => foreign_text::begun(&foreign_text::line(message.as_str()), MESSAGE),
        _ => String::new(),
    };
    format!("{item} ({message})")
}
