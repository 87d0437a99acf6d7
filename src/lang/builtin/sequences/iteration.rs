//! `iteration`: a sequence of pages, fetched by a function; each page determines the next.

use super::super::arguments::take;
use super::super::options::{ANY, FUNCTION};
use super::before;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet, OptionSpec};
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "iteration",
    &["[step & options]"],
    "A lazy sequence of the pages returned by `step`, called with `:initk` (nil), then with the key that `:kf` \
         takes from each page, until it is nil or `:somef` (some?) is not true of a page. `:vf` maps a page to an \
         item.",
    &[
        ("(iteration {nil {:rows [1 2] :next :b} :b {:rows [3]}} :vf :rows :kf :next)", "([1 2] [3])"),
        ("(into [] cat (iteration (fn [n] [n (inc n)]) :initk 1 :kf #(if (< (peek %) 3) (peek %))))", "[1 2 2 3]"),
    ],
    iteration,
)
.with_options(&ITERATION)];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&PAGE];

static ITERATION: OptionSet = OptionSet {
    function: "iteration",
    accepted: &[
        OptionSpec::new("somef", &FUNCTION),
        OptionSpec::new("vf", &FUNCTION),
        OptionSpec::new("kf", &FUNCTION),
        OptionSpec::new("initk", &ANY),
    ],
};

fn iteration(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let step = take(arguments, 0);
    let given = ITERATION.read(&mut arguments[1..])?;
    let mut parameters = vec![step];
    parameters.extend(["somef", "vf", "kf", "initk"].map(|name| given.or_nil(name)));
    Ok(machine.lazy(&PAGE, parameters))
}

static PAGE: Builtin =
    Builtin::new("lazy-iteration*", &["[step somef vf kf k]"], "A step of an `iteration`.", &[], page);

fn page(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let key = take(arguments, 4);
    let [step, is_page, item_of, key_of, ..] = arguments else { return Ok(Value::Nil) };
    let page = machine.call1(step, key)?;
    page.touch();
    let goes_on = if is_page.is_nil() { !page.is_nil() } else { machine.call1(is_page, page.clone())?.is_truthy() };
    if !goes_on {
        return Ok(Value::Nil);
    }
    let item = if item_of.is_nil() { page.clone() } else { machine.call1(item_of, page.clone())? };
    let key = if key_of.is_nil() { page } else { machine.call1(key_of, page)? };
    key.touch();
    if key.is_nil() {
        return Ok(before(item, Value::Nil));
    }
    let parameters = arguments[..4].iter_mut().map(std::mem::take).chain([key]).collect();
    let rest = machine.lazy(&PAGE, parameters);
    Ok(before(item, rest))
}
