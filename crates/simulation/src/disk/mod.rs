//! Storage behind a server: the request queue of the block layer and the device under it, as one.
//!
//! The cluster hands over whole requests and asks for the instant of the next change; pieces, slots, ordering, merging
//! and positions of heads are matters of this module.
//!
//! The queue ([`crate::scenario::Queue`]): a request longer than `piece_kib` is cut into pieces. Each piece takes one
//! of `slots`; a request whose next piece finds no slot waits in line, and a slot that falls free goes to the first in
//! line for *one* piece, after which that request stands at the end of the line. A full queue therefore tears requests
//! apart: their pieces are served in different sweeps, each with positioning of its own. A queue in which requests
//! wait for longer than its age limit loses its order: it serves them as they came. Both begin at a number of requests
//! at the server, and both are what restraint of clients wins back when they write at random; too few requests, in
//! turn, leave the order little to choose from.
//!
//! A device with a write cache answers before data is on its medium; [`Storage::landed`] tells when it is. [`array`] makes
//! one device of several.
//!
//! Model, constants, sources and rates: `docs/algorithms/storage-devices.md`.

pub mod array;
mod elevator;
mod flash;
mod geometry;
mod mechanical;
mod memory;
mod ordered;
mod random;
mod read_ahead;
mod seek;
mod slab;
mod station;
mod translation;
mod unit;
mod work;

#[cfg(test)]
mod tests;

use crate::scenario::{Device, Noise, Queue};

const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;

/// A request to a server's storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Who asks: comes back when the request is done.
    pub tag: u32,
    /// Whether data is written; otherwise read.
    pub write: bool,
    /// Where on the device, from its start (the outer edge).
    pub position_bytes: u64,
    /// How much; above zero.
    pub length_bytes: u32,
}

/// What can be turned of a queue while it works; see [`Queue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turned {
    /// Pieces that the queue holds.
    pub slots: u32,
    /// Pieces that the device chooses from, for `nearest`.
    pub device_depth: u32,
    /// Reads that may pass a waiting write, in a row.
    pub writes_starved: u32,
    /// Pieces of one direction served in a row.
    pub batch: u32,
}

impl Turned {
    /// Each of them within 1 (0 for `writes_starved`) and this.
    pub const MOST: u32 = 100_000;
}

/// Sums since the start; for reports and tests of conservation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Requests taken.
    pub submitted: u64,
    /// Requests done.
    pub completed: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Pieces served.
    pub pieces: u64,
    /// Pieces that followed the one before without positioning.
    pub sequential_pieces: u64,
    /// Time with at least one piece in service.
    pub busy_ns: u64,
    /// Part of it spent on seeks and rotation.
    pub positioning_ns: u64,
}

/// Queue and device of one server.
///
/// Time is virtual, in nanoseconds since the start; it never goes back between calls. A call with `now_ns` stands for
/// everything that has happened until then.
pub trait Storage: std::fmt::Debug + Send {
    /// Take a request. Call [`Storage::advance`] with the same instant afterwards (once for several requests).
    fn submit(&mut self, now_ns: u64, request: DeviceRequest);

    /// Do all that is due by `now_ns`: the tags of requests that are done are added to `done`, in order. Returns the
    /// instant of the next change, later than `now_ns`; none when nothing is under way.
    fn advance(&mut self, now_ns: u64, done: &mut Vec<u32>) -> Option<u64>;

    /// From now on every operation takes `factor` times as long (1: as it was).
    fn set_slowdown(&mut self, factor: f64);

    /// Turn the queue from now on. What waits keeps its slots, also where fewer are allowed now. Call
    /// [`Storage::advance`] with the same instant afterwards.
    fn set_queue(&mut self, now_ns: u64, turned: Turned);

    /// From now on it is noted which writes have reached the medium. A write's tag is then not used again before
    /// [`Storage::landed`] has told it.
    fn note_landings(&mut self);

    /// Adds the tags of writes that have reached the medium since the last call, in order. A device with a write cache is
    /// done with a write before that, as a rule; one without at the same instant.
    fn landed(&mut self, tags: &mut Vec<u32>);

    /// Capacity, for layout.
    fn capacity_bytes(&self) -> u64;

    /// Sums since the start.
    fn counters(&self) -> DeviceCounters;
}

/// What a server's storage is made of.
#[derive(Debug, Clone, Copy)]
pub struct StorageParts<'a> {
    /// The device.
    pub device: &'a Device,
    /// The queue before it.
    pub queue: &'a Queue,
    /// Variation of service times (`service_sd_percent` only; foreign requests are the cluster's).
    pub noise: &'a Noise,
    /// Seed of its draws.
    pub seed: u64,
}

/// Queue and device of a server, idle at time 0.
#[must_use]
pub fn build(parts: StorageParts<'_>) -> Box<dyn Storage> {
    Box::new(station::Station::new(parts))
}
