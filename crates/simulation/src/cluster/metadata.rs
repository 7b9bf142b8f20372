//! The metadata server, and each client's stream of operations to it.
//!
//! A stream has a window and a pace of its own, as streams of file data have (Li, 3.1.4: metadata traffic "can be done in
//! a similar manner"). On the server operations wait in line for one of its threads. Threads at work slow each other
//! down as by the universal scalability law (Gunther, "Guerrilla Capacity Planning", Springer 2007, chapter 4).

use ascar_congestion::{AnyController, Controller, InFlight, Reply};

use super::Cluster;
use super::control::ControllerMaker;
use super::threads::Activity;
use crate::events::{Kind, Nanos};
use crate::lists::{List, NONE};
use crate::scenario::{Metadata, Operation};

/// The metadata server, and the streams to it.
#[derive(Debug)]
pub(super) struct MetadataServer {
    free: u32,
    busy: u32,
    contention: f64,
    coherence: f64,
    waiting: List,
    create_ns: Nanos,
    open_ns: Nanos,
    stat_ns: Nanos,
    delete_ns: Nanos,
    /// A client each; none where nothing controls them.
    streams: Vec<Option<MetadataStream>>,
}

/// A client's operations on metadata, under a controller.
#[derive(Debug)]
struct MetadataStream {
    controller: AnyController,
    /// Operations that may be under way in any case, and at most.
    window_min: u32,
    window_max: u32,
    /// Threads whose operations wait for the window.
    waiting: List,
    /// Reserved or sent, and not answered.
    in_flight: InFlight,
}

impl MetadataServer {
    pub fn new(parameters: &Metadata) -> MetadataServer {
        let ns = |us: f64| (us * 1e3) as Nanos;
        MetadataServer {
            free: parameters.threads,
            busy: 0,
            contention: parameters.contention,
            coherence: parameters.coherence,
            waiting: List::default(),
            create_ns: ns(parameters.create_us),
            open_ns: ns(parameters.open_us),
            stat_ns: ns(parameters.stat_us),
            delete_ns: ns(parameters.delete_us),
            streams: Vec::new(),
        }
    }

    /// One more client, whose operations this controls; `None`: nothing does. Seeds tell the probes of streams apart.
    pub fn add_client(&mut self, maker: Option<&ControllerMaker<'_>>, seed: u64) {
        self.streams.push(maker.map(|maker| {
            let (window_min, window_max) = maker.bounds();
            MetadataStream {
                controller: maker.make(seed),
                window_min,
                window_max,
                waiting: List::default(),
                in_flight: InFlight::default(),
            }
        }));
    }

    /// Other controllers for all streams; windows stay where rules take over.
    pub fn control(&mut self, maker: &ControllerMaker<'_>, keeps_windows: bool) {
        for (client, stream) in self.streams.iter_mut().enumerate() {
            if let Some(stream) = stream {
                let window_x100 = stream.controller.window().requests_x100;
                let kept = keeps_windows.then_some(window_x100);
                stream.controller = maker.make_with(client as u64, kept);
            }
        }
    }

    /// Clients whose operations are controlled.
    pub fn controlled(&self) -> usize {
        self.streams.iter().flatten().count()
    }

    /// A thread begins with an operation that takes so long alone: how long it takes beside the others.
    fn begin(&mut self, alone_ns: Nanos) -> Nanos {
        self.free -= 1;
        self.busy += 1;
        let (count, others) = (f64::from(self.busy), f64::from(self.busy - 1));
        let slowed = self.contention * others + self.coherence * count * others;
        alone_ns + (alone_ns as f64 * slowed) as Nanos
    }

    /// A thread has ended an operation.
    fn end(&mut self) {
        self.free += 1;
        self.busy -= 1;
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
        let cache = &mut self.clients[thread.client as usize].page_cache;
        let file = match step.operation {
            Operation::CreateFile => {
                let created = self.files.create(set, &mut thread.random);
                created.map(|(file, before)| {
                    cache.resize(&mut self.files.files[file as usize], before);
                    file
                })
            }
            Operation::DeleteFile => {
                let deleted = self.files.delete(set, &mut thread.random);
                deleted.inspect(|file| cache.forget(&mut self.files.files[*file as usize]))
            }
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
        let client = thread.client;
        self.note(index, (file, 0, 0));
        match &mut self.metadata.streams[client as usize] {
            None => self.metadata_leave(index),
            Some(stream) => {
                stream.waiting.push(&mut self.threads, index);
                self.pump_metadata(client);
            }
        }
        false
    }

    /// Let a client's operations leave as the window admits, each at the time that the pacer gives it.
    pub(super) fn pump_metadata(&mut self, client: u32) {
        let (now, now_us) = (self.now, self.now_us());
        while let Some(stream) = &mut self.metadata.streams[client as usize] {
            let under_way = stream.in_flight.requests;
            let admitted =
                under_way < stream.window_min || stream.controller.admits(stream.in_flight, 0);
            if !admitted || under_way >= stream.window_max {
                return;
            }
            let Some(index) = stream.waiting.pop(&mut self.threads) else {
                return;
            };
            stream.in_flight.requests += 1;
            let leave_us = stream.controller.reserve(now_us, 0);
            if leave_us <= now_us {
                self.metadata_leave(index);
            } else {
                let at = (leave_us * 1_000).max(now);
                self.events.push(at, Kind::MetadataLeave, index);
            }
        }
    }

    /// An operation leaves its client.
    pub(super) fn metadata_leave(&mut self, index: u32) {
        let now_us = self.now_us();
        let thread = &mut self.threads[index];
        thread.sent_ns = self.now;
        if let Some(stream) = &mut self.metadata.streams[thread.client as usize] {
            stream.controller.on_send(now_us, 0);
        }
        let at = self.network.message_at(self.now);
        self.events.push(at, Kind::MetadataArrive, index);
    }

    pub(super) fn metadata_arrive(&mut self, index: u32) {
        if self.metadata.free == 0 {
            self.metadata.waiting.push(&mut self.threads, index);
        } else {
            self.serve_metadata(index);
        }
    }

    fn serve_metadata(&mut self, index: u32) {
        let at = self.now + self.metadata.begin(self.threads[index].service_ns);
        self.events.push(at, Kind::MetadataDone, index);
    }

    pub(super) fn metadata_done(&mut self, index: u32) {
        let at = self.network.message_at(self.now);
        self.events.push(at, Kind::MetadataReplied, index);
        self.metadata.end();
        if let Some(next) = self.metadata.waiting.pop(&mut self.threads) {
            self.serve_metadata(next);
        }
    }

    /// The reply to an operation reaches its client.
    pub(super) fn metadata_replied(&mut self, index: u32) {
        let thread = &self.threads[index];
        let (client, sent_ns) = (thread.client, thread.sent_ns);
        self.counters.metadata(self.now, thread.asked_ns);
        self.clients[client as usize].metadata_operations += 1;
        if let Some(stream) = &mut self.metadata.streams[client as usize] {
            stream.controller.on_reply(&Reply {
                sent_us: sent_ns / 1_000,
                now_us: self.now / 1_000,
                bytes: 0,
                in_flight: stream.in_flight,
                ..Reply::default()
            });
            stream.in_flight.requests -= 1;
        }
        self.proceed(index);
        self.pump_metadata(client);
    }
}
