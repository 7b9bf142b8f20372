//! What is asked of a device.

use super::geometry::Place;

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read = 0,
    Write = 1,
}

/// A stretch of the device, to be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) direction: Direction,
    pub(super) position: u64,
    pub(super) bytes: u64,
}

impl Span {
    pub(super) fn end(&self) -> u64 {
        self.position + self.bytes
    }
}

/// Pieces of one request that lie one behind the other, in the queue as one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) span: Span,
    /// The request.
    pub(super) owner: u32,
    /// Pieces, each with a slot of the queue.
    pub(super) pieces: u32,
    /// Where it begins.
    pub(super) place: Place,
    /// Since when it waits.
    pub(super) since_ns: u64,
}
