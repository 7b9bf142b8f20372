//! Operations of threads and requests of streams, one by one, for whoever wants a trace of the workload.

use crate::events::Nanos;
use crate::lists::NONE;
use crate::scenario::Operation;

/// An operation of a thread on a file, or a request of a stream to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// When it began (a request: when it left its client), since the start of the simulation.
    pub begun_ns: u64,
    /// How long it took; `None` while it is under way.
    pub latency_ns: Option<u64>,
    /// What was done.
    pub operation: Operation,
    /// By which thread, numbered over all clients; of a request: its stream.
    pub thread: u32,
    /// On which file, numbered over all clients; 0 where there is none. Of a request: the part of a file on its server.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes read or written; 0 of other operations.
    pub bytes: u64,
}

/// Keeps operations, or requests, from when it is made, until it holds so many.
#[derive(Debug)]
pub(crate) struct Recorder {
    operations: Vec<Recorded>,
    /// By thread, or by number of the request: what is under way; [`NONE`]: nothing that is recorded.
    under_way: Vec<u32>,
    most: usize,
}

impl Recorder {
    /// An empty record.
    pub fn new(most: usize) -> Recorder {
        Recorder {
            operations: Vec::new(),
            under_way: Vec::new(),
            most: most.min(NONE as usize - 1),
        }
    }

    /// One begins; `number` tells it from all others that are under way.
    #[cold]
    pub fn begin(&mut self, number: u32, begun: Recorded) {
        let number = number as usize;
        if self.under_way.len() <= number {
            self.under_way.resize(number + 1, NONE);
        }
        self.under_way[number] = if self.operations.len() < self.most {
            self.operations.push(begun);
            self.operations.len() as u32 - 1
        } else {
            NONE
        };
    }

    /// The one with this number is over.
    #[cold]
    pub fn end(&mut self, number: u32, now: Nanos) {
        let Some(at) = self.under_way.get_mut(number as usize) else {
            return;
        };
        let at = std::mem::replace(at, NONE);
        if let Some(operation) = self.operations.get_mut(at as usize) {
            operation.latency_ns = Some(now - operation.begun_ns);
        }
    }

    /// What was kept, in the order of beginning.
    pub fn operations(&self) -> &[Recorded] {
        &self.operations
    }
}
