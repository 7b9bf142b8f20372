//! What a thread did: counts that it alone writes, and anyone reads at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::histogram::Counts;

/// One thread's account of its flowops, in the order of its loop.
#[derive(Debug)]
pub struct Tally {
    /// One account a flowop.
    pub steps: Vec<StepTally>,
}

/// One thread's account of one flowop.
#[derive(Debug, Default)]
pub struct StepTally {
    /// Operations done.
    pub ops: AtomicU64,
    /// Bytes read or written.
    pub bytes: AtomicU64,
    /// Sum of latencies.
    pub nanos: AtomicU64,
    /// Largest latency since this was last set to 0 by the reader.
    pub max_nanos: AtomicU64,
    /// Latencies.
    pub counts: Counts,
}

/// Add where only one thread writes: cheaper than an atomic addition.
#[inline]
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Relaxed).wrapping_add(amount), Relaxed);
}

impl Tally {
    /// An empty account of so many flowops.
    #[must_use]
    pub fn new(steps: usize) -> Tally {
        Tally {
            steps: (0..steps).map(|_| StepTally::default()).collect(),
        }
    }
}

impl StepTally {
    /// One operation is done. Only the owning thread may call this.
    #[inline]
    pub fn add(&self, nanos: u64, bytes: u64) {
        add(&self.ops, 1);
        if bytes > 0 {
            add(&self.bytes, bytes);
        }
        add(&self.nanos, nanos);
        if nanos > self.max_nanos.load(Relaxed) {
            self.max_nanos.store(nanos, Relaxed);
        }
        self.counts.add(nanos);
    }
}
