//! Waiting for the first of several connections.

use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::Link;

/// Waits until one of the links can be read, or written where something waits to be, or the time is over, or a
/// signal comes. What was received already is not seen: take it first.
pub fn wait(links: &[&Link], until: Instant) {
    let mut watched: Vec<PollFd> = links
        .iter()
        .map(|link| {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, link.wants_write());
            PollFd::new(link.descriptor(), flags)
        })
        .collect();
    let left = until.saturating_duration_since(Instant::now());
    // Rounded up, so that no deadline is polled for in vain.
    let milliseconds = left.as_micros().div_ceil(1000).min(60_000);
    let timeout = PollTimeout::try_from(milliseconds as i32).unwrap_or(PollTimeout::MAX);
    let _ = poll(&mut watched, timeout);
}
