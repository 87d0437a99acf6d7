//! Sets of characters, represented as sorted ranges.

use std::fmt;

/// The last code point.
const LAST: u32 = 0x10_FFFF;

/// A set of characters: sorted ranges, separated by gaps.
#[derive(Clone, PartialEq, Eq)]
pub struct CharSet(Vec<(u32, u32)>);

impl CharSet {
    /// Creates the set of these inclusive ranges.
    pub fn of(ranges: impl IntoIterator<Item = (u32, u32)>) -> CharSet {
        let mut ranges: Vec<(u32, u32)> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        CharSet(merged)
    }

    /// Creates the set of one character.
    pub fn one(only: char) -> CharSet {
        CharSet(vec![(only as u32, only as u32)])
    }

    /// Returns the ranges, in order.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the set contains the character.
    pub fn contains(&self, character: char) -> bool {
        let code = character as u32;
        let at = self.0.partition_point(|(_, last)| *last < code);
        self.0.get(at).is_some_and(|(first, _)| *first <= code)
    }

    /// Returns the set of all other characters.
    pub fn complement(&self) -> CharSet {
        let mut ranges = Vec::new();
        let mut next = 0;
        for (first, last) in &self.0 {
            if next < *first {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        CharSet(ranges)
    }

    /// Returns the characters of this set that are not in the other.
    pub fn minus(&self, other: &CharSet) -> CharSet {
        let mut all: Vec<(u32, u32)> = self.complement().0;
        all.extend(&other.0);
        CharSet::of(all).complement()
    }

    /// Returns true if the set includes the last code point, so that its complement is shorter to write.
    pub fn is_mostly_everything(&self) -> bool {
        self.0.last().is_some_and(|(_, last)| *last == LAST)
    }
}

impl fmt::Debug for CharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(first, last)| format!("{first:x}-{last:x}"))).finish()
    }
}
