//! Destructuring: replaces patterns in bindings by plain names.

use super::{Expander, call, nil, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;
use crate::value::text::split_name;

/// Adds to `flat` the plain bindings (name, value, name, value …) that bind `pattern` to `value`.
pub fn destructure(expander: &mut Expander<'_>, pattern: &Form, value: Form, flat: &mut Vec<Form>) -> Outcome<()> {
    expander.macros.charge(1)?;
    match &pattern.kind {
        FormKind::Symbol(name) if split_name(name).0.is_some() => expander
            .fail(pattern.span, format!("cannot bind the qualified name `{name}`; use `{}`", split_name(name).1)),
        FormKind::Symbol(_) => {
            flat.extend([pattern.clone(), value]);
            Ok(())
        }
        FormKind::Vector(items) => sequence(expander, items, value, pattern.span, flat),
        FormKind::Map(items) => map(expander, items, value, pattern.span, flat),
        _ => expander.fail(
            pattern.span,
            format!("cannot bind {}; a name, `[a b]` or `{{:keys [a b]}}` is expected", show(pattern)),
        ),
    }
}

/// `[a b & more :as all]`, and `[a . b]` for the pairs of other Lisps
fn sequence(expander: &mut Expander<'_>, items: &[Form], value: Form, span: Span, flat: &mut Vec<Form>) -> Outcome<()> {
    let whole = hold(expander, "items", value, span, flat);
    // With `&`, the collection is traversed and may be of any kind; without it, `nth` must be able to index it.
    let items_of = match items.iter().position(|item| item.is_symbol("&")) {
        Some(at) if items.get(at + 2).is_some_and(|item| item.as_keyword() != Some("as")) => {
            return expander
                .fail(items[at + 2].span, "only `:as` and a name may follow the name after `&`".to_string());
        }
        Some(at) if at > 0 => hold(expander, "walked", call("core/walked*", vec![whole.clone()], span), span, flat),
        _ => whole.clone(),
    };
    let mut at = 0;
    let mut position = 0_i64;
    while at < items.len() {
        let item = &items[at];
        if item.is_symbol("&") {
            let Some(rest) = items.get(at + 1) else {
                return expander.fail(item.span, "a name is missing after `&`".to_string());
            };
            let mut taken =
                call("core/nthrest*", vec![items_of.clone(), Form::new(FormKind::Int(position), span)], span);
            if matches!(rest.kind, FormKind::Map(_)) {
                taken = call("core/options*", vec![taken], span);
            }
            destructure(expander, rest, taken, flat)?;
            at += 2;
        } else if item.is_symbol(".") && at + 2 == items.len() && at > 0 {
            let before = Form::new(FormKind::Int(position - 1), span);
            let last = match position {
                1 => items_of.clone(),
                _ => call("core/nthrest*", vec![items_of.clone(), before], span),
            };
            destructure(expander, &items[at + 1], call("core/cdr", vec![last], span), flat)?;
            at += 2;
        } else if item.as_keyword() == Some("as") {
            let Some(name) = items.get(at + 1) else {
                return expander.fail(item.span, "a name is missing after `:as`".to_string());
            };
            destructure(expander, name, whole.clone(), flat)?;
            at += 2;
        } else {
            let index = Form::new(FormKind::Int(position), span);
            destructure(expander, item, call("core/nth", vec![items_of.clone(), index, nil(span)], span), flat)?;
            position += 1;
            at += 1;
        }
    }
    Ok(())
}

/// `{a :a, :keys [b c], :or {b 1}, :as all}`
fn map(expander: &mut Expander<'_>, items: &[Form], value: Form, span: Span, flat: &mut Vec<Form>) -> Outcome<()> {
    let whole = hold(expander, "map", call("core/as-map*", vec![value], span), span, flat);
    let defaults = option(items, "or").and_then(|form| match &form.kind {
        FormKind::Map(defaults) => Some(defaults.as_slice()),
        _ => None,
    });
    for pair in items.chunks_exact(2) {
        let (left, right) = (&pair[0], &pair[1]);
        let Some(keyword) = left.as_keyword() else {
            let value = lookup(&whole, right.clone(), left.as_symbol(), defaults, span);
            destructure(expander, left, value, flat)?;
            continue;
        };
        match split_name(keyword) {
            (None, "as") => destructure(expander, right, whole.clone(), flat)?,
            (None, "or") => {}
            (namespace, kind @ ("keys" | "strs" | "syms")) => {
                for name in names(expander, right)? {
                    named(expander, namespace, kind, name, &whole, defaults, flat)?;
                }
            }
            _ => {
                return expander.fail(
                    left.span,
                    format!("`:{keyword}` has no meaning in a map pattern; it takes `:keys`, `:strs`, `:syms`, `:or`, `:as`, and `name :key`"),
                );
            }
        }
    }
    Ok(())
}

/// Binds one name of `:keys`, `:strs` or `:syms`.
fn named(
    expander: &mut Expander<'_>,
    namespace: Option<&str>,
    kind: &str,
    name: &Form,
    whole: &Form,
    defaults: Option<&[Form]>,
    flat: &mut Vec<Form>,
) -> Outcome<()> {
    let (FormKind::Symbol(text) | FormKind::Keyword(text)) = &name.kind else {
        return expander.fail(name.span, format!("`:{kind}` takes names, not {}", show(name)));
    };
    let (own, base) = split_name(text);
    let full = match own.or(namespace) {
        Some(namespace) => format!("{namespace}/{base}"),
        None => base.to_string(),
    };
    let key = match kind {
        "keys" => Form::new(FormKind::Keyword(full), name.span),
        "strs" => Form::new(FormKind::Str(full), name.span),
        _ => call("quote", vec![Form::symbol(&full, name.span)], name.span),
    };
    let value = lookup(whole, key, Some(base), defaults, name.span);
    destructure(expander, &Form::symbol(base, name.span), value, flat)
}

fn names<'f>(expander: &Expander<'_>, form: &'f Form) -> Outcome<&'f [Form]> {
    match &form.kind {
        FormKind::Vector(names) | FormKind::List(names) => Ok(names),
        _ => expander.fail(form.span, format!("expected a vector of names, got {}", show(form))),
    }
}

/// Builds `(get whole key default)`. As in Clojure, the default is always evaluated.
fn lookup(whole: &Form, key: Form, name: Option<&str>, defaults: Option<&[Form]>, span: Span) -> Form {
    let default = name.and_then(|name| {
        defaults?.chunks_exact(2).find(|pair| pair[0].is_symbol(name) || pair[0].as_keyword() == Some(name))
    });
    let mut arguments = vec![whole.clone(), key];
    arguments.extend(default.map(|pair| pair[1].clone()));
    call("core/get", arguments, span)
}

fn option<'f>(items: &'f [Form], name: &str) -> Option<&'f Form> {
    items.chunks_exact(2).find(|pair| pair[0].as_keyword() == Some(name)).map(|pair| &pair[1])
}

/// Returns a name for a value that is used more than once. The program's own name cannot serve: the pattern may rebind
/// it before its last use.
fn hold(expander: &mut Expander<'_>, stem: &str, value: Form, span: Span, flat: &mut Vec<Form>) -> Form {
    if value.as_symbol().is_some_and(|name| name.contains("__")) {
        return value;
    }
    let name = expander.fresh(stem, span);
    flat.extend([name.clone(), value]);
    name
}
