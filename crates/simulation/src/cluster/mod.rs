//! The cluster: its parts, and what each event does to them.
//!
//! A request's way: thread -> stream (window, pace) -> server (worker) -> network and device -> reply -> controller,
//! thread. Each submodule holds one part of that way.

mod build;
mod cache;
mod coalescing;
mod control;
mod extents;
mod faults;
mod files_of_threads;
mod locks;
mod metadata;
mod noise;
mod servers;
mod streams;
mod summary;
mod threads;
mod transfer;

use ascar_congestion::{AnyController, InFlight, Sequences, Turns};
use ascar_random::Random;

use crate::disk::Storage;
use crate::events::{Events, Kind, Nanos};
use crate::files::Files;
use crate::lists::{Linked, List, NONE};
use crate::network::Network;
use crate::page_cache::PageCache;
use crate::program::Program;
use crate::record::{Recorded, Recorder};
use crate::requests::Requests;
use crate::scenario::{Failure, Noise, Operation, Scenario};

pub(crate) use build::build;
use build::{ClientControl, Deployments};
use coalescing::Paced;
use locks::LockTable;
use metadata::MetadataServer;
use summary::Counters;
pub(crate) use summary::Series;
use threads::Thread;

/// A client: its cache and what it has done.
#[derive(Debug)]
struct Client {
    /// Largest request.
    request_bytes: u64,
    dirty_limit: u64,
    page_cache: PageCache,
    read_ahead: u64,
    copy_ns_per_byte: f64,
    /// When its threads stop.
    stop_ns: Nanos,
    /// Its copy of the workload's file sets.
    sets: Vec<u32>,
    /// Dirty bytes on all its streams.
    dirty: u64,
    /// Threads that wait for all dirty data to be written.
    sync_waiters: List,
    /// Bytes that its threads have read and written.
    bytes: u64,
    /// Operations on metadata answered since the start or the last reset.
    metadata_operations: u64,
}

/// Dirty data that does not fill a request yet.
#[derive(Debug, Clone, Copy)]
struct Partial {
    object: u32,
    offset: u64,
    length: u32,
    lock: u32,
}

/// A client-server pair.
#[derive(Debug)]
struct Stream {
    controller: AnyController,
    /// Requests that may be in flight in any case, and at most.
    window_min: u32,
    window_max: u32,
    /// Requests that wait for the window.
    waiting: List,
    waiting_count: u32,
    /// How many files may have requests under way; none: any number.
    turns: Option<Box<Turns>>,
    /// Which of its requests are sequential; none where no rule asks.
    sequences: Option<Box<Sequences>>,
    /// Requests that dirty data may still join though they have their time of leaving; none where none may.
    paced: Option<Box<Paced>>,
    /// Reserved or sent, and not answered.
    in_flight: InFlight,
    dirty: u64,
    dirty_waiters: List,
    partial: Option<Partial>,
    read_bytes: u64,
    written_bytes: u64,
}

/// A storage server.
#[derive(Debug)]
struct Server {
    storage: Box<dyn Storage>,
    /// When its storage is due; an event of another time is stale.
    due_ns: Option<Nanos>,
    workers_free: u32,
    /// Requests that wait for a worker.
    arrived: List,
    request_cpu_ns: Nanos,
    dead: bool,
    /// Requests there, and their integral over time.
    present: u32,
    present_since: Nanos,
    present_area: u128,
    random: Random,
}

/// Threads in a table, so that lists can be threaded through it.
#[derive(Debug, Default)]
struct Threads(Vec<Thread>);

impl std::ops::Index<u32> for Threads {
    type Output = Thread;
    #[inline]
    fn index(&self, index: u32) -> &Thread {
        &self.0[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Threads {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Thread {
        &mut self.0[index as usize]
    }
}

impl Linked for Threads {
    #[inline]
    fn next(&mut self, entry: u32) -> &mut u32 {
        &mut self.0[entry as usize].next
    }
}

/// Threads of a workload that have come to a barrier.
#[derive(Debug, Default)]
struct Barrier {
    waiting: List,
    arrived: u32,
    needed: u32,
}

/// Everything that a run holds.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub now: Nanos,
    pub events: Events,
    requests: Requests,
    network: Network,
    files: Files,
    programs: Vec<Program>,
    barriers: Vec<Barrier>,
    clients: Vec<Client>,
    streams: Vec<Stream>,
    threads: Threads,
    servers: Vec<Server>,
    locks: LockTable,
    metadata: MetadataServer,
    deployments: Deployments,
    /// By client group: the scenario's control of its streams, to make controllers again.
    controls: Vec<ClientControl>,
    /// Threads' operations, where they are asked for.
    recorder: Option<Box<Recorder>>,
    /// Streams' requests, where they are asked for.
    request_recorder: Option<Box<Recorder>>,
    failures: Vec<Failure>,
    noise: Noise,
    timeout_ns: Nanos,
    counters: Counters,
    /// Streams that have held back less than a request since the last flush.
    held_back: Vec<u32>,
    /// Tags of storage requests that are done; kept to allocate nothing.
    done: Vec<u32>,
}

impl Cluster {
    /// Let time pass until then; what is due at that instant is done.
    pub fn run_until(&mut self, until: Nanos) {
        while let Some((at, kind, index)) = self.events.pop(until) {
            self.now = at;
            self.dispatch(kind, index);
        }
        self.now = until;
    }

    #[inline]
    fn dispatch(&mut self, kind: Kind, index: u32) {
        match kind {
            Kind::Leave => self.leave_in_time(index),
            Kind::Arrive => self.arrive(index),
            Kind::Delivered => self.delivered(index),
            Kind::Replied => self.replied(index),
            Kind::Retransmit => self.retransmit(index),
            Kind::Storage => self.storage_due(index),
            Kind::LinkOut => self.link_out(index),
            Kind::Thread => self.proceed(index),
            Kind::MetadataLeave => self.metadata_leave(index),
            Kind::MetadataArrive => self.metadata_arrive(index),
            Kind::MetadataDone => self.metadata_done(index),
            Kind::MetadataReplied => self.metadata_replied(index),
            Kind::Lock => self.lock_message(index),
            Kind::Failure => self.failure(index),
            Kind::NoiseDisk => self.noise_disk(index),
            Kind::NoiseNetwork => self.noise_network(index),
            Kind::Timeouts => self.timeouts(),
            Kind::Turn => self.turn_ends(index),
        }
    }

    #[inline]
    fn now_us(&self) -> u64 {
        self.now / 1_000
    }

    /// Number of streams: clients times servers.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Number of storage servers.
    pub fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Rule sets in force, by client group.
    pub fn deployments(&self) -> &[Option<std::sync::Arc<ascar_congestion::Deployment>>] {
        &self.deployments
    }

    /// Keep threads' operations and streams' requests from now on, up to so many of each; 0 keeps none. What was kept
    /// before is forgotten.
    pub fn record(&mut self, most: usize) {
        let made = || (most > 0).then(|| Box::new(Recorder::new(most)));
        (self.recorder, self.request_recorder) = (made(), made());
    }

    /// The operations kept since [`Cluster::record`], in the order of beginning.
    pub fn recorded(&self) -> &[Recorded] {
        kept(self.recorder.as_deref())
    }

    /// The requests kept since [`Cluster::record`], in the order of leaving.
    pub fn recorded_requests(&self) -> &[Recorded] {
        kept(self.request_recorder.as_deref())
    }

    /// A thread begins an operation on bytes of a file.
    #[inline]
    fn note(&mut self, index: u32, (file, offset, bytes): (u32, u64, u64)) {
        if let Some(recorder) = &mut self.recorder {
            let thread = &self.threads[index];
            let steps = &self.programs[thread.program as usize].groups[thread.group as usize].steps;
            let begun = Recorded {
                begun_ns: self.now,
                latency_ns: None,
                operation: steps[thread.step as usize].operation,
                thread: index,
                file: if file == NONE { 0 } else { file },
                offset,
                bytes,
            };
            recorder.begin(index, begun);
        }
    }

    /// A request leaves its client.
    #[inline]
    fn note_request(&mut self, index: u32) {
        if let Some(recorder) = &mut self.request_recorder {
            let request = &self.requests[index];
            let operation = if request.write {
                Operation::Write
            } else {
                Operation::Read
            };
            let begun = Recorded {
                begun_ns: self.now,
                latency_ns: None,
                operation,
                thread: request.stream,
                file: request.object,
                offset: request.offset,
                bytes: u64::from(request.length),
            };
            recorder.begin(index, begun);
        }
    }

    #[inline]
    fn client_of(&self, stream: u32) -> u32 {
        stream / self.servers.len() as u32
    }
}

/// The scenario's instants in nanoseconds.
pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

/// The end of a scenario's warm-up.
pub(crate) fn warm_ns(scenario: &Scenario) -> Nanos {
    nanos(scenario.warmup_s)
}

fn kept(recorder: Option<&Recorder>) -> &[Recorded] {
    recorder.map_or(&[], Recorder::operations)
}
