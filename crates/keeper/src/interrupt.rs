//! The end of a session reaches every piece of running work through one flag and one descriptor.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::fault::{Doing, Fault, Result};

/// Raised once, when the client is gone or a signal came; never lowered.
#[derive(Debug)]
pub struct Interrupt {
    raised: AtomicBool,
    event: EventFd,
}

impl Interrupt {
    /// A flag that is not raised.
    pub fn new() -> Result<Self> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .doing("make an eventfd")?;
        Ok(Self {
            raised: AtomicBool::new(false),
            event,
        })
    }

    /// Tells everybody to stop.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        // Nobody reads it, so that it stays readable for whoever polls; it cannot overflow.
        let _ = self.event.write(1);
    }

    /// Whether to stop.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Readable once raised.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// How long one operation may go on: until its deadline or the interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    interrupt: &'a Interrupt,
    deadline: Instant,
    allowed: Duration,
}

impl<'a> Limit<'a> {
    /// `allowed` counts from now.
    pub fn new(interrupt: &'a Interrupt, allowed: Duration) -> Self {
        Self {
            interrupt,
            deadline: Instant::now() + allowed,
            allowed,
        }
    }

    /// Fails when the work has to stop.
    pub fn check(&self, doing: &str) -> Result<()> {
        if self.interrupt.raised() {
            return Err(Fault::failed(format!("{doing}: stopped, the session ends")));
        }
        if Instant::now() >= self.deadline {
            return Err(Fault::timeout(format!(
                "{doing}: not done within {} s",
                self.allowed.as_secs_f64()
            )));
        }
        Ok(())
    }

    /// Milliseconds left, for poll.
    pub fn poll_timeout(&self) -> PollTimeout {
        let left = self.deadline.saturating_duration_since(Instant::now());
        PollTimeout::try_from(left.as_millis().min(60_000) as i32 + 1).unwrap_or(PollTimeout::MAX)
    }

    /// Readable when the session ends.
    pub fn descriptor(&self) -> BorrowedFd<'a> {
        self.interrupt.descriptor()
    }

    /// Sleeps, at most until the session ends.
    pub fn sleep(&self, duration: Duration) {
        let timeout = PollTimeout::try_from(duration.as_millis().min(60_000) as i32)
            .unwrap_or(PollTimeout::MAX);
        let _ = poll(
            &mut [PollFd::new(self.descriptor(), PollFlags::POLLIN)],
            timeout,
        );
    }
}
