//! Failures: slow and dead servers, a network that pauses, and what is lost with them.

use ascar_congestion::Controller;

use super::{Cluster, nanos};
use crate::events::Kind;
use crate::requests::Place;
use crate::scenario::FailureKind;

/// How often requests lost on a dead server are looked for.
const LOST_SCAN_NS: u64 = 250_000_000;
/// How often late requests are looked for, as a share of the time-out.
const SCANS_A_TIMEOUT: u64 = 8;

impl Cluster {
    /// Schedule what the scenario has go wrong.
    pub(super) fn schedule_faults(&mut self) {
        for (index, failure) in self.failures.iter().enumerate() {
            let begin = nanos(failure.at_s);
            // Even numbers begin a failure, odd ones end it.
            self.events.push(begin, Kind::Failure, 2 * index as u32);
            self.events.push(
                begin + nanos(failure.for_s),
                Kind::Failure,
                2 * index as u32 + 1,
            );
        }
        self.events.push(self.timeout_scan_ns(), Kind::Timeouts, 0);
    }

    fn timeout_scan_ns(&self) -> u64 {
        let mut failures = self.failures.iter();
        let late_ns = (self.timeout_ns / SCANS_A_TIMEOUT).max(1);
        if failures.any(|failure| failure.kind == FailureKind::DeadServer) {
            late_ns.min(LOST_SCAN_NS)
        } else {
            late_ns
        }
    }

    pub(super) fn failure(&mut self, index: u32) {
        let failure = &self.failures[index as usize / 2];
        let begins = index.is_multiple_of(2);
        let server = failure.server as usize;
        match failure.kind {
            FailureKind::SlowServer => {
                self.servers[server].storage.set_slowdown(if begins {
                    failure.factor
                } else {
                    1.0
                });
                self.poke(server as u32);
            }
            FailureKind::NetworkPause if begins => {
                let until = self.now + nanos(failure.for_s);
                self.network.pause(until);
            }
            FailureKind::NetworkPause => {}
            FailureKind::DeadServer if begins => self.server_dies(server),
            FailureKind::DeadServer => self.servers[server].dead = false,
        }
    }

    /// What waits at the server is lost; what its device and links hold is lost when it comes back from there.
    fn server_dies(&mut self, number: usize) {
        self.servers[number].dead = true;
        while let Some(index) = self.servers[number].arrived.pop(&mut self.requests) {
            self.requests[index].place = Place::Lost;
            let now = self.now;
            self.servers[number].count(now, -1);
        }
    }

    /// Send again what has had no reply for a time-out, and once more after each further one. It keeps its place in the
    /// window. What was lost leaves anew; of what its server still has, the server drops the copy.
    pub(super) fn timeouts(&mut self) {
        let (now, timeout_ns, scan_ns) = (self.now, self.timeout_ns, self.timeout_scan_ns());
        let late: Vec<u32> = self
            .requests
            .live()
            .filter(|&index| {
                let request = &self.requests[index];
                if request.place == Place::Client {
                    return false;
                }
                let since_ns = now - request.sent_ns;
                // Of what is not lost, each time-out counts at the first look after it.
                let before_ns = since_ns.saturating_sub(scan_ns);
                since_ns >= timeout_ns
                    && (request.place == Place::Lost
                        || since_ns / timeout_ns > before_ns / timeout_ns)
            })
            .collect();
        for index in late {
            let request = self.requests[index];
            let stream = &mut self.streams[request.stream as usize];
            stream
                .controller
                .on_timeout(request.sent_ns / 1_000, now / 1_000);
            if request.place == Place::Lost {
                self.counters.lost(now);
                self.leave(index);
            }
            self.counters.timeouts += 1;
        }
        self.events.push(now + scan_ns, Kind::Timeouts, 0);
    }
}
