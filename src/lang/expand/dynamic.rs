//! What holds while a body runs: other values of definitions, and where prints go.

use super::functions::thunk;
use super::{Expander, call, show};
use crate::lang::error::Outcome;
use crate::lang::form::{Form, FormKind};

/// `(binding [*name* value] …)` and `(with-redefs [f g] …)`: definitions mean something else until the
/// body is done.
pub fn binding(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    expander.count(form, rest, 1, usize::MAX)?;
    let Some(pairs) = rest[0].as_vector().filter(|items| items.len() % 2 == 0) else {
        return expander.fail(rest[0].span, "expected names and values in turn: `[*name* value]`".to_string());
    };
    let mut arguments = Vec::with_capacity(pairs.len() + 1);
    for pair in pairs.chunks_exact(2) {
        if !matches!(pair[0].kind, FormKind::Symbol(_)) {
            return expander.fail(pair[0].span, format!("expected the name of a definition, got {}", show(&pair[0])));
        }
        arguments.extend([call("quote", vec![pair[0].clone()], pair[0].span), pair[1].clone()]);
    }
    arguments.push(thunk(&rest[1..], form.span));
    Ok(call("core/binding*", arguments, form.span))
}

/// `(with-out-str …)`
pub fn with_out_str(_: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    Ok(call("core/with-out-str*", vec![thunk(rest, form.span)], form.span))
}
