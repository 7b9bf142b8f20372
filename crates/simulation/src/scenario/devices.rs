//! What stores a server's data. The defaults of [`Mechanical`] are the Travelstar Z7K500 of the seeds' test bed.

use serde::{Deserialize, Serialize};

use super::describe::{Described, Kind, section};

/// A storage device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Device {
    /// A disk with platters and an arm.
    Mechanical(Mechanical),
    /// A flash drive with parallel channels and garbage collection.
    Flash(Flash),
    /// A server that keeps data in its memory.
    Memory(Memory),
}

impl Described for Device {
    fn kind() -> Kind {
        Kind::Choice(vec![
            ("mechanical".to_owned(), Mechanical::section()),
            ("flash".to_owned(), Flash::section()),
            ("memory".to_owned(), Memory::section()),
        ])
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::Mechanical(Mechanical::default())
    }
}

section! {
    /// A mechanical disk. A seek over a share d of the tracks takes
    /// `seek_track_ms + (seek_full_ms - seek_track_ms) * d^seek_exponent`; none is needed inside a track.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Mechanical {
        /// Capacity.
        pub capacity_gb: f64,
        /// Revolutions a minute.
        pub rpm: f64,
        /// Sequential reading at the outermost tracks.
        pub read_mb_per_s: f64,
        /// Sequential writing at the outermost tracks.
        pub write_mb_per_s: f64,
        /// Speed at the innermost tracks as a share of that at the outermost; zones lie between them linearly.
        pub inner_speed: f64,
        /// Zones of equal speed.
        pub zones: u32,
        /// Seek to the next track.
        pub seek_track_ms: f64,
        /// Seek over all tracks.
        pub seek_full_ms: f64,
        /// Exponent of the seek curve: 0.425 makes the mean over all pairs of tracks 12 ms, as the specifications have it.
        pub seek_exponent: f64,
        /// Longer settling before a write than before a read.
        pub write_settle_ms: f64,
        /// Time of the controller and the bus for a command.
        pub command_ms: f64,
        /// Data that the disk reads on after a read, into a segment of its buffer, while nothing else waits.
        pub read_ahead_kib: u32,
        /// Segments of the buffer: streams beyond this many lose their read-ahead.
        pub read_ahead_segments: u32,
        /// Data that it reads on after a read that continued a stream held in the buffer, even if something else waits.
        pub stream_read_ahead_kib: u32,
        /// Writes that the disk's buffer takes and answers before they lie on the platter; 0: write-through.
        pub write_cache_kib: u32,
    }
}

impl Default for Mechanical {
    fn default() -> Mechanical {
        Mechanical {
            capacity_gb: 500.0,
            rpm: 7200.0,
            read_mb_per_s: 113.0,
            write_mb_per_s: 106.0,
            inner_speed: 0.5,
            zones: 24,
            seek_track_ms: 1.0,
            seek_full_ms: 20.0,
            seek_exponent: 0.425,
            write_settle_ms: 0.3,
            command_ms: 0.1,
            read_ahead_kib: 2048,
            read_ahead_segments: 6,
            stream_read_ahead_kib: 4096,
            write_cache_kib: 0,
        }
    }
}

section! {
    /// A flash drive: pages on parallel channels; writing wears down free blocks, and collecting them takes channel time.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Flash {
        /// Capacity.
        pub capacity_gb: f64,
        /// Channels that work in parallel; a request is spread over them by `channel_kib`.
        pub channels: u32,
        /// Unit of interleaving over channels.
        pub channel_kib: u32,
        /// Reading of one channel.
        pub channel_read_mb_per_s: f64,
        /// Programming of one channel.
        pub channel_write_mb_per_s: f64,
        /// Fixed time of a read on a channel.
        pub read_us: f64,
        /// Fixed time of a write on a channel.
        pub write_us: f64,
        /// Speed of the bus to the host.
        pub bus_mb_per_s: f64,
        /// Spare blocks beyond the capacity, as a percentage of it.
        pub spare_percent: f64,
        /// Share of the capacity that holds live data at the start, in percent: sets what garbage collection must move.
        pub filled_percent: f64,
        /// Erase block of one channel.
        pub erase_block_mib: f64,
        /// Time to erase a block.
        pub erase_ms: f64,
    }
}

impl Default for Flash {
    fn default() -> Flash {
        Flash {
            capacity_gb: 480.0,
            channels: 8,
            channel_kib: 128,
            channel_read_mb_per_s: 70.0,
            channel_write_mb_per_s: 55.0,
            read_us: 80.0,
            write_us: 60.0,
            bus_mb_per_s: 530.0,
            spare_percent: 7.0,
            filled_percent: 60.0,
            erase_block_mib: 4.0,
            erase_ms: 3.0,
        }
    }
}

section! {
    /// A server whose data lies in memory.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Memory {
        /// Capacity.
        pub capacity_gb: f64,
        /// Copying, shared by all requests in service.
        pub copy_mb_per_s: f64,
        /// Fixed time of a request.
        pub request_us: f64,
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            capacity_gb: 64.0,
            copy_mb_per_s: 4_000.0,
            request_us: 10.0,
        }
    }
}
