//! Maps, and the records that represent JSON objects.
//!
//! A map of up to thirty-two entries is a block of values and a [`Shape`], shared with maps of the same keys. A larger
//! or sorted map is a [`Large`] table. Iteration follows insertion order or sort order. A *record* is a map decoded
//! from JSON: a key that it does not contain is looked up in its other spellings. All lookups follow this rule, so an
//! update never adds a second spelling of a key. Only equality compares keys exactly.

use super::Value;
use super::large::{Large, SortOrder};
use super::names::is_plain_keyword;
use super::release::{DeferredDrop, release, release_leaf};
use super::shape::Shape;
use super::spellings::{Spellings, kebab_characters, only_among, other_kind, spelled};
use crate::meter::owe;
use smallvec::SmallVec;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

/// Metadata key that marks a record of `defrecord` or an object of `reify`. Its value is a map with the `:type`, the
/// `:fields` of a record, and the methods of an object.
pub const KIND: &str = "core/record";

/// Type name of the values that `tagged-literal` creates.
pub const TAGGED: &str = "clojure.lang.TaggedLiteral";

/// Type name of the values that `reader-conditional` creates.
pub const CONDITIONAL: &str = "clojure.lang.ReaderConditional";

/// Maximum number of entries of a small map.
pub const SMALL: usize = 32;

/// The values of a small map. Up to two are stored inline, so that a map and its reference counts fit into one cache
/// line.
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
        /// Boxed to keep the size of small maps low.
        table: Box<Large<Value>>,
        /// `Some` for a record: the index of its keys by name, built on first use.
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
    /// Creates a map from the keys of `shape` and one value for each key.
    #[doc(hidden)]
    pub fn with_shape(shape: Arc<Shape>, values: impl Into<Values>) -> Map {
        let values = values.into();
        debug_assert_eq!(shape.keys().len(), values.len());
        Map(Entries::Small { shape, values })
    }

    /// Creates an empty map that is about to get so many entries by [`Map::add`].
    pub(crate) fn with_capacity(capacity: usize) -> Map {
        if capacity <= SMALL {
            return Map::default();
        }
        Map(Entries::Large { table: Box::new(Large::with_capacity(capacity)), record: None })
    }

    /// Marks this map as a record decoded from JSON.
    pub(crate) fn into_record(mut self) -> Map {
        match &mut self.0 {
            Entries::Small { shape, .. } if shape.is_record() => {}
            Entries::Small { shape, .. } => *shape = shape.to_record(),
            Entries::Large { record, .. } => drop(record.get_or_insert_default()),
        }
        self
    }

    /// True for a record decoded from JSON.
    #[inline]
    pub(crate) fn is_record(&self) -> bool {
        match &self.0 {
            Entries::Small { shape, .. } => shape.is_record(),
            Entries::Large { record, .. } => record.is_some(),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match &self.0 {
            Entries::Small { values, .. } => values.len(),
            Entries::Large { table, .. } => table.len(),
        }
    }

    /// True if the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of `key`, in any of its spellings for a record.
    #[inline]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.get_entry(key).map(|(_, value)| value)
    }

    /// Returns the value of the keyword of that name, or else of the string of that text. Serves hosts, which need not
    /// know whether a program wrote the map or it was decoded from JSON.
    ///
    /// ```
    /// use lispbox::lang::Value;
    /// use lispbox::lang::value::Map;
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

    /// Returns the value of `key`, spelled exactly, in a small map. `place` is a monomorphic inline cache: the index of
    /// the key in the last small map, tried first and updated on a miss.
    #[doc(hidden)]
    #[inline]
    pub fn get_near(&self, key: &Value, place: &mut usize) -> Option<&Value> {
        let Entries::Small { shape, values } = &self.0 else { return None };
        if shape.keys().get(*place).is_none_or(|known| known != key) {
            *place = shape.position(key)?;
        }
        values.get(*place)
    }

    /// Returns the entry of `key`, in any of its spellings for a record, with the key as the map stores it.
    #[inline]
    pub(crate) fn get_entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        let exact = self.get_exact(key);
        if exact.is_some() || !self.is_record() {
            return exact;
        }
        self.get_other_spelling(key)
    }

    /// Returns the entry whose key equals `key` exactly.
    #[inline]
    pub(crate) fn get_exact(&self, key: &Value) -> Option<(&Value, &Value)> {
        match &self.0 {
            Entries::Small { shape, values } => {
                shape.position(key).and_then(|at| Some((shape.keys().get(at)?, values.get(at)?)))
            }
            Entries::Large { table, .. } => table.get(key),
        }
    }

    /// True if the map contains `key`, in any of its spellings for a record.
    pub fn contains_key(&self, key: &Value) -> bool {
        self.get_entry(key).is_some()
    }

    /// Returns the shape and the values of a small map, or `None` for a large one.
    pub(crate) fn as_shaped(&self) -> Option<(&Arc<Shape>, &[Value])> {
        match &self.0 {
            Entries::Small { shape, values } => Some((shape, values)),
            Entries::Large { .. } => None,
        }
    }

    /// Returns the upper bound (exclusive) of the positions that [`Map::entry`] accepts.
    pub(crate) fn positions(&self) -> usize {
        match &self.0 {
            Entries::Small { values, .. } => values.len(),
            Entries::Large { table, .. } => table.positions(),
        }
    }

    /// Returns the entry at a position, or `None` for the gap that a removed entry left.
    #[inline]
    pub(crate) fn entry(&self, position: usize) -> Option<(&Value, &Value)> {
        match &self.0 {
            Entries::Small { shape, values } => Some((shape.keys().get(position)?, values.get(position)?)),
            Entries::Large { table, .. } => table.entry(position),
        }
    }

    /// Returns the position of the next entry at or after `position`, which is 0 or follows an entry.
    #[inline]
    pub(crate) fn occupied(&self, position: usize) -> usize {
        match &self.0 {
            Entries::Small { .. } => position,
            Entries::Large { table, .. } => table.occupied(position),
        }
    }

    /// Iterates over the entries in insertion order, or in sort order for a sorted map.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        (0..self.positions()).filter_map(|position| self.entry(position))
    }

    /// Associates `key` with `value`. An existing entry, under any spelling of the key for a record, keeps its key and
    /// its position. In a sorted map the order of `compare` determines the position of a new key.
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

    /// Does what [`Map::insert`] does, faster if the map is large, is no record and does not contain the key.
    pub(crate) fn add(&mut self, key: Value, value: Value) {
        match &mut self.0 {
            Entries::Large { table, record: None } => table.add(key, value),
            _ => self.insert(key, value),
        }
    }

    /// Adds a new key to the spelling index of a record, if the index has been built.
    fn note_key(&mut self, key: &Value) {
        if let Entries::Large { table, record: Some(record) } = &mut self.0
            && let Some(index) = record.get_mut()
            && table.get(key).is_none()
        {
            index.insert(key);
        }
    }

    /// Returns the stored spelling of a key if this is a record that contains it, otherwise the key itself.
    fn known_spelling(&self, key: Value) -> Value {
        if !self.is_record() {
            return key;
        }
        self.get_entry(&key).map(|(known, _)| known.clone()).unwrap_or(key)
    }

    /// Applies a change to the large representation, converting a small map first.
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

    /// Removes the entry of `key`, in any of its spellings for a record.
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
        // A record of `defrecord` that loses one of its fields becomes a plain map.
        if matches!(self.fields(), Some(Value::Vector(fields)) if fields.iter().any(|field| *field == known)) {
            let plain = self.metadata().and_then(without_kind);
            self.set_metadata(plain);
        }
    }

    /// Removes the entry at index `place` of the order of a sorted map.
    pub(crate) fn remove_at(&mut self, place: usize) {
        self.enlarge(|table| table.remove_at(place));
    }

    /// Creates an empty sorted map. A comparator of nil selects `compare`.
    pub(crate) fn sorted(comparator: Value) -> Map {
        Map(Entries::Large { table: Box::new(Large::sorted(comparator)), record: None })
    }

    /// Returns the keys in sort order, or `None` for an unsorted map.
    pub(crate) fn order(&self) -> Option<&SortOrder> {
        match &self.0 {
            Entries::Small { .. } => None,
            Entries::Large { table, .. } => table.order(),
        }
    }

    /// Inserts a key that the map does not contain. In a sorted map it goes to index `place` of the order.
    pub(crate) fn insert_at(&mut self, place: usize, key: Value, value: Value) {
        self.note_key(&key);
        self.enlarge(|table| table.insert_at(place, key, value));
    }

    /// Appends a key that the map does not contain. The caller guarantees that it sorts last in a sorted map.
    pub(crate) fn append(&mut self, key: Value, value: Value) {
        match self.order() {
            Some(_) => self.insert_at(usize::MAX, key, value),
            None => self.insert(key, value),
        }
    }

    /// Returns the metadata, including the `KIND` entry of a record or an object.
    pub(crate) fn metadata(&self) -> Option<&Arc<Map>> {
        match &self.0 {
            Entries::Small { shape, .. } => shape.metadata(),
            Entries::Large { table, .. } => table.metadata.as_ref(),
        }
    }

    /// Replaces the metadata.
    pub(crate) fn set_metadata(&mut self, metadata: Option<Arc<Map>>) {
        match &mut self.0 {
            Entries::Small { shape, .. } if metadata.is_some() || shape.metadata().is_some() => {
                *shape = shape.annotated(metadata);
            }
            Entries::Small { .. } => {}
            Entries::Large { table, .. } => table.metadata = metadata,
        }
    }

    /// Returns the type description of a record of `defrecord` or an object of `reify`, or `None` for other maps.
    #[inline]
    pub(crate) fn kind(&self) -> Option<&Arc<Map>> {
        kind_in(self.metadata()?)
    }

    /// Returns the type name of a record or an object.
    pub(crate) fn type_name(&self) -> Option<&Value> {
        self.kind()?.get(&Value::keyword("type"))
    }

    /// Returns the field names of a record's type.
    pub(crate) fn fields(&self) -> Option<&Value> {
        self.kind()?.get(&Value::keyword("fields"))
    }

    /// True if both are plain maps, or records of one type.
    #[inline]
    pub(crate) fn is_alike(&self, other: &Map) -> bool {
        match (self.metadata(), other.metadata()) {
            (None, None) => true,
            _ => match (self.kind(), other.kind()) {
                (None, None) => true,
                (Some(_), Some(_)) => self.fields().is_some() && self.type_name() == other.type_name(),
                _ => false,
            },
        }
    }

    /// Finds the entry of a record by another spelling of `key`, which the record does not contain exactly.
    #[cold]
    pub(crate) fn get_other_spelling(&self, key: &Value) -> Option<(&Value, &Value)> {
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

    /// Prepares a record for lookups by other spellings of `key`: builds the index of a large record. `pay` is called
    /// with the number of steps taken and may abort the preparation.
    ///
    /// # Errors
    /// Returns the error of `pay`.
    #[cold]
    pub(crate) fn prepare_spellings<E>(&self, key: &Value, mut pay: impl FnMut(u64) -> Result<(), E>) -> Result<(), E> {
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

/// Builds the spelling index of the keys of a large record.
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

/// Returns metadata without the [`KIND`] entry, as programs see it.
pub fn without_kind(metadata: &Arc<Map>) -> Option<Arc<Map>> {
    if kind_in(metadata).is_none() {
        return Some(metadata.clone());
    }
    let mut plain = (**metadata).clone();
    plain.remove(&Value::keyword(KIND));
    (!plain.is_empty()).then(|| Arc::new(plain))
}

/// Converts a name to kebab case: `threadId`, `thread_id` and `ThreadID` all become `thread-id`.
pub fn kebab(name: &str) -> String {
    if name.len() >= 256 {
        owe(name.len() as u64 / 16);
    }
    kebab_characters(name).collect()
}

/// Converts the name of a field or column to the key of a record: a keyword if it is a plain one, else a string.
pub fn record_key(name: &str) -> Value {
    if is_plain_keyword(name) { Value::keyword(name) } else { Value::string(name) }
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
                    // Neither the values nor the inline storage own anything.
                    std::mem::forget(std::mem::take(values));
                } else {
                    release(std::mem::take(values), |values| DeferredDrop::Values(values.into_vec()));
                }
            }
            Entries::Large { table, .. } => {
                release(std::mem::take(&mut **table), |table| DeferredDrop::Map(Box::new(table)));
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
            // Two spellings of one name make the name ambiguous; only an exact key finds either of them.
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
