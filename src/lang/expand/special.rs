//! The special forms, whose parts are not all expressions.

use super::{Expander, call, conditionals, definitions, dialects, functions, letting, plain, show};
use crate::lang::error::Outcome;
use crate::lang::form::{Form, FormKind};
use crate::lang::span::Span;

/// The special forms, which no name can hide.
pub const SPECIAL_FORMS: &[&str] =
    &["and", "def", "do", "fn*", "if", "let*", "letfn*", "loop*", "or", "quote", "recur", "try", "var"];

/// What Clojure counts among its special forms: `special-symbol?` knows it, and templates leave it without a
/// namespace.
pub const SPECIAL_SYMBOLS: &[&str] = &[
    "&",
    ".",
    "case*",
    "catch",
    "def",
    "deftype*",
    "do",
    "finally",
    "fn*",
    "if",
    "let*",
    "letfn*",
    "loop*",
    "monitor-enter",
    "monitor-exit",
    "new",
    "quote",
    "recur",
    "reify*",
    "set!",
    "throw",
    "try",
    "var",
];

impl Expander<'_> {
    /// The special forms, whose parts are not all expressions.
    pub(super) fn expand_special(&mut self, name: &str, form: &Form, rest: &[Form]) -> Outcome<Option<Form>> {
        let expanded = match name {
            "quote" => {
                self.count(form, rest, 1, 1)?;
                call("quote", rest.to_vec(), form.span)
            }
            "var" => {
                self.count(form, rest, 1, 1)?;
                match rest[0].as_symbol() {
                    Some(_) => call("var", vec![Form { metadata: None, ..rest[0].clone() }], form.span),
                    // `#'(lambda (x) …)`
                    None if rest[0].as_list().is_some() => return self.expand(&rest[0]).map(Some),
                    None => return self.fail(form.span, format!("`var` takes a name, not {}", show(&rest[0]))),
                }
            }
            "if" => {
                if rest.len() > 3 {
                    return self.fail(form.span, format!("`if` takes a test and two values, got {} forms: `(cond t1 a t2 b :else c)` has several tests, `(do a b)` puts forms together", rest.len()));
                }
                self.count(form, rest, 2, 3)?;
                call("if", self.expand_all(rest)?, form.span)
            }
            "do" => match dialects::scheme_do(self, rest, form.span) {
                Some(looping) => return self.expand(&looping).map(Some),
                None => call("do", self.expand_body(rest, form.span)?, form.span),
            },
            "and" | "or" | "recur" => call(name, self.expand_all(rest)?, form.span),
            "let*" if rest.first().is_some_and(|bindings| bindings.as_list().is_some()) => {
                let expanded = letting::let_star(self, form, rest)?;
                return self.expand(&expanded).map(Some);
            }
            "let*" | "loop*" => self.expand_bindings(name, form, rest)?,
            "fn*" => functions::expand_fn(self, form, rest)?,
            "letfn*" => self.expand_letfn(form, rest)?,
            "def" => self.expand_def("def", form, rest)?,
            "defonce*" => self.expand_def("core/defonce*", form, rest)?,
            "defmacro*" => self.expand_def("core/defmacro*", form, rest)?,
            "try" => conditionals::expand_try(self, form, rest)?,
            _ => return Ok(None),
        };
        Ok(Some(expanded))
    }

    /// `let*` and `loop*`: names one after another, each in scope from then on.
    fn expand_bindings(&mut self, name: &str, form: &Form, rest: &[Form]) -> Outcome<Form> {
        let Some(bindings) = rest.first().and_then(Form::as_vector) else {
            return self.fail(form.span, format!("`{name}` takes a vector of bindings"));
        };
        let outer = self.locals.len();
        let mut expanded = Vec::with_capacity(bindings.len());
        for pair in bindings.chunks_exact(2) {
            let value = self.expand(&pair[1])?;
            self.bind(&pair[0]);
            expanded.extend([pair[0].clone(), value]);
        }
        let mut items = vec![Form::symbol(name, form.span), Form::vector(expanded, rest[0].span)];
        items.extend(self.expand_body(&rest[1..], form.span)?);
        self.locals.truncate(outer);
        Ok(Form::list(items, form.span))
    }

    fn expand_letfn(&mut self, form: &Form, rest: &[Form]) -> Outcome<Form> {
        let Some(bindings) = rest.first().and_then(Form::as_vector) else {
            return self.fail(form.span, "`letfn` takes a vector of functions".to_string());
        };
        let outer = self.locals.len();
        for pair in bindings.chunks_exact(2) {
            self.bind(&pair[0]);
        }
        let mut expanded = Vec::with_capacity(bindings.len());
        for pair in bindings.chunks_exact(2) {
            expanded.extend([pair[0].clone(), self.expand(&pair[1])?]);
        }
        let mut items = vec![Form::symbol("letfn*", form.span), Form::vector(expanded, rest[0].span)];
        items.extend(self.expand_body(&rest[1..], form.span)?);
        self.locals.truncate(outer);
        Ok(Form::list(items, form.span))
    }

    fn expand_def(&mut self, define: &str, form: &Form, rest: &[Form]) -> Outcome<Form> {
        if rest.len() > 2 && !matches!(rest[1].kind, FormKind::Str(_)) {
            return self.fail(
                form.span,
                format!(
                    "`def` takes a name and one value: `(def {} value)`, got {} forms",
                    plain(&rest[0]),
                    rest.len()
                ),
            );
        }
        self.count(form, rest, 1, 3)?;
        if rest[0].as_symbol().is_none() {
            return self.fail(rest[0].span, format!("`def` takes a name, not {}", show(&rest[0])));
        }
        if let [_, doc, _] = rest
            && !matches!(doc.kind, FormKind::Str(_))
        {
            let shown = show(doc);
            return self
                .fail(doc.span, format!("`def` takes a name, a doc string and a value; {shown} is no doc string"));
        }
        let value = self.expand_all(&rest[1..])?;
        let metadata = match &rest[0].metadata {
            Some(metadata) => Some(Box::new(self.expand(&definitions::without_hints(metadata))?)),
            None => None,
        };
        let name = Form { metadata, ..rest[0].clone() };
        if define != "core/defmacro*" {
            self.defined.insert(plain(&name).to_string());
        }
        Ok(call(define, [vec![name], value].concat(), form.span))
    }

    /// A body: inner `define`s are local to what follows them.
    pub(super) fn expand_body(&mut self, body: &[Form], span: Span) -> Outcome<Vec<Form>> {
        match definitions::inner_defines(self, body, span)? {
            Some(form) => Ok(vec![self.expand(&form)?]),
            None => self.expand_all(body),
        }
    }
}
