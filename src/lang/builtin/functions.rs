//! Higher-order functions: calling functions, and creating new ones from others.
//!
//! The functions created here are data: a builtin of this module, bound to the values it was created with, which
//! precede the arguments of the call.

use super::arguments::{function_and_collection, take};
use super::sequences::joining::concat_all;
use crate::error::{Error, Outcome, Raised};
use crate::heap::{CellKind, Handle, State};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, Intrinsic, Role};
use crate::value::Value;
use crate::value::function::Bound;
use crate::value::map::Map;
use crate::value::vector::Vector;
use crate::value::walk::Cursor;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "apply",
        &["[f args]", "[f arg & args]"],
        "Calls `f` with the given arguments followed by the items of the last one, a sequence.",
        &[("(apply + [1 2 3])", "6"), ("(apply max 1 2 [5 3])", "5"), ("(apply + nil)", "0")],
        apply,
    )
    .with_conduct(Conduct::CallsFirst)
    .passing_on(),
    Builtin::new("funcall", &["[f & args]"], "Calls `f` with the arguments.", &[("(funcall + 1 2)", "3")], funcall)
        .with_conduct(Conduct::CallsFirst)
        .passing_on(),
    Builtin::new(
        "comp",
        &["[& fs]"],
        "The composition of `fs`, applied from right to left, each to the previous result.",
        &[("((comp inc inc) 1)", "3"), ("((comp str +) 1 2)", "\"3\""), ("((comp) 5)", "5")],
        comp,
    ),
    Builtin::new(
        "partial",
        &["[f & args]"],
        "A function that calls `f` with `args` followed by its own arguments.",
        &[("((partial + 1 2) 3)", "6"), ("(map (partial * 2) [1 2])", "(2 4)")],
        partial,
    )
    .passing_on(),
    Builtin::new(
        "juxt",
        &["[f & fs]"],
        "A function that returns a vector of the results of all `fs` for its arguments.",
        &[("((juxt :a :b) {:a 1, :b 2})", "[1 2]"), ("((juxt + -) 5 3)", "[8 2]")],
        juxt,
    ),
    Builtin::new(
        "complement",
        &["[pred]"],
        "A function that returns the logical opposite of `pred`.",
        &[("(filter (complement nil?) [1 nil])", "(1)")],
        complement,
    ),
    Builtin::new(
        "constantly",
        &["[x]"],
        "A function of any arguments that returns `x`.",
        &[("(map (constantly 0) [1 2])", "(0 0)")],
        constantly,
    )
    .passing_on(),
    Builtin::new("identity", &["[x]"], "Returns `x`.", &[("(filter identity [1 nil])", "(1)")], identity)
        .with_conduct(Conduct::Same)
        .passing_on(),
    Builtin::new(
        "fnil",
        &["[f default & defaults]"],
        "A function like `f` that replaces nil in its first arguments by `default` and `defaults`.",
        &[("((fnil inc 0) nil)", "1"), ("(update {} :n (fnil inc 0))", "{:n 1}")],
        fnil,
    ),
    Builtin::new(
        "memoize",
        &["[f]"],
        "A function like `f` that caches its results by arguments.",
        &[("(let [f (memoize inc)] [(f 1) (f 1)])", "[2 2]")],
        memoize,
    ),
    Builtin::new(
        "every-pred",
        &["[pred & preds]"],
        "A function that returns true if all `preds` are true for all its arguments.",
        &[("((every-pred pos? odd?) 3)", "true"), ("(filter (every-pred pos? odd?) [-1 1 2])", "(1)")],
        every_pred,
    ),
    Builtin::new(
        "some-fn",
        &["[pred & preds]"],
        "A function that returns the first truthy result of any of the `preds` for any of its arguments.",
        &[("((some-fn :a :b) {:b 2})", "2"), ("(filter (some-fn neg? zero?) [-1 0 1])", "(-1 0)")],
        some_fn,
    ),
    Builtin::new(
        "trampoline",
        &["[f & args]"],
        "Calls `f`; as long as the result is a function, calls that without arguments.",
        &[("(trampoline (fn [x] (fn [] x)) 1)", "1")],
        trampoline,
    ),
];

/// Aliases from other Lisps, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("compose", "comp"), ("curry", "partial")];

/// Builtins that implement the function values created in this module.
pub const STEPS: &[&Builtin] =
    &[&COMPOSED, &PARTIAL, &JUXTAPOSED, &COMPLEMENTED, &CONSTANT, &DEFAULTED, &MEMOIZED, &ALL_TRUE, &ONE_TRUE];

/// Creates a function that calls `builtin` with these values before its arguments.
pub(super) fn bound(builtin: &'static Builtin, arguments: Vec<Value>) -> Value {
    Value::Bound(Arc::new(Bound { builtin, arguments }))
}

/// Moves the arguments into one vector, so that a function made of several functions takes one bound argument.
fn gathered(arguments: &mut [Value]) -> Value {
    Value::vector(arguments.iter_mut().map(std::mem::take).collect())
}

/// Returns the functions gathered in the first argument.
fn several(arguments: &mut [Value]) -> Arc<Vector> {
    match take(arguments, 0) {
        Value::Vector(functions) => functions,
        _ => Arc::new(Vector::from(Vec::new())),
    }
}

fn apply(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let (function, last) = function_and_collection(arguments);
        return apply_to(machine, &function, Vec::new(), last);
    }
    let function = take(arguments, 0);
    let last = take(arguments, arguments.len() - 1);
    let end = arguments.len() - 1;
    let first = arguments[1..end].iter_mut().map(std::mem::take).collect();
    apply_to(machine, &function, first, last)
}

fn apply_to(machine: &mut Machine, function: &Value, first: Vec<Value>, last: Value) -> Outcome<Value> {
    check_last(&last)?;
    // `(apply concat …)` is a common way to join an infinite sequence of collections, so it stays lazy.
    if matches!(function, Value::Builtin(builtin) if builtin.intrinsic == Some(Intrinsic::Concat))
        && machine.is_lazy(&last)
    {
        return concat_all(machine, first, last);
    }
    if let Value::Bound(bound) = function
        && bound.role() == Role::PartialCall
        && let [function, filled @ ..] = bound.arguments.as_slice()
    {
        let all = filled.iter().cloned().chain(first).collect();
        return apply_to(machine, function, all, last);
    }
    if machine.is_lazy(&last) {
        return machine.call_lazily(function, first, last);
    }
    let mut all = first;
    all.extend(machine.items(last)?);
    machine.call(function, &mut all)
}

fn check_last(last: &Value) -> Result<(), Error> {
    if Cursor::over(last.clone()).is_some() {
        return Ok(());
    }
    Err(Error::expected("a sequence as the last argument", last)
        .suggest("call a function with single arguments as `(f a b)`, with a sequence of them as `(apply f args)`"))
}

fn funcall(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    machine.call(&function, &mut arguments[1..])
}

fn comp(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [only] => Ok(std::mem::take(only)),
        several => Ok(bound(&COMPOSED, vec![gathered(several)])),
    }
}

static COMPOSED: Builtin = Builtin::new("composed*", &["[fs & args]"], "The result of `comp`.", &[], composed);

fn composed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let functions = several(arguments);
    let Some(innermost) = functions.get(functions.len().wrapping_sub(1)) else {
        return match arguments.len() {
            2 => Ok(take(arguments, 1)),
            count => Err(Error::new("ArityError", format!("`(comp)` takes 1 argument, got {}", count - 1)).into()),
        };
    };
    let mut result = machine.call(innermost, &mut arguments[1..])?;
    for at in (0..functions.len() - 1).rev() {
        if let Some(function) = functions.get(at) {
            result = machine.call1(function, result)?;
        }
    }
    Ok(result)
}

fn partial(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(take(arguments, 0));
    }
    match &arguments[0] {
        // A builtin takes the bound arguments itself; its arity is checked at the call.
        Value::Builtin(builtin) => {
            let builtin = *builtin;
            Ok(bound(builtin, arguments[1..].iter_mut().map(std::mem::take).collect()))
        }
        _ => Ok(bound(&PARTIAL, arguments.iter_mut().map(std::mem::take).collect())),
    }
}

static PARTIAL: Builtin =
    Builtin::new("partial*", &["[f & args]"], "The result of `partial`.", &[], funcall).with_role(Role::PartialCall);

fn juxt(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(bound(&JUXTAPOSED, vec![gathered(arguments)]))
}

static JUXTAPOSED: Builtin = Builtin::new("juxtaposed*", &["[fs & args]"], "The result of `juxt`.", &[], juxtaposed);

fn juxtaposed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut out = Vec::new();
    for function in several(arguments).iter() {
        machine.pay_for_arguments(arguments.len())?;
        out.push(machine.call(function, &mut arguments[1..].to_vec())?);
        machine.grown(out.len())?;
    }
    Ok(Value::vector(out))
}

fn complement(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(bound(&COMPLEMENTED, vec![take(arguments, 0)]))
}

static COMPLEMENTED: Builtin =
    Builtin::new("complemented*", &["[pred & args]"], "The result of `complement`.", &[], complemented);

fn complemented(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    funcall(machine, arguments).map(|answer| Value::Bool(!answer.is_truthy()))
}

fn constantly(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(bound(&CONSTANT, vec![take(arguments, 0)]))
}

static CONSTANT: Builtin = Builtin::new("constant*", &["[x & args]"], "The result of `constantly`.", &[], identity);

fn identity(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(take(arguments, 0))
}

fn fnil(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    Ok(bound(&DEFAULTED, vec![function, gathered(&mut arguments[1..])]))
}

static DEFAULTED: Builtin =
    Builtin::new("defaulted*", &["[f defaults & args]"], "The result of `fnil`.", &[], defaulted);

fn defaulted(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let defaults = several(&mut arguments[1..]);
    for (argument, default) in arguments[2..].iter_mut().zip(defaults.iter()) {
        if argument.is_nil() {
            *argument = default.clone();
        }
    }
    machine.call(&function, &mut arguments[2..])
}

fn memoize(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let known = machine.core.heap.allocate(CellKind::Atom, State::Done(Value::Map(Arc::default())));
    Ok(bound(&MEMOIZED, vec![take(arguments, 0), Value::Cell(known)]))
}

static MEMOIZED: Builtin = Builtin::new("memoized*", &["[f known & args]"], "The result of `memoize`.", &[], memoized);

fn memoized(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, cell) = (take(arguments, 0), take(arguments, 1));
    let Value::Cell(cell) = cell else { return funcall(machine, &mut arguments[1..]) };
    machine.pay_for_arguments(arguments.len())?;
    let key = match machine.key(Value::vector(arguments[2..].to_vec())) {
        Ok(key) => key,
        // Arguments that cannot be a key are not memoized; a halt is propagated.
        Err(signal) if matches!(signal.raised(), Raised::Halt(_)) => return Err(signal),
        Err(_) => return machine.call(&function, &mut arguments[2..]),
    };
    if let State::Done(Value::Map(known)) = machine.core.heap.state(&cell)?
        && let Some(result) = known.get(&key)
    {
        return Ok(result.clone());
    }
    let result = machine.call(&function, &mut arguments[2..])?;
    remember(machine, &cell, key, result.clone())?;
    Ok(result)
}

/// Adds a result to the cache of a memoized function. The map is taken out of its cell meanwhile, so that its reference
/// count permits an update in place.
fn remember(machine: &mut Machine, cell: &Arc<Handle>, key: Value, result: Value) -> Outcome<()> {
    let mut known = match machine.core.heap.change(cell, State::Done(Value::Nil))? {
        State::Done(Value::Map(known)) => known,
        _ => Arc::new(Map::default()),
    };
    Arc::make_mut(&mut known).insert(key, result);
    machine.core.heap.change(cell, State::Done(Value::Map(known)))?;
    Ok(())
}

fn every_pred(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(bound(&ALL_TRUE, vec![gathered(arguments)]))
}

static ALL_TRUE: Builtin = Builtin::new("all-true*", &["[preds & args]"], "The result of `every-pred`.", &[], all_true);

fn all_true(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    for predicate in several(arguments).iter() {
        for argument in &arguments[1..] {
            if !machine.call1(predicate, argument.clone())?.is_truthy() {
                return Ok(Value::Bool(false));
            }
        }
    }
    Ok(Value::Bool(true))
}

fn some_fn(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(bound(&ONE_TRUE, vec![gathered(arguments)]))
}

static ONE_TRUE: Builtin = Builtin::new("one-true*", &["[preds & args]"], "The result of `some-fn`.", &[], one_true);

fn one_true(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut last = Value::Nil;
    for predicate in several(arguments).iter() {
        for argument in &arguments[1..] {
            last = machine.call1(predicate, argument.clone())?;
            if last.is_truthy() {
                return Ok(last);
            }
        }
    }
    Ok(last)
}

fn trampoline(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut result = funcall(machine, arguments)?;
    while result.is_function() && !matches!(result, Value::Var(_)) {
        result = machine.call(&result, &mut [])?;
    }
    Ok(result)
}
