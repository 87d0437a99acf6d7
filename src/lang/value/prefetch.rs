//! Fetching what a walk comes to soon.
//!
//! The items of a block stand one behind another, what they refer to may be anywhere. Between one record and the next a
//! program takes so many instructions that the processor does not see what comes, so a walk tells it: while one item
//! is worked on, memory sends those ahead of it. Where the processor has no such instruction, nothing happens.

use super::Value;
use super::text::Text;
use std::sync::Arc;

/// So many items ahead is fetched what an item refers to.
const NODE_AHEAD: usize = 16;

/// So many items ahead are fetched the values of a map, which has been fetched by then.
const VALUES_AHEAD: usize = 8;

/// How many values stand in what is fetched at once.
const IN_A_LINE: usize = 64 / size_of::<Value>();

/// Has fetched what is soon asked for by a walk that has come to `items[at]`.
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
        // Where one item refers to nothing far away, the next few seldom do.
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
    // SAFETY: a hint to the processor, which reads nothing and may be given for any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn fetch<T>(_place: *const T) {}
