//! Secrets that the configuration knows are taken out of everything that leaves: results, replies, records, logs.
//!
//! A credential is for the server that it was given for. It comes back where a server shows its own environment or an
//! error repeats a header, and would be read by the model and by whoever reads a log.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::lang::{ToolError, ToolReply};

/// What stands where a secret stood. Inside JSON and a printed string it is what it is outside.
const MASK: &str = "[redacted]";

/// Shorter texts are too likely to be something else.
const SHORTEST: usize = 8;
/// From this length on a text counts as a secret whatever it consists of.
const SURELY: usize = 16;

/// The secrets that are known so far; copies share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    texts: Vec<String>,
    automaton: Option<AhoCorasick>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        write!(formatter, "{} secrets", known.texts.len())
    }
}

impl Secrets {
    /// Adds secrets. A text that could as well be a word or a number, shorter than 8 bytes or below 16 all of small letters
    /// or digits, is none: taking out each `postgres` would damage people's data. Nor is the path of a file that is there.
    pub fn add<'t>(&self, texts: impl IntoIterator<Item = &'t str>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.texts.len();
        for text in texts.into_iter().map(str::trim).filter(|text| is_secret(text)) {
            // As it is, and as a string of JSON or of the language has it.
            let quoted = serde_json::Value::from(text).to_string();
            for form in [text, &quoted[1..quoted.len() - 1]] {
                if !known.texts.iter().any(|text| text == form) {
                    known.texts.push(form.to_owned());
                }
            }
        }
        if known.texts.len() > before {
            let builder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&known.texts);
            known.automaton =
                builder.inspect_err(|problem| tracing::error!(%problem, "secrets are not taken out")).ok();
        }
    }

    /// A text without them.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(automaton) = known.automaton.as_ref().filter(|automaton| automaton.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut redacted = String::with_capacity(text.len());
        automaton.replace_all_with(text, &mut redacted, |_, _, out| {
            out.push_str(MASK);
            true
        });
        Cow::Owned(redacted)
    }

    /// A reply without them.
    pub(super) fn redact_reply(&self, reply: ToolReply) -> ToolReply {
        let redact = |text: String| match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        };
        match reply {
            ToolReply::Json(text) => ToolReply::Json(redact(text)),
            ToolReply::Text(text) => ToolReply::Text(redact(text)),
            ToolReply::Error(error) => ToolReply::Error(ToolError { message: redact(error.message), ..error }),
            other => other,
        }
    }
}

fn is_secret(text: &str) -> bool {
    let is_all = |kind: fn(&u8) -> bool| text.as_bytes().iter().all(kind);
    let is_word = text.len() < SURELY && (is_all(u8::is_ascii_lowercase) || is_all(u8::is_ascii_digit));
    // Some variables say where a secret is, such as `GOOGLE_APPLICATION_CREDENTIALS`.
    text.len() >= SHORTEST && !is_word && !(text.contains(['/', '\\']) && Path::new(text).exists())
}

/// True for a name that people give to secrets: of a variable, a header, a parameter of a URL.
pub(super) fn names_a_secret(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    const PARTS: &[&str] =
        &["secret", "token", "password", "passwd", "passphrase", "apikey", "authorization", "credential", "cookie"];
    PARTS.iter().any(|part| name.contains(part)) || name.split('_').any(|part| matches!(part, "key" | "pat" | "auth"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_words_stay() {
        let secrets = Secrets::default();
        secrets.add(["sk-1234567", "postgres", "100000000", "short1", "quo\"ted-99", "sk-1234567-long"]);
        secrets.add([env!("CARGO_MANIFEST_DIR")]);
        assert_eq!(secrets.redact(env!("CARGO_MANIFEST_DIR")), env!("CARGO_MANIFEST_DIR"), "a path is none");
        assert_eq!(secrets.redact("of 100000000"), "of 100000000");
        assert_eq!(secrets.redact("key sk-1234567, host postgres"), "key [redacted], host postgres");
        assert_eq!(secrets.redact("sk-1234567-long short1"), "[redacted] short1");
        assert_eq!(secrets.redact(r#"{"a":"quo\"ted-99"}"#), r#"{"a":"[redacted]"}"#);
        assert!(matches!(secrets.redact("nothing here"), Cow::Borrowed(_)));
        let shared = secrets.clone();
        shared.add(["another-one-1"]);
        assert_eq!(secrets.redact("another-one-1"), "[redacted]");
        assert_eq!(format!("{secrets:?}"), "5 secrets");
    }

    #[test]
    fn names_of_secrets_are_known() {
        for name in ["GITHUB_TOKEN", "api-key", "X-Api-Key", "DB_PASSWORD", "Authorization", "OPENAI_KEY", "GH_PAT"] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in ["HOME", "KEYBOARD", "PATH", "monkey", "AUTHOR", "Accept"] {
            assert!(!names_a_secret(name), "{name}");
        }
    }
}
