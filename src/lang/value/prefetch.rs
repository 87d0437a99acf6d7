//! Memory prefetch for walks over blocks of values.
//!
//! The items of a block are contiguous, but the nodes that they refer to can be anywhere. Between two items a program
//! executes too many instructions for the processor to run ahead to the next node. A walk therefore prefetches the
//! nodes of the items ahead while it works on the current one. On targets other than x86-64 this does nothing.

use super::Value;
use super::text::Text;
use std::sync::Arc;

/// Prefetch distance, in items, for the node that an item refers to.
const NODE_AHEAD: usize = 16;

/// Prefetch distance, in items, for the values of a map, whose node has been prefetched by then.
const VALUES_AHEAD: usize = 8;

/// Number of values per cache line.
const IN_A_LINE: usize = 64 / size_of::<Value>();

/// Prefetches nodes for a walk that is about to read `items[at]`.
#[inline(always)]
pub fn ahead(items: &[Value], at: usize) {
    match items.get(at + VALUES_AHEAD) {
        Some(Value::Map(map)) => {
            if let Some((_, values)) = map.as_shaped() {
                fetch(values.as_ptr());
                if let Some(second_line) = values.get(IN_A_LINE) {
                    fetch(second_line);
                }
            }
        }
        Some(Value::Vector(_) | Value::Str(Text::Long(_))) => {}
        // If this item refers to no distant memory, its neighbours seldom do.
        _ => return,
    }
    match items.get(at + NODE_AHEAD) {
        Some(Value::Map(map)) => fetch(Arc::as_ptr(map)),
        Some(Value::Vector(vector)) => fetch(Arc::as_ptr(vector)),
        Some(Value::Str(Text::Long(text))) => fetch(text.as_ptr()),
        _ => {}
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch<T>(place: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is a hint to the processor. It reads nothing architecturally and is valid for any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn fetch<T>(_place: *const T) {}
