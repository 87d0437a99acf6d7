//! Dynamic scope: temporary values of definitions, and redirected input and output.

use super::functions::thunk;
use super::{Expander, call, followed, show};
use crate::error::{Error, Outcome, Signal};
use crate::form::Form;

/// `(binding [*name* value] …)`: rebinds definitions during the body, in this branch.
pub fn binding(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let pairs = pairs_of_names(expander, form, rest)?;
    let is_out = |pair: &[Form]| pair[0].as_symbol().is_some_and(|name| name.rsplit('/').next() == Some("*out*"));
    let Some(at) = pairs.chunks_exact(2).position(is_out) else {
        return meanwhile(expander, form, rest, "core/binding*");
    };
    // Prints go to a writer.
    let mut others = pairs.to_vec();
    let writer = others.drain(2 * at..2 * at + 2).next_back().unwrap_or_else(|| super::nil(form.span));
    let body = match others.is_empty() {
        true => thunk(&rest[1..], form.span),
        false => {
            let inner = followed(Form::vector(others, rest[0].span), &rest[1..]);
            thunk(&[call("binding", inner, form.span)], form.span)
        }
    };
    Ok(call("core/with-writer*", vec![writer, body], form.span))
}

/// `(with-redefs [f g] …)`: rebinds definitions during the body, in all branches.
pub fn with_redefs(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    meanwhile(expander, form, rest, "core/with-redefs*")
}

fn meanwhile(expander: &mut Expander<'_>, form: &Form, rest: &[Form], function: &str) -> Outcome<Form> {
    let pairs = pairs_of_names(expander, form, rest)?;
    let mut arguments = Vec::with_capacity(pairs.len() + 1);
    for pair in pairs.chunks_exact(2) {
        arguments.extend([call("var", vec![pair[0].clone()], pair[0].span), pair[1].clone()]);
    }
    arguments.push(thunk(&rest[1..], form.span));
    Ok(call(function, arguments, form.span))
}

fn pairs_of_names<'a>(expander: &Expander<'_>, form: &Form, rest: &'a [Form]) -> Outcome<&'a [Form]> {
    expander.count(form, rest, 1, usize::MAX)?;
    let Some(pairs) = rest[0].as_vector().filter(|items| items.len() % 2 == 0) else {
        return expander.fail(rest[0].span, "expected names and values in turn: `[*name* value]`".to_string());
    };
    match pairs.iter().step_by(2).find(|name| name.as_symbol().is_none()) {
        Some(name) => expander.fail(name.span, format!("expected the name of a definition, got {}", show(name))),
        None => Ok(pairs),
    }
}

/// `(with-local-vars [n 0] (var-set n (inc @n)) @n)`
pub fn with_local_vars(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let pairs = pairs_of_names(expander, form, rest)?;
    let mut bindings = Vec::with_capacity(pairs.len());
    for pair in pairs.chunks_exact(2) {
        bindings.extend([pair[0].clone(), call("core/local-var*", vec![pair[1].clone()], pair[1].span)]);
    }
    Ok(call("let*", followed(Form::vector(bindings, rest[0].span), &rest[1..]), form.span))
}

/// `(with-bindings {#'*name* value} …)`
pub fn with_bindings(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(call("core/with-bindings*", vec![rest[0].clone(), thunk(&rest[1..], form.span)], form.span))
}

/// `(bound-fn [x] …)`
pub fn bound_fn(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    Ok(call("core/bound-fn*", vec![call("fn", rest.to_vec(), form.span)], form.span))
}

/// `(set! *name* value)`, inside of a `binding` of that name.
pub fn set(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    match rest {
        // `(set! *print-length* 10)`: predefined dynamic names can also be set for the session.
        [name, value] if name.as_symbol().is_some_and(|name| expander.macros.is_dynamic(name)) => {
            let name = call("quote", vec![Form { metadata: None, ..name.clone() }], name.span);
            Ok(call("core/set-dynamic*", vec![name, value.clone()], form.span))
        }
        [name, value] if name.as_symbol().is_some_and(|name| is_definition(expander, name)) => {
            let var = call("var", vec![Form { metadata: None, ..name.clone() }], name.span);
            Ok(call("core/var-set", vec![var, value.clone()], form.span))
        }
        _ => {
            let advice = crate::absent::advice("setq").unwrap_or_default();
            let error = Error::new("NotAvailable", "`set!` changes only what an enclosing `binding` has bound");
            Err(Signal::from(error.about("set!").suggest(advice)).at(expander.source, form.span))
        }
    }
}

/// Returns whether the session, or the form so far, defines the name.
fn is_definition(expander: &Expander<'_>, name: &str) -> bool {
    let is_defined = expander.macros.is_defined(name) || expander.defined.contains(name);
    is_defined && !expander.is_local(name)
}

/// `(with-out-str …)`
pub fn with_out_str(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    Ok(call("core/with-out-str*", vec![thunk(rest, form.span)], form.span))
}

/// `(with-in-str s …)`
pub fn with_in_str(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(call("core/with-in-str*", vec![rest[0].clone(), thunk(&rest[1..], form.span)], form.span))
}
