//! Definitions: `defn`, `define`, `defun`, `defmacro`, `declare`, `defonce`, and inner `define`s.

use super::functions::scheme_parameters;
use super::{Expander, body, call, nil, plain, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::resolve::IMPLICIT;
use crate::span::Span;

/// `(defn name "doc"? {attributes}? [x] …)`
pub fn defn(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    define_function(expander, form, rest, "def")
}

/// `(defmacro name [form] …)`
pub fn defmacro(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    define_function(expander, form, rest, "core/defmacro*")
}

fn define_function(expander: &mut Expander<'_>, form: &Form, rest: &[Form], define: &str) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let name = &rest[0];
    if name.as_symbol().is_none() {
        return expander.fail(name.span, format!("a definition needs a name, got {}", show(name)));
    }
    let mut parts = &rest[1..];
    let mut doc = None;
    let mut attributes = match name.metadata.as_deref() {
        Some(Form { kind: FormKind::Map(pairs), .. }) => pairs.clone(),
        _ => Vec::new(),
    };
    if form.is_call_of("defn-") {
        set_attribute(&mut attributes, "private", Form::new(FormKind::Bool(true), name.span));
    }
    if let [first @ Form { kind: FormKind::Str(_), .. }, more @ ..] = parts
        && !more.is_empty()
    {
        doc = Some(first.clone());
        parts = more;
    }
    if let [Form { kind: FormKind::Map(pairs), .. }, more @ ..] = parts
        && !more.is_empty()
    {
        add_attributes(&mut attributes, pairs);
        parts = more;
    }
    // `(defn f ([x] …) ([x y] …) {attributes})`
    if let [clauses @ .., Form { kind: FormKind::Map(pairs), .. }] = parts
        && !clauses.is_empty()
        && clauses.iter().all(is_arity)
    {
        add_attributes(&mut attributes, pairs);
        parts = clauses;
    }
    // `(defn f (x y) …)`: parameters in round brackets.
    let scheme = parts
        .first()
        .and_then(Form::as_list)
        .is_some_and(|items| items.iter().all(|item| item.as_symbol().is_some()) && parts.len() > 1);
    // Named by a string, not by a symbol: the function calls itself through its definition.
    let mut function = vec![Form::new(FormKind::Str(plain(name).to_string()), name.span)];
    if scheme {
        function.push(scheme_parameters(&parts[0]));
        parts = &parts[1..];
        // Common Lisp puts the doc string after the parameters.
        if let [first @ Form { kind: FormKind::Str(_), .. }, more @ ..] = parts
            && !more.is_empty()
        {
            doc = Some(first.clone());
            parts = more;
        }
    }
    function.extend_from_slice(parts);
    if define == "core/defmacro*" {
        let has_arities = is_arity(&function[1]);
        let parameters = if has_arities { &mut function[1..] } else { &mut function[1..2] };
        parameters.iter_mut().for_each(with_implicit_parameters);
    }
    if doc.is_some() {
        remove_attribute(&mut attributes, "doc");
    }
    let function = call("fn", function, form.span);
    let name = with_attributes(name, attributes);
    let arguments = std::iter::once(name).chain(doc).chain([function]).collect();
    Ok(call(define, arguments, form.span))
}

/// `([x] …)`
fn is_arity(form: &Form) -> bool {
    form.as_list().and_then(<[Form]>::first).is_some_and(|parameters| parameters.as_vector().is_some())
}

/// Inserts `&form` and `&env` before the parameters `[x]`, or before those of `([x] …)`.
fn with_implicit_parameters(part: &mut Form) {
    let parameters = match &mut part.kind {
        FormKind::Vector(items) => items,
        FormKind::List(items) => match items.first_mut().map(|first| &mut first.kind) {
            Some(FormKind::Vector(items)) => items,
            _ => return,
        },
        _ => return,
    };
    let span = part.span;
    parameters.splice(0..0, IMPLICIT.map(|name| Form::symbol(name, span)));
}

/// Sets the metadata of a name to these attributes; removes it if there are none.
fn with_attributes(name: &Form, attributes: Vec<Form>) -> Form {
    let metadata = match attributes.is_empty() {
        true => None,
        false => Some(Box::new(Form::new(FormKind::Map(attributes), name.span))),
    };
    Form { metadata, ..name.clone() }
}

fn add_attributes(attributes: &mut Vec<Form>, pairs: &[Form]) {
    for pair in pairs.chunks_exact(2) {
        match attributes.iter().step_by(2).position(|key| *key == pair[0]) {
            Some(at) => attributes[2 * at + 1] = pair[1].clone(),
            None => attributes.extend_from_slice(pair),
        }
    }
}

fn set_attribute(attributes: &mut Vec<Form>, name: &str, value: Form) {
    let key = Form::new(FormKind::Keyword(name.to_string()), value.span);
    add_attributes(attributes, &[key, value]);
}

fn remove_attribute(attributes: &mut Vec<Form>, name: &str) {
    if let Some(at) = attributes.iter().step_by(2).position(|key| key.as_keyword() == Some(name)) {
        attributes.drain(2 * at..2 * at + 2);
    }
}

/// Quotes the types in the metadata of a definition; the rest of the metadata is evaluated.
pub fn quote_hints(metadata: &mut Form) {
    for pair in metadata.items_mut().chunks_exact_mut(2) {
        if pair[0].as_keyword() == Some("tag") && pair[1].as_symbol().is_some() {
            let span = pair[1].span;
            pair[1] = call("quote", vec![pair[1].take()], span);
        }
    }
}

/// `(defun name (x y) "doc"? …)`
pub fn defun(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let parameters = scheme_parameters(&rest[1]);
    let mut forms = &rest[2..];
    let mut arguments = vec![rest[0].clone()];
    if let [first @ Form { kind: FormKind::Str(_), .. }, more @ ..] = forms
        && !more.is_empty()
    {
        arguments.push(first.clone());
        forms = more;
    }
    arguments.push(parameters);
    arguments.extend_from_slice(forms);
    Ok(call("defn", arguments, form.span))
}

/// `(define name value)`, `(define (name x y) …)`, at the top level.
pub fn define(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let (name, mut value) = defined(expander, form, rest)?;
    // As in `defn`, the function calls itself through its definition.
    if let FormKind::List(items) = &mut value.kind
        && items[0].is_symbol("fn")
        && items.get(1).is_some_and(|own| *own == name)
    {
        items[1] = Form::new(FormKind::Str(plain(&name).to_string()), items[1].span);
    }
    Ok(call("def", vec![name, value], form.span))
}

/// Parses a `define` into its name and its value; the value of a function is a `fn` with that name.
fn defined(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<(Form, Form)> {
    expander.count(form, rest, 1, usize::MAX)?;
    match &rest[0].kind {
        FormKind::Symbol(_) => {
            expander.count(form, rest, 1, 2)?;
            let value = match rest.get(1) {
                Some(lambda) if lambda.is_call_of("lambda") || lambda.is_call_of("fn") => named(&rest[0], lambda),
                Some(value) => value.clone(),
                None => nil(form.span),
            };
            Ok((rest[0].clone(), value))
        }
        FormKind::List(signature) if signature.first().is_some_and(|name| name.as_symbol().is_some()) => {
            let parameters = Form::list(signature[1..].to_vec(), rest[0].span);
            let mut function = vec![signature[0].clone(), scheme_parameters(&parameters)];
            function.extend_from_slice(&rest[1..]);
            Ok((signature[0].clone(), call("fn", function, form.span)))
        }
        _ => expander
            .fail(rest[0].span, format!("`define` takes a name or `(name parameters …)`, got {}", show(&rest[0]))),
    }
}

/// Converts `(lambda (x) …)` to a `fn` with a name.
fn named(name: &Form, lambda: &Form) -> Form {
    let items = lambda.as_list().unwrap_or_default();
    if items.len() < 2 || items[1].as_symbol().is_some() && lambda.is_call_of("fn") {
        return lambda.clone();
    }
    let parameters = if lambda.is_call_of("lambda") { scheme_parameters(&items[1]) } else { items[1].clone() };
    let function = [vec![name.clone(), parameters], items[2..].to_vec()].concat();
    call("fn", function, lambda.span)
}

/// Converts a body with inner `define`s to nested bindings; `None` if it has none. Functions defined consecutively can
/// refer to each other.
pub fn inner_defines(expander: &mut Expander<'_>, forms: &[Form], span: Span) -> Outcome<Option<Form>> {
    if expander.is_local("define") {
        return Ok(None);
    }
    let is_define = |form: &Form| form.is_call_of("define");
    let Some(first) = forms.iter().position(is_define) else { return Ok(None) };
    if expander.depth <= 1 {
        // At the top level of a program, `(do (define x 1))` defines a name of the session.
        return Ok(None);
    }
    let mut functions = Vec::new();
    let mut at = first;
    let mut value = None;
    while at < forms.len() && is_define(&forms[at]) {
        let (name, defined) = defined(expander, &forms[at], &forms[at].as_list().unwrap_or_default()[1..])?;
        at += 1;
        if defined.is_call_of("fn") || defined.is_call_of("lambda") {
            functions.extend([name, defined]);
        } else {
            value = Some(vec![name, defined]);
            break;
        }
    }
    let rest = body(&forms[at..], span);
    let rest = match value {
        Some(pair) => call("let*", vec![Form::vector(pair, span), rest], span),
        None => rest,
    };
    let nested =
        if functions.is_empty() { rest } else { call("letfn*", vec![Form::vector(functions, span), rest], span) };
    Ok(Some(call("do", [forms[..first].to_vec(), vec![nested]].concat(), span)))
}

/// `(declare a b)`
pub fn declare(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let definitions = rest.iter().map(|name| {
        let mut attributes = match name.metadata.as_deref() {
            Some(Form { kind: FormKind::Map(pairs), .. }) => pairs.clone(),
            _ => Vec::new(),
        };
        set_attribute(&mut attributes, "declared", Form::new(FormKind::Bool(true), name.span));
        call("def", vec![with_attributes(name, attributes)], name.span)
    });
    Ok(body(&definitions.collect::<Vec<_>>(), form.span))
}

/// `(defonce name value)`
pub fn defonce(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, 3)?;
    Ok(call("core/defonce*", rest.to_vec(), form.span))
}
