//! A top-level form part by part: the forms of a `do` are evaluated one after another, so that a macro that
//! one of them defines holds for those behind it.

use super::{Expander, Macros, dialects, own_name, templates};
use crate::lang::error::Outcome;
use crate::lang::form::Form;
use crate::lang::span::{Source, Span};
use std::borrow::Cow;
use std::sync::Arc;

/// How far an expansion has come: the names that it has made up, and its nesting.
#[derive(Clone, Copy, Default)]
pub struct Reached {
    fresh: u32,
    depth: u32,
}

impl<'a> Expander<'a> {
    /// An expander for a part of what another has expanded at its head.
    pub fn of_part(macros: &'a mut dyn Macros, source: &'a Arc<Source>, reached: Reached) -> Expander<'a> {
        Expander { fresh: reached.fresh, depth: reached.depth, ..Expander::new(macros, source) }
    }

    /// How far the expansion of a block has come, for its parts.
    ///
    /// # Errors
    /// `SyntaxError` where it nests too deep.
    pub fn within_block(mut self, span: Span) -> Outcome<Reached> {
        self.deeper(span)?;
        Ok(Reached { fresh: self.fresh, depth: self.depth })
    }

    /// Expands what stands at the head of a form until that is no macro, in its place.
    ///
    /// # Errors
    /// As [`Expander::expand`].
    pub fn head(&mut self, form: &mut Form) -> Outcome<()> {
        while form.metadata.is_none()
            && let Some(made) = self.step(form)?
        {
            self.deeper(form.span)?;
            *form = templates::code_of(self, form, made);
        }
        Ok(())
    }

    /// The parts of a `do` that defines something: what a definition means, a macro among them, holds for what
    /// follows it. Other forms stay together, so that a name that means nothing is found before any of them runs.
    pub fn parts<'f>(&self, form: &'f Form) -> Option<Vec<Cow<'f, Form>>> {
        let (head, forms) = self.block(form)?;
        let defines = |form: &Form| self.calls_session_macro(form) || is_defining(form);
        if !forms.iter().any(defines) {
            return None;
        }
        let groups = forms.chunk_by(|one, other| !defines(one) && !defines(other));
        let part = |group: &'f [Form]| match group {
            [only] => Cow::Borrowed(only),
            group => Cow::Owned(Form::list([std::slice::from_ref(head), group].concat(), form.span)),
        };
        Some(groups.map(part).collect())
    }

    /// The head of a `do` and its forms, unless it is Scheme's loop.
    fn block<'f>(&self, form: &'f Form) -> Option<(&'f Form, &'f [Form])> {
        let [head, forms @ ..] = form.as_list()? else { return None };
        let name = head.as_symbol()?;
        let is_do = self.base_name(name).as_deref().unwrap_or(name) == "do";
        (is_do && dialects::scheme_do(self, forms, form.span).is_none()).then_some((head, forms))
    }

    /// True for a call of a macro of the session, which may come to anything.
    pub(super) fn calls_session_macro(&self, form: &Form) -> bool {
        let head = form.as_list().and_then(<[Form]>::first).and_then(Form::as_symbol);
        head.is_some_and(|head| self.macros.is_macro(own_name(head, self.base_name(head).as_deref().unwrap_or(head))))
    }
}

/// True for a definition and for a block that may hold one.
fn is_defining(form: &Form) -> bool {
    let is_block = ["do", "begin", "progn"].iter().any(|head| form.is_call_of(head));
    form.defined_name().is_some() || is_block && form.as_list().is_some_and(|forms| forms.iter().any(is_defining))
}
