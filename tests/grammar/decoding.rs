//! Converts the grammar to one for constrained decoding: stricter, over characters instead of tokens, with explicit
//! white space.
//!
//! Every derivation of such a grammar is readable, except for the cases listed in [`NOTE`]. Constructs with constraints
//! outside of the grammar are therefore excluded, or the constraints are expressed as rules: the contents of a `#(…)`
//! use copies of the rules that exclude `#(…)`, a token that needs a delimiter is always followed by white space or a
//! bracket, and differences between rules are expanded.

use std::collections::BTreeSet;

use crate::charset::CharSet;
use crate::ebnf::{Expression, Grammar, is_lexical, references};

use Expression::{Choice, Class, Except, Optional, Plus, Rule, Sequence, Star, Text};

/// Constructs of the grammar that the decoding grammars exclude.
const LEFT_OUT: [&str; 8] =
    ["ignored", "conditional", "splice", "namespaced", "OTHER_TAG", "ODD_RADIX", "SCHEME_CHARACTER", "BLOCK_COMMENT"];

/// Comment at the head of the generated files.
pub const NOTE: &str = "\
The grammar of lispbox programs for constrained decoding. Generated from lispbox.ebnf: see README.md.

What it derives is read, save for what no such grammar can say: a constant that stands twice among the
keys of a map or the items of a set, brackets nested more than 256 deep, and numbers of more than 10,000
digits. It is stricter than lispbox.ebnf:
- white space stands between any two forms of a sequence, and none behind a prefix: `(f (g))`, `'x`;
- a comment begins with `;`, stands where white space may, and ends with a line feed;
- `#(…)` does not nest;
- left out: `#_`, `#|…|#`, `#!`, reader conditionals, `#:name{…}`, `#^`, `#\\a`, `#time/…` but `#time/date`, and
  radixes other than 2, 8, 16 and 36.
";

/// Prefix of the rules for the contents of a `#(…)`.
const INNER: &str = "inner-";

/// Derives the decoding grammar from the full grammar.
pub fn grammar(full: &Grammar) -> Grammar {
    let mut strict = Grammar::default();
    let around: Vec<&str> =
        full.rules.iter().map(|(name, _)| name.as_str()).filter(|name| reaches(full, name)).collect();
    for (name, expression) in &full.rules {
        let Some(kept) = keep(expression) else { continue };
        if is_lexical(name) {
            if *name != "SKIPPED" && *name != "COMMENT" {
                strict.add(name.clone(), resolve(full, &kept));
            }
            continue;
        }
        let spaced = space(&kept);
        match name.as_str() {
            "function" => strict.add(name.clone(), renamed(&spaced, &around)),
            "program" => strict.add(name.clone(), spaced),
            _ => {
                if around.contains(&name.as_str()) {
                    let inner = without(&spaced, "function").expect("there are other forms");
                    strict.add(format!("{INNER}{name}"), renamed(&inner, &around));
                }
                strict.add(name.clone(), spaced);
            }
        }
    }
    let blank = CharSet::of([' ', ',', '\t', '\n', '\r'].map(|c| (c as u32, c as u32)));
    let text = CharSet::one('\n').complement();
    let comment = Sequence(vec![Text(";".into()), Star(Box::new(Class(text))), Text("\n".into())]);
    strict.add("WS".to_string(), Plus(Box::new(Choice(vec![Class(blank), comment]))));
    reachable(&strict, "program")
}

/// Returns true for rules that can contain a `#(…)`.
fn reaches(full: &Grammar, name: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![name.to_string()];
    while let Some(name) = open.pop() {
        if name == "function" {
            return true;
        }
        if !LEFT_OUT.contains(&name.as_str()) && seen.insert(name.clone()) {
            references(full.rule(&name), &mut open);
        }
    }
    false
}

/// Returns the rules that are reachable from the first one, in their order.
fn reachable(grammar: &Grammar, first: &str) -> Grammar {
    let mut seen = BTreeSet::new();
    let mut open = vec![first.to_string()];
    while let Some(name) = open.pop() {
        if seen.insert(name.clone()) {
            references(grammar.rule(&name), &mut open);
        }
    }
    let mut needed = Grammar::default();
    for (name, expression) in grammar.rules.iter().filter(|(name, _)| seen.contains(name)) {
        needed.add(name.clone(), expression.clone());
    }
    needed
}

/// Removes the excluded constructs from the expression; `None` if nothing remains.
fn keep(expression: &Expression) -> Option<Expression> {
    let kept = LEFT_OUT.iter().try_fold(expression.clone(), |kept, name| without(&kept, name))?;
    without(&kept, "#^")
}

/// Removes a rule or a text from the expression; `None` if nothing remains.
fn without(expression: &Expression, gone: &str) -> Option<Expression> {
    let nothing = || Sequence(Vec::new());
    Some(match expression {
        Rule(name) | Text(name) if name == gone => return None,
        Sequence(parts) => {
            let parts: Option<Vec<_>> = parts.iter().map(|part| without(part, gone)).collect();
            sequence(parts?)
        }
        Choice(parts) => choice(parts.iter().filter_map(|part| without(part, gone)).collect())?,
        Optional(inner) => without(inner, gone).map_or_else(nothing, |inner| Optional(Box::new(inner))),
        Star(inner) => without(inner, gone).map_or_else(nothing, |inner| Star(Box::new(inner))),
        Plus(inner) => Plus(Box::new(without(inner, gone)?)),
        other => other.clone(),
    })
}

fn sequence(parts: Vec<Expression>) -> Expression {
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Sequence(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { Sequence(flat) }
}

fn choice(parts: Vec<Expression>) -> Option<Expression> {
    let mut flat: Vec<Expression> = Vec::new();
    for part in parts {
        match part {
            Choice(inner) => flat.extend(inner),
            other if flat.contains(&other) => {}
            other => flat.push(other),
        }
    }
    match flat.len() {
        0 => None,
        1 => flat.pop(),
        _ => Some(Choice(flat)),
    }
}

/// Redirects references to rules that can contain a `#(…)` to the inner copies of the rules.
fn renamed(expression: &Expression, around: &[&str]) -> Expression {
    let all = |parts: &[Expression]| parts.iter().map(|part| renamed(part, around)).collect();
    match expression {
        Rule(name) if around.contains(&name.as_str()) => Rule(format!("{INNER}{name}")),
        Sequence(parts) => Sequence(all(parts)),
        Choice(parts) => Choice(all(parts)),
        Optional(inner) => Optional(Box::new(renamed(inner, around))),
        Star(inner) => Star(Box::new(renamed(inner, around))),
        Plus(inner) => Plus(Box::new(renamed(inner, around))),
        other => other.clone(),
    }
}

/// Adds white space to the expression of a syntactic (lower-case) rule.
fn space(expression: &Expression) -> Expression {
    let ws = || Rule("WS".to_string());
    let maybe_ws = || Optional(Box::new(ws()));
    match expression {
        Star(item) => {
            let item = space(item);
            let more = Star(Box::new(Sequence(vec![ws(), item.clone()])));
            Sequence(vec![maybe_ws(), Optional(Box::new(sequence(vec![item, more, maybe_ws()])))])
        }
        Sequence(parts) => {
            let mut spaced: Vec<Expression> = Vec::new();
            for (nth, part) in parts.iter().enumerate() {
                let touches = nth == 0 || is_prefix(&parts[nth - 1]) || matches!(part, Star(_));
                let follows_items = nth > 0 && matches!(parts[nth - 1], Star(_));
                if !touches && !follows_items {
                    spaced.push(ws());
                }
                spaced.push(space(part));
            }
            sequence(spaced)
        }
        Choice(parts) => Choice(parts.iter().map(space).collect()),
        other => other.clone(),
    }
}

/// Returns true for the text of brackets and prefixes, after which no white space is generated.
fn is_prefix(expression: &Expression) -> bool {
    match expression {
        Text(text) => !text.ends_with(|last: char| last.is_ascii_alphanumeric()),
        Choice(parts) => parts.iter().all(is_prefix),
        _ => false,
    }
}

/// Expands the differences in the expression of a token.
fn resolve(full: &Grammar, expression: &Expression) -> Expression {
    let all = |parts: &[Expression]| parts.iter().map(|part| resolve(full, part)).collect();
    match expression {
        Except(left, right) => match (class_of(full, left), class_of(full, right)) {
            (Some(left), Some(right)) => Class(left.minus(&right)),
            _ => {
                let kept = keep(left).expect("something is left");
                except(full, &kept, &words(full, right)).expect("something is left")
            }
        },
        Sequence(parts) => Sequence(all(parts)),
        Choice(parts) => Choice(all(parts)),
        Optional(inner) => Optional(Box::new(resolve(full, inner))),
        Star(inner) => Star(Box::new(resolve(full, inner))),
        Plus(inner) => Plus(Box::new(resolve(full, inner))),
        other => other.clone(),
    }
}

fn class_of(full: &Grammar, expression: &Expression) -> Option<CharSet> {
    match expression {
        Class(set) => Some(set.clone()),
        Rule(name) => class_of(full, full.rule(name)),
        Except(left, right) => Some(class_of(full, left)?.minus(&class_of(full, right)?)),
        _ => None,
    }
}

fn words(full: &Grammar, expression: &Expression) -> Vec<String> {
    match expression {
        Text(text) => vec![text.clone()],
        Rule(name) => words(full, full.rule(name)),
        Choice(parts) => parts.iter().flat_map(|part| words(full, part)).collect(),
        other => panic!("{other:?} is not a choice of words"),
    }
}

/// Returns an expression for everything that `expression` derives except these words, branching on their characters.
fn except(full: &Grammar, expression: &Expression, words: &[String]) -> Option<Expression> {
    let firsts: BTreeSet<char> = words.iter().filter_map(|word| word.chars().next()).collect();
    let set = CharSet::of(firsts.iter().map(|c| (*c as u32, *c as u32)));
    let mut branches: Vec<Expression> = other_beginnings(full, expression, &set).into_iter().collect();
    for first in firsts {
        let rests: Vec<String> = words.iter().filter_map(|word| word.strip_prefix(first)).map(str::to_string).collect();
        let behind = behind(full, expression, first)?;
        let rest = except(full, &behind, &rests);
        let text = Text(first.to_string());
        if let Some(rest) = rest {
            // The branch may end here, unless it then is one of the excluded words.
            let may_end = can_be_empty(full, &behind) && !rests.iter().any(String::is_empty);
            let rest = if may_end { Optional(Box::new(rest)) } else { rest };
            branches.push(sequence(vec![text, rest]));
        }
    }
    choice(branches)
}

fn can_be_empty(full: &Grammar, expression: &Expression) -> bool {
    match expression {
        Text(text) => text.is_empty(),
        Class(_) => false,
        Rule(name) => can_be_empty(full, full.rule(name)),
        Sequence(parts) => parts.iter().all(|part| can_be_empty(full, part)),
        Choice(parts) => parts.iter().any(|part| can_be_empty(full, part)),
        Optional(_) | Star(_) => true,
        Plus(inner) | Except(inner, _) => can_be_empty(full, inner),
    }
}

/// Returns the non-empty part of the expression whose first character is not in the set.
fn other_beginnings(full: &Grammar, expression: &Expression, set: &CharSet) -> Option<Expression> {
    match expression {
        Text(text) => {
            let first = text.chars().next()?;
            (!set.contains(first)).then(|| expression.clone())
        }
        Class(class) => Some(class.minus(set)).filter(|rest| !rest.is_empty()).map(Class),
        Rule(name) => {
            // A rule that is unaffected remains a reference.
            let rule = keep(full.rule(name))?;
            let rule = class_of(full, &rule).map_or(rule, Class);
            let rest = other_beginnings(full, &rule, set)?;
            Some(if rest == rule { expression.clone() } else { rest })
        }
        Sequence(parts) => {
            let (first, others) = parts.split_first()?;
            let with_first =
                other_beginnings(full, first, set).map(|first| sequence([vec![first], others.to_vec()].concat()));
            let others = sequence(others.to_vec());
            let without_first = can_be_empty(full, first).then(|| other_beginnings(full, &others, set)).flatten();
            choice(with_first.into_iter().chain(without_first).collect())
        }
        Choice(parts) => choice(parts.iter().filter_map(|part| other_beginnings(full, part, set)).collect()),
        Optional(inner) => other_beginnings(full, inner, set),
        Star(inner) | Plus(inner) => {
            let first = other_beginnings(full, inner, set)?;
            Some(sequence(vec![first, Star(inner.clone())]))
        }
        Except(..) => other_beginnings(full, &Class(class_of(full, expression)?), set),
    }
}

/// Returns the expression that remains after its first character, if this character can begin it.
fn behind(full: &Grammar, expression: &Expression, first: char) -> Option<Expression> {
    match expression {
        Text(text) => text
            .strip_prefix(first)
            .map(|rest| if rest.is_empty() { Sequence(Vec::new()) } else { Text(rest.to_string()) }),
        Class(class) => class.contains(first).then(|| Sequence(Vec::new())),
        Rule(name) => behind(full, full.rule(name), first),
        Sequence(parts) => {
            let (head, others) = parts.split_first()?;
            let with_head = behind(full, head, first).map(|rest| sequence([vec![rest], others.to_vec()].concat()));
            let others = sequence(others.to_vec());
            let without_head = can_be_empty(full, head).then(|| behind(full, &others, first)).flatten();
            choice(with_head.into_iter().chain(without_head).collect())
        }
        Choice(parts) => choice(parts.iter().filter_map(|part| behind(full, part, first)).collect()),
        Optional(inner) => behind(full, inner, first),
        Star(inner) | Plus(inner) => {
            let rest = behind(full, inner, first)?;
            Some(sequence(vec![rest, Star(inner.clone())]))
        }
        Except(..) => behind(full, &Class(class_of(full, expression)?), first),
    }
}
