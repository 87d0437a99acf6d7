//! A persistent sequence in which an item is inserted or removed anywhere in logarithmic time: the order of sorted
//! collections. A tree of nodes with up to [`MOST`] parts, whose inner nodes know where each part ends.

use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum number of items of a leaf, and of parts of an inner node.
const MOST: usize = 32;

/// A sequence that shares structure with its copies.
#[derive(Clone)]
pub struct Sequence<T>(Arc<Node<T>>);

#[derive(Clone)]
enum Node<T> {
    Leaf(Vec<T>),
    Inner(Vec<Part<T>>),
}

/// A part of an inner node.
#[derive(Clone)]
struct Part<T> {
    /// The number of items up to the end of the part, from the start of the node.
    end: usize,
    node: Arc<Node<T>>,
}

impl<T: Clone> Sequence<T> {
    /// Creates an empty sequence.
    pub fn new() -> Sequence<T> {
        Sequence(Arc::new(Node::Leaf(Vec::new())))
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the item at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        let (mut node, mut index) = (&self.0, index);
        loop {
            match &**node {
                Node::Leaf(items) => return items.get(index),
                Node::Inner(parts) => {
                    let at = parts.partition_point(|part| part.end <= index);
                    index -= start_of(parts, at);
                    node = &parts.get(at)?.node;
                }
            }
        }
    }

    /// Iterates over the items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Finds an item by binary search: `Ok` holds its index, `Err` the index at which it would be inserted.
    pub fn search(&self, mut order: impl FnMut(&T) -> Ordering) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).map_or(Ordering::Equal, &mut order) {
                Ordering::Equal => return Ok(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Inserts an item at an index, which is at most the number of items.
    pub fn insert(&mut self, index: usize, item: T) {
        if let Some(right) = Arc::make_mut(&mut self.0).insert(index, item) {
            let left = self.0.clone();
            let end = left.len();
            let parts = vec![Part { end, node: left }, Part { end: end + right.len(), node: Arc::new(right) }];
            self.0 = Arc::new(Node::Inner(parts));
        }
    }

    /// Removes the item at an index, if there is one.
    pub fn remove(&mut self, index: usize) {
        if index >= self.len() {
            return;
        }
        Arc::make_mut(&mut self.0).remove(index);
        while let Node::Inner(parts) = &*self.0
            && let [only] = parts.as_slice()
        {
            self.0 = only.node.clone();
        }
    }
}

impl<T: Clone> FromIterator<T> for Sequence<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Sequence<T> {
        let mut sequence = Sequence::new();
        for item in items {
            sequence.insert(sequence.len(), item);
        }
        sequence
    }
}

/// Returns the number of items in front of a part.
fn start_of<T>(parts: &[Part<T>], at: usize) -> usize {
    at.checked_sub(1).and_then(|before| parts.get(before)).map_or(0, |part| part.end)
}

/// Returns where a node that has become too large is split: in the middle, or before what has been appended, so that
/// nodes that are filled in order are full.
fn split_at(length: usize, inserted: usize) -> usize {
    if inserted + 1 == length { length - 1 } else { length / 2 }
}

impl<T: Clone> Node<T> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Inner(parts) => parts.last().map_or(0, |part| part.end),
        }
    }

    /// The number of items of a leaf, or of parts of an inner node.
    fn width(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Inner(parts) => parts.len(),
        }
    }

    /// Inserts an item; returns the right half if the node is split.
    fn insert(&mut self, index: usize, item: T) -> Option<Node<T>> {
        match self {
            Node::Leaf(items) => {
                items.insert(index, item);
                (items.len() > MOST).then(|| Node::Leaf(items.split_off(split_at(items.len(), index))))
            }
            Node::Inner(parts) => {
                let at = parts.partition_point(|part| part.end < index).min(parts.len() - 1);
                let start = start_of(parts, at);
                let right = Arc::make_mut(&mut parts[at].node).insert(index - start, item);
                parts[at..].iter_mut().for_each(|part| part.end += 1);
                let right = right?;
                let end = parts[at].end;
                parts[at].end -= right.len();
                parts.insert(at + 1, Part { end, node: Arc::new(right) });
                (parts.len() > MOST).then(|| {
                    let mut right = parts.split_off(split_at(parts.len(), at + 1));
                    let start = parts.last().map_or(0, |part| part.end);
                    right.iter_mut().for_each(|part| part.end -= start);
                    Node::Inner(right)
                })
            }
        }
    }

    /// Removes the item at an index, which exists.
    fn remove(&mut self, index: usize) {
        match self {
            Node::Leaf(items) => drop(items.remove(index)),
            Node::Inner(parts) => {
                let at = parts.partition_point(|part| part.end <= index);
                let start = start_of(parts, at);
                Arc::make_mut(&mut parts[at].node).remove(index - start);
                parts[at..].iter_mut().for_each(|part| part.end -= 1);
                if parts[at].end == start {
                    parts.remove(at);
                } else if parts[at].node.width() < MOST / 4 {
                    unite(parts, at);
                }
            }
        }
    }

    /// Appends the content of a node of the same height.
    fn append(&mut self, other: &Node<T>) {
        let start = self.len();
        match (self, other) {
            (Node::Leaf(items), Node::Leaf(more)) => items.extend_from_slice(more),
            (Node::Inner(parts), Node::Inner(more)) => {
                parts.extend(more.iter().map(|part| Part { end: start + part.end, node: part.node.clone() }));
            }
            // All leaves of a tree have the same depth.
            _ => {}
        }
    }
}

/// Unites a part with few items with a neighbour, if the two fill half a node at most.
fn unite<T: Clone>(parts: &mut Vec<Part<T>>, at: usize) {
    let left = if at + 1 < parts.len() { at } else { at.saturating_sub(1) };
    let Some([first, second]) = parts.get_mut(left..left + 2) else { return };
    if first.node.width() + second.node.width() > MOST / 2 {
        return;
    }
    Arc::make_mut(&mut first.node).append(&second.node);
    first.end = second.end;
    parts.remove(left + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that repeat in no short period.
    fn numbers() -> impl Iterator<Item = usize> {
        let mut state = 12_345_u64;
        std::iter::from_fn(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).ok()
        })
    }

    fn assert_same(sequence: &Sequence<usize>, model: &[usize]) {
        assert_eq!(sequence.len(), model.len());
        assert!(sequence.iter().eq(model));
        assert_eq!(sequence.get(model.len()), None);
    }

    #[test]
    fn items_are_inserted_and_removed_anywhere() {
        let mut numbers = numbers();
        for (grows, shrinks) in [(3, 1), (1, 3), (1, 1)] {
            let mut sequence: Sequence<usize> = (0..2_000).collect();
            let mut model: Vec<usize> = (0..2_000).collect();
            for step in 0..4_000 {
                let copy = (step % 500 == 0).then(|| (sequence.clone(), model.clone()));
                let number = numbers.next().unwrap_or_default();
                if number % (grows + shrinks) < grows {
                    let at = (number / 16) % (model.len() + 1);
                    sequence.insert(at, step);
                    model.insert(at, step);
                } else if !model.is_empty() {
                    let at = (number / 16) % model.len();
                    sequence.remove(at);
                    model.remove(at);
                }
                if let Some((sequence, model)) = copy {
                    assert_same(&sequence, &model);
                }
            }
            assert_same(&sequence, &model);
        }
    }

    #[test]
    fn a_sequence_can_be_emptied_from_either_end_and_the_middle() {
        for place in [|_| 0, |length: usize| length - 1, |length: usize| length / 2] {
            let mut sequence: Sequence<usize> = (0..5_000).collect();
            let mut model: Vec<usize> = (0..5_000).collect();
            while !model.is_empty() {
                let at = place(model.len());
                sequence.remove(at);
                model.remove(at);
                assert_eq!(sequence.get(at), model.get(at));
                assert_eq!(sequence.len(), model.len());
            }
            sequence.insert(0, 7);
            assert_same(&sequence, &[7]);
        }
    }

    #[test]
    fn items_are_found_by_their_order() {
        let sequence: Sequence<usize> = (0..1_000).map(|number| 2 * number).collect();
        for number in 0..2_001_usize {
            let expected = if number % 2 == 0 && number < 2_000 { Ok(number / 2) } else { Err(number.div_ceil(2)) };
            assert_eq!(sequence.search(|item| item.cmp(&number)), expected);
        }
    }
}
