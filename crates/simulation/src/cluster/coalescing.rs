//! Dirty data that joins a request which has not left yet, as Lustre forms its requests of the pages that are dirty when
//! they leave: the longer requests wait for window and pace, the fewer and larger they are.

use super::{Cluster, Partial};
use crate::requests::{Purpose, Request};

/// Requests of a stream that have their place in the window and their time of leaving, and have not left.
#[derive(Debug, Default)]
pub(super) struct Paced {
    pub requests: Vec<u32>,
}

/// Whether a request can take in what touches it at one end: dirty data of the same object under the same lock, in the
/// same block of the size of the largest request.
fn takes_in(request: &Request, partial: &Partial, request_bytes: u64) -> bool {
    let end = request.offset + u64::from(request.length);
    let touches =
        end == partial.offset || partial.offset + u64::from(partial.length) == request.offset;
    touches
        && request.purpose == Purpose::WriteBack
        && (request.object, request.lock) == (partial.object, partial.lock)
        && request.offset / request_bytes == partial.offset / request_bytes
}

impl Cluster {
    /// A request, paced, leaves its client.
    pub(super) fn leave_in_time(&mut self, index: u32) {
        let stream = self.requests[index].stream;
        if let Some(paced) = &mut self.streams[stream as usize].paced {
            paced.requests.retain(|&request| request != index);
        }
        self.leave(index);
    }

    /// Put dirty data into a request of its stream that waits and that it touches, and into that the one behind the gap
    /// which it has filled; whether there is such a request.
    pub(super) fn joined(&mut self, number: u32, partial: &Partial) -> bool {
        let Some(paced) = &self.streams[number as usize].paced else {
            return false;
        };
        let request_bytes = self.clients[self.client_of(number) as usize].request_bytes;
        let takes_in = |index: &u32| takes_in(&self.requests[*index], partial, request_bytes);
        if let Some(index) = paced.requests.iter().copied().find(takes_in) {
            self.widen(index, partial);
            self.streams[number as usize].in_flight.bytes += u64::from(partial.length);
            return true;
        }
        let Some((_, index)) = self.waiting_that_takes_in(number, partial, request_bytes) else {
            return false;
        };
        self.widen(index, partial);
        let request = self.requests[index];
        let whole = Partial {
            object: request.object,
            offset: request.offset,
            length: request.length,
            lock: request.lock,
        };
        if let Some((previous, other)) = self.waiting_that_takes_in(number, &whole, request_bytes) {
            let taken = self.requests[other];
            let rest = Partial {
                offset: taken.offset,
                length: taken.length,
                ..whole
            };
            self.widen(index, &rest);
            let asked_ns = &mut self.requests[index].asked_ns;
            *asked_ns = (*asked_ns).min(taken.asked_ns);
            let stream = &mut self.streams[number as usize];
            stream.waiting.take_behind(&mut self.requests, previous);
            stream.waiting_count -= 1;
            self.requests.remove(other);
        }
        true
    }

    fn widen(&mut self, index: u32, by: &Partial) {
        let request = &mut self.requests[index];
        request.offset = request.offset.min(by.offset);
        request.length += by.length;
    }

    /// The first request waiting for the window that can take dirty data in, and the one that waits before it.
    fn waiting_that_takes_in(
        &self,
        number: u32,
        partial: &Partial,
        request_bytes: u64,
    ) -> Option<(Option<u32>, u32)> {
        let mut previous = None;
        let mut entry = self.streams[number as usize].waiting.first();
        while let Some(index) = entry {
            let request = &self.requests[index];
            if takes_in(request, partial, request_bytes) {
                return Some((previous, index));
            }
            previous = entry;
            entry = (request.next != crate::lists::NONE).then_some(request.next);
        }
        None
    }
}
