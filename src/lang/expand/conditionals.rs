//! Conditionals, blocks and `try`.

use super::{Expander, body, call, followed, nil, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

fn if_(test: Form, then: Form, otherwise: Form, span: Span) -> Form {
    call("if", vec![test, then, otherwise], span)
}

/// `(begin …)`, `(progn …)`
pub fn block(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    Ok(call("do", rest.to_vec(), form.span))
}

/// `(comment …)`
pub fn comment(_: &mut Expander<'_>, form: &Form, _rest: &[Form]) -> Outcome<Form> {
    Ok(nil(form.span))
}

/// `(time …)`: the value of the forms; prints the elapsed time by the host's clock.
pub fn time(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let span = form.span;
    let (start, value) = (expander.fresh("start", span), expander.fresh("value", span));
    let now = call("core/now", Vec::new(), span);
    let bindings = vec![start.clone(), now.clone(), value.clone(), call("do", rest.to_vec(), span)];
    let elapsed = call("core/double", vec![call("core/-", vec![now, start], span)], span);
    let text = |text: &str| Form::new(FormKind::Str(text.to_string()), span);
    let line = call("core/str", vec![text("Elapsed time: "), elapsed, text(" msecs")], span);
    let print = call("core/prn", vec![line], span);
    Ok(call("let*", vec![Form::new(FormKind::Vector(bindings), span), print, value], span))
}

/// `(with-precision 10 :rounding HALF_UP …)`: the value; a decimal is rounded to that number of digits.
pub fn with_precision(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let (mode, forms) = match rest {
        [_, option, mode, forms @ ..] if option.as_keyword() == Some("rounding") => {
            (call("quote", vec![mode.clone()], mode.span), forms)
        }
        [_, pairs @ .., _] if pairs.first().is_some_and(|option| option.as_keyword().is_some()) => {
            expander.options("with-precision", &pairs[..2.min(pairs.len())], &["rounding"])?;
            (nil(form.span), &rest[1..])
        }
        _ => (nil(form.span), &rest[1..]),
    };
    Ok(call("core/with-precision*", vec![rest[0].clone(), mode, body(forms, form.span)], form.span))
}

/// `(when test …)`
pub fn when(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(if_(rest[0].clone(), call("do", rest[1..].to_vec(), form.span), nil(form.span), form.span))
}

/// `(when-not test …)`
pub fn when_not(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(if_(rest[0].clone(), nil(form.span), call("do", rest[1..].to_vec(), form.span), form.span))
}

/// `(if-not test then else)`
pub fn if_not(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, 3)?;
    let otherwise = rest.get(2).cloned().unwrap_or_else(|| nil(form.span));
    Ok(if_(rest[0].clone(), otherwise, rest[1].clone(), form.span))
}

/// `(cond test value …)` as in Clojure, or clauses `((test) value …)` as in Scheme and Common Lisp.
pub fn cond(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    // Racket writes clauses in square brackets; a vector is not useful as a test.
    let in_square = rest.iter().all(|clause| clause.as_list().or(clause.as_vector()).is_some_and(|c| c.len() > 1))
        && rest.iter().any(|clause| clause.as_vector().is_some());
    if in_square && rest.first().is_some_and(|clause| clause.as_vector().is_some()) {
        let round = |clause: &Form| match clause.as_vector() {
            Some(items) => Form::list(items.to_vec(), clause.span),
            None => clause.clone(),
        };
        let clauses: Vec<Form> = rest.iter().map(round).collect();
        return cond_clauses(expander, &clauses, form.span);
    }
    if is_clauses(rest) {
        return cond_clauses(expander, rest, form.span);
    }
    if rest.len() % 2 == 1 {
        let last = show(&rest[rest.len() - 1]);
        return expander.fail(
            form.span,
            format!("`cond` takes tests and values in turn; {last} has no value: write `:else` before it"),
        );
    }
    let mut out = nil(form.span);
    for pair in rest.chunks_exact(2).rev() {
        let test = if is_else(&pair[0]) { Form::new(FormKind::Bool(true), pair[0].span) } else { pair[0].clone() };
        out = if_(test, pair[1].clone(), out, pair[0].span.to(pair[1].span));
    }
    Ok(out)
}

/// Returns whether the arguments of `cond` are clauses, each in brackets.
fn is_clauses(rest: &[Form]) -> bool {
    let heads: Option<Vec<&Form>> = rest.iter().map(|clause| clause.as_list().and_then(<[Form]>::first)).collect();
    let Some(heads) = heads else { return false };
    let (Some(first), Some(last)) = (heads.first(), heads.last()) else { return false };
    rest.len() % 2 == 1 || first.as_list().is_some() || is_else(last) || last.is_symbol("t")
}

fn is_else(test: &Form) -> bool {
    test.is_symbol("else") || test.is_symbol("otherwise") || test.as_keyword() == Some("else")
}

fn cond_clauses(expander: &mut Expander<'_>, rest: &[Form], span: Span) -> Outcome<Form> {
    let mut out = nil(span);
    for clause in rest.iter().rev() {
        let Some([test, forms @ ..]) = clause.as_list() else { continue };
        out = match forms {
            _ if is_else(test) => body(forms, clause.span),
            [] => call("or", vec![test.clone(), out], clause.span),
            [arrow, function] if arrow.is_symbol("=>") => {
                let held = expander.fresh("test", clause.span);
                let bindings = Form::vector(vec![held.clone(), test.clone()], clause.span);
                let applied = Form::list(vec![function.clone(), held.clone()], clause.span);
                call("let*", vec![bindings, if_(held, applied, out, clause.span)], clause.span)
            }
            forms => if_(test.clone(), body(forms, clause.span), out, clause.span),
        };
    }
    Ok(out)
}

/// `(case x 1 "one" (2 3) "few" "many")`, or clauses `((2 3) "few") (else "many")`.
pub fn case(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let held = expander.fresh("case", form.span);
    let arms = &rest[1..];
    let last_is_default = |arms: &[Form]| {
        arms.last()
            .and_then(Form::as_list)
            .and_then(<[Form]>::first)
            .is_some_and(|head| is_else(head) || head.is_symbol("t"))
    };
    let is_clauses = !arms.is_empty()
        && arms.iter().all(|arm| arm.as_list().is_some_and(|items| items.len() >= 2))
        && (last_is_default(arms)
            || arms.iter().all(|arm| arm.as_list().is_some_and(|items| items[0].as_list().is_some())));
    let (pairs, default) = if is_clauses {
        let mut pairs: Vec<(Form, Form)> = Vec::new();
        let mut default = None;
        for arm in arms {
            let Some([keys, forms @ ..]) = arm.as_list() else { continue };
            if is_else(keys) || keys.is_symbol("t") {
                default = Some(body(forms, arm.span));
            } else {
                pairs.push((keys.clone(), body(forms, arm.span)));
            }
        }
        (pairs, Some(default.unwrap_or_else(|| nil(form.span))))
    } else {
        let pairs = arms.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        (pairs, (arms.len() % 2 == 1).then(|| arms[arms.len() - 1].clone()))
    };
    let mut seen: Vec<Form> = Vec::new();
    for (keys, _) in &pairs {
        let constants = keys.as_list().unwrap_or(std::slice::from_ref(keys));
        for constant in constants {
            expander.macros.charge(seen.len() as u64)?;
            if seen.contains(constant) {
                let shown = show(constant);
                return expander.fail(constant.span, format!("{shown} appears twice among the constants of `case`"));
            }
            seen.push(constant.clone());
        }
    }
    let mut out = default.unwrap_or_else(|| call("core/no-case*", vec![held.clone()], form.span));
    for (keys, value) in pairs.into_iter().rev() {
        let constants = match &keys.kind {
            FormKind::List(constants) => constants.clone(),
            _ => vec![keys.clone()],
        };
        let tests = constants
            .into_iter()
            .map(|constant| call("core/=", vec![held.clone(), call("quote", vec![constant], keys.span)], keys.span))
            .collect::<Vec<_>>();
        let test = if tests.len() == 1 { tests[0].clone() } else { call("or", tests, keys.span) };
        out = if_(test, value, out, keys.span);
    }
    let bindings = Form::vector(vec![held, rest[0].clone()], form.span);
    Ok(call("let*", vec![bindings, out], form.span))
}

/// `(condp pred expr a x, b :>> f, default)`
pub fn condp(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let predicate = expander.fresh("predicate", form.span);
    let held = expander.fresh("expression", form.span);
    let mut arms: Vec<(Form, Form, bool)> = Vec::new();
    let mut at = 2;
    let mut default = call("core/no-case*", vec![held.clone()], form.span);
    while at < rest.len() {
        match &rest[at..] {
            [test, arrow, function, ..] if arrow.as_keyword() == Some(">>") => {
                arms.push((test.clone(), function.clone(), true));
                at += 3;
            }
            [test, value, ..] => {
                arms.push((test.clone(), value.clone(), false));
                at += 2;
            }
            [only, ..] => {
                default = only.clone();
                at += 1;
            }
            [] => break,
        }
    }
    let mut out = default;
    for (test, value, passes) in arms.into_iter().rev() {
        let tested = Form::list(vec![predicate.clone(), test.clone(), held.clone()], test.span);
        out = if passes {
            let result = expander.fresh("result", test.span);
            let bindings = Form::vector(vec![result.clone(), tested], test.span);
            let applied = Form::list(vec![value, result.clone()], test.span);
            call("let*", vec![bindings, if_(result, applied, out, test.span)], test.span)
        } else {
            if_(tested, value, out, test.span)
        };
    }
    let bindings = Form::vector(vec![predicate, rest[0].clone(), held, rest[1].clone()], form.span);
    Ok(call("let*", vec![bindings, out], form.span))
}

/// Parses the binding of `if-let` and its kin: one pattern and one value.
fn binding(expander: &Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<(Form, Form)> {
    expander.count(form, rest, 1, usize::MAX)?;
    match &rest[0].kind {
        FormKind::Vector(items) if items.len() == 2 => Ok((items[0].clone(), items[1].clone())),
        FormKind::List(items) if items.len() == 2 && items[0].as_symbol().is_some() => {
            Ok((items[0].clone(), items[1].clone()))
        }
        FormKind::List(items) if items.len() == 1 && items[0].as_list().is_some_and(|pair| pair.len() == 2) => {
            let pair = items[0].as_list().unwrap_or_default();
            Ok((pair[0].clone(), pair[1].clone()))
        }
        _ => expander.fail(rest[0].span, format!("expected one binding `[name value]`, got {}", show(&rest[0]))),
    }
}

/// `(let* [held value] (if test (let [pattern held] then) else))`, where `test` is made from `held`.
fn binding_if(
    expander: &mut Expander<'_>,
    (pattern, value): (Form, Form),
    test: impl FnOnce(Form) -> Form,
    then: &[Form],
    otherwise: Form,
    span: Span,
) -> Form {
    let held = expander.fresh("value", span);
    let bound = followed(Form::vector(vec![pattern, held.clone()], span), then);
    let bindings = Form::vector(vec![held.clone(), value], span);
    call("let*", vec![bindings, if_(test(held), call("let", bound, span), otherwise, span)], span)
}

/// `(if-let [x value] then else)`
pub fn if_let(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, 3)?;
    let binding = binding(expander, form, rest)?;
    let otherwise = rest.get(2).cloned().unwrap_or_else(|| nil(form.span));
    Ok(binding_if(expander, binding, |held| held, &rest[1..2], otherwise, form.span))
}

/// `(if-some [x value] then else)`
pub fn if_some(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, 3)?;
    let binding = binding(expander, form, rest)?;
    let otherwise = rest.get(2).cloned().unwrap_or_else(|| nil(form.span));
    Ok(binding_if(expander, binding, |held| is_some(held, form.span), &rest[1..2], otherwise, form.span))
}

fn is_some(form: Form, span: Span) -> Form {
    call("core/some?", vec![form], span)
}

/// `(when-let [x value] …)`
pub fn when_let(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let binding = binding(expander, form, rest)?;
    Ok(binding_if(expander, binding, |held| held, &rest[1..], nil(form.span), form.span))
}

/// `(when-some [x value] …)`
pub fn when_some(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let binding = binding(expander, form, rest)?;
    Ok(binding_if(expander, binding, |held| is_some(held, form.span), &rest[1..], nil(form.span), form.span))
}

/// `(when-first [x coll] …)`
pub fn when_first(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let (pattern, collection) = binding(expander, form, rest)?;
    let held = expander.fresh("items", form.span);
    let sequence = call("core/seq", vec![collection], form.span);
    let first = call("core/first", vec![held.clone()], form.span);
    let bound = followed(Form::vector(vec![pattern, first], form.span), &rest[1..]);
    let bindings = Form::vector(vec![held.clone(), sequence], form.span);
    Ok(call("let*", vec![bindings, if_(held, call("let", bound, form.span), nil(form.span), form.span)], form.span))
}

/// Expands the special form `try` to `(try body (catch name handler) (finally last))`.
pub fn expand_try(expander: &mut Expander<'_>, form: &mut Form) -> Outcome<()> {
    let span = form.span;
    let FormKind::List(items) = &mut form.kind else { return Ok(()) };
    let is_clause = |item: &Form| item.is_call_of("catch") || item.is_call_of("finally");
    let first_clause = items.iter().position(is_clause).unwrap_or(items.len());
    let clauses = items.split_off(first_clause);
    let forms = items.split_off(1);
    items.push(part_of_try(expander, forms, span)?);
    let count = clauses.len();
    for (at, mut clause) in clauses.into_iter().enumerate() {
        let span = clause.span;
        let FormKind::List(parts) = &mut clause.kind else {
            return expander.fail(span, NO_CLAUSE.to_string());
        };
        match parts.first().and_then(Form::as_symbol) {
            Some("finally") => {
                if at + 1 < count {
                    return expander.fail(span, "`finally` must be the last clause of `try`".to_string());
                }
                let last = part_of_try(expander, parts.split_off(1), span)?;
                items.push(call("finally", vec![last], span));
            }
            Some("catch") => {
                let (name, handler) = catch_clause(expander, span, parts)?;
                let class = if handler == 3 { class_of(&parts[1]) } else { None };
                let handler = parts.split_off(handler);
                let outer = expander.locals.len();
                expander.bind(&name);
                let handler = part_of_try(expander, handler, span)?;
                expander.locals.truncate(outer);
                items.push(call("catch", [name, handler].into_iter().chain(class).collect(), span));
            }
            _ => return expander.fail(span, NO_CLAUSE.to_string()),
        }
    }
    Ok(())
}

const NO_CLAUSE: &str = "only `catch` and `finally` may follow a `catch` in `try`";

/// Expands the body, a handler or the `finally` forms of a `try` to one form.
fn part_of_try(expander: &mut Expander<'_>, forms: Vec<Form>, span: Span) -> Outcome<Form> {
    let mut block = call("do", forms, span);
    expander.expand_body(&mut block, 1, span)?;
    Ok(block)
}

/// The class in `(catch Class e …)` without its package, as a string; `None` if it is that of every exception, such as
/// `:default` and names of other languages (`js/Error`).
fn class_of(class: &Form) -> Option<Form> {
    let name = class.as_symbol().filter(|name| !name.contains('/') && *name != "_")?;
    let base = name.rsplit(['.', '$']).next().unwrap_or(name);
    (base != "Throwable").then(|| Form::new(FormKind::Str(base.to_string()), class.span))
}

/// Parses `(catch Class e …)`, `(catch :default e …)` or `(catch e …)`: returns the name, and the index of the first
/// handler form among the parts.
fn catch_clause(expander: &Expander<'_>, span: Span, parts: &[Form]) -> Outcome<(Form, usize)> {
    let is_class = |form: &Form| {
        form.as_keyword().is_some()
            || form.as_symbol().is_some_and(|name| {
                name.contains('.')
                    || name.rsplit('/').next().is_some_and(|base| base.starts_with(char::is_uppercase))
                    || name == "_"
            })
    };
    match parts {
        [_, class, name, ..] if is_class(class) && name.as_symbol().is_some() => Ok((name.clone(), 3)),
        [_, name, handler @ ..] if name.as_symbol().is_some() && (!is_class(name) || !handler.is_empty()) => {
            Ok((name.clone(), 2))
        }
        [_, Form { kind: FormKind::List(names), .. }, ..] if names.len() == 1 && names[0].as_symbol().is_some() => {
            Ok((names[0].clone(), 2))
        }
        _ => expander.fail(span, "write `(catch Exception e …)`".to_string()),
    }
}
