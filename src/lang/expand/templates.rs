//! `syntax-quote`: templates that build code. Their names are qualified, so that names in the output of a macro keep
//! their meaning, independent of the bindings at the call.

use super::{Expander, call, nil};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// `` `form ``: builds the form.
pub fn syntax_quote(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 1)?;
    let mut names = Vec::new();
    template(expander, &rest[0], &mut names)
}

fn template(expander: &mut Expander<'_>, form: &Form, names: &mut Vec<(String, Form)>) -> Outcome<Form> {
    expander.macros.charge(1)?;
    if expander.depth >= super::NESTING {
        return expander.fail(form.span, "templates are nested too deeply".to_string());
    }
    expander.depth += 1;
    let made = template_of(expander, form, names);
    expander.depth -= 1;
    match (&form.metadata, &form.kind) {
        (Some(metadata), FormKind::List(_) | FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_)) => {
            let metadata = template(expander, metadata, names)?;
            Ok(call("core/with-meta", vec![made?, metadata], form.span))
        }
        _ => made,
    }
}

fn template_of(expander: &mut Expander<'_>, form: &Form, names: &mut Vec<(String, Form)>) -> Outcome<Form> {
    let span = form.span;
    Ok(match &form.kind {
        FormKind::Symbol(name) => {
            let written = match name.strip_suffix('#') {
                Some(stem) if !stem.is_empty() => match names.iter().find(|(known, _)| known == name) {
                    Some((_, fresh)) => fresh.clone(),
                    None => {
                        let fresh = expander.fresh(stem, span);
                        let fresh = Form::symbol(&format!("{}__auto__", super::plain(&fresh)), span);
                        names.push((name.clone(), fresh.clone()));
                        fresh
                    }
                },
                _ => Form::symbol(&expander.macros.in_template(name), span),
            };
            call("quote", vec![written], span)
        }
        FormKind::List(_) if form.is_call_of("unquote") => {
            form.as_list().and_then(|items| items.get(1)).cloned().unwrap_or_else(|| nil(span))
        }
        // The outer template quotes the inner one.
        FormKind::List(items) if form.is_call_of("syntax-quote") && items.len() == 2 => {
            let inner = template(expander, &items[1], &mut Vec::new())?;
            template(expander, &inner, names)?
        }
        FormKind::List(items) if items.is_empty() => Form { metadata: None, ..form.clone() },
        FormKind::List(items) => {
            call("core/apply", vec![Form::symbol("core/list", span), parts(expander, items, names, span)?], span)
        }
        FormKind::Vector(items) => call("core/vec", vec![parts(expander, items, names, span)?], span),
        FormKind::Map(items) => {
            call("core/apply", vec![Form::symbol("core/hash-map", span), parts(expander, items, names, span)?], span)
        }
        FormKind::Set(items) => call("core/set", vec![parts(expander, items, names, span)?], span),
        _ => form.clone(),
    })
}

/// Builds the concatenation of the lists that the items contribute.
fn parts(expander: &mut Expander<'_>, items: &[Form], names: &mut Vec<(String, Form)>, span: Span) -> Outcome<Form> {
    let mut out = Vec::new();
    for item in items {
        if item.is_call_of("unquote-splicing") {
            out.push(item.as_list().and_then(|items| items.get(1)).cloned().unwrap_or_else(|| nil(span)));
        } else {
            out.push(call("core/list", vec![template(expander, item, names)?], span));
        }
    }
    Ok(call("core/concat", out, span))
}

/// Prepares the output of the macro at the head of a call for further expansion.
pub fn code_of(expander: &Expander<'_>, call: &Form, mut made: Form) -> Form {
    if expander.calls_session_macro(call) {
        unqualify(expander, &mut made);
    }
    made
}

/// Removes the namespaces of core and of the session from names in code that a macro produced, wherever this does not
/// change their meaning, so that the code is as a person would write it. Quoted data and the constants of `case` are
/// unchanged.
fn unqualify(expander: &Expander<'_>, form: &mut Form) {
    if let Some(metadata) = &mut form.metadata {
        unqualify(expander, metadata);
    }
    if form.is_call_of("quote") {
        return;
    }
    let is_case = form.is_call_of("case") || form.is_call_of("clojure.core/case");
    match &mut form.kind {
        FormKind::Symbol(name) => {
            if let Some(plain) = plain_name(expander, name) {
                *name = plain.to_string();
            }
        }
        FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
            let count = items.len();
            let is_constant = |at: usize| is_case && at >= 2 && at.is_multiple_of(2) && at + 1 < count;
            let code = items.iter_mut().enumerate().filter(|(at, _)| !is_constant(*at));
            code.for_each(|(_, item)| unqualify(expander, item));
        }
        _ => {}
    }
}

/// Returns the name without its namespace, if the meaning is the same.
fn plain_name<'n>(expander: &Expander<'_>, name: &'n str) -> Option<&'n str> {
    let is_defined = |base: &str| expander.macros.is_defined(base) || expander.defined.contains(base);
    if let Some(base) = name.strip_prefix("clojure.core/") {
        return (!expander.is_local(base) && !is_defined(base)).then_some(base);
    }
    // The template means a local if no definition with that name exists.
    let base = name.strip_prefix("user/")?;
    (!expander.is_local(base) || !is_defined(base)).then_some(base)
}
