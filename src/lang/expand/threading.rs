//! The threading macros.

use super::{Expander, call, nil};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// The position of the threaded value in a call.
#[derive(Clone, Copy)]
enum Position {
    First,
    Last,
}

fn insert(place: Position, value: Form, step: &Form) -> Form {
    match &step.kind {
        FormKind::List(items)
            if !items.is_empty() && !step.is_call_of("fn*") && !step.is_call_of("fn") && !step.is_call_of("lambda") =>
        {
            let at = match place {
                Position::First => 1,
                Position::Last => items.len(),
            };
            let mut items = items.clone();
            items.insert(at, value);
            Form { metadata: step.metadata.clone(), ..Form::list(items, step.span) }
        }
        // A name, a keyword, or a function literal: call it.
        _ => Form::list(vec![step.clone(), value], step.span),
    }
}

fn thread(expander: &Expander<'_>, place: Position, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(rest[1..].iter().fold(rest[0].clone(), |value, step| insert(place, value, step)))
}

/// `(-> x (f a) g)`
pub fn first(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    thread(expander, Position::First, form, rest)
}

/// `(->> x (f a) g)`
pub fn last(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    thread(expander, Position::Last, form, rest)
}

/// Builds the steps of a threading form. Each is built from the name that holds the value so far; the last one is in
/// tail position.
fn steps(
    expander: &mut Expander<'_>,
    span: Span,
    value: Form,
    steps: impl Iterator<Item = Box<dyn FnOnce(&Form) -> Form>>,
) -> Form {
    let mut bindings = Vec::new();
    let mut last = value;
    for step in steps {
        let held = expander.fresh("step", span);
        let next = step(&held);
        bindings.extend([held, last]);
        last = next;
    }
    call("let*", vec![Form::vector(bindings, span), last], span)
}

fn some(expander: &mut Expander<'_>, place: Position, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let span = form.span;
    let made = rest[1..].iter().cloned().map(move |step| -> Box<dyn FnOnce(&Form) -> Form> {
        Box::new(move |held: &Form| {
            let next = insert(place, held.clone(), &step);
            call("if", vec![call("core/nil?", vec![held.clone()], span), nil(span), next], span)
        })
    });
    Ok(steps(expander, span, rest[0].clone(), made))
}

/// `(some-> x f g)`
pub fn some_first(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    some(expander, Position::First, form, rest)
}

/// `(some->> x f g)`
pub fn some_last(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    some(expander, Position::Last, form, rest)
}

fn conditional(expander: &mut Expander<'_>, place: Position, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    if rest.len().is_multiple_of(2) {
        return expander.fail(form.span, "`cond->` takes tests and steps in turn".to_string());
    }
    let span = form.span;
    let pairs: Vec<(Form, Form)> = rest[1..].chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let made = pairs.into_iter().map(move |(test, step)| -> Box<dyn FnOnce(&Form) -> Form> {
        Box::new(move |held: &Form| {
            let next = insert(place, held.clone(), &step);
            call("if", vec![test, next, held.clone()], span)
        })
    });
    Ok(steps(expander, span, rest[0].clone(), made))
}

/// `(cond-> x test (f a) …)`
pub fn conditional_first(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    conditional(expander, Position::First, form, rest)
}

/// `(cond->> x test (f a) …)`
pub fn conditional_last(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    conditional(expander, Position::Last, form, rest)
}

/// `(as-> x name (f name) …)`
pub fn named(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let name = &rest[1];
    let mut bindings = Vec::new();
    let mut last = rest[0].clone();
    for step in &rest[2..] {
        bindings.extend([name.clone(), last]);
        last = step.clone();
    }
    Ok(call("let", vec![Form::vector(bindings, form.span), last], form.span))
}

/// `(doto x (f a) …)`
pub fn doto(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let held = expander.fresh("value", form.span);
    let mut items = vec![Form::vector(vec![held.clone(), rest[0].clone()], form.span)];
    items.extend(rest[1..].iter().map(|step| insert(Position::First, held.clone(), step)));
    items.push(held);
    Ok(call("let*", items, form.span))
}
