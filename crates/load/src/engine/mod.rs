//! Running a workload: threads that go round their loops of flowops until the end is asked for.
//!
//! Threads share file sets ([`crate::data::tree`]), semaphores, the event rate and the control; each has its own
//! open files, buffers, random streams and tally, so that nothing on the way of an operation takes a lock but
//! those that make or remove files.

pub mod aio;
mod arrivals;
mod files;
mod pacer;
pub mod plan;
mod semaphore;
mod slot;
pub mod tally;
pub mod trace;
mod transfer;
mod waiting;
mod worker;

pub use plan::Plan;
pub use worker::start;

/// Nanoseconds of the monotonic clock.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux, and `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
