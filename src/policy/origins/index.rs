//! The fingerprints of texts, each with the sources that it came from.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::likeness::alike;
use super::{LONGEST_ALIKE, Source};

/// A keyed hash of 96 bits. Without the key, which never leaves the session, no one can find two texts that share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fingerprint(pub(super) [u32; 3]);

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0[0]) << 32 | u64::from(self.0[1]));
    }
}

/// Takes a fingerprint for its own hash.
#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// The key of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexKey(pub(super) [u8; 16]);

impl IndexKey {
    /// Returns the fingerprint of a form of a text.
    pub(super) fn fingerprint(&self, form: impl AsRef<[u8]>) -> Fingerprint {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(form.as_ref());
        let hash = hasher.finish128();
        Fingerprint([(hash.h1 >> 32) as u32, hash.h1 as u32, hash.h2 as u32])
    }

    /// Returns the fingerprint of a form of a text that is sent: that of its look, since a tool may repeat it in another
    /// case or without invisible characters. A long text has its own.
    pub(super) fn sent(&self, form: &str) -> Fingerprint {
        if form.len() > LONGEST_ALIKE { self.fingerprint(form) } else { self.fingerprint(alike(form)) }
    }
}

/// Most sources of one text; further ones are not added, so that no allow-list accepts them.
const MOST_SOURCES: usize = 32;

/// Most sets of sources: a tool may name the fields of its results as it likes.
const MOST_SETS: usize = 50_000;
/// Most bytes of the sources in all sets.
const MOST_SET_BYTES: usize = 16 << 20;

/// The ordinal of a set of sources.
type SetId = u32;

/// Texts in one form, up to a maximum number, each with the tools that returned it and the places in their results.
#[derive(Clone, Default)]
pub(super) struct Index {
    entries: HashMap<Fingerprint, SetId, BuildHasherDefault<AsIs>>,
    /// The fingerprints in the order in which they came, so that the text of the index grows at its end.
    pub(super) order: Vec<(Fingerprint, SetId)>,
    pub(super) sets: Vec<Vec<Source>>,
    known: HashMap<Vec<Source>, SetId>,
    /// The size of the sources in all sets, in bytes.
    set_bytes: usize,
    /// The source of the text that was added last, alone: that of the next one is often the same.
    last: Option<(Source, SetId)>,
    /// True once a text was not added because there was no room.
    pub(super) is_full: bool,
}

impl Index {
    /// Adds a text that came from a source, unless there are `most` texts.
    pub(super) fn add(&mut self, fingerprint: Fingerprint, source: &Source, most: usize) {
        let before = self.entries.get(&fingerprint).copied();
        let id = match before {
            Some(before) => {
                let sources = &self.sets[before as usize];
                if sources.len() >= MOST_SOURCES || sources.iter().any(|known| known.is_of(source)) {
                    return;
                }
                match self.set([&sources[..], std::slice::from_ref(source)].concat()) {
                    Some(id) => id,
                    None => return,
                }
            }
            None if self.entries.len() >= most => {
                self.is_full = true;
                return;
            }
            None => match &self.last {
                Some((last, id)) if last == source => *id,
                _ => {
                    let Some(id) = self.set(vec![source.clone()]) else { return };
                    self.last = Some((source.clone(), id));
                    id
                }
            },
        };
        self.insert(fingerprint, id);
    }

    /// Adds a text with a set of sources; a later set replaces an earlier one.
    pub(super) fn insert(&mut self, fingerprint: Fingerprint, set: SetId) {
        self.entries.insert(fingerprint, set);
        self.order.push((fingerprint, set));
        if self.order.len() > 2 * self.entries.len() + 1_024 {
            let entries = &self.entries;
            self.order.retain(|(fingerprint, set)| entries.get(fingerprint) == Some(set));
        }
    }

    /// Returns the ordinal of a set of sources, which is added if it is new; `None` if there is no room.
    pub(super) fn set(&mut self, sources: Vec<Source>) -> Option<SetId> {
        if let Some(known) = self.known.get(&sources) {
            return Some(*known);
        }
        let bytes: usize = sources.iter().map(Source::bytes).sum();
        if self.sets.len() >= MOST_SETS || self.set_bytes + bytes > MOST_SET_BYTES {
            self.is_full = true;
            return None;
        }
        let id = self.sets.len() as SetId;
        self.set_bytes += bytes;
        self.sets.push(sources.clone());
        self.known.insert(sources, id);
        Some(id)
    }

    /// Returns the sources of a text.
    pub(super) fn get(&self, fingerprint: Fingerprint) -> &[Source] {
        self.entries.get(&fingerprint).map_or(&[], |set| &self.sets[*set as usize])
    }

    /// Returns the number of texts.
    #[cfg(any(test, feature = "tracing"))]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the memory of the fingerprints and their sources, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * (size_of::<(Fingerprint, SetId)>() + 1)
            + self.order.capacity() * size_of::<(Fingerprint, SetId)>()
            + 2 * self.set_bytes
    }
}
