//! A stable merge sort for comparators that can fail, consume fuel, or be inconsistent: a program's comparator need not
//! be a total order, and the standard library's sort may panic on one that is not.

use crate::error::Outcome;
use crate::machine::Machine;

/// Sorts the items. `precedes` is true if its first item belongs strictly before its second.
pub fn sort<T: Default>(
    machine: &mut Machine,
    items: &mut Vec<T>,
    precedes: &mut impl FnMut(&mut Machine, &T, &T) -> Outcome<bool>,
) -> Outcome<()> {
    let len = items.len();
    machine.reserve((len * size_of::<T>()) as u64)?;
    let mut merged: Vec<T> = Vec::with_capacity(len);
    let mut width = 1;
    while width < len {
        let mut start = 0;
        while start < len {
            let middle = len.min(start + width);
            let end = len.min(middle + width);
            machine.charge(1)?;
            merge(machine, items, [start, middle, end], &mut merged, precedes)?;
            start = end;
        }
        std::mem::swap(items, &mut merged);
        merged.clear();
        width *= 2;
    }
    Ok(())
}

/// Merges two adjacent sorted runs and appends the result to `merged`.
fn merge<T: Default>(
    machine: &mut Machine,
    items: &mut [T],
    [start, middle, end]: [usize; 3],
    merged: &mut Vec<T>,
    precedes: &mut impl FnMut(&mut Machine, &T, &T) -> Outcome<bool>,
) -> Outcome<()> {
    let (mut left, mut right) = (start, middle);
    // Runs that are already in order, as in most presorted data, cost one comparison.
    if middle < end && !precedes(machine, &items[middle], &items[middle - 1])? {
        right = end;
        merged.extend(items[start..end].iter_mut().map(std::mem::take));
        left = middle;
    }
    while left < middle && right < end {
        let at = if precedes(machine, &items[right], &items[left])? { &mut right } else { &mut left };
        merged.push(std::mem::take(&mut items[*at]));
        *at += 1;
    }
    merged.extend(items[left..middle].iter_mut().map(std::mem::take));
    merged.extend(items[right..end].iter_mut().map(std::mem::take));
    Ok(())
}
