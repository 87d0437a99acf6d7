//! Maps and sets, sorted and unsorted, modelled by a vector of entries.

use super::keys::{Key, Order};
use super::{Choices, LONGEST, Steps, printed_seq};
use std::cmp::Ordering;

/// The model of a map or of a set. The values of a set are ignored.
#[derive(Clone)]
struct Keyed {
    is_set: bool,
    order: Option<Order>,
    entries: Vec<(Key, i64)>,
}

impl Keyed {
    fn place(&self, key: &Key) -> Option<usize> {
        self.entries.iter().position(|(known, _)| match self.order {
            Some(order) => order.compare(known, key) == Ordering::Equal,
            None => known.equals(key),
        })
    }

    fn get(&self, key: &Key) -> Option<&(Key, i64)> {
        self.place(key).map(|at| &self.entries[at])
    }

    fn put(&mut self, key: &Key, value: i64) {
        match self.place(key) {
            Some(at) => self.entries[at].1 = value,
            None => {
                let behind = |(known, _): &(Key, i64)| {
                    self.order.is_some_and(|order| order.compare(known, key) == Ordering::Greater)
                };
                let at = self.entries.iter().position(behind).unwrap_or(self.entries.len());
                self.entries.insert(at, (key.clone(), value));
            }
        }
    }

    fn put_all(&mut self, entries: &[(Key, i64)]) {
        for (key, value) in entries {
            self.put(key, *value);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(at) = self.place(key) {
            self.entries.remove(at);
        }
    }

    /// Returns the entry as it is printed: a member, or a pair.
    fn printed(&self, (key, value): &(Key, i64)) -> String {
        if self.is_set { key.to_string() } else { format!("[{key} {value}]") }
    }

    /// Returns the entry as program text.
    fn written(&self, (key, value): &(Key, i64)) -> String {
        let key = key.written();
        if self.is_set { key } else { format!("[{key} {value}]") }
    }

    /// Returns an expression for an unsorted collection of these entries, inserted in this order.
    fn literal(&self, entries: &[(Key, i64)]) -> String {
        let entries: Vec<String> = entries.iter().map(|entry| self.written(entry)).collect();
        format!("(into {} [{}])", if self.is_set { "#{}" } else { "{}" }, entries.join(" "))
    }
}

fn entries(choices: &mut impl Choices, order: Option<Order>, most: usize) -> Vec<(Key, i64)> {
    (0..choices.pick(most + 1)).map(|number| (Key::any(choices, order), number as i64)).collect()
}

pub(super) fn steps(choices: &mut impl Choices, steps: &mut Steps) {
    let is_set = choices.pick(2) == 0;
    let order = (choices.pick(3) > 0).then(|| Order::any(choices));
    let mut model = Keyed { is_set, order, entries: Vec::new() };
    let empty = match (order, is_set) {
        (None, true) => "#{}".to_string(),
        (None, false) => "{}".to_string(),
        (Some(order), true) => format!("(sorted-set-by {})", order.comparator()),
        (Some(order), false) => format!("(sorted-map-by {})", order.comparator()),
    };
    // Some collections have enough entries to need several blocks.
    let most = if choices.pick(4) == 0 { 60 } else { 6 };
    let first = entries(choices, order, most);
    let written: Vec<String> = first.iter().map(|entry| model.written(entry)).collect();
    steps.bind(format!("(into {empty} [{}])", written.join(" ")));
    model.put_all(&first);
    show(choices, &model, order, steps);
    for _ in 0..choices.pick(LONGEST + 1) {
        let expression = match choices.pick(3) {
            0 => common(choices, &mut model, order, &steps.last()),
            _ if is_set => of_sets(choices, &mut model, order, &steps.last()),
            _ => of_maps(choices, &mut model, order, &steps.last()),
        };
        steps.bind(expression);
        show(choices, &model, order, steps);
    }
}

/// Shows the collection and look-ups in it.
fn show(choices: &mut impl Choices, model: &Keyed, order: Option<Order>, steps: &mut Steps) {
    let last = steps.last();
    steps.show(format!("(seq {last})"), printed_seq(model.entries.iter().map(|entry| model.printed(entry))));
    steps.show(
        format!("[(count {last}) (sorted? {last})]"),
        format!("[{} {}]", model.entries.len(), model.order.is_some()),
    );
    let key = Key::any(choices, order);
    let found = model.get(&key);
    let value = match found {
        None => ":none".to_string(),
        Some((known, _)) if model.is_set => known.to_string(),
        Some((_, value)) => value.to_string(),
    };
    let key = key.written();
    steps.show(
        format!("[(get {last} {key} :none) (contains? {last} {key}) ({last} {key})]"),
        format!("[{value} {} {}]", found.is_some(), if value == ":none" { "nil" } else { &value }),
    );
    let plain = model.literal(&model.entries);
    steps.show(format!("(let [p {plain}] [(= {last} p) (= p {last}) (= (hash {last}) (hash p))])"), "[true true true]");
}

/// Applies an operation that maps and sets have in common.
fn common(choices: &mut impl Choices, model: &mut Keyed, order: Option<Order>, last: &str) -> String {
    let more = entries(choices, order, 4);
    let written: Vec<String> = more.iter().map(|entry| model.written(entry)).collect();
    let written = written.join(" ");
    match choices.pick(6) {
        0 => {
            model.put_all(&more);
            format!("(conj {last} {written})")
        }
        1 => {
            model.put_all(&more);
            format!("(into {last} [{written}])")
        }
        2 => format!("(walk/postwalk identity {last})"),
        3 => {
            let old = std::mem::take(&mut model.entries);
            old.iter().rev().for_each(|(key, value)| model.put(key, *value));
            format!("(into (empty {last}) (reverse (seq {last})))")
        }
        4 if model.order.is_none() => {
            model.put_all(&more);
            format!("(persistent! (reduce conj! (transient {last}) [{written}]))")
        }
        _ => {
            let old = std::mem::take(&mut model.entries);
            model.order = None;
            model.put_all(&old);
            format!("(into {} {last})", if model.is_set { "#{}" } else { "{}" })
        }
    }
}

fn of_maps(choices: &mut impl Choices, model: &mut Keyed, order: Option<Order>, last: &str) -> String {
    let key = Key::any(choices, order);
    let written = key.written();
    match choices.pick(8) {
        0 => {
            model.put(&key, 7);
            format!("(assoc {last} {written} 7)")
        }
        1 => {
            model.remove(&key);
            format!("(dissoc {last} {written})")
        }
        2 => {
            let value = model.get(&key).map_or(1, |(_, value)| value + 1);
            model.put(&key, value);
            format!("(update {last} {written} (fnil inc 0))")
        }
        3 => {
            let value = model.get(&key).map_or(1, |(_, value)| value + 1);
            model.put(&key, value);
            format!("(update-in {last} [{written}] (fnil inc 0))")
        }
        4 => {
            let more = entries(choices, order, 4);
            let literal = model.literal(&more);
            let mut other = Keyed { is_set: false, order: None, entries: Vec::new() };
            other.put_all(&more);
            model.put_all(&other.entries);
            format!("(merge {last} {literal})")
        }
        5 => {
            let more = entries(choices, order, 4);
            let literal = model.literal(&more);
            let mut other = Keyed { is_set: false, order: None, entries: Vec::new() };
            other.put_all(&more);
            for (key, value) in &other.entries {
                let sum = model.get(key).map_or(*value, |(_, old)| old + value);
                model.put(key, sum);
            }
            format!("(merge-with + {last} {literal})")
        }
        6 => {
            let new = Key::any(choices, order);
            let found = model.get(&key).cloned();
            model.remove(&key);
            if let Some((_, value)) = found {
                model.put(&new, value);
            }
            format!("(set/rename-keys {last} {{{written} {}}})", new.written())
        }
        _ => {
            let found = model.get(&key).cloned();
            *model = Keyed { is_set: false, order: None, entries: found.into_iter().collect() };
            format!("(select-keys {last} [{written}])")
        }
    }
}

fn of_sets(choices: &mut impl Choices, model: &mut Keyed, order: Option<Order>, last: &str) -> String {
    let more = entries(choices, order, 6);
    let mut other = Keyed { is_set: true, order: None, entries: Vec::new() };
    other.put_all(&more);
    let literal = model.literal(&more);
    match choices.pick(5) {
        0 => {
            let keys: Vec<String> = more.iter().map(|(key, _)| key.written()).collect();
            more.iter().for_each(|(key, _)| model.remove(key));
            format!("(disj {last} {})", keys.join(" "))
        }
        1 => {
            // Matches Clojure for sorted sets: the larger set receives the items of the smaller one.
            if model.order.is_some() && other.entries.len() > model.entries.len() {
                std::mem::swap(model, &mut other);
            }
            model.put_all(&other.entries);
            format!("(set/union {last} {literal})")
        }
        2 => {
            if model.order.is_some() && other.entries.len() < model.entries.len() {
                std::mem::swap(model, &mut other);
            }
            model.entries.retain(|(key, _)| other.place(key).is_some());
            format!("(set/intersection {last} {literal})")
        }
        3 => {
            if model.entries.len() < other.entries.len() {
                model.entries.retain(|(key, _)| other.place(key).is_none());
            } else {
                other.entries.iter().for_each(|(key, _)| model.remove(key));
            }
            format!("(set/difference {last} {literal})")
        }
        _ => {
            model.entries.retain(|(key, _)| other.place(key).is_some());
            format!("(set/select #(contains? {literal} %) {last})")
        }
    }
}
