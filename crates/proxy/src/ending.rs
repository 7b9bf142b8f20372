//! When the proxy is to end: SIGTERM, SIGINT and SIGHUP ask for it.

use std::time::Duration;

use ascar_log::Fault;
use nix::sys::signal::{SigSet, Signal};

/// The signals that ask for the end. They are waited for, so no thread may take them by itself.
#[derive(Debug)]
pub struct Ending {
    signals: SigSet,
}

impl Ending {
    /// From now on these signals, in this thread and in those that it starts, only ask for the end.
    ///
    /// # Errors
    /// When they cannot be kept waiting.
    pub fn of_this_process() -> Result<Self, Fault> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            signals.add(signal);
        }
        signals
            .thread_block()
            .map_err(|error| Fault(format!("signals: {error}")))?;
        Ok(Self { signals })
    }

    /// Waits for one of them, for so long; whether one came.
    #[must_use]
    pub fn comes_within(&self, limit: Duration) -> bool {
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // SAFETY: reads a set and a time that live through the call.
        let taken = unsafe {
            libc::sigtimedwait(
                self.signals.as_ref(),
                std::ptr::null_mut(),
                &raw const limit,
            )
        };
        taken > 0
    }
}
