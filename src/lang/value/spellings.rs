//! Spellings of record keys: `:sender-name`, `"sender_name"` and `:senderName` are one name.
//!
//! A lookup in a record tries, in this order: the key itself; the keyword or the string of the same text; the only key
//! that is another spelling of it. If several keys are, the lookup fails. The number of keys does not affect the
//! result: small records compare names, large ones use an index, which the first lookup by another spelling builds.

use super::Value;
use foldhash::quality::RandomState;

type Index<V> = im::GenericHashMap<String, V, RandomState, im::shared_ptr::DefaultSharedPtr>;
type Members = im::GenericHashSet<Value, RandomState, im::shared_ptr::DefaultSharedPtr>;

/// Index of the keys of a large record by their names in kebab case.
#[derive(Clone)]
pub(super) struct Spellings(Index<Known>);

/// The keys that share one name.
#[derive(Clone)]
enum Known {
    One(Value),
    Several(Box<Members>),
}

impl Spellings {
    /// Creates an empty index.
    pub fn new() -> Spellings {
        Spellings(Index::with_hasher(RandomState::default()))
    }

    /// Adds a key that the index does not contain.
    pub fn insert(&mut self, key: &Value) {
        let Some(text) = spelled(key) else { return };
        let name: String = kebab_characters(text).collect();
        match self.0.get_mut(&name) {
            None => drop(self.0.insert(name, Known::One(key.clone()))),
            Some(known @ Known::One(_)) => {
                let mut members = Members::with_hasher(RandomState::default());
                if let Known::One(first) = known {
                    members.insert(std::mem::take(first));
                }
                members.insert(key.clone());
                *known = Known::Several(Box::new(members));
            }
            Some(Known::Several(members)) => drop(members.insert(key.clone())),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &Value) {
        let Some(text) = spelled(key) else { return };
        let name: String = kebab_characters(text).collect();
        let left = match self.0.get_mut(&name) {
            Some(Known::Several(members)) => {
                members.remove(key);
                match members.len() {
                    1 => members.iter().next().cloned(),
                    _ => return,
                }
            }
            _ => None,
        };
        match left {
            Some(only) => drop(self.0.insert(name, Known::One(only))),
            None => drop(self.0.remove(&name)),
        }
    }

    /// Returns the key with the name of `text`, if there is exactly one.
    pub fn only(&self, text: &str) -> Option<&Value> {
        let name: String = kebab_characters(text).collect();
        match self.0.get(&name)? {
            Known::One(key) => Some(key),
            Known::Several(_) => None,
        }
    }
}

/// Returns the index of the key with the name of `text`, if there is exactly one.
pub(super) fn only_among(keys: &[Value], text: &str) -> Option<usize> {
    let name: String = kebab_characters(text).collect();
    let has_name = |key: &Value| spelled(key).is_some_and(|known| kebab_characters(known).eq(name.chars()));
    let mut found = keys.iter().enumerate().filter(|(_, key)| has_name(key)).map(|(at, _)| at);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// Maximum length in bytes of a key that has other spellings. A longer key is a text rather than a name.
const LONGEST_SPELLED: usize = 1_024;

/// Returns the text of a key that can have other spellings: a keyword or a string of limited length.
pub(super) fn spelled(key: &Value) -> Option<&str> {
    let text = match key {
        Value::Keyword(name) => name.as_str(),
        Value::Str(text) => text.as_str(),
        _ => return None,
    };
    (text.len() <= LONGEST_SPELLED).then_some(text)
}

/// Returns the string of a keyword, or the keyword of a string.
pub(super) fn other_kind(key: &Value) -> Option<Value> {
    match key {
        Value::Keyword(name) => Some(Value::string(name.as_str())),
        Value::Str(text) => Some(Value::keyword(text.as_str())),
        _ => None,
    }
}

/// Returns the characters of a name in kebab case: `threadId`, `thread_id` and `ThreadID` are all `thread-id`.
pub(super) fn kebab_characters(name: &str) -> impl Iterator<Item = char> {
    let mut rest = name.chars().peekable();
    let mut before: Option<char> = None;
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let last = before.replace(c);
        let starts_word = c.is_uppercase()
            && last.is_some_and(|last| {
                last.is_lowercase()
                    || last.is_ascii_digit()
                    || (last.is_uppercase() && rest.peek().is_some_and(|next| next.is_lowercase()))
            });
        let c = if c == '_' { '-' } else { c };
        Some((starts_word, c))
    })
    .flat_map(|(starts_word, c)| starts_word.then_some('-').into_iter().chain(lower(c)))
}

/// Converts a character to lower case, without a table lookup for ASCII.
fn lower(c: char) -> impl Iterator<Item = char> {
    let (plain, other) = match c.is_ascii() {
        true => (Some(c.to_ascii_lowercase()), None),
        false => (None, Some(c.to_lowercase())),
    };
    plain.into_iter().chain(other.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_knows_which_name_is_the_only_one() {
        let mut index = Spellings::new();
        let keys = ["a_b", "aB", "a-b", "c"].map(Value::keyword);
        assert_eq!(index.only("a-b"), None);
        index.insert(&keys[0]);
        assert_eq!(index.only("a-b"), Some(&keys[0]));
        index.insert(&keys[1]);
        index.insert(&keys[2]);
        index.insert(&keys[3]);
        assert_eq!(index.only("a_b"), None);
        index.remove(&keys[0]);
        index.remove(&keys[2]);
        assert_eq!(index.only("a_b"), Some(&keys[1]));
        index.remove(&keys[1]);
        assert_eq!(index.only("a_b"), None);
        assert_eq!(index.only("C"), Some(&keys[3]));
    }
}
