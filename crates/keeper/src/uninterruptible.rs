//! Calls into the kernel that nobody can stop: made in a thread of their own, so that at least the waiting can end.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::fault::{Fault, Result};
use crate::interrupt::Limit;

/// How often the limit is looked at.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long a change that is under way may go on after its limit, before it is left to itself.
const CHANGE_GRACE: Duration = Duration::from_secs(4);

/// Waits for what changes nothing (writing back, dropping caches); past the limit it is left to itself.
pub fn harmless<T: Send + 'static>(
    doing: &str,
    limit: &Limit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    limit.check(doing)?;
    wait(doing, limit, Duration::ZERO, work)
}

/// Waits for what changes something (mounting). Past the limit it gets a moment to end after all; when it does
/// not, nobody knows what it will still do: the caller has to keep its journal. It is begun in any case, so that
/// an error means just that: who need not begin any more checks the limit first.
pub fn change<T: Send + 'static>(
    doing: &str,
    limit: &Limit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    wait(doing, limit, CHANGE_GRACE, work)
}

fn wait<T: Send + 'static>(
    doing: &str,
    limit: &Limit,
    grace: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(work());
    });
    let mut overdue: Option<Instant> = None;
    loop {
        match receiver.recv_timeout(INTERVAL) {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(fault) = limit.check(doing)
                    && overdue.get_or_insert_with(Instant::now).elapsed() >= grace
                {
                    return Err(fault);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::failed(format!("{doing}: the keeper made a mistake")));
            }
        }
    }
}
