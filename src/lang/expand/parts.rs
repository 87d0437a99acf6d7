//! Splits a top-level `do` into parts that are evaluated one after another, so that a macro defined by one form is
//! available in the following ones.

use super::{Expander, Macros, dialects, nil, own_name, templates};
use crate::error::Outcome;
use crate::form::Form;
use crate::span::{Source, Span};
use std::borrow::Cow;
use std::sync::Arc;

/// The state of an expansion to be continued: the counter of unique names, and the nesting.
#[derive(Clone, Copy, Default)]
pub struct Reached {
    fresh: u32,
    depth: u32,
}

impl<'a> Expander<'a> {
    /// Creates an expander for a part of a form whose head was expanded before.
    pub fn of_part(macros: &'a mut dyn Macros, source: &'a Arc<Source>, reached: Reached) -> Expander<'a> {
        Expander { fresh: reached.fresh, depth: reached.depth, ..Expander::new(macros, source) }
    }

    /// Returns the state of the expansion inside a block, for its parts.
    ///
    /// # Errors
    /// Returns `SyntaxError` if the block nests too deep.
    pub fn within_block(mut self, span: Span) -> Outcome<Reached> {
        self.deeper(span)?;
        Ok(Reached { fresh: self.fresh, depth: self.depth })
    }

    /// Expands the head of a form in place until it is no longer a macro.
    ///
    /// # Errors
    /// See [`Expander::expand`].
    pub fn head(&mut self, form: &mut Form) -> Outcome<()> {
        while form.metadata.is_none()
            && let Some(made) = self.step(form)?
        {
            self.deeper(form.span)?;
            *form = templates::code_of(self, form, made);
        }
        Ok(())
    }

    /// Splits a `do` that contains definitions, because a definition, such as a macro, affects the forms that follow
    /// it. Other adjacent forms stay together, so that an undefined name is detected before any of them runs.
    pub fn parts<'f>(&self, form: &'f Form) -> Option<Vec<Cow<'f, Form>>> {
        let (head, forms) = self.block(form)?;
        let defines = |form: &Form| self.calls_session_macro(form) || is_defining(form);
        if !forms.iter().any(defines) {
            return None;
        }
        let groups = forms.chunk_by(|one, other| !defines(one) && !defines(other));
        let part = |group: &'f [Form]| match group {
            [only] => Cow::Borrowed(only),
            group => {
                // A leading nil keeps the rest of a block from matching Scheme's loop.
                let first = dialects::scheme_do(self, group, form.span).map(|_| nil(form.span));
                let forms = std::iter::once(head).chain(&first).chain(group).cloned().collect();
                Cow::Owned(Form::list(forms, form.span))
            }
        };
        Some(groups.map(part).collect())
    }

    /// Returns the head of a `do` and its forms, unless it is Scheme's loop.
    fn block<'f>(&self, form: &'f Form) -> Option<(&'f Form, &'f [Form])> {
        let [head, forms @ ..] = form.as_list()? else { return None };
        let name = head.as_symbol()?;
        let is_do = self.base_name(name).as_deref().unwrap_or(name) == "do";
        (is_do && dialects::scheme_do(self, forms, form.span).is_none()).then_some((head, forms))
    }

    /// Returns whether the form calls a macro of the session, whose expansion is unknown.
    pub(super) fn calls_session_macro(&self, form: &Form) -> bool {
        let head = form.as_list().and_then(<[Form]>::first).and_then(Form::as_symbol);
        head.is_some_and(|head| self.macros.is_macro(own_name(head, self.base_name(head).as_deref().unwrap_or(head))))
    }
}

/// Returns whether the form is a definition, or a block that may contain one.
fn is_defining(form: &Form) -> bool {
    let is_block = ["do", "begin", "progn"].iter().any(|head| form.is_call_of(head));
    form.defined_name().is_some() || is_block && form.as_list().is_some_and(|forms| forms.iter().any(is_defining))
}
