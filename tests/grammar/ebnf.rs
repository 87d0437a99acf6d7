//! Parser for the EBNF notation of the W3C.

use std::collections::HashMap;

use crate::charset::CharSet;

/// The right-hand side of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A literal text.
    Text(String),
    /// One character of a set.
    Class(CharSet),
    /// A reference to a rule.
    Rule(String),
    /// A sequence: `A B`.
    Sequence(Vec<Expression>),
    /// An alternative: `A | B`.
    Choice(Vec<Expression>),
    /// An optional expression: `A?`.
    Optional(Box<Expression>),
    /// Zero or more repetitions: `A*`.
    Star(Box<Expression>),
    /// One or more repetitions: `A+`.
    Plus(Box<Expression>),
    /// A difference: `A - B`.
    Except(Box<Expression>, Box<Expression>),
}

/// The rules, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    /// The name and the right-hand side of each rule.
    pub rules: Vec<(String, Expression)>,
    index: HashMap<String, usize>,
}

impl Grammar {
    /// Adds a rule.
    pub fn add(&mut self, name: String, expression: Expression) {
        assert!(!self.index.contains_key(&name), "two rules are named {name}");
        self.index.insert(name.clone(), self.rules.len());
        self.rules.push((name, expression));
    }

    /// Returns the right-hand side of a rule, if the rule exists.
    pub fn find(&self, name: &str) -> Option<&Expression> {
        self.index.get(name).map(|at| &self.rules[*at].1)
    }

    /// Returns the right-hand side of a rule; panics if the rule does not exist.
    pub fn rule(&self, name: &str) -> &Expression {
        match self.index.get(name) {
            Some(at) => &self.rules[*at].1,
            None => panic!("no rule is named {name}"),
        }
    }
}

/// Returns true for the names of tokens and their parts, which are written in upper case.
pub fn is_lexical(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Parses a grammar; panics with the place of the first error.
pub fn read(text: &str) -> Grammar {
    let mut reader = Reader { text: text.chars().collect(), at: 0 };
    let mut grammar = Grammar::default();
    reader.skip();
    while reader.at < reader.text.len() {
        let name = reader.name();
        assert!(reader.eat("::="), "{}: expected `::=`", reader.place());
        let expression = reader.choice();
        grammar.add(name, expression);
    }
    for (name, expression) in &grammar.rules {
        let mut used = Vec::new();
        references(expression, &mut used);
        for other in used {
            assert!(grammar.index.contains_key(&other), "{name} refers to {other}, which is no rule");
        }
    }
    grammar
}

/// Collects the names of the rules that an expression refers to.
pub fn references(expression: &Expression, found: &mut Vec<String>) {
    match expression {
        Expression::Text(_) | Expression::Class(_) => {}
        Expression::Rule(name) => found.push(name.clone()),
        Expression::Sequence(parts) | Expression::Choice(parts) => {
            parts.iter().for_each(|part| references(part, found));
        }
        Expression::Optional(inner) | Expression::Star(inner) | Expression::Plus(inner) => references(inner, found),
        Expression::Except(left, right) => {
            references(left, found);
            references(right, found);
        }
    }
}

struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn place(&self) -> String {
        let line = 1 + self.text[..self.at].iter().filter(|c| **c == '\n').count();
        format!("line {line}")
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn looking_at(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(nth, c)| self.text.get(self.at + nth) == Some(&c))
    }

    fn eat(&mut self, what: &str) -> bool {
        let found = self.looking_at(what);
        if found {
            self.at += what.chars().count();
            self.skip();
        }
        found
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            if self.looking_at("/*") {
                let place = self.place();
                while !self.looking_at("*/") {
                    assert!(self.at < self.text.len(), "{place}: the comment is not closed");
                    self.at += 1;
                }
                self.at += 2;
            } else if self.peek().is_some_and(char::is_whitespace) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn name(&mut self) -> String {
        let start = self.at;
        // `A - B` needs its spaces, because a name may contain a hyphen.
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            self.at += 1;
        }
        assert!(start < self.at, "{}: expected a name", self.place());
        let name = self.text[start..self.at].iter().collect();
        self.skip();
        name
    }

    fn choice(&mut self) -> Expression {
        let mut choices = vec![self.sequence()];
        while self.eat("|") {
            choices.push(self.sequence());
        }
        if choices.len() == 1 { choices.remove(0) } else { Expression::Choice(choices) }
    }

    fn sequence(&mut self) -> Expression {
        let mut parts = Vec::new();
        while let Some(part) = self.difference() {
            parts.push(part);
        }
        if parts.len() == 1 { parts.remove(0) } else { Expression::Sequence(parts) }
    }

    fn difference(&mut self) -> Option<Expression> {
        let left = self.repeated()?;
        if !self.eat("-") {
            return Some(left);
        }
        let place = self.place();
        let right = self.repeated().unwrap_or_else(|| panic!("{place}: nothing behind `-`"));
        Some(Expression::Except(Box::new(left), Box::new(right)))
    }

    fn repeated(&mut self) -> Option<Expression> {
        let mut expression = self.single()?;
        loop {
            expression = if self.eat("?") {
                Expression::Optional(Box::new(expression))
            } else if self.eat("*") {
                Expression::Star(Box::new(expression))
            } else if self.eat("+") {
                Expression::Plus(Box::new(expression))
            } else {
                return Some(expression);
            };
        }
    }

    fn single(&mut self) -> Option<Expression> {
        let first = self.peek()?;
        Some(match first {
            '"' | '\'' => {
                let start = self.at + 1;
                let length = self.text[start..].iter().position(|c| *c == first);
                let end = start + length.unwrap_or_else(|| panic!("{}: the text is not closed", self.place()));
                let text = self.text[start..end].iter().collect();
                self.at = end + 1;
                self.skip();
                Expression::Text(text)
            }
            '[' => Expression::Class(self.class()),
            '#' => {
                let code = self.character();
                self.skip();
                Expression::Class(CharSet::of([(code, code)]))
            }
            '(' => {
                self.eat("(");
                let inner = self.choice();
                assert!(self.eat(")"), "{}: expected `)`", self.place());
                inner
            }
            _ if first.is_ascii_alphabetic() => {
                // A name followed by `::=` begins the next rule.
                let start = self.at;
                let name = self.name();
                if self.looking_at("::=") {
                    self.at = start;
                    return None;
                }
                Expression::Rule(name)
            }
            _ => return None,
        })
    }

    fn class(&mut self) -> CharSet {
        self.at += 1;
        let is_negated = self.peek() == Some('^');
        self.at += usize::from(is_negated);
        let mut ranges = Vec::new();
        while self.peek() != Some(']') {
            let first = self.character();
            let last = if self.peek() == Some('-') {
                self.at += 1;
                self.character()
            } else {
                first
            };
            ranges.push((first, last));
        }
        self.at += 1;
        self.skip();
        let set = CharSet::of(ranges);
        if is_negated { set.complement() } else { set }
    }

    /// Parses a character, given literally or by its code point (`#x…`).
    fn character(&mut self) -> u32 {
        let first = self.peek().unwrap_or_else(|| panic!("{}: the text ends in a class", self.place()));
        self.at += 1;
        if first != '#' || self.peek() != Some('x') {
            return first as u32;
        }
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_hexdigit()) && self.at < start + 6 {
            self.at += 1;
        }
        let digits: String = self.text[start..self.at].iter().collect();
        u32::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("{}: `#x` needs a number", self.place()))
    }
}
