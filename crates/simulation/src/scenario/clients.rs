//! Clients and their caches.

use serde::{Deserialize, Serialize};

use super::describe::section;

use super::{Control, Link};

section! {
    /// Clients that are alike.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ClientGroup {
        /// How many; each is a node with a link of its own.
        pub count: u32,
        /// Name of the workload that each of them runs.
        pub workload: String,
        /// Control of their streams; without it the scenario's.
        #[serde(default)]
        pub control: Option<Control>,
        /// A client that ignores control: its window stays at `rogue_window` and nothing paces it.
        #[serde(default)]
        pub rogue: bool,
        /// Requests that a rogue keeps in flight on each stream at most.
        #[serde(default = "default_rogue_window")]
        pub rogue_window: u32,
        /// Write-back cache, read-ahead and page cache, for what is not direct I/O.
        #[serde(default)]
        pub cache: Cache,
        /// Its link; without it the network's.
        #[serde(default)]
        pub link: Option<Link>,
        /// Largest request to a server: longer operations are split (Lustre's max_pages_per_rpc).
        #[serde(default = "default_request_kib")]
        pub request_kib: u32,
        /// Virtual seconds after which this group begins to work.
        #[serde(default)]
        pub start_s: f64,
        /// Virtual seconds after which this group stops issuing work; without it, never.
        #[serde(default)]
        pub stop_s: Option<f64>,
    }
}

fn default_rogue_window() -> u32 {
    256
}

fn default_request_kib() -> u32 {
    1024
}

section! {
    /// A client's memory as a cache of file data.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Cache {
        /// Dirty data a stream may hold before a writer waits (Lustre's max_dirty_mb).
        pub dirty_limit_mib: f64,
        /// File data kept for reading again; 0 keeps none.
        pub page_cache_mib: f64,
        /// Data read ahead of a sequential reader, at most, a file (Lustre's max_read_ahead_per_file_mb).
        pub read_ahead_mib: f64,
        /// Speed of copying between an application and the cache.
        pub copy_mb_per_s: f64,
        /// Whether dirty data joins a request that it touches and that still waits for window or pace, up to
        /// `request_kib`: the longer requests wait, the larger they leave. Otherwise a request stays as it was made.
        pub coalesce: bool,
    }
}

impl Default for Cache {
    fn default() -> Cache {
        Cache {
            dirty_limit_mib: 32.0,
            page_cache_mib: 12_288.0,
            read_ahead_mib: 40.0,
            copy_mb_per_s: 2_500.0,
            coalesce: false,
        }
    }
}
