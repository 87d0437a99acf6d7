//! The text of a snapshot as a tape: its lists, vectors and tokens one after the other, without a node of their own on
//! the heap. Scalars are converted when a value is built from them.
//!
//! `scan` makes a tape from text as `encode` writes it. It declines any other text, which is then read by the reader
//! and made into the same tape by [`Tape::of_forms`]; an error is therefore always that of the reader.

use crate::form::{Form, FormKind};
use std::cell::RefCell;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `(…)`
    List,
    /// `[…]`
    Vector,
    /// `nil`
    Nil,
    /// `true`
    True,
    /// `false`
    False,
    /// An integer of up to eighteen decimal digits.
    Int,
    /// Decimal digits around a point.
    Float,
    /// A string without escapes, with its quotes.
    Str,
    /// A keyword with its colon, without a namespace.
    Keyword,
    /// A symbol without a namespace.
    Symbol,
    /// A form that the reader has read: any other scalar.
    Form,
    /// The code of functions, one form.
    Code,
}

/// A list, a vector or a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    /// The offset of its first byte in the text.
    pub start: u32,
    /// A list or vector: the index of the node after its last item. A form or code: its index. A token: the offset past it.
    pub end: u32,
}

/// The nodes of a text.
pub(super) struct Tape<'s> {
    pub text: &'s str,
    pub nodes: Vec<Node>,
    pub forms: Vec<Form>,
    /// The code of functions; `None` once it has been taken.
    codes: Vec<RefCell<Option<Form>>>,
}

impl<'s> Tape<'s> {
    /// Creates an empty tape of a text.
    pub fn new(text: &'s str, capacity: usize) -> Tape<'s> {
        Tape { text, nodes: Vec::with_capacity(capacity), forms: Vec::new(), codes: Vec::new() }
    }

    /// Creates the tape of forms that the reader has read.
    pub fn of_forms(text: &'s str, forms: Vec<Form>) -> Tape<'s> {
        let mut tape = Tape::new(text, forms.len());
        forms.into_iter().for_each(|form| tape.add(form));
        tape
    }

    /// Adds a form and its items.
    fn add(&mut self, form: Form) {
        let (kind, items) = match form.kind {
            FormKind::List(_) if form.is_call_of("functions") => return self.add_code(form),
            FormKind::List(items) => (Kind::List, items),
            FormKind::Vector(items) => (Kind::Vector, items),
            _ => return self.add_form(form),
        };
        let at = self.nodes.len();
        self.nodes.push(Node { kind, start: form.span.start, end: 0 });
        items.into_iter().for_each(|item| self.add(item));
        self.nodes[at].end = self.nodes.len() as u32;
    }

    /// Adds a form as a whole.
    pub fn add_form(&mut self, form: Form) {
        self.nodes.push(Node { kind: Kind::Form, start: form.span.start, end: self.forms.len() as u32 });
        self.forms.push(form);
    }

    /// Adds the code of functions.
    pub fn add_code(&mut self, form: Form) {
        self.nodes.push(Node { kind: Kind::Code, start: form.span.start, end: self.codes.len() as u32 });
        self.codes.push(RefCell::new(Some(form)));
    }

    /// Returns the rows.
    pub fn rows(&self) -> Parts<'_> {
        Parts { tape: self, at: 0, end: self.nodes.len() }
    }
}

/// A node of a tape.
#[derive(Clone, Copy)]
pub(super) struct Part<'t> {
    tape: &'t Tape<'t>,
    at: usize,
}

impl<'t> Part<'t> {
    #[inline]
    fn node(self) -> Node {
        self.tape.nodes[self.at]
    }

    #[inline]
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Returns the offset of its first byte.
    pub fn start(self) -> u32 {
        self.node().start
    }

    /// Returns the index of the node after this one and its items.
    #[inline]
    fn after(self) -> usize {
        let node = self.node();
        if matches!(node.kind, Kind::List | Kind::Vector) { node.end as usize } else { self.at + 1 }
    }

    /// Returns the items of a list or a vector; none for others.
    pub fn items(self) -> Parts<'t> {
        Parts { tape: self.tape, at: self.at + 1, end: self.after() }
    }

    /// Returns the form that the reader has read.
    pub fn form(self) -> Option<&'t Form> {
        let node = self.node();
        if node.kind == Kind::Form { self.tape.forms.get(node.end as usize) } else { None }
    }

    /// Returns the code of functions.
    pub fn code(self) -> Option<&'t RefCell<Option<Form>>> {
        let node = self.node();
        if node.kind == Kind::Code { self.tape.codes.get(node.end as usize) } else { None }
    }

    /// Returns the text of a token; `None` for a list, a vector, a form or code.
    #[inline]
    pub fn token(self) -> Option<&'t str> {
        let Node { kind, start, end } = self.node();
        if matches!(kind, Kind::List | Kind::Vector | Kind::Form | Kind::Code) {
            return None;
        }
        self.tape.text.get(start as usize..end as usize)
    }

    /// Returns the name of a symbol.
    pub fn symbol(self) -> Option<&'t str> {
        match self.kind() {
            Kind::Symbol => self.token(),
            Kind::Form => self.form()?.as_symbol(),
            _ => None,
        }
    }

    /// Returns the name of a keyword.
    pub fn keyword(self) -> Option<&'t str> {
        match self.kind() {
            Kind::Keyword => self.token().map(|token| &token[1..]),
            Kind::Form => self.form()?.as_keyword(),
            _ => None,
        }
    }

    /// Returns the text of a string.
    pub fn string(self) -> Option<&'t str> {
        match (self.kind(), self.form().map(|form| &form.kind)) {
            (Kind::Str, _) => self.token().map(|token| &token[1..token.len() - 1]),
            (_, Some(FormKind::Str(text))) => Some(text),
            _ => None,
        }
    }

    /// Returns an integer of 64 bits.
    pub fn integer(self) -> Option<i64> {
        match (self.kind(), self.form().map(|form| &form.kind)) {
            (Kind::Int, _) => self.token().map(decimal),
            (_, Some(FormKind::Int(value))) => Some(*value),
            _ => None,
        }
    }

    /// Returns whether this is `true`.
    pub fn is_true(self) -> bool {
        self.kind() == Kind::True || matches!(self.form().map(|form| &form.kind), Some(FormKind::Bool(true)))
    }

    /// Splits a list into the symbol that it begins with and the items after it; returns no symbol and no items for
    /// others.
    pub fn row(self) -> (&'t str, Parts<'t>) {
        let mut items = self.items();
        match self.kind() {
            Kind::List => {}
            Kind::Code => return ("functions", items),
            _ => return ("", items),
        }
        let head = items.next().and_then(Part::symbol);
        (head.unwrap_or_default(), items)
    }

    /// Collects the rows that must be read before this one. Cells exist from the beginning.
    pub fn references(self, out: &mut Vec<i64>) {
        let (mut at, end) = (self.at, self.after());
        while at < end {
            let part = Part { at, ..self };
            at += 1;
            if part.kind() != Kind::List {
                continue;
            }
            match part.row() {
                ("ref", rest) => out.extend(rest.exactly().and_then(|[id]| id.integer())),
                ("function", rest) => {
                    let ids =
                        rest.exactly().and_then(|[group, _, captures]| Some([group.integer()?, captures.integer()?]));
                    out.extend(ids.into_iter().flatten());
                }
                ("quote", _) => at = part.after(),
                _ => {}
            }
        }
    }
}

/// Returns the value of an integer of up to eighteen decimal digits.
pub(super) fn decimal(token: &str) -> i64 {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let value = digits.bytes().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    if digits.len() < token.len() { -value } else { value }
}

/// Consecutive nodes: the rows of a text, or the items of a list or a vector.
#[derive(Clone, Copy)]
pub(super) struct Parts<'t> {
    tape: &'t Tape<'t>,
    at: usize,
    end: usize,
}

impl<'t> Parts<'t> {
    /// Splits off the first items, if there are so many.
    pub fn first<const N: usize>(mut self) -> Option<([Part<'t>; N], Parts<'t>)> {
        let mut first = [Part { tape: self.tape, at: self.at }; N];
        for part in &mut first {
            *part = self.next()?;
        }
        Some((first, self))
    }

    /// Returns the items, if they are so many.
    pub fn exactly<const N: usize>(self) -> Option<[Part<'t>; N]> {
        let (first, rest) = self.first()?;
        (rest.at == rest.end).then_some(first)
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    #[inline]
    fn next(&mut self) -> Option<Part<'t>> {
        if self.at >= self.end {
            return None;
        }
        let part = Part { tape: self.tape, at: self.at };
        self.at = part.after();
        Some(part)
    }
}
