//! Servers: threads, request queue, layout of files; the metadata server; striping; locks.

use serde::{Deserialize, Serialize};

use super::describe::{section, words};

use super::{Control, Device, Link};

section! {
    /// Storage servers that are alike. Each has one device.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ServerGroup {
        /// How many.
        pub count: u32,
        /// Worker threads: each takes one request from arrival to reply, waiting for network and device.
        pub threads: u32,
        /// Processor time of a request.
        pub request_cpu_us: f64,
        /// The queue before the device.
        pub queue: Queue,
        /// The device.
        pub device: Device,
        /// How files lie on the device.
        pub layout: Layout,
        /// Its link; without it the network's.
        pub link: Option<Link>,
    }
}

impl Default for ServerGroup {
    fn default() -> ServerGroup {
        ServerGroup {
            count: 1,
            threads: 128,
            request_cpu_us: 40.0,
            queue: Queue::default(),
            device: Device::default(),
            layout: Layout::default(),
            link: None,
        }
    }
}

words! {
    /// In which order requests of one direction go to the device.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Order {
        /// As they came.
        Arrival,
        /// By position, upwards, then again from the oldest (Linux' deadline elevator).
        Elevator,
        /// The one that the device reaches soonest, among those that it may choose from (native command queueing).
        Nearest,
    }
}

section! {
    /// The request queue of a server's device (Linux's block layer and the drive's command queue).
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Queue {
        /// Pieces that the queue holds (nr_requests); a worker whose piece finds no room waits.
        pub slots: u32,
        /// Largest piece: a longer request is cut (max_sectors_kb), and its pieces are queued one by one.
        pub piece_kib: u32,
        /// Whether pieces that touch on the device are served without positioning in between when chosen together.
        pub merge: bool,
        /// Order of reads.
        pub read_order: Order,
        /// Order of writes.
        pub write_order: Order,
        /// Pieces that the device itself holds and chooses from, for `nearest`.
        pub device_depth: u32,
        /// Reads that may pass a waiting write, in a row, before writes have their turn.
        pub writes_starved: u32,
        /// Pieces of one direction served in a row while the other waits.
        pub batch: u32,
        /// A write that has waited for longer is served before the order continues from it.
        pub write_expire_ms: f64,
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            slots: 128,
            piece_kib: 512,
            merge: true,
            read_order: Order::Arrival,
            write_order: Order::Nearest,
            device_depth: 31,
            writes_starved: 2,
            batch: 1,
            write_expire_ms: 500.0,
        }
    }
}

section! {
    /// How files lie on a server's device. Files grow by extents, shorter ones at their end; an extent lies behind the last
    /// one allocated on the server, or somewhere in the spread. Files that exist at the start were written by all clients
    /// at the same time: their extents take turns.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Layout {
        /// Where the free space used begins, as a percentage of the capacity from the outer edge.
        pub start_percent: f64,
        /// Over how much of the capacity files are scattered, in percent.
        pub spread_percent: f64,
        /// Longest extent: what is allocated in one piece (ext4's: 128 MiB).
        pub extent_kib: u32,
        /// Share of extents, in percent, that do not lie behind the one allocated before.
        pub fragmentation_percent: f64,
        /// Share of the space that other files hold, in percent, in pieces of an extent: the fuller, the wider the gaps.
        pub used_percent: f64,
    }
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            start_percent: 0.0,
            spread_percent: 10.0,
            extent_kib: 131_072,
            fragmentation_percent: 0.0,
            used_percent: 80.0,
        }
    }
}

section! {
    /// The metadata server: threads that share nothing but their queue.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Metadata {
        /// Operations served at a time.
        pub threads: u32,
        /// Create, with its objects.
        pub create_us: f64,
        /// Open or close.
        pub open_us: f64,
        /// Look at attributes.
        pub stat_us: f64,
        /// Delete, with its objects.
        pub delete_us: f64,
        /// Share of an operation's time that each other operation at work adds to it: what they do one after the
        /// other (sigma of the universal scalability law).
        pub contention: f64,
        /// Share of an operation's time that each pair of operations at work adds to it: what they tell each other
        /// (kappa of that law); from it on more threads do less.
        pub coherence: f64,
        /// Control of each client's stream of metadata operations; without it they leave at once.
        pub control: Option<Control>,
    }
}

impl Default for Metadata {
    fn default() -> Metadata {
        Metadata {
            threads: 16,
            create_us: 600.0,
            open_us: 150.0,
            stat_us: 120.0,
            delete_us: 500.0,
            contention: 0.0,
            coherence: 0.0,
            control: None,
        }
    }
}

section! {
    /// How a file is divided among servers.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Striping {
        /// Servers a file lies on; more than there are means all.
        pub count: u32,
        /// Bytes in a row on one server.
        pub size_kib: u32,
    }
}

impl Default for Striping {
    fn default() -> Striping {
        Striping {
            count: 4,
            size_kib: 1024,
        }
    }
}

section! {
    /// Locks on the objects of files that several clients share.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Locks {
        /// Whether there are any; without them shared files cost nothing extra.
        pub enabled: bool,
        /// Whether one lock covers a whole file; otherwise one covers what lies of it on one server.
        pub whole_file: bool,
        /// Whether a lock covers a range of bytes of what lies on one server: what was asked for, and around it as
        /// much as nobody else holds or waits for (Lustre's extent locks).
        pub extents: bool,
        /// How far such a range grows beyond what was asked for, at most, either way; without it as far as it can.
        pub extent_growth_mib: Option<f64>,
        /// Server's and client's processor time of handing a lock over, besides messages and flushing.
        pub handover_us: f64,
    }
}

impl Default for Locks {
    fn default() -> Locks {
        Locks {
            enabled: true,
            whole_file: false,
            extents: false,
            extent_growth_mib: None,
            handover_us: 500.0,
        }
    }
}
