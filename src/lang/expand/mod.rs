//! Macro expansion: from the forms that people and models write to the core forms of the resolver.
//!
//! The output consists of literals, names, calls and the special forms
//! `quote if do and or let* loop* recur fn* letfn* def var try`, with plain names in every binding. Each macro is one
//! function from form to form in [`MACROS`]; names that are bound locally never refer to macros. The output of a macro
//! refers to functions by qualified names (`core/get`), so that no definition of the program can capture them. It
//! refers to other macros (`let`, `fn`) by their plain names, which a definition of the session hides.

mod checks;
mod conditionals;
mod definitions;
mod destructure;
mod dialects;
mod discovery;
mod dispatch;
mod dynamic;
mod functions;
mod iteration;
mod java;
mod letting;
mod loops;
mod namespaces;
mod parts;
mod racket;
mod special;
mod templates;
mod threading;

use crate::error::{Error, Outcome};
use crate::form::{Form, FormKind};
use crate::span::{Source, Span};
use crate::value::map::KIND;
use foldhash::quality::RandomState;
pub use parts::Reached;
pub use special::{SPECIAL_FORMS, SPECIAL_SYMBOLS};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum nesting of expanded code.
const NESTING: u32 = 1_000;

/// The interface to the evaluator that expansion needs: an account to charge, and the macros and names of the session.
pub trait Macros {
    /// Charges steps of expansion.
    fn charge(&mut self, steps: u64) -> Outcome<()>;

    /// Returns whether the session has defined a macro with that name.
    fn is_macro(&self, name: &str) -> bool;

    /// Returns whether the session has defined another value with that name, which then hides a macro of the language.
    fn is_defined(&self, name: &str) -> bool;

    /// Calls the session's macro with that name on the whole form; `locals` are the names bound around the form.
    fn call_macro(&mut self, name: &str, form: &Form, locals: &[String]) -> Outcome<Form>;

    /// Returns the local namespace for a library's functions, or an error that suggests an alternative.
    fn library(&mut self, name: &str) -> Result<String, Error>;

    /// Registers an alias of a library, for this and later programs of the session.
    fn alias(&mut self, alias: &str, library: &str);

    /// Returns whether the name has a meaning.
    fn has(&mut self, name: &str) -> Outcome<bool>;

    /// Returns whether this is one of Clojure's dynamic names that have a predefined value, such as `*print-length*`.
    fn is_dynamic(&self, name: &str) -> bool;

    /// Returns a qualified name without its namespace, if the namespace is the session's own or denotes `core`.
    fn base_name(&self, name: &str) -> Option<String>;

    /// Returns the qualified form of a name, as a template (`` `form ``) contains it.
    fn in_template(&mut self, name: &str) -> String;

    /// Returns the names of a namespace, except those that have a meaning without it.
    fn names_in(&self, namespace: &str) -> Vec<String>;

    /// Returns whether both names refer to the same function of the language.
    fn means_the_same(&self, name: &str, other: &str) -> bool;

    /// Returns an error that suggests an alternative if no class with that name is known.
    fn class(&mut self, name: &str) -> Result<(), Error>;
}

/// A macro of the language: maps the whole form and its arguments to another form.
type Macro = fn(&mut Expander<'_>, &Form, &[Form]) -> Outcome<Form>;

/// The macros of the language by name.
const MACROS: &[(&str, Macro)] = &[
    ("->", threading::first),
    ("->>", threading::last),
    (".", java::dot),
    ("..", java::dots),
    ("alias", namespaces::alias),
    ("and-let*", dialects::when_let_all),
    ("apropos", discovery::apropos),
    ("are", checks::are),
    ("as->", threading::named),
    ("begin", conditionals::block),
    ("begin0", dialects::prog1),
    ("binding", dynamic::binding),
    ("bound-fn", dynamic::bound_fn),
    ("case", conditionals::case),
    ("case-lambda", dialects::case_lambda),
    ("cl-defun", definitions::defun),
    ("cl-destructuring-bind", dialects::bind_values),
    ("cl-dolist", dialects::dolist),
    ("cl-flet", dialects::labels),
    ("cl-labels", dialects::labels),
    ("cl-loop", letting::loop_),
    ("cl-multiple-value-bind", dialects::bind_values),
    ("comment", conditionals::comment),
    ("cond", conditionals::cond),
    ("cond->", threading::conditional_first),
    ("cond->>", threading::conditional_last),
    ("condp", conditionals::condp),
    ("declare", definitions::declare),
    ("defconst", dialects::defparameter),
    ("defconstant", dialects::defparameter),
    ("define", definitions::define),
    ("defmacro", definitions::defmacro),
    ("defmethod", dispatch::defmethod),
    ("defmulti", dispatch::defmulti),
    ("defn", definitions::defn),
    ("defn-", definitions::defn),
    ("defonce", definitions::defonce),
    ("defparameter", dialects::defparameter),
    ("defprotocol", dispatch::defprotocol),
    ("defrecord", dispatch::defrecord),
    ("deftest", checks::deftest),
    ("deftype", dispatch::defrecord),
    ("defun", definitions::defun),
    ("defvar", dialects::defvar),
    ("delay", functions::delay),
    ("destructuring-bind", dialects::bind_values),
    ("dir", discovery::dir),
    ("do-template", checks::do_template),
    ("doc", discovery::doc),
    ("dolist", dialects::dolist),
    ("doseq", iteration::doseq),
    ("dotimes", iteration::dotimes),
    ("doto", threading::doto),
    ("extend-protocol", dispatch::extend_protocol),
    ("extend-type", dispatch::extend_type),
    ("flet", dialects::labels),
    ("fn", functions::function),
    ("for", iteration::comprehension),
    ("if-let", conditionals::if_let),
    ("if-let*", dialects::if_let_all),
    ("if-not", conditionals::if_not),
    ("if-some", conditionals::if_some),
    ("import", namespaces::import),
    ("in-ns", namespaces::in_ns),
    ("is", checks::is),
    ("labels", dialects::labels),
    ("lambda", functions::lambda),
    ("lazy-cat", functions::lazy_cat),
    ("lazy-seq", functions::lazy_seq),
    ("let", letting::let_),
    ("let*-values", dialects::let_values),
    ("let-values", dialects::let_values),
    ("letfn", letting::letfn),
    ("letrec", letting::letrec),
    ("loop", letting::loop_),
    ("multiple-value-bind", dialects::bind_values),
    ("new", dispatch::new),
    ("ns", namespaces::ns),
    ("null", dialects::null),
    ("parallel", functions::parallel),
    ("pcalls", functions::pcalls),
    ("prog1", dialects::prog1),
    ("progn", conditionals::block),
    ("pvalues", functions::pcalls),
    ("receive", dialects::bind_values),
    ("refer", namespaces::use_),
    ("refer-clojure", namespaces::refer_clojure),
    ("reify", dispatch::reify),
    ("require", namespaces::require),
    ("set!", dynamic::set),
    ("some->", threading::some_first),
    ("some->>", threading::some_last),
    ("source", discovery::source),
    ("syntax-quote", templates::syntax_quote),
    ("testing", checks::testing),
    ("time", conditionals::time),
    ("unless", conditionals::when_not),
    ("use", namespaces::use_),
    ("use-fixtures", checks::use_fixtures),
    ("when", conditionals::when),
    ("when-first", conditionals::when_first),
    ("when-let", conditionals::when_let),
    ("when-let*", dialects::when_let_all),
    ("when-not", conditionals::when_not),
    ("when-some", conditionals::when_some),
    ("while", iteration::while_),
    ("with-bindings", dynamic::with_bindings),
    ("with-in-str", dynamic::with_in_str),
    ("with-local-vars", dynamic::with_local_vars),
    ("with-out-str", dynamic::with_out_str),
    ("with-precision", conditionals::with_precision),
    ("with-redefs", dynamic::with_redefs),
    ("λ", functions::lambda),
];

/// Returns the names of the language's macros.
pub fn macro_names() -> impl Iterator<Item = &'static str> {
    MACROS.iter().map(|(name, _)| *name)
}

/// Returns the representative of Racket's loops under which a loop is documented: `for/list` for `for*/sum`.
pub fn racket_loop(name: &str) -> Option<&'static str> {
    racket::is_loop(name).then(|| if name.ends_with("/fold") { "for/fold" } else { "for/list" })
}

/// Expands one top-level form.
pub struct Expander<'a> {
    macros: &'a mut dyn Macros,
    source: &'a Arc<Source>,
    /// Names bound around the current form.
    locals: Vec<String>,
    /// Names that the form has defined so far, which hide macros.
    defined: HashSet<String, RandomState>,
    fresh: u32,
    depth: u32,
}

impl<'a> Expander<'a> {
    /// Creates an expander for forms of that source.
    pub fn new(macros: &'a mut dyn Macros, source: &'a Arc<Source>) -> Expander<'a> {
        Expander { macros, source, locals: Vec::new(), defined: HashSet::default(), fresh: 0, depth: 0 }
    }

    /// Enters one more level of expanded code.
    fn deeper(&mut self, span: Span) -> Outcome<()> {
        if self.depth >= NESTING {
            return self.fail(span, format!("expanded code nests more than {NESTING} deep"));
        }
        self.depth += 1;
        Ok(())
    }

    /// Expands a form completely, in place.
    ///
    /// # Errors
    /// Returns `SyntaxError` with its position, an error of a session's macro, or an exceeded limit.
    pub fn expand(&mut self, form: &mut Form) -> Outcome<()> {
        // Looking up a name scans all names that are bound around it.
        self.macros.charge(1 + self.locals.len() as u64 / 64)?;
        self.deeper(form.span)?;
        let expanded = self.expand_kind(form);
        self.depth -= 1;
        expanded
    }

    fn expand_kind(&mut self, form: &mut Form) -> Outcome<()> {
        if let Some(metadata) = form.metadata.take() {
            return self.expand_annotated(form, *metadata);
        }
        match &form.kind {
            FormKind::List(_) => self.expand_list(form),
            FormKind::Symbol(name) if self.macros.is_dynamic(name) => {
                self.expand_dynamic(form);
                Ok(())
            }
            _ => self.expand_items(form),
        }
    }

    /// Expands the items of a collection or a call.
    fn expand_items(&mut self, form: &mut Form) -> Outcome<()> {
        self.expand_all(form.items_mut())
    }

    /// Expands a form with metadata. Collections and functions carry the metadata as values; on other forms it is a
    /// hint, which is dropped.
    fn expand_annotated(&mut self, form: &mut Form, metadata: Form) -> Outcome<()> {
        let carries = match &form.kind {
            FormKind::List(_) => form.is_call_of("fn"),
            kind => matches!(kind, FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_)),
        };
        if carries {
            let span = form.span;
            let says_kind = |items: &Vec<Form>| items.iter().step_by(2).any(|key| key.as_keyword() == Some(KIND));
            let metadata = match &metadata.kind {
                // The printed form of a record: its type is a name, not the value of that name.
                FormKind::Map(items) if says_kind(items) => call("quote", vec![metadata], span),
                _ => metadata,
            };
            *form = call("core/with-meta", vec![form.take(), metadata], span);
        }
        self.expand(form)
    }

    fn expand_list(&mut self, form: &mut Form) -> Outcome<()> {
        let (span, items) = (form.span, form.as_list().unwrap_or_default());
        if let Some(Form { kind: FormKind::Nil, .. }) = items.first() {
            return self.fail(
                span,
                "cannot call nil; a list as data is quoted, `'(nil …)`, or made with `(list nil …)`".to_string(),
            );
        }
        let Some(head) = items.first().and_then(Form::as_symbol) else { return self.expand_items(form) };
        // Java's access to a field of a record: `(.-x point)`.
        if let (Some(field), [first, of]) = (head.strip_prefix(".-"), items) {
            *form = match field {
                "length" => call("core/length-of*", vec![of.clone()], span),
                field => {
                    let keyword = Form::new(FormKind::Keyword(field.to_string()), first.span);
                    Form::list(vec![keyword, of.clone()], span)
                }
            };
            return self.expand(form);
        }
        self.macros.charge(self.locals.len() as u64 / 64)?;
        if self.is_local(head) {
            return match special::named(head) {
                // Macros in Clojure, which a local shadows.
                Some("and" | "or") => {
                    let name = form.items_mut()[0].take();
                    form.items_mut()[0] = call("do", vec![name], span);
                    self.expand_items(form)
                }
                Some(special) => self.expand_special(special, form),
                None => self.expand_items(form),
            };
        }
        let base = self.base_name(head);
        let name = base.as_deref().unwrap_or(head);
        if let Some(special) = special::named(name) {
            return self.expand_special(special, form);
        }
        if let Some(made) = self.expand_macro(head, name, form)? {
            *form = templates::code_of(self, form, made);
            return self.expand(form);
        }
        if name == "assert"
            && !self.macros.is_defined(name)
            && let Some(asserted) = functions::assertion(self, &items[1..])
        {
            *form = asserted;
            return self.expand_items(form);
        }
        if let Some(at) = dialects::unquoted_function(self, name, &items[1..]) {
            let quoted = &mut form.items_mut()[1 + at];
            *quoted = quoted.items_mut()[1].take();
        }
        self.expand_items(form)
    }

    /// Applies the macro at the head of a form; `None` if there is no macro.
    fn expand_macro(&mut self, head: &str, name: &str, form: &Form) -> Outcome<Option<Form>> {
        let rest = form.as_list().map_or(&[][..], |items| &items[1..]);
        let own = if self.names_session(head, name) { name } else { own_name(head, name) };
        if self.defined.contains(own) {
            return Ok(None);
        }
        if self.macros.is_macro(own) {
            let expanded =
                self.macros.call_macro(own, form, &self.locals).map_err(|signal| signal.at(self.source, form.span))?;
            return Ok(Some(expanded));
        }
        match MACROS.binary_search_by(|(known, _)| known.bytes().cmp(name.bytes())) {
            Ok(at) if !self.macros.is_defined(own) => (MACROS[at].1)(self, form, rest).map(Some),
            Err(_) if racket::is_loop(name) && !self.macros.is_defined(own) => {
                racket::expanded(self, form, rest).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// True for a head such as `app/twice`, if `(ns app)` has named the session's namespace; `name` is its base name.
    fn names_session(&mut self, head: &str, name: &str) -> bool {
        let namespace = head.split_once('/').map(|(namespace, _)| namespace).filter(|_| head != name);
        namespace.is_some_and(|namespace| self.macros.library(namespace).is_ok_and(|library| library == "user"))
    }

    /// Performs one step of expansion: applies the macro at the head of a form; `None` if there is no macro.
    ///
    /// # Errors
    /// See [`Expander::expand`].
    pub fn step(&mut self, form: &Form) -> Outcome<Option<Form>> {
        let Some(head) = form.as_list().and_then(<[Form]>::first).and_then(Form::as_symbol) else { return Ok(None) };
        let base = self.base_name(head);
        let name = base.as_deref().unwrap_or(head);
        let expanded = if special::is_special_form(name) { None } else { self.expand_macro(head, name, form)? };
        self.macros.charge(u64::from(expanded.is_some()))?;
        Ok(expanded)
    }

    /// Returns a qualified head without its namespace, if the namespace is `core` or the session's.
    fn base_name(&self, head: &str) -> Option<String> {
        if head.contains('/') { self.macros.base_name(head) } else { None }
    }

    fn expand_all(&mut self, forms: &mut [Form]) -> Outcome<()> {
        forms.iter_mut().try_for_each(|form| self.expand(form))
    }

    /// Expands a dynamic name with a predefined value, such as `*print-length*`, unless the program has defined it.
    fn expand_dynamic(&self, form: &mut Form) {
        let Some(name) = form.as_symbol().filter(|name| !self.is_local(name) && !self.macros.is_defined(name)) else {
            return;
        };
        let base = name.rsplit('/').next().unwrap_or(name);
        let quoted = call("quote", vec![Form::symbol(base, form.span)], form.span);
        *form = call("core/dynamic*", vec![quoted], form.span);
    }

    /// Brings a name into scope.
    fn bind(&mut self, name: &Form) {
        if let Some(name) = name.as_symbol() {
            self.locals.push(name.to_string());
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|local| local == name)
    }

    /// Creates a name that is unique among those of this expander. It collides with an equal name in the program.
    fn fresh(&mut self, stem: &str, span: Span) -> Form {
        self.fresh += 1;
        Form::symbol(&format!("{stem}__{}", self.fresh), span)
    }

    /// Returns a `SyntaxError` at that position.
    fn fail<T>(&self, span: Span, message: String) -> Outcome<T> {
        Err(crate::error::Signal::from(Error::new("SyntaxError", message)).at(self.source, span))
    }

    /// Checks that the names of options, which stand before their values, are known.
    fn options(&self, form: &str, pairs: &[Form], known: &[&str]) -> Outcome<()> {
        for pair in pairs.chunks(2) {
            let error = match pair[0].as_keyword() {
                Some(name) if !known.contains(&name) => Error::unknown_option(form, name, known, known),
                Some(name) if pair.len() == 1 => {
                    Error::new("SyntaxError", format!("the option `:{name}` of `{form}` has no value"))
                }
                Some(_) => continue,
                None => {
                    let message = format!("expected an option of `{form}`, got {}", show(&pair[0]));
                    Error::new("SyntaxError", message).suggest(format!("it takes :{}", known.join(", :")))
                }
            };
            return Err(crate::error::Signal::from(error).at(self.source, pair[0].span));
        }
        Ok(())
    }

    /// Checks the number of arguments.
    fn count(&self, form: &Form, rest: &[Form], least: usize, most: usize) -> Outcome<()> {
        if (least..=most).contains(&rest.len()) {
            return Ok(());
        }
        let name = form.as_list().and_then(|items| items.first()).and_then(Form::as_symbol).unwrap_or("form");
        let expected = match (least, most) {
            (least, usize::MAX) => format!("at least {least}"),
            (least, most) if least == most => format!("{least}"),
            (least, most) => format!("{least} to {most}"),
        };
        self.fail(form.span, format!("`{name}` takes {expected} forms, got {}", rest.len()))
    }
}

/// Returns the name under which the session may have defined the macro at the head of a form: `twice` for `user/twice`.
fn own_name<'n>(head: &'n str, name: &'n str) -> &'n str {
    if head.starts_with("user/") { name } else { head }
}

/// Creates a call of the function with that name.
fn call(name: &str, arguments: Vec<Form>, span: Span) -> Form {
    let mut items = Vec::with_capacity(arguments.len() + 1);
    items.push(Form::symbol(name, span));
    items.extend(arguments);
    Form::list(items, span)
}

/// Concatenates a form and the forms that follow it.
fn followed(first: Form, rest: &[Form]) -> Vec<Form> {
    std::iter::once(first).chain(rest.iter().cloned()).collect()
}

/// Returns `(do …)`, or the only form of a body.
fn body(forms: &[Form], span: Span) -> Form {
    match forms {
        [only] if !only.is_call_of("define") => only.clone(),
        forms => call("do", forms.to_vec(), span),
    }
}

fn nil(span: Span) -> Form {
    Form::new(FormKind::Nil, span)
}

/// Returns a name without its metadata, as text.
fn plain(form: &Form) -> &str {
    form.as_symbol().unwrap_or("name")
}

/// Formats a form for messages.
fn show(form: &Form) -> String {
    match &form.kind {
        FormKind::Nil => "nil".to_string(),
        FormKind::Symbol(name) => format!("`{name}`"),
        FormKind::Keyword(name) => format!("`:{name}`"),
        FormKind::Str(text) => format!("\"{text}\""),
        FormKind::Int(number) => format!("`{number}`"),
        FormKind::List(_) => "a list".to_string(),
        FormKind::Vector(_) => "a vector".to_string(),
        FormKind::Map(_) => "a map".to_string(),
        FormKind::Set(_) => "a set".to_string(),
        _ => "a literal".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_macros_is_sorted() {
        assert!(MACROS.is_sorted_by_key(|(name, _)| *name));
        assert!(SPECIAL_FORMS.is_sorted());
    }

    #[test]
    fn macros_that_define_their_first_argument_are_known_by_it() {
        // `defmethod` extends an existing definition.
        for name in
            macro_names().filter(|name| name.trim_start_matches("cl-").starts_with("def") && *name != "defmethod")
        {
            let form = call(name, vec![Form::symbol("known", Span::default())], Span::default());
            assert_eq!(form.defined_name(), Some("known"), "{name}");
        }
    }
}
