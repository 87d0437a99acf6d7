//! The metering allocator: counts the live bytes of the evaluation that runs on this thread.
//!
//! A thread-local number, the *balance*, increases with every allocation and decreases with every release, by size
//! class, so that it reflects the real cost of memory. An evaluation sets it to its session's running total when it
//! starts on a thread and reads it back when it leaves; outside an evaluation the balance is unused. Work on behalf
//! of the host is bracketed by [`outside`](super::outside), so that allocations which move between threads are
//! charged to no account.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    /// Live bytes of the account that is open on this thread.
    static BALANCE: Cell<i64> = const { Cell::new(0) };

    /// The maximum of the balance since it was last marked.
    static HIGHEST: Cell<i64> = const { Cell::new(0) };
}

/// Wraps a global allocator so that lispbox can enforce its memory limits.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> =
///     lispbox::lang::Metered::new(std::alloc::System);
/// ```
pub struct Metered<A> {
    inner: A,
}

impl<A> Metered<A> {
    /// Wraps `inner`.
    pub const fn new(inner: A) -> Self {
        Metered { inner }
    }
}

/// The size class of a request, an estimate of its real cost: multiples of 16 up to 128 bytes, then eight classes per
/// power of two, and whole pages from 32 KiB on.
#[inline]
fn size_class(size: usize) -> i64 {
    let step = match size {
        0..=128 => 16,
        129..=32_767 => size.next_power_of_two() >> 4,
        _ => 4_096,
    };
    // Every step is a power of two, so this rounds up to its next multiple without a division.
    (size.max(1).wrapping_add(step - 1) & !(step - 1)) as i64
}

#[inline]
fn add(bytes: i64) {
    // `try_with`, because memory is still released while a thread is torn down.
    let _ = BALANCE.try_with(|balance| balance.set(balance.get().wrapping_add(bytes)));
}

/// Charges an allocation of at least a page, which can raise the maximum noticeably.
#[inline]
fn add_block(bytes: i64) {
    add(bytes);
    if bytes >= LARGE {
        let _ = HIGHEST.try_with(|highest| highest.set(highest.get().max(balance())));
    }
}

/// The size from which a single allocation is noted in the maximum.
const LARGE: i64 = 4_096;

/// Starts to record the maximum of the balance; returns the maximum so far, for [`highest_since`].
#[inline]
pub(crate) fn mark() -> i64 {
    HIGHEST.replace(balance())
}

/// Restores the maximum of the balance that [`mark`] returned.
#[inline]
pub(super) fn set_highest(bytes: i64) {
    HIGHEST.set(bytes);
}

/// Returns the maximum of the balance since [`mark`], which returned `before`.
#[inline]
pub(crate) fn highest_since(before: i64) -> u64 {
    let highest = HIGHEST.get().max(balance());
    HIGHEST.set(before.max(highest));
    u64::try_from(highest).unwrap_or(0)
}

// SAFETY: every method passes its arguments through to `inner` unchanged and returns its result. Apart from that, the
// methods access only a plain thread-local integer without a destructor, which neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Metered<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`, which is that of `inner`.
        let block = unsafe { self.inner.alloc(layout) };
        if !block.is_null() {
            add_block(size_class(layout.size()));
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if !block.is_null() {
            add_block(size_class(layout.size()));
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-size_class(layout.size()));
        // SAFETY: `block` was allocated by `alloc` above, hence by `inner`, with this layout.
        unsafe { self.inner.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the new size is passed through.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            add_block(size_class(new_size) - size_class(layout.size()));
        }
        moved
    }
}

/// Opens an account with this balance on this thread.
#[inline]
pub(crate) fn set_balance(bytes: i64) {
    BALANCE.with(|balance| balance.set(bytes));
}

/// Live bytes of the account that is open on this thread.
#[inline]
pub(crate) fn balance() -> i64 {
    BALANCE.with(Cell::get)
}

/// Returns whether the process actually allocates through [`Metered`].
pub fn is_installed() -> bool {
    let before = balance();
    let probe = std::hint::black_box(vec![0_u8; 4_096]);
    let after = balance();
    drop(probe);
    after > before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_grow_with_the_request() {
        assert_eq!(size_class(1), 16);
        assert_eq!(size_class(17), 32);
        assert_eq!(size_class(129), 144);
        assert_eq!(size_class(1_025), 1_152);
        assert_eq!(size_class(100_000), 102_400);
        let mut last = 0;
        for size in 0..200_000 {
            let class = size_class(size);
            assert!(class >= size as i64 && class >= last, "{size}");
            last = class;
        }
    }
}
