//! The metadata server: operations wait in line for one of its threads.

use super::Cluster;
use super::threads::Activity;
use crate::events::{Kind, Nanos};
use crate::lists::{List, NONE};
use crate::scenario::{Metadata, Operation};

/// The metadata server.
#[derive(Debug)]
pub(super) struct MetadataServer {
    free: u32,
    waiting: List,
    create_ns: Nanos,
    open_ns: Nanos,
    stat_ns: Nanos,
    delete_ns: Nanos,
}

impl MetadataServer {
    pub fn new(parameters: &Metadata) -> MetadataServer {
        let ns = |us: f64| (us * 1e3) as Nanos;
        MetadataServer {
            free: parameters.threads,
            waiting: List::default(),
            create_ns: ns(parameters.create_us),
            open_ns: ns(parameters.open_us),
            stat_ns: ns(parameters.stat_us),
            delete_ns: ns(parameters.delete_us),
        }
    }
}

impl Cluster {
    /// Create, open, close, delete or look at a file.
    pub(super) fn begin_metadata(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        let steps = &self.programs[thread.program as usize].groups[thread.group as usize].steps;
        let step = &steps[thread.step as usize];
        let set = self.clients[thread.client as usize]
            .sets
            .get(step.set as usize)
            .copied()
            .unwrap_or(0);
        let file = match step.operation {
            Operation::CreateFile => self.files.create(set, &mut thread.random),
            Operation::DeleteFile => self.files.delete(set, &mut thread.random),
            Operation::CloseFile => Some(thread.open),
            _ => self.files.choose(set, &mut thread.random),
        };
        let Some(file) = file else {
            return self.no_file(index);
        };
        let metadata = &self.metadata;
        (thread.open, thread.service_ns) = match step.operation {
            Operation::CreateFile => (file, metadata.create_ns),
            Operation::OpenFile => (file, metadata.open_ns),
            Operation::CloseFile => (NONE, metadata.open_ns),
            Operation::DeleteFile => (thread.open, metadata.delete_ns),
            _ => (thread.open, metadata.stat_ns),
        };
        thread.activity = Activity::StepDone;
        self.note(index, (file, 0, 0));
        let at = self.network.message_at(self.now);
        self.events.push(at, Kind::MetadataArrive, index);
        false
    }

    pub(super) fn metadata_arrive(&mut self, index: u32) {
        if self.metadata.free == 0 {
            self.metadata.waiting.push(&mut self.threads, index);
        } else {
            self.metadata.free -= 1;
            let at = self.now + self.threads[index].service_ns;
            self.events.push(at, Kind::MetadataDone, index);
        }
    }

    pub(super) fn metadata_done(&mut self, index: u32) {
        let at = self.network.message_at(self.now);
        self.events.push(at, Kind::Thread, index);
        match self.metadata.waiting.pop(&mut self.threads) {
            Some(next) => {
                let at = self.now + self.threads[next].service_ns;
                self.events.push(at, Kind::MetadataDone, next);
            }
            None => self.metadata.free += 1,
        }
    }
}
