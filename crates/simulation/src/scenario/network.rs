//! Links and the switch between them.

use serde::{Deserialize, Serialize};

use super::describe::section;

section! {
    /// A full-duplex link of a node.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Link {
        /// What it carries of file data, each way, after headers (gigabit Ethernet: 117.5).
        pub bandwidth_mb_per_s: f64,
    }
}

impl Default for Link {
    fn default() -> Link {
        Link {
            bandwidth_mb_per_s: 117.5,
        }
    }
}

section! {
    /// The switched network: each node hangs on a link; the switch queues what goes to the same link.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Network {
        /// Link of every node that has none of its own.
        pub link: Link,
        /// One way from node to node, without queues.
        pub latency_us: f64,
        /// Buffer of a switch port. When more senders than fit into it at `window_min_kib` each send to one port at
        /// once, segments are lost and a sender waits for its retransmission time-out (incast).
        pub port_buffer_kib: u32,
        /// Least that a sender has under way (TCP's initial window of ten segments).
        pub window_min_kib: u32,
        /// Retransmission time-out.
        pub rto_ms: f64,
    }
}

impl Default for Network {
    fn default() -> Network {
        Network {
            link: Link::default(),
            latency_us: 60.0,
            port_buffer_kib: 512,
            window_min_kib: 14,
            rto_ms: 200.0,
        }
    }
}
