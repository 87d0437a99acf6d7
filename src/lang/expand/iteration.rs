//! `for`, `doseq`, `dotimes`, `while`.
//!
//! Each binding of a comprehension becomes one call of `core/for*`. Its function returns the list of results for one
//! item, or that list wrapped in `reduced`, which ends the iteration (`:while`).

use super::{Expander, call, followed, nil, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// One clause of a comprehension's bindings.
enum Clause {
    Each(Form, Form),
    When(Form),
    While(Form),
    Let(Form),
}

fn clauses(expander: &Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Vec<Clause>> {
    expander.count(form, rest, 1, usize::MAX)?;
    let items = match &rest[0].kind {
        FormKind::Vector(items) => items,
        FormKind::List(items) if items.len() == 2 && items[0].as_symbol().is_some() => items,
        _ => {
            return expander.fail(rest[0].span, format!("expected bindings `[x xs]`, got {}", show(&rest[0])));
        }
    };
    if items.get(1).is_some_and(|word| word.is_symbol("in") || word.is_symbol("of")) {
        return expander.fail(rest[0].span, "expected no word between name and collection: `[x xs]`".to_string());
    }
    if items.len() % 2 == 1 || items.is_empty() {
        return expander.fail(rest[0].span, "bindings come in pairs: `[x xs, y ys :when (f x y)]`".to_string());
    }
    let mut out = Vec::new();
    for pair in items.chunks_exact(2) {
        let value = pair[1].clone();
        out.push(match pair[0].as_keyword() {
            None => Clause::Each(pair[0].clone(), value),
            Some("when") => Clause::When(value),
            Some("while") => Clause::While(value),
            Some("let") => Clause::Let(value),
            Some(other) => {
                return expander.fail(
                    pair[0].span,
                    format!("`:{other}` has no meaning here; bindings take `:when`, `:while` and `:let`"),
                );
            }
        });
    }
    if !matches!(out[0], Clause::Each(..)) {
        return expander.fail(rest[0].span, "the first binding must be a name and a collection".to_string());
    }
    Ok(out)
}

/// Builds the nested calls from the inside out: `innermost` is the result of the last binding's function.
fn nest(clauses: &[Clause], operation: &str, innermost: Form, span: Span) -> Form {
    let nothing = || nil(span);
    clauses.iter().rev().fold(innermost, |inner, clause| match clause {
        Clause::Each(pattern, collection) => {
            let function = call("fn", vec![Form::vector(vec![pattern.clone()], span), inner], span);
            call(operation, vec![function, collection.clone()], collection.span)
        }
        Clause::When(test) => call("if", vec![test.clone(), inner, nothing()], span),
        Clause::While(test) => {
            let end = call("core/reduced", vec![nothing()], span);
            call("if", vec![test.clone(), inner, end], span)
        }
        Clause::Let(bindings) => call("let", vec![bindings.clone(), inner], span),
    })
}

/// `(for [x xs :when (odd? x)] …)`
pub fn comprehension(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    if rest.first().is_some_and(super::racket::is_clauses) {
        return super::racket::effects(expander, form, rest);
    }
    let clauses = clauses(expander, form, rest)?;
    let result = super::body(&rest[1..], form.span);
    if let [Clause::Each(pattern, collection)] = &clauses[..] {
        let function = call("fn", vec![Form::vector(vec![pattern.clone()], form.span), result], form.span);
        return Ok(call("core/map", vec![function, collection.clone()], form.span));
    }
    let one = call("core/list", vec![result], form.span);
    Ok(nest(&clauses, "core/for*", one, form.span))
}

/// `(doseq [x xs] …)`
pub fn doseq(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let effects = call("do", [rest[1..].to_vec(), vec![nil(form.span)]].concat(), form.span);
    if rest[0].as_vector().is_some_and(<[Form]>::is_empty) {
        return Ok(effects);
    }
    let clauses = clauses(expander, form, rest)?;
    Ok(nest(&clauses, "core/doseq*", effects, form.span))
}

/// `(dotimes [i n] …)`
pub fn dotimes(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let clauses = clauses(expander, form, rest)?;
    let [Clause::Each(name, count)] = &clauses[..] else {
        return expander.fail(form.span, "`dotimes` takes one binding `[i n]`".to_string());
    };
    let range = call("core/range", vec![call("core/long", vec![count.clone()], count.span)], count.span);
    let bindings = Form::vector(vec![name.clone(), range], form.span);
    Ok(call("doseq", followed(bindings, &rest[1..]), form.span))
}

/// `(while test …)`
pub fn while_(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let again = [rest[1..].to_vec(), vec![call("recur", Vec::new(), form.span)]].concat();
    let step = call("if", vec![rest[0].clone(), call("do", again, form.span), nil(form.span)], form.span);
    Ok(call("loop*", vec![Form::vector(Vec::new(), form.span), step], form.span))
}
