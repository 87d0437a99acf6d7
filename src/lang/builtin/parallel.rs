//! `pmap` and related functions: tool calls in parallel.

use super::arguments::{function_and_collection, take};
use super::sequences::mapping::map;
use super::sequences::{cursors, next_of_each};
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::list::List;
use crate::value::release::Scratch;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "pmap",
        &["[f coll]", "[f coll & colls]"],
        "Like `map`, but tool calls for different items run concurrently; results keep their order.",
        &[("(pmap inc [1 2 3])", "(2 3 4)"), ("(pmap + [1 2] (range 10 20))", "(11 13)")],
        pmap,
    )
    .with_conduct(Conduct::Maps),
    Builtin::new("pcalls*", &["[& fs]"], "Expansion of `pcalls` and `pvalues`.", &[], pcalls)
        .with_conduct(Conduct::CallsEach),
];

fn pmap(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let (function, collection) = function_and_collection(arguments);
        if matches!(&collection, Value::List(list) if matches!(**list, List::Range { count: List::ENDLESS, .. })) {
            return map(machine, &mut [function, collection]);
        }
        let items = machine.items(collection)?.into();
        return machine.in_branches(&function, items, |item| vec![item]).map(Value::list);
    }
    let function = take(arguments, 0);
    let mut cursors = cursors(machine, &mut arguments[1..])?;
    let mut lists = Scratch::from(Vec::new());
    while let Some(items) = next_of_each(machine, &mut cursors)? {
        lists.push(items);
        machine.grown_block(&lists)?;
    }
    machine.in_branches(&function, lists, |items| items).map(Value::list)
}

fn pcalls(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let thunks = arguments.iter_mut().map(std::mem::take).collect::<Vec<Value>>().into();
    machine.in_branches(&Value::Builtin(&CALL_THUNK), thunks, |thunk| vec![thunk]).map(Value::list)
}

/// Runs a branch of `pcalls`. Clojure passes functions without arguments, whereas models pass calls; the macro wraps
/// either. If the wrapped argument evaluates to a function that takes no arguments, it is called as well.
static CALL_THUNK: Builtin = Builtin::new("call-thunk*", &["[f]"], "Runs a branch of `pcalls`.", &[], call_thunk);

fn call_thunk(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = machine.call(&arguments[0], &mut [])?;
    match &value {
        Value::Closure(closure) => {
            let takes_none =
                closure.group.lambdas[closure.index as usize].arities.iter().any(|arity| arity.required == 0);
            if takes_none { machine.call(&value, &mut []) } else { Ok(value) }
        }
        Value::Tool(_) => machine.call(&value, &mut []),
        _ => Ok(value),
    }
}

/// Builtins of this module that only the evaluator and snapshots refer to.
pub const STEPS: &[&Builtin] = &[&CALL_THUNK];
