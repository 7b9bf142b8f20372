//! Servers: workers take requests in the order in which they come, fetch or send the data, and use the device.

use super::Cluster;
use crate::disk::{DeviceRequest, Turned};
use crate::events::Kind;
use crate::network::{Network, Parts, Route};
use crate::prefetch::prefetch;
use crate::requests::Place;

/// The tag of device requests that belong to nobody.
pub(super) const FOREIGN: u32 = u32::MAX;

impl Cluster {
    /// A request's message reaches its server: a worker takes it, or it waits for one.
    pub(super) fn arrive(&mut self, index: u32) {
        let number = self.requests[index].server;
        let now = self.now;
        let server = &mut self.servers[number as usize];
        if server.dead {
            self.requests[index].place = Place::Lost;
            return;
        }
        server.count(now, 1);
        if server.workers_free == 0 {
            server.arrived.push(&mut self.requests, index);
            return;
        }
        server.workers_free -= 1;
        self.work(index);
        self.poke(number);
    }

    /// A worker begins with a request: data to write is fetched from the client first.
    fn work(&mut self, index: u32) {
        let request = &self.requests[index];
        let (write, object, offset) = (request.write, request.object, request.offset);
        if write {
            self.files.prefetch_object(object);
            self.send_data(index);
            self.files.prefetch_position(object, offset);
        } else {
            self.submit(index);
        }
    }

    fn route(&self, index: u32) -> Route {
        let request = &self.requests[index];
        let client = self.client_of(request.stream);
        let server = self.clients.len() as u32 + request.server;
        if request.write {
            Route {
                from: client,
                to: server,
            }
        } else {
            Route {
                from: server,
                to: client,
            }
        }
    }

    /// The network, and beside it what it acts on.
    #[inline]
    fn network(&mut self) -> (&mut Network, Parts<'_>) {
        let parts = Parts {
            events: &mut self.events,
            requests: &mut self.requests,
        };
        (&mut self.network, parts)
    }

    fn send_data(&mut self, index: u32) {
        let route = self.route(index);
        let now = self.now;
        let (network, mut parts) = self.network();
        network.send(now, index, route, &mut parts);
    }

    /// A node's outgoing link falls free: the data that has waited longest leaves.
    pub(super) fn link_out(&mut self, node: u32) {
        let now = self.now;
        loop {
            let (network, mut parts) = self.network();
            let Some(index) = network.next_to_leave(now, node, &mut parts) else {
                return;
            };
            let route = self.route(index);
            let (network, mut parts) = self.network();
            network.launch(now, index, route, &mut parts);
        }
    }

    pub(super) fn retransmit(&mut self, index: u32) {
        let route = self.route(index);
        let now = self.now;
        let (network, mut parts) = self.network();
        network.enter_port(now, index, route, &mut parts);
    }

    /// A request's data has crossed the network: to the server for a write, to the client for a read.
    pub(super) fn delivered(&mut self, index: u32) {
        let route = self.route(index);
        let request = &self.requests[index];
        let (number, write) = (request.server, request.write);
        self.network.delivered(request.stream, route);
        if !write {
            self.leave_server(index);
            if self.requests[index].place != Place::Lost {
                self.replied(index);
            }
        } else if self.servers[number as usize].dead {
            self.leave_server(index);
        } else {
            self.submit(index);
        }
        self.poke(number);
    }

    fn submit(&mut self, index: u32) {
        let request = &self.requests[index];
        let (number, write, length_bytes) = (request.server, request.write, request.length);
        let position_bytes = self.files.position(number, request.object, request.offset);
        let request = DeviceRequest {
            tag: index,
            write,
            position_bytes,
            length_bytes,
        };
        self.servers[number as usize]
            .storage
            .submit(self.now, request);
    }

    /// Turn a server's queue from now on.
    pub fn turn_queue(&mut self, number: u32, turned: Turned) {
        self.servers[number as usize]
            .storage
            .set_queue(self.now, turned);
        self.poke(number);
    }

    /// Hand a foreign request to a server's device.
    pub(super) fn submit_foreign(&mut self, number: u32, write: bool, length_bytes: u32) {
        let position_bytes = self.files.anywhere(number);
        let request = DeviceRequest {
            tag: FOREIGN,
            write,
            position_bytes,
            length_bytes,
        };
        self.servers[number as usize]
            .storage
            .submit(self.now, request);
        self.poke(number);
    }

    /// A server's storage is due, unless that was before something else came.
    pub(super) fn storage_due(&mut self, number: u32) {
        if self.servers[number as usize].due_ns == Some(self.now) {
            self.poke(number);
        }
    }

    /// Let a server's storage do what is due, and see when it is due next.
    pub(super) fn poke(&mut self, number: u32) {
        let mut done = std::mem::take(&mut self.done);
        loop {
            done.clear();
            let server = &mut self.servers[number as usize];
            let next = server.storage.advance(self.now, &mut done);
            if done.is_empty() {
                if next.is_some() && (next != server.due_ns || server.due_ns == Some(self.now)) {
                    debug_assert!(next > Some(self.now));
                    self.events.push(next.unwrap_or(0), Kind::Storage, number);
                }
                server.due_ns = next;
                break;
            }
            for &tag in &done {
                if tag != FOREIGN {
                    self.stored(tag);
                }
            }
        }
        self.done = done;
    }

    /// The device is done with a request: reply, or send what was read.
    fn stored(&mut self, index: u32) {
        let request = &self.requests[index];
        // The reply will come to these, a few events from now.
        prefetch(&self.streams, request.stream);
        prefetch(&self.threads.0, request.thread);
        if self.servers[request.server as usize].dead {
            self.leave_server(index);
        } else if request.write {
            self.leave_server(index);
            let at = self.network.message_at(self.now);
            self.events.push(at, Kind::Replied, index);
        } else {
            self.send_data(index);
        }
    }

    /// A request's work on its server is over: its worker takes the next.
    fn leave_server(&mut self, index: u32) {
        let request = &mut self.requests[index];
        let now = self.now;
        let server = &mut self.servers[request.server as usize];
        server.count(now, -1);
        if server.dead {
            request.place = Place::Lost;
        }
        match server.arrived.pop(&mut self.requests) {
            Some(next) => {
                if let Some(after) = server.arrived.first() {
                    self.requests.prefetch(after);
                }
                self.work(next);
            }
            None => server.workers_free += 1,
        }
    }
}

impl super::Server {
    /// Count requests that are there, and their integral over time.
    #[inline]
    pub(super) fn count(&mut self, now: u64, change: i32) {
        self.present_area += u128::from(self.present) * u128::from(now - self.present_since);
        self.present_since = now;
        self.present = self.present.wrapping_add_signed(change);
    }
}
