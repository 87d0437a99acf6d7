//! The metering allocator: counts the live bytes of whatever evaluation runs on this thread.
//!
//! One thread-local number, the *balance*, goes up with every allocation and down with every release,
//! by size class, so that what is counted is what the memory really costs. An evaluation sets it to
//! its session's running total when it begins on a thread and reads it back when it leaves; outside
//! of an evaluation nobody looks at it. Work on behalf of the host is bracketed by [`outside`](super::outside), so
//! that bytes which change threads are charged to nobody.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    /// Live bytes of the account that is open on this thread.
    static BALANCE: Cell<i64> = const { Cell::new(0) };
}

/// Wraps a global allocator so that lispbox can keep its memory limits.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: lispbox::lang::meter::Metered<std::alloc::System> =
///     lispbox::lang::meter::Metered::new(std::alloc::System);
/// ```
pub struct Metered<A> {
    inner: A,
}

impl<A> Metered<A> {
    /// Meters `inner`.
    pub const fn new(inner: A) -> Self {
        Metered { inner }
    }
}

/// What a request of that size really takes: sixteenths up to 128 bytes, then eight classes to each
/// power of two, whole pages from 32 KiB on.
#[inline]
fn size_class(size: usize) -> i64 {
    let step = match size {
        0..=128 => 16,
        129..=32_767 => (size.next_power_of_two() >> 4).max(16),
        _ => 4_096,
    };
    size.next_multiple_of(step).max(16) as i64
}

#[inline]
fn add(bytes: i64) {
    // `try_with` because memory is still released while a thread is being torn down.
    let _ = BALANCE.try_with(|balance| balance.set(balance.get().wrapping_add(bytes)));
}

// SAFETY: every method passes its arguments through to `inner` unchanged and returns what it returned;
// beside that only a plain thread-local integer without a destructor is touched, which neither
// allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Metered<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract, which is that of `inner`.
        let block = unsafe { self.inner.alloc(layout) };
        if !block.is_null() {
            add(size_class(layout.size()));
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if !block.is_null() {
            add(size_class(layout.size()));
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-size_class(layout.size()));
        // SAFETY: `block` came from `alloc` above, so from `inner`, with this layout.
        unsafe { self.inner.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the new size is passed through.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            add(size_class(new_size) - size_class(layout.size()));
        }
        moved
    }
}

/// Opens an account on this thread with that many bytes in it.
pub(super) fn set_balance(bytes: i64) {
    BALANCE.with(|balance| balance.set(bytes));
}

/// Live bytes of the account on this thread.
#[inline]
pub(crate) fn balance() -> i64 {
    BALANCE.with(Cell::get)
}

/// True when the process really allocates through [`Metered`].
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
