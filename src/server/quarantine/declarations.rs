//! Rules for the declarations of tools: names, titles, descriptions, enumerations and other texts of schemas.
//!
//! A description addresses the model by its nature, and may well say which tool of the same server is to be called
//! first. It has no reason to speak about all other tools, about the tools of other servers, about the user's messages,
//! or about things that the user is not to know.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::server::identity::sha256_of_json;

use super::{matching, rules, views, words};

/// The names of rules for replies that ordinary declarations match.
const NOT_FOR_DECLARATIONS: [&str; 2] = ["tool-order", "to-the-assistant"];

/// Checks texts of declarations, each distinct one once: the schemas of a server repeat most of theirs.
#[derive(Default)]
pub(in crate::server) struct DeclaredTexts {
    hits: HashMap<String, Vec<&'static str>>,
}

impl DeclaredTexts {
    /// Returns the names of the rules that match in a text, each once.
    pub(in crate::server) fn hits(&mut self, text: &str) -> &[&'static str] {
        if !self.hits.contains_key(text) {
            self.hits.insert(text.to_owned(), declared(text));
        }
        &self.hits[text]
    }
}

/// Returns the names of the rules that match in a text of a declaration, each once.
pub(in crate::server) fn declared(text: &str) -> Vec<&'static str> {
    let views = views::views(&in_words(&without_symbols(text)));
    let usual = words::USUAL.candidates(&views, &NOT_FOR_DECLARATIONS);
    matching(usual.into_iter().chain(words::DECLARED.candidates(&views, &[])), &views)
}

/// Separates the words of a name such as `contentOfFile` by `_`.
fn in_words(text: &str) -> Cow<'_, str> {
    let is_start = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    if text.contains(char::is_whitespace) || !text.as_bytes().windows(2).any(is_start) {
        return Cow::Borrowed(text);
    }
    let (mut words, mut before) = (String::with_capacity(2 * text.len()), ' ');
    for c in text.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push('_');
        }
        words.push(c);
        before = c;
    }
    Cow::Owned(words)
}

/// Replaces typographic signs, arrows and pictures by ASCII. They are in many English descriptions and in no rule, and
/// the automata of the rules are an order of magnitude slower on a text that is not ASCII.
fn without_symbols(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let plain = |c: char| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        '\u{2010}'..='\u{2015}' => '-',
        '\u{B0}'..='\u{B1}' | '\u{B7}' | '\u{2020}'..='\u{2026}' | '\u{2030}'..='\u{203B}' => ' ',
        '\u{2190}'..='\u{245F}' | '\u{2500}'..='\u{2BFF}' | '\u{1F300}'..='\u{1FAFF}' => ' ',
        other => other,
    };
    Cow::Owned(text.chars().map(plain).collect())
}

/// Returns a name of the rules, which changes with them.
pub(in crate::server) fn declaration_rules() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        // Texts can always be serialized.
        sha256_of_json(&(rules::USUAL, rules::DECLARED)).unwrap_or_default()[..16].to_owned()
    });
    &NAME
}
