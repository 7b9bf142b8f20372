//! SIGTERM and SIGINT, taken one at a time by the thread that reports: no handler, no race.

use std::time::Duration;

/// Which request to end came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: end, tell what was measured.
    Terminate,
    /// SIGINT or SIGHUP: someone at the keyboard wants out.
    Interrupt,
}

fn set() -> libc::sigset_t {
    // SAFETY: all-zero bytes are a valid set, and the calls only write to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// Hold signals back from this thread and all that it starts from now on.
pub fn hold() {
    let set = set();
    // SAFETY: the set is valid; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Wait for a signal, at most so long.
#[must_use]
pub fn wait(limit: Duration) -> Option<Signal> {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos()),
    };
    let set = set();
    // SAFETY: set and time are valid; no information on the signal is asked for.
    match unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const limit) } {
        libc::SIGTERM => Some(Signal::Terminate),
        libc::SIGINT | libc::SIGHUP => Some(Signal::Interrupt),
        _ => None,
    }
}
