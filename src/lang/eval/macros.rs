//! Macros of the session: forms become data, a function makes other data of it, that becomes forms.

use super::Machine;
use super::names::{form_of, value_of};
use crate::lang::error::{Error, Outcome};
use crate::lang::expand::{Expander, Macros};
use crate::lang::form::Form;
use crate::lang::span::{Source, Span};
use crate::lang::value::Value;
use std::sync::Arc;

impl Macros for Machine {
    fn charge(&mut self, steps: u64) -> Outcome<()> {
        Machine::charge(self, steps)
    }

    fn is_macro(&self, name: &str) -> bool {
        self.core.globals.find(name).is_some_and(|index| self.core.globals.get(index).is_macro)
    }

    fn is_defined(&self, name: &str) -> bool {
        self.core.globals.find(name).is_some()
    }

    fn call_macro(&mut self, name: &str, form: &Form) -> Outcome<Form> {
        let function = self.core.globals.find(name).and_then(|index| self.core.globals.get(index).value.clone());
        let Some(function) = function else {
            return Err(Error::new("UnboundVariable", format!("there is no macro `{name}`")).into());
        };
        let mut arguments = Vec::new();
        for argument in form.as_list().unwrap_or_default().iter().skip(1) {
            arguments.push(value_of(argument)?);
        }
        let expanded = self.call(&function, &mut arguments)?;
        form_of(self, &expanded, form.span)
    }
}

/// How far `macroexpand` and its kin go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expansion {
    /// One macro.
    Once,
    /// Until no macro is at the head.
    Head,
    /// All the way down.
    All,
}

impl Machine {
    /// Expands data as if it were code.
    ///
    /// # Errors
    /// `SyntaxError` for what is no code; what macros raise; limits.
    pub(crate) fn expand_data(&mut self, value: &Value, expansion: Expansion) -> Outcome<Value> {
        // Data has no place: errors are shown where the program asked for the expansion.
        let source = Arc::new(Source::hidden("data"));
        let mut form = form_of(self, value, Span::default())?;
        let mut expander = Expander::new(self, &source);
        if expansion == Expansion::All {
            form = expander.expand(&form)?;
        }
        while expansion != Expansion::All
            && let Some(expanded) = expander.step(&form)?
        {
            form = expanded;
            if expansion == Expansion::Once {
                break;
            }
        }
        value_of(&form)
    }
}
