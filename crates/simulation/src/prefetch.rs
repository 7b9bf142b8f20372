//! Hints to the processor: what will be needed soon is fetched while other events are dealt with.
//!
//! A large cluster's tables do not fit into the second-level cache. Hints change when memory is read, never what.

/// Fetch an entry of a table, if there is one.
#[inline]
pub fn prefetch<T>(table: &[T], index: u32) {
    if let Some(entry) = table.get(index as usize) {
        let first = std::ptr::from_ref(entry).cast::<u8>();
        let mut offset = 0;
        while offset < size_of::<T>() {
            fetch_line(first.wrapping_add(offset));
            offset += 64;
        }
        fetch_line(first.wrapping_add(size_of::<T>() - 1));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn fetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program sees, and faults at no address; SSE is part of x86_64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn fetch_line(_address: *const u8) {}
