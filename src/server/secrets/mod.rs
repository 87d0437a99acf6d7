//! Redaction: removes known secrets from everything that leaves the process.
//!
//! A credential is meant only for the server for which it was configured. It can come back when a server shows its
//! environment or when an error repeats a header, and would then be visible to the model and to readers of logs. Text
//! from a server is redacted on arrival, before it becomes a value of the language and before anything is cut from it.
//! Replies, records and terminal output are redacted again before they leave.
//!
//! [`names`] and [`recognition`] determine which texts of a configuration are secrets, [`matching`] finds them in a
//! text in the encodings that [`decoding`] removes, and [`json`] does so in the strings of a JSON text.

mod addresses;
mod decoding;
mod json;
mod matching;
mod names;
mod pairs;
mod recognition;
mod references;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::lang::{EarlierValue, Reply, Tool, ToolError, ToolReply};

use matching::Matcher;
pub(in crate::server) use names::{is_secret_variable, names_a_secret};
pub(in crate::server) use pairs::behind_option;
pub(in crate::server) use recognition::{credentials_in, has_credentials};

/// Replaces a secret. It needs no escaping in JSON or in a printed string.
pub(in crate::server) const MASK: &str = "[redacted]";

/// Minimum length of a secret, in bytes; shorter texts are too likely to be something else.
const SHORTEST: usize = 8;
/// The length from which a text counts as a secret regardless of its characters.
const SURELY: usize = 16;
/// Number of texts kept per source that renews its secrets. Replaced tokens may still be in transit.
const RENEWED_KEPT: usize = 16;
/// Minimum length of a partial secret that is redacted where a text was cut.
const PART: usize = 4;

/// The secrets known so far; clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    texts: Vec<String>,
    /// Secrets that are renewed from time to time, by source.
    renewed: HashMap<String, VecDeque<String>>,
    matcher: Arc<Matcher>,
}

impl Known {
    fn all(&self) -> impl Iterator<Item = &str> + Clone {
        self.texts.iter().chain(self.renewed.values().flatten()).map(String::as_str)
    }

    /// Rebuilds the matcher and returns the error if that fails. The log redacts its lines, so nothing may be logged
    /// here.
    fn build(&mut self) -> Option<aho_corasick::BuildError> {
        match Matcher::new(self.all()) {
            Ok(matcher) => self.matcher = Arc::new(matcher),
            Err(problem) => return Some(problem),
        }
        None
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        write!(formatter, "{} secrets", known.all().count())
    }
}

impl Secrets {
    /// Collects the secrets in the environment of this process: variables with the name of a secret, and credentials in
    /// others.
    pub fn of_environment() -> Secrets {
        let secrets = Secrets::default();
        let variables: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let named =
            variables.iter().filter(|(name, value)| is_secret_variable(name, value)).map(|(_, value)| value.clone());
        let inside = variables.iter().flat_map(|(_, value)| recognition::written_out(value));
        let texts: Vec<String> = named.chain(inside).collect();
        secrets.add(texts.iter().map(String::as_str));
        secrets
    }

    /// Adds secrets. A text that may be an ordinary word or number is ignored, that is one of fewer than 8 bytes, or of
    /// fewer than 16 bytes that consists only of lower-case letters or only of digits: redacting every `postgres` would
    /// damage user data. The path of an existing file is ignored as well.
    pub fn add<'t>(&self, texts: impl IntoIterator<Item = &'t str>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.texts.len();
        for text in texts.into_iter().map(str::trim).filter(|text| is_redactable(text)) {
            if !known.texts.iter().any(|known| known == text) {
                known.texts.push(text.to_owned());
            }
        }
        let problem = (known.texts.len() > before).then(|| known.build()).flatten();
        drop(known);
        report(problem);
    }

    /// Adds the credentials in a text, such as a database URL or a configuration in JSON.
    pub fn add_credentials_in(&self, text: &str) {
        self.add(credentials_in(text).iter().map(String::as_str));
    }

    /// Adds secrets of a source that renews them, and drops its oldest.
    pub(in crate::server) fn renew<'t>(&self, source: &str, texts: impl IntoIterator<Item = &'t str>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kept = known.renewed.entry(source.to_owned()).or_default();
        let mut has_changed = false;
        for text in texts.into_iter().map(str::trim).filter(|text| is_redactable(text)) {
            if !kept.iter().any(|known| known == text) {
                kept.push_back(text.to_owned());
                has_changed = true;
            }
        }
        kept.drain(..kept.len().saturating_sub(RENEWED_KEPT));
        let problem = has_changed.then(|| known.build()).flatten();
        drop(known);
        report(problem);
    }

    fn matcher(&self) -> Arc<Matcher> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).matcher)
    }

    /// Returns a text with the secrets redacted.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &*self.matcher().find(text.as_bytes()) {
            [] => Cow::Borrowed(text),
            ranges => Cow::Owned(masked(text, ranges)),
        }
    }

    /// Returns a JSON text with the secrets redacted, which otherwise represents the same values.
    pub fn redact_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let matcher = self.matcher();
        if matcher.is_empty() { Cow::Borrowed(text) } else { json::redact(&matcher, text) }
    }

    /// Redacts a text that was cut at its beginning or its end: a partial secret there is redacted as well.
    pub(in crate::server) fn redact_cut(&self, text: &str, cut_before: bool, cut_behind: bool) -> String {
        let mut text = self.redact(text).into_owned();
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if cut_behind {
            let part = known.all().map(|secret| begun(&text, secret)).max().unwrap_or_default();
            if part >= PART {
                text.replace_range(text.len() - part.., MASK);
            }
        }
        if cut_before {
            let part = known.all().map(|secret| ended(&text, secret)).max().unwrap_or_default();
            if part >= PART {
                text.replace_range(..part, MASK);
            }
        }
        text
    }

    /// Returns the number of bytes at the end of a text that may be the beginning of a secret that continues after it.
    pub fn begun(&self, text: &str) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.all().map(|secret| begun(text, secret)).max().unwrap_or_default()
    }

    /// Redacts consecutive parts of a text, including secrets that span several parts.
    pub(in crate::server) fn redact_parts(&self, parts: &mut [String]) {
        let ranges = self.matcher().find(parts.concat().as_bytes());
        let mut from = 0;
        for part in parts.iter_mut() {
            let to = from + part.len();
            let inside = ranges.iter().filter(|range| range.start < to && range.end > from);
            let inside: Vec<Range<usize>> =
                inside.map(|range| range.start.saturating_sub(from)..(range.end.min(to) - from)).collect();
            if !inside.is_empty() {
                *part = masked(part, &inside);
            }
            from = to;
        }
    }

    /// Returns the bytes with the secrets redacted; `None` if they contain none.
    pub(in crate::server) fn redact_bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let ranges = self.matcher().find(bytes);
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for range in &ranges {
            out.extend_from_slice(&bytes[at..range.start]);
            out.extend_from_slice(MASK.as_bytes());
            at = range.end;
        }
        out.extend_from_slice(&bytes[at..]);
        (!ranges.is_empty()).then_some(out)
    }

    /// Returns a reply with the secrets redacted.
    pub(in crate::server) fn redact_reply(&self, reply: ToolReply) -> ToolReply {
        match reply {
            ToolReply::Json(text) => ToolReply::Json(match self.redact_json(&text) {
                Cow::Borrowed(_) => text,
                Cow::Owned(redacted) => redacted,
            }),
            ToolReply::Text(text) => ToolReply::Text(self.redact_own(text)),
            ToolReply::Marked(text) => ToolReply::Marked(self.redact_own(text)),
            ToolReply::Error(error) => ToolReply::Error(self.redact_error(error)),
            ToolReply::Denied(text) => ToolReply::Denied(self.redact_own(text)),
            ToolReply::Unapproved(text) => ToolReply::Unapproved(self.redact_own(text)),
            ToolReply::Diverged(text) => ToolReply::Diverged(self.redact_own(text)),
            ToolReply::Unplanned(text) => ToolReply::Unplanned(self.redact_own(text)),
            ToolReply::Repeated(text) => ToolReply::Repeated(self.redact_own(text)),
            ToolReply::Ask(question) => ToolReply::Ask(question),
            ToolReply::Rehearsed => ToolReply::Rehearsed,
            ToolReply::Stopped => ToolReply::Stopped,
        }
    }

    /// Redacts the record of an evaluation, before it is rendered or cut.
    pub fn redact_record(&self, reply: &mut Reply) {
        let texts = [&mut reply.value, &mut reply.truncated, &mut reply.json_error];
        let lists = [&mut reply.defined, &mut reply.more, &mut reply.notes].into_iter().flatten();
        for text in texts.into_iter().flatten().chain([&mut reply.prints]).chain(lists) {
            self.redact_in(text);
        }
        for EarlierValue { value, truncated } in &mut reply.earlier {
            self.redact_in(value);
            if let Some(extent) = truncated {
                self.redact_in(extent);
                self.redact_elided(value);
            }
        }
        if let Some(value) = reply.json.take() {
            reply.json = Some(self.redact_value(value));
        }
        for call in reply.rehearsed.iter_mut().flat_map(|rehearsed| &mut rehearsed.calls) {
            call.arguments = self.redact_value(std::mem::take(&mut call.arguments));
        }
        for call in &mut reply.calls {
            call.note.iter_mut().chain(&mut call.failed).for_each(|text| self.redact_in(text));
        }
        if let Some(failure) = &mut reply.failure {
            let more = [&mut failure.symbol, &mut failure.suggestion, &mut failure.data].into_iter().flatten();
            for text in more.chain([&mut failure.message, &mut failure.rendered]).chain(&mut failure.trace) {
                self.redact_in(text);
            }
        }
        if reply.truncated.is_some()
            && let Some(value) = &mut reply.value
        {
            self.redact_elided(value);
        }
        if reply.prints.contains("… [") {
            self.redact_elided(&mut reply.prints);
        }
    }

    /// Redacts partial secrets where a text was cut: before each `…`, whose quote is closed, and in a line behind one.
    fn redact_elided(&self, text: &mut String) {
        let ends = text.matches('…').count();
        let parts = text.split('…').enumerate().map(|(index, part)| {
            let (part, quote) = part.strip_suffix('"').map_or((part, ""), |part| (part, "\""));
            let (line, part) = part.strip_prefix('\n').map_or(("", part), |part| ("\n", part));
            format!("{line}{}{quote}", self.redact_cut(part, index > 0, index < ends))
        });
        *text = parts.collect::<Vec<_>>().join("…");
    }

    fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Returns an error with the secrets redacted.
    pub(in crate::server) fn redact_error(&self, error: ToolError) -> ToolError {
        ToolError {
            message: self.redact_own(error.message),
            suggestion: error.suggestion.map(|text| self.redact_own(text)),
            ..error
        }
    }

    /// Returns the description of a tool with the secrets redacted; `None` if its name, by which it is called, contains
    /// one.
    pub(in crate::server) fn redact_tool(&self, tool: Tool) -> Option<Tool> {
        let schema = |schema: serde_json::Value| self.redact_value(schema);
        matches!(self.redact(&tool.name), Cow::Borrowed(_)).then(|| Tool {
            description: self.redact_own(tool.description),
            input_schema: schema(tool.input_schema),
            output_schema: tool.output_schema.map(schema),
            seen: tool.seen.map(schema),
            ..tool
        })
    }

    /// Returns a JSON value with the secrets redacted.
    pub(in crate::server) fn redact_value(&self, value: serde_json::Value) -> serde_json::Value {
        match self.redact_json(&value.to_string()) {
            Cow::Borrowed(_) => value,
            // Redacted JSON is valid JSON; if it ever were not, none of it may pass.
            Cow::Owned(redacted) => serde_json::from_str(&redacted).unwrap_or_default(),
        }
    }

    /// Redacts an owned text, which is returned unchanged if it contains no secret.
    pub fn redact_own(&self, text: String) -> String {
        match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }
}

fn report(problem: Option<aho_corasick::BuildError>) {
    if let Some(problem) = problem {
        tracing::error!(%problem, "new secrets are not redacted");
    }
}

/// Masks ranges of a text, which must be sorted and disjoint.
fn masked(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        // Secrets consist of whole characters, but an encoded byte sequence may be cut anywhere.
        let start = text.floor_char_boundary(range.start).max(at);
        out.push_str(&text[at..start]);
        out.push_str(MASK);
        at = text.ceil_char_boundary(range.end);
    }
    out.push_str(&text[at..]);
    out
}

/// Returns the length of the longest proper prefix of a secret with which a text ends.
fn begun(text: &str, secret: &str) -> usize {
    let parts = secret.char_indices().map(|(at, _)| at).rev();
    parts.filter(|length| *length <= text.len()).find(|length| text.ends_with(&secret[..*length])).unwrap_or_default()
}

/// Returns the length of the longest proper suffix of a secret with which a text begins.
fn ended(text: &str, secret: &str) -> usize {
    let parts = secret.char_indices().map(|(at, _)| at).skip(1).map(|at| secret.len() - at);
    parts
        .filter(|length| *length <= text.len())
        .find(|length| text.starts_with(&secret[secret.len() - length..]))
        .unwrap_or_default()
}

/// Returns whether a text can be redacted everywhere without damage to other data.
pub(in crate::server) fn is_redactable(text: &str) -> bool {
    let text = text.trim();
    let is_all = |kind: fn(&u8) -> bool| text.as_bytes().iter().all(kind);
    let is_word = text.len() < SURELY && (is_all(u8::is_ascii_lowercase) || is_all(u8::is_ascii_digit));
    // Some variables hold the location of a secret, such as `GOOGLE_APPLICATION_CREDENTIALS`.
    text.len() >= SHORTEST && !is_word && !is_path(text)
}

/// Returns whether a text is the path of an existing file.
pub(in crate::server) fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) && Path::new(text).exists()
}
