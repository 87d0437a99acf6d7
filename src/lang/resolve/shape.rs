//! Structural validation of expanded code. The resolver relies on this structure. The expander guarantees it; code
//! from a snapshot is checked first.

use super::is_display_name;
use crate::form::{Form, FormKind};

/// Returns the first part of expanded code whose structure is invalid; `None` if there is none.
pub fn misshapen(form: &Form) -> Option<&Form> {
    let parts = match &form.kind {
        FormKind::List(items) => match items.first().and_then(Form::as_symbol) {
            Some(name) => special(name, form, &items[1..]),
            None => Some(items.iter().collect()),
        },
        FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => Some(items.iter().collect()),
        _ => Some(Vec::new()),
    };
    match parts {
        Some(parts) => parts.into_iter().find_map(misshapen),
        None => Some(form),
    }
}

/// Returns the subforms of a special form that are code themselves; `None` if its structure is invalid.
fn special<'f>(name: &str, form: &'f Form, rest: &'f [Form]) -> Option<Vec<&'f Form>> {
    Some(match name {
        "quote" => {
            let [_] = rest else { return None };
            Vec::new()
        }
        "if" if !(2..=3).contains(&rest.len()) => return None,
        "var" => {
            let [name] = rest else { return None };
            name.as_symbol()?;
            Vec::new()
        }
        "let*" | "loop*" => {
            let values = bindings(rest.first()?)?.map(|(_, value)| value);
            values.chain(&rest[1..]).collect()
        }
        "letfn*" => {
            let functions: Vec<&Form> = bindings(rest.first()?)?.map(|(_, function)| function).collect();
            if !functions.iter().all(|function| function.is_call_of("fn*")) {
                return None;
            }
            functions.into_iter().chain(&rest[1..]).collect()
        }
        "fn*" => arities(form)?.flatten().collect(),
        "def" | "core/defmacro*" | "core/defonce*" => {
            let [name, value @ ..] = rest else { return None };
            name.as_symbol()?;
            if value.len() > 2 {
                return None;
            }
            value.iter().chain(name.metadata.as_deref()).collect()
        }
        "try" => {
            let [body, clauses @ ..] = rest else { return None };
            let handlers: Option<Vec<&Form>> = clauses.iter().map(handler).collect();
            [vec![body], handlers?].concat()
        }
        _ => rest.iter().collect(),
    })
}

/// The names and values of a binding vector `[name value …]`.
fn bindings(form: &Form) -> Option<impl Iterator<Item = (&str, &Form)>> {
    let pairs = form.as_vector()?;
    let is_named = pairs.iter().step_by(2).all(|name| name.as_symbol().is_some());
    (is_named && pairs.len().is_multiple_of(2))
        .then(|| pairs.chunks_exact(2).map(|pair| (pair[0].as_symbol().unwrap_or_default(), &pair[1])))
}

/// The bodies of `(fn* name? ([parameter …] body …) …)`.
fn arities(function: &Form) -> Option<impl Iterator<Item = &[Form]>> {
    let items = function.as_list()?.get(1..)?;
    let is_named = items.first().is_some_and(|name| name.as_symbol().is_some() || is_display_name(name));
    let arities = &items[usize::from(is_named)..];
    let is_arity = |arity: &Form| {
        let parameters = arity.as_list().and_then(|items| items.first()?.as_vector());
        parameters.is_some_and(|parameters| parameters.iter().all(|name| name.as_symbol().is_some()))
    };
    (!arities.is_empty() && arities.iter().all(is_arity))
        .then(|| arities.iter().map(|arity| &arity.as_list().unwrap_or_default()[1..]))
}

/// The body of `(catch name body)`, `(catch name body "Class")` or `(finally body)`.
fn handler(clause: &Form) -> Option<&Form> {
    match clause.as_list()? {
        [_, name, body] if clause.is_call_of("catch") => name.as_symbol().map(|_| body),
        [_, name, body, Form { kind: FormKind::Str(_), .. }] if clause.is_call_of("catch") => {
            name.as_symbol().map(|_| body)
        }
        [_, body] if clause.is_call_of("finally") => Some(body),
        _ => None,
    }
}
