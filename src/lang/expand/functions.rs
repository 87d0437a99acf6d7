//! `fn`, `lambda` and macros whose arguments become functions: `delay`, `lazy-seq`, `pcalls`, `parallel`.

use super::destructure::destructure;
use super::{Expander, call, followed, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::resolve::is_display_name;
use crate::span::Span;

/// `(fn name? [x] …)` and `(fn name? ([x] …) ([x y] …))`: patterns and conditions move into the body.
pub fn function(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let (name, rest) = match rest.first() {
        Some(first) if first.as_symbol().is_some() || is_display_name(first) => (Some(first.clone()), &rest[1..]),
        _ => (None, rest),
    };
    let mut arities = Vec::new();
    // `(fn (x y) …)`: parameters in round brackets.
    let in_round = |items: &[Form]| items.iter().all(|item| item.as_symbol().is_some()) && rest.len() > 1;
    match rest.first().map(|first| &first.kind) {
        Some(FormKind::List(items)) if in_round(items) => {
            arities.push(arity(expander, &scheme_parameters(&rest[0]), &rest[1..], form.span)?);
        }
        Some(FormKind::Vector(_)) => arities.push(arity(expander, &rest[0], &rest[1..], form.span)?),
        Some(FormKind::List(_)) => {
            for clause in rest {
                match clause.as_list() {
                    Some([parameters, body @ ..]) if parameters.as_vector().is_some() => {
                        arities.push(arity(expander, parameters, body, clause.span)?);
                    }
                    _ => {
                        return expander
                            .fail(clause.span, format!("the parameters of the function are missing, `(fn [x] …)` or `(defn name [] …)`: got {}", show(clause)));
                    }
                }
            }
        }
        _ => {
            let came = rest.first().map_or_else(|| "nothing".to_string(), show);
            return expander
                .fail(form.span, format!("`fn` takes a vector of parameters, as in `(fn [x] …)`, got {came}"));
        }
    }
    let items = name.into_iter().chain(arities).collect();
    Ok(call("fn*", items, form.span))
}

/// Builds one arity with plain parameters: `([x y] …)`.
fn arity(expander: &mut Expander<'_>, parameters: &Form, forms: &[Form], span: Span) -> Outcome<Form> {
    let mut plain = Vec::new();
    let mut patterns = Vec::new();
    let items = parameters.as_vector().unwrap_or_default();
    let mut rest = false;
    for item in items {
        if item.is_symbol("&") || item.is_symbol("&rest") || item.is_symbol("&optional") {
            rest = true;
            plain.push(Form::symbol("&", item.span));
        } else if item.as_symbol().is_some() {
            plain.push(item.clone());
        } else {
            let held = expander.fresh("argument", item.span);
            let value = if rest && matches!(item.kind, FormKind::Map(_)) {
                call("core/options*", vec![held.clone()], item.span)
            } else {
                held.clone()
            };
            plain.push(held);
            destructure(expander, item, value, &mut patterns)?;
        }
    }
    let forms = conditions(expander, forms, span);
    let mut arity = vec![Form::vector(plain, parameters.span)];
    if patterns.is_empty() {
        arity.extend(forms);
    } else {
        let mut inner = vec![Form::vector(patterns, parameters.span)];
        inner.extend(forms);
        arity.push(call("let*", inner, span));
    }
    Ok(Form::list(arity, span))
}

/// Adds the checks to a body whose first form is `{:pre [...] :post [...]}`.
fn conditions(expander: &Expander<'_>, forms: &[Form], span: Span) -> Vec<Form> {
    let [Form { kind: FormKind::Map(map), .. }, body @ ..] = forms else { return forms.to_vec() };
    let is_conditions = map.chunks_exact(2).all(|pair| matches!(pair[0].as_keyword(), Some("pre" | "post")));
    if body.is_empty() || map.is_empty() || !is_conditions {
        return forms.to_vec();
    }
    let checks = |name: &str| -> Vec<Form> {
        map.chunks_exact(2)
            .filter(|pair| pair[0].as_keyword() == Some(name))
            .flat_map(|pair| pair[1].as_vector().unwrap_or_default())
            .map(|check| asserted(expander, check, Form::new(FormKind::Nil, check.span)))
            .collect()
    };
    let mut out = checks("pre");
    let post = checks("post");
    if post.is_empty() {
        out.extend_from_slice(body);
    } else {
        let result = Form::symbol("%", span);
        let bindings = Form::vector(vec![result.clone(), call("do", body.to_vec(), span)], span);
        out.push(call("let*", [vec![bindings], post, vec![result]].concat(), span));
    }
    out
}

/// `(assert* check message "check")`: the error names the form of the check.
fn asserted(expander: &Expander<'_>, check: &Form, message: Form) -> Form {
    let (start, end) = (check.span.start as usize, check.span.end as usize);
    // A literal says nothing that its value does not say.
    let is_literal = matches!(check.kind, FormKind::Nil | FormKind::Bool(_));
    let written = expander.source.text.get(start..end).filter(|_| !is_literal).unwrap_or_default();
    let mut text = written.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = text.char_indices().nth(MOST_OF_CHECK) {
        text.truncate(cut);
        text.push('…');
    }
    let text = Form::new(FormKind::Str(text), check.span);
    call("core/assert*", vec![check.clone(), message, text], check.span)
}

/// Maximum length of the form in the message of an assertion, in characters.
const MOST_OF_CHECK: usize = 120;

/// Rewrites `(assert x)` and `(assert x message)` so that its error names the form; `None` for other numbers of
/// arguments.
pub fn assertion(expander: &Expander<'_>, rest: &[Form]) -> Option<Form> {
    match rest {
        [check] => Some(asserted(expander, check, Form::new(FormKind::Nil, check.span))),
        [check, message] => Some(asserted(expander, check, message.clone())),
        _ => None,
    }
}

/// `(lambda (x y) …)`, `(lambda all …)`, `(lambda (x . rest) …)`.
pub fn lambda(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let parameters = scheme_parameters(&rest[0]);
    Ok(call("fn", followed(parameters, &rest[1..]), form.span))
}

/// Converts Scheme's and Common Lisp's parameter lists to Clojure's vectors.
pub fn scheme_parameters(form: &Form) -> Form {
    let dotted = |item: &Form| {
        let rest = item.is_symbol(".") || item.is_symbol("&rest");
        match item.as_list() {
            _ if rest => Form::symbol("&", item.span),
            // `(lambda ((a b)) …)`: a destructured pair or list.
            Some(_) => super::dialects::pattern(item),
            None => item.clone(),
        }
    };
    match &form.kind {
        FormKind::List(items) => {
            let mut parameters: Vec<Form> = items.iter().map(dotted).collect();
            // Optional parameters are taken from the rest argument.
            if let Some(at) = items.iter().position(|item| item.is_symbol("&optional")) {
                let optional = parameters.split_off(at + 1);
                parameters[at] = Form::symbol("&", form.span);
                parameters.push(Form::vector(optional, form.span));
            }
            Form::vector(parameters, form.span)
        }
        FormKind::Symbol(_) => Form::vector(vec![Form::symbol("&", form.span), form.clone()], form.span),
        _ => form.clone(),
    }
}

/// Expands the special form `fn*`: each body, with its parameters in scope.
pub fn expand_fn(expander: &mut Expander<'_>, form: &mut Form) -> Outcome<()> {
    let span = form.span;
    let FormKind::List(items) = &mut form.kind else { return Ok(()) };
    let is_named = items.get(1).is_some_and(|first| first.as_symbol().is_some() || is_display_name(first));
    let first = if is_named { 2 } else { 1 };
    // The reader produces `#(…)` as a single arity without its list.
    if items.get(first).is_some_and(|parameters| parameters.as_vector().is_some()) {
        let arity = items.split_off(first);
        items.push(Form::list(arity, span));
    }
    let outer = expander.locals.len();
    if is_named {
        expander.bind(&items[1]);
    }
    for arity in &mut items[first..] {
        arity.metadata = None;
        let Some([parameters, ..]) = arity.as_list() else {
            return expander.fail(arity.span, "an arity of a function is `([x] …)`".to_string());
        };
        let inner = expander.locals.len();
        for parameter in parameters.as_vector().unwrap_or_default() {
            if parameter.as_symbol().is_none() {
                return expander
                    .fail(parameter.span, format!("a parameter of `fn*` is a name, got {}", show(parameter)));
            }
            expander.bind(parameter);
        }
        expander.expand_body(arity, 1, arity.span)?;
        expander.locals.truncate(inner);
    }
    expander.locals.truncate(outer);
    Ok(())
}

/// Builds a function without parameters.
pub fn thunk(forms: &[Form], span: Span) -> Form {
    call("fn*", followed(Form::vector(Vec::new(), span), forms), span)
}

/// `(delay …)`
pub fn delay(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    Ok(call("core/delay*", vec![thunk(rest, form.span)], form.span))
}

/// `(lazy-seq …)`
pub fn lazy_seq(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    Ok(call("core/lazy-seq*", vec![thunk(rest, form.span)], form.span))
}

/// `(lazy-cat xs ys)`
pub fn lazy_cat(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let parts = rest.iter().map(|part| call("lazy-seq", vec![part.clone()], part.span)).collect();
    Ok(call("core/concat", parts, form.span))
}

/// `(pcalls (f) (g))`: Clojure's `pcalls` takes functions without parameters, but models pass calls. Each argument is
/// wrapped; a function without parameters that results is called.
pub fn pcalls(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let thunks = rest.iter().map(|call| thunk(std::slice::from_ref(call), call.span)).collect();
    Ok(call("core/pcalls*", thunks, form.span))
}

/// `(parallel {:a (f) :b (g)})`, `(parallel [(f) (g)])`: like `pcalls`, with each result in the place of its call.
pub fn parallel(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 1)?;
    let span = form.span;
    let beside = |calls: Vec<Form>| call("pcalls", calls, span);
    match &rest[0].kind {
        FormKind::Vector(calls) => Ok(call("core/vec", vec![beside(calls.clone())], span)),
        FormKind::Map(pairs) => {
            let keys = Form::new(FormKind::Vector(pairs.iter().step_by(2).cloned().collect()), rest[0].span);
            let calls = pairs.iter().skip(1).step_by(2).cloned().collect();
            Ok(call("core/zipmap", vec![keys, beside(calls)], span))
        }
        _ => {
            let message = format!(
                "`parallel` expected a literal map or vector, as in `(parallel {{:a (f) :b (g)}})`, got {}; `(pmap f items)` takes any collection",
                show(&rest[0])
            );
            expander.fail(rest[0].span, message)
        }
    }
}
