//! Random derivations of a grammar.

use std::collections::HashMap;

use crate::charset::CharSet;
use crate::ebnf::{Expression, Grammar, is_lexical};
use crate::tokens::{Tokens, derives};

/// Random number generator with a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns true with probability 1/`times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Derives random texts from a grammar.
pub struct Deriver<'g> {
    grammar: &'g Grammar,
    tokens: Tokens<'g>,
    /// The height of the shortest derivation of each rule, in rules.
    heights: HashMap<&'g str, usize>,
    /// The source of random numbers.
    pub random: Random,
    /// True inside a `#(…)`, which does not nest.
    is_inside_function: bool,
    /// The number of remaining free choices; once it is 0, the shortest alternative is taken.
    choices_left: usize,
}

/// The number of free choices of one program.
const CHOICES: usize = 150;

impl<'g> Deriver<'g> {
    /// Creates a deriver whose choices depend on the seed.
    pub fn new(grammar: &'g Grammar, seed: u64) -> Deriver<'g> {
        let mut heights: HashMap<&str, usize> = HashMap::new();
        loop {
            let mut is_changed = false;
            for (name, expression) in &grammar.rules {
                if let Some(height) = height(expression, &heights) {
                    is_changed |= heights.insert(name, height + 1) != Some(height + 1);
                }
            }
            if !is_changed {
                break;
            }
        }
        let tokens = Tokens::of(grammar);
        Deriver { grammar, tokens, heights, random: Random(seed), is_inside_function: false, choices_left: CHOICES }
    }

    /// Derives a program.
    pub fn program(&mut self, budget: usize) -> String {
        let mut tokens = Vec::new();
        self.choices_left = CHOICES;
        self.tokens_of(&Expression::Rule("program".to_string()), budget, &mut tokens);
        let mut text = self.gap();
        for (nth, token) in tokens.iter().enumerate() {
            text.push_str(token);
            let Some(next) = tokens.get(nth + 1) else { break };
            let gap = if self.random.once_in(3) { self.gap() } else { String::new() };
            let behind = if gap.is_empty() { next } else { &gap };
            if self.tokens.is_open(token) && !self.is_delimiter(behind) {
                text.push(' ');
            }
            text.push_str(&gap);
        }
        if self.random.once_in(9) {
            text.push('\n');
            text.push_str(&self.text_of("COMMENT"));
        }
        text
    }

    /// Derives a program from a grammar with explicit white space.
    pub fn spaced_program(&mut self, budget: usize) -> String {
        self.choices_left = CHOICES;
        let mut tokens = Vec::new();
        self.tokens_of(&Expression::Rule("program".to_string()), budget, &mut tokens);
        tokens.concat()
    }

    fn is_delimiter(&self, text: &str) -> bool {
        let first: String = text.chars().take(1).collect();
        derives(self.grammar, self.grammar.rule("DELIMITER"), &first)
    }

    /// Returns white space and comments, or an empty string.
    fn gap(&mut self) -> String {
        let mut gap = String::new();
        while self.random.once_in(2) {
            match self.random.below(12) {
                0 => {
                    gap.push_str(&self.text_of("COMMENT"));
                    gap.push('\n');
                }
                1 => gap.push_str(&self.text_of("BLOCK_COMMENT")),
                2 => gap.push_str(&self.text_of("SPACE")),
                _ => gap.push(' '),
            }
        }
        gap
    }

    /// Derives a text from a lexical (upper-case) rule.
    pub fn text_of(&mut self, rule: &str) -> String {
        let mut text = String::new();
        self.derive(&Expression::Rule(rule.to_string()), 6, &mut |token| text.push_str(&token));
        text
    }

    fn tokens_of(&mut self, expression: &Expression, budget: usize, tokens: &mut Vec<String>) {
        self.derive(expression, budget, &mut |token| tokens.push(token));
    }

    /// Emits one text for each token, or for each piece inside a token.
    fn derive(&mut self, expression: &Expression, budget: usize, out: &mut dyn FnMut(String)) {
        match expression {
            Expression::Text(text) => out(text.clone()),
            Expression::Class(set) => out(self.character(set).to_string()),
            Expression::Rule(name) if is_lexical(name) => {
                // A token has a minimum budget, however deeply it is nested.
                let budget = budget.saturating_sub(1).max(3);
                let left = std::mem::replace(&mut self.choices_left, CHOICES);
                let mut text = String::new();
                self.derive(self.grammar.rule(name), budget, &mut |piece| text.push_str(&piece));
                self.choices_left = left;
                out(text);
            }
            Expression::Rule(name) => {
                self.choices_left = self.choices_left.saturating_sub(1);
                let was_inside = self.is_inside_function;
                self.is_inside_function |= name == "function";
                self.derive(self.grammar.rule(name), budget.saturating_sub(1), out);
                self.is_inside_function = was_inside;
            }
            Expression::Sequence(parts) => parts.iter().for_each(|part| self.derive(part, budget, out)),
            Expression::Choice(parts) => {
                let is_refused =
                    |part: &Expression| self.is_inside_function && *part == Expression::Rule("function".to_string());
                let fits = |part: &&Expression| self.affords(part, budget) && !is_refused(part);
                let fitting: Vec<&Expression> = parts.iter().filter(fits).collect();
                let shortest =
                    || parts.iter().filter(|part| !is_refused(part)).min_by_key(|part| height(part, &self.heights));
                let chosen = match fitting.len() {
                    0 => shortest().expect("there is a choice"),
                    count => fitting[self.random.below(count)],
                };
                self.derive(chosen, budget, out);
            }
            Expression::Optional(inner) => {
                if self.affords(inner, budget) && self.random.once_in(2) {
                    self.derive(inner, budget, out);
                }
            }
            Expression::Star(inner) | Expression::Plus(inner) => {
                if matches!(expression, Expression::Plus(_)) {
                    self.derive(inner, budget, out);
                }
                // Ignored forms are rare, so that they do not dominate the program.
                let is_rare = **inner == Expression::Rule("ignored".to_string());
                let goes_on = |random: &mut Random| if is_rare { random.once_in(15) } else { !random.once_in(3) };
                while self.affords(inner, budget) && goes_on(&mut self.random) {
                    self.derive(inner, budget, out);
                }
            }
            Expression::Except(left, right) => loop {
                let mut text = String::new();
                self.derive(left, budget, &mut |piece| text.push_str(&piece));
                if !derives(self.grammar, right, &text) {
                    break out(text);
                }
            },
        }
    }

    fn affords(&self, expression: &Expression, budget: usize) -> bool {
        self.choices_left > 0 && height(expression, &self.heights).is_some_and(|height| height <= budget)
    }

    /// Returns mostly printable ASCII characters, and occasionally any character of the set.
    fn character(&mut self, set: &CharSet) -> char {
        let plain = CharSet::of([(0x20, 0x7e)]);
        let plain = plain.minus(&set.complement());
        let set = if plain.is_empty() || self.random.once_in(20) { set } else { &plain };
        loop {
            let (first, last) = set.ranges()[self.random.below(set.ranges().len())];
            let code = first + self.random.below((last - first + 1) as usize) as u32;
            if let Some(character) = char::from_u32(code) {
                return character;
            }
        }
    }
}

fn height(expression: &Expression, heights: &HashMap<&str, usize>) -> Option<usize> {
    match expression {
        Expression::Text(_) | Expression::Class(_) | Expression::Optional(_) | Expression::Star(_) => Some(0),
        Expression::Rule(name) => heights.get(name.as_str()).copied(),
        Expression::Sequence(parts) => {
            parts.iter().try_fold(0, |tallest, part| Some(tallest.max(height(part, heights)?)))
        }
        Expression::Choice(parts) => parts.iter().filter_map(|part| height(part, heights)).min(),
        Expression::Plus(inner) => height(inner, heights),
        Expression::Except(left, _) => height(left, heights),
    }
}
