//! Tokenizer based on the lexical (upper-case) rules: takes the longest token at each position.

use std::collections::BTreeSet;

use crate::ebnf::{Expression, Grammar, is_lexical};

/// Returns all positions at which a derivation of the expression that begins at `at` can end.
pub fn ends(grammar: &Grammar, expression: &Expression, text: &[char], at: usize) -> BTreeSet<usize> {
    let from = |inner: &Expression, starts: &BTreeSet<usize>| -> BTreeSet<usize> {
        starts.iter().flat_map(|start| ends(grammar, inner, text, *start)).collect()
    };
    let repeated = |inner: &Expression| {
        let mut all = BTreeSet::from([at]);
        let mut fresh = all.clone();
        while !fresh.is_empty() {
            fresh = from(inner, &fresh).difference(&all).copied().collect();
            all.extend(&fresh);
        }
        all
    };
    match expression {
        Expression::Text(expected) => {
            let mut end = at;
            for c in expected.chars() {
                if text.get(end) != Some(&c) {
                    return BTreeSet::new();
                }
                end += 1;
            }
            BTreeSet::from([end])
        }
        Expression::Class(set) => {
            text.get(at).filter(|c| set.contains(**c)).map_or_else(BTreeSet::new, |_| BTreeSet::from([at + 1]))
        }
        Expression::Rule(name) => ends(grammar, grammar.rule(name), text, at),
        Expression::Sequence(parts) => parts.iter().fold(BTreeSet::from([at]), |starts, part| from(part, &starts)),
        Expression::Choice(parts) => parts.iter().flat_map(|part| ends(grammar, part, text, at)).collect(),
        Expression::Optional(inner) => {
            let mut all = ends(grammar, inner, text, at);
            all.insert(at);
            all
        }
        Expression::Star(inner) => repeated(inner),
        Expression::Plus(inner) => from(inner, &repeated(inner)),
        Expression::Except(left, right) => {
            let left = ends(grammar, left, text, at);
            if left.is_empty() {
                return left;
            }
            left.difference(&ends(grammar, right, text, at)).copied().collect()
        }
    }
}

/// Returns true if the expression derives the whole text.
pub fn derives(grammar: &Grammar, expression: &Expression, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    ends(grammar, expression, &text, 0).contains(&text.len())
}

/// Returns true if a derivation of the expression can begin with the character. (No rule of a token can be empty.)
fn may_begin(grammar: &Grammar, expression: &Expression, first: char) -> bool {
    match expression {
        Expression::Text(text) => text.starts_with(first),
        Expression::Class(set) => set.contains(first),
        Expression::Rule(name) => may_begin(grammar, grammar.rule(name), first),
        Expression::Sequence(parts) => {
            for part in parts {
                if may_begin(grammar, part, first) {
                    return true;
                }
                if !matches!(part, Expression::Optional(_) | Expression::Star(_)) {
                    return false;
                }
            }
            false
        }
        Expression::Choice(parts) => parts.iter().any(|part| may_begin(grammar, part, first)),
        Expression::Optional(inner) | Expression::Star(inner) | Expression::Plus(inner) => {
            may_begin(grammar, inner, first)
        }
        Expression::Except(left, _) => may_begin(grammar, left, first),
    }
}

/// The token kinds: lexical (upper-case) rules, and literal texts in syntactic (lower-case) rules.
pub struct Tokens<'g> {
    grammar: &'g Grammar,
    /// All kinds.
    pub kinds: Vec<Expression>,
    /// True for each kind that must be followed by a delimiter.
    are_open: Vec<bool>,
    /// The kinds that each ASCII character can begin, so that fewer are tried at each position.
    by_first: Vec<Vec<usize>>,
}

/// A piece of text and its possible token kinds, as indices into [`Tokens::kinds`].
pub struct Lexeme {
    /// The kinds; several if, for example, a word is also a name.
    pub kinds: Vec<usize>,
    /// The text.
    pub text: String,
}

impl<'g> Tokens<'g> {
    /// Collects the token kinds of a grammar.
    pub fn of(grammar: &'g Grammar) -> Tokens<'g> {
        let mut tokens = Tokens { grammar, kinds: Vec::new(), are_open: Vec::new(), by_first: Vec::new() };
        for (name, expression) in &grammar.rules {
            if !is_lexical(name) {
                tokens.collect(expression);
            }
        }
        if let Some(Expression::Choice(open)) = grammar.find("OPEN") {
            tokens.are_open = tokens.kinds.iter().map(|kind| open.contains(kind)).collect();
        }
        for first in (0..128_u8).map(char::from) {
            let begins = |kind: &usize| may_begin(grammar, &tokens.kinds[*kind], first);
            tokens.by_first.push((0..tokens.kinds.len()).filter(begins).collect());
        }
        tokens
    }

    fn collect(&mut self, expression: &Expression) {
        match expression {
            Expression::Rule(name) if !is_lexical(name) => {}
            Expression::Text(_) | Expression::Rule(_) => {
                if !self.kinds.contains(expression) {
                    self.kinds.push(expression.clone());
                }
            }
            Expression::Sequence(parts) | Expression::Choice(parts) => parts.iter().for_each(|part| self.collect(part)),
            Expression::Optional(inner) | Expression::Star(inner) | Expression::Plus(inner) => self.collect(inner),
            Expression::Class(_) | Expression::Except(..) => panic!("{expression:?} belongs into a token"),
        }
    }

    /// Splits a text into tokens.
    ///
    /// # Errors
    /// Returns the position at which no token matches.
    pub fn cut(&self, text: &str) -> Result<Vec<Lexeme>, String> {
        let text: Vec<char> = text.strip_prefix('\u{feff}').unwrap_or(text).chars().collect();
        let mut lexemes = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let longest = |expression: &Expression| ends(self.grammar, expression, &text, at).last().copied();
            let skipped = longest(self.grammar.rule("SKIPPED")).unwrap_or(at);
            let all: Vec<usize> = (0..self.kinds.len()).collect();
            let possible = self.by_first.get(text[at] as usize).unwrap_or(&all);
            let found: Vec<(usize, usize)> =
                possible.iter().filter_map(|kind| Some((*kind, longest(&self.kinds[*kind])?))).collect();
            let end = found.iter().map(|(_, end)| *end).max().unwrap_or(at).max(skipped);
            let kinds: Vec<usize> = found.iter().filter(|(_, last)| *last == end).map(|(kind, _)| *kind).collect();
            if end == at {
                return Err(format!("no token at character {at}"));
            }
            if !kinds.is_empty() {
                let token: String = text[at..end].iter().collect();
                let is_delimited =
                    end == text.len() || !ends(self.grammar, self.grammar.rule("DELIMITER"), &text, end).is_empty();
                if !is_delimited && kinds.iter().any(|kind| self.are_open[*kind]) {
                    return Err(format!("`{token}` does not end at character {end}"));
                }
                lexemes.push(Lexeme { kinds, text: token });
            }
            at = end;
        }
        Ok(lexemes)
    }

    /// Returns true for a token that must be followed by a delimiter.
    pub fn is_open(&self, token: &str) -> bool {
        derives(self.grammar, self.grammar.rule("OPEN"), token)
    }
}
