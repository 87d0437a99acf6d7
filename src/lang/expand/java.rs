//! Java's call syntax: `(. x method y)`, `(.. x (a) (b y))`.

use super::{Expander, call, followed, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};

/// `(. s toUpperCase)`, `(. Math (sqrt 2))`
pub fn dot(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    let (method, arguments) = match &rest[1].kind {
        FormKind::List(items) if !items.is_empty() && rest.len() == 2 => (&items[0], &items[1..]),
        _ => (&rest[1], &rest[2..]),
    };
    let Some(name) = method.as_symbol() else {
        return expander.fail(method.span, format!("`.` takes the name of a method, got {}", show(method)));
    };
    // The functions of a class are written with a slash.
    if let Some(class) = rest[0].as_symbol().filter(|class| is_class(class) && !expander.is_local(class)) {
        let function = Form::symbol(&format!("{class}/{name}"), method.span);
        return Ok(Form::list(followed(function, arguments), form.span));
    }
    let method = Form::symbol(&format!(".{name}"), method.span);
    Ok(Form::list([vec![method, rest[0].clone()], arguments.to_vec()].concat(), form.span))
}

/// `(.. s trim (substring 1))`
pub fn dots(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 2, usize::MAX)?;
    Ok(rest[1..].iter().fold(rest[0].clone(), |target, step| call(".", vec![target, step.clone()], form.span)))
}

fn is_class(name: &str) -> bool {
    name.rsplit('.').next().and_then(|last| last.chars().next()).is_some_and(char::is_uppercase)
}
