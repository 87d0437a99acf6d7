//! The special forms, whose parts are not all expressions.

use super::{Expander, conditionals, definitions, dialects, functions, letting, plain, show};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::span::Span;

macro_rules! special_forms {
    ($($name:literal)*) => {
        /// The special forms, which neither a local nor a definition shadows; but a local shadows `and` and `or`.
        pub const SPECIAL_FORMS: &[&str] = &[$($name),*];

        /// Returns whether this is the name of a special form, without a search: the head of each list is asked for.
        #[inline]
        pub(super) fn is_special_form(name: &str) -> bool {
            matches!(name, $($name)|*)
        }
    };
}

special_forms! { "and" "def" "do" "fn*" "if" "let*" "letfn*" "loop*" "or" "quote" "recur" "try" "var" }

/// The names that Clojure counts among its special forms: `special-symbol?` accepts them, and templates leave them
/// unqualified.
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

/// The special forms that other kinds of definition expand to.
const DEFINING: &[&str] = &["defmacro*", "defonce*"];

/// Returns the special form with that name.
pub(super) fn named(name: &str) -> Option<&'static str> {
    let known = if is_special_form(name) { SPECIAL_FORMS } else { DEFINING };
    known.iter().copied().find(|known| *known == name)
}

impl Expander<'_> {
    /// Expands the special form with that name.
    pub(super) fn expand_special(&mut self, name: &'static str, form: &mut Form) -> Outcome<()> {
        let span = form.span;
        let rest = form.as_list().map_or(&[][..], |items| &items[1..]);
        match name {
            "quote" => self.count(form, rest, 1, 1)?,
            "var" => {
                self.count(form, rest, 1, 1)?;
                match &rest[0] {
                    first if first.as_symbol().is_some() => form.items_mut()[1].metadata = None,
                    // `#'(lambda (x) …)`
                    first if first.as_list().is_some() => {
                        *form = form.items_mut()[1].take();
                        return self.expand(form);
                    }
                    first => return self.fail(span, format!("`var` takes a name, not {}", show(first))),
                }
            }
            "if" => {
                if rest.len() > 3 {
                    return self.fail(span, format!("`if` takes a test and two values, got {} forms: `(cond t1 a t2 b :else c)` has several tests, `(do a b)` groups forms", rest.len()));
                }
                self.count(form, rest, 2, 3)?;
                self.expand_all(&mut form.items_mut()[1..])?;
            }
            "do" => match dialects::scheme_do(self, rest, span) {
                Some(looping) => {
                    *form = looping;
                    return self.expand(form);
                }
                None => self.expand_body(form, 1, span)?,
            },
            "and" | "or" | "recur" => self.expand_all(&mut form.items_mut()[1..])?,
            "let*" if rest.first().is_some_and(|bindings| bindings.as_list().is_some()) => {
                *form = letting::let_star(self, form, rest)?;
                return self.expand(form);
            }
            "let*" | "loop*" => self.expand_bindings(name, form)?,
            "fn*" => functions::expand_fn(self, form)?,
            "letfn*" => self.expand_letfn(form)?,
            "def" | "defonce*" | "defmacro*" => self.expand_def(name, form)?,
            _ => conditionals::expand_try(self, form)?,
        }
        let head = match name {
            "defonce*" => "core/defonce*",
            "defmacro*" => "core/defmacro*",
            name => name,
        };
        if let [first, ..] = form.items_mut() {
            if !first.is_symbol(head) {
                first.kind = FormKind::Symbol(head.to_string());
            }
            (first.span, first.metadata) = (span, None);
        }
        Ok(())
    }

    /// Expands the bindings of `let*` and `loop*`: each name is in scope for the bindings that follow.
    fn expand_bindings(&mut self, name: &str, form: &mut Form) -> Outcome<()> {
        let span = form.span;
        let [_, Form { kind: FormKind::Vector(bindings), metadata, .. }, ..] = form.items_mut() else {
            return self.fail(span, format!("`{name}` takes a vector of bindings"));
        };
        *metadata = None;
        bindings.truncate(bindings.len() & !1);
        let outer = self.locals.len();
        for pair in bindings.chunks_exact_mut(2) {
            self.expand(&mut pair[1])?;
            self.bind(&pair[0]);
        }
        self.expand_body(form, 2, span)?;
        self.locals.truncate(outer);
        Ok(())
    }

    fn expand_letfn(&mut self, form: &mut Form) -> Outcome<()> {
        let span = form.span;
        let [_, Form { kind: FormKind::Vector(bindings), metadata, .. }, ..] = form.items_mut() else {
            return self.fail(span, "`letfn` takes a vector of functions".to_string());
        };
        *metadata = None;
        bindings.truncate(bindings.len() & !1);
        let outer = self.locals.len();
        for pair in bindings.chunks_exact(2) {
            self.bind(&pair[0]);
        }
        for pair in bindings.chunks_exact_mut(2) {
            self.expand(&mut pair[1])?;
        }
        self.expand_body(form, 2, span)?;
        self.locals.truncate(outer);
        Ok(())
    }

    fn expand_def(&mut self, define: &str, form: &mut Form) -> Outcome<()> {
        let rest = form.as_list().map_or(&[][..], |items| &items[1..]);
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
                .fail(doc.span, format!("`def` takes a name, a doc string and a value; {shown} is not a doc string"));
        }
        let [_, name, values @ ..] = form.items_mut() else { return Ok(()) };
        self.expand_all(values)?;
        // `(def f (fn [x] …))`: the function has the name of its definition, as that of a `defn`.
        if let Some(FormKind::List(function)) = values.last_mut().map(|value| &mut value.kind)
            && function.first().is_some_and(|head| head.is_symbol("fn*"))
            && function.get(1).is_some_and(|next| matches!(next.kind, FormKind::List(_)))
        {
            function.insert(1, Form::new(FormKind::Str(plain(name).to_string()), name.span));
        }
        if let Some(metadata) = name.metadata.as_deref_mut() {
            definitions::quote_hints(metadata);
            self.expand(metadata)?;
        }
        if define != "defmacro*" {
            self.defined.insert(plain(name).to_string());
        }
        Ok(())
    }

    /// Expands a body, the items of a list from index `from`: inner `define`s are local to the forms that follow.
    pub(super) fn expand_body(&mut self, list: &mut Form, from: usize, span: Span) -> Outcome<()> {
        let FormKind::List(items) = &mut list.kind else { return Ok(()) };
        if let Some(form) = definitions::inner_defines(self, &items[from..], span)? {
            items.truncate(from);
            items.push(form);
        }
        self.expand_all(&mut items[from..])
    }
}
