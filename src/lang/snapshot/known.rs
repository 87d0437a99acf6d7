//! The keys of maps and the keywords that a snapshot has had so far.

use super::tape::{Part, Parts};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::shape::Shape;
use std::sync::Arc;

/// Maximum number of shapes remembered.
const SHAPES: usize = 16;

/// Number of keywords remembered.
const KEYWORDS: usize = 64;

/// The maps and keywords of a text have few different keys and names: those seen before are shared.
#[derive(Default)]
pub(super) struct Known<'t> {
    /// The latest last.
    shapes: Vec<KnownShape<'t>>,
    /// By a hash of the name.
    keywords: Vec<Option<(&'t str, Value)>>,
}

/// The shape of the maps with these keys, as they are written.
struct KnownShape<'t> {
    keys: Vec<&'t str>,
    is_record: bool,
    shape: Arc<Shape>,
}

impl<'t> Known<'t> {
    /// Returns the shape of a map with these keys and values, if it is known.
    pub fn shape(&mut self, is_record: bool, entries: Parts<'t>) -> Option<Arc<Shape>> {
        let at = self.shapes.iter().rposition(|known| known.is_record == is_record && known.fits(entries))?;
        self.shapes[at..].rotate_left(1);
        self.shapes.last().map(|known| known.shape.clone())
    }

    /// Remembers the shape of a map with these keys and values, if each of its keys is a token.
    pub fn note(&mut self, is_record: bool, mut entries: Parts<'t>, map: &Map) {
        let Some((shape, values)) = map.as_shaped() else { return };
        let mut keys = Vec::with_capacity(values.len());
        while let Some(key) = entries.next() {
            let (Some(key), Some(_)) = (key.token(), entries.next()) else { return };
            keys.push(key);
        }
        // Keys that are equal are one entry.
        if keys.len() != values.len() {
            return;
        }
        if self.shapes.len() == SHAPES {
            self.shapes.remove(0);
        }
        self.shapes.push(KnownShape { keys, is_record, shape: shape.clone() });
    }

    /// Returns the keyword of that name.
    pub fn keyword(&mut self, name: &'t str) -> Value {
        self.keywords.resize(KEYWORDS, None);
        let bytes = name.as_bytes();
        let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
        let place = (bytes.len() * 5 + usize::from(first) * 3 + usize::from(last)) % KEYWORDS;
        match &self.keywords[place] {
            Some((known, keyword)) if *known == name => keyword.clone(),
            _ => {
                let keyword = Value::keyword(name);
                self.keywords[place] = Some((name, keyword.clone()));
                keyword
            }
        }
    }
}

impl KnownShape<'_> {
    /// Returns whether these keys and values have the keys of the shape.
    fn fits(&self, mut entries: Parts<'_>) -> bool {
        let has = |entries: &mut Parts<'_>, key: &&str| {
            entries.next().and_then(Part::token) == Some(key) && entries.next().is_some()
        };
        self.keys.iter().all(|key| has(&mut entries, key)) && entries.next().is_none()
    }
}
