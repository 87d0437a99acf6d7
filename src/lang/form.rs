//! Forms: the reader's output, before macro expansion and name resolution.

use crate::span::Span;
use crate::value::time::Time;
use bigdecimal::BigDecimal;
use num_bigint::BigInt;

/// A form with its source position.
#[derive(Clone, Debug)]
pub struct Form {
    /// The kind of the form, with its contents.
    pub kind: FormKind,
    /// The source position; for code from a macro, the position of the macro call.
    pub span: Span,
    /// The metadata that precedes the form, `^{…}`, as a map.
    pub metadata: Option<Box<Form>>,
}

/// The kinds of form. Nesting is bounded by the reader and the expander, so plain recursion is safe.
#[derive(Clone, Debug, PartialEq)]
pub enum FormKind {
    /// `nil`
    Nil,
    /// `true`, `false`, `#t`, `#f`
    Bool(bool),
    /// `42`, `0x2a`
    Int(i64),
    /// `42N`, and integers too large for 64 bits
    BigInt(BigInt),
    /// `1.50M`
    Decimal(BigDecimal),
    /// `#inst "2024-02-29"`, `#time/date "2024-02-29"` and similar
    Time(Time),
    /// `1.5`, `1e9`, `##Inf`
    Float(f64),
    /// `\a`, `\newline`
    Char(char),
    /// `"text"`
    Str(String),
    /// `:name`, without its colon
    Keyword(String),
    /// `name` or `namespace/name`
    Symbol(String),
    /// `#"pattern"`
    Regex(String),
    /// `(a b c)`
    List(Vec<Form>),
    /// `[a b c]`
    Vector(Vec<Form>),
    /// `{k v k v}`: keys and values alternate
    Map(Vec<Form>),
    /// `#{a b}`
    Set(Vec<Form>),
    /// `#tag form`; only in data, where reader functions may define the meaning of tags.
    Tagged(String, Box<Form>),
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.kind == other.kind
    }
}

impl Form {
    /// Creates a form of that kind at that position.
    pub fn new(kind: FormKind, span: Span) -> Form {
        Form { kind, span, metadata: None }
    }

    /// Creates a symbol.
    pub fn symbol(name: &str, span: Span) -> Form {
        Form::new(FormKind::Symbol(name.to_string()), span)
    }

    /// Creates a list.
    pub fn list(items: Vec<Form>, span: Span) -> Form {
        Form::new(FormKind::List(items), span)
    }

    /// Creates a vector.
    pub fn vector(items: Vec<Form>, span: Span) -> Form {
        Form::new(FormKind::Vector(items), span)
    }

    /// Returns the name if the form is a symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        match &self.kind {
            FormKind::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name without its colon if the form is a keyword.
    pub fn as_keyword(&self) -> Option<&str> {
        match &self.kind {
            FormKind::Keyword(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the items if the form is a list.
    pub fn as_list(&self) -> Option<&[Form]> {
        match &self.kind {
            FormKind::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the forms directly within this one.
    pub fn children(&self) -> &[Form] {
        match &self.kind {
            FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => items,
            FormKind::Tagged(_, form) => std::slice::from_ref(form),
            _ => &[],
        }
    }

    /// Returns the items if the form is a list or another collection, else an empty slice.
    pub fn items_mut(&mut self) -> &mut [Form] {
        match &mut self.kind {
            FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => items,
            _ => &mut [],
        }
    }

    /// Takes the form out of its place, leaving nil.
    pub fn take(&mut self) -> Form {
        let nil = Form::new(FormKind::Nil, self.span);
        std::mem::replace(self, nil)
    }

    /// Returns the items if the form is a vector.
    pub fn as_vector(&self) -> Option<&[Form]> {
        match &self.kind {
            FormKind::Vector(items) => Some(items),
            _ => None,
        }
    }

    /// Returns whether the form is the symbol of that name.
    pub fn is_symbol(&self, name: &str) -> bool {
        self.as_symbol() == Some(name)
    }

    /// Returns the name that the form defines, if it is a definition.
    pub fn defined_name(&self) -> Option<&str> {
        let [head, name, ..] = self.as_list()? else { return None };
        let head = head.as_symbol()?;
        // Each program asks this of each form: a search by `rsplit` costs more than the match.
        let at = head.bytes().rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1);
        match &head[at..] {
            "def" | "defn" | "defn-" | "define" | "defun" | "cl-defun" | "defmacro" | "defonce" | "declare"
            | "defmulti" | "defrecord" | "deftype" | "defprotocol" | "defparameter" | "defvar" | "defconst"
            | "defconstant" | "deftest" => match &name.kind {
                FormKind::List(signature) => signature.first()?.as_symbol(),
                _ => name.as_symbol(),
            },
            _ => None,
        }
    }

    /// Returns whether the form is a definition: its value tells nothing.
    pub fn is_definition(&self) -> bool {
        self.defined_name().is_some() || self.is_call_of("defmethod")
    }

    /// Returns whether the form is a call that prints, and whose value is always nil.
    pub fn is_print(&self) -> bool {
        let head = self.as_list().and_then(<[Form]>::first).and_then(Form::as_symbol);
        matches!(
            head.unwrap_or_default(),
            "println"
                | "print"
                | "prn"
                | "pr"
                | "printf"
                | "newline"
                | "pprint"
                | "dir"
                | "doc"
                | "source"
                | "apropos"
                | "doseq"
                | "dotimes"
                | "run!"
        )
    }

    /// Returns whether the form is a list whose head is the symbol of that name.
    pub fn is_call_of(&self, name: &str) -> bool {
        self.as_list().and_then(<[Form]>::first).is_some_and(|head| head.is_symbol(name))
    }
}
