//! From the threads' tallies to readings: what each flowop did in an interval, and over the whole run.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ascar_histogram::BUCKETS;

use crate::definition::{Definition, Kind};
use crate::engine::tally::Tally;
use crate::histogram::Histogram;

/// What one flowop, or all of them, did in some time.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Sum of latencies.
    pub nanos: u64,
    /// Largest latency.
    pub max_nanos: u64,
    /// Latencies.
    pub histogram: Histogram,
}

impl Account {
    fn merge(&mut self, other: &Account) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.nanos += other.nanos;
        self.max_nanos = self.max_nanos.max(other.max_nanos);
        self.histogram.merge(&other.histogram);
    }

    fn clear(&mut self) {
        (self.ops, self.bytes, self.nanos, self.max_nanos) = (0, 0, 0, 0);
        self.histogram.clear();
    }
}

/// A flowop's accounts.
#[derive(Debug, Clone)]
pub struct FlowopAccount {
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Since the last reading.
    pub interval: Account,
    /// Since the run began.
    pub total: Account,
}

/// What was last seen of one thread's tally of one flowop.
#[derive(Debug, Clone)]
struct Seen {
    ops: u64,
    bytes: u64,
    nanos: u64,
    counts: Vec<u32>,
}

/// Reads tallies again and again.
pub struct Reader {
    tallies: Vec<Vec<Arc<Tally>>>,
    seen: Vec<Vec<Vec<Seen>>>,
    /// Accounts of all flowops, group after group.
    pub flowops: Vec<FlowopAccount>,
}

impl Reader {
    /// A reader of fresh tallies, one a thread, in groups.
    #[must_use]
    pub fn new(definition: &Definition) -> Reader {
        let tallies: Vec<Vec<Arc<Tally>>> = definition
            .groups
            .iter()
            .map(|group| {
                (0..group.threads)
                    .map(|_| Arc::new(Tally::new(group.flowops.len())))
                    .collect()
            })
            .collect();
        let unseen = Seen {
            ops: 0,
            bytes: 0,
            nanos: 0,
            counts: vec![0; BUCKETS],
        };
        let seen = tallies
            .iter()
            .map(|group| {
                group
                    .iter()
                    .map(|tally| vec![unseen.clone(); tally.steps.len()])
                    .collect()
            })
            .collect();
        let flowops = definition
            .groups
            .iter()
            .flat_map(|group| &group.flowops)
            .map(|flowop| FlowopAccount {
                name: flowop.name.clone(),
                kind: flowop.kind,
                interval: Account::default(),
                total: Account::default(),
            });
        Reader {
            seen,
            flowops: flowops.collect(),
            tallies,
        }
    }

    /// The tallies, for the threads to write.
    #[must_use]
    pub fn tallies(&self) -> &[Vec<Arc<Tally>>] {
        &self.tallies
    }

    /// Bring all accounts up to date: intervals hold what came since the last time.
    pub fn read(&mut self) {
        for flowop in &mut self.flowops {
            flowop.interval.clear();
        }
        let mut first = 0;
        for (threads, seen) in self.tallies.iter().zip(&mut self.seen) {
            for (tally, seen) in threads.iter().zip(seen) {
                for (place, (step, seen)) in tally.steps.iter().zip(seen).enumerate() {
                    let ops = step.ops.load(Relaxed);
                    if ops == seen.ops {
                        continue;
                    }
                    let account = &mut self.flowops[first + place].interval;
                    let (bytes, nanos) = (step.bytes.load(Relaxed), step.nanos.load(Relaxed));
                    account.ops += ops.wrapping_sub(seen.ops);
                    account.bytes += bytes.wrapping_sub(seen.bytes);
                    account.nanos += nanos.wrapping_sub(seen.nanos);
                    account.max_nanos = account.max_nanos.max(step.max_nanos.swap(0, Relaxed));
                    (seen.ops, seen.bytes, seen.nanos) = (ops, bytes, nanos);
                    step.counts
                        .collect(&mut seen.counts, &mut account.histogram);
                }
            }
            first += threads.first().map_or(0, |tally| tally.steps.len());
        }
        for flowop in &mut self.flowops {
            flowop.total.merge(&flowop.interval);
        }
    }

    /// All operations on files together, of the interval or the whole run.
    #[must_use]
    pub fn all(&self, of: impl Fn(&FlowopAccount) -> &Account) -> Account {
        let mut all = Account::default();
        for flowop in self
            .flowops
            .iter()
            .filter(|flowop| flowop.kind.is_file_operation())
        {
            all.merge(of(flowop));
        }
        all
    }

    /// Bytes read, and bytes written, of the interval or the whole run.
    #[must_use]
    pub fn bytes(&self, of: impl Fn(&FlowopAccount) -> &Account) -> (u64, u64) {
        let sum = |test: fn(Kind) -> bool| -> u64 {
            self.flowops
                .iter()
                .filter(|flowop| test(flowop.kind))
                .map(|flowop| of(flowop).bytes)
                .sum()
        };
        (sum(Kind::reads), sum(Kind::writes))
    }
}
