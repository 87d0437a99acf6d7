//! Finds the built-in rules that can match in a text, by the words that each of their matches contains.
//!
//! Compiling all patterns takes half a second, and most texts contain the words of no rule. One pass over a text
//! selects the rules, and only those are compiled and matched. The words are derived from the patterns by a test, which
//! also writes them.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;

use super::{Rule, rules};

/// The built-in rules for replies.
pub(super) static USUAL: LazyLock<BuiltIn> =
    LazyLock::new(|| BuiltIn::of(rules::USUAL, include_str!("usual_words.txt")));

/// The rules that are for declarations alone.
pub(super) static DECLARED: LazyLock<BuiltIn> =
    LazyLock::new(|| BuiltIn::of(rules::DECLARED, include_str!("declared_words.txt")));

/// Built-in rules, each compiled when a text first contains its words.
pub(super) struct BuiltIn {
    automaton: AhoCorasick,
    rules: Vec<Candidate>,
}

struct Candidate {
    name: &'static str,
    pattern: &'static str,
    /// The numbers of the words of each group. A match contains at least one word of each.
    groups: Vec<Range<usize>>,
    compiled: OnceLock<Rule>,
}

impl BuiltIn {
    /// Creates rules of names and patterns with the words of each, in the same order: a line is a JSON array of groups
    /// of words.
    fn of(rules: &'static [(&'static str, &'static str)], words: &str) -> BuiltIn {
        let mut all: Vec<String> = Vec::new();
        let rules = rules.iter().zip(words.lines()).map(|((name, pattern), line)| {
            let groups: Vec<Vec<String>> = serde_json::from_str(line).expect("a line is an array of groups of words");
            let numbered = groups.into_iter().map(|group| {
                let first = all.len();
                all.extend(group);
                first..all.len()
            });
            Candidate { name, pattern, groups: numbered.collect(), compiled: OnceLock::new() }
        });
        let rules = rules.collect();
        BuiltIn { automaton: AhoCorasick::new(all).expect("the words are few and short"), rules }
    }

    /// Returns the rules that can match in one of these views of a text, but those of some names.
    pub(super) fn candidates(&self, views: &[String], without: &[&str]) -> Vec<&Rule> {
        let mut found = vec![false; self.automaton.patterns_len()];
        for view in views {
            self.automaton.find_overlapping_iter(&lower_case(view)).for_each(|word| found[word.pattern()] = true);
        }
        let has_word = |group: &Range<usize>| found[group.clone()].contains(&true);
        let can_match = |rule: &&Candidate| !without.contains(&rule.name) && rule.groups.iter().all(has_word);
        self.rules.iter().filter(can_match).map(Candidate::compiled).collect()
    }
}

impl Candidate {
    fn compiled(&self) -> &Rule {
        self.compiled
            .get_or_init(|| Rule::new(self.name, &rules::plain(self.pattern)).expect("the built-in patterns are valid"))
    }
}

/// Returns a text in lower case, with the long s as `s`: patterns that ignore case match it as such.
fn lower_case(text: &str) -> String {
    text.to_lowercase().replace('ſ', "s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::quarantine::views::views;
    use regex_syntax::hir::{Hir, HirKind};

    const FILES: [(&str, &[(&str, &str)]); 2] = [
        ("src/server/quarantine/usual_words.txt", rules::USUAL),
        ("src/server/quarantine/declared_words.txt", rules::DECLARED),
    ];

    /// The groups of words of which every match contains one each.
    fn groups(pattern: &Hir) -> Vec<Vec<String>> {
        match pattern.kind() {
            HirKind::Literal(literal) => {
                vec![vec![std::str::from_utf8(&literal.0).expect("patterns are texts").to_lowercase()]]
            }
            HirKind::Capture(capture) => groups(&capture.sub),
            HirKind::Repetition(repetition) if repetition.min > 0 => groups(&repetition.sub),
            HirKind::Concat(parts) => parts.iter().flat_map(groups).collect(),
            HirKind::Alternation(parts) => {
                // One group: of each alternative those words of which the shortest is the longest.
                let best = |part| groups(part).into_iter().max_by_key(|group| shortest(group));
                parts.iter().map(best).collect::<Option<Vec<_>>>().map(|groups| groups.concat()).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn shortest(group: &[String]) -> usize {
        group.iter().map(|word| word.chars().count()).min().unwrap_or_default()
    }

    /// The line of a rule.
    fn line(pattern: &str) -> String {
        let pattern = regex_syntax::parse(&rules::plain(pattern)).expect("the built-in patterns are valid");
        let mut groups = groups(&pattern);
        groups.retain(|group| shortest(group) > 1);
        groups.iter_mut().for_each(|group| {
            group.sort();
            group.dedup();
        });
        groups.sort();
        groups.dedup();
        serde_json::to_string(&groups).expect("texts can be serialized") + "\n"
    }

    #[test]
    fn the_words_are_those_of_the_rules() {
        for (file, rules) in FILES {
            let wanted: String = rules.iter().map(|(_, pattern)| line(pattern)).collect();
            if std::env::var_os("LISPBOX_WRITE_QUARANTINE_WORDS").is_some() {
                std::fs::write(file, &wanted).expect("the file can be written");
            }
            let kept = std::fs::read_to_string(file).expect("the file can be read");
            assert!(kept == wanted, "LISPBOX_WRITE_QUARANTINE_WORDS=1 cargo test --lib quarantine writes {file} anew");
        }
    }

    #[test]
    fn each_rule_that_matches_a_text_is_a_candidate() {
        let corpora = [include_str!("attacks.txt"), include_str!("ordinary.txt"), include_str!("declared.txt")];
        let texts = corpora.iter().flat_map(|texts| texts.lines());
        let texts: Vec<Vec<String>> = texts.flat_map(|text| [views(text), views(&text.to_uppercase())]).collect();
        for (built_in, (_, rules)) in [&*USUAL, &*DECLARED].into_iter().zip(FILES) {
            for (name, pattern) in rules {
                let rule = Rule::new(name, &rules::plain(pattern)).expect("the patterns are valid");
                for views in texts.iter().filter(|views| views.iter().any(|view| rule.finds(view))) {
                    let candidates = built_in.candidates(views, &[]);
                    let is_candidate = candidates.iter().any(|other| other.pattern.as_str() == rule.pattern.as_str());
                    assert!(is_candidate, "{name}: {}", views[0]);
                }
            }
        }
    }

    #[test]
    fn all_rules_are_known() {
        let counts = [&*USUAL, &*DECLARED].map(|built_in| built_in.rules.len());
        assert_eq!(counts, [rules::USUAL.len(), rules::DECLARED.len()]);
    }

    #[test]
    fn a_number_has_no_candidates() {
        assert!(USUAL.candidates(&views("(+ 1 1) is 2"), &[]).is_empty());
    }
}
