//! The devices behind one face.

use super::StorageParts;
use super::elevator::Arm;
use super::flash::Drive;
use super::geometry::Place;
use super::mechanical::Disk;
use super::memory::Copier;
use super::work::{Entry, Span};
use crate::scenario::Device;

/// How an operation is carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conduct {
    /// The command is there while the one before is served: what adjoins needs no positioning.
    pub(super) streamed: bool,
    /// How many times as long as usual it takes.
    pub(super) factor: f64,
}

/// What an operation takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Service {
    /// From now to its end.
    pub(super) time_ns: f64,
    /// Seek, settling and the wait for the platter.
    pub(super) positioning_ns: f64,
}

/// A device and how many operations it has in service at once.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    Mechanical(Box<Disk>),
    Flash(Box<Drive>, usize),
    Memory(Copier, usize),
}

impl Unit {
    pub(super) fn new(parts: StorageParts<'_>) -> Self {
        let depth = parts.queue.device_depth.max(1) as usize;
        match parts.device {
            Device::Mechanical(spec) => Unit::Mechanical(Box::new(Disk::new(spec))),
            Device::Flash(spec) => Unit::Flash(Box::new(Drive::new(spec, parts.seed)), depth),
            Device::Memory(spec) => Unit::Memory(Copier::new(spec), depth),
        }
    }

    /// Operations in service at once. An arm is at one place; a drive that chooses does so from the queue.
    pub(super) fn depth(&self) -> usize {
        match self {
            Unit::Mechanical(_) => 1,
            Unit::Flash(_, depth) | Unit::Memory(_, depth) => *depth,
        }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        match self {
            Unit::Mechanical(disk) => disk.capacity_bytes(),
            Unit::Flash(drive, _) => drive.capacity_bytes(),
            Unit::Memory(copier, _) => copier.capacity_bytes(),
        }
    }

    /// Bytes that may be answered before they are written.
    pub(super) fn cache_bytes(&self) -> u64 {
        match self {
            Unit::Mechanical(disk) => disk.cache_bytes(),
            Unit::Flash(..) | Unit::Memory(..) => 0,
        }
    }

    /// The time until `bytes` lie in the cache.
    pub(super) fn cache_ns(&self, bytes: u64, factor: f64) -> u64 {
        match self {
            Unit::Mechanical(disk) => disk.transfer_ns(bytes, factor) as u64,
            Unit::Flash(..) | Unit::Memory(..) => 0,
        }
    }

    /// The time that the device takes to reach the first byte of what `entry` asks for.
    fn access_ns(&self, now_ns: f64, entry: &Entry) -> f64 {
        match self {
            Unit::Mechanical(disk) => disk.access_ns(now_ns, entry.span, entry.place),
            Unit::Flash(..) | Unit::Memory(..) => 0.0,
        }
    }

    /// See [`Arm::distance_within`].
    fn distance_within(&self, time_ns: f64) -> u64 {
        match self {
            Unit::Mechanical(disk) => disk.distance_within(time_ns),
            Unit::Flash(..) | Unit::Memory(..) => u64::MAX,
        }
    }

    /// See [`Arm::is_beyond`].
    fn is_beyond(&self, entry: &Entry, distance: u64) -> bool {
        match self {
            Unit::Mechanical(disk) => disk.is_beyond(entry.span, entry.place, distance),
            Unit::Flash(..) | Unit::Memory(..) => false,
        }
    }

    /// Where a byte lies, for what turns.
    pub(super) fn place(&self, position: u64) -> Place {
        match self {
            Unit::Mechanical(disk) => disk.place(position),
            Unit::Flash(..) | Unit::Memory(..) => Place::default(),
        }
    }

    pub(super) fn serve(&mut self, now_ns: f64, span: Span, conduct: Conduct) -> Service {
        let elsewhere = |time_ns| Service {
            time_ns,
            positioning_ns: 0.0,
        };
        match self {
            Unit::Mechanical(disk) => disk.serve(now_ns, span, conduct),
            Unit::Flash(drive, _) => elsewhere(drive.serve(now_ns, span, conduct.factor)),
            Unit::Memory(copier, _) => elsewhere(copier.serve(now_ns, span, conduct.factor)),
        }
    }
}

/// A device as it stands at an instant.
pub(super) struct Standing<'a> {
    pub(super) unit: &'a Unit,
    pub(super) now_ns: f64,
}

impl Arm for Standing<'_> {
    fn access_ns(&self, entry: &Entry) -> f64 {
        self.unit.access_ns(self.now_ns, entry)
    }

    fn distance_within(&self, time_ns: f64) -> u64 {
        self.unit.distance_within(time_ns)
    }

    fn is_beyond(&self, entry: &Entry, distance: u64) -> bool {
        self.unit.is_beyond(entry, distance)
    }
}
