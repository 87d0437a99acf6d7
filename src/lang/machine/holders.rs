//! The definitions that hold most memory, named where a limit of it is exceeded.

use super::Core;
use crate::heap::State;
use crate::meter::{self, bytes};
use crate::value::Value;
use crate::value::list::List;

/// Maximum number of definitions that are named.
const NAMED: usize = 3;

/// The least that a definition holds to be named, in bytes.
const LEAST: u64 = 1 << 20;

/// Number of items of a collection whose sizes are looked at; half as many of each collection among them.
const SAMPLE: usize = 16;

/// Bytes of a value, and of an entry of a map.
const VALUE: u64 = size_of::<Value>() as u64;
const ENTRY: u64 = 3 * VALUE;

/// Maximum number of cells of a list that are counted.
const CELLS: usize = 1 << 20;

impl Core {
    /// Names the definitions that hold most, with their sizes, and then `more`: `` `a` with about 12 MiB and form 2 ``.
    pub(crate) fn holders(&self, more: &str) -> String {
        meter::outside(|| {
            let sizes = self.globals.iter().map(|global| (self.size(global.value, SAMPLE), global.name));
            let mut sizes: Vec<(u64, &str)> = sizes.filter(|(size, _)| *size >= LEAST).collect();
            sizes.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
            sizes.truncate(NAMED);
            let most = self.meter.limits.memory;
            let named: Vec<String> = sizes
                .iter()
                .map(|(size, name)| format!("`{name}` with about {}", bytes((*size).min(most) >> 20 << 20)))
                .collect();
            if named.is_empty() { more.to_string() } else { format!("{} and {more}", named.join(", ")) }
        })
    }

    /// Estimates the bytes that a value holds beside itself, from a sample of its items.
    fn size(&self, value: &Value, sample: usize) -> u64 {
        match value {
            Value::Str(text) => text.as_str().len() as u64,
            Value::Vector(items) => self.of_items(items.len(), VALUE, items.iter(), sample),
            Value::Set(set) => self.of_items(set.len(), 2 * VALUE, set.iter(), sample),
            Value::Map(map) => {
                let keys = self.of_items(map.len(), ENTRY, map.iter().map(|(key, _)| key), sample);
                keys.saturating_add(self.of_items(map.len(), 0, map.iter().map(|(_, value)| value), sample))
            }
            Value::List(list) => self.of_list(list, sample),
            Value::Cell(handle) | Value::Lazy(handle) if sample > 0 => match self.heap.state(handle) {
                Ok(State::Done(content)) => self.size(content, sample / 2),
                _ => 0,
            },
            Value::Closure(closure) => {
                let captures = closure.captures.as_slice();
                self.of_items(captures.len(), VALUE, captures.iter(), sample)
            }
            Value::Bound(bound) => self.of_items(bound.arguments.len(), VALUE, bound.arguments.iter(), sample),
            _ => 0,
        }
    }

    fn of_items<'v>(&self, count: usize, each: u64, items: impl Iterator<Item = &'v Value>, sample: usize) -> u64 {
        let (mut looked_at, mut held) = (0, 0);
        for item in items.take(sample) {
            looked_at += 1;
            held = self.size(item, sample / 2).saturating_add(held);
        }
        // Shared values count as often as they are held, so the estimate may be far beyond every memory.
        let within = held.saturating_mul(count as u64).checked_div(looked_at).unwrap_or(0);
        within.saturating_add(count as u64 * each)
    }

    fn of_list(&self, list: &List, sample: usize) -> u64 {
        match list {
            List::Range { .. } => 0,
            List::View(view) => self.size(view.source(), sample),
            List::Items { .. } => {
                let items = list.as_slice().unwrap_or_default();
                self.of_items(items.len(), VALUE, items.iter(), sample)
            }
            List::Cons(_) => {
                let (mut count, mut heads, mut rest) = (0, Vec::new(), list);
                let tail = loop {
                    let List::Cons(cons) = rest else { break self.of_list(rest, sample / 2) };
                    count += 1;
                    if heads.len() < sample {
                        heads.push(&cons.head);
                    }
                    match &cons.tail {
                        Value::List(next) if count < CELLS => rest = next,
                        other => break self.size(other, sample / 2),
                    }
                };
                self.of_items(count, ENTRY, heads.into_iter(), sample).saturating_add(tail)
            }
        }
    }
}
