//! Macros of the session: forms become data, a function makes other data of it, that becomes forms.

use super::Machine;
use super::names::{form_of, value_of};
use crate::lang::error::{Error, Outcome};
use crate::lang::expand::{Expander, Macros};
use crate::lang::form::Form;
use crate::lang::span::{Source, Span};
use crate::lang::value::Value;
use std::sync::Arc;

impl Machine {
    /// A form given as data after at most that many steps of expansion.
    ///
    /// # Errors
    /// `SyntaxError`; what a macro of the session raises; limits.
    pub fn macroexpand(&mut self, value: Value, most: usize) -> Outcome<Value> {
        if !matches!(value, Value::List(_) | Value::Lazy(_)) {
            return Ok(value);
        }
        let source = Arc::new(Source::new("macroexpand", ""));
        let mut form = form_of(self, &value, Span::default())?;
        for step in 0..most {
            match Expander::new(self, &source).expand_once(&form)? {
                Some(expanded) => form = expanded,
                None if step == 0 => return Ok(value),
                None => break,
            }
        }
        value_of(&form)
    }
}

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
