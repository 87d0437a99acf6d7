//! Forms of other Lisps: Common Lisp's `flet` and `dolist`, Scheme's `let-values`, `case-lambda` and `do`, Emacs Lisp's
//! `if-let*`. Each is converted to the equivalent Clojure form.

use super::functions::scheme_parameters;
use super::letting::mentions;
use super::{Expander, body, call, followed, nil, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// `(defparameter *name* value "doc")`, `(defconst name value)`
pub fn defparameter(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, 3)?;
    Ok(call("def", named_value(rest), form.span))
}

/// `(defvar name value "doc")`: defines the name only if it is not defined yet.
pub fn defvar(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 3)?;
    let known = rest[0].as_symbol().is_some_and(|name| expander.macros.is_defined(name));
    if known {
        return Ok(nil(form.span));
    }
    let arguments = if rest.len() == 1 { vec![rest[0].clone(), nil(form.span)] } else { named_value(rest) };
    Ok(call("def", arguments, form.span))
}

/// Reorders name, doc string and value to Clojure's order.
fn named_value(rest: &[Form]) -> Vec<Form> {
    match rest {
        [name, value, doc] => vec![name.clone(), doc.clone(), value.clone()],
        other => other.to_vec(),
    }
}

/// `(flet ((f (x) …)) …)`, `(labels …)`
pub fn labels(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let (FormKind::List(functions) | FormKind::Vector(functions)) = &rest[0].kind else {
        return expander.fail(rest[0].span, format!("expected functions `((f (x) …))`, got {}", show(&rest[0])));
    };
    let mut flat = Vec::new();
    for function in functions {
        let Some([name, parameters, forms @ ..]) = function.as_list() else {
            return expander.fail(function.span, format!("a function is `(name (x) …)` here, got {}", show(function)));
        };
        let lambda = [vec![name.clone(), scheme_parameters(parameters)], forms.to_vec()].concat();
        flat.push(Form::list(lambda, function.span));
    }
    Ok(call("letfn", followed(Form::vector(flat, rest[0].span), &rest[1..]), form.span))
}

/// `(dolist (x xs result) …)`
pub fn dolist(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    match &rest[0].kind {
        FormKind::List(items) | FormKind::Vector(items) if matches!(items.len(), 2 | 3) => {
            let bindings = Form::vector(items[..2].to_vec(), rest[0].span);
            let each = call("doseq", followed(bindings, &rest[1..]), form.span);
            Ok(match items.get(2) {
                Some(result) => call("do", vec![each, result.clone()], form.span),
                None => each,
            })
        }
        _ => expander.fail(rest[0].span, format!("`dolist` takes `(x xs)`, got {}", show(&rest[0]))),
    }
}

/// `(prog1 value …)`: returns the value of the first form.
pub fn prog1(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let held = expander.fresh("first", form.span);
    let bindings = Form::vector(vec![held.clone(), rest[0].clone()], form.span);
    Ok(call("let*", [vec![bindings], rest[1..].to_vec(), vec![held]].concat(), form.span))
}

/// `(let-values (((q r) (values 1 2))) …)`
pub fn let_values(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let mut bindings = Vec::new();
    for pair in rest[0].as_list().or(rest[0].as_vector()).unwrap_or_default() {
        let Some([names, value]) = pair.as_list().or(pair.as_vector()) else {
            return expander.fail(pair.span, format!("expected `((a b) value)`, got {}", show(pair)));
        };
        bindings.extend([pattern(names), value.clone()]);
    }
    Ok(call("let", followed(Form::vector(bindings, rest[0].span), &rest[1..]), form.span))
}

/// `(multiple-value-bind (a b) value …)`, `(receive (a b) value …)`, `(destructuring-bind (a (b)) value …)`
pub fn bind_values(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let bindings = Form::vector(vec![pattern(&rest[0]), rest[1].clone()], rest[0].span);
    Ok(call("let", followed(bindings, &rest[2..]), form.span))
}

/// Converts a list of names, possibly nested, to a pattern: `(a (b &rest c))` becomes `[a [b & c]]`.
pub(super) fn pattern(names: &Form) -> Form {
    let Some(items) = names.as_list() else { return names.clone() };
    let items = items.iter().map(|item| match item.as_symbol() {
        Some("&rest" | "&body" | "&optional") => Form::symbol("&", item.span),
        _ => pattern(item),
    });
    Form::vector(items.collect(), names.span)
}

/// `(case-lambda ((x) …) ((x y) …))`
pub fn case_lambda(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let mut arities = Vec::new();
    for clause in rest {
        let Some([parameters, forms @ ..]) = clause.as_list() else {
            return expander.fail(clause.span, format!("a clause is `((x y) …)`, got {}", show(clause)));
        };
        arities.push(Form::list(followed(scheme_parameters(parameters), forms), clause.span));
    }
    Ok(call("fn", arities, form.span))
}

/// `(when-let* ((a x) (b y)) …)`, `(when-let* [a x b y] …)`, `(and-let* …)`
pub fn when_let_all(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let inner = body(&rest[1..], form.span);
    Ok(nested(expander, &rest[0], inner, &nil(form.span), form.span))
}

/// `(if-let* ((a x) (b y)) then else)`
pub fn if_let_all(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    // Emacs Lisp allows several forms in the `else` branch.
    let otherwise = if rest.len() > 2 { body(&rest[2..], form.span) } else { nil(form.span) };
    Ok(nested(expander, &rest[0], rest[1].clone(), &otherwise, form.span))
}

/// Builds nested `if-let`s, one for each binding.
fn nested(_: &Expander<'_>, bindings: &Form, inner: Form, otherwise: &Form, span: Span) -> Form {
    let items = bindings.as_list().or(bindings.as_vector()).unwrap_or_default();
    let in_pairs = items.iter().all(|item| item.as_list().or(item.as_vector()).is_some());
    let pairs: Vec<Vec<Form>> = if in_pairs {
        items.iter().map(|pair| pair.as_list().or(pair.as_vector()).unwrap_or_default().to_vec()).collect()
    } else {
        items.chunks(2).map(<[Form]>::to_vec).collect()
    };
    pairs.into_iter().rev().fold(inner, |inner, pair| match pair.len() {
        2 => call("if-let", vec![Form::vector(pair, bindings.span), inner, otherwise.clone()], span),
        _ => call("if", [pair, vec![inner, otherwise.clone()]].concat(), span),
    })
}

/// Converts Scheme's `(do ((i 0 (+ i 1)) (acc '() (cons i acc))) ((= i 3) acc) …)` to a loop; `None` for Clojure's
/// `do`, whose first form is not a list of such bindings. At least one step or the test must depend on a variable.
pub fn scheme_do(expander: &Expander<'_>, rest: &[Form], span: Span) -> Option<Form> {
    let [bindings, end, forms @ ..] = rest else { return None };
    let bindings = bindings.as_list()?;
    let end = end.as_list()?;
    let mut flat = Vec::new();
    let mut again = Vec::new();
    for binding in bindings {
        let items = binding.as_list()?;
        let (name, start) = (items.first()?, items.get(1)?);
        let known = name.as_symbol()?;
        if items.len() > 3 || expander.is_local(known) || expander.macros.is_defined(known) {
            return None;
        }
        flat.extend([name.clone(), start.clone()]);
        again.push(items.get(2).unwrap_or(name).clone());
    }
    let steps: Vec<&Form> = bindings.iter().filter_map(|binding| binding.as_list()?.get(2)).collect();
    let test = end.first()?;
    // Clojure's `(do ((partial f 1)) (g 2))` has the same form, but neither a step nor the test depends on a variable.
    let depends = |form: &Form| flat.iter().step_by(2).filter_map(Form::as_symbol).any(|name| mentions(form, name));
    if steps.is_empty() || !steps.iter().copied().chain([test]).any(depends) {
        return None;
    }
    let result = body(&end[1..], span);
    let round = call("do", [forms.to_vec(), vec![call("recur", again, span)]].concat(), span);
    let step = call("if", vec![test.clone(), result, round], span);
    Some(call("loop", vec![Form::vector(flat, span), step], span))
}

/// `(null x)`: true for nil and the empty list. The bare name is nil, as in other languages.
pub fn null(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 1)?;
    Ok(call("core/null?", rest.to_vec(), form.span))
}

/// Functions of Common Lisp and Emacs Lisp whose first argument is a function, quoted as in `'car`.
const OF_QUOTED: &[&str] = &[
    "funcall",
    "mapcar",
    "mapc",
    "mapcan",
    "mapconcat",
    "remove-if",
    "remove-if-not",
    "delete-if",
    "delete-if-not",
    "find-if",
    "count-if",
    "position-if",
    "apply",
    "reduce",
    "every",
    "some",
    "cl-reduce",
    "cl-remove-if",
    "cl-remove-if-not",
    "cl-find-if",
    "cl-some",
    "cl-every",
    "seq-filter",
    "seq-map",
    "seq-reduce",
    "seq-remove",
    "seq-find",
    "seq-some",
    "seq-every-p",
    "seq-count",
    "seq-sort",
    "seq-group-by",
];

/// Returns the index of an argument that is a quoted function to be used without its quote: `(mapcar 'car xs)` means
/// `(mapcar car xs)`, and `(sort xs '<)` likewise. The argument of `apply` may be a symbol to look up, as in
/// `(apply 'a [{'a 1}])`, so there the name must be a known function.
pub fn unquoted_function(expander: &Expander<'_>, head: &str, rest: &[Form]) -> Option<usize> {
    let at = usize::from(head == "sort");
    let [quote, name] = rest.get(at)?.as_list()? else { return None };
    let known = name.as_symbol().filter(|_| quote.is_symbol("quote"))?;
    if head != "sort" && !OF_QUOTED.contains(&head) {
        return None;
    }
    let is_function =
        expander.is_local(known) || expander.macros.is_defined(known) || expander.macros.means_the_same(known, known);
    (head != "apply" || is_function).then_some(at)
}
