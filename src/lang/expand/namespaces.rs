//! `ns`, `require`, `use`, `refer`, `import`, `in-ns`: everything is already loaded, so these forms only introduce the
//! requested names, as definitions of the session.

use super::{Expander, call, nil, show};
use crate::error::{Outcome, Signal};
use crate::form::{Form, FormKind};
use crate::span::Span;

/// `(ns name "doc"? {attributes}? (:require …) …)`
pub fn ns(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    own_name(expander, &rest[0]);
    let mut definitions = Vec::new();
    for clause in &rest[1..] {
        let (FormKind::List(items) | FormKind::Vector(items)) = &clause.kind else { continue };
        let Some((head, libraries)) = items.split_first() else { continue };
        match head.as_keyword().or(head.as_symbol()) {
            Some("require" | "require-macros") => libraries_of(expander, libraries, false, &mut definitions)?,
            Some("use") => libraries_of(expander, libraries, true, &mut definitions)?,
            Some("import") => classes(expander, libraries)?,
            Some("refer-clojure") => excluded(libraries, &mut definitions),
            _ => {}
        }
    }
    Ok(done(definitions, form.span))
}

/// Makes a name that no library and no server has another name of the session's namespace, so that `app/f` is its `f`.
fn own_name(expander: &mut Expander<'_>, name: &Form) {
    if let Some(name) = name.as_symbol()
        && expander.macros.library(name).is_err()
    {
        expander.macros.alias(name, "user");
    }
}

/// Declares the names that `:refer-clojure :exclude [a b]` leaves to the program, so that they do not mean functions of
/// the language.
fn excluded(options: &[Form], definitions: &mut Vec<Form>) {
    for pair in options.chunks_exact(2).filter(|pair| pair[0].as_keyword() == Some("exclude")) {
        let (FormKind::Vector(names) | FormKind::List(names)) = &unquoted(&pair[1]).kind else { continue };
        definitions.push(call("declare", names.clone(), pair[1].span));
    }
}

/// `(in-ns 'name)`: the session's own namespace, regardless of the name.
pub fn in_ns(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 1)?;
    own_name(expander, unquoted(&rest[0]));
    Ok(Form::symbol("*ns*", form.span))
}

/// `(alias 'set 'clojure.set)`
pub fn alias(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, 2)?;
    let as_ = Form::new(FormKind::Keyword("as".to_string()), form.span);
    let library = Form::vector(vec![unquoted(&rest[1]).clone(), as_, unquoted(&rest[0]).clone()], form.span);
    require(expander, form, &[library])
}

/// `(refer-clojure :exclude '[name …])`
pub fn refer_clojure(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let mut definitions = Vec::new();
    excluded(rest, &mut definitions);
    Ok(done(definitions, form.span))
}

/// `(require '[clojure.string :as s :refer [join]] …)`
pub fn require(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let mut definitions = Vec::new();
    libraries_of(expander, rest, false, &mut definitions)?;
    Ok(done(definitions, form.span))
}

/// `(use 'clojure.set)`, `(refer 'clojure.set :only '[union])`
pub fn use_(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let mut definitions = Vec::new();
    if form.is_call_of("refer") && !rest.is_empty() {
        let whole = rest.iter().map(|part| unquoted(part).clone()).collect();
        library(expander, &Form::vector(whole, form.span), "", true, &mut definitions)?;
    } else {
        libraries_of(expander, rest, true, &mut definitions)?;
    }
    Ok(done(definitions, form.span))
}

/// `(import '(java.time LocalDate) …)`
pub fn import(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    classes(expander, rest)?;
    Ok(nil(form.span))
}

fn done(definitions: Vec<Form>, span: Span) -> Form {
    if definitions.is_empty() {
        return nil(span);
    }
    call("do", [definitions, vec![nil(span)]].concat(), span)
}

/// Returns the form without an optional quote.
fn unquoted(form: &Form) -> &Form {
    match form.as_list() {
        Some([head, quoted]) if head.is_symbol("quote") => quoted,
        _ => form,
    }
}

fn libraries_of(
    expander: &mut Expander<'_>,
    libraries: &[Form],
    everything: bool,
    definitions: &mut Vec<Form>,
) -> Outcome<()> {
    for form in libraries {
        let form = unquoted(form);
        match &form.kind {
            // `:reload`, `:verbose`
            FormKind::Keyword(_) => {}
            FormKind::Symbol(_) => {
                library(expander, &Form::vector(vec![form.clone()], form.span), "", everything, definitions)?;
            }
            FormKind::Vector(_) => library(expander, form, "", everything, definitions)?,
            // `(clojure [string :as s] set)`: libraries with a common prefix.
            FormKind::List(items) if items.len() > 1 && items[1].as_keyword().is_none() => {
                let prefix = format!("{}.", items[0].as_symbol().unwrap_or_default());
                for item in &items[1..] {
                    let item = match item.kind {
                        FormKind::Symbol(_) => Form::vector(vec![item.clone()], item.span),
                        _ => item.clone(),
                    };
                    library(expander, &item, &prefix, everything, definitions)?;
                }
            }
            FormKind::List(items) => {
                library(expander, &Form::vector(items.clone(), form.span), "", everything, definitions)?;
            }
            _ => {
                return expander.fail(
                    form.span,
                    format!("a library is required as `'[clojure.string :as str]`, got {}", show(form)),
                );
            }
        }
    }
    Ok(())
}

/// The options of a library. ClojureScript's `:include-macros` has no effect: macros are included.
const LIBRARY_OPTIONS: &[&str] = &["as", "as-alias", "refer", "only", "exclude", "rename", "include-macros"];

/// Processes one library with its options: `[clojure.string :as s :refer [join] :rename {join j}]`.
fn library(
    expander: &mut Expander<'_>,
    form: &Form,
    prefix: &str,
    everything: bool,
    definitions: &mut Vec<Form>,
) -> Outcome<()> {
    let items = form.as_vector().unwrap_or_default();
    let Some(name) = items.first().and_then(Form::as_symbol) else {
        return expander.fail(form.span, "a library is required as `'[clojure.string :as str]`".to_string());
    };
    let span = items[0].span;
    let library = format!("{prefix}{name}");
    expander.options("require", &items[1..], LIBRARY_OPTIONS)?;
    let option = |wanted: &[&str]| {
        items[1..]
            .chunks_exact(2)
            .find(|pair| pair[0].as_keyword().is_some_and(|name| wanted.contains(&name)))
            .map(|pair| unquoted(&pair[1]))
    };
    let namespace = expander.macros.library(&library);
    if let Some(alias) = option(&["as", "as-alias"]) {
        let Some(alias) = alias.as_symbol() else {
            return expander.fail(alias.span, format!("`:as` takes a name, got {}", show(alias)));
        };
        // `:as-alias` loads nothing, so the library need not exist.
        let loads_nothing = option(&["as"]).is_none();
        if loads_nothing || namespace.is_ok() {
            expander.macros.alias(alias, &library);
        }
        if loads_nothing {
            return Ok(());
        }
    }
    let Ok(namespace) = namespace else {
        definitions.push(missing("core/missing-library*", &library, span));
        return Ok(());
    };
    let renamed: Vec<(Form, Form)> = match option(&["rename"]).map(|rename| &rename.kind) {
        Some(FormKind::Map(pairs)) => pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
        _ => Vec::new(),
    };
    let mut wanted: Vec<Form> = match option(&["refer", "only", "refer-macros"]).map(|names| &names.kind) {
        Some(FormKind::Vector(names) | FormKind::List(names)) => names.clone(),
        Some(_) => names_in(expander, &namespace, span),
        None if everything => names_in(expander, &namespace, span),
        None => Vec::new(),
    };
    // Explicitly requested names take precedence over those of a whole namespace.
    let known = |name: &Form| {
        definitions.iter().any(|form| form.is_call_of("def") && form.as_list().is_some_and(|items| items[1] == *name))
    };
    if !matches!(option(&["refer", "only"]).map(|names| &names.kind), Some(FormKind::Vector(_) | FormKind::List(_))) {
        wanted.retain(|name| !known(name));
    }
    if let Some(FormKind::Vector(left_out) | FormKind::List(left_out)) = option(&["exclude"]).map(|names| &names.kind) {
        wanted.retain(|name| !left_out.contains(name));
    }
    for name in wanted {
        let Some(base) = name.as_symbol() else {
            return expander.fail(name.span, format!("`:refer` takes names, got {}", show(&name)));
        };
        let new = renamed.iter().find(|(from, _)| *from == name).map_or(&name, |(_, to)| to);
        let qualified = format!("{namespace}/{base}");
        if namespace != "core" && !expander.macros.has(&qualified)? {
            definitions.push(missing("core/missing-name*", &qualified, name.span));
            continue;
        }
        // A name that already has this meaning needs no definition.
        if namespace != "core" && !expander.macros.means_the_same(new.as_symbol().unwrap_or_default(), &qualified) {
            definitions.push(call("def", vec![new.clone(), Form::symbol(&qualified, name.span)], name.span));
        }
    }
    Ok(())
}

/// Builds a call that raises, at run time, the error for a missing name; the program can catch it.
fn missing(raise: &str, name: &str, span: Span) -> Form {
    call(raise, vec![call("quote", vec![Form::symbol(name, span)], span)], span)
}

/// Returns all names of a namespace that have no other meaning yet.
fn names_in(expander: &Expander<'_>, namespace: &str, span: Span) -> Vec<Form> {
    expander.macros.names_in(namespace).iter().map(|name| Form::symbol(name, span)).collect()
}

/// `java.util.Date`, `(java.time LocalDate Duration)`
fn classes(expander: &mut Expander<'_>, forms: &[Form]) -> Outcome<()> {
    for form in forms {
        let form = unquoted(form);
        let names: Vec<(String, Span)> = match &form.kind {
            FormKind::Symbol(name) => vec![(name.clone(), form.span)],
            FormKind::List(items) | FormKind::Vector(items) if !items.is_empty() => {
                let package = items[0].as_symbol().unwrap_or_default();
                items[1..]
                    .iter()
                    .map(|class| (format!("{package}.{}", class.as_symbol().unwrap_or_default()), class.span))
                    .collect()
            }
            _ => Vec::new(),
        };
        for (name, span) in names {
            if let Err(error) = expander.macros.class(&name) {
                return Err(Signal::from(error).at(expander.source, span));
            }
        }
    }
    Ok(())
}
