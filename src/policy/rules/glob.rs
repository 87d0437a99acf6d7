//! Glob patterns of names, matched literally and in canonical form.
//!
//! The syntax is that of globset: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}` and `\` as escape. Braces are expanded when a
//! pattern is parsed. The result is a sequence of [`Token`]s, which can be split into a part for the server and a part
//! for the tool.

use std::iter::Peekable;
use std::str::Chars;

use globset::GlobBuilder;

/// Maximum number of texts to which the braces of one pattern may expand.
const ALTERNATIVES: usize = 256;

/// One element of a pattern without braces.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A literal character.
    Char(char),
    /// Any number of characters, including none.
    Any,
    /// Exactly one character.
    One,
    /// One character of a class.
    Class(Class),
}

/// The characters between `[` and `]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Class {
    is_negated: bool,
    ranges: Vec<(char, char)>,
}

impl Class {
    fn lists(&self, c: char) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&c))
    }

    fn fits(&self, c: char) -> bool {
        self.lists(c) != self.is_negated
    }

    /// Returns whether it matches a character of a canonical name, which is in lower case.
    fn fits_canonical(&self, c: char) -> bool {
        (self.lists(c) || c.to_uppercase().any(|upper| self.lists(upper))) != self.is_negated
    }

    fn fits_separator(&self) -> bool {
        (self.lists('-') || self.lists('_')) != self.is_negated
    }

    /// Returns whether it matches a character of a canonical name in any case in which a program may write it.
    fn fits_any_case(&self, c: char) -> bool {
        self.fits(c) || c.to_uppercase().any(|upper| self.fits(upper))
    }

    /// Returns whether it matches one of the separators that a program may write.
    fn fits_any_separator(&self) -> bool {
        self.fits('-') || self.fits('_')
    }

    /// True for classes that consist only of separators, such as `[_-]`.
    fn is_separator(&self) -> bool {
        let is_one = |(from, to): &(char, char)| from == to && matches!(from, '-' | '_');
        !self.is_negated && self.ranges.iter().all(is_one)
    }
}

/// Parses a pattern into the alternatives to which its braces expand, none of them empty.
///
/// # Errors
/// Returns what is wrong with the pattern, as a clause.
pub(super) fn parse(text: &str) -> Result<Vec<Vec<Token>>, String> {
    let checked = GlobBuilder::new(text).backslash_escape(true).empty_alternates(true).build();
    checked.map_err(|problem| problem.kind().to_string())?;
    let too_many = || format!("its braces expand to more than {ALTERNATIVES} names");
    let mut alternatives = Parser(text.chars().peekable()).sequence(false).ok_or_else(too_many)?;
    alternatives.retain(|tokens| !tokens.is_empty());
    if alternatives.is_empty() { Err("it is empty".to_owned()) } else { Ok(alternatives) }
}

/// A parser for a text that globset has accepted.
struct Parser<'t>(Peekable<Chars<'t>>);

impl Parser<'_> {
    /// Parses the alternatives up to the end, or up to the `,` or `}` of the enclosing braces; `None` if there are too
    /// many.
    fn sequence(&mut self, is_nested: bool) -> Option<Vec<Vec<Token>>> {
        let mut all = vec![Vec::new()];
        while let Some(c) = self.0.next_if(|c| !(is_nested && matches!(c, ',' | '}'))) {
            let choices = match c {
                '\\' => vec![vec![Token::Char(self.0.next().unwrap_or('\\'))]],
                '*' => vec![vec![Token::Any]],
                '?' => vec![vec![Token::One]],
                '[' => self.class(),
                '{' => {
                    let mut choices = self.sequence(true)?;
                    while self.0.next() == Some(',') {
                        choices.extend(self.sequence(true)?);
                    }
                    choices
                }
                c => vec![vec![Token::Char(c)]],
            };
            if all.len() * choices.len() > ALTERNATIVES {
                return None;
            }
            let longer = |start: &Vec<Token>| {
                let start = start.clone();
                choices.iter().map(move |choice| [&start[..], &choice[..]].concat()).collect::<Vec<_>>()
            };
            all = if let [choice] = &choices[..] {
                all.iter_mut().for_each(|start| start.extend_from_slice(choice));
                all
            } else {
                all.iter().flat_map(longer).collect()
            };
        }
        Some(all)
    }

    /// Parses a class. A `/` in it becomes a separate alternative, since the pattern is split there.
    fn class(&mut self) -> Vec<Vec<Token>> {
        let is_negated = self.0.next_if(|c| matches!(c, '!' | '^')).is_some();
        let mut ranges: Vec<(char, char)> = Vec::new();
        let mut is_range = false;
        for c in self.0.by_ref() {
            match (c, ranges.last_mut()) {
                (']', Some(_)) => break,
                ('-', Some(_)) if !is_range => is_range = true,
                (_, Some(last)) if is_range => {
                    last.1 = c;
                    is_range = false;
                }
                _ => ranges.push((c, c)),
            }
        }
        if is_range {
            ranges.push(('-', '-'));
        }
        let class = Class { is_negated, ranges };
        match class.ranges[..] {
            [(from, to)] if from == to && !is_negated => vec![vec![Token::Char(from)]],
            _ if !is_negated && class.lists('/') => vec![vec![Token::Char('/')], vec![Token::Class(class)]],
            _ => vec![vec![Token::Class(class)]],
        }
    }
}

/// An element of a pattern that is matched against canonical names.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Folded {
    Letter(char),
    /// A `-` or `_` beside a wildcard or at an edge: a word boundary. Separators between letters are dropped, as in
    /// canonical names.
    Separator,
    Any,
    One,
    Class(Class),
}

/// Converts the pattern to the form that is matched against canonical names.
pub(super) fn fold(tokens: &[Token]) -> Vec<Folded> {
    let is_separator = |token: &Token| match token {
        Token::Char(c) => matches!(c, '-' | '_'),
        Token::Class(class) => class.is_separator(),
        Token::Any | Token::One => false,
    };
    let mut folded = Vec::with_capacity(tokens.len());
    for run in tokens.chunk_by(|one, next| is_separator(one) && is_separator(next)) {
        match &run[0] {
            first if is_separator(first) => folded.push(Folded::Separator),
            Token::Char(c) => folded.extend(c.to_lowercase().map(Folded::Letter)),
            Token::Any => folded.push(Folded::Any),
            Token::One => folded.push(Folded::One),
            Token::Class(class) => folded.push(Folded::Class(class.clone())),
        }
    }
    let is_letter = |at: Option<usize>| matches!(at.and_then(|at| folded.get(at)), Some(Folded::Letter(_)));
    let is_between = |at: usize| is_letter(at.checked_sub(1)) && is_letter(Some(at + 1));
    let kept: Vec<bool> = (0..folded.len()).map(|at| folded[at] != Folded::Separator || !is_between(at)).collect();
    let mut kept = kept.into_iter();
    folded.retain(|_| kept.next() == Some(true));
    folded
}

/// Returns whether a pattern matches a name as written.
pub(super) fn fits_literally(tokens: &[Token], name: &str) -> bool {
    let step = |token: &Token, c: char| match token {
        Token::Char(wanted) => Step::takes(*wanted == c),
        Token::Any => Step::Stays,
        Token::One => Step::Takes,
        Token::Class(class) => Step::takes(class.fits(c)),
    };
    simulate(tokens, name.chars(), |token| *token == Token::Any, step)
}

/// Returns whether a folded pattern matches a name in kebab case, in which every `-` is optional.
pub(super) fn fits_folded(folded: &[Folded], kebab: &str) -> bool {
    let passes = |token: &Folded| matches!(token, Folded::Any);
    let step = |token: &Folded, c: char| match (token, c) {
        (Folded::Any, _) => Step::Stays,
        (Folded::One, '-') => Step::StaysOrTakes,
        (Folded::One, _) => Step::Takes,
        (Folded::Separator, '-') => Step::StaysOrTakes,
        (Folded::Class(class), '-') if class.fits_separator() => Step::StaysOrTakes,
        (_, '-') => Step::Stays,
        (Folded::Separator, _) => Step::Ends,
        (Folded::Letter(wanted), c) => Step::takes(*wanted == c),
        (Folded::Class(class), c) => Step::takes(class.fits_canonical(c)),
    };
    let fits = simulate(folded, kebab.chars(), passes, step);
    // A separator in the name is also optional after the last element of the pattern.
    fits || (kebab.ends_with('-') && simulate(folded, kebab.trim_end_matches('-').chars(), passes, step))
}

/// Returns whether a folded pattern, as written, matches some spelling of a canonical name. A program may write
/// separators anywhere and letters in either case, so an element that matches a separator may match no letter: `get_*`
/// matches `getaway`, spelled `get-away`, and `get?email` matches `getemail`.
pub(super) fn fits_any_spelling(folded: &[Folded], canonical: &str) -> bool {
    // `_*` and `*[!a]` would match every name.
    if folded.contains(&Folded::Any) && folded.iter().all(may_fit_no_letter) {
        return false;
    }
    let step = |token: &Folded, c: char| match token {
        Folded::Any => Step::Stays,
        Folded::One => Step::Takes,
        Folded::Separator => Step::Ends,
        Folded::Letter(wanted) => Step::takes(*wanted == c),
        Folded::Class(class) => Step::takes(class.fits_any_case(c)),
    };
    simulate(folded, canonical.chars(), may_fit_no_letter, step)
}

fn may_fit_no_letter(token: &Folded) -> bool {
    match token {
        Folded::Any | Folded::One | Folded::Separator => true,
        Folded::Class(class) => class.fits_any_separator(),
        Folded::Letter(_) => false,
    }
}

/// The effect of one character of a name on a state of the simulation.
enum Step {
    /// The element may consume more.
    Stays,
    /// The element is complete; continue with the next.
    Takes,
    StaysOrTakes,
    /// The element does not match.
    Ends,
}

impl Step {
    fn takes(fits: bool) -> Step {
        if fits { Step::Takes } else { Step::Ends }
    }
}

/// Simulates a pattern as a nondeterministic automaton, in time proportional to the product of the lengths, so neither
/// names nor patterns can cause backtracking. `passes` identifies the elements that may match nothing.
fn simulate<T>(
    pattern: &[T],
    name: impl Iterator<Item = char>,
    passes: impl Fn(&T) -> bool,
    step: impl Fn(&T, char) -> Step,
) -> bool {
    let end = pattern.len();
    // The reachable positions in the pattern, each once and in order.
    let reach = |states: &mut Vec<usize>, mut at: usize| {
        while states.last().is_none_or(|last| *last < at) {
            states.push(at);
            if at < end && passes(&pattern[at]) { at += 1 } else { break }
        }
    };
    let (mut states, mut next) = (Vec::new(), Vec::new());
    reach(&mut states, 0);
    for c in name {
        next.clear();
        for &at in &states {
            let Some(element) = pattern.get(at) else { continue };
            match step(element, c) {
                Step::Stays => reach(&mut next, at),
                Step::Takes => reach(&mut next, at + 1),
                Step::StaysOrTakes => {
                    reach(&mut next, at);
                    reach(&mut next, at + 1);
                }
                Step::Ends => {}
            }
        }
        std::mem::swap(&mut states, &mut next);
        if states.is_empty() {
            return false;
        }
    }
    states.last() == Some(&end)
}
