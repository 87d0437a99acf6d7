//! All variants of `let`, and `letfn`, `letrec`, `loop`.

use super::{Expander, body, call, followed, show};
use crate::error::Outcome;
use crate::expand::destructure::destructure;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// Names (or patterns) and their values.
type Pairs = Vec<(Form, Form)>;

/// Parses the bindings of a `let`: a vector of alternating names and values, or a list of `(name value)`.
fn pairs(expander: &Expander<'_>, name: &str, bindings: &Form) -> Outcome<Pairs> {
    match &bindings.kind {
        FormKind::Vector(items) if items.len() % 2 == 1 => {
            let last = show(&items[items.len() - 1]);
            expander.fail(bindings.span, format!("`{name}` takes names and values in turn; {last} has no value"))
        }
        FormKind::Vector(items) => Ok(items.chunks_exact(2).map(|p| (p[0].clone(), p[1].clone())).collect()),
        // `(let (x 1) …)`: one binding without its own brackets.
        FormKind::List(items)
            if items.len() == 2 && items[0].as_symbol().is_some() && items[1].as_symbol().is_none() =>
        {
            Ok(vec![(items[0].clone(), items[1].clone())])
        }
        FormKind::List(items) => items.iter().map(|item| clause(expander, name, item)).collect(),
        _ => expander
            .fail(bindings.span, format!("`{name}` takes its bindings as `[name value …]`, got {}", show(bindings))),
    }
}

fn clause(expander: &Expander<'_>, name: &str, item: &Form) -> Outcome<(Form, Form)> {
    match &item.kind {
        FormKind::Symbol(_) => Ok((item.clone(), super::nil(item.span))),
        FormKind::List(parts) | FormKind::Vector(parts) if parts.len() == 2 => Ok((parts[0].clone(), parts[1].clone())),
        _ => expander.fail(item.span, format!("a binding of `{name}` is `(name value)`, got {}", show(item))),
    }
}

/// `(let …)`.
pub fn let_(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    if rest[0].as_symbol().is_some() {
        return named_let(expander, form, rest);
    }
    let bindings = pairs(expander, "let", &rest[0])?;
    let parallel = rest[0].as_list().is_some() && means_outer_names(expander, &bindings);
    sequential(expander, bindings, &rest[1..], form.span, parallel)
}

/// `(let* ((a 1) (b 2)) …)`.
pub fn let_star(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let bindings = pairs(expander, "let*", &rest[0])?;
    sequential(expander, bindings, &rest[1..], form.span, false)
}

/// Returns whether the bindings must be evaluated in parallel. Scheme's and Common Lisp's `let` is parallel, which
/// makes a difference only if a value uses a name that an earlier binding shadows.
fn means_outer_names(expander: &Expander<'_>, bindings: &Pairs) -> bool {
    bindings.iter().enumerate().any(|(at, (_, value))| {
        bindings[..at]
            .iter()
            .filter_map(|(name, _)| name.as_symbol())
            .any(|name| expander.is_local(name) && mentions(value, name))
    })
}

/// Returns whether the name occurs anywhere in a form.
pub(super) fn mentions(form: &Form, name: &str) -> bool {
    match &form.kind {
        FormKind::Symbol(symbol) => symbol == name,
        FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
            items.iter().any(|item| mentions(item, name))
        }
        _ => false,
    }
}

fn sequential(
    expander: &mut Expander<'_>,
    bindings: Pairs,
    forms: &[Form],
    span: Span,
    parallel: bool,
) -> Outcome<Form> {
    let mut flat = Vec::new();
    let mut later = Vec::new();
    for (pattern, value) in bindings {
        if parallel {
            let held = expander.fresh("value", span);
            flat.extend([held.clone(), value]);
            later.push((pattern, held));
        } else {
            destructure(expander, &pattern, value, &mut flat)?;
        }
    }
    for (pattern, held) in later {
        destructure(expander, &pattern, held, &mut flat)?;
    }
    let mut arguments = vec![Form::vector(flat, span)];
    arguments.extend_from_slice(forms);
    Ok(call("let*", arguments, span))
}

/// `(let name ((i 0) …) …)`: a function that is called immediately.
fn named_let(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let bindings = pairs(expander, "let", &rest[1])?;
    let (names, values): (Vec<Form>, Vec<Form>) = bindings.into_iter().unzip();
    let mut function = vec![rest[0].clone(), Form::vector(names, rest[1].span)];
    function.extend_from_slice(&rest[2..]);
    let mut items = vec![call("fn", function, form.span)];
    items.extend(values);
    Ok(Form::list(items, form.span))
}

/// `(letrec ((f (lambda …))) …)`: functions that can refer to each other.
pub fn letrec(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let bindings = pairs(expander, "letrec", &rest[0])?;
    let mut arguments = vec![Form::vector(Vec::new(), form.span)];
    arguments.extend(bindings.into_iter().map(|(name, value)| call("define", vec![name, value], form.span)));
    arguments.extend_from_slice(&rest[1..]);
    Ok(call("let*", arguments, form.span))
}

/// `(letfn [(f [x] …) …] …)`.
pub fn letfn(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let (FormKind::Vector(functions) | FormKind::List(functions)) = &rest[0].kind else {
        return expander.fail(rest[0].span, format!("`letfn` takes a vector of functions, got {}", show(&rest[0])));
    };
    let mut flat = Vec::new();
    for function in functions {
        let Some([name, ..]) = function.as_list() else {
            return expander
                .fail(function.span, format!("a function of `letfn` is `(name [x] …)`, got {}", show(function)));
        };
        let parts = function.as_list().unwrap_or_default().to_vec();
        flat.extend([name.clone(), call("fn", parts, function.span)]);
    }
    let mut arguments = vec![Form::vector(flat, rest[0].span)];
    arguments.extend_from_slice(&rest[1..]);
    Ok(call("letfn*", arguments, form.span))
}

/// `(loop [i 0] …)`; patterns are destructured inside the loop.
pub fn loop_(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    if matches!(rest[0].kind, FormKind::Symbol(_) | FormKind::Keyword(_)) {
        return super::loops::loop_of_words(expander, form, rest);
    }
    let bindings = pairs(expander, "loop", &rest[0])?;
    if bindings.iter().all(|(name, _)| name.as_symbol().is_some()) {
        let flat = bindings.into_iter().flat_map(|(name, value)| [name, value]).collect();
        let arguments = followed(Form::vector(flat, rest[0].span), &rest[1..]);
        return Ok(call("loop*", arguments, form.span));
    }
    // The initial values are also destructured outside the loop, since a later one may use an earlier one.
    let mut outside = Vec::new();
    let mut slots = Vec::new();
    let mut inside = Vec::new();
    for (pattern, value) in bindings {
        let slot = expander.fresh("slot", pattern.span);
        outside.extend([slot.clone(), value]);
        destructure(expander, &pattern, slot.clone(), &mut outside)?;
        slots.extend([slot.clone(), slot.clone()]);
        destructure(expander, &pattern, slot, &mut inside)?;
    }
    let inner = followed(Form::vector(inside, form.span), &rest[1..]);
    let looped = call("loop*", vec![Form::vector(slots, form.span), call("let*", inner, form.span)], form.span);
    Ok(call("let*", vec![Form::vector(outside, form.span), body(&[looped], form.span)], form.span))
}
