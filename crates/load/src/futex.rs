//! Sleeping until a word changes, with a limit: the one way threads of a load wait for each other.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleep while the word equals `expected`, at most `limit`. May return early.
pub fn wait(word: &AtomicU32, expected: u32, limit: Duration) {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos()),
    };
    // SAFETY: the word outlives the call, and the kernel only reads it and the time.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const limit,
        );
    }
}

/// Wake all that wait on the word.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the word is valid; waking touches no memory.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}
