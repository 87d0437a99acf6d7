//! Maps, and the records that JSON objects become.
//!
//! Up to thirty-two entries a map is a [`Shape`] shared with its likes and a block of values; beyond
//! that, sorted or with metadata, it is a [`Large`] one. Iteration follows insertion or the order. A *record* is a map that came from
//! JSON: a key that it does not have is looked for in its other spellings, by the same rule wherever a
//! key is looked for, so that an update never makes a second key. Equality alone compares keys as they are.

use super::Value;
use super::large::{Large, Order};
use super::release::{Debris, release, release_leaf};
use super::shape::Shape;
use super::spellings::{Spellings, kebab_characters, only_among, other_kind, spelled};
use super::text::LONGEST_NAME;
use crate::lang::meter::owe;
use smallvec::SmallVec;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

/// Where the metadata of a record of `defrecord`, or of an object of `reify`, says what it is: a map with its
/// `:type`, the `:fields` of a record, the methods of an object.
pub const KIND: &str = "core/record";

/// The type of what `tagged-literal` makes.
pub const TAGGED: &str = "clojure.lang.TaggedLiteral";

/// The type of what `reader-conditional` makes.
pub const CONDITIONAL: &str = "clojure.lang.ReaderConditional";

/// The most entries that stand in one block.
const SMALL: usize = 32;

/// The values of a small map: up to two stand in the map itself, which with its count of owners fits a line of the
/// processor's cache.
pub type Values = SmallVec<[Value; 2]>;

/// A map from keys to values.
#[derive(Clone)]
pub struct Map(Entries);

#[derive(Clone)]
enum Entries {
    Small {
        shape: Arc<Shape>,
        values: Values,
    },
    Large {
        /// Boxed, so that the many small maps are small.
        table: Box<Large<Value>>,
        /// Of a record, the index of its keys by name once it was needed.
        record: Option<Box<OnceLock<Spellings>>>,
    },
}

const _: () = assert!(size_of::<Map>() == 48);

impl Default for Map {
    fn default() -> Self {
        Map::with_shape(Arc::default(), Values::new())
    }
}

impl Map {
    /// A map of these values under the keys of `shape`, one for each.
    pub fn with_shape(shape: Arc<Shape>, values: impl Into<Values>) -> Map {
        let values = values.into();
        debug_assert_eq!(shape.keys().len(), values.len());
        Map(Entries::Small { shape, values })
    }

    /// Marks this map as a record from JSON.
    pub fn into_record(mut self) -> Map {
        match &mut self.0 {
            Entries::Small { shape, .. } if shape.is_record() => {}
            Entries::Small { shape, .. } => *shape = shape.to_record(),
            Entries::Large { record, .. } => drop(record.get_or_insert_default()),
        }
        self
    }

    /// True if it came from JSON.
    #[inline]
    pub fn is_record(&self) -> bool {
        match &self.0 {
            Entries::Small { shape, .. } => shape.is_record(),
            Entries::Large { record, .. } => record.is_some(),
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Entries::Small { values, .. } => values.len(),
            Entries::Large { table, .. } => table.len(),
        }
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the key stands for.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.get_entry(key).map(|(_, value)| value)
    }

    /// The value under the keyword of that name, or else under that text: what a host asks, whether the map was
    /// written in a program or came as JSON.
    ///
    /// ```
    /// use lispbox::lang::Value;
    /// use lispbox::lang::value::map::Map;
    ///
    /// let mut mail = Map::default();
    /// mail.insert(Value::keyword("size"), Value::Int(512));
    /// assert_eq!(mail.field("size"), Some(&Value::Int(512)));
    /// ```
    pub fn field(&self, name: &str) -> Option<&Value> {
        match &self.0 {
            Entries::Small { shape, values } => {
                let is_keyword = |key: &Value| matches!(key, Value::Keyword(known) if known.as_str() == name);
                let keys = shape.keys();
                let at = keys.iter().position(is_keyword);
                let at = at.or_else(|| keys.iter().position(|key| key.as_str() == Some(name)));
                at.and_then(|at| values.get(at))
            }
            Entries::Large { .. } => self.large_field(name),
        }
    }

    #[cold]
    fn large_field(&self, name: &str) -> Option<&Value> {
        self.get(&Value::keyword(name)).or_else(|| self.get(&Value::string(name)))
    }

    /// What the key, spelled as it is, stands for in a small map, which is looked for first in the place where it
    /// stood in the last one.
    #[inline]
    pub fn get_near(&self, key: &Value, place: &mut usize) -> Option<&Value> {
        let Entries::Small { shape, values } = &self.0 else { return None };
        if shape.keys().get(*place).is_none_or(|known| known != key) {
            *place = shape.position(key)?;
        }
        values.get(*place)
    }

    /// The entry under that key, in one of its spellings, with the key as the map has it.
    #[inline]
    pub fn get_entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        let exact = self.get_exact(key);
        if exact.is_some() || !self.is_record() {
            return exact;
        }
        self.get_other_spelling(key)
    }

    /// The entry under the key as it is spelled.
    #[inline]
    pub fn get_exact(&self, key: &Value) -> Option<(&Value, &Value)> {
        match &self.0 {
            Entries::Small { shape, values } => {
                shape.position(key).and_then(|at| Some((shape.keys().get(at)?, values.get(at)?)))
            }
            Entries::Large { table, .. } => table.get(key),
        }
    }

    /// True if the key, in one of its spellings, is there.
    pub fn contains_key(&self, key: &Value) -> bool {
        self.get_entry(key).is_some()
    }

    /// The shape and the values of a small map.
    pub fn as_shaped(&self) -> Option<(&Arc<Shape>, &[Value])> {
        match &self.0 {
            Entries::Small { shape, values } => Some((shape, values)),
            Entries::Large { .. } => None,
        }
    }

    /// One past the last position that [`Map::entry`] may be asked for.
    pub fn positions(&self) -> usize {
        match &self.0 {
            Entries::Small { values, .. } => values.len(),
            Entries::Large { table, .. } => table.positions(),
        }
    }

    /// The entry at a position; removed entries leave gaps.
    #[inline]
    pub fn entry(&self, position: usize) -> Option<(&Value, &Value)> {
        match &self.0 {
            Entries::Small { shape, values } => Some((shape.keys().get(position)?, values.get(position)?)),
            Entries::Large { table, .. } => table.entry(position),
        }
    }

    /// The entries in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        (0..self.positions()).filter_map(|position| self.entry(position))
    }

    /// Makes `key` stand for `value`. An entry that is there, in another spelling for a record, keeps
    /// its key and its place. In a sorted map a new key goes where `compare` puts it.
    pub fn insert(&mut self, key: Value, value: Value) {
        let key = self.known_spelling(key);
        if let Entries::Small { shape, values } = &mut self.0 {
            if let Some(position) = shape.position(&key) {
                values[position] = value;
                return;
            }
            if values.len() < SMALL {
                *shape = shape.with(&key);
                values.push(value);
                return;
            }
        }
        self.note_key(&key);
        self.enlarge(|table| table.insert(key, value));
    }

    /// Adds a key to the index of a record's names, if it has one and the key is new.
    fn note_key(&mut self, key: &Value) {
        if let Entries::Large { table, record: Some(record) } = &mut self.0
            && let Some(index) = record.get_mut()
            && table.get(key).is_none()
        {
            index.insert(key);
        }
    }

    /// A key as the map has it, where a record has it in another spelling.
    fn known_spelling(&self, key: Value) -> Value {
        if !self.is_record() {
            return key;
        }
        self.get_entry(&key).map(|(known, _)| known.clone()).unwrap_or(key)
    }

    /// Changes the map as a large one, which it becomes if it is not.
    fn enlarge(&mut self, change: impl FnOnce(&mut Large<Value>)) {
        match &mut self.0 {
            Entries::Small { shape, values } => {
                let mut table = Box::new(Large::default());
                table.metadata = shape.metadata().cloned();
                for (key, value) in shape.keys().iter().zip(values.drain(..)) {
                    table.insert(key.clone(), value);
                }
                change(&mut table);
                self.0 = Entries::Large { table, record: shape.is_record().then(Box::default) };
            }
            Entries::Large { table, .. } => change(table),
        }
    }

    /// Takes the entry of that key away.
    pub fn remove(&mut self, key: &Value) {
        let Some((known, _)) = self.get_entry(key) else { return };
        let known = known.clone();
        match &mut self.0 {
            Entries::Small { shape, values } => {
                if let Some(position) = shape.position(&known) {
                    *shape = shape.without(position);
                    values.remove(position);
                }
            }
            Entries::Large { table, record } => {
                table.remove(&known);
                if let Some(index) = record.as_mut().and_then(|record| record.get_mut()) {
                    index.remove(&known);
                }
            }
        }
        // Without one of its fields a record is a plain map.
        if matches!(self.fields(), Some(Value::Vector(fields)) if fields.iter().any(|field| *field == known)) {
            let plain = self.metadata().and_then(without_kind);
            self.set_metadata(plain);
        }
    }

    /// An empty sorted map; nil as the comparator stands for `compare`.
    pub fn sorted(comparator: Value) -> Map {
        Map(Entries::Large { table: Box::new(Large::sorted(comparator)), record: None })
    }

    /// The keys in order, if it is sorted.
    pub fn order(&self) -> Option<&Order> {
        match &self.0 {
            Entries::Small { .. } => None,
            Entries::Large { table, .. } => table.order(),
        }
    }

    /// Puts a key that is not there yet at a place of a sorted map's order.
    pub fn insert_at(&mut self, place: usize, key: Value, value: Value) {
        self.note_key(&key);
        self.enlarge(|table| table.insert_at(place, key, value));
    }

    /// Puts a key that is not there yet behind all others, where it belongs in the order of a sorted map.
    pub fn append(&mut self, key: Value, value: Value) {
        match self.order() {
            Some(_) => self.insert_at(usize::MAX, key, value),
            None => self.insert(key, value),
        }
    }

    /// What `meta` gives.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        match &self.0 {
            Entries::Small { shape, .. } => shape.metadata(),
            Entries::Large { table, .. } => table.metadata.as_ref(),
        }
    }

    /// Replaces the metadata.
    pub fn set_metadata(&mut self, metadata: Option<Arc<Map>>) {
        match &mut self.0 {
            Entries::Small { shape, .. } if metadata.is_some() || shape.metadata().is_some() => {
                *shape = shape.annotated(metadata);
            }
            Entries::Small { .. } => {}
            Entries::Large { table, .. } => table.metadata = metadata,
        }
    }

    /// What makes this a record of `defrecord` or an object of `reify`; nothing for all other maps.
    #[inline]
    pub fn kind(&self) -> Option<&Arc<Map>> {
        kind_in(self.metadata()?)
    }

    /// The name of the type of a record or an object.
    pub fn type_name(&self) -> Option<&Value> {
        self.kind()?.get(&Value::keyword("type"))
    }

    /// The fields of a record's type.
    pub fn fields(&self) -> Option<&Value> {
        self.kind()?.get(&Value::keyword("fields"))
    }

    /// True if both are plain maps, or records of one type.
    #[inline]
    pub fn is_alike(&self, other: &Map) -> bool {
        match (self.metadata(), other.metadata()) {
            (None, None) => true,
            _ => match (self.kind(), other.kind()) {
                (None, None) => true,
                (Some(_), Some(_)) => self.fields().is_some() && self.type_name() == other.type_name(),
                _ => false,
            },
        }
    }

    /// The entry of a record under another spelling of a key that it does not have.
    #[cold]
    pub fn get_other_spelling(&self, key: &Value) -> Option<(&Value, &Value)> {
        let text = spelled(key)?;
        if let Some(found) = other_kind(key).and_then(|key| self.get_exact(&key)) {
            return Some(found);
        }
        match &self.0 {
            Entries::Small { shape, values } => {
                let at = only_among(shape.keys(), text)?;
                Some((&shape.keys()[at], values.get(at)?))
            }
            Entries::Large { table, record } => {
                let index = record.as_ref()?.get_or_init(|| {
                    let Ok(index): Result<Spellings, Infallible> = names_of(table, |_| Ok(()));
                    index
                });
                table.get(index.only(text)?)
            }
        }
    }

    /// Gets ready to look for other spellings of a key that a record does not have. `pay` is called with the steps that
    /// it takes, and may stop it.
    ///
    /// # Errors
    /// What `pay` returns.
    #[cold]
    pub fn prepare_spellings<E>(&self, key: &Value, mut pay: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
        let Some(text) = spelled(key) else { return Ok(()) };
        match &self.0 {
            Entries::Small { shape, .. } => {
                let lengths = shape.keys().iter().filter_map(spelled).map(|known| known.len().min(text.len()));
                pay(lengths.sum::<usize>() as u64 / 64)
            }
            Entries::Large { table, record: Some(record) } if record.get().is_none() => {
                let index = names_of(table, pay)?;
                let _ = record.set(index);
                Ok(())
            }
            Entries::Large { .. } => Ok(()),
        }
    }
}

/// An index of the keys of a large record.
fn names_of<E>(table: &Large<Value>, mut pay: impl FnMut(u64) -> Result<(), E>) -> Result<Spellings, E> {
    let mut index = Spellings::new();
    for at in 0..table.positions() {
        let Some((key, _)) = table.entry(at) else { continue };
        pay(8 + spelled(key).map_or(0, str::len) as u64 / 8)?;
        index.insert(key);
    }
    Ok(index)
}

fn kind_in(metadata: &Map) -> Option<&Arc<Map>> {
    match metadata.get(&Value::keyword(KIND)) {
        Some(Value::Map(kind)) => Some(kind),
        _ => None,
    }
}

/// Metadata without what makes its map a record: what programs see of it.
pub fn without_kind(metadata: &Arc<Map>) -> Option<Arc<Map>> {
    if kind_in(metadata).is_none() {
        return Some(metadata.clone());
    }
    let mut plain = (**metadata).clone();
    plain.remove(&Value::keyword(KIND));
    (!plain.is_empty()).then(|| Arc::new(plain))
}

/// A name in kebab case: `threadId`, `thread_id` and `ThreadID` are all `thread-id`.
pub fn kebab(name: &str) -> String {
    if name.len() >= 256 {
        owe(name.len() as u64 / 16);
    }
    kebab_characters(name).collect()
}

/// The canonical form of a name: without `-` and `_`, in lower case. Names of tools and arguments that agree in it are
/// spellings of each other, for programs and for the rules of a policy alike.
pub fn canonical(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// True for names that read as a keyword without a namespace: JSON keys that do become keywords.
pub fn is_plain_keyword(name: &str) -> bool {
    let mut characters = name.chars();
    name.len() <= LONGEST_NAME
        && characters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && characters.all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '!' | '?' | '*' | '+' | '$'))
}

impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Map {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        match &mut self.0 {
            Entries::Small { values, .. } => {
                if !values.spilled() && values.iter().all(Value::is_plain) && release_leaf() {
                    // They own nothing, and neither does the place where they stand.
                    std::mem::forget(std::mem::take(values));
                } else {
                    release(std::mem::take(values), |values| Debris::Values(values.into_vec()));
                }
            }
            Entries::Large { table, .. } => {
                release(std::mem::take(&mut **table), |table| Debris::Map(Box::new(table)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for name in ["threadId", "thread_id", "ThreadID", "thread-id"] {
            assert_eq!(kebab(name), "thread-id");
        }
        assert_eq!(kebab("HTMLBody"), "html-body");
        assert!(is_plain_keyword("from_address") && is_plain_keyword("naïve"));
        assert!(!is_plain_keyword("") && !is_plain_keyword("first name") && !is_plain_keyword("1st"));
    }

    #[test]
    fn a_record_stays_one_whatever_becomes_of_it() {
        let mut record = Map::default().into_record();
        for n in 0..40 {
            record.insert(Value::string(&format!("key_{n}")), Value::Int(n));
            assert!(record.is_record() && record.len() == n as usize + 1);
            assert_eq!(record.get(&Value::keyword(&format!("key-{n}"))), Some(&Value::Int(n)));
        }
        for n in 0..40 {
            record.remove(&Value::keyword(&format!("key-{n}")));
            assert!(record.is_record() && record.len() == 39 - n as usize);
        }
    }

    #[test]
    fn another_spelling_is_found_whatever_the_number_of_keys() {
        let key = Value::keyword;
        for more in [0, 28, 40, 1_000] {
            let mut record = Map::default();
            for n in 0..more {
                record.insert(key(&format!("key_{n}")), Value::Nil);
            }
            let mut record = record.into_record();
            record.insert(key("imageURL"), Value::Int(1));
            record.insert(Value::string("a b"), Value::Int(2));
            for other in [key("image-url"), Value::string("image_url"), Value::string("ImageUrl")] {
                assert_eq!(record.get(&other), Some(&Value::Int(1)), "{more} {other:?}");
            }
            assert_eq!(record.get(&key("a b")), Some(&Value::Int(2)));
            // A second spelling in a record makes both unclear, but for who writes one of them as it is.
            let mut two = Map::default();
            for (key, value) in record.iter() {
                two.insert(key.clone(), value.clone());
            }
            two.insert(key("image_url"), Value::Int(3));
            let mut two = two.into_record();
            assert_eq!(two.get(&key("image-url")), None, "{more}");
            assert_eq!(two.get(&Value::string("image_url")), Some(&Value::Int(3)));
            two.remove(&key("image_url"));
            assert_eq!(two.get(&key("image-url")), Some(&Value::Int(1)));
        }
    }

    #[test]
    fn maps_that_become_records_share_their_keys() {
        let plain = Shape::new(vec![Value::keyword("a")]);
        let record = |number| Map::with_shape(plain.clone(), vec![Value::Int(number)]).into_record();
        let (one, two) = (record(1), record(2));
        let shape = |map: &Map| map.as_shaped().map(|(shape, _)| Arc::as_ptr(shape));
        assert_eq!(shape(&one), shape(&two));
        assert!(one.is_record() && !Map::with_shape(plain.clone(), vec![Value::Nil]).is_record());
        let mut longer = one.clone();
        longer.insert(Value::keyword("b"), Value::Int(2));
        assert!(longer.is_record());
    }

    #[test]
    fn large_maps_keep_their_order_when_entries_go() {
        let mut map: Map = (0..1000).map(|n| (Value::Int(n), Value::Int(n * n))).collect();
        for n in 0..900 {
            map.remove(&Value::Int(n));
        }
        assert_eq!(map.len(), 100);
        let keys: Vec<i64> = map.iter().map(|(key, _)| if let Value::Int(n) = key { *n } else { -1 }).collect();
        assert_eq!(keys, (900..1000).collect::<Vec<_>>());
    }
}
