//! Sequences of every type, sliced at and beyond their ends.

use super::{Choices, LONGEST, Steps};

/// A sequence of integers.
struct Sequence {
    items: Vec<i64>,
    is_vector: bool,
}

fn joined(items: &[i64]) -> String {
    items.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns an expression for a sequence, and its model.
fn made(choices: &mut impl Choices) -> (String, Sequence) {
    let length = choices.pick(6);
    let items: Vec<i64> = (0..length as i64).collect();
    let written = joined(&items);
    let expression = match choices.pick(14) {
        0 => format!("[{written}]"),
        1 => format!("(range {length})"),
        2 => format!("(map identity [{written}])"),
        3 => format!("(lazy-seq [{written}])"),
        4 => format!("(map identity (lazy-seq [{written}]))"),
        5 => format!("(into () [{}])", joined(&items.iter().rev().copied().collect::<Vec<_>>())),
        6 => format!("(reduce conj () [{}])", joined(&items.iter().rev().copied().collect::<Vec<_>>())),
        7 => format!("(seq (sorted-set {written}))"),
        8 => format!("(vals (zipmap [{written}] [{written}]))"),
        9 => format!("(concat [{written}] (lazy-seq nil))"),
        10 => format!("(take {length} (iterate inc 0))"),
        11 => format!("(rest (cons 9 [{written}]))"),
        12 => format!("(map identity (sorted-set {written}))"),
        _ => format!("(list {written})"),
    };
    let is_vector = expression.starts_with('[');
    (expression, Sequence { items, is_vector })
}

pub(super) fn steps(choices: &mut impl Choices, steps: &mut Steps) {
    let (expression, mut model) = made(choices);
    steps.bind(expression);
    show(choices, &model, steps);
    for _ in 0..choices.pick(2 * LONGEST + 1) {
        let expression = step(choices, &mut model, &steps.last());
        steps.bind(expression);
        show(choices, &model, steps);
    }
}

fn step(choices: &mut impl Choices, model: &mut Sequence, last: &str) -> String {
    let was_vector = std::mem::take(&mut model.is_vector);
    let length = model.items.len();
    let number = choices.pick(length + 4);
    let at = number.min(length);
    let from_end = length - at;
    match choices.pick(20) {
        0 => {
            model.is_vector = was_vector;
            model.items.insert(if was_vector { length } else { 0 }, 7);
            format!("(conj {last} 7)")
        }
        1 => {
            model.items.insert(0, 8);
            format!("(cons 8 {last})")
        }
        2 => {
            model.items.drain(..at);
            format!("(drop {number} {last})")
        }
        3 => {
            model.is_vector = was_vector && number == 0;
            model.items.drain(..at);
            format!("(nthrest {last} {number})")
        }
        4 => {
            model.items.drain(..at);
            format!("(nthnext {last} {number})")
        }
        5 => {
            model.items.drain(..at);
            format!("(second (split-at {number} {last}))")
        }
        6 => {
            model.items.truncate(at);
            format!("(first (split-at {number} {last}))")
        }
        7 => {
            model.items.truncate(at);
            format!("(take {number} {last})")
        }
        8 => {
            model.items.drain(..from_end);
            format!("(take-last {number} {last})")
        }
        9 => {
            model.items.truncate(from_end);
            format!("(drop-last {number} {last})")
        }
        10 => {
            model.items.pop();
            format!("(butlast {last})")
        }
        11 => {
            model.items.drain(..length.min(1));
            format!("(rest {last})")
        }
        12 => {
            model.items.drain(..length.min(1));
            format!("(next {last})")
        }
        13 => {
            model.items.drain(..length.min(2));
            format!("(nnext {last})")
        }
        14 => {
            let (expression, more) = made(choices);
            model.items.extend(more.items);
            format!("(concat {last} {expression})")
        }
        15 => {
            model.items.reverse();
            format!("(reverse {last})")
        }
        16 => {
            model.is_vector = true;
            format!("(vec {last})")
        }
        17 => {
            let behind = model.items.iter().position(|item| *item > 2).unwrap_or(length);
            model.items.drain(..behind);
            format!("(drop-while #(<= % 2) {last})")
        }
        18 => {
            let parts: Vec<i64> = model.items.chunks(number + 1).flat_map(|part| part.iter().rev().copied()).collect();
            model.items = parts;
            format!("(mapcat reverse (partition-all {} {last}))", number + 1)
        }
        _ => {
            model.items.iter_mut().for_each(|item| *item += 1);
            format!("(sequence (map inc) {last})")
        }
    }
}

fn show(choices: &mut impl Choices, model: &Sequence, steps: &mut Steps) {
    let (last, items) = (steps.last(), &model.items);
    let number = choices.pick(items.len() + 3);
    let or_nil = |item: Option<&i64>| item.map_or("nil".to_string(), i64::to_string);
    steps.show(
        format!(
            "[(vec {last}) (count {last}) (first {last}) (last {last}) (nth {last} {number} :none) (empty? {last})]"
        ),
        format!(
            "[[{}] {} {} {} {} {}]",
            joined(items),
            items.len(),
            or_nil(items.first()),
            or_nil(items.last()),
            items.get(number).map_or(":none".to_string(), i64::to_string),
            items.is_empty(),
        ),
    );
    steps.show(
        format!("[(= (seq {last}) (seq (vec {last}))) (reduce + 0 {last}) (nil? (seq {last})) (bounded-count {number} (cons 0 {last}))]"),
        format!(
            "[true {} {} {}]",
            items.iter().sum::<i64>(),
            items.is_empty(),
            number.min(items.len() + 1),
        ),
    );
}
