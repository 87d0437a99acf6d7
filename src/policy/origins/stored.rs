//! The text of origins, which follows the text of their session in a store.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

use super::index::{Fingerprint, Index, IndexKey};
use super::literals::Told;
use super::texts::Texts;
use super::{Facts, Origins, Source};

/// The beginning of the line that contains the origins: a comment for readers of the session.
const LINE: &str = ";; origins: ";

const VERSION: u32 = 1;

/// The bytes of a fingerprint with the ordinal of its set.
const ENTRY: usize = 16;

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    key: String,
    words: Vec<String>,
    programs: u64,
    has_replies: bool,
    has_untrusted: bool,
    is_read: bool,
    #[serde(default)]
    told: Told,
    same: StoredIndex,
    alike: StoredIndex,
    /// The fingerprints of what was sent, in order.
    sent: String,
}

#[derive(Serialize, Deserialize)]
struct StoredIndex {
    is_full: bool,
    sets: Vec<Vec<Source>>,
    /// The fingerprints with the ordinals of their sets, in the order in which they came, so that the text grows at its
    /// end.
    texts: String,
}

impl StoredIndex {
    fn of(index: &Index) -> StoredIndex {
        let mut bytes = Vec::with_capacity(index.order.len() * ENTRY);
        for (fingerprint, set) in &index.order {
            fingerprint.0.iter().chain([set]).for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        StoredIndex { is_full: index.is_full, sets: index.sets.clone(), texts: STANDARD_NO_PAD.encode(bytes) }
    }

    fn read(self) -> Option<Index> {
        let bytes = STANDARD_NO_PAD.decode(&self.texts).ok()?;
        let mut index = Index::default();
        index.is_full = self.is_full;
        let ids: Vec<u32> = self.sets.into_iter().map(|set| index.set(set)).collect::<Option<_>>()?;
        let (entries, rest) = bytes.as_chunks::<ENTRY>();
        for entry in entries {
            let set = *ids.get(word(entry, 3) as usize)?;
            index.insert(fingerprint(entry), set);
        }
        rest.is_empty().then_some(index)
    }
}

fn sent_text(sent: &HashSet<Fingerprint>) -> String {
    let mut words: Vec<[u32; 3]> = sent.iter().map(|fingerprint| fingerprint.0).collect();
    words.sort_unstable();
    STANDARD_NO_PAD.encode(words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
}

fn read_sent(text: &str) -> Option<HashSet<Fingerprint>> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    let (entries, rest) = bytes.as_chunks::<{ ENTRY - 4 }>();
    rest.is_empty().then(|| entries.iter().map(|entry| fingerprint(entry)).collect())
}

/// Returns the word with that ordinal.
fn word(bytes: &[u8], ordinal: usize) -> u32 {
    let at = 4 * ordinal;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns the fingerprint with which an entry begins.
fn fingerprint(entry: &[u8]) -> Fingerprint {
    Fingerprint([0, 1, 2].map(|ordinal| word(entry, ordinal)))
}

impl Origins {
    /// Appends the origins to the text of their session.
    pub fn append_to(&self, session: &mut String) {
        let (facts, texts) = (self.facts().clone(), self.texts());
        let stored = Stored {
            version: VERSION,
            key: STANDARD_NO_PAD.encode(texts.key.0),
            words: facts.words,
            programs: facts.programs,
            has_replies: facts.has_replies,
            has_untrusted: facts.has_untrusted,
            is_read: facts.is_read,
            told: facts.told,
            same: StoredIndex::of(&texts.same),
            alike: StoredIndex::of(&texts.alike),
            sent: sent_text(&texts.sent),
        };
        if !session.is_empty() && !session.ends_with('\n') {
            session.push('\n');
        }
        session.push_str(LINE);
        session.push_str(&serde_json::to_string(&stored).expect("it is data"));
        session.push('\n');
    }

    /// Splits a stored text into that of the session and the origins, if they were stored.
    ///
    /// # Errors
    /// Returns a message if the origins cannot be read.
    pub fn split(text: &str) -> Result<(&str, Option<Origins>), String> {
        // A session is written by a printer that begins no line of its own with a comment.
        let Some(at) = text.rfind(LINE).filter(|at| *at == 0 || text[..*at].ends_with('\n')) else {
            return Ok((text, None));
        };
        let damaged = || "the origins of its values are damaged".to_owned();
        let line = &text[at + LINE.len()..];
        let stored: Stored = serde_json::from_str(line.trim_end()).map_err(|_| damaged())?;
        if stored.version != VERSION {
            return Err(format!("the origins of its values were written by another version ({})", stored.version));
        }
        let key = STANDARD_NO_PAD.decode(&stored.key).ok().and_then(|key| key.try_into().ok()).ok_or_else(damaged)?;
        let (same, alike) = (stored.same.read().ok_or_else(damaged)?, stored.alike.read().ok_or_else(damaged)?);
        let sent = read_sent(&stored.sent).ok_or_else(damaged)?;
        let facts = Facts {
            words: stored.words,
            programs: stored.programs,
            has_replies: stored.has_replies,
            has_untrusted: stored.has_untrusted,
            is_read: stored.is_read,
            told: stored.told,
            changes: 0,
        };
        let origins = Origins::of(facts, Texts { same, alike, sent, ..Texts::new(IndexKey(key)) });
        Ok((&text[..at], Some(origins)))
    }
}
