//! Operations of threads, one by one, for whoever wants a trace of the workload.

use crate::events::Nanos;
use crate::lists::NONE;
use crate::scenario::Operation;

/// An operation of a thread on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// When it began, since the start of the simulation.
    pub begun_ns: u64,
    /// How long it took; `None` while it is under way.
    pub latency_ns: Option<u64>,
    /// What was done.
    pub operation: Operation,
    /// By which thread, numbered over all clients.
    pub thread: u32,
    /// On which file, numbered over all clients; 0 where there is none.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes read or written; 0 of other operations.
    pub bytes: u64,
}

/// Keeps operations from when it is made, until it holds so many.
#[derive(Debug)]
pub(crate) struct Recorder {
    operations: Vec<Recorded>,
    /// By thread: the operation that is under way; [`NONE`]: none that is recorded.
    under_way: Vec<u32>,
    most: usize,
}

impl Recorder {
    /// An empty record of so many threads' operations.
    pub fn new(threads: usize, most: usize) -> Recorder {
        Recorder {
            operations: Vec::new(),
            under_way: vec![NONE; threads],
            most: most.min(NONE as usize - 1),
        }
    }

    /// A thread begins an operation.
    pub fn begin(&mut self, begun: Recorded) {
        if self.operations.len() < self.most {
            self.under_way[begun.thread as usize] = self.operations.len() as u32;
            self.operations.push(begun);
        }
    }

    /// A thread's step is done.
    pub fn end(&mut self, thread: u32, now: Nanos) {
        let at = std::mem::replace(&mut self.under_way[thread as usize], NONE);
        if let Some(operation) = self.operations.get_mut(at as usize) {
            operation.latency_ns = Some(now - operation.begun_ns);
        }
    }

    /// What was kept, in the order of beginning.
    pub fn operations(&self) -> &[Recorded] {
        &self.operations
    }
}
