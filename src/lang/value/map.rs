//! Maps, and the records that JSON objects become.
//!
//! Up to thirty-two entries a map is a [`Shape`] shared with its likes and a block of values; beyond
//! that, sorted or with metadata, it is a [`Large`] one. Iteration follows insertion or the order. A *record* is a map that came from
//! JSON: a key that it does not have is looked for in its other spelling, by the same rule wherever a
//! key is looked for, so that an update never makes a second key.

use super::Value;
use super::large::{Large, Order};
use super::release::{Debris, release, release_leaf};
use super::shape::Shape;
use super::text::LONGEST_NAME;
use smallvec::SmallVec;
use std::sync::Arc;

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
        is_record: bool,
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
            Entries::Large { is_record, .. } => *is_record = true,
        }
        self
    }

    /// True if it came from JSON.
    #[inline]
    pub fn is_record(&self) -> bool {
        match &self.0 {
            Entries::Small { shape, .. } => shape.is_record(),
            Entries::Large { is_record, .. } => *is_record,
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

    /// The entry under that key, with the key as the map has it.
    #[inline]
    pub fn get_entry(&self, key: &Value) -> Option<(&Value, &Value)> {
        let exact = match &self.0 {
            Entries::Small { shape, values } => {
                shape.position(key).and_then(|at| Some((shape.keys().get(at)?, values.get(at)?)))
            }
            Entries::Large { table, .. } => table.get(key),
        };
        if exact.is_some() || !self.is_record() {
            return exact;
        }
        self.find_other_spelling(key)
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
        self.enlarge(|table| table.insert(key, value));
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
                self.0 = Entries::Large { table, is_record: shape.is_record() };
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
            Entries::Large { table, .. } => {
                table.remove(&known);
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
        Map(Entries::Large { table: Box::new(Large::sorted(comparator)), is_record: false })
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
        self.enlarge(|table| table.insert_at(place, key, value));
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

    #[cold]
    fn find_other_spelling(&self, key: &Value) -> Option<(&Value, &Value)> {
        let text = spelled(key)?;
        match &self.0 {
            Entries::Small { shape, values } => {
                let wanted = kebab(text);
                let first = wanted.chars().next();
                let mut alike = shape.keys().iter().enumerate().filter(|(_, known)| {
                    spelled(known).is_some_and(|known| {
                        let known_first = known.chars().find(|c| !matches!(c, '-' | '_'));
                        let same_first =
                            known_first.map(|c| c.to_ascii_lowercase()) == first.map(|c| c.to_ascii_lowercase());
                        (same_first || !known.is_ascii()) && kebab(known) == wanted
                    })
                });
                let (position, known) = alike.next()?;
                alike.next().is_none().then_some((known, values.get(position)?))
            }
            Entries::Large { table, .. } => {
                let kebab = kebab(text);
                let snake = kebab.replace('-', "_");
                let camel = camel(&kebab);
                [text, &kebab, &snake, &camel].into_iter().find_map(|spelling| {
                    table.get(&Value::keyword(spelling)).or_else(|| table.get(&Value::string(spelling)))
                })
            }
        }
    }
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

/// The text of a key that has other spellings: keywords and strings have.
fn spelled(key: &Value) -> Option<&str> {
    match key {
        Value::Keyword(name) => Some(name.as_str()),
        Value::Str(text) => Some(text.as_str()),
        _ => None,
    }
}

/// A name in kebab case: `threadId`, `thread_id` and `ThreadID` are all `thread-id`.
pub fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let characters: Vec<char> = name.chars().collect();
    for (at, &c) in characters.iter().enumerate() {
        if c == '_' || c == '-' {
            out.push('-');
            continue;
        }
        if c.is_uppercase() {
            let after_lower = at > 0 && (characters[at - 1].is_lowercase() || characters[at - 1].is_ascii_digit());
            let before_lower = at > 0
                && characters[at - 1].is_uppercase()
                && characters.get(at + 1).is_some_and(|next| next.is_lowercase());
            if after_lower || before_lower {
                out.push('-');
            }
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// The canonical form of a name: without `-` and `_`, in lower case. Names of tools and arguments that agree in it are
/// spellings of each other, for programs and for the rules of a policy alike.
pub fn canonical(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

fn camel(kebab: &str) -> String {
    let mut parts = kebab.split('-');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let mut rest = part.chars();
        out.extend(rest.next().into_iter().flat_map(char::to_uppercase));
        out.push_str(rest.as_str());
    }
    out
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
        assert_eq!(camel("from-address"), "fromAddress");
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
