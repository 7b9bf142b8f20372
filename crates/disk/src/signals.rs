//! SIGTERM and SIGUSR1, taken one at a time by the thread that waits for them: no handler, no race.
//!
//! What is ignored stays ignored: whoever started the disk wants it to go on (`nohup`, a shell's background).

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM, SIGINT, SIGHUP: an orderly end.
    End,
    /// SIGUSR1: power is cut, and comes back.
    PowerCut,
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all-zero bytes are a valid action, which the call only writes to; no new one is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// All that are taken.
const TAKEN: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];

/// Those of them that are not ignored.
fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: all-zero bytes are a valid set, and the calls only write to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            if !is_ignored(signal) {
                libc::sigaddset(&raw mut set, signal);
            }
        }
        set
    }
}

fn block(signals: &[libc::c_int]) {
    let set = set_of(signals);
    // SAFETY: the set is valid; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Holds power cuts back, and leaves those that end the process as they are: what is waited for meanwhile may never come.
pub(crate) fn hold_cuts() {
    block(&[libc::SIGUSR1]);
}

/// Holds signals back from this thread and all that it starts from now on.
pub(crate) fn hold() {
    block(&TAKEN);
    // A file that may not grow any further is an error of a write, and not the end of the disk.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Waits for a signal.
pub(crate) fn wait() -> Signal {
    let set = set_of(&TAKEN);
    loop {
        // SAFETY: the set is valid; no information on the signal is asked for.
        match unsafe { libc::sigwaitinfo(&raw const set, std::ptr::null_mut()) } {
            libc::SIGUSR1 => return Signal::PowerCut,
            signal if signal > 0 => return Signal::End,
            // Interrupted by another one.
            _ => {}
        }
    }
}
