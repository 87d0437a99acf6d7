//! Differential tests against the `regex` crate, and tests of the charged steps.

use super::{Compiled, PLACES, Slots, Unfit};
use crate::heap::Handle;
use crate::value::Value;
use crate::value::walk::Pace;
use proptest::prelude::*;
use regex::RegexBuilder;
use std::convert::Infallible;
use std::sync::Arc;

/// Records the total number of steps and the largest single charge.
#[derive(Default)]
struct Count {
    steps: u64,
    most: u64,
}

impl Pace for Count {
    type Stop = Infallible;

    fn step(&mut self, steps: u64) -> Result<(), Infallible> {
        self.steps += steps;
        self.most = self.most.max(steps);
        Ok(())
    }

    fn force(&mut self, _: &Arc<Handle>) -> Result<Option<Value>, Infallible> {
        Ok(None)
    }

    fn content(&mut self, _: &Arc<Handle>) -> Option<Value> {
        None
    }
}

type Places = Vec<Option<(usize, usize)>>;

fn found(compiled: &Compiled, text: &str, from: usize, count: &mut Count) -> Option<Places> {
    let (mut tables, mut slots) = (compiled.tables(), Slots::new());
    let Ok(found) = compiled.find(&mut tables, text, from, true, &mut slots, count);
    let place = |pair: &[Option<_>]| match pair {
        [Some(start), Some(end)] => {
            let (start, end): (&regex_automata::util::primitives::NonMaxUsize, _) = (start, end);
            Some((start.get(), end.get()))
        }
        _ => None,
    };
    found.then(|| slots.chunks(2).map(place).collect())
}

fn by_threads(compiled: &Compiled, text: &str, from: usize) -> Option<Places> {
    let without = Compiled { lazy: None, one_pass: None, backtracker: None, nfa: compiled.nfa.clone() };
    found(&without, text, from, &mut Count::default())
}

fn by_library(expression: &str, text: &str, from: usize) -> Option<Places> {
    let regex = RegexBuilder::new(expression).crlf(true).build().expect("a valid one");
    let found = regex.captures_at(text, from)?;
    Some(found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect())
}

const ATOMS: [&str; 22] = [
    "a",
    "b",
    "é",
    "[ab]",
    "[^a]",
    ".",
    r"\b",
    r"\B",
    "^",
    "$",
    r"\A",
    r"\z",
    "(?m:^)",
    "(?m:$)",
    "(?i:B)",
    r"\w",
    r"\s",
    "ab",
    "(?-u:\\b)",
    "",
    "(a|ab)",
    "(?s:.)",
];

fn expression() -> impl Strategy<Value = String> {
    let atom = (0..ATOMS.len()).prop_map(|at| ATOMS[at].to_string());
    atom.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?:{a}|{b})")),
            (inner.clone(), prop_oneof![Just("*"), Just("+?"), Just("?"), Just("{2,3}"), Just("*?")])
                .prop_map(|(a, times)| format!("(?:{a}){times}")),
            inner.prop_map(|a| format!("({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn both_engines_find_what_the_library_finds(expression in expression(), text in "[abBé \r\n]{0,24}") {
        let compiled = Compiled::new(&expression).expect("a valid one");
        for from in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let expected = by_library(&expression, &text, from);
            prop_assert_eq!(&found(&compiled, &text, from, &mut Count::default()), &expected, "{}", expression);
            prop_assert_eq!(&by_threads(&compiled, &text, from), &expected, "threads: {}", expression);
        }
    }
}

#[test]
fn long_texts_are_searched_in_slices() {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    let text: String = (0..200_000).map(|_| letter()).collect();
    for (expression, least, most) in [
        ("(?:a|b)*z", 3_000, 200_000),
        ("z", 100, 10_000),
        (".*", 3_000, 3_000_000),
        // The DFA exceeds its cache, so the NFA simulation takes over.
        ("(?:a|b)*a(?:a|b){450}c", 1_000_000, 100_000_000),
        ("(.*)(.*)(.*)[xyz]", 3_000, 3_000_000),
    ] {
        let compiled = Compiled::new(expression).expect("a valid one");
        let mut count = Count::default();
        found(&compiled, &text[..if least > 100_000 { 20_000 } else { text.len() }], 0, &mut count);
        assert!((least..most).contains(&count.steps), "{expression}: {} steps", count.steps);
        assert!(count.most < 30_000, "{expression}: {} steps at once", count.most);
    }
}

#[test]
fn tables_are_bounded() {
    let of = |groups| Compiled::new(&"(x)?".repeat(groups));
    assert!(of(100).is_ok_and(|compiled| compiled.room() < 20 << 20));
    let unfit = of(2_000).expect_err("too many groups");
    assert!(matches!(unfit, Unfit::Groups(2_000, states) if states * 4_002 > PLACES), "{unfit}");
    assert!(matches!(Compiled::new(r"\pL{2000}"), Err(Unfit::Large)));
    assert_eq!(Compiled::new("(").expect_err("no end").to_string(), "unclosed group");
}
