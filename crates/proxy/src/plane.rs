//! Rules act on the proxy's streams.

use std::sync::Arc;
use std::time::Duration;

use ascar_congestion::RuleSet;
use ascar_plane::{GoneStreams, Plane, Recording, StreamIndicators};

use crate::protocol::Protocol;
use crate::streams::Streams;

/// The streams, as a rule manager sees them.
#[derive(Debug)]
pub struct ProxyPlane {
    streams: Arc<Streams>,
    /// A protocol of the routes whose requests have no offsets.
    unplaced: Option<Protocol>,
}

impl ProxyPlane {
    /// The plane of these streams, whose clients speak these protocols.
    #[must_use]
    pub fn new(streams: Arc<Streams>, mut protocols: impl Iterator<Item = Protocol>) -> Self {
        let unplaced = protocols.find(|protocol| !protocol.has_offsets());
        Self { streams, unplaced }
    }
}

impl Plane for ProxyPlane {
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String> {
        self.streams.follow(rules.cloned());
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        self.streams.used()
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        self.streams.observe()
    }

    fn gone(&self) -> Vec<GoneStreams> {
        self.streams.gone()
    }

    fn record(&mut self, length: Duration) -> Result<(), String> {
        // Rules hold all streams of a proxy: what some of them do is not its load.
        if let Some(protocol) = self.unplaced {
            return Err(format!(
                "route.protocol = \"{protocol}\": its requests have no offsets, by which a load is recognised; only a \
                 proxy whose routes are all \"nbd\" records: deploy rules here, or learn their numbers"
            ));
        }
        self.streams.recorder().begin(length);
        Ok(())
    }

    fn take_recorded(&mut self) -> Recording {
        self.streams.recorder().take()
    }
}
