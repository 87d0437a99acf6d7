//! Search for secrets in a text, in any encoding.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::{memchr, memchr2};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::decoding::{Escapes, decoded, located};

/// Maximum number of nested encodings of a text.
const DEPTH: usize = 4;

/// Maximum total size of the patterns, in bytes, for which the automaton may use a table, which takes more memory.
const TABLE: usize = 8 << 10;

/// The secrets as search patterns.
#[derive(Default)]
pub(super) struct Matcher {
    automaton: Option<AhoCorasick>,
    /// True if a JSON number could be a secret.
    pub(super) has_numbers: bool,
}

impl Matcher {
    /// Builds the patterns of the secrets.
    ///
    /// # Errors
    /// Returns an error if the patterns are too large for an automaton.
    pub(super) fn new<'t>(secrets: impl Iterator<Item = &'t str> + Clone) -> Result<Matcher, aho_corasick::BuildError> {
        let has_numbers =
            secrets.clone().any(|secret| secret.bytes().all(|c| c.is_ascii_digit() || b"+-.eE".contains(&c)));
        let mut patterns: Vec<Vec<u8>> = secrets.flat_map(forms).collect();
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Ok(Matcher::default());
        }
        let kind = (patterns.iter().map(Vec::len).sum::<usize>() > TABLE).then_some(AhoCorasickKind::ContiguousNFA);
        // Report all matches: secrets may overlap, and the rest of one must not remain after another is masked.
        let automaton = AhoCorasick::builder().kind(kind).match_kind(MatchKind::Standard).build(patterns)?;
        Ok(Matcher { automaton: Some(automaton), has_numbers })
    }

    /// True if there are no patterns.
    pub(super) fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Returns whether the text contains a secret without any decoding.
    pub(super) fn is_plainly_in(&self, text: &[u8]) -> bool {
        self.automaton.as_ref().is_some_and(|automaton| automaton.is_match(text))
    }

    /// Returns the ranges of secrets in a text, sorted and disjoint.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        self.search(text, false)
    }

    /// Like [`Matcher::find`], for the inside of a JSON string. The ranges never begin or end inside an escape.
    pub(super) fn find_in_string(&self, text: &[u8]) -> Vec<Range<usize>> {
        self.search(text, memchr(b'\\', text).is_some())
    }

    /// Searches a text. `is_escaped` means that the text must be decoded before it is compared.
    fn search(&self, text: &[u8], is_escaped: bool) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        if !is_escaped {
            found.extend(self.matches(text));
            found.extend(self.across_lines(text));
        }
        found.extend(self.in_pairs(text));
        let mut may_have_more = memchr2(b'%', b'&', text).is_some();
        for escapes in [Escapes::Strings, Escapes::All] {
            if escapes == Escapes::All && !may_have_more {
                break;
            }
            let mut views: Vec<Vec<u8>> = Vec::new();
            let mut known = found.clone();
            while views.len() < DEPTH
                && let Some(view) = decoded(views.last().map_or(text, Vec::as_slice), escapes)
            {
                may_have_more |= memchr2(b'%', b'&', &view).is_some();
                let mut own = self.matches(&view);
                own.extend(self.across_lines(&view));
                let own = merged(own);
                let before = views.last().map_or(text, Vec::as_slice);
                let mut ranges = without_backslashes(before, located(before, escapes, &own), &known);
                for before in std::iter::once(text).chain(views.iter().map(Vec::as_slice)).rev().skip(1) {
                    ranges = located(before, escapes, &merged(ranges));
                }
                found.extend(ranges);
                known = own;
                views.push(view);
            }
        }
        merged(found)
    }

    fn across_lines(&self, text: &[u8]) -> Vec<Range<usize>> {
        let view = |escapes| {
            let view = decoded(text, escapes);
            view.map(|view| located(text, escapes, &self.matches(&view))).unwrap_or_default()
        };
        [Escapes::LineBreaks, Escapes::SoftBreaks].into_iter().flat_map(view).collect()
    }

    /// Returns the ranges of secrets in hexadecimal with a separator between any two bytes.
    pub(super) fn in_pairs(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let pair = |at: usize| u8::try_from(16 * digit(at)? + digit(at + 1)?).ok();
        let mut at = 0;
        while let Some(sign) = text.get(at + 2) {
            let first = pair(at).filter(|_| matches!(sign, b':' | b' ' | b'-' | b','));
            let mut bytes: Vec<u8> = Vec::new();
            let mut next = first;
            while let Some(byte) = next {
                bytes.push(byte);
                let behind = at + 3 * bytes.len();
                next = pair(behind).filter(|_| text[behind - 1] == *sign);
            }
            if bytes.len() >= super::SHORTEST {
                found.extend(self.matches(&bytes).iter().map(|range| at + 3 * range.start..at + 3 * range.end - 1));
            }
            // The last pair may be the first of a sequence with another separator.
            at += (3 * bytes.len()).saturating_sub(3).max(1);
        }
        found
    }

    /// Returns the ranges of matches without decoding.
    fn matches(&self, text: &[u8]) -> Vec<Range<usize>> {
        match &self.automaton {
            Some(automaton) if automaton.is_match(text) => {
                merged(automaton.find_overlapping_iter(text).map(|found| found.range()).collect())
            }
            _ => Vec::new(),
        }
    }
}

/// Removes the ranges that extend a range of `found` only by leading backslashes: the secret is present there without
/// escapes, so the backslashes do not belong to it.
fn without_backslashes(text: &[u8], ranges: Vec<Range<usize>>, found: &[Range<usize>]) -> Vec<Range<usize>> {
    if ranges.is_empty() {
        return ranges;
    }
    let starts: HashMap<usize, usize> = found.iter().map(|range| (range.end, range.start)).collect();
    let is_more = |range: &Range<usize>| {
        let before = starts.get(&range.end).and_then(|start| text.get(range.start..*start));
        before.is_none_or(|before| before.is_empty() || before.iter().any(|byte| *byte != b'\\'))
    };
    ranges.into_iter().filter(is_more).collect()
}

/// Sorts the ranges and merges those that overlap.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, before| {
        let overlaps = next.start < before.end;
        if overlaps {
            before.end = before.end.max(next.end);
        }
        overlaps
    });
    ranges
}

/// Returns the forms in which a secret is searched: the secret itself, with its apparent escapes decoded, in
/// hexadecimal, and in base64, including base64 of its base64, percent-encoded and JSON string forms.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let mut forms = vec![bytes.to_vec()];
    forms.extend(decoded(bytes, Escapes::All).filter(|form| form.len() >= super::SHORTEST));
    forms.extend(decoded(bytes, Escapes::LineBreaks).filter(|form| form.len() >= super::SHORTEST));
    if secret.contains(' ') {
        forms.push(secret.replace(' ', "+").into_bytes());
    }
    if secret.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number has no leading zeros.
        forms.push(secret.trim_start_matches('0').as_bytes().to_vec());
        forms.retain(|form| form.len() >= super::SHORTEST);
    }
    let mut lower = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| lower.push_str(&format!("{byte:02x}")));
    forms.push(lower.to_uppercase().into_bytes());
    forms.push(lower.into_bytes());
    let encoded = in_base64(bytes);
    let inside = percent_encoded(secret).into_iter().map(String::into_bytes);
    let inside = inside.chain(encoded.iter().cloned()).chain([quoted(secret).into_bytes()]);
    let again: Vec<Vec<u8>> = inside.filter(|form| form != bytes).flat_map(|form| in_base64(&form)).collect();
    forms.extend(encoded);
    forms.extend(again);
    forms
}

/// Returns the base64 forms of a text in both alphabets and at every alignment in the encoded data.
fn in_base64(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::with_capacity(6);
    for shift in 0..3 {
        // The characters at the ends contain bits of the neighbouring bytes.
        let shifted = [&[0; 2][..shift], bytes].concat();
        let from = (8 * shift).div_ceil(6);
        let to = 8 * shifted.len() / 6;
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let form = alphabet.encode(&shifted).as_bytes()[from..to].to_vec();
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// Characters that are never encoded in a URL, and the additional ones that some libraries leave unencoded.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PLAIN_IN_PATHS: &AsciiSet = &PLAIN.remove(b'/');
const PLAIN_IN_SCRIPTS: &AsciiSet = &PLAIN.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// Returns the percent-encoded forms of a text that common libraries produce.
fn percent_encoded(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for plain in [PLAIN, PLAIN_IN_PATHS, PLAIN_IN_SCRIPTS] {
        let form = utf8_percent_encode(text, plain).to_string();
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Returns the content of a text as a JSON string, without the quotation marks.
fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
