//! Streams: a client's requests to one server, under a controller.

use ascar_congestion::{AnyController, Controller, Fixed, Reply};

use super::Cluster;
use super::control::ControllerMaker;
use crate::events::Kind;
use crate::lists::NONE;
use crate::outcome::Indicators;
use crate::requests::{Place, Purpose, Request};
use crate::scenario::{Controller as Chosen, ScenarioError};

impl Cluster {
    /// Hand a request to its stream.
    #[inline]
    pub(super) fn enqueue(&mut self, request: Request) {
        let number = request.stream;
        let index = self.requests.add(request);
        let stream = &mut self.streams[number as usize];
        stream.waiting.push(&mut self.requests, index);
        stream.waiting_count += 1;
        self.pump(number);
    }

    /// Let requests leave as the window admits, each at the time that the pacer gives it.
    pub(super) fn pump(&mut self, number: u32) {
        let (now, now_us) = (self.now, self.now_us());
        loop {
            let Some((previous, index)) = self.next_waiting(number) else {
                return;
            };
            let stream = &mut self.streams[number as usize];
            let length = self.requests[index].length;
            let in_flight = stream.in_flight.requests;
            let admitted =
                in_flight < stream.window_min || stream.controller.admits(stream.in_flight, length);
            if !admitted || in_flight >= stream.window_max {
                return;
            }
            stream.waiting.take_behind(&mut self.requests, previous);
            stream.waiting_count -= 1;
            if let Some(turns) = &mut stream.turns {
                turns.sent(self.requests[index].object);
            }
            stream.in_flight.requests += 1;
            stream.in_flight.bytes += u64::from(length);
            let leave_us = stream.controller.reserve(now_us, length);
            if leave_us <= now_us {
                self.leave(index);
            } else {
                if let Some(paced) = &mut stream.paced {
                    paced.requests.push(index);
                }
                self.events
                    .push((leave_us * 1_000).max(now), Kind::Leave, index);
            }
        }
    }

    /// The request that leaves next, if the window admits it, and the one that waits before it.
    #[inline]
    fn next_waiting(&mut self, number: u32) -> Option<(Option<u32>, u32)> {
        let stream = &mut self.streams[number as usize];
        let first = stream.waiting.first()?;
        if stream.turns.is_none() {
            return Some((None, first));
        }
        self.next_in_turn(number, first)
    }

    /// The first waiting request of a file that has a turn, or can have one; the stream is woken when a turn ends.
    fn next_in_turn(&mut self, number: u32, first: u32) -> Option<(Option<u32>, u32)> {
        let now = self.now;
        let turns = self.streams[number as usize].turns.as_mut()?;
        let mut others_wait = false;
        let mut entry = first;
        while entry != NONE {
            others_wait |= !turns.waits(self.requests[entry].object, now);
            entry = self.requests[entry].next;
        }
        let (mut previous, mut entry) = (None, first);
        while entry != NONE {
            if turns.admits(self.requests[entry].object, now, others_wait) {
                return Some((previous, entry));
            }
            previous = Some(entry);
            entry = self.requests[entry].next;
        }
        if let Some(at) = turns.next_ns()
            && turns.due_ns.is_none_or(|due| at < due)
        {
            turns.due_ns = Some(at);
            self.events.push(at.max(now), Kind::Turn, number);
        }
        None
    }

    /// A file's turn on a stream ends: another may have it.
    pub(super) fn turn_ends(&mut self, number: u32) {
        let now = self.now;
        if let Some(turns) = &mut self.streams[number as usize].turns
            && turns.due_ns.is_some_and(|due| due <= now)
        {
            turns.due_ns = None;
            self.pump(number);
        }
    }

    /// A request leaves its client.
    #[inline]
    pub(super) fn leave(&mut self, index: u32) {
        let now_us = self.now_us();
        self.note_request(index);
        let request = &mut self.requests[index];
        let is_first = request.sent_ns == 0;
        request.sent_ns = self.now;
        request.place = Place::Server;
        let server = &self.servers[request.server as usize];
        let stream = &mut self.streams[request.stream as usize];
        stream.controller.on_send(now_us, request.length);
        if is_first && let Some(sequences) = &mut stream.sequences {
            request.sequential = sequences.on_send(request.object, request.offset, request.length);
        }
        self.counters.sent(self.now);
        let at = self.network.message_at(self.now) + server.request_cpu_ns;
        self.events.push(at, Kind::Arrive, index);
    }

    /// A request's reply has come.
    pub(super) fn replied(&mut self, index: u32) {
        let request = self.requests[index];
        self.requests.remove(index);
        if let Some(recorder) = &mut self.request_recorder {
            recorder.end(index, self.now);
        }
        let length = u64::from(request.length);
        let stream = &mut self.streams[request.stream as usize];
        stream.controller.on_reply(&Reply {
            sent_us: request.sent_ns / 1_000,
            now_us: self.now / 1_000,
            bytes: request.length,
            in_flight: stream.in_flight,
            write: request.write,
            sequential: request.sequential,
        });
        stream.in_flight.requests -= 1;
        stream.in_flight.bytes -= length;
        if let Some(turns) = &mut stream.turns {
            turns.answered(request.object, self.now);
        }
        if request.write {
            stream.written_bytes += length;
        } else {
            stream.read_bytes += length;
        }
        self.counters.replied(self.now, &request);
        if request.lock != NONE {
            self.done_under_lock(&request);
        }
        match request.purpose {
            Purpose::Direct => self.answered(request.thread),
            Purpose::WriteBack => self.written_back(request.stream, request.length),
            Purpose::ReadAhead => {
                self.chunk_arrived(request.thread, request.generation, request.chunk)
            }
        }
        self.pump(request.stream);
    }

    /// Set a stream's window and gap. Only streams without a controller of their own can be set; others stay.
    pub fn set_stream(&mut self, number: usize, window: f64, tau_us: f64) -> bool {
        let AnyController::Fixed(fixed) = &mut self.streams[number].controller else {
            return false;
        };
        set_fixed(fixed, window, tau_us);
        self.pump(number as u32);
        true
    }

    /// Put rules in force on the streams of a client group, or the scenario's own control again (`None`). The number
    /// after the last group is that of the metadata streams, where the scenario controls them. Windows stay, but for the
    /// scenario's fixed one; what controllers had observed is forgotten. The number of streams.
    pub fn deploy(&mut self, group: usize, rules: Option<&str>) -> Result<usize, ScenarioError> {
        let Some(own) = self.controls.get(group) else {
            return Err(ScenarioError {
                key: "group".into(),
                message: format!("is {group}; allowed: 0 to {}", self.controls.len() - 1),
            });
        };
        if own.rogue_window.is_some() {
            return Ok(0);
        }
        let (clients, of_metadata) = (own.clients.clone(), own.of_metadata);
        let mut control = own.control.clone();
        if let Some(text) = rules {
            (control.controller, control.rules) = (Chosen::Rules, Some(text.into()));
        }
        let maker = ControllerMaker::new(&control, None)?;
        self.deployments[group] = maker.deployment.clone();
        if of_metadata {
            self.metadata.control(&maker, rules.is_some());
            (clients.start as u32..clients.end as u32)
                .for_each(|client| self.pump_metadata(client));
            return Ok(self.metadata.controlled());
        }
        let servers = self.servers.len();
        let streams = clients.start * servers..clients.end * servers;
        for number in streams.clone() {
            let stream = &mut self.streams[number];
            let window_x100 = stream.controller.window().requests_x100;
            stream.controller = maker.make_with(number as u64, rules.map(|_| window_x100));
            stream.turns = maker.turns();
            stream.sequences = maker.sequences();
            self.pump(number as u32);
        }
        Ok(streams.len())
    }

    /// What a stream shows, with what it has read and written since `before` (bytes) over `seconds`.
    pub fn indicators(&self, number: usize, before: (u64, u64), seconds: f64) -> Indicators {
        let servers = self.servers.len();
        let (client, server) = (number / servers, number % servers);
        let stream = &self.streams[number];
        let signals = stream.controller.signals().unwrap_or_default();
        let rate = |now: u64, then: u64| (now - then) as f64 / 1e6 / seconds;
        Indicators {
            window: f64::from(stream.controller.window().requests_x100) / 100.0,
            tau_us: f64::from(stream.controller.gap_us()),
            ack_ewma_us: f64::from(signals.ack_us),
            send_ewma_us: f64::from(signals.send_us),
            pt_ratio: f64::from(signals.ratio100) / 100.0,
            read_mb_per_s: rate(stream.read_bytes, before.0),
            write_mb_per_s: rate(stream.written_bytes, before.1),
            dirty_bytes: stream.dirty,
            dirty_limit_bytes: self.clients[client].dirty_limit,
            in_flight: stream.in_flight.requests,
            waiting: stream.waiting_count,
            ping_us: self
                .network
                .ping_us(self.now, client, self.clients.len() + server),
        }
    }

    /// Bytes that a stream has read and written so far.
    pub fn stream_bytes(&self, number: usize) -> (u64, u64) {
        let stream = &self.streams[number];
        (stream.read_bytes, stream.written_bytes)
    }
}

/// Window and gap of a fixed controller, from requests and microseconds.
pub(super) fn set_fixed(fixed: &mut Fixed, window: f64, tau_us: f64) {
    fixed.set((window * 100.0).round() as u32, tau_us.round() as u32);
}
