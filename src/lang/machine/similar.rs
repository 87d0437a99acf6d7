//! Similar keys: keys of records of which one is probably a misspelling of the other.
//!
//! Names of fields are often near each other without being misspellings (`:start` and `:state`, `:min-size` and
//! `:max-size`, `:line1` and `:line2`, `:valid` and `:invalid`). The rules here are therefore stricter than those of
//! `error::suggest`, which explains names that do not exist at all:
//! - Two keys differ in case and separators only (`:threadId`, `:thread_id`); or
//! - one is the plural of the other (`:email`, `:emails`); or
//! - they differ in one word, and these words begin with the same letter, have the same digits, and differ in one letter
//!   that was left out or added or two that were swapped (words of four letters or more), in one letter that was
//!   replaced (five or more), or in two of these (eight or more).

use crate::value::map::kebab;
use crate::value::names::canonical;
use crate::value::text::split_name;

/// Maximum length in bytes of a key that is compared.
pub const LONGEST: usize = 64;

/// Returns how unlike a key is to another that it may be a misspelling of, from 0; `None` if the two are not similar, or
/// equal.
pub fn unlikeness(key: &str, other: &str) -> Option<usize> {
    let ((space, base), (other_space, other_base)) = (split_name(key), split_name(other));
    if key == other || key.len().max(other.len()) > LONGEST || space != other_space {
        return None;
    }
    // All similar keys begin with the same letter; most others are recognised by that.
    let first = |name: &str| name.chars().find(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase());
    if first(base) != first(other_base) && base.is_ascii() && other_base.is_ascii() {
        return None;
    }
    let (joined, other_joined) = (canonical(base), canonical(other_base));
    if joined.is_empty() || other_joined.is_empty() {
        return None;
    }
    if joined == other_joined {
        return Some(0);
    }
    if is_plural(&joined, &other_joined) || is_plural(&other_joined, &joined) {
        return Some(1);
    }
    let (name, other_name) = (kebab(base), kebab(other_base));
    let (words, other_words): (Vec<&str>, Vec<&str>) = (name.split('-').collect(), other_name.split('-').collect());
    if words.len() != other_words.len() {
        return distance(&joined, &other_joined).filter(|distance| *distance == 1).map(|distance| 1 + distance);
    }
    let mut differing = words.iter().zip(&other_words).filter(|(word, other)| word != other);
    let (word, other_word) = differing.next()?;
    if differing.next().is_some() { None } else { distance(word, other_word).map(|distance| 1 + distance) }
}

/// True if the second name is the plural of the first one.
fn is_plural(singular: &str, plural: &str) -> bool {
    let Some(stem) = plural.strip_suffix('s').filter(|_| singular.len() >= 2) else { return false };
    stem == singular
        || stem.strip_suffix('e') == Some(singular)
        || matches!((stem.strip_suffix("ie"), singular.strip_suffix('y')), (Some(a), Some(b)) if a == b)
}

/// Returns the number of mistakes by which one word becomes the other, if so few are a misspelling of a word of this
/// length.
fn distance(word: &str, other: &str) -> Option<usize> {
    let (length, other_length) = (word.chars().count(), other.chars().count());
    let longer = length.max(other_length);
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).collect::<String>();
    if length.abs_diff(other_length) > 2 || word.chars().next() != other.chars().next() || digits(word) != digits(other)
    {
        return None;
    }
    let distance = strsim::osa_distance(word, other);
    // With words of one length, one mistake is a letter in place of another, or two that are swapped.
    let is_replaced = length == other_length && strsim::hamming(word, other) == Ok(1);
    let least = match distance {
        1 if is_replaced => 5,
        1 => 4,
        2 => 8,
        _ => return None,
    };
    (longer >= least).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_similar() {
        for (key, other) in [
            ("sendr", "sender"),
            ("opn", "open"),
            ("titel", "title"),
            ("form", "from"),
            ("catagory", "category"),
            ("recievd", "received"),
            ("threadId", "thread_id"),
            ("user-name", "username"),
            ("sender-nme", "sender-name"),
            ("sendername", "sender_name"),
            ("sendernme", "sender_name"),
            ("email", "emails"),
            ("entries", "entry"),
            ("boxes", "box"),
            ("id", "ids"),
            ("person/nmae", "person/name"),
        ] {
            assert!(unlikeness(key, other).is_some(), "{key} {other}");
            assert!(unlikeness(other, key).is_some(), "{other} {key}");
        }
    }

    #[test]
    fn names_of_other_fields_are_not() {
        for (key, other) in [
            ("x", "y"),
            ("x", "xs"),
            ("cc", "bcc"),
            ("to", "from"),
            ("age", "page"),
            ("date", "data"),
            ("start", "state"),
            ("line1", "line2"),
            ("valid", "invalid"),
            ("active", "inactive"),
            ("min-size", "max-size"),
            ("updated-by", "updated-at"),
            ("date-from", "date-to"),
            ("created", "creator"),
            ("name", "name"),
            ("a/name", "b/name"),
            ("name", "a/name"),
            ("end", "send"),
        ] {
            assert_eq!(unlikeness(key, other), None, "{key} {other}");
            assert_eq!(unlikeness(other, key), None, "{other} {key}");
        }
    }
}
