//! The lease under which this node's knobs are away from their initial values.
//!
//! A controller puts everything back when its input ends. Between the agent and each controller stands a process that
//! holds the lease ([`holder`]): it passes on what the agent says, and ends the controller's input when the agent is
//! gone, or when the lease has run out. The agent extends the lease in each tick, up to a while after the interface was
//! last heard. So knobs go back although the agent is stopped, or waits for a file that never answers.
//!
//! The lease is a piece of memory that agent and holders share. Writing it never blocks.

pub mod cli;
pub mod holder;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::time::{ClockId, clock_gettime};

/// Time since the machine was started, the same for all processes, also while it was suspended.
pub fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// What is in the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Holders of another series have ended.
    pub series: u64,
    /// When it runs out.
    pub until: Duration,
}

impl Term {
    /// How long a holder of this series still holds it.
    pub fn left(&self, series: u64, now: Duration) -> Duration {
        if self.series == series {
            self.until.saturating_sub(now)
        } else {
            Duration::ZERO
        }
    }

    fn encode(self) -> [u8; 16] {
        let until = u64::try_from(self.until.as_nanos()).unwrap_or(u64::MAX);
        (u128::from(self.series) << 64 | u128::from(until)).to_le_bytes()
    }

    fn decode(bytes: [u8; 16]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self {
            series: (both >> 64) as u64,
            until: Duration::from_nanos(both as u64),
        }
    }

    /// What the shared memory says; a lease that cannot be read has run out.
    pub fn read(memory: &File) -> Self {
        let mut bytes = [0; 16];
        match memory.read_exact_at(&mut bytes, 0) {
            Ok(()) => Self::decode(bytes),
            Err(_) => Self {
                series: u64::MAX,
                until: Duration::ZERO,
            },
        }
    }
}

/// The agent's side of it.
#[derive(Debug)]
pub struct Lease {
    memory: File,
    series: AtomicU64,
}

impl Lease {
    /// A lease that has run out.
    ///
    /// # Errors
    /// When there is no memory to share.
    pub fn new() -> std::io::Result<Self> {
        let memory = memfd_create(c"ascar-lease", MFdFlags::MFD_CLOEXEC)?;
        let lease = Self {
            memory: File::from(memory),
            series: AtomicU64::new(0),
        };
        lease.write(Duration::ZERO)?;
        Ok(lease)
    }

    /// The series of holders that are started now.
    pub fn series(&self) -> u64 {
        self.series.load(Ordering::SeqCst)
    }

    /// The shared memory.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// Sets when it runs out.
    pub fn extend(&self, until: Duration) {
        // Memory that cannot be written is a lease that runs out.
        let _ = self.write(until);
    }

    /// Ends it at once for all that hold it now.
    pub fn end(&self) {
        self.series.fetch_add(1, Ordering::SeqCst);
        self.extend(Duration::ZERO);
    }

    fn write(&self, until: Duration) -> std::io::Result<()> {
        let series = self.series();
        self.memory
            .write_all_at(&Term { series, until }.encode(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_lease_runs_out_by_its_time_and_by_its_end() {
        let lease = Lease::new().unwrap();
        let left = |series, now| Term::read(&lease.memory).left(series, now);
        assert_eq!(left(0, S), Duration::ZERO);
        lease.extend(5 * S);
        assert_eq!(left(0, 2 * S), 3 * S);
        assert_eq!(left(0, 5 * S), Duration::ZERO);
        lease.end();
        // One that is started later holds what the earlier ones have lost.
        lease.extend(9 * S);
        assert_eq!(
            (left(0, S), left(lease.series(), S)),
            (Duration::ZERO, 8 * S)
        );
    }

    #[test]
    fn what_cannot_be_read_has_run_out() {
        let empty = File::open("/dev/null").unwrap();
        assert_eq!(Term::read(&empty).left(0, Duration::ZERO), Duration::ZERO);
    }
}
