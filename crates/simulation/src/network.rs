//! Links and the switch.
//!
//! A transfer takes its sender's link, one after another, then the receiver's, which the switch queues for in the
//! order in which transfers begin. It reaches the receiver while it still leaves the sender: what counts is the
//! slower of the two. Messages without data take the latency alone.
//!
//! Incast: each sender has at least an initial window on its way into the receiver's port. Where these do not fit into
//! the port's buffer together, the newcomer loses segments and waits for its retransmission time-out (Phanishayee et
//! al., "Measurement and analysis of TCP throughput collapse in cluster-based storage systems", FAST 2008).

use crate::events::{Events, Kind, Nanos};
use crate::lists::List;
use crate::requests::Requests;
use crate::scenario::Network as Parameters;

/// One direction of a node's link.
#[derive(Debug, Clone, Default)]
struct Direction {
    free_at: Nanos,
    busy_ns: Nanos,
    /// Requests whose data waits to leave.
    queue: List,
    /// Whether an event is due when it falls free.
    woken: bool,
    /// Clients or servers with data on the way to this node.
    senders: u32,
}

/// What passes through a node's link, in nanoseconds a byte.
#[derive(Debug, Clone, Copy)]
struct Speed(f64);

impl Speed {
    fn time(self, bytes: u64) -> Nanos {
        (self.0 * bytes as f64) as Nanos
    }
}

/// The nodes' links; clients first, then servers.
#[derive(Debug)]
pub struct Network {
    outgoing: Vec<Direction>,
    incoming: Vec<Direction>,
    speeds: Vec<Speed>,
    latency_ns: Nanos,
    buffer_bytes: u64,
    senders_max: u32,
    rto_ns: Nanos,
    /// Until when nothing is carried.
    paused_until: Nanos,
    /// Requests with data on the way, by stream and direction: senders are counted once.
    under_way: Vec<[u16; 2]>,
    /// Transfers that lost segments.
    pub losses: u64,
}

impl Network {
    /// Links of the given speeds, one a node.
    #[must_use]
    pub fn new(parameters: &Parameters, mb_per_s: &[f64], streams: usize) -> Network {
        Network {
            outgoing: vec![Direction::default(); mb_per_s.len()],
            incoming: vec![Direction::default(); mb_per_s.len()],
            speeds: mb_per_s
                .iter()
                .map(|mb_per_s| Speed(1e3 / mb_per_s))
                .collect(),
            latency_ns: (parameters.latency_us * 1e3) as Nanos,
            buffer_bytes: u64::from(parameters.port_buffer_kib) * 1024,
            senders_max: (parameters.port_buffer_kib / parameters.window_min_kib).max(1),
            rto_ns: (parameters.rto_ms * 1e6) as Nanos,
            paused_until: 0,
            under_way: vec![[0; 2]; streams],
            losses: 0,
        }
    }

    /// When a message without data that is sent now arrives.
    #[inline]
    #[must_use]
    pub fn message_at(&self, now: Nanos) -> Nanos {
        now.max(self.paused_until) + self.latency_ns
    }

    /// Nothing is carried until then.
    pub fn pause(&mut self, until: Nanos) {
        self.paused_until = self.paused_until.max(until);
    }

    /// Foreign traffic to a node.
    pub fn burst(&mut self, now: Nanos, node: usize, bytes: u64) {
        let time = self.speeds[node].time(bytes);
        let link = &mut self.incoming[node];
        link.free_at = link.free_at.max(now) + time;
        link.busy_ns += time;
    }

    /// Begin to send a request's data from one node to another, or queue for the sender's link.
    #[inline]
    pub fn send(&mut self, now: Nanos, request: u32, route: Route, parts: &mut Parts) {
        let now = now.max(self.paused_until);
        let link = &mut self.outgoing[route.from as usize];
        if link.free_at <= now && link.queue.is_empty() {
            self.launch(now, request, route, parts);
            return;
        }
        link.queue.push(parts.requests, request);
        if !link.woken {
            link.woken = true;
            parts
                .events
                .push(link.free_at.max(now), Kind::LinkOut, route.from);
        }
    }

    /// The next request whose data may leave a node, if any is waiting; the caller launches it and calls again.
    pub fn next_to_leave(&mut self, now: Nanos, node: u32, parts: &mut Parts) -> Option<u32> {
        let paused_until = self.paused_until;
        let link = &mut self.outgoing[node as usize];
        let free_at = link.free_at.max(paused_until);
        if free_at > now {
            link.woken = !link.queue.is_empty();
            if link.woken {
                parts.events.push(free_at, Kind::LinkOut, node);
            }
            return None;
        }
        link.woken = false;
        link.queue.pop(parts.requests)
    }

    /// Put a request's data on its sender's link, which is free.
    pub fn launch(&mut self, now: Nanos, request: u32, route: Route, parts: &mut Parts) {
        let bytes = u64::from(parts.requests[request].length);
        let time = self.speeds[route.from as usize].time(bytes);
        let link = &mut self.outgoing[route.from as usize];
        link.free_at = now + time;
        link.busy_ns += time;
        let stream = parts.requests[request].stream as usize;
        let under_way = &mut self.under_way[stream][route.direction()];
        if *under_way == 0 {
            self.incoming[route.to as usize].senders += 1;
        }
        *under_way += 1;
        self.enter_port(now, request, route, parts);
    }

    /// Data reaches the receiver's switch port: it queues there, or loses segments.
    pub fn enter_port(&mut self, now: Nanos, request: u32, route: Route, parts: &mut Parts) {
        let bytes = u64::from(parts.requests[request].length);
        let link = &mut self.incoming[route.to as usize];
        let begin = now.max(self.paused_until) + self.latency_ns;
        if link.senders > self.senders_max && link.free_at > begin {
            self.losses += 1;
            parts
                .events
                .push(begin + self.rto_ns, Kind::Retransmit, request);
            return;
        }
        let time = self.speeds[route.to as usize].time(bytes);
        let leaves = begin + self.speeds[route.from as usize].time(bytes);
        let end = (link.free_at.max(begin) + time).max(leaves);
        link.free_at = end;
        link.busy_ns += time;
        parts.events.push(end, Kind::Delivered, request);
    }

    /// A request's data has arrived.
    #[inline]
    pub fn delivered(&mut self, stream: u32, route: Route) {
        let under_way = &mut self.under_way[stream as usize][route.direction()];
        *under_way -= 1;
        if *under_way == 0 {
            self.incoming[route.to as usize].senders -= 1;
        }
    }

    /// Round trip of a ping: the latency both ways behind what the switch holds for either node, never more than a
    /// port's buffer.
    #[must_use]
    pub fn ping_us(&self, now: Nanos, client: usize, server: usize) -> f64 {
        let queued = |node: usize| {
            let backlog = self.incoming[node].free_at.saturating_sub(now);
            backlog.min(self.speeds[node].time(self.buffer_bytes))
        };
        let pause = self.paused_until.saturating_sub(now);
        (2 * self.latency_ns + queued(client) + queued(server) + pause) as f64 / 1e3
    }

    /// Time that a node's link was busy so far: incoming, outgoing.
    #[must_use]
    pub fn busy_ns(&self, node: usize) -> (Nanos, Nanos) {
        (self.incoming[node].busy_ns, self.outgoing[node].busy_ns)
    }
}

/// From which node to which.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
}

impl Route {
    /// 0 to a server, 1 to a client: these come first among the nodes.
    fn direction(self) -> usize {
        usize::from(self.from > self.to)
    }
}

/// Tables that the network works on.
pub struct Parts<'a> {
    /// Events to come.
    pub events: &'a mut Events,
    /// Requests under way.
    pub requests: &'a mut Requests,
}
