//! When a daemon is to end: SIGTERM, SIGINT and SIGHUP ask for it.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::Fault;

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_: i32) {
    ASKED.store(true, Ordering::SeqCst);
}

fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// From now on these signals only ask for the end. Returns what says whether one came.
///
/// # Errors
/// When a signal cannot be taken.
pub fn on_signals() -> Result<fn() -> bool, Fault> {
    let action = SigAction::new(SigHandler::Handler(ask), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        // SAFETY: the handler only stores into an atomic.
        unsafe { sigaction(signal, &action) }
            .map_err(|error| Fault(format!("{signal}: {error}")))?;
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_asks_for_the_end() {
        let asked = on_signals().unwrap();
        assert!(!asked());
        nix::sys::signal::raise(Signal::SIGHUP).unwrap();
        assert!(asked());
    }
}
