//! Decides whether a grammar derives a program, with Earley's algorithm over its tokens.

use std::collections::{HashMap, HashSet};

use crate::ebnf::{Expression, Grammar, is_lexical};
use crate::tokens::Tokens;

/// Maximum number of items that a token may add to the chart; more indicate that the grammar has become ambiguous.
const ITEMS_PER_TOKEN: usize = 1_000;

/// A symbol of a production.
#[derive(Clone, Copy)]
enum Symbol {
    Token(usize),
    Rule(usize),
}

/// The rules of a grammar as plain productions.
pub struct Recogniser<'g> {
    tokens: Tokens<'g>,
    /// The productions of each rule.
    productions: Vec<Vec<Vec<Symbol>>>,
    can_be_empty: Vec<bool>,
    start: usize,
}

/// An Earley item: the rule, the production, the position in it, and the token at which it began.
type Item = (usize, usize, usize, usize);

impl<'g> Recogniser<'g> {
    /// Creates a recogniser for the derivations of a rule.
    pub fn new(grammar: &'g Grammar, start: &str) -> Recogniser<'g> {
        let mut recogniser =
            Recogniser { tokens: Tokens::of(grammar), productions: Vec::new(), can_be_empty: Vec::new(), start: 0 };
        let syntactic: Vec<_> = grammar.rules.iter().filter(|(name, _)| !is_lexical(name)).collect();
        let numbers: HashMap<&str, usize> =
            syntactic.iter().enumerate().map(|(nth, (name, _))| (name.as_str(), nth)).collect();
        recogniser.productions = vec![Vec::new(); syntactic.len()];
        for (nth, (_, expression)) in syntactic.iter().enumerate() {
            let production = recogniser.production(expression, &numbers);
            recogniser.productions[nth].push(production);
        }
        recogniser.start = numbers[start];
        recogniser.find_empty();
        recogniser
    }

    /// Converts an expression to symbols; choices and repetitions become new rules.
    fn production(&mut self, expression: &Expression, numbers: &HashMap<&str, usize>) -> Vec<Symbol> {
        let fresh = |recogniser: &mut Self| {
            recogniser.productions.push(Vec::new());
            recogniser.productions.len() - 1
        };
        match expression {
            Expression::Rule(name) if !is_lexical(name) => vec![Symbol::Rule(numbers[name.as_str()])],
            Expression::Text(_) | Expression::Rule(_) => {
                let kind = self.tokens.kinds.iter().position(|kind| kind == expression).expect("all were collected");
                vec![Symbol::Token(kind)]
            }
            Expression::Sequence(parts) => parts.iter().flat_map(|part| self.production(part, numbers)).collect(),
            Expression::Choice(parts) => {
                let rule = fresh(self);
                for part in parts {
                    let production = self.production(part, numbers);
                    self.productions[rule].push(production);
                }
                vec![Symbol::Rule(rule)]
            }
            Expression::Optional(inner) => {
                let production = self.production(inner, numbers);
                let rule = fresh(self);
                self.productions[rule] = vec![Vec::new(), production];
                vec![Symbol::Rule(rule)]
            }
            Expression::Star(inner) | Expression::Plus(inner) => {
                let production = self.production(inner, numbers);
                let rule = fresh(self);
                let once = if matches!(expression, Expression::Plus(_)) { production.clone() } else { Vec::new() };
                let again = [vec![Symbol::Rule(rule)], production].concat();
                self.productions[rule] = vec![once, again];
                vec![Symbol::Rule(rule)]
            }
            Expression::Class(_) | Expression::Except(..) => unreachable!("only in tokens"),
        }
    }

    fn find_empty(&mut self) {
        self.can_be_empty = vec![false; self.productions.len()];
        loop {
            let is_empty = |production: &Vec<Symbol>| {
                production.iter().all(|symbol| matches!(symbol, Symbol::Rule(rule) if self.can_be_empty[*rule]))
            };
            let now: Vec<bool> = self.productions.iter().map(|all| all.iter().any(is_empty)).collect();
            if now == self.can_be_empty {
                return;
            }
            self.can_be_empty = now;
        }
    }

    /// Checks that the grammar derives the text.
    ///
    /// # Errors
    /// Returns the place where the derivation fails.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let lexemes = self.tokens.cut(text)?;
        let mut chart: Vec<Vec<Item>> = vec![Vec::new(); lexemes.len() + 1];
        let mut waiting: Vec<HashMap<usize, Vec<Item>>> = vec![HashMap::new(); lexemes.len() + 1];
        chart[0].extend((0..self.productions[self.start].len()).map(|nth| (self.start, nth, 0, 0)));
        let mut is_accepted = false;
        for at in 0..=lexemes.len() {
            let mut seen: HashSet<Item> = chart[at].iter().copied().collect();
            let mut next = 0;
            while next < chart[at].len() {
                assert!(next < ITEMS_PER_TOKEN, "the chart grows too large at token {at}");
                let (rule, production, dot, origin) = chart[at][next];
                next += 1;
                let mut found: Vec<Item> = Vec::new();
                match self.productions[rule][production].get(dot) {
                    None => {
                        is_accepted |= at == lexemes.len() && rule == self.start && origin == 0;
                        let over = waiting[origin].get(&rule).into_iter().flatten();
                        found
                            .extend(over.map(|(rule, production, dot, origin)| (*rule, *production, dot + 1, *origin)));
                    }
                    Some(Symbol::Rule(wanted)) => {
                        let waits = waiting[at].entry(*wanted).or_default();
                        if waits.is_empty() {
                            found.extend((0..self.productions[*wanted].len()).map(|nth| (*wanted, nth, 0, at)));
                        }
                        waits.push((rule, production, dot, origin));
                        if self.can_be_empty[*wanted] {
                            found.push((rule, production, dot + 1, origin));
                        }
                    }
                    Some(Symbol::Token(kind)) => {
                        if lexemes.get(at).is_some_and(|lexeme| lexeme.kinds.contains(kind)) {
                            chart[at + 1].push((rule, production, dot + 1, origin));
                        }
                    }
                }
                for item in found {
                    if seen.insert(item) {
                        chart[at].push(item);
                    }
                }
            }
            if at < lexemes.len() && chart[at + 1].is_empty() {
                return Err(format!("token {at}, `{}`, does not fit", lexemes[at].text));
            }
        }
        if is_accepted { Ok(()) } else { Err("it is not complete".to_string()) }
    }
}
