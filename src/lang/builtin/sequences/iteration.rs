//! `iteration`: a sequence of pages, fetched by a function; each page determines the next.

use super::super::arguments::{option, options, take};
use super::before;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
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
)];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&PAGE];

const OPTIONS: &[&str] = &["somef", "vf", "kf", "initk"];

fn iteration(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let step = take(arguments, 0);
    let given = match &mut arguments[1..] {
        [Value::Map(map)] => std::mem::take(map).as_ref().clone(),
        given => options("iteration", given, OPTIONS)?,
    };
    let mut parameters = vec![step];
    parameters.extend(OPTIONS.iter().map(|name| option(&given, name).unwrap_or_default()));
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
