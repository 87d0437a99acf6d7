//! The code of functions, whose forms are folded from the tokens of the scanner without the reader.

use super::tape::{Kind, Node, decimal};
use crate::form::{Form, FormKind};
use crate::lexer::Lexeme;
use crate::reader;
use crate::span::Span;

/// Code of which a part has been scanned.
#[derive(Default)]
pub(super) struct Code {
    /// The open brackets, each with the index of its first item.
    open: Vec<(Lexeme, usize)>,
    /// Finished forms that are not yet part of a bracket.
    forms: Vec<Form>,
}

impl Code {
    /// Returns the number of open brackets.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns whether no bracket is open.
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the form that has been scanned.
    pub fn into_form(mut self) -> Option<Form> {
        self.forms.pop()
    }

    /// Begins a list, a vector, a map or a set.
    pub fn open(&mut self, bracket: Lexeme) {
        self.open.push((bracket, self.forms.len()));
    }

    /// Ends the innermost list, vector, map or set; returns `None` if the reader would refuse it.
    pub fn close(&mut self, text: &str, bracket: Lexeme) -> Option<()> {
        let (opened, first) = self.open.pop()?;
        if opened.token.closer() != Some(bracket.token) {
            return None;
        }
        let span = opened.span.to(bracket.span);
        let items = self.forms.split_off(first);
        let kind = reader::collection(text, opened.token, items, span).ok()?;
        self.add(Form::new(kind, span));
        Some(())
    }

    /// Adds a form.
    pub fn add(&mut self, form: Form) {
        self.forms.push(form);
    }

    /// Adds the form of a token.
    pub fn add_token(&mut self, text: &str, Node { kind, start, end }: Node) {
        let token = &text[start as usize..end as usize];
        let kind = match kind {
            Kind::True => FormKind::Bool(true),
            Kind::False => FormKind::Bool(false),
            Kind::Int => FormKind::Int(decimal(token)),
            Kind::Float => FormKind::Float(token.parse().unwrap_or(f64::NAN)),
            Kind::Str => FormKind::Str(token[1..token.len() - 1].to_owned()),
            Kind::Keyword => FormKind::Keyword(token[1..].to_owned()),
            Kind::Symbol => FormKind::Symbol(token.to_owned()),
            Kind::Nil | Kind::List | Kind::Vector | Kind::Form | Kind::Code => FormKind::Nil,
        };
        self.add(Form::new(kind, Span { start, end }));
    }
}
