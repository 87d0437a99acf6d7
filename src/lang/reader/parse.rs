//! The parser: a single fold over the flat tokens, with a stack of open forms. The brackets must be balanced.

use chumsky::input::MapExtra;
use chumsky::inspector::SimpleState;
use chumsky::prelude::*;

use super::collections::{self, FunctionLiteral};
use super::literals::{conditional, known_tag, literal, tagged_literal};
use super::tokens::single_quoted;
use super::{Conditionals, ReadError, Reading, brackets, excerpt, text_of};
use crate::form::{Form, FormKind};
use crate::lexer::{Lexeme, Token};
use crate::span::Span;

/// Parses the forms of a program. The brackets must be balanced.
pub(super) fn parse(source: &str, lexemes: &[Lexeme], reading: &Reading) -> Result<Vec<Form>, ReadError> {
    let mut builder = SimpleState(Builder::new(source, reading));
    let stopped = match program().parse_with_state(lexemes, &mut builder).into_result() {
        Ok(()) => return builder.0.finish(),
        Err(errors) => errors.into_iter().find_map(|Stop(error)| error),
    };
    Err(stopped.map_or_else(
        || ReadError::new("UnbalancedBrackets", Span::default(), "the program cannot be read"),
        |error| *error,
    ))
}

/// The parser state: the builder, which is not moved between tokens.
type Building<'s> = extra::Full<Stop, SimpleState<Builder<'s>>, ()>;

/// The grammar: literals, brackets and prefixes in any order; the fold combines them.
fn program<'t, 's: 't>() -> impl Parser<'t, &'t [Lexeme], (), Building<'s>> {
    empty().try_foldl(any_ref().repeated(), |(), lexeme: &Lexeme, fold: &mut MapExtra<'t, '_, _, Building<'s>>| {
        fold.state().take(*lexeme).map_err(Stop::because)
    })
}

/// The reason why the fold stopped; `None` if the grammar stopped it, at the end of the tokens.
struct Stop(Option<Box<ReadError>>);

impl Stop {
    fn because(error: ReadError) -> Stop {
        Stop(Some(Box::new(error)))
    }
}

impl<'t, L> chumsky::error::LabelError<'t, &'t [Lexeme], L> for Stop {
    fn expected_found<E: IntoIterator<Item = L>>(
        _: E,
        _: Option<chumsky::util::MaybeRef<'t, Lexeme>>,
        _: SimpleSpan,
    ) -> Stop {
        Stop(None)
    }
}

impl<'t> chumsky::error::Error<'t, &'t [Lexeme]> for Stop {
    fn merge(self, other: Stop) -> Stop {
        Stop(self.0.or(other.0))
    }
}

/// A form that has begun: an open bracket, or a prefix that waits for its form.
struct Frame {
    token: Token,
    span: Span,
    /// The index of its first item among the finished forms.
    items: usize,
}

/// The state of the fold.
struct Builder<'s> {
    source: &'s str,
    reading: &'s Reading,
    frames: Vec<Frame>,
    /// Finished forms that are not yet part of a frame.
    forms: Vec<Form>,
    /// The arguments of the current `#(…)`, if one is open.
    function: Option<FunctionLiteral>,
}

impl<'s> Builder<'s> {
    fn new(source: &'s str, reading: &'s Reading) -> Builder<'s> {
        Builder { source, reading, frames: Vec::with_capacity(8), forms: Vec::with_capacity(4), function: None }
    }

    fn take(&mut self, lexeme: Lexeme) -> Result<(), ReadError> {
        let Lexeme { token, span } = lexeme;
        if token.is_closer() {
            return self.close(span);
        }
        if token.is_prefix() {
            return self.push(lexeme);
        }
        if token.closer().is_some() {
            if token == Token::FunctionOpen && self.function.replace(FunctionLiteral::default()).is_some() {
                return Err(collections::nested_function(span));
            }
            return self.push(lexeme);
        }
        let Some(form) = literal(self.source, lexeme) else { return Ok(()) };
        let form = match &mut self.function {
            Some(function) => function.argument(form?)?,
            None => form?,
        };
        self.deliver(form)
    }

    fn push(&mut self, lexeme: Lexeme) -> Result<(), ReadError> {
        if self.frames.len() == self.reading.nesting {
            return Err(brackets::too_deep(lexeme.span, self.reading.nesting));
        }
        self.frames.push(Frame { token: lexeme.token, span: lexeme.span, items: self.forms.len() });
        Ok(())
    }

    fn close(&mut self, closer: Span) -> Result<(), ReadError> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        if frame.token.is_prefix() {
            return Err(self.without_form(&frame));
        }
        let span = frame.span.to(closer);
        let items = self.forms.split_off(frame.items);
        let kind = match frame.token {
            Token::FunctionOpen => {
                let function = self.function.take().unwrap_or_default();
                return self.deliver(function.form(items, span, frame.span));
            }
            Token::ConditionalOpen | Token::SpliceOpen => {
                return self.conditional(items, span, frame.token == Token::SpliceOpen);
            }
            opener => collections::collection(self.source, opener, items, span)?,
        };
        self.deliver(Form::new(kind, span))
    }

    /// Replaces a reader conditional by its chosen branch.
    fn conditional(&mut self, items: Vec<Form>, span: Span, splices: bool) -> Result<(), ReadError> {
        let error = |message: &str| ReadError::new("InvalidConditional", span, message);
        match self.reading.conditionals {
            Conditionals::Refuse => {
                return Err(error("reader conditionals are not supported here")
                    .suggest("`(read-string {:read-cond :allow} s)` chooses a branch, `:preserve` keeps them"));
            }
            Conditionals::Keep => return self.deliver(conditional(items, span, splices)),
            Conditionals::Choose => {}
        }
        let chosen = collections::choose(self.source, items, span, self.reading)?;
        if !splices {
            // For data, the form gets the span of the conditional, so that a caller that reads form by form continues
            // after it.
            let placed = |form| if self.reading.is_data { Form { span, ..form } } else { form };
            return chosen.map(placed).map_or(Ok(()), |form| self.deliver(form));
        }
        if self.reading.is_data && self.frames.is_empty() {
            return Err(error("`#?@(…)` splices into the enclosing form, and there is none"));
        }
        collections::spliced(chosen)?.into_iter().try_for_each(|form| self.deliver(form))
    }

    /// Applies a tag to the form after it.
    fn tagged(&self, tag: &Frame, form: Form, span: Span) -> Result<Form, ReadError> {
        let name = &text_of(self.source, tag.span)[1..];
        let is_conditional = |frame: &Frame| matches!(frame.token, Token::ConditionalOpen | Token::SpliceOpen);
        if self.reading.conditionals == Conditionals::Keep && self.frames.iter().any(is_conditional) {
            return Ok(tagged_literal(name, form, span));
        }
        if self.reading.is_data {
            return Ok(Form::new(FormKind::Tagged(name.to_string(), Box::new(form)), span));
        }
        match known_tag(name, &form, span) {
            Some(form) => form,
            // Ignore unknown tags in branches for other dialects.
            None if self.is_passed_over() => Ok(form),
            None => Err(unknown_tag(self.source, name, tag.span)),
        }
    }

    /// Passes a finished form to the prefixes before it, then to the enclosing bracket.
    fn deliver(&mut self, mut form: Form) -> Result<(), ReadError> {
        while let Some(frame) = self.frames.pop_if(|frame| frame.token.is_prefix()) {
            let span = frame.span.to(form.span);
            let wrapped = |name: &str, form: Form| Form::list(vec![Form::symbol(name, frame.span), form], span);
            form = match frame.token {
                Token::Discard => return Ok(()),
                Token::Metadata if self.forms.len() == frame.items => {
                    self.forms.push(form);
                    self.frames.push(frame);
                    return Ok(());
                }
                Token::Metadata => match self.forms.pop() {
                    Some(metadata) => collections::with_metadata(self.source, form, metadata, span)?,
                    None => form,
                },
                Token::SyntaxQuote => wrapped("syntax-quote", form),
                Token::Unquote => wrapped("unquote", form),
                Token::UnquoteSplicing => wrapped("unquote-splicing", form),
                Token::Deref => wrapped("deref", form),
                Token::Var if form.as_symbol().is_some() => wrapped("var", form),
                // `#'(lambda (x) …)`
                Token::Var => Form { span, ..form },
                // Racket's `#:key f`.
                Token::Namespace if !matches!(form.kind, FormKind::Map(_)) => {
                    let keyword = collections::racket_keyword(self.source, frame.span)?;
                    self.deliver(keyword)?;
                    form
                }
                Token::Namespace => collections::qualify(self.source, frame.span, form)?,
                Token::Tag => self.tagged(&frame, form, span)?,
                _ => wrapped("quote", form),
            };
        }
        self.forms.push(form);
        Ok(())
    }

    /// Returns whether the position is inside a branch of a reader conditional for another dialect.
    fn is_passed_over(&self) -> bool {
        let ends = self.frames.iter().skip(1).map(|frame| frame.items).chain([self.forms.len()]);
        self.frames.iter().zip(ends).any(|(frame, end)| {
            let is_conditional = matches!(frame.token, Token::ConditionalOpen | Token::SpliceOpen);
            let in_branch = end > frame.items && (end - frame.items) % 2 == 1;
            is_conditional && in_branch && !self.reading.holds(&self.forms[end - 1])
        })
    }

    fn finish(mut self) -> Result<Vec<Form>, ReadError> {
        match self.frames.pop() {
            Some(frame) => Err(self.without_form(&frame)),
            None => Ok(self.forms),
        }
    }

    fn without_form(&self, frame: &Frame) -> ReadError {
        let shown = excerpt(text_of(self.source, frame.span));
        let message = match frame.token {
            Token::Metadata if self.forms.len() > frame.items => {
                format!("nothing follows the metadata after `{shown}`")
            }
            _ => format!("nothing follows `{shown}`, which must precede a form"),
        };
        let error = ReadError::new("PrefixWithoutForm", frame.span, message);
        match single_quoted(self.source, frame.span.start) {
            Some(text) if frame.token == Token::Quote => {
                error.suggest(format!("strings are written in double quotes: `\"{text}\"`"))
            }
            _ => error,
        }
    }
}

fn unknown_tag(source: &str, tag: &str, span: Span) -> ReadError {
    let error = ReadError::new("UnknownTag", span, format!("the tag `#{}` is not known here", excerpt(tag)));
    let before = source.get(..span.start as usize).unwrap_or_default();
    let begins_line = before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
    if begins_line {
        error.suggest("remove the tag, or, if this is a comment, begin it with `;`")
    } else {
        error.suggest("remove the tag; `#inst`, `#uuid`, `#time/date` and the like are known")
    }
}
