//! `dir`, `doc`, `source` and `apropos` accept unevaluated names: quoted, bare, or as strings.

use super::{Expander, call};
use crate::error::Outcome;
use crate::form::{Form, FormKind};

/// Builds a call of `function` with its names quoted.
fn quoting(expander: &Expander<'_>, function: &str, form: &Form, rest: &[Form]) -> Form {
    let quoted = rest.iter().map(|argument| match &argument.kind {
        FormKind::Symbol(name) if !expander.is_local(name) => call("quote", vec![argument.clone()], argument.span),
        _ => argument.clone(),
    });
    call(function, quoted.collect(), form.span)
}

/// `(dir)`, `(dir mail)`
pub fn dir(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 0, 1)?;
    Ok(quoting(expander, "core/dir*", form, rest))
}

/// `(doc name)`, `(doc 'name)`, `(doc name :schema)`, `(doc name :argument)`
pub fn doc(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 2)?;
    // `'time` is how Clojure writes the name of a namespace, `time` that of a function or form.
    if let [name] = rest
        && name.is_call_of("quote")
    {
        let part = Form::new(FormKind::Keyword("quoted".to_string()), name.span);
        return Ok(call("core/doc*", vec![name.clone(), part], form.span));
    }
    Ok(quoting(expander, "core/doc*", form, rest))
}

/// `(apropos "word")`
pub fn apropos(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 1)?;
    Ok(quoting(expander, "core/apropos*", form, rest))
}

/// `(source name)`
pub fn source(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, 1)?;
    Ok(quoting(expander, "core/source*", form, rest))
}
