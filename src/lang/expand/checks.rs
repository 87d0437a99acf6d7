//! `is`, `are`, `testing` and `deftest`, as in Clojure. A check is an ordinary form, a test a function.

use super::{Expander, body, call, nil};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// `(is (= 4 (f 2)) "why"?)`, `(is (thrown? E (f nil)))`: the value of the check; a failure is printed.
pub fn is(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 2)?;
    let span = form.span;
    let checked = match rest[0].as_list() {
        Some([head, class, forms @ ..]) if head.is_symbol("thrown?") => caught(expander, class, None, forms, span),
        Some([head, class, pattern, forms @ ..]) if head.is_symbol("thrown-with-msg?") => {
            caught(expander, class, Some(pattern), forms, span)
        }
        _ => rest[0].clone(),
    };
    let value = expander.fresh("value", span);
    let told = report("FAIL", rest, Vec::new(), value.clone(), span);
    let passed = call("do", vec![counted("pass", span), value.clone()], span);
    let told = call("if", vec![value.clone(), passed, told], span);
    let check = call("let*", vec![Form::vector(vec![value, checked], span), told], span);
    Ok(guarded(expander, check, rest, span))
}

/// Wraps a check so that an error is reported as its result, and the following checks still run.
fn guarded(expander: &mut Expander<'_>, form: Form, check: &[Form], span: Span) -> Form {
    let error = expander.fresh("error", span);
    let message = call("core/ex-message", vec![error.clone()], span);
    let told = report("ERROR", check, vec![message], nil(span), span);
    call("try", vec![form, call("catch", vec![Form::symbol("Throwable", span), error, told], span)], span)
}

/// Prints and counts the outcome of a check with its message, then returns the value.
fn report(outcome: &str, check: &[Form], more: Vec<Form>, value: Form, span: Span) -> Form {
    let mut words = vec![Form::new(FormKind::Str(outcome.to_string()), span)];
    words.extend(check.get(1).cloned());
    words.push(call("core/pr-str", vec![call("quote", vec![check[0].clone()], span)], span));
    words.extend(more);
    call("do", vec![call("core/println", words, span), counted(&outcome.to_lowercase(), span), value], span)
}

fn counted(outcome: &str, span: Span) -> Form {
    call("core/count-check*", vec![Form::new(FormKind::Keyword(outcome.to_string()), span)], span)
}

/// Returns the error that the forms raise, if its message matches; else nil.
fn caught(expander: &mut Expander<'_>, class: &Form, pattern: Option<&Form>, forms: &[Form], span: Span) -> Form {
    let error = expander.fresh("error", span);
    let answer = match pattern {
        None => error.clone(),
        Some(pattern) => {
            let message = call("core/ex-message", vec![error.clone()], span);
            call("if", vec![call("core/re-find", vec![pattern.clone(), message], span), error.clone(), nil(span)], span)
        }
    };
    let tried = call("do", vec![body(forms, span), nil(span)], span);
    call("try", vec![tried, call("catch", vec![class.clone(), error, answer], span)], span)
}

/// `(are [x y] (= x y) 1 1, 2 (inc 1))`: one check for each row.
pub fn are(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let names = rest[0].as_vector().unwrap_or_default();
    let values = &rest[2..];
    if names.is_empty() || !values.len().is_multiple_of(names.len()) {
        let message = "`are` takes names, a form and rows of values: `(are [x y] (= x y) 1 1, 2 (inc 1))`";
        return expander.fail(form.span, message.to_string());
    }
    let rows = values.chunks_exact(names.len()).map(|row| call("is", vec![filled(&rest[1], names, row)], form.span));
    Ok(body(&rows.collect::<Vec<_>>(), form.span))
}

/// `(do-template [name n] (def name n) a 1, b 2)`: one copy of the form for each row.
pub fn do_template(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let Some(names) = rest[0].as_vector().filter(|names| !names.is_empty()) else {
        let message = "`do-template` takes names, a form and rows of values: `(do-template [x y] (f x y) 1 2, 3 4)`";
        return expander.fail(form.span, message.to_string());
    };
    let rows = rest[2..].chunks_exact(names.len()).map(|row| filled(&rest[1], names, row));
    Ok(call("do", rows.collect(), form.span))
}

/// Substitutes values for names in a form.
fn filled(form: &Form, names: &[Form], values: &[Form]) -> Form {
    if let Some(at) = names.iter().position(|name| name == form) {
        return values[at].clone();
    }
    let all = |items: &[Form]| items.iter().map(|item| filled(item, names, values)).collect::<Vec<_>>();
    let kind = match &form.kind {
        FormKind::List(items) => FormKind::List(all(items)),
        FormKind::Vector(items) => FormKind::Vector(all(items)),
        FormKind::Map(items) => FormKind::Map(all(items)),
        FormKind::Set(items) => FormKind::Set(all(items)),
        _ => return form.clone(),
    };
    Form { kind, ..form.clone() }
}

/// `(testing "what" …)`: evaluates the forms.
pub fn testing(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(body(&rest[1..], form.span))
}

/// `(deftest name …)`: defines a function that runs the checks.
pub fn deftest(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let name = rest[0].clone();
    let body = call("do", rest[1..].to_vec(), form.span);
    let body = guarded(expander, body, std::slice::from_ref(&name), form.span);
    let function = call("defn", vec![name.clone(), Form::vector(Vec::new(), form.span), body], form.span);
    let noted = call("core/note-test*", vec![call("quote", vec![name], form.span)], form.span);
    Ok(call("do", vec![noted, function], form.span))
}

/// `(use-fixtures :each f …)`
pub fn use_fixtures(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    Ok(call("core/use-fixtures*", rest.to_vec(), form.span))
}
