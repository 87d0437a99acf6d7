//! Racket's loops: `(for/list ([x xs] #:when (odd? x)) …)` and its kin, as Clojure's `for`.
//!
//! Clauses between two conditions are traversed in parallel, as in Racket; those of the starred forms are nested.
//! `(k v)` in place of a name destructures an entry.

use super::dialects::pattern;
use super::{Expander, body, call, followed, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// Returns whether the form is a list of Racket's bindings, each in brackets: `([x xs] [y ys])`.
pub fn is_clauses(form: &Form) -> bool {
    form.as_list().is_some_and(|items| {
        items.first().is_some_and(|first| first.as_list().or(first.as_vector()).is_some_and(|pair| pair.len() == 2))
    })
}

/// The suffixes of `for/` and `for*/`.
const KINDS: &[&str] = &[
    "and", "first", "fold", "hash", "hasheq", "hasheqv", "last", "list", "or", "product", "set", "string", "sum",
    "vector",
];

/// Returns whether this is the name of one of these loops.
pub fn is_loop(name: &str) -> bool {
    name.strip_prefix("for/").or_else(|| name.strip_prefix("for*/")).is_some_and(|kind| KINDS.contains(&kind))
}

/// Expands one of these loops.
pub fn expanded(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let name = form.as_list().and_then(|items| items.first()).and_then(Form::as_symbol).unwrap_or_default();
    if name.ends_with("/fold") { fold(expander, form, rest) } else { collected(expander, form, rest) }
}

/// `(for/list ([x xs]) …)`, `(for*/sum (…) …)`
fn collected(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let name = form.as_list().and_then(|items| items.first()).and_then(Form::as_symbol).unwrap_or("for/list");
    let (nested, kind) = match name.split_once('/') {
        Some((head, kind)) => (head.ends_with('*'), kind),
        None => (name.ends_with('*'), "list"),
    };
    let mut clauses = clauses(expander, &rest[0], nested)?;
    if let "and" | "or" | "first" = kind {
        clauses = round_by_round(&clauses);
    }
    let rounds = call("for", followed(clauses, &rest[1..]), form.span);
    let name = |name: &str| Form::symbol(name, form.span);
    let made = |function: &str, first: Vec<Form>| call(function, [first, vec![rounds.clone()]].concat(), form.span);
    Ok(match kind {
        "vector" => made("core/vec", Vec::new()),
        "set" => made("core/set", Vec::new()),
        "hash" | "hasheq" | "hasheqv" => made("core/into", vec![Form::new(FormKind::Map(Vec::new()), form.span)]),
        "sum" => made("core/reduce", vec![name("core/+")]),
        "product" => made("core/reduce", vec![name("core/*")]),
        "and" => made("core/every?", vec![name("core/identity")]),
        "or" => made("core/some", vec![name("core/identity")]),
        "first" => made("core/first", Vec::new()),
        "last" => made("core/last", Vec::new()),
        "string" => made("core/apply", vec![name("core/str")]),
        _ => rounds,
    })
}

/// `(for/fold ([acc start]) ([x xs]) …)`; the values of several accumulators are returned as a vector.
fn fold(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let nested = form.as_list().and_then(|items| items.first()).is_some_and(|head| head.is_symbol("for*/fold"));
    let span = form.span;
    let (mut names, mut starts, mut result) = (Vec::new(), Vec::new(), None);
    let mut items = rest[0].as_list().or(rest[0].as_vector()).unwrap_or_default().iter();
    while let Some(item) = items.next() {
        match item.as_list().or(item.as_vector()) {
            Some([name, start]) => {
                names.push(pattern(name));
                starts.push(start.clone());
            }
            _ if item.as_keyword() == Some("result") => result = items.next().cloned(),
            _ => {
                return expander.fail(item.span, format!("an accumulator is `[acc start]`, got {}", show(item)));
            }
        }
    }
    let together = |mut items: Vec<Form>| match items.len() {
        1 => items.remove(0),
        _ => Form::vector(items, span),
    };
    if names.is_empty() {
        return expander.fail(rest[0].span, "`for/fold` takes accumulators first: `([acc 0])`".to_string());
    }
    let clauses = clauses(expander, &rest[1], nested)?;
    let bound: Vec<Form> = clauses
        .as_vector()
        .unwrap_or_default()
        .chunks_exact(2)
        .filter(|pair| pair[0].as_keyword().is_none())
        .map(|pair| pair[0].clone())
        .collect();
    // The step function receives the bindings of one iteration as a vector, and destructures them with the same
    // patterns again.
    let held: Vec<Form> = bound.iter().map(|_| expander.fresh("item", span)).collect();
    let mut rounds = Vec::new();
    let mut at = 0;
    for pair in clauses.as_vector().unwrap_or_default().chunks_exact(2) {
        if pair[0].as_keyword().is_some() {
            rounds.extend_from_slice(pair);
        } else {
            rounds.extend([held[at].clone(), pair[1].clone()]);
            let taken = Form::vector(vec![pair[0].clone(), held[at].clone()], span);
            rounds.extend([Form::new(FormKind::Keyword("let".to_string()), span), taken]);
            at += 1;
        }
    }
    let rounds = call("for", vec![Form::vector(rounds, span), Form::vector(held, span)], span);
    let accumulators = together(names.clone());
    let step = call(
        "fn",
        followed(Form::vector(vec![accumulators.clone(), Form::vector(bound, span)], span), &rest[2..]),
        span,
    );
    let folded = call("core/reduce", vec![step, together(starts), rounds], span);
    Ok(match result {
        Some(result) => call("let", vec![Form::vector(vec![accumulators, folded], span), result], span),
        None => folded,
    })
}

/// Converts Racket's clauses to the bindings of `for`.
fn clauses(expander: &mut Expander<'_>, form: &Form, nested: bool) -> Outcome<Form> {
    let span = form.span;
    let Some(items) = form.as_list().or(form.as_vector()) else {
        return expander.fail(span, format!("expected clauses `([x xs])`, got {}", show(form)));
    };
    // `(for/list [x xs] …)`: Clojure's bindings.
    if form.as_vector().is_some() && items.first().is_some_and(|first| first.as_symbol().is_some()) {
        return Ok(form.clone());
    }
    let mut bindings = Vec::new();
    let mut beside: Vec<(Form, Form)> = Vec::new();
    let keyword = |name: &str| Form::new(FormKind::Keyword(name.to_string()), span);
    let mut items = items.iter();
    while let Some(item) = items.next() {
        if let Some([name, collection]) = item.as_list().or(item.as_vector()) {
            if nested {
                settle(&mut bindings, &mut beside, span);
            }
            beside.push((pattern(name), collection.clone()));
            continue;
        }
        let (Some(word), Some(value)) = (item.as_keyword(), items.next()) else {
            return expander.fail(item.span, format!("a clause is `[x xs]` or `#:when test`, got {}", show(item)));
        };
        settle(&mut bindings, &mut beside, span);
        match word {
            "when" => bindings.extend([keyword("when"), value.clone()]),
            "unless" => bindings.extend([keyword("when"), call("core/not", vec![value.clone()], span)]),
            "break" => bindings.extend([keyword("while"), call("core/not", vec![value.clone()], span)]),
            "do" => {
                let unused = expander.fresh("unused", span);
                bindings.extend([keyword("let"), Form::vector(vec![unused, value.clone()], span)]);
            }
            other => {
                return expander.fail(
                    item.span,
                    format!("`#:{other}` has no meaning here; clauses take `#:when`, `#:unless` and `#:break`"),
                );
            }
        }
    }
    settle(&mut bindings, &mut beside, span);
    Ok(Form::vector(bindings, span))
}

/// Makes the collections in the bindings lazy, so that the loop evaluates no more iterations than it needs.
fn round_by_round(clauses: &Form) -> Form {
    let mut items = clauses.as_vector().unwrap_or_default().to_vec();
    for pair in items.chunks_exact_mut(2).filter(|pair| pair[0].as_keyword().is_none()) {
        pair[1] = call("lazy-seq", vec![pair[1].clone()], pair[1].span);
    }
    Form::vector(items, clauses.span)
}

/// Merges the pending parallel clauses into one binding.
fn settle(bindings: &mut Vec<Form>, beside: &mut Vec<(Form, Form)>, span: Span) {
    let items = |collection: Form| call("core/items-of*", vec![collection], span);
    match beside.len() {
        0 => {}
        1 => bindings.extend(beside.drain(..).flat_map(|(name, collection)| [name, items(collection)])),
        _ => {
            let (names, collections): (Vec<Form>, Vec<Form>) = beside.drain(..).unzip();
            let collections = collections.into_iter().map(items).collect();
            let together = [vec![Form::symbol("core/vector", span)], collections].concat();
            bindings.extend([Form::vector(names, span), call("core/map", together, span)]);
        }
    }
}

/// `(for ([x xs]) …)`: Racket's loop for effects.
pub fn effects(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let clauses = clauses(expander, &rest[0], false)?;
    Ok(call("doseq", vec![clauses, body(&rest[1..], form.span)], form.span))
}
