//! `defmulti`, `defmethod`, `defprotocol`, `extend-type`, `defrecord`, `reify` and their kin.

use super::letting::mentions;
use super::{Expander, call, followed, nil, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

fn quoted(form: &Form) -> Form {
    call("quote", vec![form.clone()], form.span)
}

/// Skips a doc string and an attribute map.
fn behind_doc(rest: &[Form]) -> &[Form] {
    let rest = match rest {
        [Form { kind: FormKind::Str(_), .. }, more @ ..] => more,
        rest => rest,
    };
    match rest {
        [Form { kind: FormKind::Map(_), .. }, more @ ..] if !more.is_empty() => more,
        rest => rest,
    }
}

fn needs_name(expander: &Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    match rest.first() {
        Some(name) if name.as_symbol().is_some() => Ok(name.clone()),
        Some(other) => expander.fail(other.span, format!("a definition needs a name, got {}", show(other))),
        None => expander.fail(form.span, "a definition needs a name".to_string()),
    }
}

/// `(defmulti area "doc"? :shape :default :other :hierarchy #'h)`
pub fn defmulti(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let mut name = needs_name(expander, form, rest)?;
    let doc = rest.get(1).filter(|doc| matches!(doc.kind, FormKind::Str(_)));
    if let Some(FormKind::Map(pairs)) = rest.get(1 + usize::from(doc.is_some())).map(|form| &form.kind) {
        add_metadata(&mut name, pairs);
    }
    let [dispatch, options @ ..] = behind_doc(&rest[1..]) else {
        return expander.fail(form.span, "`defmulti` needs a dispatch function after the name".to_string());
    };
    expander.options("defmulti", options, &["default", "hierarchy"])?;
    let option = |wanted: &str| {
        options.chunks_exact(2).find(|pair| pair[0].as_keyword() == Some(wanted)).map(|pair| pair[1].clone())
    };
    let default = option("default").unwrap_or_else(|| Form::new(FormKind::Keyword("default".to_string()), form.span));
    let hierarchy = option("hierarchy").unwrap_or_else(|| nil(form.span));
    let made = call("core/multimethod*", vec![quoted(&name), dispatch.clone(), default, hierarchy], form.span);
    Ok(call("def", [vec![name], doc.cloned().into_iter().collect(), vec![made]].concat(), form.span))
}

/// Adds attributes to the metadata of a defined name.
fn add_metadata(name: &mut Form, pairs: &[Form]) {
    let own = match name.metadata.take().map(|metadata| metadata.kind) {
        Some(FormKind::Map(own)) => own,
        _ => Vec::new(),
    };
    name.metadata = Some(Box::new(Form::new(FormKind::Map([own, pairs.to_vec()].concat()), name.span)));
}

/// `(defmethod area :circle [shape] …)`
pub fn defmethod(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 3, usize::MAX)?;
    let name = needs_name(expander, form, rest)?;
    let function = match &rest[2..] {
        [own, ..] if own.as_symbol().is_some() => call("fn", rest[2..].to_vec(), form.span),
        // The function stays anonymous: inside its body, the name refers to the multimethod.
        parts => call("fn", parts.to_vec(), form.span),
    };
    Ok(call("core/method*", vec![name, rest[1].clone(), function], form.span))
}

/// `(defprotocol Shape "doc"? (area [this]) (scale [this by] "doc"))`
pub fn defprotocol(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let name = needs_name(expander, form, rest)?;
    let signatures = rest[1..].iter().filter_map(Form::as_list);
    let mut known: Vec<&Form> = Vec::new();
    for signature in signatures.clone() {
        let Some([method, lists @ ..]) = Some(signature) else { continue };
        if lists.iter().any(|list| list.as_vector().is_some_and(<[Form]>::is_empty)) {
            let message = format!(
                "{} takes no parameter: a protocol dispatches on the first one, `({} [this])`",
                show(method),
                super::plain(method)
            );
            return expander.fail(method.span, message);
        }
        if known.contains(&method) {
            let message = format!(
                "{} appears twice in the protocol: `({} [this] [this x])` has several arities",
                show(method),
                super::plain(method)
            );
            return expander.fail(method.span, message);
        }
        known.push(method);
    }
    let methods: Vec<Form> = signatures.filter_map(|items| items.first().cloned()).collect();
    let by_metadata = rest[1..].windows(2).any(|pair| {
        pair[0].as_keyword() == Some("extend-via-metadata")
            && !matches!(pair[1].kind, FormKind::Nil | FormKind::Bool(false))
    });
    let by_metadata = Form::new(FormKind::Bool(by_metadata), form.span);
    let parts = [vec![quoted(&name), by_metadata], methods.iter().map(quoted).collect()].concat();
    let made = call("core/protocol*", parts, form.span);
    let mut forms = vec![call("def", vec![name.clone(), made], form.span)];
    for (method, signature) in methods.iter().zip(rest[1..].iter().filter(|item| item.as_list().is_some())) {
        let taken = call("core/protocol-method*", vec![name.clone(), quoted(method)], signature.span);
        let doc = signature.as_list().and_then(<[Form]>::last).filter(|doc| matches!(doc.kind, FormKind::Str(_)));
        let parts = [vec![method.clone()], doc.cloned().into_iter().collect(), vec![taken]].concat();
        forms.push(call("def", parts, signature.span));
    }
    forms.push(quoted(&name));
    Ok(call("do", forms, form.span))
}

/// Parses protocols with their methods, `Shape (area [this] …) (scale [this] …) (scale [this by] …)`, into alternating
/// protocols and maps of functions. `within` wraps the body of each method.
fn implementations(expander: &Expander<'_>, specs: &[Form], within: &Within<'_>, span: Span) -> Outcome<Vec<Form>> {
    let mut out: Vec<Form> = Vec::new();
    let mut methods: Vec<(String, Form, Vec<Form>)> = Vec::new();
    let finish = |out: &mut Vec<Form>, methods: &mut Vec<(String, Form, Vec<Form>)>| {
        if out.is_empty() {
            return;
        }
        let mut entries = Vec::new();
        for (name, symbol, arities) in methods.drain(..) {
            entries.push(Form::new(FormKind::Keyword(name), symbol.span));
            entries.push(call("fn", arities, symbol.span));
        }
        out.push(Form::new(FormKind::Map(entries), span));
    };
    for spec in specs {
        match &spec.kind {
            FormKind::List(items) => {
                let (Some(name), false) = (items.first().and_then(Form::as_symbol), out.is_empty()) else {
                    return expander
                        .fail(spec.span, "expected the name of a protocol, then its methods `(name [this] …)`".into());
                };
                let arities: Vec<Form> = match items.get(1).map(|item| &item.kind) {
                    Some(FormKind::Vector(_)) => vec![arity(&items[1..], within, spec.span)],
                    _ => items[1..]
                        .iter()
                        .map(|one| arity(one.as_list().unwrap_or_default(), within, one.span))
                        .collect(),
                };
                match methods.iter_mut().find(|(known, _, _)| known == name) {
                    Some((_, _, known)) => known.extend(arities),
                    None => methods.push((name.to_string(), items[0].clone(), arities)),
                }
            }
            _ => {
                finish(&mut out, &mut methods);
                out.push(spec.clone());
            }
        }
    }
    finish(&mut out, &mut methods);
    Ok(out)
}

/// Rewrites the parameters and the body of an arity.
type Within<'w> = dyn Fn(&Form, &[Form]) -> Vec<Form> + 'w;

/// Wraps the body of one arity, `([this by] …)`.
fn arity(items: &[Form], within: &Within<'_>, span: Span) -> Form {
    match items {
        [parameters, body @ ..] => Form::list(within(parameters, body), span),
        [] => Form::list(Vec::new(), span),
    }
}

fn as_it_is(parameters: &Form, body: &[Form]) -> Vec<Form> {
    [std::slice::from_ref(parameters), body].concat()
}

/// `(extend-type String Shape (area [this] …))`
pub fn extend_type(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let parts = implementations(expander, &rest[1..], &as_it_is, form.span)?;
    Ok(call("core/extend", [vec![rest[0].clone()], parts].concat(), form.span))
}

/// `(extend-protocol Shape String (area [s] …) nil (area [_] 0))`
pub fn extend_protocol(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let parts = implementations(expander, &rest[1..], &as_it_is, form.span)?;
    let calls = parts
        .chunks_exact(2)
        .map(|pair| call("core/extend", vec![pair[0].clone(), rest[0].clone(), pair[1].clone()], form.span));
    Ok(call("do", calls.collect::<Vec<_>>().into_iter().chain([nil(form.span)]).collect(), form.span))
}

/// `(reify Shape (area [this] …))`
pub fn reify(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let within = |parameters: &Form, body: &[Form]| {
        let others = parameters.as_vector().unwrap_or_default().get(1..).unwrap_or_default();
        [vec![parameters.clone()], going_on(others, body, form.span)].concat()
    };
    let parts = implementations(expander, rest, &within, form.span)?;
    Ok(call("core/reify*", parts, form.span))
}

/// Wraps the body of a method so that its `recur` omits the object itself, as in Clojure's types.
fn going_on(others: &[Form], body: &[Form], span: Span) -> Vec<Form> {
    let are_names = others.iter().all(|parameter| parameter.as_symbol().is_some_and(|name| name != "&"));
    if !are_names || !body.iter().any(|form| mentions(form, "recur")) {
        return body.to_vec();
    }
    let again = others.iter().flat_map(|name| [name.clone(), name.clone()]).collect();
    vec![call("loop", followed(Form::vector(again, span), body), span)]
}

/// `(defrecord Point [x y] Shape (area [this] (* x y)))`
pub fn defrecord(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let name = needs_name(expander, form, rest)?;
    let span = form.span;
    let Some(fields) = rest[1].as_vector() else {
        return expander.fail(rest[1].span, format!("expected a record's fields in a vector, got {}", show(&rest[1])));
    };
    let fields: Vec<Form> = fields.iter().map(|field| Form { metadata: None, ..field.clone() }).collect();
    let text = name.as_symbol().unwrap_or_default();
    let type_name = quoted(&Form::symbol(&format!("user.{text}"), span));
    let keyword = |field: &Form| Form::new(FormKind::Keyword(field.as_symbol().unwrap_or_default().into()), span);
    let entries = fields.iter().flat_map(|field| [keyword(field), field.clone()]).collect();
    let absent = fields.iter().flat_map(|field| [keyword(field), nil(span)]).collect();
    let keys = Form::vector(fields.iter().map(keyword).collect(), span);
    let record = |map: Form| call("core/record*", vec![type_name.clone(), keys.clone(), map], span);
    let of_fields = record(Form::new(FormKind::Map(entries), span));
    let map = expander.fresh("map", span);
    let merged = call("core/merge", vec![Form::new(FormKind::Map(absent), span), map.clone()], span);
    let of_map = record(merged);
    let arrow = Form::symbol(&format!("->{text}"), span);
    let from_map = Form::symbol(&format!("map->{text}"), span);
    let doc = |of: &str| Form::new(FormKind::Str(format!("A `{text}` of {of}.")), span);
    let parameters = Form::vector(fields.clone(), rest[1].span);
    let constructor = call("defn", vec![arrow.clone(), doc("its fields"), parameters, of_fields], span);
    let mut forms = vec![
        call("def", vec![name.clone(), type_name.clone()], span),
        constructor,
        class_constructor(expander, text, &fields, span),
        call("defn", vec![from_map, doc("a map of its fields"), Form::vector(vec![map], span), of_map], span),
    ];
    // Inside its methods, a record's fields are in scope, except those shadowed by a parameter.
    let held = expander.fresh("this", span);
    let within = |parameters: &Form, body: &[Form]| {
        let Some([this, others @ ..]) = parameters.as_vector() else { return as_it_is(parameters, body) };
        let seen = fields.iter().filter(|field| !parameters_bind(parameters, field));
        let mut bindings: Vec<Form> =
            seen.flat_map(|field| [field.clone(), Form::list(vec![keyword(field), held.clone()], span)]).collect();
        if !others.contains(this) {
            bindings.extend([this.clone(), held.clone()]);
        }
        let body = going_on(others, body, span);
        let parameters = Form::vector([std::slice::from_ref(&held), others].concat(), parameters.span);
        vec![parameters, call("let", [vec![Form::vector(bindings, span)], body].concat(), span)]
    };
    let parts = implementations(expander, &rest[2..], &within, span)?;
    if !parts.is_empty() {
        forms.push(call("core/extend", [vec![name.clone()], parts].concat(), span));
    }
    forms.push(name);
    Ok(call("do", forms, span))
}

/// Returns whether the name occurs anywhere in the parameters and their patterns.
fn parameters_bind(parameters: &Form, name: &Form) -> bool {
    match &parameters.kind {
        FormKind::Vector(items) | FormKind::Map(items) => items.iter().any(|item| parameters_bind(item, name)),
        _ => parameters == name,
    }
}

/// Defines `Point.`: like `->Point`, but optionally with metadata and a map of further entries after the fields.
fn class_constructor(expander: &mut Expander<'_>, name: &str, fields: &[Form], span: Span) -> Form {
    let (own, more) = (expander.fresh("metadata", span), expander.fresh("more", span));
    let made = Form::list(followed(Form::symbol(&format!("->{name}"), span), fields), span);
    let longer = [fields.to_vec(), vec![own.clone(), more.clone()]].concat();
    let full = call("core/with-meta", vec![call("core/merge", vec![made.clone(), more], span), own], span);
    let arity = |parameters: Vec<Form>, body: Form| Form::list(vec![Form::vector(parameters, span), body], span);
    let name = Form::symbol(&format!("{name}."), span);
    let function = call("fn", vec![name.clone(), arity(fields.to_vec(), made), arity(longer, full)], span);
    call("def", vec![name, function], span)
}

/// `(new Point 1 2)`: `(Point. 1 2)`.
pub fn new(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let class = needs_name(expander, form, rest)?;
    let constructor = Form::symbol(&format!("{}.", class.as_symbol().unwrap_or_default()), class.span);
    Ok(Form::list(followed(constructor, &rest[1..]), form.span))
}
